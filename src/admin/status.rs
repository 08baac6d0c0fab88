//! `/status`: what this node is doing now, as JSON for people and scripts.
//!
//! Totals are since the start; by whom a limit is met most is of the last one to two minutes and from a
//! sample. It is bounded: as many links and limits as the configuration has, and a few keys of each.

use serde_json::{Value, json};

use super::store;
use crate::clock::Moment;
use crate::count::Word;
use crate::exchange::Pass;
use crate::limits::{LimitIx, Policy, Rule};
use crate::metrics::{Published, PublishedLink};
use crate::reason::Reason;
use crate::worker::{Handout, Met, Ranking, SPAN};

/// Keys of a limit that are shown.
const KEYS_SHOWN: usize = 10;

/// The whole node.
pub(super) fn of_node(published: &Published, ready: bool, now: Moment) -> Value {
    let links: Vec<Value> = published.links.iter().map(of_link).collect();
    let limits = (0u8..).map(LimitIx).zip(published.policy.limits());
    let limits: Vec<Value> =
        limits.map(|(limit, rule)| of_limit(published, limit, rule, now)).collect();
    json!({
        "node": published.node,
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": now.nanos() / 1_000_000_000,
        "ready": ready,
        "links": links,
        "limits": limits,
        "store": published.leasing.as_ref().map(|leasing| store::of_leasing(published, leasing, now)),
    })
}

fn of_link(link: &PublishedLink) -> Value {
    let PublishedLink { name, upstream, counters, .. } = link;
    let [requests, others] = counters.in_flight.each_ref().map(Word::get);
    let forwarded = |pass: Pass| -> u64 {
        counters.forwarded.iter().filter_map(|of| of.get(pass as usize)).map(Word::get).sum()
    };
    let answered = |wanted: fn(Reason) -> bool| -> u64 {
        let reasons = Reason::ALL.into_iter().filter(|reason| wanted(*reason));
        let words = reasons.flat_map(|reason| {
            counters.answered.iter().filter_map(move |of| of.get(reason as usize))
        });
        words.map(Word::get).sum()
    };
    json!({
        "name": name,
        "state": if counters.sessions.get() > 0 { "up" } else { "down" },
        "sessions": counters.sessions.get(),
        "upstream": {
            "name": upstream,
            "up": counters.connections_up.get() > 0,
            "connections_up": counters.connections_up.get(),
            "queued_bytes": counters.queued_bytes.get(),
            "reconnects": counters.reconnects.get(),
        },
        "in_flight": { "requests": requests, "others": others },
        "forwarded": Pass::ALL.into_iter().map(forwarded).sum::<u64>(),
        "rejected": answered(|reason| !reason.forwarded()),
        "answered_at_deadline": answered(Reason::forwarded),
    })
}

fn of_limit(published: &Published, limit: LimitIx, rule: &Rule, now: Moment) -> Value {
    let policy = &published.policy;
    let place = usize::from(limit.0);
    let counters = || published.links.iter().map(|link| &link.counters);
    let sum = |words: &[Word]| words.get(place).map_or(0, Word::get);
    let mut handouts = counters().map(|counters| Handout::of(&counters.met, limit));
    let met = handouts.next().map(|first| {
        handouts.fold(first, |mut all: Met, more| {
            all.add(&more);
            all
        })
    });
    let keys = |ranking: Option<&Ranking>| {
        ranking.map_or_else(Vec::new, |ranking| top(policy, limit, ranking, now))
    };
    json!({
        "name": rule.name,
        "per": rule.per.iter().map(|dimension| dimension.name()).collect::<Vec<_>>(),
        "mode": rule.mode.name(),
        "rate_per_second": rule.rate.pico_per_second() as f64 / 1e12,
        "burst_tokens": rule.burst.micro() as f64 / 1e6,
        "keys_named": rule.keys.len(),
        "keys_automatic": policy.keys_in_use(limit),
        "keys_max": rule.keys_max,
        "overflowed": policy.overflowed(limit),
        "rejected": counters().map(|of| sum(&of.refused_by)).sum::<u64>(),
        "shadow_rejected": counters().map(|of| sum(&of.shadowed_by)).sum::<u64>(),
        "forgiven": counters().map(|of| sum(&of.forgiven_by)).sum::<u64>(),
        "seen_within_seconds": 2 * SPAN.as_secs(),
        "busiest": keys(met.as_ref().map(|met| &met.by)),
        "most_refused": keys(met.as_ref().map(|met| &met.refused)),
    })
}

/// The keys that were met most, with their share of all that were looked at.
fn top(policy: &Policy, limit: LimitIx, ranking: &Ranking, now: Moment) -> Vec<Value> {
    let total = ranking.total().max(1) as f64;
    let shown = ranking.top().into_iter().take(KEYS_SHOWN);
    shown
        .filter_map(|ranked| {
            let key = policy.key_name(limit, &ranked.example)?;
            let level = policy.key_level(limit, &ranked.example, now)?;
            Some(json!({
                "key": key,
                "share_at_most": rounded((ranked.count as f64 / total).min(1.0), 1e4),
                "remaining_tokens": rounded(level as f64 / 1e6, 1e3),
            }))
        })
        .collect()
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

//! `[quota]`: where tokens are kept, and how they are leased.

use std::time::Duration;

use toml::de::DeValue;

use super::fault::Wrong;
use super::reader::{Placed, Section};
use super::{duration, redis, value};
use crate::limits::grant::ONE;
use crate::limits::{OnLoss, SHARDS_MAX, Terms};
use crate::quota::protocol::DIGEST_AGE_US;
use crate::quota::redis::Deployment;
use crate::quota::sync::Settings;

/// Where tokens are kept, and how they come from there.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    /// Whether this node leases its tokens; else its buckets fill by themselves.
    pub leases: bool,
    /// How far leases reach, and what is done without one.
    pub terms: Terms,
    /// How often the node syncs.
    pub sync: Settings,
    /// The Redis that keeps the tokens of all nodes; `None` keeps them in this process.
    pub redis: Option<crate::quota::redis::Settings>,
    /// The configuration says where a Redis is, and does not use it.
    pub unused_redis: bool,
}

/// Shorter, and the store is asked more often than there is news.
const TICK_MIN: Duration = Duration::from_millis(10);
/// Longer, and a lease of two and a half ticks would be longer than a digest tells of.
const TICK_MAX: Duration = Duration::from_millis(120);
/// A lease lasts so many tenths of a tick at least, so that one lost call does not end it.
const LEASE_TICKS_TENTHS: u32 = 25;
/// Longer, and a node with a lease could have missed what a digest told.
const LEASE_TTL_MAX: Duration = Duration::from_micros(DIGEST_AGE_US);
/// Default of `namespace`.
const NAMESPACE: &str = "tollgate";
const COALESCE_MAX: Duration = Duration::from_millis(50);
const REPLY_TIMEOUT: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(5)..=Duration::from_millis(200);
const BATCH_MAX: usize = 1_000;
const HOLD_MAX: f64 = 1_000_000.0;

impl Quota {
    pub(super) fn read(section: Section<'_>) -> Option<Self> {
        let store = value::choice([("embedded", false), ("redis", true)], value::none_later);
        let store = section.or("store", false, store);
        let is_redis = store.as_ref().is_some_and(|store| store.value);
        let leases = section.or("leases", is_redis, truth);
        let namespace = section.or("namespace", NAMESPACE.to_owned(), redis::namespace);
        let on_loss = OnLoss::ALL.map(|on_loss| (on_loss.name(), on_loss));
        let on_loss = value::choice(on_loss, value::none_later);
        let on_loss = section.or("on_loss", OnLoss::default(), on_loss);
        let namespace = namespace.map_or_else(|| NAMESPACE.to_owned(), |namespace| namespace.value);
        let redis = redis::read(section.table("redis"), is_redis, namespace);
        let deployment = redis.as_ref().map(|redis| &redis.deployment).filter(|_| is_redis);
        let usual = Settings {
            shards: deployment.map_or(1, Deployment::usual_shards),
            ..Settings::default()
        };
        let leasing = leasing(section.table("leasing"), &usual);
        if let Some(leases) = leases.as_ref().filter(|leases| is_redis && !leases.value) {
            let problem = "is false, so that nothing would be asked of the Redis";
            let wrong = Wrong::new(problem, "remove it, or write store = \"embedded\"");
            section.fault(&leases.place, &wrong);
        }
        section.finish(&[]);
        let (terms, sync) = leasing?;
        let terms = Terms { on_loss: on_loss?.value, ..terms };
        store?;
        let redis = redis?;
        let unused_redis = !is_redis && !redis::is_usual(&redis);
        let redis = is_redis.then_some(redis);
        Some(Self { leases: leases?.value, terms, sync, redis, unused_redis })
    }
}

impl Default for Quota {
    /// One node, whose buckets fill by themselves.
    fn default() -> Self {
        let (terms, sync) = (Terms::default(), Settings::default());
        Self { leases: false, terms, sync, redis: None, unused_redis: false }
    }
}

/// `[quota.leasing]`.
fn leasing(section: Section<'_>, usual: &Settings) -> Option<(Terms, Settings)> {
    let terms = Terms::default();
    let tick = section.or("tick", usual.tick, duration::within(TICK_MIN..=TICK_MAX));
    let lease_ttl = duration::within(TICK_MIN..=LEASE_TTL_MAX);
    let lease_ttl = section.or("lease_ttl", usual.lease_ttl, lease_ttl);
    let gaps = || duration::within(Duration::ZERO..=COALESCE_MAX);
    let coalesce = section.or("coalesce", usual.coalesce, gaps());
    let min_gap = section.or("min_gap", usual.min_gap, gaps());
    let timeout = duration::within(REPLY_TIMEOUT);
    let reply_timeout = section.or("reply_timeout", usual.reply_timeout, timeout);
    let shards = section.or("shards", usual.shards, value::whole(1..=SHARDS_MAX));
    let batch_max = section.or("batch_max", usual.batch_max, value::whole(1..=BATCH_MAX));
    let budget = f64::from(terms.sync_budget) / 1e6;
    let sync_budget = section.or("sync_budget", budget, between(0.01, 1.0));
    let hold = terms.min_hold as f64 / ONE as f64;
    let min_hold = section.or("min_hold", hold, between(1.0, HOLD_MAX));
    let local_slack = section.or("local_slack", usual.local_slack, between(1.0, 4.0));
    let push = section.or("push", usual.push, truth);
    if let (Some(tick), Some(lease_ttl)) = (&tick, &lease_ttl) {
        check_lease(&section, tick, lease_ttl);
    }
    if let (Some(tick), Some(reply_timeout)) = (&tick, &reply_timeout)
        && reply_timeout.value > tick.value
    {
        let problem = "is longer than a tick, so that a lost report keeps its key waiting for two";
        let remedy = format!("write at most \"{}\"", duration::to_text(tick.value));
        section.fault(&reply_timeout.place, &Wrong::new(problem, remedy));
    }
    section.finish(&[]);
    let terms = Terms {
        min_hold: (min_hold?.value * ONE as f64).round() as i64,
        sync_budget: (sync_budget?.value * 1e6).round() as u32,
        ..terms
    };
    let settings = Settings {
        tick: tick?.value,
        lease_ttl: lease_ttl?.value,
        coalesce: coalesce?.value,
        min_gap: min_gap?.value,
        reply_timeout: reply_timeout?.value,
        shards: shards?.value,
        batch_max: batch_max?.value,
        local_slack: local_slack?.value,
        push: push?.value,
    };
    Some((terms, settings))
}

fn check_lease(section: &Section<'_>, tick: &Placed<Duration>, lease_ttl: &Placed<Duration>) {
    let least = tick.value * LEASE_TICKS_TENTHS / 10;
    if lease_ttl.value < least {
        let problem = format!(
            "{} is less than two and a half ticks, so that one lost call ends all leases",
            duration::to_text(lease_ttl.value)
        );
        let remedy = format!("write at least \"{}\"", duration::to_text(least));
        section.fault(&lease_ttl.place, &Wrong::new(problem, remedy));
    }
}

fn truth(value: &DeValue<'_>) -> Result<bool, Wrong> {
    value.as_bool().ok_or_else(|| value::not(value, "true or false", "write true or false"))
}

fn between(least: f64, most: f64) -> impl Fn(&DeValue<'_>) -> Result<f64, Wrong> {
    move |value| {
        let remedy = format!("write a number from {least} to {most}");
        let number = value::number(value, remedy.clone())?;
        if (least..=most).contains(&number) {
            Ok(number)
        } else {
            Err(Wrong::new(format!("{number} is out of range"), remedy))
        }
    }
}

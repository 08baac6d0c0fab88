//! The store, for whoever asks how this node stands to it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::Moment;
use crate::metrics::{Leasing, Published};
use crate::quota::redis::Health;

/// Where tokens come from, whether leases are valid, and how the calls for them go.
pub(super) fn of_leasing(published: &Published, leasing: &Leasing, now: Moment) -> Value {
    let leases = published.policy.leases();
    let on_loss = leases.terms().map(|terms| terms.on_loss).unwrap_or_default();
    let (answered, failed) = leasing.sync.with(|sync| {
        let tally = sync.tally();
        (tally.answered, tally.failed)
    });
    json!({
        "name": leasing.store,
        "mode": if leases.is_valid(now) { "leased" } else { on_loss.name() },
        "nodes": leases.nodes(),
        "lease_age_seconds": leasing.age(&published.policy, now).as_secs_f64(),
        "calls_answered": answered,
        "calls_failed": failed,
        "redis": leasing.redis.as_ref().map(|health| of_redis(health, now)),
    })
}

fn of_redis(health: &Health, now: Moment) -> Value {
    let (per_second, slowest) = health.recent(now);
    let shards = health.shards().into_iter().map(|shard| {
        json!({
            "address": shard.address,
            "up": shard.up,
            "subscribed": shard.subscribed,
            "last_fault": shard.last_fault,
        })
    });
    let met = health.faults().filter(|(_, count)| *count > 0);
    let faults = met.map(|(fault, count)| (fault.name().to_owned(), Value::from(count)));
    json!({
        "calls_per_second": (per_second * 10.0).round() / 10.0,
        "slowest_call_seconds": rounded(slowest),
        "calls_in_flight": health.in_flight(),
        "subscription_losses": health.subscription_losses.get(),
        "errors": Value::Object(faults.collect()),
        "shards": shards.collect::<Vec<_>>(),
    })
}

fn rounded(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e6
}

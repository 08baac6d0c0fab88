//! The lease of one key, for whoever asks why it was or was not admitted.

use serde_json::{Value, json};

use crate::clock::Moment;
use crate::limits::LimitIx;
use crate::metrics::Published;
use crate::quota::sync::{Known, Standing};
use crate::traffic::Traffic;

/// How the key that a message has stands to its shard of the store; null when nothing is leased. A key that this
/// node has not met shows how one does that has not been reported.
pub(super) fn of_key(
    published: &Published,
    limit: LimitIx,
    traffic: &Traffic,
    now: Moment,
) -> Value {
    let Some(leasing) = &published.leasing else { return Value::Null };
    let leases = published.policy.leases();
    let shard =
        published.policy.store_key(limit, traffic).map_or(0, |key| key.shard(leases.shards()));
    let place = published.policy.leased_place(limit, traffic);
    let known = place.and_then(|place| leasing.sync.with(|sync| sync.look(place, now)));
    let on_loss = leases.terms().map(|terms| terms.on_loss).unwrap_or_default();
    let mode = if leases.is_shard_valid(shard, now) { "leased" } else { on_loss.name() };
    let known = known.as_ref();
    let tokens = |of: fn(&Known) -> i64| known.map(|known| of(known) as f64 / 1e6);
    json!({
        "mode": mode,
        "nodes": leases.nodes(),
        "store_heard_seconds": leasing.age_since(leases.shard_valid_until(shard), now).as_secs_f64(),
        "standing": known.map_or(Standing::New, |known| known.standing).name(),
        "level_tokens": tokens(|known| known.level),
        "unreported_tokens": tokens(|known| known.unreported),
        "hold_tokens": known.and_then(|known| known.hold).map(|hold| hold as f64 / 1e6),
        "share": known.map(|known| (f64::from(known.share) * 1e4).round() / 1e4),
        "age_seconds": known.map(|known| known.age.as_secs_f64()),
        "over_at_most_tokens": tokens(|known| known.over_at_most),
        "over_usually_tokens": tokens(|known| known.over_usually),
    })
}

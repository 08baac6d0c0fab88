//! The lease of one key, for whoever asks why it was or was not admitted.

use serde_json::{Value, json};

use crate::clock::Moment;
use crate::limits::LimitIx;
use crate::metrics::Published;
use crate::quota::sync::Known;
use crate::traffic::Traffic;

/// How the key that a message has stands to the store; null when nothing is leased. A key that this
/// node has not met shows how one does that has not been reported.
pub(super) fn of_key(
    published: &Published,
    limit: LimitIx,
    traffic: &Traffic,
    now: Moment,
) -> Value {
    let Some(leasing) = &published.leasing else { return Value::Null };
    let leases = published.policy.leases();
    let place = published.policy.leased_place(limit, traffic);
    let known = place.and_then(|place| leasing.sync.with(|sync| sync.look(place, now)));
    let mut lease = known.as_ref().map_or_else(|| json!({ "standing": "new" }), of_known);
    let valid = leases.is_valid(now);
    let on_loss = leases.terms().map(|terms| terms.on_loss).unwrap_or_default();
    lease["mode"] = json!(if valid { "leased" } else { on_loss.name() });
    lease["nodes"] = json!(leases.nodes());
    lease["store_heard_seconds"] = json!(leasing.age(&published.policy, now).as_secs_f64());
    lease
}

fn of_known(known: &Known) -> Value {
    let tokens = |micro: i64| micro as f64 / 1e6;
    json!({
        "standing": known.standing.name(),
        "level_tokens": tokens(known.level),
        "unreported_tokens": tokens(known.unreported),
        "hold_tokens": known.hold.map(tokens),
        "share": (f64::from(known.share) * 1e4).round() / 1e4,
        "age_seconds": known.age.as_secs_f64(),
        "over_at_most_tokens": tokens(known.over_at_most),
        "over_usually_tokens": tokens(known.over_usually),
    })
}

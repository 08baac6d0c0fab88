//! How often a node syncs.

use std::time::Duration;

/// Times and sizes of the sync; `docs/leasing.md` has what each was measured to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Between two reports of a key that is not urgent, give or take a tenth.
    pub tick: Duration,
    /// How long after the store was last heard a lease is good.
    pub lease_ttl: Duration,
    /// How long the first urgent key waits for others.
    pub coalesce: Duration,
    /// Least time between two reports of urgent keys.
    pub min_gap: Duration,
    /// When a call is given up.
    pub reply_timeout: Duration,
    /// Of the store, 1 to [`SHARDS_MAX`](crate::limits::SHARDS_MAX), the same on every node and for
    /// life: each has the keys that are its own, and is called by itself.
    pub shards: u16,
    /// Most keys in one call.
    pub batch_max: usize,
    /// How much more than its share a node may take of a key that was not low when the store was
    /// lost, so that a client may move: a factor, at least 1.
    pub local_slack: f64,
    /// Whether the others are told at once of keys that are low.
    pub push: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tick: Duration::from_millis(100),
            lease_ttl: Duration::from_millis(250),
            coalesce: Duration::from_millis(1),
            min_gap: Duration::from_millis(2),
            reply_timeout: Duration::from_millis(50),
            shards: 1,
            batch_max: 50,
            local_slack: 1.25,
            push: true,
        }
    }
}

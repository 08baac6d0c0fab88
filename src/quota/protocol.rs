//! The store: what it holds of each key, and what it answers to one call of one node.
//!
//! The types and constants here are what every store and every node agree on. [`Store`] is the one
//! definition of what a call does, as a state machine: calls and wall time go in, replies and news
//! for the other nodes come out. It reads no clock, draws no random number and sends nothing.

mod bucket;
mod logical_clock;
mod low;
mod store;

use crate::limits::StoreKey;

pub use bucket::Row;
pub use store::{Answer, Store};

/// One run of one node's process: random, so that a restarted node is never taken for its former self.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

/// Most keys that one reply's digest tells of.
pub const DIGEST_MAX: usize = 256;

/// How long a digest tells of a key that was noted low, in microseconds. A node that has heard
/// nothing for longer has no lease, and asks for itself.
pub const DIGEST_AGE_US: u64 = 300_000;

/// Below this part of its capacity a bucket is low, and the other nodes are told. A part of the
/// protocol, for a node holds back less than its share from there on: no store has its own.
pub const LOW_WATER_SHARE: f64 = 0.25;

/// In micro-tokens, the least that counts as low water: in the smallest bucket, the last token.
pub const LOW_WATER_MIN: i64 = 1_500_000;

/// How long a spend counts in a node's share, in seconds: its weight falls to 1/e in this time.
pub const SHARE_TAU_S: f64 = 8.0;

/// A node that was heard less than this many microseconds ago is live.
pub const LIVE_US: u64 = 1_500_000;

/// One call: what a node has spent, and how long it has not heard from the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Who calls.
    pub node: NodeId,
    /// The node's own monotonic time since the call that it last had an answer to, in microseconds;
    /// `None` when it has had none. With `since` it tells a store whose clock was set what time it is.
    pub elapsed_us: Option<u64>,
    /// Where the last digest ended.
    pub since: Since,
    /// Whether the others are told at once of keys that are low.
    pub push: bool,
    /// The node goes: it is not counted among the live ones from here on.
    pub leave: bool,
    /// At most one for each key.
    pub reports: Vec<Report>,
}

/// What a node says of one key. Amounts are micro-tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Which key.
    pub key: StoreKey,
    /// Refill, in micro-tokens per second.
    pub rate: f64,
    /// The level of a full bucket.
    pub cap: i64,
    /// The incarnation of the node's cell: above every earlier one of this node, below 2^53.
    ///
    /// A message of an earlier incarnation that comes late is known by it, and changes nothing.
    pub boot: u64,
    /// Spent in this incarnation.
    pub spent: i64,
    /// The part of `spent` that the store has acknowledged, as far as the node knows.
    pub charged: i64,
    /// The level of the node's own cell, at most `cap`.
    pub level: i64,
    /// The node has answered itself since it last heard of this key.
    pub local: bool,
}

/// What the store answers to one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Live nodes, the caller included.
    pub nodes: u32,
    /// One for each report, in its order; `None` for a key that the store cannot keep, since something
    /// that is no bucket stands under its name.
    pub leases: Vec<Option<Lease>>,
    /// Keys that were noted low since the call's `since`, the longest ago first.
    pub digest: Vec<Low>,
    /// What the node's next call has to say.
    pub since: Since,
}

/// What a reply says of one key. Amounts are micro-tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lease {
    /// The level of the bucket after the report; below zero is debt.
    pub level: i64,
    /// The most that this incarnation is known to have spent.
    pub charged: i64,
    /// The node's part of what all spend lately, 0 to 1.
    pub share: f64,
}

/// A key that is low.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Low {
    /// Which key.
    pub key: StoreKey,
    /// Its level in micro-tokens.
    pub level: i64,
}

/// How far a node has read the list of low keys. [`Since::default`] is a node that has read nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// The store's logical time in microseconds.
    pub time_us: u64,
    /// Of those noted at that very time, the last one that was told.
    pub after: Option<StoreKey>,
}

//! What the store's keys and channels are called in Redis.
//!
//! All names of a shard have its hash tag, so that a Cluster has them in one slot, and a call is one
//! command to one server.

use crate::limits::StoreKey;
use crate::quota::protocol::Call;

/// The names of one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// All begin with it.
    prefix: String,
}

impl Names {
    pub(super) fn new(namespace: &str, shard: u16) -> Self {
        Self { prefix: format!("{namespace}:v1:{{{shard}}}:") }
    }

    /// The names of all shards, for an ACL.
    pub(super) fn pattern(namespace: &str) -> String {
        format!("{namespace}:v1:*")
    }

    /// The shard's time and its nodes.
    pub fn shard(&self) -> String {
        self.name("shard")
    }

    /// When which key was noted low.
    pub fn low(&self) -> String {
        self.name("low")
    }

    /// The level of which key at that time.
    pub fn lows(&self) -> String {
        self.name("lows")
    }

    /// A bucket and its rows.
    pub fn bucket(&self, key: StoreKey) -> String {
        format!("{}k:{key}", self.prefix)
    }

    /// Where the shard's calls publish.
    pub fn channel(&self) -> String {
        self.name("news")
    }

    /// The keys of a call: those of the shard, then one for each report.
    pub fn keys_of(&self, call: &Call) -> Vec<String> {
        let buckets = call.reports.iter().map(|report| self.bucket(report.key));
        [self.shard(), self.low(), self.lows()].into_iter().chain(buckets).collect()
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

//! What the quota store calls a bucket: the same on every node, and no node's own business.

use std::fmt;

/// The bucket of one key of one limit, for all nodes.
///
/// Its parts are hashes of names under a public key, so a node that is told of a key that it has
/// never met can make its cell. They hold nothing of a card beyond a BIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreKey {
    /// Of the limit's name.
    pub limit: u64,
    /// Of the limit's name and the key's values.
    pub id: [u64; 2],
}

impl fmt::Display for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, id: [first, second] } = self;
        write!(f, "{limit:016x}:{first:016x}{second:016x}")
    }
}

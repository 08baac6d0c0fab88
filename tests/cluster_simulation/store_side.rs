//! The place where the store is: there, away or late, with a wall clock that somebody may set.

use tollgate::clock::Moment;

use crate::cluster::fault::Outage;
use crate::cluster::node::Store;

/// The wall time at which a run begins, in microseconds.
const BEGIN_US: u64 = 1_700_000_000_000_000;

/// The store and what is wrong with it.
#[derive(Debug)]
pub(crate) struct StoreSide<S: Store> {
    pub(crate) store: S,
    pub(crate) outage: Option<Outage>,
    /// Of one of its shards.
    pub(crate) shard_outage: Option<(u16, Outage)>,
    /// It answers when it can again.
    pub(crate) is_stalled: bool,
    /// By how much its wall clock was set, in microseconds.
    pub(crate) clock_set_us: i64,
    /// What its replica has heard of.
    pub(crate) replica: Option<S>,
}

impl<S: Store> StoreSide<S> {
    pub(crate) const fn new(store: S) -> Self {
        Self {
            store,
            outage: None,
            shard_outage: None,
            is_stalled: false,
            clock_set_us: 0,
            replica: None,
        }
    }

    /// How a call is met.
    pub(crate) fn outage(&self, call: &S::Call) -> Option<Outage> {
        let of_shard = self.shard_outage.filter(|(shard, _)| *shard == S::shard(call));
        self.outage.or(of_shard.map(|(_, how)| how))
    }

    pub(crate) fn call(&mut self, call: &S::Call, now: Moment) -> (S::Reply, Option<S::Push>) {
        let wall_us = (BEGIN_US + now.nanos() / 1_000).saturating_add_signed(self.clock_set_us);
        self.store.call(call, wall_us)
    }

    /// The replica takes over with what it knows.
    pub(crate) fn fail_over(&mut self) {
        if let Some(replica) = self.replica.take() {
            self.store = replica;
        }
    }
}

//! What is published of leases.

use std::sync::Arc;
use std::time::Duration;

use super::Page;
use super::table::*;
use crate::clock::Moment;
use crate::limits::{LimitIx, Policy};
use crate::quota::redis::Health;
use crate::quota::sync::Tally;
use crate::quota::task::Handle;

/// Where leases come from.
#[derive(Clone, Debug)]
pub struct Leasing {
    /// The sync.
    pub sync: Handle,
    /// How long a lease is good.
    pub lease_ttl: Duration,
    /// What keeps the tokens.
    pub store: String,
    /// What is counted of a store that is another process.
    pub redis: Option<Arc<Health>>,
}

impl Leasing {
    /// Since the newest answered call had left of the shard that was not heard for longest; since the
    /// start, when one was never heard.
    pub fn age(&self, policy: &Policy, now: Moment) -> Duration {
        self.age_since(policy.leases().valid_until(), now)
    }

    /// Since the call had left by whose answer leases are valid until then.
    pub fn age_since(&self, valid_until: Moment, now: Moment) -> Duration {
        let left = valid_until.nanos().saturating_sub(nanos(self.lease_ttl));
        now.since(Moment::from_nanos(left))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Page<'_> {
    pub(super) fn leases(&self, leasing: &Leasing, policy: &Policy, now: Moment) {
        let leases = policy.leases();
        let tally = leasing.sync.with(|sync| sync.tally().clone());
        self.set(&LEASE_VALID, &[], u64::from(leases.is_valid(now)));
        self.set(&LEASE_SHARDS_LOST, &[], leases.shards_lost(now).into());
        self.set_gauge(&LEASE_AGE, &[], leasing.age(policy, now).as_secs_f64());
        self.set(&LEASE_NODES, &[], leases.nodes().into());
        self.set(&LEASE_KEYS, &[], tally.keys as u64);
        self.set(&LEASE_LATE_KEYS, &[], tally.late_keys as u64);
        self.set(&LEASE_LOCAL_KEYS, &[], tally.local_keys as u64);
        self.set(&LEASE_HELD, &[], leases.held());
        self.set(&LEASE_UNDO, &[], leases.undone());
        self.set(&LEASE_FAIL_OPEN, &["on_loss"], leases.failed_open());
        self.set(&LEASE_FAIL_OPEN, &["restart"], leasing.sync.restarts());
        self.set(&LEASE_SYNCS, &["answered"], tally.answered);
        self.set(&LEASE_SYNCS, &["failed"], tally.failed);
        self.set(&LEASE_REPORTS, &["store"], tally.reported);
        self.set(&LEASE_REPORTS, &["itself"], tally.answered_locally);
        self.set(&LEASE_UNKEPT, &[], tally.unkept);
        self.set(&LEASE_HEARD, &["true"], tally.heard.saturating_sub(tally.unplaced));
        self.set(&LEASE_HEARD, &["false"], tally.unplaced);
        for (limit, rule) in (0..).map(LimitIx).zip(policy.limits()) {
            let (unreported, lowest) = of_limit(&tally, policy, limit);
            let lowest = lowest.unwrap_or(rule.burst.micro());
            self.set_gauge(&LEASE_UNREPORTED, &[&rule.name], tokens(unreported));
            self.set_gauge(&LEASE_LEVEL, &[&rule.name], tokens(lowest));
        }
    }
}

impl Page<'_> {
    /// What is counted of the store; one that is in this process is always there.
    pub(super) fn store(&self, redis: Option<&Health>) {
        let Some(health) = redis else {
            self.set(&STORE_UP, &[], 1);
            return;
        };
        let shards = health.shards();
        self.set(&STORE_UP, &[], shards.iter().all(|shard| shard.up).into());
        for (fault, count) in health.faults() {
            self.set(&STORE_ERRORS, &[fault.name()], count);
        }
        self.set(&STORE_CONNECTS, &[], health.connects.get());
        self.set(&STORE_IN_FLIGHT, &[], health.in_flight());
        let subscribed = shards.iter().filter(|shard| shard.subscribed);
        self.set(&STORE_SUBSCRIBED, &[], subscribed.count() as u64);
        self.set(&STORE_SUBSCRIPTION_LOSSES, &[], health.subscription_losses.get());
        self.set(&STORE_PUSHES_LOST, &[], health.news_lost.get());
    }
}

/// What was unreported of a limit, and its lowest level, over all its buckets.
fn of_limit(tally: &Tally, policy: &Policy, limit: LimitIx) -> (i64, Option<i64>) {
    let buckets = (0u8..).zip(&tally.limits);
    let own = buckets.filter(|(place, _)| policy.limit_at(*place) == Some(limit));
    own.fold((0, None), |(unreported, lowest), (_, more)| {
        let lower = [lowest, more.lowest].into_iter().flatten().min();
        (unreported.saturating_add(more.unreported), lower)
    })
}

fn tokens(micro: i64) -> f64 {
    micro as f64 / 1e6
}

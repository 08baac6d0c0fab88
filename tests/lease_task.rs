//! The thread of the lease sync, with a store of which one shard never answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use std::future::{Future, pending, ready};
use std::sync::{Arc, Mutex};

use support::wait_for;
use tollgate::clock::Clock;
use tollgate::limits::{Burst, LimitIx, Per, Policy, Rate, Rule, Terms};
use tollgate::quota::embedded::Embedded;
use tollgate::quota::protocol::{Call, Low, NodeId, Reply};
use tollgate::quota::sync::{Settings, Sync};
use tollgate::quota::task::{Handle, Store};
use tollgate::traffic::{Class, LinkId, MerchantId, Operation, Traffic};

const SHARDS: u16 = 8;
/// The first one, so that it stands in the way of all others if it stands in anybody's way.
const LOST: u16 = 0;

/// Of each call: its shard, how many keys it reported, and whether it was the last.
type Told = Arc<Mutex<Vec<(u16, usize, bool)>>>;

/// A store that tells what it was told.
struct Shards {
    stores: Vec<Embedded>,
    told: Told,
}

impl Store for Shards {
    fn call(&self, shard: u16, call: Call) -> impl Future<Output = Option<Reply>> + 'static {
        self.told.lock().unwrap().push((shard, call.reports.len(), call.leave));
        let store = &self.stores[usize::from(shard)];
        ready((shard != LOST).then(|| store.call(&call, 1_000_000)))
    }

    fn hear(&mut self, _lows: &mut Vec<Low>) -> impl Future<Output = ()> {
        pending()
    }
}

fn shop(number: usize) -> Traffic {
    Traffic {
        merchant: MerchantId::new(b"123456", format!("SHOP{number}").as_bytes()),
        ..Traffic::new(LinkId(0), Class::Standard, Operation::Purchase)
    }
}

#[test]
fn a_shard_that_is_lost_keeps_no_other_from_the_last_reports() {
    let (rate, burst) = (Rate::per_second(25.0).unwrap(), Burst::tokens(50.0).unwrap());
    let (rule, clock) = (Rule::new("merchant", Per::MERCHANT, rate, burst), Clock::start());
    let policy = Policy::leased(&[rule], &[], Terms::default(), 1, 1, clock.now()).unwrap();
    let policy = Arc::new(policy);
    let settings = Settings { shards: SHARDS, ..Settings::default() };
    let sync = Sync::new(settings, NodeId(1), 1, Arc::clone(&policy), clock.now());
    let (handle, told) = (Handle::new(sync), Told::default());
    let stores = (0..SHARDS).map(|_| Embedded::new()).collect();
    let store = Shards { stores, told: Arc::clone(&told) };
    let thread = handle.run(store, clock, Arc::clone(&policy), None).unwrap();
    wait_for("all other shards", || (policy.leases().shards_lost(clock.now()) == 1).then_some(()));
    assert!(!handle.with(Sync::has_answer));
    let of = |shard| {
        let key = |number: &usize| policy.store_key(LimitIx(0), &shop(*number)).unwrap();
        (0..).find(|number| key(number).shard(SHARDS) == shard).unwrap()
    };
    // Stopped before it is told of these by a tick or after, each shard hears of its own.
    let turn = policy.turn(0);
    for shard in [LOST, 5] {
        assert!(policy.decide(&shop(of(shard)), clock.now()).refused_by.is_none());
    }
    drop(turn);
    handle.stop();
    wait_for("the end of the sync", || thread.is_finished().then_some(()));
    let told = told.lock().unwrap();
    let last: Vec<_> = told.iter().filter(|(_, _, leaves)| *leaves).map(|told| told.0).collect();
    assert_eq!(last, [0, 1, 2, 3, 4, 5, 6, 7]);
    let reported = |of| told.iter().filter(|told| told.0 == of).map(|told| told.1).sum::<usize>();
    assert!(reported(5) >= 1 && reported(LOST) >= 1 && reported(6) == 0, "{told:?}");
}

//! How the store does, as this node sees it: one state for each shard, said once per change.
//!
//! A call that fails alone is counted and not said: the sync reports anew with its next tick, and
//! leases outlive two lost calls. Three in a row are a store that is lost.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::{info, warn};

use super::fault::Fault;
use crate::clock::Moment;
use crate::count::{Histogram, Word};
use crate::limits::StoreKey;

/// So many calls that fail in a row are no accident.
const IN_A_ROW: u32 = 3;
/// The calls that are told of as the last ones cover one to two of these.
const SPAN: Duration = Duration::from_secs(30);
/// A foreign key is said to be one so often at most, and no more of them are remembered.
const FOREIGN_AGAIN: Duration = Duration::from_secs(60);
const FOREIGN_MAX: usize = 64;

/// From the sending of a call to its answer.
pub const CALL_BOUNDS: [Duration; 14] = {
    const MICROS: [u64; 14] = [
        50, 100, 200, 300, 500, 1_000, 2_000, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
        500_000,
    ];
    let mut bounds = [Duration::ZERO; 14];
    let mut at = 0;
    while at < MICROS.len() {
        #[expect(clippy::indexing_slicing, reason = "both arrays have 14 entries")]
        {
            bounds[at] = Duration::from_micros(MICROS[at]);
        }
        at += 1;
    }
    bounds
};

/// What is counted of a store, by the one thread of the lease sync.
#[derive(Debug)]
pub struct Health {
    shards: Box<[Mutex<Condition>]>,
    recent: Mutex<Recent>,
    foreign: Mutex<HashMap<StoreKey, Moment>>,
    /// From the sending of a call to its answer.
    pub seconds: Histogram<14>,
    /// Calls and connections that failed, by what failed.
    faults: [Word; Fault::ALL.len()],
    /// Connections that were made.
    pub connects: Word,
    /// Subscriptions that were lost, and made again or not.
    pub subscription_losses: Word,
    /// Keys that others made low and that were dropped, as too many waited.
    pub news_lost: Word,
    /// Calls under way, by shard.
    in_flight: Box<[AtomicU64]>,
}

/// A call that is under way for as long as this is there, also if it is given up.
#[derive(Debug)]
pub(super) struct UnderWay<'a>(&'a AtomicU64);

/// How one shard does.
#[derive(Debug, Default)]
struct Condition {
    up: bool,
    subscribed: bool,
    address: Option<String>,
    /// Failures since the last answer.
    failures: u32,
    last: Option<Fault>,
    /// What was said of it; `None` while all is well.
    said: Option<Said>,
}

/// An outage, as far as it was said. Each fault is said once: while a master is gone, those who name it
/// and it itself fail in turn.
#[derive(Clone, Copy, Debug)]
struct Said {
    since: Moment,
    last: Fault,
    /// A bit for each fault.
    faults: u32,
}

/// The last calls, in two spans: one that is whole and one that grows.
#[derive(Debug, Default)]
struct Recent {
    began: Moment,
    whole: Span,
    growing: Span,
}

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    calls: u64,
    slowest: Duration,
}

/// How a shard does, for whoever asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shard {
    /// The server it is at, as far as is known.
    pub address: Option<String>,
    /// Whether the last call was answered in time.
    pub up: bool,
    /// Whether what others make low is heard at once.
    pub subscribed: bool,
    /// What went wrong last.
    pub last_fault: Option<&'static str>,
}

impl Health {
    pub(super) fn new(shards: u16) -> Self {
        Self {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            recent: Mutex::default(),
            foreign: Mutex::default(),
            seconds: Histogram::new(&CALL_BOUNDS),
            faults: std::array::from_fn(|_| Word::default()),
            connects: Word::default(),
            subscription_losses: Word::default(),
            news_lost: Word::default(),
            in_flight: (0..shards).map(|_| AtomicU64::default()).collect(),
        }
    }

    /// How each shard does.
    pub fn shards(&self) -> Vec<Shard> {
        let look = |shard: &Mutex<Condition>| {
            let condition = lock(shard);
            Shard {
                address: condition.address.clone(),
                up: condition.up,
                subscribed: condition.subscribed,
                last_fault: condition.last.map(Fault::name),
            }
        };
        self.shards.iter().map(look).collect()
    }

    /// How often each fault was met.
    pub fn faults(&self) -> impl Iterator<Item = (Fault, u64)> {
        Fault::ALL.into_iter().zip(&self.faults).map(|(fault, count)| (fault, count.get()))
    }

    /// Answered calls per second and the slowest of them, over the last half to whole minute.
    pub fn recent(&self, now: Moment) -> (f64, Duration) {
        let recent = lock(&self.recent);
        let (whole, growing) = recent.at(now);
        let seconds = (SPAN + now.since(recent.began).min(SPAN)).min(now.since(Moment::START));
        let calls = (whole.calls + growing.calls) as f64;
        (calls / seconds.as_secs_f64().max(1.0), whole.slowest.max(growing.slowest))
    }

    /// Calls under way.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.iter().map(|shard| shard.load(Relaxed)).sum()
    }

    /// Counts a call to a shard, unless there are `most` already.
    pub(super) fn under_way(&self, shard: u16, most: u64) -> Option<UnderWay<'_>> {
        let count = self.in_flight.get(usize::from(shard))?;
        if count.load(Relaxed) >= most {
            return None;
        }
        count.fetch_add(1, Relaxed);
        Some(UnderWay(count))
    }

    /// A call was answered in time.
    pub(super) fn answered(&self, shard: u16, took: Duration, now: Moment) {
        self.took(took, now);
        let Some(mut condition) = self.shard(shard) else { return };
        condition.up = true;
        condition.failures = 0;
        if let Some(said) = condition.said.take() {
            let (lost_for, was) = (now.since(said.since), said.last.name());
            info!(shard, ?lost_for, was, "the store answers again");
        }
    }

    /// An answer came, in time or not.
    pub(super) fn took(&self, took: Duration, now: Moment) {
        self.seconds.record(took);
        lock(&self.recent).note(took, now);
    }

    /// A call failed, or a connection could not be made. `detail` is the server's own words.
    pub(super) fn failed(&self, shard: u16, fault: Fault, detail: &str, now: Moment) {
        self.count(fault);
        let Some(mut condition) = self.shard(shard) else { return };
        condition.failures = condition.failures.saturating_add(1);
        // That there is no connection says less than why there is none.
        if fault != Fault::NotConnected || condition.last.is_none() {
            condition.last = Some(fault);
        }
        if condition.failures < IN_A_ROW || fault == Fault::NotConnected {
            return;
        }
        condition.up = false;
        let bit = 1 << fault as u32;
        let said = condition.said.get_or_insert(Said { since: now, last: fault, faults: 0 });
        if said.faults & bit == 0 {
            *said = Said { last: fault, faults: said.faults | bit, ..*said };
            let advice = fault.advice();
            warn!(shard, fault = fault.name(), detail, "the store fails: {advice}");
        }
    }

    /// Something went wrong that is no failure of the store, if it does not go on.
    pub(super) fn count(&self, fault: Fault) {
        if let Some(count) = self.faults.get(fault as usize) {
            count.count();
        }
    }

    /// A connection to a server was made.
    pub(super) fn connected(&self, shard: u16, address: String) {
        self.connects.count();
        if let Some(mut condition) = self.shard(shard) {
            condition.address = Some(address);
        }
    }

    /// The connection is gone.
    pub(super) fn disconnected(&self, shard: u16) {
        if let Some(mut condition) = self.shard(shard) {
            condition.up = false;
        }
    }

    /// Others are heard at once, or not any more. Digests tell the same, a tick later.
    pub(super) fn subscribed(&self, shard: u16, subscribed: bool) {
        let Some(mut condition) = self.shard(shard) else { return };
        if condition.subscribed && !subscribed {
            self.subscription_losses.count();
        }
        condition.subscribed = subscribed;
    }

    /// The store cannot keep this key; `name` is what it is called there.
    pub(super) fn foreign(&self, key: StoreKey, name: &str, now: Moment) {
        let mut foreign = lock(&self.foreign);
        foreign.retain(|_, said| now.since(*said) < FOREIGN_AGAIN);
        if foreign.contains_key(&key) || foreign.len() >= FOREIGN_MAX {
            return;
        }
        foreign.insert(key, now);
        warn!(
            key = name,
            "something that is no bucket stands under this name in the store; this node limits by itself here, see who wrote it and remove it"
        );
    }

    fn shard(&self, shard: u16) -> Option<MutexGuard<'_, Condition>> {
        self.shards.get(usize::from(shard)).map(lock)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Recent {
    fn note(&mut self, took: Duration, now: Moment) {
        let (whole, growing) = self.at(now);
        if now.since(self.began) >= SPAN {
            self.began = now;
        }
        self.whole = whole;
        self.growing =
            Span { calls: growing.calls.saturating_add(1), slowest: growing.slowest.max(took) };
    }

    /// What the two spans are at `now`, if nothing more comes.
    fn at(&self, now: Moment) -> (Span, Span) {
        let age = now.since(self.began);
        if age < SPAN {
            (self.whole, self.growing)
        } else if age < SPAN * 2 {
            (self.growing, Span::default())
        } else {
            (Span::default(), Span::default())
        }
    }
}

/// Nothing is left half changed by what unwinds under a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u32) -> Moment {
        Moment::START.after(MS * ms)
    }

    #[test]
    fn a_call_that_fails_alone_is_counted_and_does_no_harm() {
        let health = Health::new(1);
        health.answered(0, MS, at(0));
        health.failed(0, Fault::Io, "broken pipe", at(100));
        health.failed(0, Fault::Io, "broken pipe", at(200));
        assert!(health.shards()[0].up);
        health.answered(0, MS, at(300));
        health.failed(0, Fault::Io, "broken pipe", at(400));
        assert!(health.shards()[0].up);
        assert_eq!(health.faults().find(|(fault, _)| *fault == Fault::Io), Some((Fault::Io, 3)));
    }

    #[test]
    fn three_in_a_row_are_a_lost_store_until_one_is_answered() {
        let health = Health::new(2);
        health.answered(1, MS, at(0));
        for ms in [100, 200, 300] {
            health.failed(1, Fault::OutOfMemory, "OOM", at(ms));
        }
        let shard = &health.shards()[1];
        assert_eq!((shard.up, shard.last_fault), (false, Some("oom")));
        health.answered(1, MS, at(400));
        assert!(health.shards()[1].up && !health.shards()[0].up);
    }

    #[test]
    fn a_call_that_is_given_up_is_under_way_no_more() {
        let health = Health::new(2);
        let calls: Vec<_> = (0..3).filter_map(|_| health.under_way(1, 2)).collect();
        assert_eq!((calls.len(), health.in_flight()), (2, 2));
        assert!(health.under_way(0, 2).is_some(), "another shard has room of its own");
        drop(calls);
        assert_eq!(health.in_flight(), 0);
    }

    #[test]
    fn the_slowest_call_is_forgotten_after_a_minute() {
        let health = Health::new(1);
        health.took(MS * 300, at(1_000));
        health.took(MS, at(40_000));
        assert_eq!(health.recent(at(41_000)).1, MS * 300);
        health.took(MS, at(71_000));
        let (rate, slowest) = health.recent(at(72_000));
        assert_eq!(slowest, MS);
        assert!((0.06..0.07).contains(&rate), "{rate}");
        assert_eq!(health.recent(at(140_000)), (0.0, Duration::ZERO));
    }

    #[test]
    fn a_subscription_is_lost_once_each_time() {
        let health = Health::new(1);
        for subscribed in [false, true, false, false, true, false] {
            health.subscribed(0, subscribed);
        }
        assert_eq!(health.subscription_losses.get(), 2);
    }
}

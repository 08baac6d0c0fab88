//! Leases, as far as gates have to do with them: how far one reaches, whether it is valid, and what
//! is done without one.
//!
//! What the sync does to get them is `quota`'s. A policy of one node has none, and its buckets fill by
//! themselves.

use std::sync::OnceLock;
use std::time::Duration;

use super::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use super::atomic::{AtomicBool, AtomicU32, AtomicU64};
use super::cell::Reach;
pub use super::choice::{Hold, OnLoss};
use super::grant::{Grant, ONE};
use crate::clock::Moment;

/// Millionths: fractions of a burst, in integers.
const MILLION: i128 = 1_000_000;

/// Below so many micro-tokens every bucket is low: one token and a half.
pub const LOW_TOKENS: i64 = ONE + ONE / 2;

/// How far leases reach, for all keys of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// A bucket is low below this part of its burst, in millionths, and below a token and a half.
    pub low_water: u32,
    /// A node may spend so many micro-tokens unreported, however many nodes there are, unless the
    /// bucket is smaller or low.
    pub min_hold: i64,
    /// The part of its level, in millionths, that all nodes together spend before they report.
    pub sync_budget: u32,
    /// What is done while the store is lost.
    pub on_loss: OnLoss,
}

impl Default for Terms {
    /// Measured: see the parameters in `docs/leasing.md`.
    fn default() -> Self {
        Self {
            low_water: 250_000,
            min_hold: 8 * ONE,
            sync_budget: 250_000,
            on_loss: OnLoss::default(),
        }
    }
}

impl Terms {
    /// Whether a bucket of this level is so low that the other nodes are told.
    pub fn is_low(&self, level: i64, cap: i64) -> bool {
        level < self.low_water_of(cap)
    }

    /// How far a lease of `level` micro-tokens reaches among so many nodes.
    pub fn reach(&self, level: i64, cap: i64, nodes: u32, hold: Hold) -> Reach {
        let nodes = i64::from(nodes.max(1));
        let budget = (part(level, self.sync_budget) / nodes).max(ONE);
        let hold = match hold {
            Hold::Burst => cap,
            Hold::Share => self.shared_hold(level, cap, nodes),
        };
        Reach { hold: Some(hold), budget: Some(budget) }
    }

    /// Micro-tokens that a cluster of so many nodes admits beyond burst and rate at the most, from a
    /// full bucket: no node spends more than its hold before one answer tells it the truth. Argued in
    /// docs/leasing.md, and met by the worst case that was constructed for it.
    pub fn over_at_most(&self, cap: i64, nodes: u32, hold: Hold) -> i64 {
        let held = self.reach(cap, cap, nodes, hold).hold.unwrap_or(cap);
        held.saturating_mul(i64::from(nodes.max(1))).saturating_sub(cap).max(0)
    }

    /// Micro-tokens that a cluster usually admits beyond burst and rate when it is asked for `asked`
    /// tokens per second of one key, with a round trip to the store of so long. Fitted to the
    /// simulation, in docs/leasing.md.
    pub fn over_usually(asked: f64, round_trip: Duration) -> f64 {
        let late = (round_trip + Duration::from_millis(3)).as_secs_f64();
        (2.5 + 2.0 * asked * late) * ONE as f64
    }

    /// The node's part of the bucket while at least half of it is there, its part of the level when
    /// that is low, and evenly more from one to the other: a bucket that has just left its low water
    /// does not let every node go at once.
    fn shared_hold(&self, level: i64, cap: i64, nodes: i64) -> i64 {
        let most = (cap / nodes).max(self.min_hold.min(cap));
        let least = most.min((level / nodes).max(ONE));
        let (low, half) = (self.low_water_of(cap), cap / 2);
        if level < low {
            least
        } else if level < half {
            let risen = i128::from(most - least) * i128::from(level - low) / i128::from(half - low);
            least + i64::try_from(risen).unwrap_or(0)
        } else {
            most
        }
    }

    fn low_water_of(&self, cap: i64) -> i64 {
        part(cap, self.low_water).max(LOW_TOKENS)
    }
}

/// So many millionths of an amount.
fn part(amount: i64, millionths: u32) -> i64 {
    let part = i128::from(amount) * i128::from(millionths) / MILLION;
    i64::try_from(part).unwrap_or(i64::MAX)
}

/// What gates and sync tell each other of all leases.
#[derive(Debug)]
pub struct Leases {
    terms: Option<Terms>,
    /// The least of all shards: one look tells that everything is leased.
    all: Valid,
    /// Of each shard, where the store has several.
    shards: OnceLock<Box<[Valid]>>,
    /// Whether a decision may be more than one token of each limit, for whatever reason: one bit to ask
    /// for all of them at once.
    may_be_special: AtomicBool,
    nodes: AtomicU32,
    told: Told,
}

/// Read at every decision and written at every answer of the store, so on a line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Valid {
    until_nanos: AtomicU64,
}

impl Valid {
    /// Not yet.
    fn never() -> Self {
        Self { until_nanos: AtomicU64::new(0) }
    }

    #[inline]
    fn until(&self) -> Moment {
        Moment::from_nanos(self.until_nanos.load(Acquire))
    }

    /// It only ever lasts longer.
    fn extend(&self, until: Moment) {
        self.until_nanos.fetch_max(until.nanos(), Release);
    }
}

/// What gates write.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Told {
    urgent: AtomicBool,
    held: AtomicU64,
    undone: AtomicU64,
    failed_open: AtomicU64,
}

impl Leases {
    pub(super) fn new(terms: Option<Terms>) -> Self {
        let may_be_lost = terms.is_some_and(|terms| terms.on_loss != OnLoss::Local);
        Self {
            terms,
            all: Valid::never(),
            shards: OnceLock::new(),
            may_be_special: AtomicBool::new(may_be_lost),
            nodes: AtomicU32::new(1),
            told: Told::default(),
        }
    }

    /// How far leases reach; `None` when nothing is leased.
    pub const fn terms(&self) -> Option<&Terms> {
        self.terms.as_ref()
    }

    /// The store keeps its keys in so many shards, each of which is heard and lost by itself. Said
    /// once, before anything is heard; without it there is one.
    pub fn divide(&self, shards: u16) {
        if shards > 1 {
            // Who says it again says the same.
            let _ = self.shards.set((0..shards).map(|_| Valid::never()).collect());
            self.expect_special();
        }
    }

    /// The shards of the store.
    pub fn shards(&self) -> u16 {
        self.shards.get().map_or(1, |shards| u16::try_from(shards.len()).unwrap_or(u16::MAX))
    }

    /// Whether the store has several of them.
    #[inline]
    pub(super) fn are_divided(&self) -> bool {
        self.shards.get().is_some()
    }

    /// Whether the leases of all keys are valid at `now`.
    #[inline]
    pub fn is_valid(&self, now: Moment) -> bool {
        now <= self.all.until()
    }

    /// Until when all of them are valid; [`Moment::START`] before every shard has answered.
    pub fn valid_until(&self) -> Moment {
        self.all.until()
    }

    /// Whether the leases of a shard's keys are valid at `now`.
    pub fn is_shard_valid(&self, shard: u16, now: Moment) -> bool {
        now <= self.shard_valid_until(shard)
    }

    /// Until when those of a shard are; [`Moment::START`] before its first answer.
    pub fn shard_valid_until(&self, shard: u16) -> Moment {
        let Some(shards) = self.shards.get() else { return self.all.until() };
        shards.get(usize::from(shard)).map_or(Moment::START, Valid::until)
    }

    /// How many shards have no valid lease at `now`.
    pub fn shards_lost(&self, now: Moment) -> u16 {
        let lost = (0..self.shards()).filter(|shard| !self.is_shard_valid(*shard, now));
        u16::try_from(lost.count()).unwrap_or(u16::MAX)
    }

    /// A shard of the store has answered: the leases of its keys are valid until then, and all are
    /// leased among so many nodes. One task says so.
    pub fn renew(&self, shard: u16, until: Moment, nodes: u32) {
        // Gates read what is beside it at every decision.
        if self.nodes.load(Relaxed) != nodes.max(1) {
            self.nodes.store(nodes.max(1), Relaxed);
        }
        let Some(shards) = self.shards.get() else { return self.all.extend(until) };
        if let Some(valid) = shards.get(usize::from(shard)) {
            valid.extend(until);
        }
        self.all.extend(shards.iter().map(Valid::until).min().unwrap_or(Moment::START));
    }

    /// Live nodes, as the store counted them last.
    pub fn nodes(&self) -> u32 {
        self.nodes.load(Relaxed)
    }

    /// Whether a decision has to look closer: at what [`loss`](Self::loss) may say, at shards, or at what
    /// somebody else expects.
    #[inline]
    pub(super) fn may_be_special(&self) -> bool {
        self.may_be_special.load(Relaxed)
    }

    /// Some decisions are special whatever becomes of leases.
    pub(super) fn expect_special(&self) {
        self.may_be_special.store(true, Relaxed);
    }

    /// What is done instead of the usual: `None` when there is a valid lease, when there are no
    /// leases at all, or when each node goes on by itself.
    #[inline]
    pub(super) fn loss(&self, leased: bool) -> Option<OnLoss> {
        match self.terms {
            Some(Terms { on_loss, .. }) if !leased && on_loss != OnLoss::Local => Some(on_loss),
            _ => None,
        }
    }

    /// How far a bucket reaches that this node has just met: it is taken for full, since the store
    /// would have told if it were low.
    pub(super) fn first_reach(&self, grant: &Grant, hold: Hold) -> Reach {
        let cap = grant.cap();
        self.terms.map_or(Reach::FREE, |terms| terms.reach(cap, cap, self.nodes(), hold))
    }

    pub(super) fn call(&self) {
        if !self.told.urgent.load(SeqCst) {
            self.told.urgent.store(true, SeqCst);
        }
    }

    /// Whether some gate wants the sync to look at once.
    #[inline]
    pub fn is_called(&self) -> bool {
        self.told.urgent.load(Relaxed)
    }

    pub(super) fn heed_call(&self) {
        // Before the marks are looked at, for every processor: a gate that still finds the call made has
        // its mark found.
        self.told.urgent.swap(false, SeqCst);
    }

    pub(super) fn count_held(&self) {
        self.told.held.fetch_add(1, Relaxed);
    }

    pub(super) fn count_undone(&self, tokens: u64) {
        self.told.undone.fetch_add(tokens, Relaxed);
    }

    pub(super) fn count_failed_open(&self) {
        self.told.failed_open.fetch_add(1, Relaxed);
    }

    /// Requests that a hold refused, since the start.
    pub fn held(&self) -> u64 {
        self.told.held.load(Relaxed)
    }

    /// Tokens that were given back since a later limit refused the message, since the start.
    pub fn undone(&self) -> u64 {
        self.told.undone.load(Relaxed)
    }

    /// Messages that were admitted without a look at the level, as the store was lost and the
    /// configuration says `open`, since the start.
    pub fn failed_open(&self) -> u64 {
        self.told.failed_open.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hold and budget in tokens.
    fn reach(level: f64, cap: f64, nodes: u32) -> (f64, f64) {
        let micro = |tokens: f64| (tokens * 1e6) as i64;
        let reach = Terms::default().reach(micro(level), micro(cap), nodes, Hold::Share);
        (reach.hold.unwrap() as f64 / 1e6, reach.budget.unwrap() as f64 / 1e6)
    }

    #[test]
    fn a_hold_is_the_nodes_part_of_the_bucket_and_never_less_than_eight_tokens_of_a_full_one() {
        assert_eq!(reach(50.0, 50.0, 4), (12.5, 3.125));
        assert_eq!(reach(50.0, 50.0, 16), (8.0, 1.0));
        assert_eq!(reach(5.0, 5.0, 16), (5.0, 1.0));
    }

    #[test]
    fn a_low_bucket_is_shared_out_by_its_level_and_a_token_is_always_left_to_try() {
        assert_eq!(reach(12.4, 50.0, 4), (3.1, 1.0));
        assert_eq!(reach(2.0, 50.0, 4), (1.0, 1.0));
        assert_eq!(reach(-30.0, 50.0, 4), (1.0, 1.0));
        // Of a bucket of one token and a half, a quarter is less than the floor of what is low.
        assert_eq!(reach(1.4, 4.0, 2), (1.0, 1.0));
    }

    #[test]
    fn what_a_cluster_may_admit_too_much_is_its_holds_beyond_the_burst() {
        let over = |nodes, hold| Terms::default().over_at_most(50 * ONE, nodes, hold) / ONE;
        assert_eq!([1, 4, 16].map(|nodes| over(nodes, Hold::Share)), [0, 0, 78]);
        assert_eq!(over(16, Hold::Burst), 750);
        let usual = Terms::over_usually(500.0, Duration::from_millis(1));
        assert!((usual / 1e6 - 6.5).abs() < 1e-9);
    }

    #[test]
    fn a_hold_grows_evenly_from_the_low_water_to_half_of_the_bucket() {
        let hold = |level| reach(level, 80.0, 4).0;
        assert_eq!([20.0, 30.0, 40.0, 80.0].map(hold), [5.0, 13.75, 20.0, 20.0]);
        // Half of a small bucket is below its low water.
        assert_eq!(reach(1.6, 3.0, 4).0, 3.0);
    }

    #[test]
    fn a_hold_of_a_burst_is_one_whatever_the_level() {
        for level in [-5, 0, 7] {
            let reach = Terms::default().reach(level * ONE, 50 * ONE, 16, Hold::Burst);
            assert_eq!(reach.hold, Some(50 * ONE));
        }
    }

    #[test]
    fn a_lease_only_ever_lasts_longer() {
        let leases = Leases::new(Some(Terms::default()));
        leases.renew(0, Moment::from_nanos(100), 3);
        leases.renew(0, Moment::from_nanos(50), 2);
        assert!(
            leases.is_valid(Moment::from_nanos(100)) && !leases.is_valid(Moment::from_nanos(101))
        );
        assert_eq!(leases.nodes(), 2);
    }

    #[test]
    fn all_leases_are_valid_as_long_as_those_of_every_shard() {
        let leases = Leases::new(Some(Terms::default()));
        leases.divide(3);
        let at = Moment::from_nanos;
        leases.renew(0, at(100), 1);
        leases.renew(2, at(300), 1);
        assert_eq!((leases.shards(), leases.valid_until()), (3, Moment::START));
        assert_eq!(
            [at(1), at(100), at(101), at(301)].map(|now| leases.shards_lost(now)),
            [1, 1, 2, 3]
        );
        leases.renew(1, at(200), 1);
        assert!(leases.is_valid(at(100)) && !leases.is_valid(at(101)));
        assert!(leases.is_shard_valid(1, at(200)) && !leases.is_shard_valid(0, at(101)));
        // Neither a shard nor all of them ever lose what they had.
        leases.renew(1, at(50), 1);
        leases.renew(0, at(400), 1);
        assert_eq!(leases.valid_until(), at(200));
        // There is no such shard.
        leases.renew(3, at(900), 1);
        assert_eq!((leases.valid_until(), leases.shard_valid_until(3)), (at(200), Moment::START));
    }
}

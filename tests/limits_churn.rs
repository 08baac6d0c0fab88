//! A table whose keys come and go while workers decide: a slot changes hands only when nobody can
//! hold it, and no key gains or loses a token by it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test states its expectations")]

use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::limits::cell::{Asking, Cell, Take};
use tollgate::limits::grant::{Grant, ONE};
use tollgate::limits::{Burst, Hold, LimitIx, Per, Place, Policy, Rate, Rule, Terms};
use tollgate::traffic::{Class, LinkId, MerchantId, Operation, Traffic};

const MERCHANT: LimitIx = LimitIx(0);
const ALL: LimitIx = LimitIx(1);

fn rule(name: &str, per: Per, rate: f64, burst: f64, keys_max: usize) -> Rule {
    let (rate, burst) = (Rate::per_second(rate).unwrap(), Burst::tokens(burst).unwrap());
    Rule { keys_max, ..Rule::new(name, per, rate, burst) }
}

fn message(acceptor: &str) -> Traffic {
    Traffic {
        merchant: MerchantId::new(b"123456", acceptor.as_bytes()),
        ..Traffic::new(LinkId(0), Class::Standard, Operation::Purchase)
    }
}

#[test]
fn a_retired_slot_is_not_used_again_while_another_worker_is_in_a_turn() {
    let policy =
        Policy::new(&[rule("m", Per::MERCHANT, 1.0, 1.0, 2)], &[], 2, 5, Moment::START).unwrap();
    let decide = |name, now| {
        let _turn = policy.turn(0);
        assert_eq!(policy.decide(&message(name), now).refused_by, None);
    };
    decide("A", Moment::START);
    decide("B", Moment::START);
    let now = Moment::START.after(Duration::from_secs(10));

    let other = policy.turn(1);
    for _ in 0..3 {
        policy.sweep(now, 16);
    }
    assert_eq!(policy.keys_in_use(MERCHANT), 0);
    decide("C", now);
    assert_eq!((policy.keys_in_use(MERCHANT), policy.overflowed(MERCHANT)), (0, 1));

    drop(other);
    policy.sweep(now, 16);
    // A turn that began after the slots were unlinked cannot hold them.
    let _later = policy.turn(1);
    decide("D", now);
    decide("E", now);
    assert_eq!((policy.keys_in_use(MERCHANT), policy.overflowed(MERCHANT)), (2, 1));
}

/// A worker whose reading of the clock is older than the retirement gets what the bucket held then,
/// and not a full one on top of what has refilled since.
#[test]
fn a_key_that_comes_back_is_not_full_before_it_was() {
    let policy =
        Policy::new(&[rule("m", Per::MERCHANT, 1.0, 10.0, 1)], &[], 1, 5, Moment::START).unwrap();
    let at = |seconds| Moment::START.after(Duration::from_secs(seconds));
    policy.decide(&message("A"), at(0));
    policy.sweep(at(100), 16);
    policy.sweep(at(100), 16);
    assert_eq!(policy.keys_in_use(MERCHANT), 0);
    // Full at 99 s, as a bucket has to rest for a second.
    assert_eq!(policy.decide(&message("A"), at(95)).refused_by, None);
    assert_eq!(policy.level(MERCHANT, &message("A"), at(95)), Some(5_000_000));
    assert_eq!(policy.level(MERCHANT, &message("A"), at(99)), Some(9_000_000));
}

const THREADS: usize = 4;
const ROUNDS: u32 = 2_000;
const ROUND: Duration = Duration::from_millis(300);
const KEYS_OF_EACH: usize = 200;

/// One worker with keys of its own, and for each a bucket that is never retired to compare with.
struct Worker<'a> {
    number: usize,
    policy: &'a Policy,
    grant: Grant,
    /// The last says whether a shared bucket may have served the key, which ends the comparison.
    keys: Vec<(Traffic, Cell, bool)>,
    random: fastrand::Rng,
    compared: u64,
    refused: [u64; 2],
    /// Decisions that were not those of the bucket to compare with. Kept for the end: a worker that
    /// panics would leave the others at the barrier.
    wrong: Vec<String>,
}

impl<'a> Worker<'a> {
    fn new(number: usize, policy: &'a Policy, grant: Grant) -> Self {
        let key =
            |at| (message(&format!("T{number}K{at}")), Cell::full(&grant, Moment::START), false);
        Self {
            number,
            policy,
            grant,
            keys: (0..KEYS_OF_EACH).map(key).collect(),
            random: fastrand::Rng::with_seed(number as u64),
            compared: 0,
            refused: [0; 2],
            wrong: Vec::new(),
        }
    }

    /// A few messages of a few keys, all at `now`.
    fn round(&mut self, now: Moment) {
        for _ in 0..12 {
            let at = self.random.usize(..KEYS_OF_EACH);
            let turn = self.policy.turn(self.number);
            for _ in 0..self.random.u8(1..8) {
                self.message(at, now);
            }
            drop(turn);
            self.policy.sweep(now, 40);
        }
    }

    fn message(&mut self, at: usize, now: Moment) {
        let (traffic, mine, shared) = &mut self.keys[at];
        let before = self.policy.overflowed(MERCHANT);
        let (granted, expected) = if self.random.u8(..10) == 0 {
            let forgiven = self.policy.charge(traffic, now).forgiven.contains(MERCHANT);
            (!forgiven, mine.charge(&self.grant, now))
        } else {
            let refused_by = self.policy.decide(traffic, now).refused_by;
            self.refused[0] += u64::from(refused_by == Some(MERCHANT));
            self.refused[1] += u64::from(refused_by == Some(ALL));
            let expected = mine.take(&self.grant, Asking::at(now));
            if refused_by == Some(ALL) && expected == Take::Granted {
                mine.undo();
            }
            (refused_by != Some(MERCHANT), expected)
        };
        *shared |= self.policy.overflowed(MERCHANT) != before;
        if !*shared {
            if granted != (expected == Take::Granted) {
                self.wrong.push(format!("{:?} at {now:?}: granted {granted}", traffic.merchant));
            }
            self.compared += 1;
        }
    }
}

#[test]
fn no_key_gains_or_loses_a_token_while_the_table_churns() {
    let rules =
        [rule("m", Per::MERCHANT, 20.0, 3.0, 500), rule("all", Per::NOTHING, 400.0, 50.0, 1)];
    let policy = Policy::new(&rules, &[], THREADS, 5, Moment::START).unwrap();
    let grant = Grant::new(rules[0].rate, rules[0].burst);
    let round = Barrier::new(THREADS + 1);
    let workers: Vec<Worker> = thread::scope(|scope| {
        // An onlooker without a number walks the same chains.
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                for key in 0..KEYS_OF_EACH {
                    let traffic = message(&format!("T1K{key}"));
                    policy.level(MERCHANT, &traffic, Moment::START);
                }
                round.wait();
            }
        });
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (policy, round) = (&policy, &round);
                scope.spawn(move || {
                    let mut worker = Worker::new(number, policy, grant);
                    for n in 0..ROUNDS {
                        // The workers' readings differ, by less than a bucket has to rest.
                        let late = worker.random.u64(..ROUND.as_nanos() as u64);
                        let base = Moment::START.after(ROUND * n);
                        worker.round(base.after(Duration::from_nanos(late)));
                        round.wait();
                    }
                    worker
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });

    for worker in &workers {
        assert!(
            worker.wrong.is_empty(),
            "{} wrong, first {:?}",
            worker.wrong.len(),
            worker.wrong[0]
        );
    }
    // Guards that what was to be shown could be seen.
    let compared: u64 = workers.iter().map(|worker| worker.compared).sum();
    assert!(compared > 200_000, "{compared} compared");
    assert!(
        policy.overflowed(MERCHANT) < compared / 100,
        "{} overflowed",
        policy.overflowed(MERCHANT)
    );
    for limit in [0, 1] {
        assert!(workers.iter().map(|worker| worker.refused[limit]).sum::<u64>() > 1_000);
    }
    let keys = workers.iter().flat_map(|worker| &worker.keys).filter(|(_, _, shared)| !shared);
    let kept_apart = keys.count();
    assert!(kept_apart > 500, "{kept_apart} keys had a slot to themselves, of 500 slots");
}

/// What a store would know of each cell, and what became of those that went.
#[derive(Default)]
struct Ledger {
    charged: HashMap<Place, i64>,
    /// Micro-tokens of the keys that were retired.
    settled: i64,
    retired: u64,
    /// How often a key had to stay, since the ledger did not have all that was spent.
    kept: u64,
    /// Keys that went all the same. Kept for the end: a panic would leave the workers at the barrier.
    lost: Vec<Place>,
}

impl Ledger {
    /// Charges what gates have marked, and leases it anew.
    fn collect(&mut self, policy: &Policy, now: Moment) {
        let mut places = Vec::new();
        policy.collect_urgent(|place| places.push(place));
        policy.collect_soon(|place| places.push(place));
        for place in places {
            let Some(leased) = policy.leased_cell(place) else { continue };
            leased.cell.heed();
            leased.cell.hush();
            let Some(spent) = leased.cell.spent() else { continue };
            let Some(level) = leased.cell.level(leased.grant, now) else { continue };
            self.charged.insert(place, spent);
            let reach = Terms::default().reach(level, leased.grant.cap(), 1, Hold::Burst);
            if leased.cell.lease(leased.grant, (level, now), spent, reach) {
                policy.remind(place);
            }
        }
    }

    /// Lets go of the keys that rest and of which it knows all.
    fn sweep(&mut self, policy: &Policy, now: Moment) {
        let mut left = HashMap::new();
        let mut retired = Vec::new();
        let may_retire = |place: Place, _, spent| {
            let knows_all = self.charged.get(&place).is_some_and(|charged| spent <= *charged);
            self.kept += u64::from(!knows_all);
            left.insert(place, spent);
            knows_all
        };
        policy.sweep_leased(now, 200, may_retire, &mut retired);
        for place in retired {
            let spent = left.get(&place).copied().unwrap_or(i64::MAX);
            match self.charged.remove(&place) {
                Some(charged) if spent <= charged => self.settled += spent,
                _ => self.lost.push(place),
            }
            self.retired += 1;
        }
    }

    /// The keys of the limit that it knows.
    fn keys(&self) -> impl Iterator<Item = &Place> {
        self.charged.keys().filter(|place| place.limit == 0)
    }

    /// Tokens spent of all keys of the limit, those included which are gone.
    fn spent(&self, policy: &Policy) -> i64 {
        let spent = |place: &Place| policy.leased_cell(*place)?.cell.spent();
        (self.settled + self.keys().filter_map(spent).sum::<i64>()) / ONE
    }
}

/// New keys come faster than old ones may go, and never stop coming: some share a bucket, and each of
/// the others is known to the token when it goes.
#[test]
fn nothing_spent_is_lost_while_a_spray_of_leased_keys_comes_and_goes() {
    const SPRAY: u32 = 20;
    const KEYS_MAX: usize = 500;
    let keys = rule("m", Per::MERCHANT, 20.0, 3.0, KEYS_MAX);
    // A later limit, so that some takes are undone.
    let all = rule("all", Per::NOTHING, 400.0, 150.0, 1);
    let terms = Terms::default();
    let policy = Policy::leased(&[keys, all], &[], terms, THREADS, 5, Moment::START).unwrap();
    policy.leases().renew(0, Moment::from_nanos(u64::MAX), 1);
    let (by_keys, by_shared, refused) = (AtomicI64::new(0), AtomicI64::new(0), AtomicI64::new(0));
    let round = Barrier::new(THREADS + 1);
    let (mut ledger, mut most) = (Ledger::default(), 0);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (policy, round) = (&policy, &round);
            let (by_keys, by_shared, refused) = (&by_keys, &by_shared, &refused);
            scope.spawn(move || {
                for n in 0..ROUNDS {
                    let now = Moment::START.after(ROUND * n);
                    for key in 0..SPRAY {
                        let traffic = message(&format!("T{number}K{}", n * SPRAY + key));
                        let _turn = policy.turn(number);
                        for _ in 0..2 {
                            let is_refused = policy.decide(&traffic, now).refused_by.is_some();
                            let has_bucket = policy.leased_place(MERCHANT, &traffic).is_some();
                            let count = match (is_refused, has_bucket) {
                                (true, _) => refused,
                                (false, true) => by_keys,
                                (false, false) => by_shared,
                            };
                            count.fetch_add(1, Relaxed);
                        }
                    }
                    round.wait();
                }
            });
        }
        for n in 0..ROUNDS {
            let now = Moment::START.after(ROUND * n);
            for step in 0..4 {
                // Seldom enough that keys have rested which it has not heard of.
                if (n + step) % 8 == 0 {
                    ledger.collect(&policy, now);
                }
                ledger.sweep(&policy, now);
                most = most.max(policy.keys_in_use(MERCHANT)).max(ledger.keys().count());
            }
            round.wait();
        }
    });
    ledger.collect(&policy, Moment::START.after(ROUND * ROUNDS));

    assert!(ledger.lost.is_empty(), "{} keys lost, first {:?}", ledger.lost.len(), ledger.lost[0]);
    let [by_keys, by_shared, refused] = [by_keys, by_shared, refused].map(AtomicI64::into_inner);
    assert_eq!(ledger.spent(&policy), by_keys, "what the keys have spent, to the token");
    let all = Place { limit: 1, number: 0 };
    let all = policy.leased_cell(all).unwrap().cell.spent().unwrap();
    assert_eq!(all, (by_keys + by_shared) * ONE, "and what all have");
    let unreported = ledger.charged.iter().filter(|(place, charged)| {
        policy.leased_cell(**place).and_then(|leased| leased.cell.spent()) > Some(**charged)
    });
    assert_eq!(unreported.count(), 0, "told, all of it");
    assert!(most <= KEYS_MAX, "{most} keys at once");
    // Guards that what was to be shown could be seen.
    assert!(ledger.retired > 50_000 && ledger.kept > 500, "{} {}", ledger.retired, ledger.kept);
    assert!(by_keys > 10_000 && by_shared > 1_000, "{by_keys} {by_shared}");
    assert!(refused > 10_000 && policy.leases().undone() > 10_000, "{refused}");
}

//! A cell against a perfect bucket in whole numbers, from one thread and from eight.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test states its expectations")]

use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use tollgate::clock::Moment;
use tollgate::limits::cell::{Asking, Cell, SETTLE_WITHIN, Take};
use tollgate::limits::grant::{Grant, ONE};
use tollgate::limits::{Burst, Rate};

const RATES: [f64; 12] =
    [1.0 / 3_600.0, 0.01, 0.5, 1.0, 3.0, 7.77, 25.0, 333.3, 5_000.0, 123_456.789, 1e6, 1e7];

fn rate(tokens: f64) -> Rate {
    Rate::per_second(tokens).unwrap()
}

fn burst(tokens: f64) -> Burst {
    Burst::tokens(tokens).unwrap()
}

fn at(nanos: u64) -> Moment {
    Moment::from_nanos(nanos)
}

/// Micro-tokens have this many parts here: pico-tokens/s times nanoseconds are whole in it.
const PARTS: i128 = 10i128.pow(15);

/// A token bucket without rounding.
struct Perfect {
    rate: i128,
    cap: i128,
    level: i128,
    at: u64,
}

impl Perfect {
    fn new(rate: Rate, burst: Burst, now: u64) -> Self {
        let cap = i128::from(burst.micro()) * PARTS;
        Self { rate: i128::from(rate.pico_per_second()), cap, level: cap, at: now }
    }

    fn level(&mut self, now: u64) -> i128 {
        self.level = self.cap.min(self.level + self.rate * i128::from(now - self.at));
        self.at = now;
        self.level
    }

    fn take(&mut self, now: u64) -> bool {
        let token = i128::from(ONE) * PARTS;
        let granted = self.level(now) >= token;
        if granted {
            self.level -= token;
        }
        granted
    }
}

/// The largest excess over `rate * t` of all windows that end now; a cell holds its promise while
/// this is at most the burst.
struct Window {
    rate: i128,
    excess: i128,
    from: u64,
    at: u64,
}

impl Window {
    fn admit(&mut self, now: u64) -> i128 {
        self.excess -= self.rate * i128::from(now - self.at);
        if self.excess <= 0 {
            (self.excess, self.from) = (0, now);
        }
        self.excess += i128::from(ONE) * PARTS;
        self.at = now;
        // The rate's own rounding, one part in 2^48 micro-tokens per nanosecond.
        self.excess - ((i128::from(now - self.from) * PARTS) >> 48) - 1
    }
}

fn follow(rate: Rate, burst: Burst, start: u64, gaps: impl Iterator<Item = u64>) -> u64 {
    let grant = Grant::new(rate, burst);
    let cell = Cell::full(&grant, at(start));
    let mut perfect = Perfect::new(rate, burst, start);
    let mut window = Window { rate: perfect.rate, excess: 0, from: start, at: start };
    let (mut now, mut admitted, mut ideal) = (start, 0, 0);
    for gap in gaps {
        now += gap;
        ideal += u64::from(perfect.take(now));
        if cell.take(&grant, Asking::at(at(now))) == Take::Granted {
            admitted += 1;
            let excess = window.admit(now);
            // `issued` is whole micro-tokens, so a window may hold the one that its start cut off.
            assert!(excess <= perfect.cap + PARTS, "over by {}", excess - perfect.cap);
        }
        let level = cell.level(&grant, at(now)).unwrap();
        assert!((0..=grant.cap()).contains(&level));
        assert!(admitted >= ideal, "{admitted} admitted, {ideal} by a perfect bucket");
    }
    admitted
}

/// A take of one who may have the last token.
fn take_at(cell: &Cell, grant: &Grant, now: Moment) -> Take {
    cell.take(grant, Asking::at(now))
}

/// Who keeps to the rate to the nanosecond is never refused.
#[test]
fn a_bucket_of_one_token_is_full_again_when_its_token_is_due() {
    for tokens in [1.0, 2.0, 5.0, 8.0, 25.0, 1_000.0, 1e6, 1e7] {
        let period = (1e9 / tokens) as u64;
        for start in [0, 1, 777_777_777, 1 << 50] {
            let admitted =
                follow(rate(tokens), burst(1.0), start, std::iter::repeat_n(period, 10_000));
            assert_eq!(admitted, 10_000);
        }
    }
}

#[test]
fn a_cell_admits_what_a_perfect_bucket_does() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut admitted = 0;
    for tokens in RATES {
        for capacity in [1.0, 1.5, 2.0, 10.0, 250.0, 4_000.0] {
            let per_token = 1e9 / tokens;
            for load in [0.3, 1.0, 4.0] {
                let start = random.u64(..1 << 50);
                let mean = (per_token / load) as u64;
                let gaps = std::iter::repeat_with(|| match random.u8(..) {
                    0 => 0,
                    1 => (per_token * capacity * random.f64()) as u64,
                    2 => per_token as u64,
                    _ => random.u64(..=2 * mean),
                });
                admitted += follow(rate(tokens), burst(capacity), start, gaps.take(20_000));
            }
        }
    }
    assert!(admitted > 1_000_000, "only {admitted}: nothing was shown");
}

proptest! {
    #[test]
    fn any_rate_burst_and_arrivals_keep_the_bound(
        tokens in (-3.5f64..7.0).prop_map(|power| 10f64.powf(power)),
        capacity in (0.0f64..4.0).prop_map(|power| 10f64.powf(power)),
        gaps in proptest::collection::vec((any::<u32>(), 0u32..40), 1..400),
    ) {
        let gaps = gaps.into_iter().map(|(gap, shift)| (u64::from(gap) << 8) >> shift);
        follow(rate(tokens), burst(capacity), 0, gaps);
    }

    #[test]
    fn an_undo_leaves_the_cell_as_it_was(
        tokens in (-3.5f64..7.0).prop_map(|power| 10f64.powf(power)),
        capacity in 1.0f64..100.0,
        steps in proptest::collection::vec((0u64..10_000_000_000, any::<bool>()), 1..100),
    ) {
        let grant = Grant::new(rate(tokens), burst(capacity));
        let (one, other) = (Cell::full(&grant, at(0)), Cell::full(&grant, at(0)));
        let mut now = 0;
        for (gap, stays) in steps {
            now += gap;
            let before = one.level(&grant, at(now));
            let take = one.take(&grant, Asking::at(at(now)));
            if stays {
                prop_assert_eq!(take, other.take(&grant, Asking::at(at(now))));
            } else if take == Take::Granted {
                one.undo();
                prop_assert_eq!(one.level(&grant, at(now)), before);
            }
            prop_assert_eq!(one.level(&grant, at(now)), other.level(&grant, at(now)));
        }
    }

    #[test]
    fn a_debt_is_one_burst_at_most(
        tokens in (-3.5f64..7.0).prop_map(|power| 10f64.powf(power)),
        capacity in 1.0f64..50.0,
        steps in proptest::collection::vec((0u64..100_000_000, any::<bool>()), 1..300),
    ) {
        let grant = Grant::new(rate(tokens), burst(capacity));
        let cell = Cell::full(&grant, at(0));
        let mut now = 0;
        for (gap, charged) in steps {
            now += gap;
            let before = cell.level(&grant, at(now)).unwrap();
            let least = if charged { ONE - grant.cap() } else { ONE };
            let spend = if charged { Cell::charge } else { take_at };
            let granted = spend(&cell, &grant, at(now)) == Take::Granted;
            prop_assert_eq!(granted, before >= least);
            let level = cell.level(&grant, at(now)).unwrap();
            prop_assert_eq!(level, before - i64::from(granted) * ONE);
            prop_assert!(level >= -grant.cap());
        }
    }
}

#[test]
fn eight_threads_share_a_bucket_and_no_spend_is_lost() {
    const THREADS: u64 = 8;
    for (tokens, capacity) in [(1e6, 1.0), (1e5, 4_000.0), (25.0, 50.0), (1e7, 1e6)] {
        let grant = Grant::new(rate(tokens), burst(capacity));
        let cell = Cell::full(&grant, at(0));
        let (clock, admitted, undone) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let start = Barrier::new(THREADS as usize);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (cell, grant, clock) = (&cell, &grant, &clock);
                let (admitted, undone, start) = (&admitted, &undone, &start);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(thread);
                    start.wait();
                    for _ in 0..100_000 {
                        // Read now and then, so that threads come with readings of different age.
                        let now = clock.fetch_add(random.u64(..200), Relaxed);
                        for _ in 0..random.u8(1..4) {
                            if cell.take(grant, Asking::at(at(now))) == Take::Granted {
                                if random.u8(..8) == 0 {
                                    cell.undo();
                                    undone.fetch_add(1, Relaxed);
                                } else {
                                    admitted.fetch_add(1, Relaxed);
                                }
                            }
                        }
                    }
                });
            }
        });
        let now = clock.load(Relaxed);
        let admitted = i128::from(admitted.load(Relaxed));
        let refilled = i128::from(rate(tokens).pico_per_second()) * i128::from(now);
        let bound = i128::from(grant.cap()) * PARTS + refilled;
        assert!(admitted * i128::from(ONE) * PARTS <= bound, "{admitted} at {tokens}/s");
        assert!(admitted > 0);
        // At a slow rate nothing overflows but some micro-tokens before the first take, so what the
        // level misses is what was admitted, to the token.
        if tokens < 100.0 {
            let level = i128::from(cell.level(&grant, at(now)).unwrap());
            let left = level + admitted * i128::from(ONE);
            let whole = i128::from(grant.cap()) + refilled / PARTS;
            assert!((-1..i128::from(ONE)).contains(&(whole - left)), "{left} of {whole} left");
            assert!(undone.load(Relaxed) > 0);
        }
    }
}

#[test]
fn no_spend_is_lost_when_threads_meet_on_a_bucket_that_never_overflows() {
    const THREADS: u64 = 8;
    let grant = Grant::new(rate(1.0 / 3_600.0), burst(1e9));
    let cell = Cell::full(&grant, at(0));
    let admitted: i64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let spend = |n: &i64| if n % 5 == 0 { Cell::charge } else { take_at };
                    (0..200_000).filter(|n| spend(n)(&cell, &grant, at(0)) == Take::Granted).count()
                        as i64
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(admitted, 1_600_000);
    assert_eq!(cell.level(&grant, at(0)), Some(grant.cap() - admitted * ONE));
}

#[test]
fn a_cell_outlives_years_at_the_fastest_rate_and_at_the_slowest() {
    const DAY: u64 = 86_400_000_000_000;
    for (tokens, capacity) in [(1e7, 1.0), (1e7, 1e9), (1e6, 1e6), (1.0 / 3_600.0, 24.0)] {
        let grant = Grant::new(rate(tokens), burst(capacity));
        let cell = Cell::full(&grant, at(0));
        let mut random = fastrand::Rng::with_seed(3);
        let mut now = 0;
        while now < 1_000 * DAY {
            now += random.u64(1..=SETTLE_WITHIN.as_nanos() as u64);
            cell.settle(&grant, at(now));
            assert_eq!(cell.level(&grant, at(now)), Some(grant.cap()), "after {now} ns");
            if random.bool() {
                let spends = random.i64(1..=100).min(grant.cap() / ONE);
                for _ in 0..spends {
                    assert_eq!(cell.take(&grant, Asking::at(at(now))), Take::Granted);
                }
                assert_eq!(cell.level(&grant, at(now)), Some(grant.cap() - spends * ONE));
                now += DAY;
            }
        }
    }
}

#[test]
fn a_cell_that_is_always_spent_from_goes_round_without_a_fault() {
    // Ten million tokens a second for three years, in steps of a full bucket.
    let grant = Grant::new(rate(1e7), burst(1e9));
    let cell = Cell::full(&grant, at(0));
    let step = 100_000_000_000;
    let mut now = 0;
    for _ in 0..1_000_000 {
        assert_eq!(cell.take(&grant, Asking::at(at(now))), Take::Granted);
        now += step;
    }
    assert_eq!(cell.level(&grant, at(now)), Some(grant.cap()));
}

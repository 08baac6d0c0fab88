//! Cells and policies under many hands, and over many requests: nothing is lost, doubled or decided
//! otherwise than one ideal bucket does.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test states its expectations")]

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use fastrand::Rng;
use tollgate::clock::Moment;
use tollgate::limits::cell::{Asking, Cell, Reach, Take};
use tollgate::limits::grant::{Grant, ONE};
use tollgate::limits::{Burst, Per, Policy, Rate, Rule};
use tollgate::traffic::{Class, LinkId, Operation, Traffic};

const THREADS: usize = 8;
const LEASES: i64 = 20_000;
/// Tokens that the store hands out with each lease.
const MORE: i64 = 7;

/// A store that charges exactly what it is told, beside eight threads that take.
#[test]
fn what_is_admitted_is_what_is_spent_and_what_was_leased_to_the_token() {
    let (rate, burst) = (Rate::per_second(0.001).unwrap(), Burst::tokens(1e9).unwrap());
    let (grant, now) = (Grant::new(rate, burst), Moment::START);
    let cell = Cell::full(&grant, now);
    // Empty to begin with: what is there comes by leases.
    cell.lease(&grant, (0, now), 0, Reach::FREE);
    let (admitted, leased_all) = (AtomicI64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut own = 0;
                loop {
                    let ended = leased_all.load(Ordering::SeqCst);
                    match cell.take(&grant, Asking::at(now)) {
                        Take::Granted => own += 1,
                        Take::Empty if ended => break,
                        Take::Empty => thread::yield_now(),
                        other => panic!("{other:?}"),
                    }
                }
                admitted.fetch_add(own, Ordering::SeqCst);
            });
        }
        let (mut level, mut charged) = (0, 0);
        for _ in 0..LEASES {
            let spent = cell.spent().unwrap();
            level += MORE * ONE - (spent - charged);
            charged = spent;
            cell.lease(&grant, (level, now), charged, Reach::FREE);
        }
        leased_all.store(true, Ordering::SeqCst);
    });
    let leased = LEASES * MORE;
    assert_eq!(admitted.into_inner(), leased);
    assert_eq!(cell.spent(), Some(leased * ONE));
    assert_eq!(cell.level(&grant, now), Some(0));
}

/// The ideal bucket of a grant, in whole parts of a micro-token.
struct Ideal {
    per_ns: i128,
    cap: i128,
    level: i128,
    at: u64,
}

/// Parts of a micro-token: more than enough for the slowest rate in a nanosecond.
const PARTS: i128 = 1 << 60;

impl Ideal {
    fn new(rate: Rate, burst: Burst) -> Self {
        // Pico-tokens per second are 10^-15 micro-tokens per nanosecond.
        let per_ns = i128::from(rate.pico_per_second()) * PARTS / 10i128.pow(15);
        let cap = i128::from(burst.micro()) * PARTS;
        Self { per_ns, cap, level: cap, at: 0 }
    }

    fn refill(&mut self, now: u64) {
        let refill = self.per_ns * i128::from(now - self.at);
        (self.level, self.at) = (self.cap.min(self.level + refill), now);
    }
}

/// A single node decides as the ideal bucket, but for requests within a thousandth of a token of the
/// boundary, where two ways of rounding may part.
#[test]
fn a_single_node_decides_as_the_ideal_bucket_on_eight_million_requests() {
    const RATES: [f64; 9] = [0.5, 1.0, 7.3, 25.0, 100.0, 1_000.0, 12_345.6, 100_000.0, 1_000_000.0];
    const BURSTS: [f64; 6] = [1.0, 2.0, 5.0, 50.0, 333.0, 4_000.0];
    const EACH: usize = 8_000_000 / (RATES.len() * BURSTS.len()) + 1;
    let traffic = Traffic::new(LinkId(0), Class::Standard, Operation::Purchase);
    let mut rng = Rng::with_seed(8_000_000);
    let (mut requests, mut near, mut refused) = (0, 0, 0);
    for (rate, burst) in RATES.into_iter().flat_map(|rate| BURSTS.map(|burst| (rate, burst))) {
        let gap_ns = 1e9 / rate;
        let (rate, burst) = (Rate::per_second(rate).unwrap(), Burst::tokens(burst).unwrap());
        let rules = [Rule::new("all", Per::NOTHING, rate, burst)];
        let policy = Policy::new(&rules, &[], 1, 1, Moment::START).unwrap();
        let _turn = policy.turn(0);
        let (mut ideal, mut now) = (Ideal::new(rate, burst), 0_u64);
        for _ in 0..EACH {
            // Mostly faster than the rate, with a pause now and then.
            let gap = if rng.u16(..) < 60 { 3_000.0 } else { 1.9 } * gap_ns * rng.f64();
            now += gap as u64;
            ideal.refill(now);
            let grants = policy.decide(&traffic, Moment::from_nanos(now)).refused_by.is_none();
            let margin = ideal.level - i128::from(ONE) * PARTS;
            // A bucket of one token that is full has exactly one.
            if margin.abs() < 1_000 * PARTS && ideal.level != ideal.cap {
                near += 1;
            } else {
                assert_eq!(grants, margin >= 0, "{rate:?} {burst:?} at {now}: {margin}");
            }
            if grants {
                ideal.level -= i128::from(ONE) * PARTS;
            }
            (requests, refused) = (requests + 1, refused + usize::from(!grants));
        }
    }
    assert!(requests >= 8_000_000 && refused > 500_000 && near < 20_000, "{refused} {near}");
}

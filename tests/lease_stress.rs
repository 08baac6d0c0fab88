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

/// The ideal bucket in whole micro-tokens: what has been handed out by a moment is rounded down, and so is
/// a rate of many digits up, to 2^-48 micro-tokens a nanosecond.
struct Ideal {
    rate: u128,
    cap: i128,
    level: i128,
    issued: i128,
}

impl Ideal {
    fn new(rate: Rate, burst: Burst) -> Self {
        let rate = (u128::from(rate.pico_per_second()) << 48).div_ceil(10u128.pow(15));
        let cap = i128::from(burst.micro());
        Self { rate, cap, level: cap, issued: 0 }
    }

    fn grants(&mut self, now: u64) -> bool {
        let issued = ((self.rate * u128::from(now)) >> 48) as i128;
        self.level = self.cap.min(self.level + issued - self.issued);
        self.issued = issued;
        let grants = self.level >= i128::from(ONE);
        self.level -= if grants { i128::from(ONE) } else { 0 };
        grants
    }
}

/// Micro-tokens have this many parts here: pico-tokens/s times nanoseconds are whole in it.
const PARTS: i128 = 10i128.pow(15);

/// The ideal bucket that rounds nothing, of which is taken what the node has granted.
struct Unrounded {
    rate: i128,
    cap: i128,
    level: i128,
    at: u64,
}

impl Unrounded {
    fn new(rate: Rate, burst: Burst) -> Self {
        let cap = i128::from(burst.micro()) * PARTS;
        Self { rate: i128::from(rate.pico_per_second()), cap, level: cap, at: 0 }
    }

    /// What it has beyond a token, or lacks of one, before this request.
    fn beyond_a_token(&mut self, now: u64, granted: bool) -> i128 {
        let refill = self.rate * i128::from(now - self.at);
        (self.level, self.at) = (self.cap.min(self.level + refill), now);
        let beyond = self.level - i128::from(ONE) * PARTS;
        self.level = if granted { beyond } else { self.level };
        beyond
    }
}

/// A single node decides as the ideal bucket in whole micro-tokens does, request by request. Beside one
/// that rounds nothing it refuses nothing that it should grant, and what it grants is there but for two
/// millionths of a token.
#[test]
fn a_single_node_decides_as_the_ideal_bucket_on_eight_million_requests() {
    const RATES: [f64; 9] = [0.5, 1.0, 7.3, 25.0, 100.0, 1_000.0, 12_345.6, 100_000.0, 1_000_000.0];
    const BURSTS: [f64; 6] = [1.0, 2.0, 5.0, 50.0, 333.0, 4_000.0];
    const EACH: usize = 8_000_000 / (RATES.len() * BURSTS.len()) + 1;
    let traffic = Traffic::new(LinkId(0), Class::Standard, Operation::Purchase);
    let mut rng = Rng::with_seed(8_000_000);
    let (mut requests, mut refused, mut differ, mut rounded) = (0, 0, 0, 0);
    for (rate, burst) in RATES.into_iter().flat_map(|rate| BURSTS.map(|burst| (rate, burst))) {
        let gap_ns = 1e9 / rate;
        let (rate, burst) = (Rate::per_second(rate).unwrap(), Burst::tokens(burst).unwrap());
        let rules = [Rule::new("all", Per::NOTHING, rate, burst)];
        let policy = Policy::new(&rules, &[], 1, 1, Moment::START).unwrap();
        let _turn = policy.turn(0);
        let (mut ideal, mut unrounded) = (Ideal::new(rate, burst), Unrounded::new(rate, burst));
        let mut now = 0_u64;
        for _ in 0..EACH {
            // Mostly faster than the rate, a pause now and then, and some who come when a token is due.
            now += match rng.u16(..) {
                0..60 => 3_000.0 * gap_ns * rng.f64(),
                60..6_000 => gap_ns,
                _ => 1.9 * gap_ns * rng.f64(),
            } as u64;
            let grants = policy.decide(&traffic, Moment::from_nanos(now)).refused_by.is_none();
            let beyond = unrounded.beyond_a_token(now, grants);
            assert!(
                if grants { beyond > -2 * PARTS } else { beyond < 0 },
                "{rate:?} at {now}: {beyond}"
            );
            differ += usize::from(grants != ideal.grants(now));
            rounded += usize::from(grants != (beyond >= 0));
            (requests, refused) = (requests + 1, refused + usize::from(!grants));
        }
    }
    println!("{rounded} of {requests} granted a millionth of a token too early, {refused} refused");
    assert!(requests >= 8_000_000 && refused > 500_000);
    assert_eq!(differ, 0);
}

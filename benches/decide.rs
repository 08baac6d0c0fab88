//! What a decision costs: at most 60 ns for two limits, merchant and BIN, with 100,000 merchants, and
//! 120 ns with a million, less what `no_limit_at_all` costs. A sample is 50,000 messages, which are
//! looked at ahead as a worker does it.
#![allow(clippy::unwrap_used, reason = "a bench states its expectations")]

#[path = "support/limits.rs"]
mod limits;

use std::hint::black_box;

use divan::{Bencher, counter::ItemsCount};
use limits::{Busy, LIMITS_MAX, Tokens};
use tollgate::clock::Moment;
use tollgate::limits::cell::{Asking, Cell, Reach};
use tollgate::limits::grant::Grant;
use tollgate::limits::{Burst, Policy, Rate};

fn main() {
    divan::main();
}

/// Messages per sample, each of another merchant.
const BATCH: usize = 50_000;

/// Asked in this order: merchant, BIN, all; the fourth is a second one by merchant, which comes
/// after the first.
fn decide(bencher: Bencher<'_, '_>, busy: &Busy) {
    let mut now = 0;
    let mut batches = busy.messages.chunks_exact(BATCH).cycle();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        now += 1_000_000_000;
        let refused = busy.refused(batches.next().unwrap(), Moment::from_nanos(now));
        assert_eq!(black_box(refused), 0);
    });
}

#[divan::bench(args = 1..=LIMITS_MAX)]
fn limits_of_100_000_merchants(bencher: Bencher<'_, '_>, limits: usize) {
    decide(bencher, &Busy::new(limits, 100_000, Tokens::PLENTY));
}

#[divan::bench(args = 1..=LIMITS_MAX)]
fn limits_of_1_000_000_merchants(bencher: Bencher<'_, '_>, limits: usize) {
    decide(bencher, &Busy::new(limits, 1_000_000, Tokens::PLENTY));
}

#[divan::bench(args = 1..=LIMITS_MAX)]
fn leased_limits_of_100_000_merchants(bencher: Bencher<'_, '_>, limits: usize) {
    decide(bencher, &Busy::leased(limits, 100_000, Tokens::PLENTY));
}

#[divan::bench(args = 1..=LIMITS_MAX)]
fn leased_limits_of_1_000_000_merchants(bencher: Bencher<'_, '_>, limits: usize) {
    decide(bencher, &Busy::leased(limits, 1_000_000, Tokens::PLENTY));
}

#[divan::bench(args = [100_000, 1_000_000])]
fn refused_by_the_merchant(bencher: Bencher<'_, '_>, merchants: usize) {
    let busy = Busy::new(3, merchants, Tokens { merchant: 1.0, ..Tokens::PLENTY });
    let mut batches = busy.messages.chunks_exact(BATCH).cycle();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        let refused = busy.refused(batches.next().unwrap(), Moment::START);
        assert_eq!(black_box(refused), BATCH);
    });
}

/// What of the above is reading the messages themselves from memory, which in the proxy are hot.
#[divan::bench]
fn no_limit_at_all(bencher: Bencher<'_, '_>) {
    let policy = Policy::new(&[], &[], 1, 42, Moment::START).unwrap();
    let busy = Busy::new(0, 1_000_000, Tokens::PLENTY);
    let mut batches = busy.messages.chunks_exact(BATCH).cycle();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for traffic in batches.next().unwrap() {
            let traffic = black_box(traffic);
            black_box((traffic.bin, traffic.merchant, policy.decide(traffic, Moment::START)));
        }
    });
}

#[divan::bench]
fn turn(bencher: Bencher<'_, '_>) {
    let policy = Policy::new(&[], &[], 1, 42, Moment::START).unwrap();
    bencher.bench_local(|| drop(black_box(policy.turn(0))));
}

fn grant(rate: f64) -> Grant {
    Grant::new(Rate::per_second(rate).unwrap(), Burst::tokens(1e6).unwrap())
}

#[divan::bench]
fn cell_take(bencher: Bencher<'_, '_>) {
    let grant = grant(1e7);
    let cell = Cell::full(&grant, Moment::START);
    let mut now = 0;
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            now += 100;
            black_box(cell.take(&grant, Asking::at(Moment::from_nanos(now))));
        }
    });
}

#[divan::bench]
fn cell_refuse(bencher: Bencher<'_, '_>) {
    let grant = Grant::new(Rate::per_second(0.001).unwrap(), Burst::tokens(1.0).unwrap());
    let cell = Cell::full(&grant, Moment::START);
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            black_box(cell.take(black_box(&grant), Asking::at(Moment::START)));
        }
    });
}

/// A cell of a cluster whose lease is valid, with what its gate tells the sync.
fn leased(grant: &Grant, level: i64) -> Cell {
    let cell = Cell::full(grant, Moment::START);
    let far = Some(i64::MAX / 4);
    cell.lease(grant, (level, Moment::START), 0, Reach { hold: far, budget: far });
    cell
}

fn take_leased(cell: &Cell, grant: &Grant, nanos: u64) {
    let asking = Asking { leased: true, ..Asking::at(Moment::from_nanos(nanos)) };
    let take = cell.take(grant, asking);
    black_box((take, cell.notice(take)));
}

#[divan::bench]
fn leased_cell_take(bencher: Bencher<'_, '_>) {
    let grant = grant(1e7);
    let cell = leased(&grant, grant.cap());
    let mut now = 0;
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            now += 100;
            take_leased(&cell, &grant, now);
        }
    });
}

#[divan::bench]
fn leased_cell_refuse(bencher: Bencher<'_, '_>) {
    let grant = Grant::new(Rate::per_second(0.001).unwrap(), Burst::tokens(1.0).unwrap());
    let cell = leased(&grant, 0);
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            take_leased(&cell, black_box(&grant), 0);
        }
    });
}

#[divan::bench(threads = 2)]
fn leased_cell_take_by_two_threads(bencher: Bencher<'_, '_>) {
    let grant = Grant::new(Rate::per_second(1.0).unwrap(), Burst::tokens(1e9).unwrap());
    let cell = leased(&grant, grant.cap());
    bencher.counter(ItemsCount::new(BATCH)).bench(|| {
        for _ in 0..BATCH {
            take_leased(&cell, &grant, 0);
        }
    });
}

/// Both threads do a batch each; the figure is the time of one thread's take. The burst outlasts
/// the bench, so that every take is granted.
#[divan::bench(threads = 2)]
fn cell_take_by_two_threads(bencher: Bencher<'_, '_>) {
    let grant = Grant::new(Rate::per_second(1.0).unwrap(), Burst::tokens(1e9).unwrap());
    let cell = Cell::full(&grant, Moment::START);
    bencher.counter(ItemsCount::new(BATCH)).bench(|| {
        for _ in 0..BATCH {
            black_box(cell.take(&grant, Asking::at(Moment::START)));
        }
    });
}

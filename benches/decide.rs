//! What a decision costs: at most 60 ns for merchant, BIN and all with 100,000 merchants, 120 ns
//! with a million, less what `no_limit_at_all` costs. A sample is 50,000 messages.
#![allow(clippy::unwrap_used, reason = "a bench states its expectations")]

use std::hint::black_box;

use divan::{Bencher, counter::ItemsCount};
use tollgate::clock::Moment;
use tollgate::limits::cell::{Cell, Grant};
use tollgate::limits::{Burst, Per, Policy, Rate, Rule};
use tollgate::traffic::{Bin, Class, LinkId, MerchantId, Operation, Traffic};

fn main() {
    divan::main();
}

/// Messages per sample, each of another merchant.
const BATCH: usize = 50_000;

fn rule(name: &str, per: Per, tokens: f64, keys_max: usize) -> Rule {
    let (rate, burst) = (Rate::per_second(tokens).unwrap(), Burst::tokens(tokens).unwrap());
    Rule { keys_max, ..Rule::new(name, per, rate, burst) }
}

fn message(merchant: usize) -> Traffic {
    let digits = [4, 1, 1, 1, (merchant / 8 % 8) as u8, (merchant % 8) as u8, 0, 0];
    let acceptor = format!("SHOP{merchant:08}   ");
    Traffic {
        bin: Bin::from_digits(&digits),
        merchant: MerchantId::new(b"123456", acceptor.as_bytes()),
        ..Traffic::new(LinkId(0), Class::Standard, Operation::Purchase)
    }
}

/// A policy that knows `merchants`, with all their messages in random order.
fn busy(merchants: usize, rate: f64) -> (Policy, Vec<Traffic>) {
    let rules = [
        rule("merchant", Per::MERCHANT, rate, merchants),
        rule("bin", Per::BIN, 1e7, 100_000),
        rule("all", Per::NOTHING, 1e7, 1),
    ];
    let policy = Policy::new(&rules, &[], 1, 42, Moment::START).unwrap();
    let mut messages: Vec<_> = (0..merchants).map(message).collect();
    let mut random = fastrand::Rng::with_seed(42);
    random.shuffle(&mut messages);
    let turn = policy.turn(0);
    for traffic in &messages {
        policy.decide(traffic, Moment::START);
    }
    drop(turn);
    (policy, messages)
}

#[divan::bench(args = [100_000, 1_000_000])]
fn merchant_bin_and_all(bencher: Bencher, merchants: usize) {
    let (policy, messages) = busy(merchants, 1e6);
    let mut now = 0;
    let mut batches = messages.chunks_exact(BATCH).cycle();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        now += 1_000_000_000;
        let mut refused = 0;
        for traffic in batches.next().unwrap() {
            refused +=
                u32::from(policy.decide(traffic, Moment::from_nanos(now)).refused_by.is_some());
        }
        assert_eq!(black_box(refused), 0);
    });
}

#[divan::bench(args = [100_000, 1_000_000])]
fn refused_by_the_merchant(bencher: Bencher, merchants: usize) {
    let (policy, messages) = busy(merchants, 1.0);
    let mut batches = messages.chunks_exact(BATCH).cycle();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        let mut refused = 0;
        for traffic in batches.next().unwrap() {
            refused += u32::from(policy.decide(traffic, Moment::START).refused_by.is_some());
        }
        assert_eq!(black_box(refused), BATCH as u32);
    });
}

/// What of the above is reading the messages themselves from memory, which in the proxy are hot.
#[divan::bench]
fn no_limit_at_all(bencher: Bencher) {
    let policy = Policy::new(&[], &[], 1, 42, Moment::START).unwrap();
    let (_, messages) = busy(1_000_000, 1e6);
    let mut batches = messages.chunks_exact(BATCH).cycle();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for traffic in batches.next().unwrap() {
            let traffic = black_box(traffic);
            black_box((traffic.bin, traffic.merchant, policy.decide(traffic, Moment::START)));
        }
    });
}

#[divan::bench]
fn turn(bencher: Bencher) {
    let policy = Policy::new(&[], &[], 1, 42, Moment::START).unwrap();
    bencher.bench_local(|| drop(black_box(policy.turn(0))));
}

fn grant(rate: f64) -> Grant {
    Grant::new(Rate::per_second(rate).unwrap(), Burst::tokens(1e6).unwrap())
}

#[divan::bench]
fn cell_take(bencher: Bencher) {
    let grant = grant(1e7);
    let cell = Cell::full(&grant, Moment::START);
    let mut now = 0;
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            now += 100;
            black_box(cell.take(&grant, Moment::from_nanos(now)));
        }
    });
}

#[divan::bench]
fn cell_refuse(bencher: Bencher) {
    let grant = Grant::new(Rate::per_second(0.001).unwrap(), Burst::tokens(1.0).unwrap());
    let cell = Cell::full(&grant, Moment::START);
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            black_box(cell.take(black_box(&grant), Moment::START));
        }
    });
}

/// Both threads do a batch each; the figure is the time of one thread's take. The burst outlasts
/// the bench, so that every take is granted.
#[divan::bench(threads = 2)]
fn cell_take_by_two_threads(bencher: Bencher) {
    let grant = Grant::new(Rate::per_second(1.0).unwrap(), Burst::tokens(1e9).unwrap());
    let cell = Cell::full(&grant, Moment::START);
    bencher.counter(ItemsCount::new(BATCH)).bench(|| {
        for _ in 0..BATCH {
            black_box(cell.take(&grant, Moment::START));
        }
    });
}

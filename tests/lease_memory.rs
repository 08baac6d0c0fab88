//! A million leased keys: what cells and the sync's records take.
//!
//! This test has a binary of its own, as it measures the process.
#![allow(clippy::unwrap_used, reason = "a test states its expectations")]

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::limits::{Burst, LimitIx, Per, Policy, Rate, Rule, Terms};
use tollgate::quota::protocol::{Lease, NodeId, Reply, Since};
use tollgate::quota::sync::{Outgoing, Settings, Sync};
use tollgate::traffic::{Class, LinkId, MerchantId, Operation, Traffic};

const KEYS: usize = 1_000_000;
const CELLS: usize = KEYS * 64;
const IN_ALL: usize = 160_000_000;
const LIMIT: LimitIx = LimitIx(0);

fn shop(number: usize) -> Traffic {
    Traffic {
        merchant: MerchantId::new(b"123456", format!("SHOP{number:08}").as_bytes()),
        ..Traffic::new(LinkId(0), Class::Standard, Operation::Purchase)
    }
}

/// Bytes of memory that the process has resident.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

/// What a store says that acknowledges everything.
fn acknowledged(outgoing: &Outgoing) -> Reply {
    let lease = |report: &tollgate::quota::protocol::Report| Lease {
        level: report.level,
        charged: report.spent,
        share: 1.0,
    };
    let leases = outgoing.call.reports.iter().map(lease).map(Some).collect();
    Reply { nodes: 1, leases, digest: Vec::new(), since: Since::default() }
}

#[test]
fn a_million_leased_keys_stay_within_the_budget_and_go_when_they_rest() {
    let (rate, burst) = (Rate::per_second(10.0).unwrap(), Burst::tokens(10.0).unwrap());
    // With room to spare, so that no key has to go for another.
    let keys_max = KEYS + KEYS / 5;
    let rule = Rule { keys_max, ..Rule::new("merchant", Per::MERCHANT, rate, burst) };
    let before = resident();
    let mut now = Moment::from_nanos(1_000_000_000);
    let policy = Policy::leased(&[rule], &[], Terms::default(), 1, 11, now).unwrap();
    let policy = Arc::new(policy);
    let mut sync = Sync::new(Settings::default(), NodeId(1), 1, Arc::clone(&policy), now);
    let mut out = Vec::new();
    let mut tick = |now: Moment, sync: &mut Sync| {
        sync.turn(now, &mut out);
        for outgoing in out.drain(..) {
            sync.answer(now, outgoing.number, &acknowledged(&outgoing));
        }
    };
    tick(now, &mut sync);
    for number in 0..KEYS {
        let turn = policy.turn(0);
        assert_eq!(policy.decide(&shop(number), now).refused_by, None);
        drop(turn);
        if number % 5_000 == 0 {
            now = now.after(Duration::from_millis(120));
            tick(now, &mut sync);
        }
    }
    // All at once once more: more than one tick tells.
    for number in (0..KEYS).step_by(8) {
        let turn = policy.turn(0);
        policy.decide(&shop(number), now);
        drop(turn);
    }
    now = now.after(Duration::from_millis(120));
    tick(now, &mut sync);
    assert!(sync.tally().late_keys > 0, "{:?}", sync.tally());
    while sync.tally().late_keys > 0 {
        now = now.after(Duration::from_millis(120));
        tick(now, &mut sync);
    }
    assert_eq!((policy.keys_in_use(LIMIT), policy.overflowed(LIMIT)), (KEYS, 0));
    assert_eq!(sync.tally().keys, KEYS);
    let grown = resident() - before;
    assert!(grown <= IN_ALL, "{grown} bytes resident, {IN_ALL} granted");
    assert!(grown >= CELLS, "{grown} bytes hold a million cells");
    println!("{} MB for a million keys", grown / 1_000_000);

    // Nobody spends any more: after a minute or two of rest the keys go, and their records.
    for _ in 0..4_000 {
        now = now.after(Duration::from_millis(120));
        tick(now, &mut sync);
    }
    assert_eq!((policy.keys_in_use(LIMIT), sync.tally().keys), (0, 0));
}

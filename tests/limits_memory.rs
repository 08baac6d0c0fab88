//! A million merchants in a policy with room for a hundred thousand: memory stays within its
//! budget, and a merchant that the configuration names is not touched by the others.
//!
//! This test has a binary of its own, as it measures the process.
#![allow(clippy::unwrap_used, reason = "a test states its expectations")]

use std::fs;
use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::limits::{Burst, KeyMatch, LimitIx, Per, Policy, Rate, Rule, RuleKey};
use tollgate::traffic::{Class, LinkId, MerchantId, Operation, Traffic};

const KEYS_MAX: usize = 100_000;
const LIMIT: LimitIx = LimitIx(0);
const TOKEN: i64 = 1_000_000;

fn message(acceptor: &str) -> Traffic {
    Traffic {
        merchant: MerchantId::new(b"123456", acceptor.as_bytes()),
        ..Traffic::new(LinkId(0), Class::Standard, Operation::Purchase)
    }
}

/// Bytes of memory that the process has resident.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn a_million_merchants_stay_within_the_budget_and_spare_the_named_one() {
    let (rate, burst) = (Rate::per_second(1.0).unwrap(), Burst::tokens(10.0).unwrap());
    let named = message("NAMED");
    let rule = Rule {
        keys_max: KEYS_MAX,
        keys: vec![RuleKey {
            matches: KeyMatch::of_merchant(named.merchant.unwrap()),
            // So slow that nothing refills while this test runs.
            rate: Rate::per_second(0.001).unwrap(),
            burst: Burst::tokens(1_000.0).unwrap(),
            peak: None,
            floor: None,
        }],
        ..Rule::new("merchant", Per::MERCHANT, rate, burst)
    };
    let before = resident();
    let policy = Policy::new(&[rule], &[], 1, 11, Moment::START).unwrap();
    let empty = resident() - before;
    assert!(empty < 4 << 20, "{empty} bytes before the first key");

    let mut now = Moment::START;
    for n in 0..1_000_000u32 {
        now = now.after(Duration::from_micros(20));
        let turn = policy.turn(0);
        policy.decide(&message(&format!("SHOP{n:08}")), now);
        if n % 1_000 == 0 {
            assert_eq!(policy.decide(&named, now).refused_by, None);
        }
        drop(turn);
        if n % 250 == 0 {
            policy.sweep(now, 256);
        }
    }

    let grown = resident().saturating_sub(before);
    let budget = KEYS_MAX * 128 + 10_000_000;
    assert!(grown <= budget, "{grown} bytes resident, {budget} granted");
    // A guard that the test filled the table at all.
    assert!(policy.keys_in_use(LIMIT) > KEYS_MAX / 2);
    assert!(policy.overflowed(LIMIT) > 0);

    // A thousand messages in twenty seconds: exactly those are gone, and 0.02 tokens are back.
    let left = policy.level(LIMIT, &named, now).unwrap();
    assert!((20_000..20_100).contains(&left), "{left} micro-tokens left of the named merchant");
    assert_eq!(policy.decide(&named, now).refused_by, Some(LIMIT));
    let overflowed = policy.overflowed(LIMIT);
    policy.charge(&named, now);
    assert_eq!(policy.overflowed(LIMIT), overflowed);
    assert_eq!(policy.level(LIMIT, &named, now), Some(left - TOKEN));
}

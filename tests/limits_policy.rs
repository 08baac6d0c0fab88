//! What a policy does with a message: which buckets it meets, in which order, and what a refusal
//! leaves behind.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test states its expectations")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
use tollgate::clock::Moment;
use tollgate::limits::{
    BinRange, Burst, KeyMatch, LimitIx, Mode, Per, Policy, Rate, Rule, RuleKey,
};
use tollgate::traffic::{Bin, Class, LinkId, MerchantId, Operation, Traffic};

const TOKEN: i64 = 1_000_000;
const NOW: Moment = Moment::START;

fn merchant(acquirer: &str, acceptor: &str) -> MerchantId {
    MerchantId::new(acquirer.as_bytes(), acceptor.as_bytes()).unwrap()
}

/// A message of a card, given by its leading digits ("" for none), and a merchant.
fn message(card: &str, merchant: Option<MerchantId>) -> Traffic {
    let digits: Vec<u8> = card.bytes().map(|byte| byte - b'0').collect();
    let bin = Bin::from_digits(&digits);
    Traffic { bin, merchant, ..Traffic::new(LinkId(0), Class::Standard, Operation::Purchase) }
}

fn shop(name: &str) -> Traffic {
    message("41111111", Some(merchant("123456", name)))
}

fn rule(name: &str, per: Per, burst: f64) -> Rule {
    let (rate, burst) = (Rate::per_second(1.0).unwrap(), Burst::tokens(burst).unwrap());
    Rule { keys_max: 100, ..Rule::new(name, per, rate, burst) }
}

fn with_key(mut rule: Rule, matches: KeyMatch, burst: f64) -> Rule {
    let (rate, burst) = (rule.rate, Burst::tokens(burst).unwrap());
    rule.keys.push(RuleKey { matches, rate, burst, peak: None, floor: None });
    rule
}

fn shadow(rule: Rule) -> Rule {
    Rule { mode: Mode::Shadow, ..rule }
}

fn policy(rules: &[Rule]) -> Policy {
    Policy::new(rules, &[], 1, 7, NOW).unwrap()
}

/// How many of `tries` equal messages go on.
fn admitted(policy: &Policy, traffic: &Traffic, tries: usize) -> usize {
    let _turn = policy.turn(0);
    (0..tries).filter(|_| policy.decide(traffic, NOW).refused_by.is_none()).count()
}

fn levels(policy: &Policy, traffic: &Traffic, now: Moment) -> Vec<Option<i64>> {
    let limits = 0..policy.limits().len() as u8;
    limits.map(|limit| policy.level(LimitIx(limit), traffic, now)).collect()
}

#[test]
fn the_narrowest_limit_refuses_first_and_is_named() {
    let rules = [
        rule("all", Per::NOTHING, 30.0),
        rule("bin", Per::BIN, 20.0),
        rule("m", Per::MERCHANT, 10.0),
    ];
    let policy = policy(&rules);
    let _turn = policy.turn(0);
    for (shop, admitted, refused_by) in [("A", 10, 2), ("B", 10, 2), ("C", 0, 1)] {
        let traffic = self::shop(shop);
        for _ in 0..admitted {
            assert_eq!(policy.decide(&traffic, NOW).refused_by, None);
        }
        assert_eq!(policy.decide(&traffic, NOW).refused_by, Some(LimitIx(refused_by)));
    }
    let other_bin = message("52000000", Some(merchant("123456", "C")));
    for _ in 0..10 {
        assert_eq!(policy.decide(&other_bin, NOW).refused_by, None);
    }
    assert_eq!(policy.decide(&message("53000000", None), NOW).refused_by, Some(LimitIx(0)));
}

#[test]
fn a_merchants_refusals_cost_its_bin_nothing() {
    let rules =
        [rule("m", Per::MERCHANT, 2.0), rule("bin", Per::BIN, 5.0), rule("all", Per::NOTHING, 6.0)];
    let policy = policy(&rules);
    assert_eq!(admitted(&policy, &shop("LOUD"), 1_000), 2);
    assert_eq!(levels(&policy, &shop("QUIET"), NOW)[1..], [Some(3 * TOKEN), Some(4 * TOKEN)]);
    assert_eq!(admitted(&policy, &shop("QUIET"), 2), 2);
}

#[test]
fn limits_of_one_kind_are_asked_in_the_order_of_the_configuration() {
    let rules = [rule("peak", Per::NOTHING, 1.0), rule("sustained", Per::NOTHING, 1.0)];
    let policy = policy(&rules);
    assert_eq!(admitted(&policy, &message("", None), 1), 1);
    assert_eq!(policy.decide(&message("", None), NOW).refused_by, Some(LimitIx(0)));
}

#[test]
fn a_shadow_limit_reports_and_never_refuses() {
    let rules = [shadow(rule("m", Per::MERCHANT, 1.0)), rule("all", Per::NOTHING, 3.0)];
    let policy = policy(&rules);
    let _turn = policy.turn(0);
    assert!(policy.decide(&shop("A"), NOW).shadowed.is_empty());
    let second = policy.decide(&shop("A"), NOW);
    assert_eq!(second.refused_by, None);
    assert_eq!(second.shadowed.iter().collect::<Vec<_>>(), [LimitIx(0)]);
    assert!(policy.decide(&shop("B"), NOW).shadowed.is_empty());
    let refused = policy.decide(&shop("B"), NOW);
    assert_eq!(refused.refused_by, Some(LimitIx(1)));
    assert!(refused.shadowed.contains(LimitIx(0)));
}

#[test]
fn a_limit_that_is_off_is_skipped_and_keeps_its_place() {
    let mut off = rule("m", Per::MERCHANT, 1.0);
    off.mode = Mode::Off;
    let policy = policy(&[off, rule("all", Per::NOTHING, 5.0)]);
    assert_eq!(admitted(&policy, &shop("A"), 9), 5);
    assert_eq!(policy.decide(&shop("A"), NOW).refused_by, Some(LimitIx(1)));
    assert_eq!(levels(&policy, &shop("A"), NOW), [None, Some(0)]);
    let named: Vec<_> = policy.limits().iter().map(|limit| (&*limit.name, limit.mode)).collect();
    assert_eq!(named, [("m", Mode::Off), ("all", Mode::Enforce)]);
}

#[test]
fn a_message_meets_only_the_limits_whose_key_it_has() {
    let rules =
        [rule("m", Per::MERCHANT, 1.0), rule("bin", Per::BIN, 2.0), rule("all", Per::NOTHING, 5.0)];
    let policy = policy(&rules);
    let no_card = message("", Some(merchant("123456", "A")));
    let no_merchant = message("41111111", None);
    assert_eq!(levels(&policy, &no_card, NOW), [Some(TOKEN), None, Some(5 * TOKEN)]);
    assert_eq!(levels(&policy, &no_merchant, NOW), [None, Some(2 * TOKEN), Some(5 * TOKEN)]);
    assert_eq!(admitted(&policy, &no_card, 3), 1);
    assert_eq!(admitted(&policy, &no_merchant, 5), 2);
    assert_eq!(admitted(&policy, &message("", None), 5), 2);
}

#[test]
fn the_same_acceptor_under_another_acquirer_is_another_merchant() {
    let named = KeyMatch::of_merchant(merchant("123456", "NAMED"));
    let policy = policy(&[with_key(rule("m", Per::MERCHANT, 2.0), named, 4.0)]);
    for (acquirer, acceptor, burst) in
        [("123456", "A", 2), ("654321", "A", 2), ("123456", "NAMED", 4), ("654321", "NAMED", 2)]
    {
        let traffic = message("", Some(merchant(acquirer, acceptor)));
        assert_eq!(admitted(&policy, &traffic, 9), burst, "{acquirer}:{acceptor}");
    }
    assert_eq!(policy.keys_in_use(LimitIx(0)), 3, "a named key takes no slot");
}

#[test]
fn the_longest_prefix_and_the_narrowest_range_win() {
    let key = |text| KeyMatch::of_bin(BinRange::parse(text).unwrap());
    let mut bins = rule("bin", Per::BIN, 1.0);
    for (text, burst) in [("4", 9.0), ("411111", 3.0), ("41111122", 5.0), ("400000-409999", 7.0)] {
        bins = with_key(bins, key(text), burst);
    }
    let policy = policy(&[bins]);
    for (card, burst) in [
        ("41111121", 3),
        ("41111122", 5),
        ("41111123", 0), // shares the bucket of 411111
        ("40000000", 7),
        ("40999999", 0), // shares that of the range
        ("41000000", 9),
        ("49999999", 0), // shares that of 4
        ("50000000", 1),
        ("50000099", 0), // six digits make an automatic BIN
        ("50000100", 1),
    ] {
        assert_eq!(admitted(&policy, &message(card, None), 20), burst, "{card}");
    }
}

#[test]
fn automatic_bins_have_as_many_digits_as_the_rule_says() {
    for (digits, first, second) in [(6, 1, 0), (7, 1, 0), (8, 1, 1)] {
        let policy = policy(&[Rule { bin_digits: digits, ..rule("bin", Per::BIN, 1.0) }]);
        assert_eq!(admitted(&policy, &message("51234567", None), 5), first);
        assert_eq!(admitted(&policy, &message("51234568", None), 5), second, "{digits} digits");
    }
}

#[test]
fn a_charge_owes_one_burst_at_most_and_what_is_forgiven_is_said() {
    let rules = [
        rule("m", Per::MERCHANT, 2.0),
        shadow(rule("bin", Per::BIN, 4.0)),
        rule("all", Per::NOTHING, 3.0),
    ];
    let policy = policy(&rules);
    let _turn = policy.turn(0);
    for paid in 1..=20 {
        let forgiven = policy.charge(&shop("A"), NOW).forgiven;
        let expected: Vec<_> =
            [(0, 4), (1, 8), (2, 6)].into_iter().filter(|(_, room)| paid > *room).collect();
        let said: Vec<_> = forgiven.iter().map(|limit| limit.0).collect();
        assert_eq!(said, expected.iter().map(|(limit, _)| *limit).collect::<Vec<u8>>());
    }
    assert_eq!(levels(&policy, &shop("A"), NOW), [-2, -4, -3].map(|owed| Some(owed * TOKEN)));
    // The debt is paid off before anything is admitted again: two tokens owed, then one to spend.
    let after = |millis| NOW.after(Duration::from_millis(millis));
    assert_eq!(policy.decide(&shop("A"), after(2_999)).refused_by, Some(LimitIx(0)));
    assert_eq!(policy.decide(&shop("A"), after(3_999)).refused_by, Some(LimitIx(2)));
    let paid_off = policy.decide(&shop("A"), after(4_000));
    assert_eq!(paid_off.refused_by, None);
    assert!(paid_off.shadowed.contains(LimitIx(1)));
}

#[test]
fn a_key_without_a_slot_is_served_by_a_shared_bucket_and_counted() {
    let policy = policy(&[Rule { keys_max: 3, ..rule("m", Per::MERCHANT, 1.0) }]);
    for name in ["A", "B", "C"] {
        assert_eq!(admitted(&policy, &shop(name), 2), 1);
    }
    assert_eq!((policy.keys_in_use(LimitIx(0)), policy.overflowed(LimitIx(0))), (3, 0));
    let total: usize = (0..1_000).map(|n| admitted(&policy, &shop(&format!("X{n}")), 1)).sum();
    assert_eq!(total, 64, "each overflow bucket has one burst");
    assert_eq!((policy.keys_in_use(LimitIx(0)), policy.overflowed(LimitIx(0))), (3, 1_000));
}

/// Were the first use of a key to make two buckets, the second would hide what the first has spent.
#[test]
fn threads_that_meet_on_a_new_key_share_one_bucket() {
    const THREADS: usize = 64;
    const MERCHANTS: usize = 100;
    let rule = Rule { keys_max: 1_000, ..rule("m", Per::MERCHANT, 10.0) };
    let policy = Policy::new(&[rule], &[], THREADS, 7, NOW).unwrap();
    let start = Barrier::new(THREADS);
    let admitted: [AtomicUsize; MERCHANTS] = std::array::from_fn(|_| AtomicUsize::new(0));
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (policy, start, admitted) = (&policy, &start, &admitted);
            scope.spawn(move || {
                for (merchant, admitted) in admitted.iter().enumerate() {
                    let traffic = shop(&format!("NEW{merchant}"));
                    start.wait();
                    let _turn = policy.turn(number);
                    if policy.decide(&traffic, NOW).refused_by.is_none() {
                        admitted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let admitted: Vec<usize> = admitted.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    assert_eq!(admitted, [10; MERCHANTS]);
    assert_eq!(policy.keys_in_use(LimitIx(0)), MERCHANTS);
    assert_eq!(policy.overflowed(LimitIx(0)), 0);
}

#[test]
fn a_resting_key_makes_room_and_one_that_owes_does_not() {
    let policy = policy(&[Rule { keys_max: 4, ..rule("m", Per::MERCHANT, 2.0) }]);
    for name in ["A", "B", "C"] {
        assert_eq!(admitted(&policy, &shop(name), 1), 1);
    }
    let debtor = shop("D");
    for _ in 0..9 {
        policy.charge(&debtor, NOW);
    }
    // One token refills in a second, and then the bucket has to rest for another.
    policy.sweep(NOW.after(Duration::from_millis(1_999)), 100);
    assert_eq!(policy.keys_in_use(LimitIx(0)), 4);
    let later = NOW.after(Duration::from_secs(2));
    policy.sweep(later, 100);
    assert_eq!(policy.keys_in_use(LimitIx(0)), 1);
    assert_eq!(policy.level(LimitIx(0), &debtor, later), Some(0));
    policy.sweep(later, 100);
    assert_eq!(policy.decide(&shop("E"), later).refused_by, None);
    assert_eq!((policy.keys_in_use(LimitIx(0)), policy.overflowed(LimitIx(0))), (2, 0));
}

#[test]
fn a_year_at_the_fastest_rate_refuses_and_forgets_nothing() {
    let fast = |rule: Rule| Rule { rate: Rate::per_second(1e7).unwrap(), ..rule };
    let named = KeyMatch::of_bin(BinRange::parse("411111").unwrap());
    let mut bins = with_key(fast(rule("bin", Per::BIN, 10.0)), named, 10.0);
    bins.keys_max = 2;
    let rules = [fast(rule("m", Per::MERCHANT, 10.0)), bins, fast(rule("all", Per::NOTHING, 30.0))];
    let policy = policy(&rules);
    let cards = ["41111111", "51000000", "52000000", "53000000", "54000000"];
    for day in 0..366 {
        let now = NOW.after(Duration::from_secs(day * 86_400));
        for _ in 0..100 {
            policy.sweep(now, 16);
        }
        // Two weeks of silence now and then.
        if day % 28 > 14 {
            continue;
        }
        for (card, merchant) in cards.iter().zip(["A", "B", "C", "D", "E"]) {
            let traffic = message(card, Some(self::merchant("123456", merchant)));
            let _turn = policy.turn(0);
            assert_eq!(policy.decide(&traffic, now).refused_by, None, "on day {day}");
            let level = policy.level(LimitIx(0), &traffic, now);
            assert_eq!(level, Some(9 * TOKEN), "on day {day}");
        }
        let left = policy.level(LimitIx(2), &message("", None), now);
        assert_eq!(left, Some(25 * TOKEN), "on day {day}");
    }
}

proptest! {
    #[test]
    fn a_refusal_leaves_every_counter_as_it_was(
        bursts in prop::array::uniform4(1u8..12),
        shadows in any::<[bool; 4]>(),
        pers in prop::array::uniform4(0usize..3),
        steps in prop::collection::vec((0u64..400, 0usize..4, 0usize..4, any::<bool>()), 1..200),
    ) {
        let kinds = [Per::MERCHANT, Per::BIN, Per::NOTHING];
        let rules: Vec<_> = (0..4)
            .map(|at| {
                let mut rule = rule(&at.to_string(), kinds[pers[at]], f64::from(bursts[at]));
                rule.mode = if shadows[at] { Mode::Shadow } else { Mode::Enforce };
                rule
            })
            .collect();
        let policy = policy(&rules);
        let _turn = policy.turn(0);
        let mut now = NOW;
        for (millis, card, merchant, protected) in steps {
            now = now.after(Duration::from_millis(millis));
            let card = ["", "41111111", "51000000", "51000100"][card];
            let merchant = ["", "A", "B", "C"][merchant];
            let traffic = message(card, MerchantId::new(b"123456", merchant.as_bytes()));
            let before = levels(&policy, &traffic, now);
            // What a limit loses: a token if the message goes on and the limit had one (or, in
            // debt, room for one); nothing at all if the message is refused.
            let (floor, refused, spared) = if protected {
                let charge = policy.charge(&traffic, now);
                (true, false, charge.forgiven)
            } else {
                let decision = policy.decide(&traffic, now);
                (false, decision.refused_by.is_some(), decision.shadowed)
            };
            for (limit, level) in before.iter().enumerate() {
                let ix = LimitIx(limit as u8);
                let Some(level) = *level else {
                    prop_assert!(!spared.contains(ix));
                    continue;
                };
                let least = if floor { TOKEN - i64::from(bursts[limit]) * TOKEN } else { TOKEN };
                let paid = !refused && level >= least;
                prop_assert_eq!(
                    policy.level(ix, &traffic, now),
                    Some(level - i64::from(paid) * TOKEN)
                );
                prop_assert!(refused || spared.contains(ix) != paid);
            }
        }
    }
}

//! Which limits a message meets, in which order, and by which of their keys: the policy against a
//! model that walks all rules and all keys, one after the other, and counts in whole micro-tokens.
#![allow(
    clippy::string_slice,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

use std::collections::HashMap;

use fastrand::Rng;
use tollgate::clock::Moment;
use tollgate::limits::{
    BinRange, Burst, Digests, Dimension, KeyMatch, LimitIx, LimitSet, MccRange, Mode, Per, Policy,
    Rate, Rule, RuleKey, When, rule,
};
use tollgate::traffic::{Bin, Class, LinkId, Mcc, MerchantId, Operation, TerminalId, Traffic};

const TOKEN: i64 = 1_000_000;
const CASES: u64 = 3_000;
const MESSAGES: u64 = 40;

/// Neighbours at the ends of prefixes of six, seven and eight digits, and of all numbers.
const BINS: [u32; 9] = [
    41_111_100, 41_111_109, 41_111_110, 41_111_199, 41_111_200, 41_200_000, 52_000_000, 0,
    99_999_999,
];
/// One name is both a merchant and a terminal, one merchant has two acquirers.
const PLACES: [(&str, &str); 4] = [("123456", "A"), ("654321", "A"), ("123456", "B"), ("", "A")];
const MCCS: [u16; 3] = [5_411, 5_412, 0];
const OPERATIONS: [Operation; 3] = [Operation::Purchase, Operation::Refund, Operation::Other];
const LINKS: u16 = 3;
/// The narrowest first, as an operator reads it.
const NARROWEST_FIRST: [Dimension; 6] = [
    Dimension::Terminal,
    Dimension::Merchant,
    Dimension::Bin,
    Dimension::Mcc,
    Dimension::Operation,
    Dimension::Link,
];

fn one_of<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

fn some_of<T: Copy>(rng: &mut Rng, of: &[T]) -> Vec<T> {
    of.iter().copied().filter(|_| rng.u8(..3) == 0).collect()
}

fn bin(number: u32) -> Bin {
    let digits: Vec<u8> = format!("{number:08}").bytes().map(|digit| digit - b'0').collect();
    Bin::from_digits(&digits).unwrap()
}

fn merchant(rng: &mut Rng) -> Option<MerchantId> {
    let (acquirer, name) = one_of(rng, &PLACES);
    MerchantId::new(acquirer.as_bytes(), name.as_bytes())
}

fn terminal(rng: &mut Rng) -> Option<TerminalId> {
    let (acquirer, name) = one_of(rng, &PLACES);
    TerminalId::new(acquirer.as_bytes(), name.as_bytes())
}

fn message(rng: &mut Rng) -> Traffic {
    let has = |rng: &mut Rng| rng.u8(..8) > 0;
    let class = one_of(rng, &Class::ALL);
    let mut traffic = Traffic::new(LinkId(rng.u16(..LINKS)), class, one_of(rng, &OPERATIONS));
    if has(rng) {
        traffic.bin = Some(bin(one_of(rng, &BINS)));
    }
    if has(rng) {
        traffic.merchant = merchant(rng);
    }
    if has(rng) {
        traffic.terminal = terminal(rng);
    }
    if has(rng) {
        traffic.mcc = Mcc::new(one_of(rng, &MCCS));
    }
    traffic
}

fn range(rng: &mut Rng) -> BinRange {
    let digits = rng.usize(1..=8);
    let leading = |number: u32| format!("{number:08}")[..digits].to_owned();
    let (one, other) = (one_of(rng, &BINS), one_of(rng, &BINS));
    if rng.bool() {
        return BinRange::parse(&leading(one)).unwrap();
    }
    let text = format!("{}-{}", leading(one.min(other)), leading(one.max(other)));
    BinRange::parse(&text).unwrap()
}

fn key(rng: &mut Rng, per: Per) -> KeyMatch {
    let mut matches = KeyMatch::default();
    for dimension in per.iter() {
        if rng.u8(..3) == 0 {
            continue;
        }
        match dimension {
            Dimension::Terminal => matches.terminal = terminal(rng),
            Dimension::Merchant => matches.merchant = merchant(rng),
            Dimension::Bin => matches.bin = Some(range(rng)),
            Dimension::Mcc => matches.mcc = Mcc::new(one_of(rng, &MCCS)),
            Dimension::Operation => matches.operation = Some(one_of(rng, &OPERATIONS)),
            Dimension::Link => matches.link = Some(LinkId(rng.u16(..LINKS))),
        }
    }
    matches
}

/// Whole tokens a second, so that a bucket's level is whole at every millisecond.
fn amounts(rng: &mut Rng) -> (Rate, Burst) {
    let burst = f64::from(rng.u32(1..5)) + f64::from(rng.u32(..4)) / 4.0;
    (Rate::per_second(f64::from(rng.u32(1..4))).unwrap(), Burst::tokens(burst).unwrap())
}

fn when(rng: &mut Rng) -> When {
    let sometimes = |rng: &mut Rng| rng.u8(..5) == 0;
    let mut when = When::default();
    if sometimes(rng) {
        when.links = some_of(rng, &[LinkId(0), LinkId(1), LinkId(2)]);
    }
    if sometimes(rng) {
        when.classes = some_of(rng, &Class::ALL);
    }
    if sometimes(rng) {
        when.operations = some_of(rng, &OPERATIONS);
    }
    if sometimes(rng) {
        let (one, other) = (one_of(rng, &MCCS), one_of(rng, &MCCS));
        let end = |number: u16| Mcc::new(number).unwrap();
        when.mccs = vec![MccRange { first: end(one.min(other)), last: end(one.max(other)) }];
    }
    when
}

fn rules(rng: &mut Rng) -> Vec<Rule> {
    let rule = |rng: &mut Rng, name: usize| {
        let per = Per::of(&some_of(rng, &Dimension::ALL));
        let (rate, burst) = amounts(rng);
        let mut rule = Rule::new(&format!("limit-{name}"), per, rate, burst);
        rule.mode = match rng.u8(..8) {
            0 => Mode::Off,
            1 | 2 => Mode::Shadow,
            _ => Mode::Enforce,
        };
        rule.when = when(rng);
        rule.bin_digits = rng.u8(6..=8);
        rule.keys_max = 256;
        for _ in 0..rng.u8(..10) {
            let (rate, burst) = amounts(rng);
            rule.keys.push(RuleKey {
                matches: key(rng, per),
                rate,
                burst,
                peak: None,
                floor: None,
            });
            // What a configuration could not hold is not asked for either.
            if !rule::faults(std::slice::from_ref(&rule)).is_empty() {
                rule.keys.pop();
            }
        }
        rule
    };
    let count = if rng.u8(..8) == 0 { rng.usize(5..=16) } else { rng.usize(1..5) };
    (0..count).map(|name| rule(rng, name)).collect()
}

/// Whose bucket it is, within one limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Whose {
    Named(usize),
    Automatic(Vec<String>),
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    level: i64,
    at_ms: i64,
}

/// The same limits, without any cleverness.
struct Model<'a> {
    rules: &'a [Rule],
    buckets: HashMap<(usize, Whose), Bucket>,
}

impl Model<'_> {
    /// The limits that apply, the narrowest first and otherwise in their order.
    fn applying(&self, traffic: &Traffic) -> Vec<usize> {
        let mut places: Vec<usize> =
            (0..self.rules.len()).filter(|place| applies(&self.rules[*place], traffic)).collect();
        places.sort_by_key(|place| std::cmp::Reverse(narrowness(self.rules[*place].per)));
        places
    }

    fn whose(&self, place: usize, traffic: &Traffic) -> Whose {
        let rule = &self.rules[place];
        let fitting = rule.keys.iter().enumerate().filter(|(_, key)| fits(&key.matches, traffic));
        let best = fitting.max_by_key(|(_, key)| {
            let per = key.matches.per();
            let width = key.matches.bin.map_or(0, |bin| bin.last - bin.first);
            (per.iter().count(), narrowness(per), std::cmp::Reverse(width))
        });
        best.map_or_else(
            || Whose::Automatic(rule.per.iter().map(|one| value(rule, one, traffic)).collect()),
            |(at, _)| Whose::Named(at),
        )
    }

    /// The bucket filled up to a moment, and its rate and burst.
    fn bucket(&mut self, place: usize, traffic: &Traffic, now_ms: i64) -> (&mut Bucket, i64) {
        let whose = self.whose(place, traffic);
        let rule = &self.rules[place];
        let (rate, burst) = match whose {
            Whose::Named(at) => (rule.keys[at].rate, rule.keys[at].burst),
            Whose::Automatic(_) => (rule.rate, rule.burst),
        };
        let per_ms = (rate.pico_per_second() / 1_000_000_000) as i64;
        let full = Bucket { level: burst.micro(), at_ms: now_ms };
        let bucket = self.buckets.entry((place, whose)).or_insert(full);
        bucket.level = (bucket.level + per_ms * (now_ms - bucket.at_ms)).min(burst.micro());
        bucket.at_ms = now_ms;
        (bucket, burst.micro())
    }

    fn decide(&mut self, traffic: &Traffic, now_ms: i64) -> (Option<LimitIx>, LimitSet) {
        let mut shadowed = LimitSet::EMPTY;
        let mut taken = Vec::new();
        for place in self.applying(traffic) {
            let (bucket, _) = self.bucket(place, traffic, now_ms);
            if bucket.level >= TOKEN {
                bucket.level -= TOKEN;
                taken.push(place);
            } else if self.rules[place].mode == Mode::Enforce {
                for place in taken {
                    self.bucket(place, traffic, now_ms).0.level += TOKEN;
                }
                return (Some(limit(place)), shadowed);
            } else {
                shadowed.insert(limit(place));
            }
        }
        (None, shadowed)
    }

    fn charge(&mut self, traffic: &Traffic, now_ms: i64) -> LimitSet {
        let mut forgiven = LimitSet::EMPTY;
        for place in self.applying(traffic) {
            let (bucket, burst) = self.bucket(place, traffic, now_ms);
            if bucket.level - TOKEN >= -burst {
                bucket.level -= TOKEN;
            } else {
                forgiven.insert(limit(place));
            }
        }
        forgiven
    }

    fn level(&mut self, place: usize, traffic: &Traffic, now_ms: i64) -> Option<i64> {
        let applies = applies(&self.rules[place], traffic);
        applies.then(|| self.bucket(place, traffic, now_ms).0.level)
    }
}

fn limit(place: usize) -> LimitIx {
    LimitIx(u8::try_from(place).unwrap())
}

/// Which of the dimensions are there: what has the narrower one comes behind what lacks it.
fn narrowness(per: Per) -> [bool; 6] {
    NARROWEST_FIRST.map(|dimension| per.has(dimension))
}

fn applies(rule: &Rule, traffic: &Traffic) -> bool {
    let When { links, classes, operations, mccs } = &rule.when;
    let in_category = |mcc| mccs.iter().any(|range| range.first <= mcc && mcc <= range.last);
    rule.mode != Mode::Off
        && (links.is_empty() || links.contains(&traffic.link))
        && (classes.is_empty() || classes.contains(&traffic.class))
        && (operations.is_empty() || operations.contains(&traffic.operation))
        && (mccs.is_empty() || traffic.mcc.is_some_and(in_category))
        && (!rule.per.has(Dimension::Bin) || traffic.bin.is_some())
        && (!rule.per.has(Dimension::Merchant) || traffic.merchant.is_some())
        && (!rule.per.has(Dimension::Terminal) || traffic.terminal.is_some())
        && (!rule.per.has(Dimension::Mcc) || traffic.mcc.is_some())
}

fn fits(key: &KeyMatch, traffic: &Traffic) -> bool {
    let in_range = |range: BinRange| {
        traffic.bin.is_some_and(|bin| (range.first..=range.last).contains(&bin.number()))
    };
    key.terminal.is_none_or(|named| traffic.terminal == Some(named))
        && key.merchant.is_none_or(|named| traffic.merchant == Some(named))
        && key.bin.is_none_or(in_range)
        && key.mcc.is_none_or(|named| traffic.mcc == Some(named))
        && key.operation.is_none_or(|named| traffic.operation == named)
        && key.link.is_none_or(|named| traffic.link == named)
}

fn value(rule: &Rule, dimension: Dimension, traffic: &Traffic) -> String {
    match dimension {
        Dimension::Terminal => traffic.terminal.unwrap().to_string(),
        Dimension::Merchant => traffic.merchant.unwrap().to_string(),
        Dimension::Bin => format!("{:08}", traffic.bin.unwrap().number())
            [..usize::from(rule.bin_digits)]
            .to_owned(),
        Dimension::Mcc => traffic.mcc.unwrap().to_string(),
        Dimension::Operation => traffic.operation.name().to_owned(),
        Dimension::Link => format!("link-{}", traffic.link.0),
    }
}

fn links() -> Vec<String> {
    (0..LINKS).map(|link| format!("link-{link}")).collect()
}

#[test]
fn the_policy_decides_like_a_model_that_walks_all_rules_and_all_keys() {
    let (mut refused, mut shadowed, mut forgiven, mut named) = (0, 0, 0, 0);
    for seed in 0..CASES {
        let mut rng = Rng::with_seed(seed);
        let rules = rules(&mut rng);
        assert_eq!(rule::faults(&rules), [], "seed {seed}");
        let policy = Policy::new(&rules, &links(), 1, rng.u64(..), Moment::START).unwrap();
        let policy = policy.looking_ahead_from(0);
        let mut model = Model { rules: &rules, buckets: HashMap::new() };
        // Few messages that come again and again, so that buckets run empty.
        let known: Vec<Traffic> = (0..rng.usize(1..8)).map(|_| message(&mut rng)).collect();
        let mut now_ms = 0_u32;
        for step in 0..MESSAGES {
            let traffic =
                if rng.u8(..4) == 0 { message(&mut rng) } else { one_of(&mut rng, &known) };
            now_ms += one_of(&mut rng, &[0, 0, 0, 1, 250, 1_000]);
            let now = Moment::from_nanos(u64::from(now_ms) * 1_000_000);
            let case = || format!("seed {seed}, message {step}: {traffic:?} before {rules:#?}");
            let turn = policy.turn(0);
            let mut digests = Digests::none();
            if rng.bool() {
                policy.look_ahead(&traffic, &mut digests);
                policy.fetch(&digests);
            }
            if traffic.class == Class::Protected {
                let charged = policy.charge_with(&traffic, &mut digests, now).forgiven;
                assert_eq!(charged, model.charge(&traffic, now_ms.into()), "{}", case());
                forgiven += charged.len();
            } else {
                let decision = policy.decide_with(&traffic, &mut digests, now);
                let expected = model.decide(&traffic, now_ms.into());
                assert_eq!((decision.refused_by, decision.shadowed), expected, "{}", case());
                refused += usize::from(decision.refused_by.is_some());
                shadowed += decision.shadowed.len();
            }
            drop(turn);
            if rng.u8(..4) == 0 {
                policy.sweep(now, 16);
            }
            for place in 0..rules.len() {
                let level = policy.level(limit(place), &traffic, now);
                let expected = model.level(place, &traffic, now_ms.into());
                assert_eq!(level, expected, "limit {place}, {}", case());
                named += usize::from(
                    expected.is_some() && matches!(model.whose(place, &traffic), Whose::Named(_)),
                );
            }
        }
    }
    let met = [refused, shadowed, forgiven, named];
    assert!(met.iter().all(|met| *met > 5_000), "too little happened: {met:?}");
}

/// Two messages of one limit have one bucket, one name and one mark, or two of each.
#[test]
fn a_key_has_one_name_and_one_mark_and_no_other_key_has_them() {
    let (mut same, mut different) = (0, 0);
    for seed in 0..CASES {
        let mut rng = Rng::with_seed(seed);
        let rules = rules(&mut rng);
        let policy = Policy::new(&rules, &links(), 1, rng.u64(..), Moment::START).unwrap();
        let model = Model { rules: &rules, buckets: HashMap::new() };
        for _ in 0..MESSAGES {
            let (one, mut other) = (message(&mut rng), message(&mut rng));
            if rng.bool() {
                other = Traffic { bin: other.bin, ..one };
            }
            for (place, rule) in rules.iter().enumerate() {
                if rule.per.is_nothing() || !applies(rule, &one) || !applies(rule, &other) {
                    continue;
                }
                let is_same = model.whose(place, &one) == model.whose(place, &other);
                let of = |traffic| {
                    let name = policy.key_name(limit(place), traffic);
                    (name.unwrap(), policy.key_mark(limit(place), traffic).unwrap())
                };
                let (one_of, other_of) = (of(&one), of(&other));
                let case = || format!("seed {seed}, limit {place}: {one:?}, {other:?}, {rule:#?}");
                assert_eq!(one_of.1 == other_of.1, is_same, "{}", case());
                let both_automatic = [&one, &other]
                    .iter()
                    .all(|traffic| matches!(model.whose(place, traffic), Whose::Automatic(_)));
                if is_same || both_automatic {
                    assert_eq!(one_of.0 == other_of.0, is_same, "{one_of:?}, {}", case());
                }
                *(if is_same { &mut same } else { &mut different }) += 1;
            }
        }
    }
    assert!(same > 5_000 && different > 5_000, "{same} and {different}");
}

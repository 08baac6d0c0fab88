//! Peaks, floors and reserves: what a policy makes of them, beside a model that is as plain as can be.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use tollgate::clock::Moment;
use tollgate::limits::{
    Amount, BinRange, Bucket, Burst, KeyMatch, LimitIx, Mode, OnLoss, Per, Policy, Rate, Reserve,
    Rule, RuleKey, Share, Standing, Terms,
};
use tollgate::traffic::{Bin, Class, LinkId, MerchantId, Operation, Traffic};

const TOKEN: i128 = 1_000_000;
/// Rates are whole tokens per 1.024 s and moments multiples of 1.024 ms, so that a millisecond step
/// refills whole micro-tokens and the model needs no rounding.
const STEP_NS: u64 = 1_000_000;

fn amount(rate: f64, burst: f64) -> Amount {
    Amount { rate: Rate::per_second(rate).unwrap(), burst: Burst::tokens(burst).unwrap() }
}

fn merchant(number: usize) -> MerchantId {
    MerchantId::new(b"123456", format!("SHOP{number}").as_bytes()).unwrap()
}

fn message(shop: usize, bin: u8, class: Class) -> Traffic {
    Traffic {
        merchant: Some(merchant(shop)),
        bin: Bin::from_digits(&[4, 1, 1, 1, 1, bin, 0, 0]),
        ..Traffic::new(LinkId(0), class, Operation::Purchase)
    }
}

/// A bucket of whole micro-tokens.
#[derive(Clone, Copy)]
struct Model {
    /// Micro-tokens per millisecond.
    per_ms: i128,
    cap: i128,
    level: i128,
    at_ms: u64,
}

impl Model {
    fn full(amount: Amount, at_ms: u64) -> Self {
        let per_ms = i128::from(amount.rate.pico_per_second()) / 1_000_000_000;
        let cap = i128::from(amount.burst.micro());
        Self { per_ms, cap, level: cap, at_ms }
    }

    fn refill(&mut self, now_ms: u64) {
        let refill = self.per_ms * i128::from(now_ms - self.at_ms);
        (self.level, self.at_ms) = (self.cap.min(self.level + refill), now_ms);
    }
}

/// Limit, part (0 floor, 1 rate, 2 peak), and key: a named one by its place, or the values.
type Key = (usize, u8, Option<usize>, String);

/// What the rules say, bucket by bucket.
struct Reference<'a> {
    rules: &'a [Rule],
    buckets: BTreeMap<Key, Model>,
}

impl Reference<'_> {
    /// The bucket of a part that a message meets, refilled.
    fn meet(&mut self, limit: usize, part: u8, traffic: &Traffic, now_ms: u64) -> Option<Key> {
        let rule = &self.rules[limit];
        let named = rule.keys.iter().position(|key| key.matches.merchant == traffic.merchant);
        let values = match (named, rule.per) {
            (None, Per::MERCHANT) => traffic.merchant.unwrap().to_string(),
            (None, Per::BIN) => traffic.bin.unwrap().prefix(6).to_string(),
            _ => String::new(),
        };
        let key = named.map(|place| &rule.keys[place]);
        let amount = match part {
            0 => key.map_or(rule.floor, |key| key.floor),
            1 => Some(key.map_or(rule.amount(), RuleKey::amount)),
            _ => key.map_or(rule.peak, |key| key.peak),
        }?;
        let at = (limit, part, named, values);
        self.buckets.entry(at.clone()).or_insert_with(|| Model::full(amount, 0)).refill(now_ms);
        Some(at)
    }

    /// Takes a token that leaves so much, and notes it.
    fn take(&mut self, key: &Key, reserve: f64, spent: &mut Vec<Key>) -> bool {
        let bucket = self.buckets.get_mut(key).unwrap();
        let kept = (bucket.cap as f64 * reserve).round() as i128;
        let granted = bucket.level >= TOKEN + kept.min(bucket.cap - TOKEN);
        if granted {
            bucket.level -= TOKEN;
            spent.push(key.clone());
        }
        granted
    }

    fn charge(&mut self, key: &Key, spent: &mut Vec<Key>) {
        let bucket = self.buckets.get_mut(key).unwrap();
        if bucket.level - TOKEN >= -bucket.cap {
            bucket.level -= TOKEN;
            spent.push(key.clone());
        }
    }

    fn undo(&mut self, spent: Vec<Key>) {
        for key in spent {
            self.buckets.get_mut(&key).unwrap().level += TOKEN;
        }
    }

    /// The limit that refuses, and the shadow limits that would.
    fn decide(&mut self, traffic: &Traffic, now_ms: u64) -> (Option<usize>, Vec<usize>) {
        // Narrowest first: merchant, BIN, everything.
        let mut order: Vec<usize> = (0..self.rules.len()).collect();
        order.sort_by_key(|limit| std::cmp::Reverse(self.rules[*limit].per));
        let (mut spent, mut exempt, mut all) = (Vec::new(), Vec::new(), false);
        for of_named in [true, false] {
            for limit in &order {
                let Some(key) = self.meet(*limit, 0, traffic, now_ms) else { continue };
                let settles = key.2.is_some() && self.rules[*limit].mode == Mode::Enforce;
                if !all && settles == of_named && self.take(&key, 0.0, &mut spent) {
                    exempt.push(*limit);
                    all |= settles;
                }
            }
        }
        let mut shadowed = Vec::new();
        for limit in order {
            let rule = &self.rules[limit];
            let (enforces, reserve) = (rule.mode == Mode::Enforce, rule.reserve.of(traffic.class));
            let before = spent.len();
            for part in [1, 2] {
                let Some(key) = self.meet(limit, part, traffic, now_ms) else { continue };
                if all || exempt.contains(&limit) {
                    self.charge(&key, &mut spent);
                } else if !self.take(&key, reserve.get(), &mut spent) {
                    if enforces {
                        self.undo(spent);
                        return (Some(limit), shadowed);
                    }
                    // What it would refuse it does not spend for.
                    let own = spent.split_off(before);
                    self.undo(own);
                    shadowed.push(limit);
                    break;
                }
            }
        }
        shadowed.sort_unstable();
        (None, shadowed)
    }

    fn charge_all(&mut self, traffic: &Traffic, now_ms: u64) {
        for limit in 0..self.rules.len() {
            for part in [1, 2] {
                if let Some(key) = self.meet(limit, part, traffic, now_ms) {
                    self.charge(&key, &mut Vec::new());
                }
            }
        }
    }
}

fn some_amount(rng: &mut Rng, most: f64) -> Amount {
    amount(f64::from(rng.u32(1..=most as u32)), f64::from(rng.u32(1..12)))
}

fn some_rule(rng: &mut Rng, name: &str, per: Per) -> Rule {
    let own = some_amount(rng, 50.0);
    let own = Amount { rate: Rate::per_second(60.0).unwrap(), ..own };
    let maybe = |rng: &mut Rng| rng.bool().then(|| some_amount(rng, 50.0));
    let shares = [0.0, 0.25, 0.5, 1.0];
    let share = |rng: &mut Rng| Share::of(shares[rng.usize(..4)]).unwrap();
    let reserve = Reserve { standard: share(rng), sheddable: share(rng) };
    let mut rule = Rule::new(name, per, own.rate, own.burst);
    (rule.peak, rule.floor, rule.reserve) = (maybe(rng), maybe(rng), reserve);
    rule.mode = if rng.u8(..4) == 0 { Mode::Shadow } else { Mode::Enforce };
    if per == Per::MERCHANT {
        let Amount { rate, burst } = Amount { rate: own.rate, ..some_amount(rng, 50.0) };
        let (peak, floor) = (maybe(rng), maybe(rng));
        let matches = KeyMatch::of_merchant(merchant(0));
        rule.keys.push(RuleKey { matches, rate, burst, peak, floor });
    }
    rule
}

fn bucket(policy: &Policy, limit: usize, traffic: &Traffic, now: Moment) -> Bucket {
    match policy.bucket(LimitIx(limit as u8), traffic, now) {
        Some(Standing::Applies(bucket)) => bucket,
        other => panic!("every limit applies to every message: {other:?}"),
    }
}

/// What the policy shows of a bucket, as the model has it; the cell cuts less than a micro-token.
fn compare(level: i64, model: &Model, seed: u64) {
    let apart = i128::from(level) - model.level;
    assert!(apart.abs() <= 2, "seed {seed}: {level} instead of {}", model.level);
}

#[test]
fn a_policy_decides_as_the_plain_model_on_two_hundred_thousand_messages() {
    let (mut refused, mut shadowed, mut passed) = (0, 0, 0);
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let pers = [("all", Per::NOTHING), ("merchant", Per::MERCHANT), ("bin", Per::BIN)];
        let rules = pers.map(|(name, per)| some_rule(&mut rng, name, per));
        let policy = Policy::new(&rules, &[], 1, seed, Moment::START).unwrap();
        let _turn = policy.turn(0);
        let mut model = Reference { rules: &rules, buckets: BTreeMap::new() };
        let mut now_ms = 0;
        for _ in 0..1_000 {
            now_ms += rng.u64(..30);
            let now = Moment::from_nanos(now_ms * STEP_NS);
            let classes = [Class::Critical, Class::Standard, Class::Sheddable];
            let traffic = message(rng.usize(..3), rng.u8(..2), classes[rng.usize(..3)]);
            if rng.u8(..16) == 0 {
                let protected = Traffic { class: Class::Protected, ..traffic };
                policy.charge(&protected, now);
                model.charge_all(&protected, now_ms);
            } else {
                let decision = policy.decide(&traffic, now);
                let (by, would) = model.decide(&traffic, now_ms);
                let said: Vec<_> =
                    decision.shadowed.iter().map(|limit| usize::from(limit.0)).collect();
                let refused_by = decision.refused_by.map(|limit| usize::from(limit.0));
                assert_eq!((refused_by, &said), (by, &would), "seed {seed} at {now_ms} ms");
                refused += usize::from(by.is_some());
                shadowed += would.len();
                passed += usize::from(by.is_none());
            }
            for limit in 0..rules.len() {
                let shown = bucket(&policy, limit, &traffic, now);
                let beside = [shown.floor, None, shown.peak];
                for (part, beside) in (0..).zip(beside) {
                    let Some(key) = model.meet(limit, part, &traffic, now_ms) else { continue };
                    let level = if part == 1 { shown.level } else { beside.unwrap().level };
                    compare(level, &model.buckets[&key], seed);
                }
            }
        }
    }
    assert!(
        refused > 20_000 && passed > 50_000 && shadowed > 5_000,
        "{refused} {passed} {shadowed}"
    );
}

#[test]
fn a_large_burst_is_spent_at_the_peak_and_then_at_the_rate() {
    let mut rule =
        Rule::new("m", Per::MERCHANT, amount(25.0, 250.0).rate, amount(1.0, 250.0).burst);
    rule.peak = Some(amount(50.0, 50.0));
    let policy = Policy::new(&[rule], &[], 1, 1, Moment::START).unwrap();
    let _turn = policy.turn(0);
    let mut by_second = [0; 20];
    // A thousand a second: what is over is refused.
    for ms in 0..20_000_u64 {
        let now = Moment::from_nanos(ms * STEP_NS);
        let granted = policy.decide(&message(1, 1, Class::Standard), now).refused_by.is_none();
        by_second[ms as usize / 1_000] += u32::from(granted);
    }
    // The peak's own burst first, then 50 a second until 250 are spent beside the refill, then 25.
    // A burst of 50 and what refills within the second.
    assert_eq!(by_second[0], 99);
    assert!(by_second[1..7].iter().all(|count| *count == 50), "{by_second:?}");
    assert!(by_second[10..].iter().all(|count| (25..=26).contains(count)), "{by_second:?}");
}

#[test]
fn who_keeps_to_a_floor_is_never_refused_beside_one_who_does_not() {
    let mut rule =
        Rule::new("all", Per::NOTHING, amount(100.0, 1.0).rate, amount(1.0, 100.0).burst);
    let own = KeyMatch::of_merchant(merchant(0));
    let floor = Some(amount(10.0, 5.0));
    let mut merchants =
        Rule::new("m", Per::MERCHANT, amount(1_000.0, 1.0).rate, amount(1.0, 1_000.0).burst);
    let Amount { rate, burst } = amount(1_000.0, 1_000.0);
    merchants.keys.push(RuleKey { matches: own, rate, burst, peak: None, floor });
    rule.reserve = Reserve::default();
    let policy = Policy::new(&[rule, merchants], &[], 1, 1, Moment::START).unwrap();
    let _turn = policy.turn(0);
    let mut abuser = 0;
    for ms in 0..30_000_u64 {
        let now = Moment::from_nanos(ms * STEP_NS);
        abuser +=
            u32::from(policy.decide(&message(7, 1, Class::Critical), now).refused_by.is_some());
        if ms % 100 == 0 {
            let decision = policy.decide(&message(0, 1, Class::Sheddable), now);
            assert_eq!(decision.refused_by, None, "at {ms} ms");
        }
    }
    assert!(abuser > 20_000, "{abuser}");
}

#[test]
fn a_reserve_never_shuts_a_class_out_of_a_full_bucket() {
    for burst in [1.0, 1.5, 2.0, 3.0] {
        let mut rule =
            Rule::new("m", Per::MERCHANT, amount(1.0, 1.0).rate, amount(1.0, burst).burst);
        rule.reserve =
            Reserve { standard: Share::of(1.0).unwrap(), sheddable: Share::of(1.0).unwrap() };
        let policy = Policy::new(&[rule], &[], 1, 1, Moment::START).unwrap();
        let _turn = policy.turn(0);
        let sheddable = message(1, 1, Class::Sheddable);
        assert_eq!(policy.decide(&sheddable, Moment::START).refused_by, None, "{burst}");
        assert!(policy.decide(&sheddable, Moment::START).refused_by.is_some(), "{burst}");
    }
}

/// A policy whose store is lost from the beginning.
fn lost(on_loss: OnLoss) -> Policy {
    let terms = Terms { on_loss, ..Terms::default() };
    let mut rule = Rule::new("m", Per::MERCHANT, amount(1.0, 1.0).rate, amount(1.0, 3.0).burst);
    let Amount { rate, burst } = amount(1.0, 3.0);
    let floor = Some(amount(0.5, 2.0));
    let matches = KeyMatch::of_merchant(merchant(0));
    rule.keys.push(RuleKey { matches, rate, burst, peak: None, floor });
    Policy::leased(&[rule], &[], terms, 1, 1, Moment::START).unwrap()
}

#[test]
fn a_lost_store_refuses_what_no_floor_admits_where_it_shall_be_closed() {
    let (policy, now) = (lost(OnLoss::Closed), Moment::from_nanos(1_000_000));
    let _turn = policy.turn(0);
    let granted =
        |shop| policy.decide(&message(shop, 1, Class::Critical), now).refused_by.is_none();
    assert!(!granted(1));
    assert_eq!([granted(0), granted(0), granted(0)], [true, true, false], "its floor has two");
    assert!(policy.charge(&message(1, 1, Class::Protected), now).forgiven.is_empty());
    assert_eq!(bucket(&policy, 0, &message(1, 1, Class::Critical), now).level, 2_000_000);
}

#[test]
fn a_lost_store_admits_and_counts_everything_where_it_shall_be_open() {
    let (policy, now) = (lost(OnLoss::Open), Moment::from_nanos(1_000_000));
    let _turn = policy.turn(0);
    let traffic = message(1, 1, Class::Sheddable);
    assert!((0..10).all(|_| policy.decide(&traffic, now).refused_by.is_none()));
    assert_eq!(policy.leases().failed_open(), 10);
    // Charged down to a debt of one burst.
    assert_eq!(bucket(&policy, 0, &traffic, now).level, -3_000_000);
    policy.leases().renew(0, now.after(Duration::from_secs(1)), 1);
    assert!(policy.decide(&traffic, now).refused_by.is_some());
    assert_eq!(policy.leases().failed_open(), 10);
}

/// So many shards of a store.
const SHARDS: u16 = 8;
/// Of the limits of [`in_shards`].
const SHOPS: LimitIx = LimitIx(0);
const ALL: LimitIx = LimitIx(1);

/// A limit of three tokens a merchant and one of eight in all, of a store in several shards on sixteen
/// nodes.
fn in_shards(on_loss: OnLoss, all: Mode) -> Policy {
    let rule = |name, per, burst| {
        let Amount { rate, burst } = amount(0.001, burst);
        Rule::new(name, per, rate, burst)
    };
    let all = Rule { mode: all, ..rule("all", Per::NOTHING, 8.0) };
    let mut shops = rule("m", Per::MERCHANT, 3.0);
    let Amount { rate, burst } = amount(0.001, 3.0);
    let matches = KeyMatch::of_merchant(merchant(0));
    let floor = Some(amount(0.0005, 2.0));
    shops.keys.push(RuleKey { matches, rate, burst, peak: None, floor });
    let terms = Terms { on_loss, ..Terms::default() };
    let policy = Policy::leased(&[shops, all], &[], terms, 1, 1, Moment::START).unwrap();
    policy.leases().divide(SHARDS);
    policy
}

fn shard(policy: &Policy, limit: LimitIx, traffic: &Traffic) -> u16 {
    policy.store_key(limit, traffic).unwrap().shard(SHARDS)
}

/// A shop that is no named key, whose shard is another one than these.
fn shop_beside(policy: &Policy, shards: &[u16]) -> Traffic {
    let shops = (1..).map(|number| message(number, 1, Class::Critical));
    shops.into_iter().find(|shop| !shards.contains(&shard(policy, SHOPS, shop))).unwrap()
}

/// All shards are heard, but for these.
fn hear_all_but(policy: &Policy, lost: &[u16], now: Moment) {
    for heard in (0..SHARDS).filter(|shard| !lost.contains(shard)) {
        policy.leases().renew(heard, now.after(Duration::from_secs(1)), 16);
    }
    assert_eq!(usize::from(policy.leases().shards_lost(now)), lost.len());
}

fn granted(policy: &Policy, traffic: &Traffic, now: Moment, times: usize) -> usize {
    (0..times).filter(|_| policy.decide(traffic, now).refused_by.is_none()).count()
}

#[test]
fn only_keys_of_lost_shards_are_refused_where_a_lost_store_shall_be_closed() {
    let (policy, now) = (in_shards(OnLoss::Closed, Mode::Enforce), Moment::from_nanos(1_000_000));
    let _turn = policy.turn(0);
    let of_all = shard(&policy, ALL, &message(0, 1, Class::Critical));
    let leased = shop_beside(&policy, &[of_all]);
    let lost = shop_beside(&policy, &[of_all, shard(&policy, SHOPS, &leased)]);
    hear_all_but(&policy, &[shard(&policy, SHOPS, &lost)], now);
    assert_eq!(granted(&policy, &lost, now, 5), 0);
    assert_eq!(policy.decide(&lost, now).refused_by, Some(SHOPS));
    assert_eq!(granted(&policy, &leased, now, 5), 3);
    // What was refused has taken nothing of the limit of all.
    assert_eq!(bucket(&policy, 1, &leased, now).level, 5_000_000);
    assert!(policy.charge(&lost, now).forgiven.is_empty());
}

#[test]
fn a_lost_limit_of_all_closes_everything_and_gives_back_what_was_taken_before_it() {
    let now = Moment::from_nanos(1_000_000);
    for mode in [Mode::Enforce, Mode::Shadow] {
        let policy = in_shards(OnLoss::Closed, mode);
        let _turn = policy.turn(0);
        let of_all = shard(&policy, ALL, &message(0, 1, Class::Critical));
        let leased = shop_beside(&policy, &[of_all]);
        hear_all_but(&policy, &[of_all], now);
        let decision = policy.decide(&leased, now);
        if mode == Mode::Enforce {
            assert_eq!(decision.refused_by, Some(ALL));
            assert_eq!(
                (bucket(&policy, 0, &leased, now).level, policy.leases().undone()),
                (3_000_000, 1)
            );
        } else {
            assert_eq!((decision.refused_by, decision.shadowed.contains(ALL)), (None, true));
            assert_eq!(bucket(&policy, 0, &leased, now).level, 2_000_000);
            // It spends nothing for what it would refuse.
            assert_eq!(bucket(&policy, 1, &leased, now).level, 8_000_000);
        }
    }
}

#[test]
fn a_floor_exempts_from_closed_limits_whichever_shard_is_lost() {
    let now = Moment::from_nanos(1_000_000);
    let named = message(0, 1, Class::Critical);
    for lost in 0..SHARDS {
        let policy = in_shards(OnLoss::Closed, Mode::Enforce);
        let _turn = policy.turn(0);
        hear_all_but(&policy, &[lost], now);
        let shards = [SHOPS, ALL].map(|limit| shard(&policy, limit, &named));
        // Two of the floor, and then three of its rate where that has an answer.
        let most = if shards.contains(&lost) { 2 } else { 3 };
        assert_eq!(granted(&policy, &named, now, 5), most, "{lost}");
    }
}

#[test]
fn keys_of_lost_shards_are_admitted_and_charged_where_a_lost_store_shall_be_open() {
    let (policy, now) = (in_shards(OnLoss::Open, Mode::Enforce), Moment::from_nanos(1_000_000));
    let _turn = policy.turn(0);
    let of_all = shard(&policy, ALL, &message(0, 1, Class::Critical));
    let leased = shop_beside(&policy, &[of_all]);
    let lost = shop_beside(&policy, &[of_all, shard(&policy, SHOPS, &leased)]);
    hear_all_but(&policy, &[shard(&policy, SHOPS, &lost)], now);
    assert_eq!(granted(&policy, &leased, now, 5), 3);
    assert_eq!(policy.leases().failed_open(), 0);
    // Its own limit lets everything through, and that of all is leased and has five tokens left.
    assert_eq!(granted(&policy, &lost, now, 9), 5);
    assert_eq!(policy.leases().failed_open(), 5);
    assert_eq!(bucket(&policy, 0, &lost, now).level, -2_000_000);
    assert_eq!(policy.decide(&lost, now).refused_by, Some(ALL));
    assert_eq!(bucket(&policy, 0, &lost, now).level, -2_000_000);
}

#[test]
fn a_hold_counts_for_keys_whose_shard_answers_and_for_no_others() {
    let now = Moment::from_nanos(1_000_000);
    let Amount { rate, burst } = amount(0.001, 50.0);
    let rule = Rule::new("m", Per::MERCHANT, rate, burst);
    let policy = Policy::leased(&[rule], &[], Terms::default(), 1, 1, Moment::START).unwrap();
    policy.leases().divide(SHARDS);
    let _turn = policy.turn(0);
    hear_all_but(&policy, &[3], now);
    let held = [8; SHARDS as usize];
    let of = |shop: usize| message(shop, 1, Class::Critical);
    let first = |wanted| (0..).find(|shop| shard(&policy, SHOPS, &of(*shop)) == wanted).unwrap();
    let spent: Vec<_> = (0..SHARDS).map(|at| granted(&policy, &of(first(at)), now, 60)).collect();
    assert_eq!(spent[3], 50);
    assert_eq!((&spent[..3], &spent[4..]), (&held[..3], &held[4..]));
    // All are lost.
    let later = now.after(Duration::from_secs(2));
    assert_eq!(granted(&policy, &of(first(1)), later, 60), 42);
}

#[test]
fn a_store_in_shards_that_all_answer_or_none_is_one_store() {
    let mut differing = 0;
    for seed in 0..60 {
        for (heard, on_loss) in
            OnLoss::ALL.iter().flat_map(|on_loss| [(true, on_loss), (false, on_loss)])
        {
            let mut rng = Rng::with_seed(seed);
            let pers = [Per::MERCHANT, Per::BIN, Per::NOTHING];
            let rules: Vec<_> =
                pers.iter().map(|per| some_rule(&mut rng, &per.to_string(), *per)).collect();
            let terms = Terms { on_loss: *on_loss, ..Terms::default() };
            let now = Moment::from_nanos(1_000_000);
            let make = |shards| {
                let policy = Policy::leased(&rules, &[], terms, 1, 1, Moment::START).unwrap();
                policy.leases().divide(shards);
                for shard in (0..shards).filter(|_| heard) {
                    policy.leases().renew(shard, now.after(Duration::from_secs(60)), 4);
                }
                policy
            };
            let (one, several) = (make(1), make(SHARDS));
            let _turns = (one.turn(0), several.turn(0));
            let mut now = now;
            for _ in 0..300 {
                now = now.after(Duration::from_millis(rng.u64(..20)));
                let class =
                    rng.choice([Class::Critical, Class::Standard, Class::Sheddable]).unwrap();
                let traffic = message(rng.usize(..3), rng.u8(..2), class);
                let decided = one.decide(&traffic, now);
                assert_eq!(several.decide(&traffic, now), decided, "{seed} {heard} {on_loss:?}");
                differing += u32::from(decided.refused_by.is_some());
                assert_eq!(several.findings(&traffic, now), one.findings(&traffic, now));
            }
            let told = |policy: &Policy| {
                let leases = policy.leases();
                (leases.held(), leases.undone(), leases.failed_open())
            };
            assert_eq!(told(&several), told(&one));
        }
    }
    assert!(differing > 5_000, "{differing} messages were refused");
}

#[test]
fn a_bin_range_may_have_a_peak_and_its_limit_none() {
    let mut rule = Rule::new("bin", Per::BIN, amount(1.0, 1.0).rate, amount(1.0, 100.0).burst);
    let matches = KeyMatch::of_bin(BinRange::parse("411111").unwrap());
    let Amount { rate, burst } = amount(1.0, 100.0);
    rule.keys.push(RuleKey { matches, rate, burst, peak: Some(amount(1.0, 3.0)), floor: None });
    let policy = Policy::new(&[rule], &[], 1, 1, Moment::START).unwrap();
    let _turn = policy.turn(0);
    let granted = |bin| {
        let passes = |_: &u32| {
            policy.decide(&message(1, bin, Class::Standard), Moment::START).refused_by.is_none()
        };
        (0..150).filter(passes).count()
    };
    assert_eq!([granted(1), granted(2)], [3, 100]);
}

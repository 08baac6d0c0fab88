//! What can be wrong with rules that are each well made.

use std::collections::{HashMap, HashSet};

use thiserror::Error;

use super::{BinRange, KEYS_MAX, KeyMatch, Rule};
use crate::limits::limit_set::LIMITS_MAX;
use crate::traffic::Bin;

/// What is wrong with a rule among the others, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{fault}")]
pub struct RuleFault {
    /// Index of the rule.
    pub rule: usize,
    /// Index of the named key in it, if it is a key's fault.
    pub key: Option<usize>,
    /// What is wrong.
    pub fault: Fault,
}

/// What may be wrong with a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// More limits than a set of them can hold.
    #[error("there are at most {LIMITS_MAX} limits")]
    Limits,
    /// Another rule has this name.
    #[error("another limit has the same name")]
    SameName,
    /// `bin_digits` is out of range.
    #[error("bin_digits is 6, 7 or 8")]
    BinDigits,
    /// `keys_max` is out of range.
    #[error("keys_max is from 1 to {KEYS_MAX}")]
    KeysMax,
    /// A floor that reaches the rate of its limit or key.
    #[error("the rate of the floor is not below that of the limit")]
    HighFloor,
    /// A key that names nothing: it would be for every message.
    #[error("the key names no dimension")]
    NoKey,
    /// A key that names a dimension which its limit does not have.
    #[error("the limit is not kept per such a key")]
    OtherKey,
    /// A range that is empty or reaches beyond eight digits.
    #[error("the bin range is empty or has more than 8 digits")]
    NoRange,
    /// This key has an entry already.
    #[error("the key has an entry already")]
    SameKey,
    /// This range is as wide as another and shares numbers with it.
    #[error("the bin range meets another of the same width, so neither is the narrower one")]
    SameWidth,
}

/// Everything that is wrong with `rules`, in their order; empty when a policy can be made of them.
pub fn faults(rules: &[Rule]) -> Vec<RuleFault> {
    let mut found = Vec::new();
    let mut names = HashSet::new();
    for (rule, asked) in rules.iter().enumerate() {
        let mut say = |key, fault| found.push(RuleFault { rule, key, fault });
        if rule >= LIMITS_MAX {
            say(None, Fault::Limits);
        }
        if !names.insert(asked.name.as_str()) {
            say(None, Fault::SameName);
        }
        if !(6..=8).contains(&asked.bin_digits) {
            say(None, Fault::BinDigits);
        }
        if !(1..=KEYS_MAX).contains(&asked.keys_max) {
            say(None, Fault::KeysMax);
        }
        if asked.floor.is_some_and(|floor| floor.rate >= asked.rate) {
            say(None, Fault::HighFloor);
        }
        key_faults(asked, |key, fault| say(Some(key), fault));
    }
    found
}

/// First and last BIN of a key.
type Range = (u32, u32, usize);

fn key_faults(rule: &Rule, mut say: impl FnMut(usize, Fault)) {
    let mut without_bin = HashSet::new();
    // Ranges meet where the rest of their keys is the same.
    let mut by_width: HashMap<(KeyMatch, u32), Vec<Range>> = HashMap::new();
    for (at, key) in rule.keys.iter().enumerate() {
        if key.floor.is_some_and(|floor| floor.rate >= key.rate) {
            say(at, Fault::HighFloor);
        }
        let per = key.matches.per();
        if per.is_nothing() {
            say(at, Fault::NoKey);
        } else if !per.is_within(rule.per) {
            say(at, Fault::OtherKey);
        } else if let Some(BinRange { first, last }) = key.matches.bin {
            if first > last || last >= 10u32.pow(Bin::DIGITS as u32) {
                say(at, Fault::NoRange);
            } else {
                let rest = KeyMatch { bin: None, ..key.matches };
                by_width.entry((rest, last - first)).or_default().push((first, last, at));
            }
        } else if !without_bin.insert(key.matches) {
            say(at, Fault::SameKey);
        }
    }
    for ranges in by_width.values_mut() {
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            if let [(one, last, at), (first, _, other)] = pair
                && first <= last
            {
                let fault = if one == first { Fault::SameKey } else { Fault::SameWidth };
                say(*at.max(other), fault);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::per::{Dimension, Per};
    use crate::limits::rule::{Burst, Rate, RuleKey};
    use crate::traffic::{MerchantId, Operation};

    fn rule(name: &str, per: Per, keys: &[KeyMatch]) -> Rule {
        let (rate, burst) = (Rate::per_second(1.0).unwrap(), Burst::tokens(1.0).unwrap());
        let keys = keys
            .iter()
            .map(|key| RuleKey { matches: *key, rate, burst, peak: None, floor: None })
            .collect();
        Rule { keys, ..Rule::new(name, per, rate, burst) }
    }

    fn bin(text: &str) -> KeyMatch {
        KeyMatch::of_bin(BinRange::parse(text).unwrap())
    }

    fn said(rules: &[Rule]) -> Vec<(usize, Option<usize>, Fault)> {
        faults(rules).into_iter().map(|said| (said.rule, said.key, said.fault)).collect()
    }

    #[test]
    fn every_fault_is_said_at_its_place() {
        let shop = KeyMatch::of_merchant(MerchantId::new(b"1", b"SHOP").unwrap());
        let bins = [bin("41"), bin("411111"), bin("411100-411199"), bin("411150-411249"), shop];
        let mut bad = rule("bin", Per::BIN, &bins);
        bad.bin_digits = 5;
        bad.keys_max = 0;
        let rules = [
            bad,
            rule("bin", Per::MERCHANT, &[shop, shop]),
            rule("all", Per::NOTHING, &[shop, KeyMatch::default()]),
            rule("twice", Per::BIN, &[bin("41"), bin("410000-419999")]),
        ];
        assert_eq!(
            said(&rules),
            [
                (0, None, Fault::BinDigits),
                (0, None, Fault::KeysMax),
                (0, Some(4), Fault::OtherKey),
                (0, Some(3), Fault::SameWidth),
                (1, None, Fault::SameName),
                (1, Some(1), Fault::SameKey),
                (2, Some(0), Fault::OtherKey),
                (2, Some(1), Fault::NoKey),
                (3, Some(1), Fault::SameKey),
            ]
        );
    }

    #[test]
    fn ranges_meet_only_where_the_rest_of_their_keys_is_the_same() {
        let of = |text, operation| KeyMatch { operation: Some(operation), ..bin(text) };
        let per = Per::of(&[Dimension::Bin, Dimension::Operation]);
        let keys = [of("41", Operation::Cash), of("41", Operation::Refund), bin("41")];
        assert_eq!(said(&[rule("several", per, &keys)]), []);
        let keys = [of("41", Operation::Cash), of("41", Operation::Cash)];
        assert_eq!(said(&[rule("several", per, &keys)]), [(0, Some(1), Fault::SameKey)]);
    }

    #[test]
    fn a_seventeenth_limit_is_one_too_many() {
        let rules: Vec<_> = (0..17).map(|n| rule(&format!("n{n}"), Per::NOTHING, &[])).collect();
        assert_eq!(said(&rules), [(16, None, Fault::Limits)]);
    }
}

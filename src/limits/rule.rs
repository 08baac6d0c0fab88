//! Rules: what an operator may ask of a limit, in types that hold only what makes sense.
//!
//! Amounts are checked when they are made and keys when they are read; what can only be seen by
//! looking at the rules together is said by [`faults`], all of it at once. Nothing here is on the
//! message path.

use std::collections::{HashMap, HashSet};

use thiserror::Error;

use super::policy::LIMITS_MAX;
use crate::traffic::{Bin, MerchantId};

/// Fastest refill, in tokens per second: a hundred times what one core can carry.
pub const RATE_MAX: f64 = 10_000_000.0;
/// Slowest refill: one token a day.
pub const RATE_MIN: f64 = 1.0 / 86_400.0;
/// Largest burst, in tokens.
pub const BURST_MAX: f64 = 1_000_000_000.0;
/// Most automatic keys of one limit; their table would take about a gigabyte.
pub const KEYS_MAX: usize = 1 << 24;
/// `keys_max` of a rule that does not say.
pub const KEYS_DEFAULT: usize = 100_000;

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it is called in answers to operators, and by the store.
    pub name: String,
    /// What has a bucket of its own.
    pub per: Per,
    /// Refill of a key that has no entry in `keys`.
    pub rate: Rate,
    /// Burst of a key that has no entry in `keys`.
    pub burst: Burst,
    /// Whether it refuses.
    pub mode: Mode,
    /// Leading digits of the card number that make a BIN without an entry in `keys`: 6 to 8.
    pub bin_digits: u8,
    /// Automatic keys, at most; beyond that they share the overflow buckets.
    pub keys_max: usize,
    /// Keys with a rate, a burst and a bucket of their own.
    pub keys: Vec<RuleKey>,
}

/// What has a bucket of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Per {
    /// Each issuer's number. A message without a card number is not limited.
    Bin,
    /// Each acquirer's each card acceptor. A message that names none is not limited.
    Merchant,
    /// One bucket for everything.
    All,
}

/// Whether a limit refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// It does.
    Enforce,
    /// It counts, and says what it would have refused.
    Shadow,
    /// It is not asked.
    Off,
}

/// A key that is named in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleKey {
    /// Which messages it is for.
    pub matches: KeyMatch,
    /// Refill of its bucket.
    pub rate: Rate,
    /// Size of its bucket.
    pub burst: Burst,
}

/// Which messages a named key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMatch {
    /// Card numbers whose first eight digits lie in `first..=last`. Of several ranges the narrowest
    /// wins, so of several prefixes the longest.
    BinRange {
        /// Lowest eight digits.
        first: u32,
        /// Highest eight digits.
        last: u32,
    },
    /// One merchant.
    Merchant(MerchantId),
}

/// Tokens per second, from one a day to ten million a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    /// Pico-tokens: the fastest still fits, and one an hour is right to nine digits.
    pico_per_second: u64,
}

impl Rate {
    /// A rate in tokens per second; fractions are welcome.
    pub fn per_second(tokens: f64) -> Result<Self, AmountError> {
        if (RATE_MIN..=RATE_MAX).contains(&tokens) {
            Ok(Self { pico_per_second: (tokens * 1e12).round() as u64 })
        } else {
            Err(AmountError::Rate)
        }
    }

    /// In pico-tokens per second, exactly.
    pub const fn pico_per_second(self) -> u64 {
        self.pico_per_second
    }
}

/// Tokens of a full bucket, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Burst {
    micro: i64,
}

impl Burst {
    /// A burst in tokens; parts of a token count to the millionth.
    pub fn tokens(tokens: f64) -> Result<Self, AmountError> {
        if (1.0..=BURST_MAX).contains(&tokens) {
            Ok(Self { micro: (tokens * 1e6).round() as i64 })
        } else {
            Err(AmountError::Burst)
        }
    }

    /// The burst of a rule that names none: what `rate` gives in a second, at least one token.
    pub fn of_rate(rate: Rate) -> Self {
        let micro = i64::try_from(rate.pico_per_second / 1_000_000).unwrap_or(i64::MAX);
        Self { micro: micro.max(1_000_000) }
    }

    /// In micro-tokens.
    pub const fn micro(self) -> i64 {
        self.micro
    }
}

/// A rate or a burst that no bucket can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AmountError {
    /// The rate is out of range.
    #[error("a rate is from one token a day (0.0000116) to 10000000 tokens per second")]
    Rate,
    /// The burst is out of range.
    #[error("a burst is from 1 to 1000000000 tokens")]
    Burst,
}

impl KeyMatch {
    /// Reads a prefix of one to eight digits, or a range of two of equal length: `411111`,
    /// `400000-409999`.
    pub fn parse_bin(text: &str) -> Result<Self, KeyError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let ((first, span), (last, last_span)) = (bin_prefix(first)?, bin_prefix(last)?);
        if span != last_span {
            return Err(KeyError::Lengths);
        }
        if first > last {
            return Err(KeyError::Backwards);
        }
        Ok(Self::BinRange { first: first * span, last: last * span + (span - 1) })
    }
}

/// A prefix's number, and how many eight-digit numbers begin with it.
fn bin_prefix(text: &str) -> Result<(u32, u32), KeyError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(KeyError::Digits);
    }
    let open = Bin::DIGITS.checked_sub(text.len()).ok_or(KeyError::Long)?;
    let number = text.bytes().fold(0, |number, byte| number * 10 + u32::from(byte - b'0'));
    Ok((number, (0..open).fold(1, |span, _| span * 10)))
}

/// A `bin` of a named key that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// Something else than digits, or nothing.
    #[error("a bin is digits like \"411111\" or a range like \"400000-409999\"")]
    Digits,
    /// More digits than a BIN has.
    #[error("a bin has at most 8 digits")]
    Long,
    /// A range from one length to another.
    #[error("both ends of a bin range have the same number of digits")]
    Lengths,
    /// A range from high to low.
    #[error("a bin range goes from the lower to the higher number")]
    Backwards,
}

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
    /// A merchant in a limit per BIN, or any key where there is one bucket only.
    #[error("the limit is not kept per such a key")]
    OtherKey,
    /// A range that is empty or reaches beyond eight digits.
    #[error("the bin range is empty or has more than 8 digits")]
    NoRange,
    /// This merchant has an entry already.
    #[error("the merchant has an entry already")]
    SameMerchant,
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
        key_faults(asked, |key, fault| say(Some(key), fault));
    }
    found
}

fn key_faults(rule: &Rule, mut say: impl FnMut(usize, Fault)) {
    let mut merchants = HashSet::new();
    let mut by_width: HashMap<u32, Vec<(u32, u32, usize)>> = HashMap::new();
    for (at, key) in rule.keys.iter().enumerate() {
        match (rule.per, key.matches) {
            (Per::Merchant, KeyMatch::Merchant(merchant)) => {
                if !merchants.insert(merchant) {
                    say(at, Fault::SameMerchant);
                }
            }
            (Per::Bin, KeyMatch::BinRange { first, last }) => {
                if first > last || last >= 10u32.pow(Bin::DIGITS as u32) {
                    say(at, Fault::NoRange);
                } else {
                    by_width.entry(last - first).or_default().push((first, last, at));
                }
            }
            _ => say(at, Fault::OtherKey),
        }
    }
    for ranges in by_width.values_mut() {
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            if let [(_, last, one), (first, _, other)] = pair
                && first <= last
            {
                say(*one.max(other), Fault::SameWidth);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, per: Per, keys: &[KeyMatch]) -> Rule {
        let (rate, burst) = (Rate::per_second(1.0).unwrap(), Burst::tokens(1.0).unwrap());
        let keys = keys.iter().map(|key| RuleKey { matches: *key, rate, burst }).collect();
        let (mode, keys_max) = (Mode::Enforce, KEYS_DEFAULT);
        Rule { name: name.to_owned(), per, rate, burst, mode, bin_digits: 6, keys_max, keys }
    }

    fn said(rules: &[Rule]) -> Vec<(usize, Option<usize>, Fault)> {
        faults(rules).into_iter().map(|said| (said.rule, said.key, said.fault)).collect()
    }

    #[test]
    fn amounts_keep_to_their_ranges_and_are_exact() {
        assert_eq!(Rate::per_second(10_000_000.0).unwrap().pico_per_second(), 10u64.pow(19));
        assert_eq!(Rate::per_second(1.0 / 3_600.0).unwrap().pico_per_second(), 277_777_778);
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-6, 10_000_000.1] {
            assert_eq!(Rate::per_second(rate), Err(AmountError::Rate));
        }
        assert_eq!(Burst::tokens(1.5).unwrap().micro(), 1_500_000);
        for burst in [0.0, 0.999, f64::NAN, 2e9] {
            assert_eq!(Burst::tokens(burst), Err(AmountError::Burst));
        }
        let default_of = |rate| Burst::of_rate(Rate::per_second(rate).unwrap()).micro();
        assert_eq!((default_of(2.5), default_of(0.1)), (2_500_000, 1_000_000));
    }

    #[test]
    fn bins_are_prefixes_or_ranges_of_equal_length() {
        let range = |first, last| Ok(KeyMatch::BinRange { first, last });
        assert_eq!(KeyMatch::parse_bin("411111"), range(41_111_100, 41_111_199));
        assert_eq!(KeyMatch::parse_bin("4"), range(40_000_000, 49_999_999));
        assert_eq!(KeyMatch::parse_bin("04111112"), range(4_111_112, 4_111_112));
        assert_eq!(KeyMatch::parse_bin("400000-409999"), range(40_000_000, 40_999_999));
        for (text, error) in [
            ("", KeyError::Digits),
            ("4x", KeyError::Digits),
            ("400000-", KeyError::Digits),
            ("1-2-3", KeyError::Digits),
            ("411111111", KeyError::Long),
            ("400000-40999", KeyError::Lengths),
            ("409999-400000", KeyError::Backwards),
        ] {
            assert_eq!(KeyMatch::parse_bin(text), Err(error), "{text}");
        }
    }

    #[test]
    fn every_fault_is_said_at_its_place() {
        let bin = |text| KeyMatch::parse_bin(text).unwrap();
        let shop = KeyMatch::Merchant(MerchantId::new(b"1", b"SHOP").unwrap());
        let bins = [bin("41"), bin("411111"), bin("411100-411199"), bin("411150-411249"), shop];
        let mut bad = rule("bin", Per::Bin, &bins);
        bad.bin_digits = 5;
        bad.keys_max = 0;
        let rules =
            [bad, rule("bin", Per::Merchant, &[shop, shop]), rule("all", Per::All, &[shop])];
        assert_eq!(
            said(&rules),
            [
                (0, None, Fault::BinDigits),
                (0, None, Fault::KeysMax),
                (0, Some(4), Fault::OtherKey),
                (0, Some(3), Fault::SameWidth),
                (1, None, Fault::SameName),
                (1, Some(1), Fault::SameMerchant),
                (2, Some(0), Fault::OtherKey),
            ]
        );
    }

    #[test]
    fn a_seventeenth_limit_is_one_too_many() {
        let rules: Vec<_> = (0..17).map(|n| rule(&format!("n{n}"), Per::All, &[])).collect();
        assert_eq!(said(&rules), [(16, None, Fault::Limits)]);
    }
}

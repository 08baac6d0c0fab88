//! Rules: what an operator may ask of a limit, in types that hold only what makes sense.
//!
//! Amounts are checked when they are made and keys when they are read; what can only be seen by
//! looking at the rules together is said by [`faults`], all of it at once. Nothing here is on the
//! message path.

mod amount;
mod fault;

pub use amount::{Amount, AmountError, BURST_MAX, Burst, RATE_MAX, RATE_MIN, Rate, Share};
pub use fault::{Fault, RuleFault, faults};

use thiserror::Error;

use super::lease::Hold;
use super::per::{Dimension, Per};
use crate::traffic::{Bin, Class, LinkId, Mcc, MerchantId, Operation, TerminalId};

/// Most automatic keys of one limit; their table would take about a gigabyte.
pub const KEYS_MAX: usize = 1 << 24;
/// `keys_max` of a rule that does not say.
pub const KEYS_DEFAULT: usize = 100_000;
/// `bin_digits` of a rule that does not say: the issuer's number of a card that was issued before
/// there were longer ones; a longer one would part what still belongs together.
pub const BIN_DIGITS_DEFAULT: u8 = 6;

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it is called in answers to operators, and by the store.
    pub name: String,
    /// What has a bucket of its own. A message that lacks one of the dimensions is not limited.
    pub per: Per,
    /// Refill of a key that has no entry in `keys`.
    pub rate: Rate,
    /// Burst of a key that has no entry in `keys`.
    pub burst: Burst,
    /// A second bucket of such a key, which has to have a token as well.
    pub peak: Option<Amount>,
    /// What such a key may always have: a message that keeps to it is not refused by this limit.
    pub floor: Option<Amount>,
    /// What each class leaves of a bucket.
    pub reserve: Reserve,
    /// Whether it refuses.
    pub mode: Mode,
    /// Which messages it is for.
    pub when: When,
    /// Leading digits of the card number that make a BIN without an entry in `keys`: 6 to 8.
    pub bin_digits: u8,
    /// Automatic keys, at most; beyond that they share the overflow buckets.
    pub keys_max: usize,
    /// How much of a bucket one node may spend before the quota store hears of it.
    pub hold: Hold,
    /// Keys with a rate, a burst and a bucket of their own.
    pub keys: Vec<RuleKey>,
}

impl Rule {
    /// A limit that is enforced on every message, with no key of its own, no reserve and defaults for
    /// the rest.
    pub fn new(name: &str, per: Per, rate: Rate, burst: Burst) -> Self {
        Self {
            name: name.to_owned(),
            per,
            rate,
            burst,
            peak: None,
            floor: None,
            reserve: Reserve::NONE,
            mode: Mode::Enforce,
            when: When::default(),
            bin_digits: BIN_DIGITS_DEFAULT,
            keys_max: KEYS_DEFAULT,
            hold: Hold::default(),
            keys: Vec::new(),
        }
    }
}

impl Rule {
    /// Rate and burst of a key that has no entry in `keys`.
    pub const fn amount(&self) -> Amount {
        Amount { rate: self.rate, burst: self.burst }
    }
}

/// The parts of a burst that requests of a class leave to others. What is critical or protected
/// leaves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Left by standard requests.
    pub standard: Share,
    /// Left by sheddable ones.
    pub sheddable: Share,
}

impl Reserve {
    /// Every class may have the last token.
    pub const NONE: Self = Self { standard: Share::NONE, sheddable: Share::NONE };

    /// What requests of a class leave.
    #[inline]
    pub const fn of(self, class: Class) -> Share {
        match class {
            Class::Protected | Class::Critical => Share::NONE,
            Class::Standard => self.standard,
            Class::Sheddable => self.sheddable,
        }
    }
}

impl Default for Reserve {
    /// The last quarter is not for sheddable requests.
    fn default() -> Self {
        Self { standard: Share::NONE, sheddable: Share::QUARTER }
    }
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

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Enforce, Self::Shadow, Self::Off];

    /// The name in configuration and answers to operators.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
            Self::Off => "off",
        }
    }
}

/// Which messages a limit is for: those that fit each list that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// Links that it is for.
    pub links: Vec<LinkId>,
    /// Classes that it is for.
    pub classes: Vec<Class>,
    /// Operations that it is for.
    pub operations: Vec<Operation>,
    /// Merchant categories that it is for. A message without a category fits none.
    pub mccs: Vec<MccRange>,
}

/// Merchant categories from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MccRange {
    /// The lowest.
    pub first: Mcc,
    /// The highest.
    pub last: Mcc,
}

impl MccRange {
    /// Whether a limit for these categories, of which none means all, is for this one.
    #[inline]
    pub(super) fn include(ranges: &[Self], mcc: Option<Mcc>) -> bool {
        let listed = |mcc| ranges.iter().any(|range| (range.first..=range.last).contains(&mcc));
        ranges.is_empty() || mcc.is_some_and(listed)
    }
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
    /// Its second bucket.
    pub peak: Option<Amount>,
    /// What it may always have: a message that keeps to it is refused by no limit.
    pub floor: Option<Amount>,
}

impl RuleKey {
    /// Rate and burst of its bucket.
    pub const fn amount(&self) -> Amount {
        Amount { rate: self.rate, burst: self.burst }
    }
}

/// Which messages a named key is for: those that fit all that it names. One key is one bucket,
/// whatever it leaves open.
///
/// Of several keys that fit, the one that names more dimensions wins; of as many, the one that names
/// the narrower ones; and of BIN ranges the narrowest, so of prefixes the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyMatch {
    /// One terminal.
    pub terminal: Option<TerminalId>,
    /// One merchant.
    pub merchant: Option<MerchantId>,
    /// Cards of one range.
    pub bin: Option<BinRange>,
    /// One merchant category.
    pub mcc: Option<Mcc>,
    /// One operation.
    pub operation: Option<Operation>,
    /// One link.
    pub link: Option<LinkId>,
}

impl KeyMatch {
    /// Cards of one range.
    pub fn of_bin(range: BinRange) -> Self {
        Self { bin: Some(range), ..Self::default() }
    }

    /// One merchant.
    pub fn of_merchant(merchant: MerchantId) -> Self {
        Self { merchant: Some(merchant), ..Self::default() }
    }

    /// The dimensions that it names.
    pub fn per(&self) -> Per {
        let named = [
            (Dimension::Terminal, self.terminal.is_some()),
            (Dimension::Merchant, self.merchant.is_some()),
            (Dimension::Bin, self.bin.is_some()),
            (Dimension::Mcc, self.mcc.is_some()),
            (Dimension::Operation, self.operation.is_some()),
            (Dimension::Link, self.link.is_some()),
        ];
        let named = named.into_iter().filter(|(_, is_named)| *is_named);
        named.fold(Per::NOTHING, |per, (dimension, _)| per.and(Per::of(&[dimension])))
    }
}

/// Card numbers whose first eight digits lie in `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BinRange {
    /// Lowest eight digits.
    pub first: u32,
    /// Highest eight digits.
    pub last: u32,
}

impl BinRange {
    /// Reads a prefix of one to eight digits, or a range of two of equal length: `411111`,
    /// `400000-409999`.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let ((first, span), (last, last_span)) = (bin_prefix(first)?, bin_prefix(last)?);
        if span != last_span {
            return Err(KeyError::Lengths);
        }
        if first > last {
            return Err(KeyError::Backwards);
        }
        Ok(Self { first: first * span, last: last * span + (span - 1) })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_prefixes_or_ranges_of_equal_length() {
        let range = |first, last| Ok(BinRange { first, last });
        assert_eq!(BinRange::parse("411111"), range(41_111_100, 41_111_199));
        assert_eq!(BinRange::parse("4"), range(40_000_000, 49_999_999));
        assert_eq!(BinRange::parse("04111112"), range(4_111_112, 4_111_112));
        assert_eq!(BinRange::parse("400000-409999"), range(40_000_000, 40_999_999));
        for (text, error) in [
            ("", KeyError::Digits),
            ("4x", KeyError::Digits),
            ("400000-", KeyError::Digits),
            ("1-2-3", KeyError::Digits),
            ("411111111", KeyError::Long),
            ("400000-40999", KeyError::Lengths),
            ("409999-400000", KeyError::Backwards),
        ] {
            assert_eq!(BinRange::parse(text), Err(error), "{text}");
        }
    }
}

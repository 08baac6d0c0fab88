//! The vocabulary that the codec and the limiter share: what a limiter needs to know of a message.
//!
//! Plain values and no behaviour of either side: who reads them from a message is `gate`, who
//! spends tokens on them is `limits`. Nothing here holds a card number.

mod operation;
mod place;
mod text;

pub use operation::{Class, Classes, Operation, Operations};
pub use place::{Mcc, MerchantId, TerminalId};
pub use text::Text;

/// The leading eight digits of a card number, of which an issuer's number is the first six to eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bin(u32);

impl Bin {
    /// How many digits it holds.
    pub const DIGITS: usize = 8;

    /// From a card number's digits (values 0 to 9); `None` when there are fewer than eight.
    pub fn from_digits(digits: &[u8]) -> Option<Self> {
        let leading = digits.get(..Self::DIGITS)?;
        Some(Self(leading.iter().fold(0, |value, digit| value * 10 + u32::from(*digit % 10))))
    }

    /// All eight digits as a number below 100,000,000.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The first `digits` digits (at most eight) as a number.
    pub const fn prefix(self, digits: u8) -> u32 {
        let dropped = (Self::DIGITS as u32).saturating_sub(digits as u32);
        self.0 / 10u32.pow(dropped)
    }
}

/// A link, by its place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u16);

/// What the limiter needs to know of one message. What no limit asks for may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The link it came in on.
    pub link: LinkId,
    /// How gladly it is refused.
    pub class: Class,
    /// What it does.
    pub operation: Operation,
    /// The issuer's number, if a card number was found.
    pub bin: Option<Bin>,
    /// The merchant, if the message names one.
    pub merchant: Option<MerchantId>,
    /// The terminal, if the message names one.
    pub terminal: Option<TerminalId>,
    /// What the merchant sells, if the message says so.
    pub mcc: Option<Mcc>,
}

impl Traffic {
    /// A message of which nothing more is known.
    pub const fn new(link: LinkId, class: Class, operation: Operation) -> Self {
        Self { link, class, operation, bin: None, merchant: None, terminal: None, mcc: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_needs_eight_digits_and_gives_any_shorter_prefix() {
        let bin = Bin::from_digits(&[4, 1, 1, 1, 1, 2, 3, 4, 9, 9]).unwrap();
        assert_eq!(bin.number(), 41_111_234);
        assert_eq!(bin.prefix(6), 411_112);
        assert_eq!(bin.prefix(8), 41_111_234);
        assert_eq!(bin.prefix(1), 4);
        assert_eq!(Bin::from_digits(&[4, 1, 1, 1, 1, 1, 1]), None);
    }
}

//! The vocabulary that the codec and the limiter share: what a limiter needs to know of a message.
//!
//! Plain values and no behaviour of either side: who reads them from a message is `gate`, who
//! spends tokens on them is `limits`. Nothing here holds a card number.

use std::fmt;

/// How gladly a message is refused when tokens run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Class {
    /// Never refused: advices, reversals, network management and all else that tollgate may not
    /// answer itself. It is charged, down to a debt of one burst.
    #[default]
    Protected,
    /// Refused last: money on its way to a cardholder, where a 91 may be taken as "outcome unknown".
    Critical,
    /// Ordinary requests.
    Standard,
    /// Refused first: inquiries, which a terminal repeats at no harm.
    Sheddable,
}

impl Class {
    /// Every class, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Protected, Self::Critical, Self::Standard, Self::Sheddable];

    /// The name in configuration, logs and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Protected => "protected",
            Self::Critical => "critical",
            Self::Standard => "standard",
            Self::Sheddable => "sheddable",
        }
    }
}

/// What a transaction does, from the first two digits of its processing code (DE3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// 00: goods and services.
    Purchase,
    /// 01, 17: cash.
    Cash,
    /// 09: goods and services with cash back.
    Cashback,
    /// 20: refund.
    Refund,
    /// 21 to 29: deposit, credit to a card.
    Credit,
    /// 30 to 39: balance and other inquiries.
    Inquiry,
    /// 40 to 49: transfer between accounts.
    Transfer,
    /// 50 to 59: payment.
    Payment,
    /// Everything else, and a message without DE3.
    Other,
}

impl Operation {
    /// The operation of a processing code that begins with `leading`, 0 to 99.
    pub const fn from_processing_code(leading: u8) -> Self {
        match leading {
            0 => Self::Purchase,
            1 | 17 => Self::Cash,
            9 => Self::Cashback,
            20 => Self::Refund,
            21..=29 => Self::Credit,
            30..=39 => Self::Inquiry,
            40..=49 => Self::Transfer,
            50..=59 => Self::Payment,
            _ => Self::Other,
        }
    }

    /// The class of an answerable request that does this.
    pub const fn class(self) -> Class {
        match self {
            Self::Refund | Self::Credit => Class::Critical,
            Self::Inquiry => Class::Sheddable,
            _ => Class::Standard,
        }
    }
}

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

/// A merchant: acquirer (DE32) and card acceptor (DE42) together, as DE42 alone repeats from one
/// acquirer to the next. Trailing blanks and NULs, with which peers fill a fixed field, do not matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MerchantId {
    name: Text<48>,
}

impl MerchantId {
    /// The merchant of these two fields in ASCII; `None` when the card acceptor is blank or absent.
    pub fn new(acquirer: &[u8], acceptor: &[u8]) -> Option<Self> {
        let acceptor = trimmed(acceptor);
        if acceptor.is_empty() {
            return None;
        }
        let mut name = Text::new();
        name.push_all(trimmed(acquirer));
        name.push(b':');
        name.push_all(acceptor);
        Some(Self { name })
    }

    /// `acquirer:acceptor`. An acquirer is digits, so the first colon parts the two.
    pub fn name(&self) -> &[u8] {
        self.name.as_bytes()
    }
}

/// Without the blanks and NULs at its end.
const fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., 0 | b' ' | b'\t' | b'\n' | b'\x0c' | b'\r'] = text {
        text = rest;
    }
    text
}

impl fmt::Debug for MerchantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MerchantId({})", self.name)
    }
}

/// A link, by its place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u16);

/// What the limiter needs to know of one message.
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
}

/// At most `N` bytes of a field's text, without a heap allocation; what is longer is cut.
///
/// It prints letters, digits and a few marks, and a `.` for every other byte, so that a peer cannot
/// write control characters into a log.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    /// No text.
    pub const fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    /// The first `N` bytes of `text`.
    pub fn cut(text: &[u8]) -> Self {
        let mut this = Self::new();
        this.push_all(text);
        this
    }

    /// Appends one byte, unless full.
    pub fn push(&mut self, byte: u8) {
        if let Some(free) = self.bytes.get_mut(self.len) {
            *free = byte;
            self.len += 1;
        }
    }

    /// Appends bytes until full.
    pub fn push_all(&mut self, text: &[u8]) {
        for byte in text {
            self.push(*byte);
        }
    }

    /// The bytes, as they came.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.as_bytes() {
            let shown = match byte {
                b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b' ' | b':' | b'-' | b'_' => *byte,
                _ => b'.',
            };
            write!(f, "{}", char::from(shown))?;
        }
        Ok(())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merchant_is_its_acquirer_and_its_acceptor_without_what_fills_their_ends() {
        let merchant = |acquirer: &str, acceptor: &str| {
            MerchantId::new(acquirer.as_bytes(), acceptor.as_bytes())
        };
        assert_eq!(merchant("123456", "SHOP0001       "), merchant("123456", "SHOP0001"));
        assert_ne!(merchant("123456", "SHOP0001"), merchant("123457", "SHOP0001"));
        assert_ne!(merchant("", "SHOP0001"), merchant("123456", "SHOP0001"));
        assert_eq!(merchant("123456\0", "SHOP0001\0 \0\0"), merchant("123456", "SHOP0001"));
        assert_ne!(merchant("123456", "\0SHOP0001"), merchant("123456", "SHOP0001"));
        assert_eq!(merchant("123456", "               "), None);
        assert_eq!(merchant("123456", "\0\0 \0"), None);
    }

    #[test]
    fn a_bin_needs_eight_digits_and_gives_any_shorter_prefix() {
        let bin = Bin::from_digits(&[4, 1, 1, 1, 1, 2, 3, 4, 9, 9]).unwrap();
        assert_eq!(bin.number(), 41_111_234);
        assert_eq!(bin.prefix(6), 411_112);
        assert_eq!(bin.prefix(8), 41_111_234);
        assert_eq!(bin.prefix(1), 4);
        assert_eq!(Bin::from_digits(&[4, 1, 1, 1, 1, 1, 1]), None);
    }

    #[test]
    fn text_is_cut_and_prints_no_control_characters() {
        assert_eq!(Text::<4>::cut(b"12\n456").to_string(), "12.4");
    }
}

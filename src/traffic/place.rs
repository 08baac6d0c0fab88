//! Where a card is used: merchant, terminal, category.

use std::fmt;

use super::text::Text;

/// A merchant: acquirer (DE32) and card acceptor (DE42) together, as DE42 alone repeats from one
/// acquirer to the next. Trailing blanks and NULs, with which peers fill a fixed field, do not matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MerchantId {
    name: Text<48>,
}

impl MerchantId {
    /// The merchant of these two fields in ASCII; `None` when the card acceptor is blank or absent.
    pub fn new(acquirer: &[u8], acceptor: &[u8]) -> Option<Self> {
        Some(Self { name: of_acquirer(acquirer, acceptor)? })
    }

    /// `acquirer:acceptor`. An acquirer is digits, so the first colon parts the two.
    pub fn name(&self) -> &[u8] {
        self.name.as_bytes()
    }
}

impl fmt::Display for MerchantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl fmt::Debug for MerchantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MerchantId({})", self.name)
    }
}

/// A terminal: acquirer (DE32) and terminal number (DE41) together, as acquirers number theirs each
/// for itself. Trailing blanks and NULs do not matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TerminalId {
    name: Text<28>,
}

impl TerminalId {
    /// The terminal of these two fields in ASCII; `None` when its number is blank or absent.
    pub fn new(acquirer: &[u8], terminal: &[u8]) -> Option<Self> {
        Some(Self { name: of_acquirer(acquirer, terminal)? })
    }

    /// `acquirer:terminal`. An acquirer is digits, so the first colon parts the two.
    pub fn name(&self) -> &[u8] {
        self.name.as_bytes()
    }
}

impl fmt::Display for TerminalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl fmt::Debug for TerminalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TerminalId({})", self.name)
    }
}

/// `acquirer:id`, each without what fills its end; `None` when the id is blank.
fn of_acquirer<const N: usize>(acquirer: &[u8], id: &[u8]) -> Option<Text<N>> {
    let id = trimmed(id);
    if id.is_empty() {
        return None;
    }
    let mut name = Text::new();
    name.push_all(trimmed(acquirer));
    name.push(b':');
    name.push_all(id);
    Some(name)
}

/// Without the blanks and NULs at its end.
const fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., 0 | b' ' | b'\t' | b'\n' | b'\x0c' | b'\r'] = text {
        text = rest;
    }
    text
}

/// What a merchant sells (ISO 18245): four digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mcc(u16);

impl Mcc {
    /// From its number, 0 to 9999.
    pub const fn new(number: u16) -> Option<Self> {
        if number < 10_000 { Some(Self(number)) } else { None }
    }

    /// From four digits in ASCII.
    pub fn from_ascii(text: &[u8]) -> Option<Self> {
        let digits: [u8; 4] = text.try_into().ok()?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit & 15));
        Some(Self(number))
    }

    /// Its number, below 10,000.
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Mcc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}", self.0)
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
    fn terminals_are_told_apart_by_acquirer_and_whole_up_to_sixteen_characters() {
        let terminal =
            |acquirer: &str, number: &str| TerminalId::new(acquirer.as_bytes(), number.as_bytes());
        assert_eq!(terminal("12345678901", "T1  "), terminal("12345678901", "T1"));
        assert_ne!(terminal("1", "T1"), terminal("2", "T1"));
        let longest = |last: char| terminal("12345678901", &format!("T12345678901234{last}"));
        assert_ne!(longest('1'), longest('2'));
        assert_eq!(terminal("1", " "), None);
    }

    #[test]
    fn a_category_is_four_digits() {
        assert_eq!(Mcc::from_ascii(b"0742").map(|mcc| mcc.to_string()), Some("0742".to_owned()));
        assert_eq!(Mcc::from_ascii(b"0742"), Mcc::new(742));
        for text in [b"742".as_slice(), b"07421", b"07 2", b"074x", b""] {
            assert_eq!(Mcc::from_ascii(text), None);
        }
        assert_eq!(Mcc::new(10_000), None);
    }
}

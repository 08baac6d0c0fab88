//! The card number: the one type that may hold it, how it is printed, and how it is compared.
//!
//! A [`Pan`] prints as its first six and last four digits, nowhere as itself (PCI DSS 3.4.1), and
//! is compared and indexed by a [`CardHash`] keyed afresh in each process. It implements no
//! serialisation, and no other module builds text from its digits.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::traffic::Bin;

/// Longest card number, in digits (ISO/IEC 7812-1).
pub const PAN_DIGITS_MAX: usize = 19;

/// Shortest number of a payment card, in digits.
pub const CARD_DIGITS_MIN: usize = 13;

/// A card number's digits, in the order in which they are embossed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pan {
    digits: [u8; PAN_DIGITS_MAX],
    len: usize,
}

impl Pan {
    /// Takes digits as ASCII characters, in order. `None` when there are none, more than
    /// [`PAN_DIGITS_MAX`], or when one is not a digit: that is some other field, not a card number.
    /// Every message's number is read by it, so it looks at all of them at once.
    pub fn from_text(digits: &[u8]) -> Option<Self> {
        let mut pan = Self { digits: [0; PAN_DIGITS_MAX], len: digits.len() };
        let mut is_number = !digits.is_empty();
        for (digit, character) in pan.digits.get_mut(..digits.len())?.iter_mut().zip(digits) {
            *digit = character.wrapping_sub(b'0');
            is_number &= *digit <= 9;
        }
        is_number.then_some(pan)
    }

    /// The issuer's identification number, or `None` when the number is too short to have one.
    pub fn bin(&self) -> Option<Bin> {
        Bin::from_digits(self.digits())
    }

    /// Whether its digits are odd in number, so that two a byte leave a place to fill.
    pub const fn is_odd(&self) -> bool {
        self.len & 1 == 1
    }

    /// Whether the last digit is the check digit of the others (ISO/IEC 7812-1, annex B).
    pub fn passes_luhn(&self) -> bool {
        // From the right, every second digit is doubled and its own digits added.
        const DOUBLED: [u8; 10] = [0, 2, 4, 6, 8, 1, 3, 5, 7, 9];
        let sum: u32 = (0..)
            .zip(self.digits().iter().rev())
            .map(|(place, digit)| {
                let doubled = DOUBLED.get(usize::from(*digit)).copied().unwrap_or(0);
                u32::from(if place & 1 == 1 { doubled } else { *digit })
            })
            .sum();
        sum.is_multiple_of(10)
    }

    /// What stands for this card inside this process; another process has another `key`.
    pub fn hash(&self, key: CardHashKey) -> CardHash {
        let mut hasher = SipHasher13::new_with_keys(key.0, key.1);
        hasher.write(self.digits());
        CardHash(hasher.finish())
    }

    fn digits(&self) -> &[u8] {
        self.digits.get(..self.len).unwrap_or_default()
    }
}

/// Whether these ASCII digits can be the number of a payment card: 13 to 19 of them, of which the
/// last is the check digit of the others.
pub fn is_card_number(digits: &[u8]) -> bool {
    digits.len() >= CARD_DIGITS_MIN && Pan::from_text(digits).is_some_and(|pan| pan.passes_luhn())
}

/// Whether such a number stands anywhere in a text, with other digits before or behind it.
pub fn holds_card_number(text: &[u8]) -> bool {
    // No scheme's number begins with 0, and a row of zeros has the right check digit.
    let begins = |run: &[u8]| run.first() != Some(&b'0');
    (CARD_DIGITS_MIN..=PAN_DIGITS_MAX)
        .any(|digits| text.windows(digits).any(|run| begins(run) && is_card_number(run)))
}

/// First six and last four digits; all but the last digit of a number too short to hide anything.
impl fmt::Display for Pan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clear_head = if self.len >= 13 { 6 } else { 0 };
        let clear_tail = if self.len >= 13 { 4 } else { 1 };
        for (at, digit) in self.digits().iter().enumerate() {
            if at < clear_head || at + clear_tail >= self.len {
                write!(f, "{digit}")?;
            } else {
                f.write_str("*")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Pan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The secret that [`Pan::hash`] is keyed with; drawn at random by the process at its start.
#[derive(Clone, Copy)]
pub struct CardHashKey(u64, u64);

impl CardHashKey {
    /// A key of two random words.
    pub const fn new(first: u64, second: u64) -> Self {
        Self(first, second)
    }
}

impl fmt::Debug for CardHashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CardHashKey(..)")
    }
}

/// A card, by a keyed hash of its whole number. Never leaves the process.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CardHash(u64);

impl CardHash {
    /// The hash as a word, to be mixed into a wider fingerprint.
    pub const fn word(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for CardHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CardHash(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pan(text: &str) -> Option<Pan> {
        Pan::from_text(text.as_bytes())
    }

    #[test]
    fn a_card_number_prints_six_and_four_and_never_more() {
        assert_eq!(pan("4111111111111111").unwrap().to_string(), "411111******1111");
        assert_eq!(format!("{:?}", pan("4111111111111").unwrap()), "411111***1111");
        assert_eq!(pan("411111111111").unwrap().to_string(), "***********1");
    }

    #[test]
    fn what_is_no_card_number_is_refused() {
        assert!(pan("").is_none());
        assert!(pan("41111111111111111111").is_none());
        assert!(pan("4111=1111").is_none());
    }

    #[test]
    fn the_check_digit_is_checked() {
        for card in ["4222222222222", "378282246310005", "4111111111111111", "6304000000000000000"]
        {
            assert!(pan(card).unwrap().passes_luhn(), "{card}");
            for other in 1..10 {
                let mut digits = card.as_bytes().to_vec();
                let last = digits.last_mut().unwrap();
                *last = b'0' + (*last - b'0' + other) % 10;
                assert!(!Pan::from_text(&digits).unwrap().passes_luhn(), "{card} + {other}");
            }
        }
    }

    #[test]
    fn a_card_number_is_found_at_any_place_of_a_text() {
        assert!(holds_card_number(b"41114111111111111111"));
        assert!(holds_card_number(b"x4222222222222x"));
        assert!(!holds_card_number(b"411111111111"));
        assert!(!holds_card_number(b"4111 1111 1111 1111"));
        assert!(!holds_card_number(b"7220000000C08200"));
    }

    #[test]
    fn a_card_hash_depends_on_every_digit_and_on_the_key() {
        let key = CardHashKey::new(1, 2);
        let hash = pan("4111111111111111").unwrap().hash(key);
        assert_eq!(hash, pan("4111111111111111").unwrap().hash(key));
        assert_ne!(hash, pan("4111111111111112").unwrap().hash(key));
        assert_ne!(hash, pan("4111111111111111").unwrap().hash(CardHashKey::new(2, 2)));
    }
}

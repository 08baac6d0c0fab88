//! Invented cards: well-known test ranges, random numbers in them, a right check digit.

use std::fmt;

use crate::pan::PAN_DIGITS_MAX;

/// A card that nobody holds.
#[derive(Clone, PartialEq, Eq)]
pub struct Card {
    digits: Vec<u8>,
}

impl Card {
    /// Digits of most cards; some ranges have fewer or more.
    const DIGITS: usize = 16;
    /// Good for long enough, as YYMM.
    pub(super) const EXPIRY: &str = "3912";

    /// A random card of a range, such as `411111`: 16 digits, of which the last is the check digit.
    /// A range of 16 digits or more is cut to 15.
    pub fn random(range: &str, rng: &mut fastrand::Rng) -> Self {
        let mut digits: Vec<u8> = range.bytes().filter(u8::is_ascii_digit).collect();
        digits.truncate(Self::DIGITS - 1);
        while digits.len() < Self::DIGITS - 1 {
            digits.push(b'0' + rng.u8(0..10));
        }
        digits.push(check_digit(&digits));
        debug_assert!(digits.len() <= PAN_DIGITS_MAX);
        Self { digits }
    }

    /// Its number, as field 2 holds it.
    pub(super) fn number(&self) -> &[u8] {
        &self.digits
    }

    /// Track 2: number, expiry, service code, and zeros for what an issuer would put there.
    pub(super) fn track_2(&self) -> Vec<u8> {
        let mut track = self.digits.clone();
        track.push(b'=');
        track.extend(Self::EXPIRY.bytes().chain(*b"2010000000000"));
        track
    }
}

/// An invented card is no secret, but whoever sees its number in a log cannot know that.
impl fmt::Debug for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Card(..)")
    }
}

/// The last digit by Luhn's formula (ISO/IEC 7812-1, annex B).
fn check_digit(digits: &[u8]) -> u8 {
    let doubled = |digit: u8| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let values = digits.iter().rev().map(|digit| digit & 15).enumerate();
    let sum: u32 = values
        .map(|(place, digit)| u32::from(if place % 2 == 0 { doubled(digit) } else { digit }))
        .sum();
    // 0 to 9, so it fits.
    b'0' + ((10 - sum % 10) % 10) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_digit_is_that_of_well_known_test_cards() {
        for card in ["4111111111111111", "5555555555554444", "6011111111111117", "378282246310005"]
        {
            let (number, check) = card.as_bytes().split_at(card.len() - 1);
            assert_eq!(check_digit(number), check[0], "{card}");
        }
    }

    #[test]
    fn a_random_card_is_of_its_range_and_has_sixteen_digits() {
        let mut rng = fastrand::Rng::with_seed(1);
        for range in ["411111", "5", "", "12345678901234567890"] {
            let card = Card::random(range, &mut rng);
            assert_eq!(card.digits.len(), 16);
            assert!(card.digits.starts_with(&range.as_bytes()[..range.len().min(15)]));
            assert_eq!(card.track_2().len(), 16 + 1 + 17);
            assert_eq!(format!("{card:?}"), "Card(..)");
        }
    }
}

//! Invented cards: well-known test ranges, random numbers in them, a right check digit.

/// Digits of most cards; some ranges have fewer or more.
pub(super) const DIGITS: usize = 16;
/// Good for long enough, as YYMM.
pub(super) const EXPIRY: &str = "3912";

/// The values, not the characters, of a card's digits. It has no `Debug`: an invented card is no
/// secret, but whoever sees its number in a log cannot know that.
pub(super) type Digits = [u8; DIGITS];

/// Cards that begin alike. Drawing one costs some nanoseconds: whole arrays are worked on, so that
/// it is done sixteen digits at a time.
#[derive(Clone)]
pub(super) struct CardRange {
    /// The digits that all of them have, and zeros.
    first: Digits,
    /// All bits where a digit is drawn, none where it is given.
    drawn: Digits,
}

impl CardRange {
    /// The cards of a range, such as `411111`, of 16 digits each, of which the last is the check
    /// digit. A range of 16 digits or more is cut to 15.
    pub(super) fn new(range: &str) -> Self {
        let (mut first, mut drawn) = ([0; DIGITS], [0xff; DIGITS]);
        let digits = range.bytes().filter(u8::is_ascii_digit).take(DIGITS - 1);
        for ((first, drawn), digit) in first.iter_mut().zip(&mut drawn).zip(digits) {
            (*first, *drawn) = (digit & 15, 0);
        }
        drawn.iter_mut().zip(LAST).for_each(|(drawn, last)| *drawn &= !last);
        Self { first, drawn }
    }

    /// A random card of the range.
    #[inline]
    pub(super) fn draw(&self, rng: &mut fastrand::Rng) -> Digits {
        let luck = (u128::from(rng.u64(..)) << 64 | u128::from(rng.u64(..))).to_le_bytes();
        let mut digits = self.first;
        for ((digit, drawn), luck) in digits.iter_mut().zip(self.drawn).zip(luck) {
            // A tenth of a byte's values each, or one more.
            *digit |= ((u16::from(luck) * 10) >> 8) as u8 & drawn;
        }
        let check = check_digit(&digits);
        digits.iter_mut().zip(LAST).for_each(|(digit, last)| *digit |= check & last);
        digits
    }
}

/// All bits of the check digit.
const LAST: Digits = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff];

/// The last digit by Luhn's formula (ISO/IEC 7812-1, annex B), of digits of which the last is 0.
#[inline]
fn check_digit(digits: &Digits) -> u8 {
    // All bits where a digit is doubled: everywhere but at every other place from the last on.
    const DOUBLED: Digits =
        [0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0];
    let mut values = *digits;
    for (value, doubled) in values.iter_mut().zip(DOUBLED) {
        // Twice 5 counts as 1, twice 6 as 3: nine less.
        let more = value.wrapping_sub(if *value > 4 { 9 } else { 0 });
        *value = value.wrapping_add(more & doubled);
    }
    // Sixteen values of at most 9.
    let sum: u8 = values.iter().sum();
    (10 - sum % 10) % 10
}

/// Track 2 with places for the digits: number, expiry, service code, and zeros for what an issuer
/// would put there.
pub(super) fn track_2(digits: &Digits) -> String {
    let number: String = digits.iter().map(|digit| char::from(digit | b'0')).collect();
    format!("{number}={EXPIRY}2010000000000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_digit_is_that_of_well_known_test_cards() {
        for card in ["4111111111111111", "5555555555554444", "6011111111111117"] {
            let mut digits: Digits = card.as_bytes().try_into().unwrap();
            digits.iter_mut().for_each(|digit| *digit &= 15);
            let check = std::mem::take(&mut digits[15]);
            assert_eq!(check_digit(&digits), check, "{card}");
        }
    }

    #[test]
    fn a_random_card_is_of_its_range_and_every_digit_comes_up() {
        let mut rng = fastrand::Rng::with_seed(1);
        for range in ["411111", "5", "", "12345678901234567890"] {
            let cards = CardRange::new(range);
            let mut seen = [0_u16; DIGITS];
            for _ in 0..1_000 {
                let digits = cards.draw(&mut rng);
                let text: String = digits.iter().map(|digit| char::from(digit | b'0')).collect();
                assert_eq!(text.bytes().take(15).zip(range.bytes()).find(|(a, b)| a != b), None);
                assert_eq!(track_2(&digits).len(), 16 + 1 + 17);
                seen.iter_mut().zip(digits).for_each(|(seen, digit)| *seen |= 1 << digit);
            }
            let drawn = seen.iter().skip(range.len()).take(15_usize.saturating_sub(range.len()));
            assert!(drawn.into_iter().all(|seen| *seen == 0b11_1111_1111), "{range}");
        }
    }
}

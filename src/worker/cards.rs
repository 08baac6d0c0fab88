//! Whether the card numbers of a link check out, as a sign of a dialect that is wrong for it.
//!
//! A dialect that takes the padding of odd digits for the other side reads every such number one
//! place off, without any fault: limits by BIN then count what does not exist. Nearly no such number
//! has the right check digit. No card number comes here, only whether one passed.

use crate::count::Word;
use crate::gate::CardCheck;

/// The share of failures is of about so many of the last card numbers.
const WINDOW: u64 = 128;
/// A share is counted in so many parts.
const WHOLE: u64 = 1 << 32;
/// So many card numbers say something.
const NUMBERS_MIN: u64 = 64;
/// A share above this is an alarm: one in two.
const ALARM: u64 = WHOLE / 2;

/// What is counted of card numbers: those of an even number of digits, and those of an odd one.
#[derive(Debug, Default)]
pub struct Cards {
    by_length: [Numbers; 2],
}

/// Card numbers of one kind.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Those whose last digit checks the others.
    pub passed: Word,
    /// All others.
    pub failed: Word,
    /// The share of the latter, of late, in parts of [`WHOLE`].
    failing: Word,
}

impl Cards {
    /// Both kinds, each with the value of the label `digits`.
    pub fn by_length(&self) -> [(&'static str, &Numbers); 2] {
        let [even, odd] = &self.by_length;
        [("even", even), ("odd", odd)]
    }

    /// Counts one; says whether most of its kind fail.
    pub(super) fn count(&self, card: CardCheck) -> bool {
        let [even, odd] = &self.by_length;
        let numbers = if card.odd { odd } else { even };
        numbers.count(card.passes);
        numbers.seen() >= NUMBERS_MIN && numbers.failing.get() > ALARM
    }
}

impl Numbers {
    /// The share of card numbers that fail the check, 0 to 1, over about the last 128 of them.
    pub fn failing(&self) -> f64 {
        self.failing.get() as f64 / WHOLE as f64
    }

    fn seen(&self) -> u64 {
        self.passed.get().saturating_add(self.failed.get())
    }

    fn count(&self, passes: bool) {
        let (word, share) = if passes { (&self.passed, 0) } else { (&self.failed, WHOLE) };
        word.count();
        // The first few stand for all there are, a later one for one in a window.
        let weight = self.seen().clamp(1, WINDOW);
        let before = self.failing.get();
        self.failing.set(before - before / weight + share / weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(odd: bool, passes: bool) -> CardCheck {
        CardCheck { odd, passes }
    }

    #[test]
    fn the_share_of_failures_follows_the_last_card_numbers() {
        let cards = Cards::default();
        let [_, (_, odd)] = cards.by_length();
        for _ in 0..NUMBERS_MIN {
            assert!(!cards.count(card(true, true)));
        }
        assert_eq!(odd.failing(), 0.0);
        let alarms: Vec<bool> = (0..2_000).map(|_| cards.count(card(true, false))).collect();
        assert!(!alarms[10] && alarms[1_999]);
        assert!(odd.failing() > 0.99 && odd.failing() <= 1.0, "{}", odd.failing());
        (0..2_000).for_each(|_| _ = cards.count(card(true, true)));
        assert!(odd.failing() < 0.01, "{}", odd.failing());
        assert_eq!((odd.passed.get(), odd.failed.get()), (2_000 + NUMBERS_MIN, 2_000));
    }

    #[test]
    fn numbers_of_an_odd_and_of_an_even_length_are_told_apart() {
        let cards = Cards::default();
        for _ in 0..NUMBERS_MIN {
            cards.count(card(true, false));
            assert!(!cards.count(card(false, true)));
        }
        let [(_, even), (_, odd)] = cards.by_length();
        assert_eq!(even.failing(), 0.0);
        assert!(odd.failing() > 0.99, "{}", odd.failing());
        assert!(cards.count(card(true, false)));
        assert!(!cards.count(card(false, true)));
    }

    #[test]
    fn a_few_failures_are_no_alarm() {
        let cards = Cards::default();
        assert!((1..NUMBERS_MIN).all(|_| !cards.count(card(true, false))));
        assert!(cards.count(card(true, false)));
    }
}

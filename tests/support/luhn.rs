//! The check digit of card numbers (ISO/IEC 7812-1, annex B), worked out by the tests themselves.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use fastrand::Rng;

/// Whether the last of these ASCII digits is the check digit of those before it.
pub(crate) fn passes(digits: &[u8]) -> bool {
    let doubled = |(place, digit): (usize, &u8)| match u32::from(digit - b'0') << (place % 2) {
        two @ 10.. => two - 9,
        one => one,
    };
    digits.iter().rev().enumerate().map(doubled).sum::<u32>().is_multiple_of(10)
}

/// A made-up card number of so many digits with its check digit.
pub(crate) fn card_number(digits: usize, rng: &mut Rng) -> String {
    let head: String = "4".chars().chain((2..digits).map(|_| rng.digit(10))).collect();
    let numbers = (0..10).map(|check| format!("{head}{check}"));
    numbers.into_iter().find(|number| passes(number.as_bytes())).expect("a check digit")
}

//! What may be shown of a field: a list of what may be, never of what may not (PCI DSS 3.3, 3.4.1).
//!
//! A card number shows its first six and last four digits. A field of the list shows its value, but
//! no run of digits as long as a card number. Everything else shows nothing.
//!
//! In a message with a fault a field may hold what belongs to another, and a card number may lie
//! across two of them. So there a value shows no more than nine digits in a row, counted on from
//! the field before it, unless something in the message proves that its fields are what they seem.

use crate::iso8583::{FieldSet, View};
use crate::pan::{Pan, is_card_number};

/// The fields whose values may be shown; field 0 is the MTI, which is no field of a bitmap.
const SHOWN: FieldSet = FieldSet::of(&[3, 4, 7, 11, 12, 18, 32, 37, 39, 41, 42, 49, 70]);

const CARD_NUMBER: u8 = 2;
const SENT_AT: u8 = 7;

/// Fields up to here are of fixed length in all dialects but for the first and the last two, so
/// that one of them that is right proves the place of the others.
const ANCHORED_TO: u8 = 33;

/// The shortest run of digits that is cut as if it were a card number.
const CARD_RUN: usize = 13;
/// The shortest number that is shown as a card number.
const PAN_DIGITS_MIN: usize = 8;

/// The longest value that is shown: fields of the list are shorter in every dialect.
const VALUE_MAX: usize = 99;

/// How many digits in a row are shown of what may be anything.
const RUN_MAX_OF_UNPROVEN: usize = 9;
/// What is left of a longer run at its beginning.
const HEAD: usize = 6;
/// What is left of it at its end, where the field is what it seems.
const TAIL: usize = 4;

/// What may be shown of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// All of it; what does not print is a dot.
    Clear(String),
    /// Part of it, with stars in place of the rest.
    Cut(String),
    /// Nothing.
    Hidden,
}

/// Decides field by field, in the order of the message.
pub(super) struct Showing {
    /// The message has a fault.
    faulty: bool,
    /// Whether the fields before [`ANCHORED_TO`] are known to be where they should.
    anchored: bool,
    /// How many digits stand directly before the next field.
    run: usize,
}

impl Showing {
    pub(super) fn new(view: &View<'_>) -> Self {
        Self { faulty: view.fault().is_some(), anchored: is_anchored(view), run: 0 }
    }

    /// What may be shown of a field; asked once for each, in their order.
    pub(super) fn field(&mut self, view: &View<'_>, de: u8) -> Shown {
        let before = self.run;
        // One more than is shown tells a longer value.
        let text = view.text::<{ VALUE_MAX + 1 }>(de).unwrap_or_default();
        let text = text.as_bytes();
        let digits_at_end = text.iter().rev().take_while(|byte| is_of_run(**byte)).count();
        self.run = match digits_at_end == text.len() {
            true => before.saturating_add(digits_at_end),
            false => digits_at_end,
        };
        if de == CARD_NUMBER {
            return self.card_number(text);
        }
        if !SHOWN.contains(de) || text.len() > VALUE_MAX {
            return Shown::Hidden;
        }
        if !self.faulty {
            return cut(text, 0, CARD_RUN, TAIL, u8::is_ascii_digit);
        }
        if !text.iter().all(|byte| prints(*byte)) {
            return Shown::Hidden;
        }
        let before = if self.anchored && de < ANCHORED_TO { 0 } else { before };
        cut(text, before, RUN_MAX_OF_UNPROVEN.saturating_add(1), 0, |byte| is_of_run(*byte))
    }

    fn card_number(&self, text: &[u8]) -> Shown {
        let shown = Pan::from_text(text).filter(|pan| {
            text.len() >= PAN_DIGITS_MIN && (!self.faulty || self.anchored && pan.passes_luhn())
        });
        shown.map_or(Shown::Hidden, |pan| Shown::Cut(pan.to_string()))
    }
}

/// Whether a field that can be checked is what its number says: the time of transmission, or the
/// check digit of the card number. The first by chance in three cases of a thousand.
pub(super) fn is_anchored(view: &View<'_>) -> bool {
    match view.text::<{ VALUE_MAX }>(SENT_AT) {
        Some(time) => is_time(time.as_bytes()),
        None => view
            .text::<{ VALUE_MAX }>(CARD_NUMBER)
            .is_some_and(|number| is_card_number(number.as_bytes())),
    }
}

/// MMDDhhmmss.
pub(super) fn is_time(text: &[u8]) -> bool {
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() || pairs.len() != 5 || !text.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let bounds = [(1, 12), (1, 31), (0, 23), (0, 59), (0, 59)];
    pairs.iter().zip(bounds).all(|([tens, ones], (least, most))| {
        let value = (tens & 15).saturating_mul(10).saturating_add(ones & 15);
        (least..=most).contains(&value)
    })
}

/// What a card number or a track is made of, however its bytes are read.
fn is_of_run(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || matches!(byte, b'=' | b'^')
}

fn prints(byte: u8) -> bool {
    byte == b' ' || byte.is_ascii_graphic()
}

/// A text in which every run of `longest` or more is cut to six at its beginning and `tail` at its
/// end. `before` of the first run stand in front of the text already.
fn cut(
    text: &[u8],
    before: usize,
    longest: usize,
    tail: usize,
    in_run: impl Fn(&u8) -> bool,
) -> Shown {
    let (mut shown, mut whole, mut before) = (String::with_capacity(text.len()), true, before);
    for run in text.chunk_by(|a, b| in_run(a) && in_run(b)) {
        let is_run = run.first().is_some_and(&in_run);
        let length = if is_run { run.len().saturating_add(before) } else { 0 };
        let head = HEAD.saturating_sub(before);
        let tail_from = run.len().saturating_sub(tail);
        for (at, byte) in run.iter().enumerate() {
            if length >= longest && at >= head && at < tail_from {
                shown.push('*');
                whole = false;
            } else {
                shown.push(if prints(*byte) { char::from(*byte) } else { '.' });
            }
        }
        before = 0;
    }
    if whole { Shown::Clear(shown) } else { Shown::Cut(shown) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_to_card(text: &str) -> Shown {
        cut(text.as_bytes(), 0, 13, TAIL, u8::is_ascii_digit)
    }

    fn cut_unproven(text: &str, before: usize) -> Shown {
        cut(text.as_bytes(), before, RUN_MAX_OF_UNPROVEN + 1, 0, |byte| is_of_run(*byte))
    }

    fn clear(text: &str) -> Shown {
        Shown::Clear(text.to_owned())
    }

    fn part(text: &str) -> Shown {
        Shown::Cut(text.to_owned())
    }

    #[test]
    fn a_run_as_long_as_a_card_number_is_cut_like_one() {
        assert_eq!(cut_to_card("123456789012"), clear("123456789012"));
        assert_eq!(cut_to_card("1234567890123"), part("123456***0123"));
        assert_eq!(cut_to_card("A 4111111111111111 B"), part("A 411111******1111 B"));
        assert_eq!(cut_to_card("SHOP\x1b[0m é"), clear("SHOP.[0m .."));
    }

    #[test]
    fn what_is_unproven_shows_six_of_more_than_nine_and_counts_from_the_field_before() {
        assert_eq!(cut_unproven("123456789", 0), clear("123456789"));
        assert_eq!(cut_unproven("1234567890", 0), part("123456****"));
        assert_eq!(cut_unproven("123=29121X", 0), clear("123=29121X"));
        assert_eq!(cut_unproven("7C1D93E5A0B84F26", 0), part("7C1D93**********"));
        assert_eq!(cut_unproven("123456", 6), part("******"));
        assert_eq!(cut_unproven("123456", 4), part("12****"));
        assert_eq!(cut_unproven("123456", 3), clear("123456"));
        assert_eq!(cut_unproven("12 1234567890", 9), part("** 123456****"));
    }

    #[test]
    fn a_time_is_one_that_a_clock_can_show() {
        assert!(is_time(b"1231235959") && is_time(b"0101000000"));
        for none in
            ["1331235959", "0001000000", "0100000000", "0101240000", "01010000", "010100000x"]
        {
            assert!(!is_time(none.as_bytes()), "{none}");
        }
    }
}

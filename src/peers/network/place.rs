//! Where digits stand in a message, and how they are written there.

use crate::iso8583::{DataEncoding, Length, MtiEncoding, Padding, View};

/// The place of some digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    at: usize,
    written: Written,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// A character each, of which this one is the zero.
    Chars(u8),
    /// Two a byte.
    Packed,
}

const ASCII_ZERO: u8 = b'0';
const EBCDIC_ZERO: u8 = 0xf0;

impl Place {
    /// The place of what stands in a field behind its first `skipped` characters. `None` when the
    /// message has no such field, or it begins in the middle of a byte there.
    pub(super) fn of(view: &View<'_>, de: u8, skipped: usize) -> Option<Self> {
        let spec = view.dialect().field(de)?;
        let at = view.range(de)?.end.checked_sub(view.raw(de)?.len())?;
        match spec.data {
            DataEncoding::Ascii => {
                Some(Self { at: at + skipped, written: Written::Chars(ASCII_ZERO) })
            }
            DataEncoding::Ebcdic => {
                Some(Self { at: at + skipped, written: Written::Chars(EBCDIC_ZERO) })
            }
            DataEncoding::Bcd | DataEncoding::BcdTrack => {
                let odd = spec.length == Length::Fixed && spec.max % 2 == 1;
                let padded = usize::from(odd && spec.padding == Padding::LeftZero);
                let halves = skipped + padded;
                let whole = halves.is_multiple_of(2);
                whole.then_some(Self { at: at + halves / 2, written: Written::Packed })
            }
            _ => None,
        }
    }

    /// The place of the last two digits of an MTI.
    pub(super) const fn of_function(encoding: MtiEncoding) -> Self {
        match encoding {
            MtiEncoding::Ascii => Self { at: 2, written: Written::Chars(ASCII_ZERO) },
            MtiEncoding::Ebcdic => Self { at: 2, written: Written::Chars(EBCDIC_ZERO) },
            MtiEncoding::Bcd => Self { at: 1, written: Written::Packed },
        }
    }

    /// The same place where so much stands before the message.
    pub(super) const fn behind(self, bytes: usize) -> Self {
        Self { at: self.at + bytes, ..self }
    }

    /// Writes digits there, if all of them fit. Their number is known where this is called, so that
    /// it comes down to a few instructions.
    #[inline]
    pub(super) fn put<const N: usize>(self, digits: &[u8; N], message: &mut [u8]) {
        let Some(there) = message.get_mut(self.at..) else { return };
        match self.written {
            Written::Chars(zero) => {
                if let Some(there) = there.first_chunk_mut::<N>() {
                    *there = digits.map(|digit| zero | digit);
                }
            }
            Written::Packed => pack(digits, there),
        }
    }

    /// Reads digits there; what is none comes out above 9.
    #[inline]
    pub(super) fn get<const N: usize>(self, message: &[u8]) -> [u8; N] {
        let there = message.get(self.at..).unwrap_or_default();
        match self.written {
            Written::Chars(zero) => there
                .first_chunk::<N>()
                .map_or([u8::MAX; N], |there| there.map(|character| character ^ zero)),
            Written::Packed => unpack(there),
        }
    }
}

fn pack(digits: &[u8], there: &mut [u8]) {
    let (pairs, _) = digits.as_chunks::<2>();
    for (byte, [high, low]) in there.iter_mut().zip(pairs) {
        *byte = high << 4 | low;
    }
}

fn unpack<const N: usize>(there: &[u8]) -> [u8; N] {
    let mut digits = [u8::MAX; N];
    for (digits, byte) in digits.chunks_mut(2).zip(there) {
        digits.iter_mut().zip([byte >> 4, byte & 15]).for_each(|(to, from)| *to = from);
    }
    digits
}

/// The six last digits of a number.
pub(super) const fn six(number: u32) -> [u8; 6] {
    let [[a, b], [c, d], [e, f]] = [pair(number / 10_000), pair(number / 100), pair(number)];
    [a, b, c, d, e, f]
}

/// The two last digits of a number.
const fn pair(number: u32) -> [u8; 2] {
    let number = (number % 100) as u8;
    [number / 10, number % 10]
}

/// The number that six digits make; `None` when one of them is no digit.
#[inline]
pub(super) fn number(digits: [u8; 6]) -> Option<u32> {
    let all = digits.iter().all(|digit| *digit <= 9);
    let [a, b, c, d, e, f] = digits.map(u32::from);
    all.then_some((a * 10 + b) * 10_000 + (c * 10 + d) * 100 + (e * 10 + f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_back_as_they_were_put() {
        for written in [Written::Chars(ASCII_ZERO), Written::Chars(EBCDIC_ZERO), Written::Packed] {
            let place = Place { at: 1, written }.behind(2);
            let mut message = vec![0xaa; 10];
            place.put(&six(1_234_567), &mut message);
            assert_eq!(number(place.get(&message)), Some(234_567), "{written:?}");
            assert!(message.starts_with(&[0xaa; 3]) && message.ends_with(&[0xaa]));
            assert_eq!(number(place.get(&message[..5])), None);
        }
        assert_eq!(number([0, 0, 0, 10, 0, 0]), None);
    }
}

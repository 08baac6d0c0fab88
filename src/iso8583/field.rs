//! How one field is written on the wire: the axes on which dialects differ, and the reading of a
//! field along them.
//!
//! The walk takes a short cut for the commonest kinds (`walk`); what is here is right for all.

use super::ebcdic;
use super::fault::FaultKind;
use super::length::{Length, LengthEncoding, halves};
use super::reader::Reader;
use crate::traffic::Text;

/// What a field may hold, in the standard's letters. Reading enforces it where it decides the size
/// or the digits (`b`, `n` in BCD); characters of text are the host's to judge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Content {
    /// Letters.
    A,
    /// Digits.
    N,
    /// Letters and digits.
    An,
    /// Digits and special characters.
    Ns,
    /// Letters, digits and special characters.
    Ans,
    /// Track data: digits and separators.
    Z,
    /// Binary.
    B,
    /// A sign (C or D) and digits.
    Xn,
}

/// How a field's data are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DataEncoding {
    /// ASCII characters.
    Ascii,
    /// EBCDIC characters (code page 500).
    Ebcdic,
    /// Two decimal digits a byte.
    Bcd,
    /// Track data, two characters a byte; D is the separator `=`.
    BcdTrack,
    /// Bytes.
    Binary,
    /// Bytes, as two ASCII hexadecimal digits each.
    HexAscii,
    /// Bytes, as two EBCDIC hexadecimal digits each.
    HexEbcdic,
    /// An ASCII sign, then decimal digits, two a byte.
    SignedBcd,
}

/// What the maximum and the length prefix count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Unit {
    /// Characters.
    Chars,
    /// Digits.
    Digits,
    /// Bytes: as transmitted, but for hexadecimal, where they are the bytes that it stands for.
    Bytes,
}

/// Which half byte is filled when digits written two a byte are odd in number. What it holds is
/// not looked at in numbers: peers fill it as they please. Of a track it may be the other one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Padding {
    /// None, so that their number must be even.
    None,
    /// The first, with 0.
    LeftZero,
    /// The last, with 0.
    RightZero,
    /// The last, with F.
    RightF,
}

/// One field's layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct FieldSpec {
    /// What it may hold.
    pub content: Content,
    /// Whether it has a length prefix.
    pub length: Length,
    /// How its data are written.
    pub data: DataEncoding,
    /// What `max` and the prefix count.
    pub unit: Unit,
    /// Where an odd digit's missing companion is.
    pub padding: Padding,
    /// The longest it may be; with a fixed length, how long it is.
    pub max: u16,
}

/// Why a dialect cannot have such a field or bitmap: each message with it would have a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, thiserror::Error)]
pub enum Misfit {
    /// No field has this number.
    #[error("a field has a number from 2 to 192")]
    FieldNumber,
    /// Bytes that are not counted in bytes, or a sign and digits that are.
    #[error("unit does not go with the encoding")]
    Unit,
    /// A fixed length that the encoding cannot have, such as an odd number of digits without padding.
    #[error("max is not a length that this field can have")]
    Max,
    /// A third bitmap in place of field 65 that the second word cannot announce.
    #[error("field 65 can only be a bitmap where the bitmap has two words")]
    ThirdBitmap,
}

impl FieldSpec {
    /// Whether it is characters, its length prefix included.
    pub(super) fn is_text(&self) -> bool {
        let prefix =
            !matches!(self.length.encoding(), Some(LengthEncoding::Bcd | LengthEncoding::Binary));
        let data = matches!(
            self.data,
            DataEncoding::Ascii
                | DataEncoding::Ebcdic
                | DataEncoding::HexAscii
                | DataEncoding::HexEbcdic
        );
        prefix && data
    }

    /// What is refused here would be refused in every message.
    ///
    /// # Errors
    /// What does not go together.
    pub fn check(&self) -> Result<(), Misfit> {
        match (self.data, self.unit == Unit::Bytes) {
            (DataEncoding::Binary, false) | (DataEncoding::SignedBcd, true) => {
                return Err(Misfit::Unit);
            }
            _ => {}
        }
        let fixed = self.length == Length::Fixed;
        if self.max == 0 || fixed && self.bytes(usize::from(self.max)).is_none() {
            return Err(Misfit::Max);
        }
        Ok(())
    }

    /// The data of this field, length prefix read and dropped.
    pub(super) fn read<'a>(&self, reader: &mut Reader<'a>) -> Result<&'a [u8], FaultKind> {
        let max = usize::from(self.max);
        let units = match self.length {
            Length::Fixed => max,
            Length::Prefixed(prefix) => prefix.read(reader)?,
        };
        let fits = units <= max;
        let size = self.bytes(units).filter(|_| fits).ok_or(FaultKind::Length)?;
        let data = reader.take(size).ok_or(FaultKind::Truncated)?;
        let digits = match self.data {
            DataEncoding::Ascii
            | DataEncoding::Ebcdic
            | DataEncoding::BcdTrack
            | DataEncoding::Binary => true,
            DataEncoding::Bcd => self.is_decimal(data, units),
            DataEncoding::SignedBcd => {
                self.is_decimal(data.get(1..).unwrap_or_default(), units.saturating_sub(1))
            }
            DataEncoding::HexAscii => data.iter().all(u8::is_ascii_hexdigit),
            DataEncoding::HexEbcdic => {
                data.iter().all(|byte| ebcdic::to_ascii(*byte).is_ascii_hexdigit())
            }
        };
        if digits { Ok(data) } else { Err(FaultKind::Digits) }
    }

    /// How many bytes `units` of this field take, or `None` when there can be no such number.
    pub(super) fn bytes(&self, units: usize) -> Option<usize> {
        let halves = |digits: usize| {
            let uneven = digits & 1 == 1 && self.padding == Padding::None;
            (!uneven).then(|| digits.div_ceil(2))
        };
        let in_bytes = self.unit == Unit::Bytes;
        match self.data {
            DataEncoding::Ascii | DataEncoding::Ebcdic | DataEncoding::Binary => Some(units),
            DataEncoding::Bcd | DataEncoding::BcdTrack if in_bytes => Some(units),
            DataEncoding::Bcd | DataEncoding::BcdTrack => halves(units),
            DataEncoding::HexAscii | DataEncoding::HexEbcdic if in_bytes => units.checked_mul(2),
            DataEncoding::HexAscii | DataEncoding::HexEbcdic => (units & 1 == 0).then_some(units),
            DataEncoding::SignedBcd => halves(units.checked_sub(1)?)?.checked_add(1),
        }
    }

    /// The data as characters, cut to `N`: digits without padding, bytes as hexadecimal digits.
    /// `whole` is a field that [`FieldSpec::read`] has accepted, with its prefix.
    pub(super) fn text<const N: usize>(&self, whole: &[u8]) -> Text<N> {
        let mut reader = Reader::new(whole);
        let units = match self.length {
            Length::Fixed => usize::from(self.max),
            Length::Prefixed(prefix) => prefix.read(&mut reader).unwrap_or(0),
        };
        let data = whole.get(reader.at()..).unwrap_or_default();
        let mut text = Text::new();
        match self.data {
            DataEncoding::Ascii => text.push_all(data),
            DataEncoding::Ebcdic => push_each(&mut text, data, ebcdic::to_ascii),
            DataEncoding::Bcd => self.digits(data, units).for_each(|digit| text.push(digit | b'0')),
            DataEncoding::BcdTrack => self.digits(data, units).for_each(|digit| {
                text.push(if digit == 0xd { b'=' } else { hex_digit(digit) });
            }),
            DataEncoding::Binary => halves(data).for_each(|half| text.push(hex_digit(half))),
            DataEncoding::HexAscii => push_each(&mut text, data, |byte| byte.to_ascii_uppercase()),
            DataEncoding::HexEbcdic => {
                push_each(&mut text, data, |byte| ebcdic::to_ascii(byte).to_ascii_uppercase());
            }
            DataEncoding::SignedBcd => {
                if let [sign, amount @ ..] = data {
                    text.push(*sign);
                    let digits = self.digits(amount, units.saturating_sub(1));
                    digits.for_each(|digit| text.push(digit | b'0'));
                }
            }
        }
        text
    }

    /// Whether these half bytes are decimal digits, padding aside; a byte at a time where it can be.
    #[inline]
    fn is_decimal(&self, data: &[u8], units: usize) -> bool {
        let odd = self.unit != Unit::Bytes && units & 1 == 1;
        let decimal = |bytes: &[u8]| bytes.iter().all(|byte| *byte <= 0x99 && byte & 15 <= 9);
        match (data, self.padding) {
            ([first, rest @ ..], Padding::LeftZero) if odd => first & 15 <= 9 && decimal(rest),
            ([rest @ .., last], _) if odd => last >> 4 <= 9 && decimal(rest),
            _ => decimal(data),
        }
    }

    /// The half bytes of `data` without the padding that an odd number of digits has.
    fn digits<'a>(&self, data: &'a [u8], units: usize) -> impl Iterator<Item = u8> + use<'a> {
        let (skipped, count) = if self.unit == Unit::Bytes {
            (0, usize::MAX)
        } else {
            (usize::from(units & 1 == 1 && self.first_half_is_padding(data)), units)
        };
        halves(data).skip(skipped).take(count)
    }

    /// Which half byte of an odd number of digits is no digit. Of a track, peers fill the other one
    /// than the network's manual says: where only the other one holds a filler, it is the padding.
    fn first_half_is_padding(&self, data: &[u8]) -> bool {
        let left = self.padding == Padding::LeftZero;
        let (DataEncoding::BcdTrack, [first, ..], [.., last]) = (self.data, data, data) else {
            return left;
        };
        match (is_filler(first >> 4), is_filler(last & 15)) {
            (true, false) => true,
            (false, true) => false,
            _ => left,
        }
    }
}

/// Whether a half byte is what padding is filled with.
const fn is_filler(half: u8) -> bool {
    matches!(half, 0 | 15)
}

/// The hexadecimal digit of a value below 16, in ASCII.
pub(super) const fn hex_digit(value: u8) -> u8 {
    match value & 15 {
        digit @ 0..=9 => digit | b'0',
        letter => letter.wrapping_add(b'A' - 10),
    }
}

fn push_each<const N: usize>(text: &mut Text<N>, data: &[u8], to_ascii: impl Fn(u8) -> u8) {
    data.iter().take(N).for_each(|byte| text.push(to_ascii(*byte)));
}

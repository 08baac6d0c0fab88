//! How long a field is: always the same, or as a prefix before it says.

use super::ebcdic;
use super::fault::FaultKind;
use super::reader::Reader;

/// Whether a field has a length of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Length {
    /// Always the maximum.
    Fixed,
    /// A length prefix goes before the data.
    Prefixed(Prefix),
}

/// Whether a field has a length of its own, and of how many digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum LengthKind {
    /// Always the maximum.
    Fixed,
    /// A prefix of one digit.
    L,
    /// A prefix of two digits.
    Ll,
    /// A prefix of three digits.
    Lll,
    /// A prefix of four digits.
    Llll,
    /// A prefix of five digits.
    Lllll,
    /// A prefix of six digits.
    Llllll,
    /// No field but a further bitmap, as field 65 may be.
    Bitmap,
}

impl LengthKind {
    /// How many digits its prefix has, 0 without one.
    pub const fn digits(self) -> u8 {
        match self {
            Self::Fixed | Self::Bitmap => 0,
            Self::L => 1,
            Self::Ll => 2,
            Self::Lll => 3,
            Self::Llll => 4,
            Self::Lllll => 5,
            Self::Llllll => 6,
        }
    }
}

impl Length {
    /// The length of this kind, with the encoding of its prefix: `None` when a prefix has none, when
    /// there is one and no prefix, and for a bitmap, which is no field.
    pub fn new(kind: LengthKind, encoding: Option<LengthEncoding>) -> Option<Self> {
        match (kind, encoding) {
            (LengthKind::Fixed, None) => Some(Self::Fixed),
            (LengthKind::Fixed | LengthKind::Bitmap, _) | (_, None) => None,
            (_, Some(encoding)) => Some(Self::Prefixed(Prefix { digits: kind.digits(), encoding })),
        }
    }

    /// Whether there is a prefix, and of how many digits.
    pub const fn kind(self) -> LengthKind {
        match self {
            Self::Fixed => LengthKind::Fixed,
            Self::Prefixed(prefix) => match prefix.digits {
                0 | 1 => LengthKind::L,
                2 => LengthKind::Ll,
                3 => LengthKind::Lll,
                4 => LengthKind::Llll,
                5 => LengthKind::Lllll,
                _ => LengthKind::Llllll,
            },
        }
    }

    /// How its prefix is written, if it has one.
    pub const fn encoding(self) -> Option<LengthEncoding> {
        match self {
            Self::Fixed => None,
            Self::Prefixed(prefix) => Some(prefix.encoding),
        }
    }
}

/// A length prefix: LL, LLL …
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Prefix {
    /// How many decimal digits it holds, 1 to 6. BCD and binary hold two in each byte.
    pub digits: u8,
    /// How they are written.
    pub encoding: LengthEncoding,
}

/// How a length prefix is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum LengthEncoding {
    /// ASCII digits.
    Ascii,
    /// EBCDIC digits.
    Ebcdic,
    /// Two digits a byte.
    Bcd,
    /// A big-endian number: one byte for L and LL, two for LLL and LLLL, three above.
    Binary,
}

impl Prefix {
    /// How many bytes it takes.
    pub(super) const fn bytes(self) -> usize {
        match self.encoding {
            LengthEncoding::Ascii | LengthEncoding::Ebcdic => self.digits as usize,
            LengthEncoding::Bcd | LengthEncoding::Binary => (self.digits as usize).div_ceil(2),
        }
    }

    /// The number it holds. Digits only: a sign or a blank is no length.
    pub(super) fn read(self, reader: &mut Reader<'_>) -> Result<usize, FaultKind> {
        let bytes = reader.take(self.bytes()).ok_or(FaultKind::Truncated)?;
        let number = match self.encoding {
            LengthEncoding::Ascii => number(10, bytes.iter().map(|byte| byte.wrapping_sub(b'0'))),
            LengthEncoding::Ebcdic => {
                number(10, bytes.iter().map(|byte| byte.wrapping_sub(ebcdic::ZERO)))
            }
            LengthEncoding::Bcd => number(10, halves(bytes)),
            LengthEncoding::Binary => number(16, halves(bytes)),
        };
        number.ok_or(FaultKind::Length)
    }

    /// Appends `count`, which has no more digits than the prefix.
    pub(crate) fn write(self, count: usize, out: &mut Vec<u8>) {
        let mut digits = [0u8; 6];
        let mut left = count;
        for digit in digits.iter_mut().rev() {
            let binary = self.encoding == LengthEncoding::Binary;
            let (rest, last) = if binary { (left >> 4, left & 15) } else { (left / 10, left % 10) };
            *digit = last as u8;
            left = rest;
        }
        let zero = match self.encoding {
            LengthEncoding::Ascii => b'0',
            LengthEncoding::Ebcdic => ebcdic::ZERO,
            LengthEncoding::Bcd | LengthEncoding::Binary => {
                let (pairs, _) = digits.as_chunks::<2>();
                let unused = pairs.len().saturating_sub(self.bytes());
                out.extend(pairs.iter().skip(unused).map(|[high, low]| high << 4 | low));
                return;
            }
        };
        let unused = digits.len().saturating_sub(self.bytes());
        out.extend(digits.iter().skip(unused).map(|digit| digit | zero));
    }
}

/// The number of these digits, or `None` when one of them is not a digit of that base.
fn number(base: usize, digits: impl Iterator<Item = u8>) -> Option<usize> {
    digits.map(usize::from).try_fold(0usize, |number, digit| {
        (digit < base).then(|| number.saturating_mul(base).saturating_add(digit))
    })
}

/// Each byte's high and low half, in order.
pub(super) fn halves(bytes: &[u8]) -> impl Iterator<Item = u8> + use<'_> {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15])
}

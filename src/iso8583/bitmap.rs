//! The bitmap on the wire: how it is written, in how many words, and where they stand.

use super::ebcdic;
use super::fault::FaultKind;
use super::field::hex_digit;
use super::field_set::{FIRST_BIT, FieldSet};
use super::reader::Reader;

/// How the bits are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum BitmapEncoding {
    /// Eight bytes a word.
    Binary,
    /// Sixteen hexadecimal digits a word, in ASCII.
    HexAscii,
    /// Sixteen hexadecimal digits a word, in EBCDIC.
    HexEbcdic,
}

/// How many words there are in one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum BitmapRule {
    /// The first bit of a word says that another follows it.
    Chained,
    /// All of the dialect's words, whatever their first bits say.
    Always,
}

/// How a dialect writes its bitmap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct BitmapLayout {
    /// How the bits are written.
    pub encoding: BitmapEncoding,
    /// How many words one message has.
    pub rule: BitmapRule,
    /// How many words a message may have here: 1, 2, or 3 with the third right behind the second.
    /// With two, field 65 is a field like others, unless it is the third word itself.
    pub words_max: u8,
    /// How the third word is written where it stands in place of field 65, after field 64, and
    /// announces fields 129 to 192; only with `words_max` 2.
    pub third: Option<BitmapEncoding>,
}

/// The field that a third bitmap may stand in.
pub const THIRD_BITMAP: u8 = 65;

impl BitmapLayout {
    /// How many bytes of bits there may be: 8, 16 or 24, whatever they are written in.
    pub const fn bytes_max(self) -> u8 {
        self.words_max.saturating_mul(8)
    }

    /// The fields that are announced, without the bits that announce further words.
    #[inline]
    pub(super) fn read(self, reader: &mut Reader<'_>) -> Result<FieldSet, FaultKind> {
        let mut words = [0u64; 3];
        let always = self.rule == BitmapRule::Always;
        let mut more = true;
        for (place, slot) in (1u8..).zip(words.iter_mut()) {
            if !more {
                break;
            }
            let word = self.encoding.read_word(reader)?;
            let last = place >= self.words_max;
            let chained = word & FIRST_BIT != 0;
            // The first word's first bit can only announce a second. The second's is field 65 where
            // a dialect has no third word, and the third's is field 129 where there is no fourth.
            if last && place == 1 && chained {
                return Err(FaultKind::Bitmap);
            }
            *slot = if last { word } else { word & !FIRST_BIT };
            more = !last && (always || chained);
        }
        Ok(FieldSet::from_words(words))
    }

    /// The words as they were sent, with the bits that announce further words: those before the
    /// first that cannot be read, and what is wrong with that one.
    pub(super) fn words(self, reader: &mut Reader<'_>) -> (Vec<u64>, Option<FaultKind>) {
        let mut words = Vec::new();
        for _ in 0..self.words_max {
            let word = match self.encoding.read_word(reader) {
                Ok(word) => word,
                Err(kind) => return (words, Some(kind)),
            };
            words.push(word);
            if self.rule == BitmapRule::Chained && word & FIRST_BIT == 0 {
                break;
            }
            if self.words_max == 1 && word & FIRST_BIT != 0 {
                return (words, Some(FaultKind::Bitmap));
            }
        }
        (words, None)
    }

    /// Appends the bitmap of `fields`, in as many words as they and the rule need. One in place of
    /// field 65 is announced here and appended by [`BitmapLayout::write_third`].
    pub(crate) fn write(self, fields: &FieldSet, out: &mut Vec<u8>) {
        let [first, second, third] = fields.words();
        let needed = if third != 0 {
            3
        } else if second != 0 {
            2
        } else {
            1
        };
        let here = if self.third.is_some() { needed.min(self.words_max) } else { needed };
        let written = if self.rule == BitmapRule::Always { self.words_max } else { here };
        for (place, word) in (1u8..).zip([first, second, third]).take(usize::from(written)) {
            let chain = if place < needed { FIRST_BIT } else { 0 };
            self.encoding.write_word(word | chain, out);
        }
    }

    /// Appends what stands in place of field 65, if `fields` need a third bitmap there.
    pub(crate) fn write_third(self, fields: &FieldSet, out: &mut Vec<u8>) {
        let [_, _, third] = fields.words();
        if let Some(encoding) = self.third.filter(|_| third != 0) {
            encoding.write_word(third, out);
        }
    }
}

impl BitmapEncoding {
    /// One word of bits.
    #[inline]
    pub(super) fn read_word(self, reader: &mut Reader<'_>) -> Result<u64, FaultKind> {
        if self == Self::Binary {
            let bytes = reader.take_array::<8>().ok_or(FaultKind::Truncated)?;
            return Ok(u64::from_be_bytes(*bytes));
        }
        let mut word = 0;
        for _ in 0..2 {
            let mut digits = *reader.take_array::<8>().ok_or(FaultKind::Truncated)?;
            if self == Self::HexEbcdic {
                digits = digits.map(ebcdic::to_ascii);
            }
            let half = hex_value(digits).ok_or(FaultKind::Bitmap)?;
            word = word << 32 | u64::from(half);
        }
        Ok(word)
    }

    fn write_word(self, word: u64, out: &mut Vec<u8>) {
        let bytes = word.to_be_bytes();
        match self {
            Self::Binary => out.extend_from_slice(&bytes),
            Self::HexAscii => out.extend_from_slice(&hex_digits(bytes, hex_digit)),
            Self::HexEbcdic => out.extend_from_slice(&hex_digits(bytes, ebcdic::hex_digit)),
        }
    }
}

fn hex_digits(bytes: [u8; 8], digit: impl Fn(u8) -> u8) -> [u8; 16] {
    let mut digits = [0u8; 16];
    for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
    digits
}

/// The value of eight hexadecimal digits of either case, all eight at once in the lanes of a word:
/// a table look-up for each digit takes longer than the walk over several fields.
#[inline]
fn hex_value(digits: [u8; 8]) -> Option<u32> {
    const fn lanes(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    let text = u64::from_be_bytes(digits);
    if text & lanes(0x80) != 0 {
        return None;
    }
    // No lane is above 0x7f, so adding less than 0x80 stays in it, and its high bit afterwards
    // tells whether the lane had reached a bound.
    let lower = text | lanes(0x20);
    let decimal = text.wrapping_add(lanes(0x80 - b'0')) & !text.wrapping_add(lanes(0x7f - b'9'));
    let letter = lower.wrapping_add(lanes(0x80 - b'a')) & !lower.wrapping_add(lanes(0x7f - b'f'));
    if (decimal | letter) & lanes(0x80) != lanes(0x80) {
        return None;
    }
    // A letter has bit 6 set and counts from nine in its low four bits.
    let nine_if_letter = (text >> 6 & lanes(1)).wrapping_mul(9);
    let nibbles = (text & lanes(0x0f)).wrapping_add(nine_if_letter);
    let pairs = (nibbles | nibbles >> 4) & 0x00ff_00ff_00ff_00ff;
    let quads = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((quads | quads >> 16) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_of_either_case_have_a_value_and_nothing_else_has() {
        for place in 0..8usize {
            for byte in 0..=255u8 {
                let mut digits = *b"00000000";
                digits[place] = byte;
                let expected = char::from(byte)
                    .to_digit(16)
                    .map(|value| value << (28 - 4 * u32::try_from(place).unwrap()));
                assert_eq!(hex_value(digits), expected, "{byte:#x} at {place}");
            }
        }
        assert_eq!(hex_value(*b"DEADbeef"), Some(0xdead_beef));
    }

    #[test]
    fn what_is_written_reads_as_the_same_fields() {
        let sets = [&[2, 64][..], &[2, 66, 128], &[2, 66, 129, 192], &[130], &[]];
        for encoding in
            [BitmapEncoding::Binary, BitmapEncoding::HexAscii, BitmapEncoding::HexEbcdic]
        {
            for rule in [BitmapRule::Chained, BitmapRule::Always] {
                let layout = BitmapLayout { encoding, rule, words_max: 3, third: None };
                for set in sets {
                    let mut bytes = Vec::new();
                    layout.write(&FieldSet::of(set), &mut bytes);
                    let mut reader = Reader::new(&bytes);
                    assert_eq!(layout.read(&mut reader), Ok(FieldSet::of(set)));
                    assert!(reader.is_at_end());
                }
            }
        }
    }

    #[test]
    fn the_words_of_a_bitmap_follow_the_dialects_rule() {
        let read = |rule, words_max, bytes: &[u8]| {
            let encoding = BitmapEncoding::Binary;
            let layout = BitmapLayout { encoding, rule, words_max, third: None };
            let mut reader = Reader::new(bytes);
            layout.read(&mut reader).map(|fields| (fields.iter().collect::<Vec<_>>(), reader.at()))
        };
        let first_bits =
            [0x80, 0, 0, 0, 0, 0, 0, 1, 0x80, 0, 0, 0, 0, 0, 0, 1, 0x80, 0, 0, 0, 0, 0, 0, 1];
        let plain = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(read(BitmapRule::Chained, 1, &first_bits), Err(FaultKind::Bitmap));
        assert_eq!(read(BitmapRule::Chained, 2, &first_bits), Ok((vec![64, 65, 128], 16)));
        assert_eq!(read(BitmapRule::Chained, 3, &first_bits), Ok((vec![64, 128, 129, 192], 24)));
        assert_eq!(read(BitmapRule::Chained, 3, &plain), Ok((vec![64], 8)));
        assert_eq!(read(BitmapRule::Always, 2, &plain), Ok((vec![64, 128], 16)));
        assert_eq!(read(BitmapRule::Always, 3, &plain), Err(FaultKind::Truncated));
    }
}

//! A dialect's table as text: one line a field, `de,content,len_kind,len_enc,data_enc,max,unit,pad,name`.
//!
//! Line 0 is the MTI and line 1 the bitmap, of which the maximum says how many bytes of bits it may
//! have, and `fixed` in place of `bitmap` that it always has them. A line 65 with `bitmap` says that a
//! third one stands in that field's place. The name is for people.

use super::bitmap::{BitmapEncoding, BitmapLayout, BitmapRule, THIRD_BITMAP};
use super::field::{
    Content, DataEncoding, FieldSpec, Length, LengthEncoding, Misfit, Padding, Prefix, Unit,
};
use super::mti::MtiEncoding;

/// The first line of every table.
const COLUMNS: &str = "de,content,len_kind,len_enc,data_enc,max,unit,pad,name";

/// Why a table is none, and in which line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct TableError {
    /// Counted from 1, the line of column names included; the last one when something is missing.
    pub line: usize,
    /// What is wrong with it.
    pub fault: RowFault,
}

/// What is wrong with a line of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RowFault {
    /// Not the column names.
    #[error("column names are not {COLUMNS}")]
    Header,
    /// Fewer or more than nine columns.
    #[error("not nine columns")]
    Columns,
    /// A field number outside 0 to 192.
    #[error("de is not a field number from 0 to 192")]
    FieldNumber,
    /// A field that an earlier line had.
    #[error("de was given before")]
    Duplicate,
    /// An unknown content.
    #[error("content is none of a n an ns ans z b x+n")]
    Content,
    /// An unknown kind of length.
    #[error("len_kind is none of fixed L LL LLL LLLL LLLLL LLLLLL")]
    LengthKind,
    /// An unknown encoding of the length, or one that does not go with its kind.
    #[error("len_enc is none of ascii ebcdic bcd bin, or not none for a fixed length")]
    LengthEncoding,
    /// An unknown encoding of the data.
    #[error("data_enc is not an encoding that this field can have")]
    DataEncoding,
    /// A maximum that is no number, zero, or that the field cannot be.
    #[error("max is not a length that this field can have")]
    Max,
    /// An unknown unit, or one that does not go with the encoding.
    #[error("unit is none of chars digits bytes, or does not go with data_enc")]
    Unit,
    /// An unknown padding.
    #[error("pad is none of none left0 right0 rightF rightspace")]
    Padding,
    /// A third bitmap in place of field 65 where the second word cannot announce it.
    #[error("de 65 can only be a bitmap where the bitmap (de 1) has a max of 16")]
    ThirdBitmap,
    /// No line 0.
    #[error("the MTI (de 0) is missing")]
    NoMti,
    /// No line 1.
    #[error("the bitmap (de 1) is missing")]
    NoBitmap,
}

/// One line, understood.
pub(super) enum Row {
    Mti(MtiEncoding),
    Bitmap(BitmapLayout),
    /// The third bitmap in place of field 65.
    ThirdBitmap(BitmapEncoding),
    Field(FieldSpec),
}

/// The lines of a table after its column names, each with its number; blank ones left out.
pub(super) fn rows(text: &str) -> Result<impl Iterator<Item = (usize, &str)>, TableError> {
    let mut lines = (1..).zip(text.lines().map(str::trim));
    match lines.next() {
        Some((_, COLUMNS)) => Ok(lines.filter(|(_, line)| !line.is_empty())),
        _ => Err(TableError { line: 1, fault: RowFault::Header }),
    }
}

impl Row {
    /// The field of a line, what it says, and the name at its end.
    pub(super) fn parse(line: &str) -> Result<(u8, Self, &str), RowFault> {
        let mut columns = line.splitn(9, ',');
        let mut column = || columns.next().ok_or(RowFault::Columns);
        let [de, content, len_kind, len_enc, data_enc, max, unit, pad, name] = [
            column()?,
            column()?,
            column()?,
            column()?,
            column()?,
            column()?,
            column()?,
            column()?,
            column()?,
        ];
        let de = de.parse().ok().filter(|de| *de <= 192).ok_or(RowFault::FieldNumber)?;
        let row = match de {
            0 => Self::Mti(mti(data_enc, max)?),
            1 => Self::Bitmap(bitmap(len_kind, data_enc, max)?),
            THIRD_BITMAP if len_kind == "bitmap" => {
                Self::ThirdBitmap(third_bitmap(len_enc, data_enc, max)?)
            }
            _ => Self::Field(FieldSpec {
                content: content_of(content)?,
                length: length(len_kind, len_enc)?,
                data: data(data_enc)?,
                max: max_of(max)?,
                unit: unit_of(unit)?,
                padding: padding(pad)?,
            }),
        };
        Ok((de, row, name))
    }
}

impl From<Misfit> for RowFault {
    fn from(misfit: Misfit) -> Self {
        match misfit {
            Misfit::FieldNumber => Self::FieldNumber,
            Misfit::Unit => Self::Unit,
            Misfit::Max => Self::Max,
            Misfit::ThirdBitmap => Self::ThirdBitmap,
        }
    }
}

fn mti(data_enc: &str, max: &str) -> Result<MtiEncoding, RowFault> {
    if max != "4" {
        return Err(RowFault::Max);
    }
    match data_enc {
        "ascii" => Ok(MtiEncoding::Ascii),
        "ebcdic" => Ok(MtiEncoding::Ebcdic),
        "bcd" => Ok(MtiEncoding::Bcd),
        _ => Err(RowFault::DataEncoding),
    }
}

fn bitmap(len_kind: &str, data_enc: &str, max: &str) -> Result<BitmapLayout, RowFault> {
    let rule = match len_kind {
        "bitmap" => BitmapRule::Chained,
        "fixed" => BitmapRule::Always,
        _ => return Err(RowFault::LengthKind),
    };
    let encoding = bitmap_encoding(data_enc)?;
    let words_max = match max {
        "8" => 1,
        "16" => 2,
        "24" => 3,
        _ => return Err(RowFault::Max),
    };
    Ok(BitmapLayout { encoding, rule, words_max, third: None })
}

fn third_bitmap(len_enc: &str, data_enc: &str, max: &str) -> Result<BitmapEncoding, RowFault> {
    match (len_enc, max) {
        ("none", "8") => bitmap_encoding(data_enc),
        ("none", _) => Err(RowFault::Max),
        _ => Err(RowFault::LengthEncoding),
    }
}

fn bitmap_encoding(data_enc: &str) -> Result<BitmapEncoding, RowFault> {
    match data_enc {
        "bin" => Ok(BitmapEncoding::Binary),
        "hex_ascii" => Ok(BitmapEncoding::HexAscii),
        "hex_ebcdic" => Ok(BitmapEncoding::HexEbcdic),
        _ => Err(RowFault::DataEncoding),
    }
}

fn content_of(text: &str) -> Result<Content, RowFault> {
    Ok(match text {
        "a" => Content::A,
        "n" => Content::N,
        "an" => Content::An,
        "ns" => Content::Ns,
        "ans" => Content::Ans,
        "z" => Content::Z,
        "b" => Content::B,
        "x+n" => Content::Xn,
        _ => return Err(RowFault::Content),
    })
}

fn length(kind: &str, encoding: &str) -> Result<Length, RowFault> {
    if kind == "fixed" {
        return if encoding == "none" { Ok(Length::Fixed) } else { Err(RowFault::LengthEncoding) };
    }
    let digits = u8::try_from(kind.len()).map_err(|_| RowFault::LengthKind)?;
    if !(1..=6).contains(&digits) || kind.bytes().any(|letter| letter != b'L') {
        return Err(RowFault::LengthKind);
    }
    let encoding = match encoding {
        "ascii" => LengthEncoding::Ascii,
        "ebcdic" => LengthEncoding::Ebcdic,
        "bcd" => LengthEncoding::Bcd,
        "bin" => LengthEncoding::Binary,
        _ => return Err(RowFault::LengthEncoding),
    };
    Ok(Length::Prefixed(Prefix { digits, encoding }))
}

fn data(text: &str) -> Result<DataEncoding, RowFault> {
    Ok(match text {
        "ascii" => DataEncoding::Ascii,
        "ebcdic" => DataEncoding::Ebcdic,
        "bcd" => DataEncoding::Bcd,
        "bcd_z" => DataEncoding::BcdTrack,
        "bin" => DataEncoding::Binary,
        "hex_ascii" => DataEncoding::HexAscii,
        "hex_ebcdic" => DataEncoding::HexEbcdic,
        "x_ascii+bcd" => DataEncoding::SignedBcd,
        _ => return Err(RowFault::DataEncoding),
    })
}

/// A maximum beyond what a message can be long is that length: the message is the bound then.
fn max_of(text: &str) -> Result<u16, RowFault> {
    let max: u32 = text.parse().map_err(|_| RowFault::Max)?;
    if max == 0 { Err(RowFault::Max) } else { Ok(u16::try_from(max).unwrap_or(u16::MAX)) }
}

fn unit_of(text: &str) -> Result<Unit, RowFault> {
    Ok(match text {
        "chars" => Unit::Chars,
        "digits" => Unit::Digits,
        "bytes" => Unit::Bytes,
        _ => return Err(RowFault::Unit),
    })
}

/// `rightspace` is for whoever builds a field of characters; nothing is to be read past it.
fn padding(text: &str) -> Result<Padding, RowFault> {
    Ok(match text {
        "none" | "rightspace" => Padding::None,
        "left0" => Padding::LeftZero,
        "right0" => Padding::RightZero,
        "rightF" => Padding::RightF,
        _ => return Err(RowFault::Padding),
    })
}

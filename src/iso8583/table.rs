//! A dialect's table as text: one line a field, `de,content,len_kind,len_enc,data_enc,max,unit,pad,name`.
//!
//! Line 0 is the MTI and line 1 the bitmap, of which the maximum says how many bytes of bits it may
//! have, and `fixed` in place of `bitmap` that it always has them. A line 65 with `bitmap` says that a
//! third one stands in that field's place. The name is for people.

use super::bitmap::{BitmapEncoding, BitmapLayout, BitmapRule, THIRD_BITMAP};
use super::dialect::Dialect;
use super::field::{Content, DataEncoding, FieldSpec, Misfit, Padding, Unit};
use super::field_set::FieldSet;
use super::length::{Length, LengthEncoding, LengthKind};
use super::mti::MtiEncoding;

/// The first line of every table.
const COLUMNS: &str = "de,content,len_kind,len_enc,data_enc,max,unit,pad,name";

/// In place of the encoding of a length, where there is no prefix.
const NO_ENCODING: &str = "none";

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
        let kind = LengthKind::from_word(len_kind).ok_or(RowFault::LengthKind)?;
        let row = match (de, kind) {
            (0, _) => Self::Mti(mti(data_enc, max)?),
            (1, _) => Self::Bitmap(bitmap(kind, data_enc, max)?),
            (THIRD_BITMAP, LengthKind::Bitmap) => {
                Self::ThirdBitmap(third_bitmap(len_enc, data_enc, max)?)
            }
            (_, LengthKind::Bitmap) => return Err(RowFault::LengthKind),
            _ => Self::Field(FieldSpec {
                content: Content::from_word(content).ok_or(RowFault::Content)?,
                length: length(kind, len_enc)?,
                data: DataEncoding::from_word(data_enc).ok_or(RowFault::DataEncoding)?,
                max: max_of(max)?,
                unit: Unit::from_word(unit).ok_or(RowFault::Unit)?,
                padding: Padding::from_word(pad).ok_or(RowFault::Padding)?,
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
    MtiEncoding::from_word(data_enc).ok_or(RowFault::DataEncoding)
}

fn bitmap(kind: LengthKind, data_enc: &str, max: &str) -> Result<BitmapLayout, RowFault> {
    let rule = match kind {
        LengthKind::Bitmap => BitmapRule::Chained,
        LengthKind::Fixed => BitmapRule::Always,
        _ => return Err(RowFault::LengthKind),
    };
    let encoding = BitmapEncoding::from_word(data_enc).ok_or(RowFault::DataEncoding)?;
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
        (NO_ENCODING, "8") => BitmapEncoding::from_word(data_enc).ok_or(RowFault::DataEncoding),
        (NO_ENCODING, _) => Err(RowFault::Max),
        _ => Err(RowFault::LengthEncoding),
    }
}

fn length(kind: LengthKind, encoding: &str) -> Result<Length, RowFault> {
    let encoding = match encoding {
        NO_ENCODING => None,
        word => Some(LengthEncoding::from_word(word).ok_or(RowFault::LengthEncoding)?),
    };
    Length::new(kind, encoding).ok_or(RowFault::LengthEncoding)
}

/// A maximum beyond what a message can be long is that length: the message is the bound then.
fn max_of(text: &str) -> Result<u16, RowFault> {
    let max: u32 = text.parse().map_err(|_| RowFault::Max)?;
    if max == 0 { Err(RowFault::Max) } else { Ok(u16::try_from(max).unwrap_or(u16::MAX)) }
}

/// The table of a dialect, as [`Dialect::from_table`] reads it.
pub(super) fn write(dialect: &Dialect) -> String {
    let bitmap = dialect.bitmap();
    let kind = match bitmap.rule {
        BitmapRule::Chained => LengthKind::Bitmap,
        BitmapRule::Always => LengthKind::Fixed,
    };
    let (mti, unit) = match dialect.mti() {
        MtiEncoding::Bcd => (MtiEncoding::Bcd, Unit::Digits),
        characters => (characters, Unit::Chars),
    };
    let mut lines = vec![
        COLUMNS.to_owned(),
        format!("0,n,fixed,{NO_ENCODING},{},4,{},none,MTI", mti.word(), unit.word()),
        bitmap_row(1, kind, bitmap.encoding, bitmap.bytes_max(), "bitmap"),
    ];
    for de in 2..=FieldSet::MAX {
        let name = dialect.field_name(de).unwrap_or_default();
        if let Some(spec) = dialect.field(de) {
            lines.push(field_row(de, spec, name));
        } else if let Some(third) = bitmap.third.filter(|_| de == THIRD_BITMAP) {
            lines.push(bitmap_row(de, LengthKind::Bitmap, third, 8, name));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

fn bitmap_row(de: u8, kind: LengthKind, encoding: BitmapEncoding, bytes: u8, name: &str) -> String {
    let (kind, encoding) = (kind.word(), encoding.word());
    format!("{de},b,{kind},{NO_ENCODING},{encoding},{bytes},bytes,none,{name}")
}

fn field_row(de: u8, spec: &FieldSpec, name: &str) -> String {
    format!(
        "{de},{},{},{},{},{},{},{},{name}",
        spec.content.word(),
        spec.length.kind().word(),
        spec.length.encoding().map_or(NO_ENCODING, LengthEncoding::word),
        spec.data.word(),
        spec.max,
        spec.unit.word(),
        spec.padding.word(),
    )
}

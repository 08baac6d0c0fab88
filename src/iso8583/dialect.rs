//! How one network lays its messages out, as data: encodings of MTI and bitmap, and a field table.
//!
//! No code asks which network a message is from. The presets are tables beside this file.

use std::collections::BTreeMap;
use std::fmt;

use super::bitmap::BitmapLayout;
use super::field::FieldSpec;
use super::mti::MtiEncoding;
use super::table::{Row, RowFault, TableError, rows};
use super::walk::Step;

/// Field numbers are bytes, so that a table of 256 is never indexed past its end.
const FIELDS: usize = 256;

/// Lists the presets, each a table beside this file.
macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        /// The presets by name.
        const TABLES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("presets/", $name, ".csv")))),*];

        impl Dialect {
            /// The names that [`Dialect::preset`] knows.
            pub const PRESETS: &[&str] = &[$($name),*];
        }
    };
}

presets![
    "iso87_ascii",
    "iso87_ascii_binbitmap",
    "iso87_bcd",
    "iso87_bcd_left",
    "iso93_ascii",
    "iso93_bcd",
    "iso93_ebcdic",
    "mastercard_like_ascii",
    "mastercard_like_ebcdic",
    "visa_like_base1",
    "cup_pos_bcd",
    "iso8583_rs_sample",
];

/// A message layout.
#[derive(Clone, PartialEq, Eq)]
pub struct Dialect {
    mti: MtiEncoding,
    bitmap: BitmapLayout,
    fields: [Option<FieldSpec>; FIELDS],
    /// What the walk does at each field, worked out beforehand.
    steps: [Step; FIELDS],
    /// What fields are called, for people.
    names: BTreeMap<u8, Box<str>>,
}

impl Dialect {
    /// The preset of this name.
    pub fn preset(name: &str) -> Option<Self> {
        let (_, table) = TABLES.iter().find(|(preset, _)| *preset == name)?;
        Self::from_table(table).ok()
    }

    /// A dialect from the text of its table (`presets/` holds examples).
    pub fn from_table(text: &str) -> Result<Self, TableError> {
        let mut mti = None;
        let mut bitmap = None;
        let mut fields = [None; FIELDS];
        let mut names = BTreeMap::new();
        let mut last = 1;
        for (line, row) in rows(text)? {
            last = line;
            let (row, name) = Row::parse(row).map_err(|fault| TableError { line, fault })?;
            let duplicate = match row {
                Row::Mti(encoding) => mti.replace(encoding).is_some(),
                Row::Bitmap(layout) => bitmap.replace(layout).is_some(),
                Row::Field(de, spec) => {
                    names.insert(de, name.into());
                    fields.get_mut(usize::from(de)).is_some_and(|slot| slot.replace(spec).is_some())
                }
            };
            if duplicate {
                return Err(TableError { line, fault: RowFault::Duplicate });
            }
        }
        let missing = |fault| TableError { line: last, fault };
        Ok(Self {
            mti: mti.ok_or(missing(RowFault::NoMti))?,
            bitmap: bitmap.ok_or(missing(RowFault::NoBitmap))?,
            steps: fields.map(|spec| spec.map_or(Step::Undefined, |spec| Step::of(&spec))),
            fields,
            names,
        })
    }

    /// How the MTI is written.
    pub const fn mti(&self) -> MtiEncoding {
        self.mti
    }

    /// How the bitmap is written.
    pub const fn bitmap(&self) -> BitmapLayout {
        self.bitmap
    }

    /// How a field is written, if the dialect has it.
    #[inline]
    pub fn field(&self, de: u8) -> Option<&FieldSpec> {
        self.fields.get(usize::from(de))?.as_ref()
    }

    /// What a field is called, for people; empty if its table leaves it out.
    pub fn field_name(&self, de: u8) -> Option<&str> {
        self.names.get(&de).map(|name| &**name)
    }

    #[inline]
    pub(super) const fn steps(&self) -> &[Step; FIELDS] {
        &self.steps
    }
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields.iter().flatten().count();
        f.debug_struct("Dialect")
            .field("mti", &self.mti)
            .field("bitmap", &self.bitmap)
            .field("fields", &fields)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_loads() {
        assert_eq!(Dialect::PRESETS.len(), 12);
        for name in Dialect::PRESETS {
            let dialect = Dialect::preset(name).unwrap();
            for de in [2, 3, 4, 11, 39, 64] {
                assert!(dialect.field(de).is_some(), "field {de} of {name}");
                assert!(dialect.field_name(de).is_some(), "field {de} of {name}");
            }
            assert!(dialect.field(0).is_none() && dialect.field(1).is_none(), "{name}");
        }
        assert!(Dialect::preset("iso87").is_none());
    }

    #[test]
    fn a_table_at_fault_says_where_and_why() {
        let head = "de,content,len_kind,len_enc,data_enc,max,unit,pad,name\n\
                    0,n,fixed,none,ascii,4,chars,none,MTI\n\
                    1,b,bitmap,none,bin,16,bytes,none,bitmap\n";
        for (line, fault) in [
            ("2,n,LL,ascii,ascii,19,chars,none", RowFault::Columns),
            ("193,n,LL,ascii,ascii,19,chars,none,x", RowFault::FieldNumber),
            ("x,n,LL,ascii,ascii,19,chars,none,x", RowFault::FieldNumber),
            ("1,b,bitmap,none,bin,16,bytes,none,x", RowFault::Duplicate),
            ("2,m,LL,ascii,ascii,19,chars,none,x", RowFault::Content),
            ("2,n,LLLLLLL,ascii,ascii,19,chars,none,x", RowFault::LengthKind),
            ("2,n,,ascii,ascii,19,chars,none,x", RowFault::LengthKind),
            ("2,n,fixed,ascii,ascii,19,chars,none,x", RowFault::LengthEncoding),
            ("2,n,LL,none,ascii,19,chars,none,x", RowFault::LengthEncoding),
            ("2,n,LL,ascii,utf8,19,chars,none,x", RowFault::DataEncoding),
            ("2,n,LL,ascii,ascii,-1,chars,none,x", RowFault::Max),
            ("2,n,LL,ascii,ascii,0,chars,none,x", RowFault::Max),
            ("2,n,fixed,none,bcd,3,digits,none,x", RowFault::Max),
            ("2,b,fixed,none,bin,3,digits,none,x", RowFault::Unit),
            ("2,n,LL,ascii,ascii,19,words,none,x", RowFault::Unit),
            ("2,n,LL,ascii,ascii,19,chars,left,x", RowFault::Padding),
        ] {
            let error = Dialect::from_table(&format!("{head}{line}\n")).unwrap_err();
            assert_eq!(error, TableError { line: 4, fault }, "{line}");
        }
        let error = |text: &str| Dialect::from_table(text).unwrap_err();
        assert_eq!(error("").fault, RowFault::Header);
        assert_eq!(error("de,name").fault, RowFault::Header);
        let (columns, _) = head.split_once('\n').unwrap();
        assert_eq!(error(columns), TableError { line: 1, fault: RowFault::NoMti });
        assert!(error(columns).to_string().contains("line 1: the MTI"));
        assert!(Dialect::from_table(head).is_ok());
    }
}

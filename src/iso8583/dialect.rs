//! How one network lays its messages out, as data: encodings of MTI and bitmap, and a field table.
//!
//! No code asks which network a message is from. The presets are tables beside this file.

use std::collections::BTreeMap;
use std::fmt;

use super::bitmap::{BitmapEncoding, BitmapLayout, THIRD_BITMAP};
use super::field::{FieldSpec, Misfit};
use super::field_set::FieldSet;
use super::mti::MtiEncoding;
use super::steps::{Step, Steps};
use super::table::{self, Row, RowFault, TableError, rows};

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
    fields: [Option<FieldSpec>; FIELDS],
    /// How the bitmap is written, and what the walk does at each field.
    steps: Steps,
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
        let mut by_field = BTreeMap::new();
        let mut last = 1;
        for (line, text) in rows(text)? {
            last = line;
            let (de, row, name) = Row::parse(text).map_err(|fault| TableError { line, fault })?;
            if by_field.insert(de, (line, row, name)).is_some() {
                return Err(TableError { line, fault: RowFault::Duplicate });
            }
        }
        let missing = |fault| TableError { line: last, fault };
        let Some((_, Row::Mti(mti), _)) = by_field.get(&0) else {
            return Err(missing(RowFault::NoMti));
        };
        let Some((_, Row::Bitmap(bitmap), _)) = by_field.get(&1) else {
            return Err(missing(RowFault::NoBitmap));
        };
        let mut dialect = Self {
            mti: *mti,
            fields: [None; FIELDS],
            steps: Steps::new(*bitmap),
            names: BTreeMap::new(),
        };
        for (de, (line, row, name)) in by_field {
            let defined = match row {
                Row::Mti(_) | Row::Bitmap(_) => Ok(()),
                Row::ThirdBitmap(encoding) => dialect.define_third_bitmap(encoding, name),
                Row::Field(spec) => dialect.define(de, spec, name),
            };
            defined.map_err(|misfit| TableError { line, fault: misfit.into() })?;
        }
        Ok(dialect)
    }

    /// The dialect as a table again, one line a field, of which [`Dialect::from_table`] makes an
    /// equal one.
    pub fn table(&self) -> String {
        table::write(self)
    }

    /// Has the MTI written in this way.
    pub const fn set_mti(&mut self, encoding: MtiEncoding) {
        self.mti = encoding;
    }

    /// Has the bitmap written in this way.
    ///
    /// # Errors
    /// When there is a third word behind the second and in place of field 65, or the latter and no
    /// second word.
    pub fn set_bitmap(&mut self, layout: BitmapLayout) -> Result<(), Misfit> {
        if layout.third.is_some() && layout.words_max != 2 {
            return Err(Misfit::ThirdBitmap);
        }
        if layout.third.is_some() {
            self.set(THIRD_BITMAP, None);
        }
        self.steps.set_bitmap(layout);
        Ok(())
    }

    /// Has a third bitmap stand in place of field 65, which is no field then.
    ///
    /// # Errors
    /// When the bitmap has no second word, or a third one right behind it.
    pub fn define_third_bitmap(
        &mut self,
        encoding: BitmapEncoding,
        name: &str,
    ) -> Result<(), Misfit> {
        self.set_bitmap(BitmapLayout { third: Some(encoding), ..self.bitmap() })?;
        self.names.insert(THIRD_BITMAP, name.into());
        Ok(())
    }

    /// Has a field, 2 to 192, written in this way. As field 65 it takes the place of a third bitmap.
    ///
    /// # Errors
    /// When no message could have such a field.
    pub fn define(&mut self, de: u8, spec: FieldSpec, name: &str) -> Result<(), Misfit> {
        if !(2..=FieldSet::MAX).contains(&de) {
            return Err(Misfit::FieldNumber);
        }
        spec.check()?;
        self.undefine(de);
        self.set(de, Some(spec));
        self.names.insert(de, name.into());
        Ok(())
    }

    /// Has no such field, so that a message with it has a fault.
    pub fn undefine(&mut self, de: u8) {
        self.set(de, None);
        self.names.remove(&de);
        if de == THIRD_BITMAP {
            self.steps.set_bitmap(BitmapLayout { third: None, ..self.bitmap() });
        }
    }

    fn set(&mut self, de: u8, spec: Option<FieldSpec>) {
        if let Some(slot) = self.fields.get_mut(usize::from(de)) {
            *slot = spec;
        }
        self.steps.set(de, spec.map_or(Step::Undefined, |spec| Step::of(&spec)));
    }

    /// How the MTI is written.
    pub const fn mti(&self) -> MtiEncoding {
        self.mti
    }

    /// How the bitmap is written.
    #[inline]
    pub fn bitmap(&self) -> BitmapLayout {
        self.steps.bitmap()
    }

    /// How a field is written, if the dialect has it. Field 65 is none where a third bitmap stands
    /// in its place.
    #[inline]
    pub fn field(&self, de: u8) -> Option<&FieldSpec> {
        self.fields.get(usize::from(de))?.as_ref()
    }

    /// Whether all of a message is characters, so that none of its bytes is a control character but
    /// by the will of who wrote a text.
    pub fn is_text(&self) -> bool {
        let bitmap = self.bitmap();
        let bitmaps = [Some(bitmap.encoding), bitmap.third];
        self.mti != MtiEncoding::Bcd
            && !bitmaps.contains(&Some(BitmapEncoding::Binary))
            && self.fields.iter().flatten().all(FieldSpec::is_text)
    }

    /// What a field is called, for people; empty if its table leaves it out.
    pub fn field_name(&self, de: u8) -> Option<&str> {
        self.names.get(&de).map(|name| &**name)
    }

    #[inline]
    pub(super) const fn steps(&self) -> &Steps {
        &self.steps
    }
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields.iter().flatten().count();
        f.debug_struct("Dialect")
            .field("mti", &self.mti)
            .field("bitmap", &self.bitmap())
            .field("fields", &fields)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iso8583::BitmapRule;

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
    fn a_dialect_that_is_written_as_a_table_is_read_as_the_same() {
        for name in Dialect::PRESETS {
            let dialect = Dialect::preset(name).unwrap();
            let table = dialect.table();
            assert_eq!(Dialect::from_table(&table), Ok(dialect), "{name}:\n{table}");
        }
        let mut third = Dialect::preset("iso93_ebcdic").unwrap();
        third.define_third_bitmap(BitmapEncoding::HexEbcdic, "more fields").unwrap();
        let layout = BitmapLayout { rule: BitmapRule::Always, ..third.bitmap() };
        third.set_bitmap(layout).unwrap();
        third.set_mti(MtiEncoding::Bcd);
        third.undefine(3);
        let table = third.table();
        assert!(table.contains("\n1,b,fixed,none,hex_ebcdic,16,bytes,none,bitmap\n"), "{table}");
        assert!(table.contains("\n65,b,bitmap,none,hex_ebcdic,8,bytes,none,more fields\n"));
        assert!(!table.contains("\n3,"));
        assert_eq!(Dialect::from_table(&table), Ok(third));
    }

    #[test]
    fn a_third_bitmap_and_a_field_65_take_each_others_place() {
        let mut dialect = Dialect::preset("iso87_ascii").unwrap();
        let before = dialect.clone();
        let (spec, name) =
            (*dialect.field(65).unwrap(), dialect.field_name(65).unwrap().to_owned());
        dialect.define_third_bitmap(BitmapEncoding::Binary, "third").unwrap();
        assert_eq!((dialect.field(65), dialect.field_name(65)), (None, Some("third")));
        dialect.define(65, spec, &name).unwrap();
        assert_eq!(dialect, before);
        let three = BitmapLayout { words_max: 3, ..dialect.bitmap() };
        dialect.set_bitmap(three).unwrap();
        let third = dialect.define_third_bitmap(BitmapEncoding::Binary, "third");
        assert_eq!(third, Err(Misfit::ThirdBitmap));
        assert_eq!(dialect.define(1, spec, ""), Err(Misfit::FieldNumber));
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
            ("66,b,bitmap,none,bin,8,bytes,none,x", RowFault::LengthKind),
            ("65,b,bitmap,ascii,bin,8,bytes,none,x", RowFault::LengthEncoding),
            ("65,b,bitmap,none,ascii,8,bytes,none,x", RowFault::DataEncoding),
            ("65,b,bitmap,none,bin,16,bytes,none,x", RowFault::Max),
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
        let third = "65,b,bitmap,none,bin,8,bytes,none,third bitmap\n";
        assert!(Dialect::from_table(&format!("{head}{third}")).is_ok());
        for bytes in ["8", "24"] {
            let head = head.replace("bin,16", &format!("bin,{bytes}"));
            let at_fault = TableError { line: 4, fault: RowFault::ThirdBitmap };
            assert_eq!(error(&format!("{head}{third}")), at_fault);
        }
        let duplicate = TableError { line: 5, fault: RowFault::Duplicate };
        assert_eq!(error(&format!("{head}{third}65,b,fixed,none,bin,1,bytes,none,x")), duplicate);
    }
}

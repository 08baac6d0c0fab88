//! `[dialect.NAME.field.N]`: in what one field differs from the base's.

use toml::de::DeValue;

use super::dialect::{truth, word};
use super::fault::{Wrong, quoted};
use super::reader::{Placed, Section};
use super::value::{self, one_of};
use crate::iso8583::{
    BitmapEncoding, Content, DataEncoding, Dialect, FieldSpec, Length, LengthEncoding, LengthKind,
    Misfit, Padding, THIRD_BITMAP, Unit,
};

/// Longer names would break the columns of whatever prints them.
const NAME_CHARS_MAX: usize = 80;

/// What a section says of its field; what it leaves open is the base's.
pub(super) struct Change<'a> {
    section: Section<'a>,
    de: u8,
    content: Placed<Option<Content>>,
    length: Placed<Option<LengthKind>>,
    /// `None` inside is the word for a fixed length, which has no encoding.
    length_encoding: Placed<Option<Option<LengthEncoding>>>,
    encoding: Placed<Option<DataEncoding>>,
    max: Placed<Option<u16>>,
    unit: Placed<Option<Unit>>,
    pad: Placed<Option<Padding>>,
    name: Placed<Option<String>>,
    undefined: Placed<bool>,
}

impl<'a> Change<'a> {
    pub(super) fn read(de: u8, section: Section<'a>) -> Option<Self> {
        let content = section.optional("content", word(Content::ALL, Content::word));
        let length = section.optional("length", word(LengthKind::ALL, LengthKind::word));
        let encodings =
            LengthEncoding::ALL.iter().map(|encoding| (encoding.word(), Some(*encoding)));
        let encodings = encodings.chain([("none", None)]);
        let length_encoding =
            section.optional("length_encoding", value::choice(encodings, value::none_later));
        let encoding = section.optional("encoding", word(DataEncoding::ALL, DataEncoding::word));
        let max = section.optional("max", value::whole(1..=u16::MAX));
        let unit = section.optional("unit", word(Unit::ALL, Unit::word));
        let paddings = Padding::ALL.iter().map(|padding| (padding.word(), *padding));
        let paddings = paddings.chain([("rightspace", Padding::None)]);
        let pad = section.optional("pad", value::choice(paddings, value::none_later));
        let name = section.optional("name", name);
        let undefined = section.or("undefined", false, truth);
        section.report_unknown(&[]);
        Some(Self {
            section,
            de,
            content: content?,
            length: length?,
            length_encoding: length_encoding?,
            encoding: encoding?,
            max: max?,
            unit: unit?,
            pad: pad?,
            name: name?,
            undefined: undefined?,
        })
    }

    /// Has `dialect` write the field as the section says; `None` when a fault was noted.
    pub(super) fn apply(&self, dialect: &mut Dialect) -> Option<()> {
        let base = dialect.field(self.de).copied();
        let base_name = dialect.field_name(self.de).unwrap_or_default().to_owned();
        let name = self.name.value.as_deref().unwrap_or(&base_name);
        if self.undefined.value {
            let known = base.is_some() || dialect.field_name(self.de).is_some();
            return self.undefine(known, dialect);
        }
        if self.length.value == Some(LengthKind::Bitmap) {
            return self.define_bitmap(base.as_ref(), name, dialect);
        }
        let spec = self.spec(base.as_ref())?;
        match dialect.define(self.de, spec, name) {
            Ok(()) => Some(()),
            Err(misfit) => {
                self.fault_misfit(misfit, &spec);
                None
            }
        }
    }

    /// Whether the dialect's bitmap has a bit for the field, as is noted when it has not.
    pub(super) fn can_be_announced(&self, last: u8) -> bool {
        if self.undefined.value || self.de <= last {
            return true;
        }
        let dialect = self.dialect_key();
        let problem = format!("the bitmap of this dialect ends at field {last}");
        let remedy = if self.de > 128 {
            format!(
                "write bytes = 24 in [{dialect}.bitmap] if the third bitmap follows the second, or \
                 length = \"bitmap\" in [{dialect}.field.65] if it stands there"
            )
        } else {
            format!("write bytes = 16 in [{dialect}.bitmap]")
        };
        self.section.fault(self.section.place(), &Wrong::new(problem, remedy));
        false
    }

    /// The section around all fields of the dialect.
    fn dialect_key(&self) -> &str {
        let key = self.section.place().key.as_str();
        key.rsplit_once(".field.").map_or(key, |(dialect, _)| dialect)
    }

    fn undefine(&self, known: bool, dialect: &mut Dialect) -> Option<()> {
        let mut sound =
            self.none_beside("undefined = true", &["content", "length", "encoding", "name"]);
        if !known {
            let problem = format!("the base has no field {}", self.de);
            self.section.fault(&self.undefined.place, &Wrong::new(problem, "remove the section"));
            sound = false;
        }
        dialect.undefine(self.de);
        sound.then_some(())
    }

    fn define_bitmap(
        &self,
        base: Option<&FieldSpec>,
        name: &str,
        dialect: &mut Dialect,
    ) -> Option<()> {
        if self.de != THIRD_BITMAP {
            let wrong = Wrong::new("only field 65 can be a bitmap", "write the field's own length");
            self.section.fault(&self.length.place, &wrong);
            return None;
        }
        let alone = self.none_beside("length = \"bitmap\"", &["content"]);
        let data = self.encoding.value.or_else(|| base.map(|base| base.data));
        let encoding = data.and_then(|data| BitmapEncoding::from_word(data.word()));
        let Some(encoding) = encoding else {
            let words = one_of(BitmapEncoding::ALL.iter().map(|encoding| quoted(encoding.word())));
            let problem = match self.encoding.value {
                Some(data) => format!("{} is no encoding of a bitmap", quoted(data.word())),
                None => "is missing, and the base has none that a bitmap has".to_owned(),
            };
            let wrong = Wrong::new(problem, format!("write {words}"));
            self.section.fault(&self.encoding.place, &wrong);
            return None;
        };
        if dialect.define_third_bitmap(encoding, name).is_err() {
            let problem = match dialect.bitmap().words_max {
                1 => "the bitmap has no second word, whose first bit would announce it",
                _ => "the third word stands right behind the second already",
            };
            let remedy =
                format!("write bytes = 16 in [{}.bitmap], or remove it", self.dialect_key());
            let wrong = Wrong::new(problem, remedy);
            self.section.fault(&self.length.place, &wrong);
            return None;
        }
        alone.then_some(())
    }

    /// Notes a fault at each key that means nothing beside `other`: those of `keys`, and those that
    /// belong to the layout of a field alone.
    fn none_beside(&self, other: &str, keys: &[&str]) -> bool {
        let written = [
            ("content", self.content.value.is_some(), &self.content.place),
            ("length", self.length.value.is_some(), &self.length.place),
            ("encoding", self.encoding.value.is_some(), &self.encoding.place),
            ("name", self.name.value.is_some(), &self.name.place),
            ("length_encoding", self.length_encoding.value.is_some(), &self.length_encoding.place),
            ("max", self.max.value.is_some(), &self.max.place),
            ("unit", self.unit.value.is_some(), &self.unit.place),
            ("pad", self.pad.value.is_some(), &self.pad.place),
        ];
        let of_a_field = ["length_encoding", "max", "unit", "pad"];
        let mut none = true;
        for (key, written, place) in written {
            if written && (keys.contains(&key) || of_a_field.contains(&key)) {
                let wrong = Wrong::new(format!("means nothing beside {other}"), "remove it");
                self.section.fault(place, &wrong);
                none = false;
            }
        }
        none
    }

    /// The base's field with what the section changes. All that is missing is noted, not the first.
    fn spec(&self, base: Option<&FieldSpec>) -> Option<FieldSpec> {
        let content =
            self.or_base(&self.content, base.map(|base| base.content), Content::ALL, Content::word);
        let kind = base.map(|base| base.length.kind());
        let kind = self.or_base(&self.length, kind, self.length_kinds(), LengthKind::word);
        let length = kind.and_then(|kind| self.length(kind, base));
        let data = base.map(|base| base.data);
        let data = self.or_base(&self.encoding, data, DataEncoding::ALL, DataEncoding::word);
        let max = self.max.value.or_else(|| base.map(|base| base.max));
        if max.is_none() {
            self.missing(
                &self.max,
                "write the longest it may be, or how long it is if it is fixed",
            );
        }
        let unit = self.or_base(&self.unit, base.map(|base| base.unit), Unit::ALL, Unit::word);
        let spec = FieldSpec {
            content: content?,
            length: length?,
            data: data?,
            max: max?,
            unit: unit?,
            padding: Padding::None,
        };
        Some(FieldSpec { padding: self.padding(&spec, base)?, ..spec })
    }

    /// The kinds of length that this field may have.
    fn length_kinds(&self) -> &'static [LengthKind] {
        let of_fields = LengthKind::ALL.strip_suffix(&[LengthKind::Bitmap]);
        of_fields.filter(|_| self.de != THIRD_BITMAP).unwrap_or(LengthKind::ALL)
    }

    fn or_base<T: Copy>(
        &self,
        written: &Placed<Option<T>>,
        base: Option<T>,
        all: &[T],
        word: fn(T) -> &'static str,
    ) -> Option<T> {
        let chosen = written.value.or(base);
        if chosen.is_none() {
            let words = one_of(all.iter().map(|choice| quoted(word(*choice))));
            self.missing(written, &format!("write {words}"));
        }
        chosen
    }

    fn missing<T>(&self, key: &Placed<Option<T>>, remedy: &str) {
        let problem = format!("is missing, and the base has no field {}", self.de);
        self.section.fault(&key.place, &Wrong::new(problem, remedy));
    }

    fn length(&self, kind: LengthKind, base: Option<&FieldSpec>) -> Option<Length> {
        let place = &self.length_encoding.place;
        if kind == LengthKind::Fixed {
            if let Some(encoding) = self.length_encoding.value.flatten() {
                let problem =
                    format!("{} is for a prefix, and the length is fixed", quoted(encoding.word()));
                let wrong = Wrong::new(problem, "remove it, or write the length's kind");
                self.section.fault(place, &wrong);
                return None;
            }
            return Length::new(kind, None);
        }
        let inherited = base.and_then(|base| base.length.encoding());
        let length = Length::new(kind, self.length_encoding.value.unwrap_or(inherited));
        if length.is_none() {
            let is = if self.length_encoding.value.is_some() { "is none" } else { "is missing" };
            let problem = format!("{is}, and length = {} needs one", quoted(kind.word()));
            let words = one_of(LengthEncoding::ALL.iter().map(|encoding| quoted(encoding.word())));
            self.section.fault(place, &Wrong::new(problem, format!("write {words}")));
        }
        length
    }

    /// Where an odd digit's companion is: nobody can guess it where the base had no pairs of digits.
    fn padding(&self, spec: &FieldSpec, base: Option<&FieldSpec>) -> Option<Padding> {
        if let Some(written) = self.pad.value {
            return Some(written);
        }
        let inherited = base.map_or(Padding::None, |base| base.padding);
        let may_be_odd = spec.length != Length::Fixed || spec.check().is_err();
        let new = in_pairs(spec) && !base.is_some_and(in_pairs);
        if new && may_be_odd && inherited == Padding::None && spec.unit != Unit::Bytes {
            let problem = "is missing, and an odd number of digits leaves half a byte to fill";
            let words = one_of(Padding::ALL.iter().map(|padding| quoted(padding.word())));
            let remedy = format!("write {words}");
            self.section.fault(&self.pad.place, &Wrong::new(problem, remedy));
            return None;
        }
        Some(inherited)
    }

    fn fault_misfit(&self, misfit: Misfit, spec: &FieldSpec) {
        let encoding = quoted(spec.data.word());
        let (place, problem, remedy) = match misfit {
            Misfit::Unit => {
                let unit = quoted(spec.unit.word());
                let remedy = match spec.data {
                    DataEncoding::Binary => "write \"bytes\"",
                    _ => "write \"chars\" or \"digits\"",
                };
                let problem = format!("{unit} does not go with encoding = {encoding}");
                (&self.unit.place, problem, remedy)
            }
            Misfit::Max => {
                let (max, pad) = (spec.max, quoted(spec.padding.word()));
                let problem = format!(
                    "a fixed length of {max} does not go with encoding = {encoding} and pad = {pad}"
                );
                (
                    &self.max.place,
                    problem,
                    "write one that fits, or in pad which half byte is filled",
                )
            }
            Misfit::FieldNumber | Misfit::ThirdBitmap => {
                (self.section.place(), misfit.to_string(), "remove the section")
            }
        };
        self.section.fault(place, &Wrong::new(problem, remedy));
    }
}

/// Whether digits are written two a byte.
const fn in_pairs(spec: &FieldSpec) -> bool {
    matches!(spec.data, DataEncoding::Bcd | DataEncoding::BcdTrack | DataEncoding::SignedBcd)
}

/// Reads what a field is called, for people.
fn name(value: &DeValue<'_>) -> Result<String, Wrong> {
    const WHAT: &str = "a name in quotes";
    const REMEDY: &str = "write up to 80 characters on one line";
    let text = value::text(value, WHAT, REMEDY)?.trim();
    if text.chars().count() > NAME_CHARS_MAX || text.chars().any(char::is_control) {
        return Err(value::not(value, "a name of one line", REMEDY));
    }
    Ok(text.to_owned())
}

//! `[dialect.NAME]`: a preset, and in what a network differs from it.

use std::sync::Arc;

use toml::de::DeValue;

use super::dialect_field::Change;
use super::fault::{Wrong, quoted};
use super::reader::{Placed, Section};
use super::value::{self, one_of};
use crate::iso8583::{BitmapEncoding, BitmapLayout, BitmapRule, Dialect, FieldSet, MtiEncoding};

/// All dialects of the file.
pub(super) struct Dialects {
    /// In the order of the file; without the dialect where it has a fault.
    known: Vec<(String, Option<Arc<Dialect>>)>,
    /// Whether there may be dialects whose names could not be read.
    unnamed: bool,
}

impl Dialects {
    pub(super) fn read(root: &Section<'_>) -> Self {
        let Some(sections) = root.named_tables("dialect", "NAME") else {
            return Self { known: Vec::new(), unnamed: true };
        };
        let mut dialects = Self { known: Vec::new(), unnamed: false };
        for (name, section) in sections {
            let dialect = section.and_then(|section| {
                let named = name_is_sound(&section, name);
                read_one(section).filter(|_| named).map(Arc::new)
            });
            dialects.known.push((name.to_owned(), dialect));
        }
        dialects
    }

    /// Reads the name of a preset or of a dialect of the file; `None` is one with a fault, which was
    /// noted.
    pub(super) fn choose(&self, value: &DeValue<'_>) -> Result<Option<Arc<Dialect>>, Wrong> {
        let name = value::text(value, "a name in quotes", self.remedy())?;
        if let Some((_, dialect)) = self.known.iter().find(|(known, _)| known == name) {
            return Ok(dialect.clone());
        }
        match Dialect::preset(name) {
            Some(preset) => Ok(Some(Arc::new(preset))),
            None if self.unnamed => Ok(None),
            None => {
                let problem =
                    format!("{} is no preset and no [dialect.NAME] of this file", quoted(name));
                Err(Wrong::new(problem, self.remedy()))
            }
        }
    }

    /// What a link may name.
    pub(super) fn remedy(&self) -> String {
        let own = self.known.iter().map(|(name, _)| name.as_str());
        let names = own.chain(Dialect::PRESETS.iter().copied());
        format!("write {}", one_of(names.map(quoted)))
    }

    /// All of them, if none has a fault.
    pub(super) fn sound(self) -> Option<Vec<(String, Arc<Dialect>)>> {
        let sound = self.known.into_iter().map(|(name, dialect)| Some((name, dialect?))).collect();
        if self.unnamed { None } else { sound }
    }
}

fn name_is_sound(section: &Section<'_>, name: &str) -> bool {
    let wrong = if !value::is_name(name) {
        let problem = format!("{} is no name for a dialect", quoted(name));
        Wrong::new(problem, "take 1 to 64 letters, digits, \"-\", \"_\" or \".\"")
    } else if Dialect::PRESETS.contains(&name) {
        Wrong::new("is called like a preset", "give it a name of its own")
    } else {
        return true;
    };
    section.fault(section.place(), &wrong);
    false
}

fn read_one(section: Section<'_>) -> Option<Dialect> {
    let presets = Dialect::PRESETS.iter().map(|name| quoted(name));
    let base = section.required("base", &format!("write {}", one_of(presets)), preset);
    let mti = section.optional("mti", word(MtiEncoding::ALL, MtiEncoding::word));
    let bitmap = Bitmap::read(section.table("bitmap"));
    let fields = section.named_tables("field", "N").map(|fields| {
        let read = |(number, field): (&str, Option<_>)| read_field(number, field?);
        fields.into_iter().map(read).collect::<Vec<_>>()
    });
    section.finish(&[]);
    let mut dialect = base?.value;
    let mut sound = true;
    match mti {
        Some(mti) => {
            if let Some(encoding) = mti.value {
                dialect.set_mti(encoding);
            }
        }
        None => sound = false,
    }
    sound &= bitmap.is_some_and(|bitmap| bitmap.apply(&mut dialect).is_some());
    let fields = fields.unwrap_or_else(|| {
        sound = false;
        Vec::new()
    });
    for field in &fields {
        sound &= field.as_ref().is_some_and(|change| change.apply(&mut dialect).is_some());
    }
    if sound {
        for change in fields.iter().flatten() {
            sound &= change.can_be_announced(last_announced(&dialect));
        }
    }
    sound.then_some(dialect)
}

/// The last field that a bitmap of this dialect has a bit for.
fn last_announced(dialect: &Dialect) -> u8 {
    let bitmap = dialect.bitmap();
    if bitmap.third.is_some() { FieldSet::MAX } else { bitmap.words_max.saturating_mul(64) }
}

fn read_field<'a>(number: &str, section: Section<'a>) -> Option<Change<'a>> {
    let de = number.parse::<u8>().ok().filter(|de| (2..=FieldSet::MAX).contains(de));
    // One field must not have two sections, such as 48 and 048.
    let Some(de) = de.filter(|de| de.to_string() == number) else {
        let wrong =
            Wrong::new("is no field number", "write one from 2 to 192, without a zero before it");
        section.fault(section.place(), &wrong);
        return None;
    };
    Change::read(de, section)
}

fn preset(value: &DeValue<'_>) -> Result<Dialect, Wrong> {
    let remedy = || format!("write {}", one_of(Dialect::PRESETS.iter().map(|name| quoted(name))));
    let name = value::text(value, "a name in quotes", remedy())?;
    Dialect::preset(name)
        .ok_or_else(|| Wrong::new(format!("{} is no preset", quoted(name)), remedy()))
}

/// Reads one of the words of a dialect's table.
pub(super) fn word<T: Copy>(
    all: &'static [T],
    word: fn(T) -> &'static str,
) -> impl Fn(&DeValue<'_>) -> Result<T, Wrong> {
    let choices: Vec<_> = all.iter().map(|choice| (word(*choice), *choice)).collect();
    value::choice(choices, value::none_later)
}

/// Reads true or false.
pub(super) fn truth(value: &DeValue<'_>) -> Result<bool, Wrong> {
    const REMEDY: &str = "write true or false, without quotes";
    value.as_bool().ok_or_else(|| value::not(value, "true or false", REMEDY))
}

/// `[dialect.NAME.bitmap]`.
struct Bitmap<'a> {
    section: Section<'a>,
    encoding: Option<BitmapEncoding>,
    words_max: Placed<Option<u8>>,
    rule: Option<BitmapRule>,
}

impl<'a> Bitmap<'a> {
    fn read(section: Section<'a>) -> Option<Self> {
        let encoding =
            section.optional("encoding", word(BitmapEncoding::ALL, BitmapEncoding::word));
        let words_max = section.optional("bytes", words);
        let always = section.optional("always", truth);
        section.report_unknown(&[]);
        let rule = |always| if always { BitmapRule::Always } else { BitmapRule::Chained };
        Some(Self {
            encoding: encoding?.value,
            words_max: words_max?,
            rule: always?.value.map(rule),
            section,
        })
    }

    fn apply(&self, dialect: &mut Dialect) -> Option<()> {
        let base = dialect.bitmap();
        let layout = BitmapLayout {
            encoding: self.encoding.unwrap_or(base.encoding),
            rule: self.rule.unwrap_or(base.rule),
            words_max: self.words_max.value.unwrap_or(base.words_max),
            third: base.third,
        };
        if let Err(misfit) = dialect.set_bitmap(layout) {
            let wrong = Wrong::new(misfit.to_string(), "write 16");
            self.section.fault(&self.words_max.place, &wrong);
            return None;
        }
        Some(())
    }
}

/// Reads bytes of bits as words of eight.
fn words(value: &DeValue<'_>) -> Result<u8, Wrong> {
    const REMEDY: &str = "write 8, 16 or 24: how many bytes of bits there may be";
    match value::whole(0..=u8::MAX)(value) {
        Ok(8) => Ok(1),
        Ok(16) => Ok(2),
        Ok(24) => Ok(3),
        _ => Err(value::not(value, "a size that a bitmap has", REMEDY)),
    }
}

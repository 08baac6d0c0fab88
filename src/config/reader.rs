//! A TOML file, read key by key, with every fault noted and none of them final.
//!
//! A [`Section`] hands out the values of one table. A value that cannot be used is noted in the
//! [`Report`] with its line and given as `None`, so that the reading goes on and rules between
//! keys can leave out what is already known to be wrong. `None` therefore always means that a fault
//! was noted. A section remembers which keys it was asked for: what else stands in the table is
//! unknown, and said so by [`Section::finish`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::fault::{Fault, Faults, Place, Wrong, quoted};
use super::value::{LATER, not};

/// The faults found so far, and where the lines of the file begin.
pub(super) struct Report {
    line_starts: Vec<usize>,
    faults: RefCell<Vec<Fault>>,
}

impl Report {
    pub(super) fn new(file: &str) -> Self {
        let line_starts = file.match_indices('\n').map(|(offset, _)| offset + 1).collect();
        Self { line_starts, faults: RefCell::default() }
    }

    /// Notes a fault.
    pub(super) fn add(&self, place: &Place, wrong: &Wrong) {
        self.faults.borrow_mut().push(Fault::new(place, wrong));
    }

    /// Notes what TOML itself cannot read: one fault a line, as one slip makes a parser stumble
    /// over the rest of its line.
    pub(super) fn add_syntax(&self, file: &str, error: &toml::de::Error) {
        let span = error.span().unwrap_or_default();
        let line = self.line(&span);
        if self.faults.borrow().iter().any(|fault| fault.line == line) {
            return;
        }
        let place = Place { line, key: "toml".to_owned() };
        let wrong = match file.get(span) {
            Some(key) if error.message() == "duplicate key" => Wrong::new(
                format!("{} stands here a second time", quoted(key)),
                "keep one of the two, or write [[…]] around the name of a repeated section",
            ),
            _ => Wrong::new(
                error.message(),
                "correct the line: text goes in quotes, lists in [ ], and each key on its own line",
            ),
        };
        self.add(&place, &wrong);
    }

    /// All that was noted, or the value that was read without fault.
    pub(super) fn conclude<T>(self, read: Option<T>) -> Result<T, Faults> {
        let faults = self.faults.into_inner();
        match read {
            Some(value) if faults.is_empty() => Ok(value),
            _ => Err(Faults::new(faults)),
        }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        self.line_starts.partition_point(|start| *start <= span.start) + 1
    }
}

/// A value and where it was found; where its section begins, when it is a default.
#[derive(Clone, Debug)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

/// One table of the file.
pub(super) struct Section<'a> {
    report: &'a Report,
    /// `None`: the file has no such table, or something else in its place.
    table: Option<&'a DeTable<'a>>,
    place: Place,
    /// What its keys are called: a key of `[node]`, a key of `[[link]]`.
    keys_are: String,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Section<'a> {
    /// The whole file.
    pub(super) fn root(report: &'a Report, table: &'a DeTable<'a>) -> Self {
        let place = Place { line: 1, key: String::new() };
        Self::new(report, Some(table), place, "a section of this file".to_owned())
    }

    fn new(
        report: &'a Report,
        table: Option<&'a DeTable<'a>>,
        place: Place,
        keys_are: String,
    ) -> Self {
        Self { report, table, place, keys_are, asked: RefCell::default() }
    }

    /// Whether the file has it.
    pub(super) const fn is_there(&self) -> bool {
        self.table.is_some()
    }

    /// Whether a key is written.
    pub(super) fn has(&self, key: &'static str) -> bool {
        self.table.is_some_and(|table| table.get(key).is_some())
    }

    /// Where the section begins.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Where the section begins, as the place of one of its keys.
    pub(super) fn place_of(&self, key: &str) -> Place {
        Place { line: self.place.line, key: self.key_path(key) }
    }

    /// Notes a fault.
    pub(super) fn fault(&self, place: &Place, wrong: &Wrong) {
        self.report.add(place, wrong);
    }

    /// The value of `key`, or that there is none.
    pub(super) fn optional<T>(
        &self,
        key: &'static str,
        read: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<Placed<Option<T>>> {
        let Some(value) = self.find(key) else {
            return Some(Placed { value: None, place: self.place_of(key) });
        };
        let read = self.placed(key, value, read)?;
        Some(Placed { value: Some(read.value), place: read.place })
    }

    /// The value of `key`, or `default`.
    pub(super) fn or<T>(
        &self,
        key: &'static str,
        default: T,
        read: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<Placed<T>> {
        let found = self.optional(key, read)?;
        Some(Placed { value: found.value.unwrap_or(default), place: found.place })
    }

    /// The value of `key`, which must be there.
    pub(super) fn required<T>(
        &self,
        key: &'static str,
        remedy: &str,
        read: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<Placed<T>> {
        let found = self.optional(key, read)?;
        let place = found.place;
        match found.value {
            Some(value) => Some(Placed { value, place }),
            None => {
                self.fault(&place, &Wrong::new("is missing", remedy));
                None
            }
        }
    }

    /// The items of the list at `key`, each at its own line; `None` inside when there is no list.
    pub(super) fn list<T>(
        &self,
        key: &'static str,
        remedy: &str,
        read: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<Placed<Option<Vec<Placed<T>>>>> {
        let Some(found) = self.find(key) else {
            return Some(Placed { value: None, place: self.place_of(key) });
        };
        let place = self.place_at(key, found);
        let Some(items) = found.get_ref().as_array() else {
            self.fault(&place, &not(found.get_ref(), "a list", remedy));
            return None;
        };
        // Every item is read before one that is wrong ends it.
        let read: Vec<_> = items.iter().map(|item| self.placed(key, item, &read)).collect();
        Some(Placed { value: Some(read.into_iter().collect::<Option<_>>()?), place })
    }

    /// The items at `key`, which must be there: a list of at least one, or one without brackets.
    pub(super) fn one_or_more<T>(
        &self,
        key: &'static str,
        remedy: &str,
        read: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<Placed<Vec<Placed<T>>>> {
        if let Some(found) = self.find(key).filter(|found| !found.get_ref().is_array()) {
            let only = self.placed(key, found, read)?;
            let place = only.place.clone();
            return Some(Placed { value: vec![only], place });
        }
        let Placed { value, place } = self.list(key, remedy, read)?;
        match value {
            Some(items) if !items.is_empty() => Some(Placed { value: items, place }),
            Some(_) => {
                self.fault(&place, &Wrong::new("is an empty list", remedy));
                None
            }
            None => {
                self.fault(&place, &Wrong::new("is missing", remedy));
                None
            }
        }
    }

    /// The table at `key`; an empty one when there is none, or when a fault was noted.
    pub(super) fn table(&self, key: &'static str) -> Section<'a> {
        let path = self.key_path(key);
        let (title, keys_are) = (format!("[{path}]"), format!("a key of [{path}]"));
        let Some(found) = self.find(key) else {
            let place = Place { line: self.place.line, key: path };
            return Section::new(self.report, None, place, keys_are);
        };
        let place = self.place_at(key, found);
        let table = found.get_ref().as_table();
        if table.is_none() {
            let remedy = format!("write {title} once, with one bracket");
            self.fault(&place, &not(found.get_ref(), "a section", remedy));
        }
        Section::new(self.report, table, place, keys_are)
    }

    /// The tables of the list at `key`, none of them when there is no list; `None` on a fault.
    pub(super) fn tables(&self, key: &'static str) -> Option<Vec<Section<'a>>> {
        let Some(found) = self.find(key) else { return Some(Vec::new()) };
        let title = format!("[[{}]]", self.key_path(key));
        let items = found.get_ref().as_array();
        let sections: Option<Vec<_>> = items.and_then(|items| {
            let section = |item: &'a Spanned<DeValue<'a>>| {
                let place = self.place_at(key, item);
                let table = item.get_ref().as_table()?;
                let keys_are = format!("a key of {title}");
                Some(Section::new(self.report, Some(table), place, keys_are))
            };
            items.iter().map(section).collect()
        });
        if sections.is_none() {
            let wrong = Wrong::new(
                "is not a list of sections",
                format!("write {title}, with two brackets, before each of them"),
            );
            self.fault(&self.place_at(key, found), &wrong);
        }
        sections
    }

    /// The tables in the table at `key`, each with its name, in the order of the file: none of them
    /// when there is no such table; `None` on a fault, of the whole or of one of them. `placeholder`
    /// stands for a name in remedies.
    pub(super) fn named_tables(
        &self,
        key: &'static str,
        placeholder: &str,
    ) -> Option<Vec<(&'a str, Option<Section<'a>>)>> {
        let Some(found) = self.find(key) else { return Some(Vec::new()) };
        let remedy = format!("write [{}.{placeholder}] before its keys", self.key_path(key));
        let Some(table) = found.get_ref().as_table() else {
            let place = self.place_at(key, found);
            self.fault(&place, &not(found.get_ref(), "a table of sections", remedy));
            return None;
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let section = |(name, value): (&'a Spanned<DeString<'a>>, &'a Spanned<DeValue<'a>>)| {
            let path = self.key_path(&format!("{key}.{}", name.get_ref()));
            let place = Place { line: self.report.line(&name.span()), key: path };
            let table = value.get_ref().as_table();
            if table.is_none() {
                self.fault(&place, &not(value.get_ref(), "a section", remedy.as_str()));
            }
            let keys_are = format!("a key of [{}]", place.key);
            let section = |table| Section::new(self.report, Some(table), place, keys_are);
            (name.get_ref().as_ref(), table.map(section))
        };
        Some(entries.into_iter().map(section).collect())
    }

    /// Every key of a table whose keys are not known beforehand, each with its value or, where that
    /// was a fault, without.
    pub(super) fn entries<T>(
        &self,
        read: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
    ) -> Vec<(&'a str, Result<Placed<T>, ()>)> {
        let entries = self.table.into_iter().flatten();
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        let entry = |(name, value): (&'a Spanned<DeString<'a>>, &'a Spanned<DeValue<'a>>)| {
            let name = name.get_ref().as_ref();
            (name, self.placed(name, value, &read).ok_or(()))
        };
        entries.into_iter().map(entry).collect()
    }

    /// Notes every key that nobody asked for. `later` are those of the reference that this version
    /// does not have.
    pub(super) fn finish(self, later: &[&str]) {
        self.report_unknown(later);
    }

    /// The same for a section of which faults may yet be found.
    pub(super) fn report_unknown(&self, later: &[&str]) {
        let asked = self.asked.borrow();
        for key in self.table.into_iter().flat_map(DeTable::keys) {
            let name = key.get_ref().as_ref();
            if asked.contains(&name) {
                continue;
            }
            let place = Place { line: self.report.line(&key.span()), key: self.key_path(name) };
            let wrong = if later.contains(&name) {
                Wrong::new(format!("is {LATER}"), "remove it")
            } else {
                Wrong::new(format!("is not {}", self.keys_are), remedy_for(name, &asked))
            };
            self.fault(&place, &wrong);
        }
    }

    fn find(&self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.asked.borrow_mut().push(key);
        self.table?.get(key)
    }

    fn placed<T>(
        &self,
        key: &str,
        found: &Spanned<DeValue<'_>>,
        read: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
    ) -> Option<Placed<T>> {
        let place = self.place_at(key, found);
        match read(found.get_ref()) {
            Ok(value) => Some(Placed { value, place }),
            Err(wrong) => {
                self.fault(&place, &wrong);
                None
            }
        }
    }

    fn place_at(&self, key: &str, found: &Spanned<DeValue<'_>>) -> Place {
        Place { line: self.report.line(&found.span()), key: self.key_path(key) }
    }

    fn key_path(&self, key: &str) -> String {
        match self.place.key.as_str() {
            "" => key.to_owned(),
            section => format!("{section}.{key}"),
        }
    }
}

/// What may stand in the file once only, and at which line it stood first.
#[derive(Default)]
pub(super) struct Seen {
    first_lines: BTreeMap<String, usize>,
}

impl Seen {
    /// Notes a fault at whatever is `same` as something earlier.
    pub(super) fn check<T>(
        &mut self,
        section: &Section<'_>,
        placed: &Placed<T>,
        same: impl Display,
        remedy: &str,
    ) {
        let line = placed.place.line;
        match self.first_lines.entry(same.to_string()) {
            Entry::Vacant(free) => {
                free.insert(line);
            }
            Entry::Occupied(first) => {
                let problem = format!("{} stands at line {} already", first.key(), first.get());
                section.fault(&placed.place, &Wrong::new(problem, remedy));
            }
        }
    }

    /// Notes a fault at a name that something of its kind has already.
    pub(super) fn check_name(&mut self, section: &Section<'_>, name: &Placed<String>) {
        self.check(section, name, quoted(&name.value), "give each of them a name of its own");
    }
}

/// The key that was most likely meant, or else all there are.
fn remedy_for(unknown: &str, known: &[&'static str]) -> String {
    /// Two letters in five may differ; what shares less is more likely something else.
    const LIKENESS_MIN: f64 = 0.6;
    let likeness = |key: &&str| strsim::normalized_damerau_levenshtein(unknown, key);
    let nearest = known.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match (nearest.filter(|key| likeness(key) >= LIKENESS_MIN), known) {
        (Some(key), _) => format!("did you mean {key}?"),
        (None, [only]) => format!("the only one is {only}"),
        (None, _) => format!("use one of {}", known.join(", ")),
    }
}

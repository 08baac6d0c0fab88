//! `docs/configuration.md` says what `config/tollgate.toml` says: its tables are written from the keys of
//! that file and the comments above them, and the ranges in these comments are those of the program.
//!
//! `BLESS=1 cargo test --test configuration_doc` writes the tables anew; read the difference before it is
//! committed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "a test states its expectations"
)]

mod document;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use document::read;
use tollgate::config::Config;

const PAGE: &str = "docs/configuration.md";
const REFERENCE: &str = "config/tollgate.toml";
/// What stands above it is written by hand.
const END_OF_INTRODUCTION: &str = "configuration_doc -->\n";

/// One key of the reference.
#[derive(Debug)]
struct Key {
    name: String,
    value: String,
    /// The comment above it.
    meaning: String,
    /// Its line, from 0.
    line: usize,
}

/// All sections of one name.
#[derive(Debug, Default)]
struct Section {
    /// As it is written: `[node]`, `[[link]]`.
    name: String,
    /// The comments above it.
    about: Vec<String>,
    keys: Vec<Key>,
}

/// The sections in their order. A key that stands there twice is explained once.
fn sections(reference: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let (mut comment, mut current) = (Vec::new(), None);
    for (line, text) in reference.lines().enumerate() {
        if let Some(words) = text.strip_prefix('#') {
            comment.push(words.trim().to_owned());
            continue;
        }
        let meaning = std::mem::take(&mut comment).join(" ");
        if text.starts_with('[') {
            let place = sections.iter().position(|section| section.name == text);
            let place = place.unwrap_or_else(|| {
                sections.push(Section { name: text.to_owned(), ..Section::default() });
                sections.len() - 1
            });
            sections[place].about.extend(Some(meaning).filter(|meaning| !meaning.is_empty()));
            current = Some(place);
        } else if let Some((name, value)) = text.split_once(" = ") {
            let section = &mut sections[current.expect("a key is in a section")];
            let name = name.trim().to_owned();
            if section.keys.iter().all(|key| key.name != name) {
                let explained = !meaning.is_empty() || !section.about.is_empty();
                assert!(explained, "{}: {name} has no comment", section.name);
                section.keys.push(Key { name, value: value.to_owned(), meaning, line });
            }
        } else {
            assert_eq!(text, "", "line {}: neither key, section nor comment", line + 1);
        }
    }
    sections
}

impl Key {
    fn kind(&self) -> &'static str {
        let text = |value: &str| value.trim_matches('"').to_owned();
        let is_duration = |value: &str| {
            let value = text(value);
            let unit = value.trim_start_matches(|c: char| c.is_ascii_digit());
            unit.len() < value.len() && ["ms", "s", "m", "h"].contains(&unit)
        };
        match self.value.as_str() {
            "true" | "false" => "true or false",
            list if list.starts_with('[') => "list",
            table if table.starts_with('{') => "table",
            value if value.starts_with('"') && is_duration(value) => "duration",
            value if value.starts_with('"') => match self.name.as_str() {
                "idle_timeout" => "duration",
                _ => "text",
            },
            value if value.parse::<f64>().is_ok() => "number",
            other => panic!("{}: what is {other}", self.name),
        }
    }

    /// What holds where the key is not written: what the comment says, or what the program does.
    fn default(&self, reference: &str) -> String {
        let mut sentences = self.meaning.split_inclusive(". ");
        let said = sentences.find_map(|sentence| sentence.strip_prefix("Default: "));
        if let Some(said) = said {
            let these = format!("`{}`", self.value);
            return said.trim().trim_end_matches('.').replacen("these", &these, 1);
        }
        let without: Vec<&str> = reference
            .lines()
            .enumerate()
            .filter(|(line, _)| *line != self.line)
            .map(|(_, text)| text)
            .collect();
        let without = Config::parse(&without.join("\n"));
        if self.meaning.starts_with("Required.") {
            assert!(without.is_err(), "{} can be left out", self.name);
            return format!("required, such as `{}`", self.value);
        }
        let whole = Config::parse(reference).expect("the reference is sound");
        let is_default = without.is_ok_and(|without| without == whole);
        format!("{}`{}`", if is_default { "" } else { "none, such as " }, self.value)
    }

    fn row(&self, reference: &str) -> String {
        let meaning = self.meaning.strip_prefix("Required. ").unwrap_or(&self.meaning);
        let mut cells = [
            format!("`{}`", self.name.trim_matches('"')),
            self.kind().to_owned(),
            self.default(reference),
            meaning.to_owned(),
        ];
        for cell in &mut cells {
            *cell = cell.replace('|', "\\|");
        }
        format!("| {} |\n", cells.join(" | "))
    }
}

fn tables() -> String {
    let (mut page, reference) = (String::new(), read(REFERENCE));
    for Section { name, about, keys } in sections(&reference) {
        let _ = write!(page, "\n### `{name}`\n");
        for paragraph in about {
            let _ = write!(page, "\n{paragraph}\n");
        }
        if !keys.is_empty() {
            page.push_str("\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
            page.extend(keys.iter().map(|key| key.row(&reference)));
        }
    }
    page
}

#[test]
fn the_page_has_every_key_of_the_reference_with_its_default_and_no_other() {
    let page = read(PAGE);
    let (introduction, _) = page.split_once(END_OF_INTRODUCTION).expect("its introduction ends");
    let expected = format!("{introduction}{END_OF_INTRODUCTION}{}", tables());
    assert!(expected.matches("\n| `").count() > 60, "{expected}");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE), expected).unwrap();
        return;
    }
    assert!(
        page == expected,
        "{PAGE} differs from {REFERENCE}; BLESS=1 cargo test --test configuration_doc writes it"
    );
}

/// The two ends of a range `A to B` in a comment, as they are written in the file.
fn range(key: &Key) -> Option<(String, String)> {
    let words: Vec<&str> = key.meaning.split([' ', ',', ';']).collect();
    let is_end = |word: &str| match key.kind() {
        "duration" => word.starts_with('"') && word.ends_with('"'),
        "number" => !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    };
    words.windows(3).find_map(|three| {
        let last = three[2].trim_end_matches(['.', ':']);
        let ends = three[1] == "to" && is_end(three[0]) && is_end(last);
        ends.then(|| (three[0].to_owned(), last.to_owned()))
    })
}

/// One less, or one more, in the smallest unit that the end is written in.
fn beyond(end: &str, by: i64) -> Option<String> {
    let digits: String = end.chars().filter(char::is_ascii_digit).collect();
    let number: i64 = digits.parse::<i64>().unwrap() + by;
    (number >= 0).then(|| end.replace(&digits, &number.to_string()))
}

#[test]
fn the_ranges_in_the_reference_are_those_of_the_program() {
    let reference = read(REFERENCE);
    let mut tried = BTreeSet::new();
    for Section { name, keys, .. } in sections(&reference) {
        for key in &keys {
            let Some((least, most)) = range(key) else { continue };
            let is_out_of_range = |value: &str| {
                let mut lines: Vec<String> = reference.lines().map(str::to_owned).collect();
                lines[key.line] = format!("{} = {value}", key.name);
                match Config::parse(&lines.join("\n")) {
                    Ok(_) => false,
                    Err(faults) => faults.iter().any(|fault| {
                        fault.line == key.line + 1 && fault.problem.contains("out of range")
                    }),
                }
            };
            for (value, outside) in [
                (Some(least.clone()), false),
                (Some(most.clone()), false),
                (beyond(&least, -1), true),
                (beyond(&most, 1), true),
            ] {
                let Some(value) = value else { continue };
                let so = is_out_of_range(&value) == outside;
                assert!(so, "{name} {} = {value} does not fit {least} to {most}", key.name);
            }
            tried.insert(format!("{name} {}", key.name));
        }
    }
    assert!(tried.len() > 10, "only {tried:?}");
}

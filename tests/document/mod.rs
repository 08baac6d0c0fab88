//! Reading the documents of the house: sections, tables, words set as code; and of the sources what
//! documents speak of.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the repository.
#[track_caller]
pub(crate) fn read(path: &str) -> String {
    let full = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(full).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn files(folder: &str, extension: &str, all: &mut Vec<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(root.join(folder)).expect(folder);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap();
        if path.is_dir() {
            files(name, extension, all);
        } else if path.extension().is_some_and(|of| of == extension) {
            all.push(name.to_owned());
        }
    }
}

/// Everything that is written for people, and the alerts, by path.
pub(crate) fn documents() -> Vec<(String, String)> {
    let mut paths = vec!["README.md".to_owned(), "CHANGELOG.md".to_owned()];
    files("docs", "md", &mut paths);
    files("config", "yml", &mut paths);
    assert!(paths.len() > 6, "{paths:?}");
    paths.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// The sources without their tests, by path, strings that go over several lines joined.
pub(crate) fn sources() -> Vec<(String, String)> {
    let mut paths = Vec::new();
    files("src", "rs", &mut paths);
    assert!(paths.len() > 50, "{} sources", paths.len());
    let source = |path: String| {
        let text = read(&path);
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let mut parts = text.split("\\\n");
        let mut joined = parts.next().unwrap().to_owned();
        parts.for_each(|part| joined.push_str(part.trim_start()));
        (path, joined)
    };
    paths.into_iter().map(source).collect()
}

/// What the sources log at a level: the text of each line as far as it is the same every time.
pub(crate) fn log_lines(level: &str) -> Vec<String> {
    let call = format!("{level}!(");
    let mut lines = Vec::new();
    for (_, source) in sources() {
        for (at, _) in source.match_indices(&call) {
            let whole = source[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric());
            let arguments = arguments(&source[at + call.len()..]);
            // The last text of the call is the line.
            let Some(text) = arguments.rsplit('"').nth(1).filter(|_| whole) else { continue };
            let fixed = text.split('{').next().unwrap().trim_end();
            if !fixed.is_empty() {
                lines.push(fixed.to_owned());
            }
        }
    }
    lines
}

/// Up to the parenthesis that ends them; none of our lines has one in a text.
fn arguments(text: &str) -> &str {
    let mut open = 1;
    let end = text.find(|c| {
        open += i32::from(c == '(') - i32::from(c == ')');
        open == 0
    });
    &text[..end.expect("a call ends")]
}

/// The part of a document under the heading that begins with `heading`, or has it as its anchor, up
/// to the next one of its level. Lines of code blocks are no headings.
#[track_caller]
pub(crate) fn section<'t>(text: &'t str, heading: &str) -> &'t str {
    let mut found: Option<(usize, usize)> = None;
    let (mut at, mut in_code) = (0, false);
    for line in text.split_inclusive('\n') {
        in_code ^= line.starts_with("```");
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if !in_code && level > 0 {
            let title = line[level..].trim();
            match found {
                Some((start, of)) if level <= of => return &text[start..at],
                None if title.starts_with(heading) || anchor(title) == heading => {
                    found = Some((at + line.len(), level));
                }
                _ => {}
            }
        }
        at += line.len();
    }
    let (start, _) = found.unwrap_or_else(|| panic!("there is no heading {heading:?}"));
    &text[start..]
}

fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// The rows of all tables, without their heads, cell by cell.
pub(crate) fn rows(text: &str) -> impl Iterator<Item = Vec<String>> {
    let is_row = |line: &&str| line.starts_with('|');
    let lines: Vec<&str> = text.lines().collect();
    let is_head = |at: usize| lines.get(at + 1).is_some_and(|next| next.starts_with("| ---"));
    let kept = (0..lines.len()).filter(|at| is_row(&lines[*at]) && !is_head(*at));
    let rows: Vec<Vec<String>> = kept
        .map(|at| lines[at])
        .filter(|line| !line.starts_with("| ---"))
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect();
    rows.into_iter()
}

/// What is set as code within lines.
pub(crate) fn code_words(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("```"));
    let words = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    words.map(str::to_owned).collect()
}

/// The lines of code blocks.
pub(crate) fn code_lines(text: &str) -> Vec<String> {
    let blocks = format!("\n{text}");
    let blocks = blocks.split("\n```").skip(1).step_by(2);
    blocks.flat_map(|block| block.lines().skip(1)).map(str::to_owned).collect()
}

/// Labels, each with the values that stand behind it in parentheses.
pub(crate) fn labelled_values(cell: &str) -> Vec<(String, Vec<String>)> {
    let mut labels: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for (place, part) in cell.split('`').enumerate() {
        match (place % 2, labels.last_mut()) {
            (0, _) => match (part.rfind('('), part.rfind(')')) {
                (Some(open), close) => inside = close.is_none_or(|close| close < open),
                (None, Some(_)) => inside = false,
                (None, None) => {}
            },
            (_, Some((_, values))) if inside => values.push(part.to_owned()),
            _ => labels.push((part.to_owned(), Vec::new())),
        }
    }
    labels
}

//! What is wrong with a configuration file, said so that it can be put right.
//!
//! Every fault names a line, a key and a remedy. A card number that strayed into the file (as a
//! `bin`, say) is cut to its first six digits here, since faults go to terminals and logs.

use std::fmt;

/// One thing wrong with a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line of the file, from 1.
    pub line: usize,
    /// The key and the sections around it, as in `link.codes.limit`.
    pub key: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

impl Fault {
    pub(super) fn new(place: &Place, wrong: &Wrong) -> Self {
        Self {
            line: place.line,
            // A key of the file may be anything, also what a terminal would obey.
            key: without_card_numbers(&place.key.escape_debug().to_string()),
            problem: without_card_numbers(&wrong.problem),
            remedy: without_card_numbers(&wrong.remedy),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}: {}; {}", self.line, self.key, self.problem, self.remedy)
    }
}

/// All faults of one file in the order of their lines, printed one a line. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn new(mut faults: Vec<Fault>) -> Self {
        faults.sort_by(|a, b| (a.line, &a.key).cmp(&(b.line, &b.key)));
        Self(faults)
    }

    /// Each fault.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Fault;
    type IntoIter = std::slice::Iter<'a, Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// Where a key stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Line of the file, from 1.
    pub(super) line: usize,
    /// The key and the sections around it.
    pub(super) key: String,
}

/// What is wrong with a value, before anybody says where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    problem: String,
    remedy: String,
}

impl Wrong {
    pub(super) fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }
}

/// `text` in quotes, with control characters escaped, and cut where it gets long.
pub(super) fn quoted(text: &str) -> String {
    /// Longer values are cut: their beginning is enough to find them by.
    const CHARS_MAX: usize = 60;
    let head: String = text.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    let cut = if text.chars().nth(CHARS_MAX).is_some() { "…" } else { "" };
    format!("\"{head}{cut}\"")
}

/// `text` with every run of digits that is long enough for a card number cut after six of them.
fn without_card_numbers(text: &str) -> String {
    /// Shortest card number in use.
    const DIGITS_MIN: usize = 13;
    const DIGITS_SHOWN: usize = 6;
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(if run == 0 { first.len_utf8() } else { run });
        match head.split_at_checked(DIGITS_SHOWN) {
            Some((shown, _)) if run >= DIGITS_MIN => {
                masked.push_str(shown);
                masked.push('…');
            }
            _ => masked.push_str(head),
        }
        rest = tail;
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_number_is_cut_to_its_first_six_digits() {
        let masked = without_card_numbers("\"4111111111111111\" é has 16 digits, 123456789012 12");
        assert_eq!(masked, "\"411111…\" é has 16 digits, 123456789012 12");
    }

    #[test]
    fn a_quoted_value_is_short_and_has_no_control_characters() {
        assert_eq!(quoted("a\nb"), "\"a\\nb\"");
        assert_eq!(quoted(&"x".repeat(61)).chars().count(), 63);
    }
}

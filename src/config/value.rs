//! Readers of single values: each takes a TOML value and gives a typed one, or says what is wrong.
//!
//! A value of the wrong type and one out of range are told apart, since their remedies differ.
//! Nothing here knows at which key it reads.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use toml::de::{DeInteger, DeValue};

use super::fault::{Wrong, quoted};
use crate::wire::Framing;

/// Why a value that the reference names is refused here.
pub(super) const LATER: &str = "not available in this version";

/// What is wrong with a value that is no `what` at all.
pub(super) fn not(value: &DeValue<'_>, what: &str, remedy: impl Into<String>) -> Wrong {
    Wrong::new(format!("{} is not {what}", shown(value)), remedy)
}

/// A value as it can be found again in the file.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Reads a string.
pub(super) fn text<'v>(
    value: &'v DeValue<'_>,
    what: &str,
    remedy: impl Into<String>,
) -> Result<&'v str, Wrong> {
    value.as_str().ok_or_else(|| not(value, what, remedy))
}

/// Reads a whole number within `range`.
pub(super) fn whole<T>(range: RangeInclusive<T>) -> impl Fn(&DeValue<'_>) -> Result<T, Wrong>
where
    T: TryFrom<i128> + PartialOrd + Display,
{
    move |value| {
        let remedy = || format!("write one from {} to {}", range.start(), range.end());
        let Some(number) = value.as_integer() else {
            return Err(not(value, "a whole number", remedy()));
        };
        match to_i128(number).and_then(|number| T::try_from(number).ok()) {
            Some(number) if range.contains(&number) => Ok(number),
            _ => Err(Wrong::new(format!("{number} is out of range"), remedy())),
        }
    }
}

/// Reads a number, whole or decimal; one that is endless or none is out of everybody's range.
pub(super) fn number(value: &DeValue<'_>, remedy: impl Into<String>) -> Result<f64, Wrong> {
    let number = match value {
        DeValue::Integer(number) => to_i128(number).map(|number| number as f64),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| not(value, "a number", remedy))
}

fn to_i128(number: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

/// Reads one of `choices` by its name. `later` names those that the reference has and this version
/// has not.
pub(super) fn choice<T: Copy>(
    choices: impl IntoIterator<Item = (&'static str, T)>,
    later: fn(&str) -> bool,
) -> impl Fn(&DeValue<'_>) -> Result<T, Wrong> {
    let choices: Vec<_> = choices.into_iter().collect();
    move |value| {
        let remedy = || format!("write {}", one_of(choices.iter().map(|(name, _)| quoted(name))));
        let name = text(value, "a name in quotes", remedy())?;
        match choices.iter().find(|(known, _)| *known == name) {
            Some((_, choice)) => Ok(*choice),
            None if later(name) => {
                Err(Wrong::new(format!("{} is {LATER}", quoted(name)), remedy()))
            }
            None => Err(Wrong::new(format!("{} is not known", quoted(name)), remedy())),
        }
    }
}

/// For choices of which the reference has no more than this version.
pub(super) fn none_later(_: &str) -> bool {
    false
}

/// `a, b or c`.
pub(super) fn one_of(names: impl IntoIterator<Item = String>) -> String {
    let mut names: Vec<String> = names.into_iter().collect();
    match names.pop() {
        Some(last) if names.is_empty() => last,
        Some(last) => format!("{} or {last}", names.join(", ")),
        None => String::new(),
    }
}

/// Reads a name that is fit for a metric label and a log line.
pub(super) fn name(value: &DeValue<'_>) -> Result<String, Wrong> {
    const REMEDY: &str = "write 1 to 64 letters, digits, \"-\", \"_\" or \".\", in quotes";
    let name = text(value, "a name", REMEDY)?;
    if is_name(name) { Ok(name.to_owned()) } else { Err(not(value, "a name", REMEDY)) }
}

/// Whether something may be called so.
pub(super) fn is_name(name: &str) -> bool {
    const BYTES_MAX: usize = 64;
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=BYTES_MAX).contains(&name.len()) && name.bytes().all(safe)
}

/// Reads an IP address and a port. Names are not resolved: an address to bind is this machine's own.
pub(super) fn address(value: &DeValue<'_>) -> Result<SocketAddr, Wrong> {
    const REMEDY: &str = "write one such as \"127.0.0.1:8583\" or \"[::1]:8583\"";
    let what = "an IP address and a port";
    text(value, what, REMEDY)?.parse().map_err(|_| not(value, what, REMEDY))
}

/// Reads the name of a framing.
pub(super) fn framing(value: &DeValue<'_>) -> Result<Framing, Wrong> {
    let name = text(value, "a name in quotes", framing_remedy())?;
    Framing::from_name(name)
        .ok_or_else(|| Wrong::new(format!("{} is not known", quoted(name)), framing_remedy()))
}

/// Every framing.
pub(super) fn framing_remedy() -> String {
    let names = Framing::ALL.map(|framing| quoted(framing.name())).into_iter();
    let digits = "\"ascii:N\" with 2 to 8 digits".to_owned();
    format!("write {}", one_of(names.chain([digits])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(text: &str, read: impl Fn(&DeValue<'_>) -> Result<T, Wrong>) -> Option<T> {
        read(DeValue::parse(text).unwrap().get_ref()).ok()
    }

    #[test]
    fn a_whole_number_is_read_in_every_radix_and_within_its_range() {
        assert_eq!(read("4_096", whole(64..=65_535usize)), Some(4_096));
        assert_eq!(read("0x1000", whole(64..=65_535usize)), Some(4_096));
        for text in
            ["63", "65536", "-1", "1e3", "\"64\"", "99999999999999999999999999999999999999999"]
        {
            assert_eq!(read(text, whole(64..=65_535usize)), None, "{text}");
        }
    }

    #[test]
    fn a_number_may_be_whole_or_have_a_fraction() {
        let number = |value: &DeValue<'_>| number(value, "");
        assert_eq!(read("0.5", number), Some(0.5));
        assert_eq!(read("10", number), Some(10.0));
        assert_eq!(read("true", number), None);
        assert_eq!(read("\"1\"", number), None);
    }

    #[test]
    fn a_name_holds_nothing_that_a_metric_label_would_have_to_escape() {
        assert_eq!(read("\"visa-1.b_2\"", name).as_deref(), Some("visa-1.b_2"));
        for text in ["\"\"", "\"a b\"", "\"a\\\"b\"", "\"é\"", "7"] {
            assert_eq!(read(text, name), None, "{text}");
        }
        assert_eq!(read(&format!("\"{}\"", "x".repeat(65)), name), None);
    }
}

//! Readers of what limits and their keys tell messages apart by.

use toml::de::DeValue;

use super::fault::{Wrong, quoted};
use super::value::{self, not};
use crate::limits::rule::{BinRange, KeyError};
use crate::traffic::{Class, LinkId, Mcc, Operation};

pub(super) const BIN_REMEDY: &str =
    "write a prefix such as \"411111\" or a range such as \"400000-409999\"";
pub(super) const MERCHANT_REMEDY: &str =
    "write what DE42 holds: 1 to 35 printable ASCII characters in quotes";
pub(super) const TERMINAL_REMEDY: &str =
    "write what DE41 holds: 1 to 16 printable ASCII characters in quotes";
pub(super) const ACQUIRER_REMEDY: &str =
    "write what DE32 holds: up to 11 digits in quotes, \"\" for messages without it";
const MCC_REMEDY: &str = "write four digits in quotes, such as \"5411\"";
const MCC_RANGE_REMEDY: &str =
    "write four digits such as \"5411\" or a range such as \"3000-3299\"";

/// Reads the name of an operation.
pub(super) fn operation(value: &DeValue<'_>) -> Result<Operation, Wrong> {
    let choices = Operation::ALL.map(|operation| (operation.name(), operation));
    value::choice(choices, value::none_later)(value)
}

/// Reads the name of a class.
pub(super) fn class(value: &DeValue<'_>) -> Result<Class, Wrong> {
    let choices = Class::ALL.map(|class| (class.name(), class));
    value::choice(choices, value::none_later)(value)
}

/// Reads the name of a link. Where the links could not be read any name will do: their own faults
/// have been said.
pub(super) fn link(value: &DeValue<'_>, links: Option<&[String]>) -> Result<LinkId, Wrong> {
    let name = value::text(value, "a link's name in quotes", "write the name of a link")?;
    let Some(links) = links else { return Ok(LinkId(0)) };
    let place = links.iter().position(|link| link == name);
    place.and_then(|place| u16::try_from(place).ok()).map(LinkId).ok_or_else(|| {
        let names = value::one_of(links.iter().map(|link| quoted(link)));
        Wrong::new(format!("{} is not the name of a link", quoted(name)), format!("write {names}"))
    })
}

/// Reads a merchant category.
pub(super) fn mcc(value: &DeValue<'_>) -> Result<Mcc, Wrong> {
    const WHAT: &str = "a merchant category";
    let text = value::text(value, WHAT, MCC_REMEDY)?;
    Mcc::from_ascii(text.as_bytes()).ok_or_else(|| not(value, WHAT, MCC_REMEDY))
}

/// Reads a merchant category, or the first and the last of several.
pub(super) fn mcc_range(value: &DeValue<'_>) -> Result<(Mcc, Mcc), Wrong> {
    const WHAT: &str = "a merchant category or a range of them";
    let text = value::text(value, WHAT, MCC_RANGE_REMEDY)?;
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (Mcc::from_ascii(first.as_bytes()), Mcc::from_ascii(last.as_bytes()));
    match (first, last) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err(not(value, WHAT, MCC_RANGE_REMEDY)),
    }
}

/// Reads a BIN or a range of them. The value is not repeated in a fault unless it is short: it may
/// be a card number.
pub(super) fn bin(value: &DeValue<'_>) -> Result<(BinRange, String), Wrong> {
    let text = value::text(value, "digits in quotes", BIN_REMEDY)?;
    let problem = |error| match error {
        KeyError::Digits => "is neither digits nor a range of them".to_owned(),
        KeyError::Long => "is longer than a BIN".to_owned(),
        KeyError::Lengths | KeyError::Backwards => format!("{} is not a range", quoted(text)),
    };
    match BinRange::parse(text) {
        Ok(range) => Ok((range, text.to_owned())),
        Err(error) => Err(Wrong::new(problem(error), error.to_string())),
    }
}

/// Reads a card acceptor, as long as ISO 8583:2003 allows it to be.
pub(super) fn merchant(value: &DeValue<'_>) -> Result<String, Wrong> {
    printable(value, "a merchant", 35, MERCHANT_REMEDY)
}

/// Reads a terminal's number, as long as ISO 8583:2003 allows it to be.
pub(super) fn terminal(value: &DeValue<'_>) -> Result<String, Wrong> {
    printable(value, "a terminal", 16, TERMINAL_REMEDY)
}

fn printable(
    value: &DeValue<'_>,
    what: &str,
    characters_max: usize,
    remedy: &str,
) -> Result<String, Wrong> {
    let text = value::text(value, what, remedy)?;
    let printable = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if printable && (1..=characters_max).contains(&text.len()) && !text.trim().is_empty() {
        Ok(text.to_owned())
    } else {
        Err(not(value, what, remedy))
    }
}

/// Reads an acquirer.
pub(super) fn acquirer(value: &DeValue<'_>) -> Result<String, Wrong> {
    const WHAT: &str = "an acquirer";
    let text = value::text(value, WHAT, ACQUIRER_REMEDY)?;
    if text.len() <= 11 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        Ok(text.to_owned())
    } else {
        Err(not(value, WHAT, ACQUIRER_REMEDY))
    }
}

//! `[[limit]]` and `[[limit.key]]`: the rules of the limiter.
//!
//! What one rate, burst or BIN may be is `limits`' to say, and asked of its types. What is said
//! here is where in the file, and how limits and keys stand to each other.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::fault::{Wrong, quoted};
use super::reader::{Placed, Section, Seen};
use super::value::{self, not};
use crate::limits::LIMITS_MAX;
use crate::limits::rule::{
    Burst, KEYS_DEFAULT, KEYS_MAX, KeyError, KeyMatch, Mode, Per, Rate, Rule, RuleKey,
};
use crate::traffic::MerchantId;

/// Default of `bin_digits`: the issuer's number of a card that was issued before there were longer
/// ones; a longer one would part what still belongs together.
const BIN_DIGITS: u8 = 6;

const RATE_REMEDY: &str = "write tokens per second, such as 2000 or 0.5";
const BURST_REMEDY: &str = "write a number of tokens, such as 4000";
const PER_REMEDY: &str = "write [\"bin\"], [\"merchant\"], or [] for one bucket for all";
const BIN_REMEDY: &str = "write a prefix such as \"411111\" or a range such as \"400000-409999\"";
const MERCHANT_REMEDY: &str = "write what DE42 holds: 1 to 35 printable ASCII characters in quotes";
const ACQUIRER_REMEDY: &str =
    "write what DE32 holds: up to 11 digits in quotes, \"\" for messages without it";

/// What the reference has in a limit and in its keys, and this version has not.
const LATER: [&str; 5] = ["when", "peak", "floor", "reserve", "hold"];
const KEY_LATER: [&str; 5] = ["terminal", "operation", "mcc", "link", "floor"];

/// Reads all limits; `None` when one of them has a fault.
pub(super) fn read_all(root: &Section<'_>) -> Option<Vec<Rule>> {
    let mut names = Seen::default();
    let mut rules = Vec::new();
    for (index, section) in root.tables("limit")?.into_iter().enumerate() {
        if index == LIMITS_MAX {
            let problem = format!("there are more than {LIMITS_MAX} limits");
            let remedy = "give keys of one limit rates of their own in [[limit.key]]";
            section.fault(section.place(), &Wrong::new(problem, remedy));
        }
        rules.push(read_one(&section, &mut names));
        section.finish(&LATER);
    }
    rules.into_iter().collect()
}

fn read_one(section: &Section<'_>, names: &mut Seen) -> Option<Rule> {
    let name = section.required("name", "write a name for logs and metrics", value::name);
    if let Some(name) = &name {
        names.check_name(section, name);
    }
    let per = per(section);
    let rate = section.required("rate", RATE_REMEDY, rate);
    let burst = section.optional("burst", burst);
    let modes = [("enforce", Mode::Enforce), ("shadow", Mode::Shadow), ("off", Mode::Off)];
    let mode = value::choice(modes, value::none_later);
    let remedy = "write \"enforce\", or \"shadow\" to see first what it would refuse";
    let mode = section.required("mode", remedy, mode);
    let bin_digits = section.optional("bin_digits", value::whole(6..=8));
    let keys_max = section.optional("keys_max", value::whole(1..=KEYS_MAX));
    if let Some(per) = per {
        let without_bin = "means nothing without per = [\"bin\"]";
        useless_if(section, per != Per::Bin, bin_digits.as_ref(), without_bin);
        useless_if(section, per == Per::All, keys_max.as_ref(), "means nothing with per = []");
    }
    let keys = read_keys(section, per);
    let rate = rate?.value;
    Some(Rule {
        name: name?.value,
        per: per?,
        rate,
        burst: burst?.value.unwrap_or_else(|| Burst::of_rate(rate)),
        mode: mode?.value,
        bin_digits: bin_digits?.value.unwrap_or(BIN_DIGITS),
        keys_max: keys_max?.value.unwrap_or(KEYS_DEFAULT),
        keys: keys?,
    })
}

/// A number that nothing would ever look at was meant for something.
fn useless_if<T>(
    section: &Section<'_>,
    useless: bool,
    read: Option<&Placed<Option<T>>>,
    problem: &str,
) {
    if let Some(Placed { value: Some(_), place }) = read
        && useless
    {
        section.fault(place, &Wrong::new(problem, "remove it"));
    }
}

fn per(section: &Section<'_>) -> Option<Per> {
    let Placed { value: dimensions, place } = section.list("per", PER_REMEDY, dimension)?;
    let problem = match dimensions.as_deref() {
        Some([]) => return Some(Per::All),
        Some([only]) => return Some(only.value),
        Some(_) => format!("several dimensions in one limit are {}", value::LATER),
        None => "is missing".to_owned(),
    };
    section.fault(&place, &Wrong::new(problem, PER_REMEDY));
    None
}

fn dimension(value: &DeValue<'_>) -> Result<Per, Wrong> {
    let later = |name: &str| ["terminal", "operation", "mcc", "link"].contains(&name);
    value::choice([("bin", Per::Bin), ("merchant", Per::Merchant)], later)(value)
}

fn rate(value: &DeValue<'_>) -> Result<Rate, Wrong> {
    let tokens = value::number(value, RATE_REMEDY)?;
    Rate::per_second(tokens)
        .map_err(|error| Wrong::new(format!("{tokens} is out of range"), error.to_string()))
}

fn burst(value: &DeValue<'_>) -> Result<Burst, Wrong> {
    let tokens = value::number(value, BURST_REMEDY)?;
    Burst::tokens(tokens)
        .map_err(|error| Wrong::new(format!("{tokens} is out of range"), error.to_string()))
}

fn read_keys(limit: &Section<'_>, per: Option<Per>) -> Option<Vec<RuleKey>> {
    let mut merchants = Seen::default();
    let mut ranges = Ranges::default();
    let mut keys = Vec::new();
    for section in limit.tables("key")? {
        let bin = section.optional("bin", bin);
        let merchant = section.optional("merchant", merchant);
        let acquirer = section.optional("acquirer", acquirer);
        let rate = section.required("rate", RATE_REMEDY, rate);
        let burst = section.optional("burst", burst);
        let matches = match per {
            Some(Per::All) => {
                let remedy = "remove it, or write per = [\"bin\"] or [\"merchant\"]";
                let wrong = Wrong::new("has no bucket in a limit with per = []", remedy);
                section.fault(section.place(), &wrong);
                None
            }
            Some(Per::Bin) => {
                let stray = [
                    is_stray(&section, merchant.as_ref(), "bin"),
                    is_stray(&section, acquirer.as_ref(), "bin"),
                ];
                let bin = bin.and_then(|bin| present(&section, bin, BIN_REMEDY, stray));
                bin.map(|bin| ranges.take(&section, bin))
            }
            Some(Per::Merchant) => {
                let stray = [is_stray(&section, bin.as_ref(), "merchant")];
                let merchant = merchant.and_then(|m| present(&section, m, MERCHANT_REMEDY, stray));
                let acquirer = acquirer.and_then(|a| present(&section, a, ACQUIRER_REMEDY, stray));
                merchant_key(&section, &mut merchants, merchant, acquirer)
            }
            None => None,
        };
        section.finish(&KEY_LATER);
        let key = || {
            let rate = rate?.value;
            let burst = burst?.value.unwrap_or_else(|| Burst::of_rate(rate));
            Some(RuleKey { matches: matches?, rate, burst })
        };
        keys.push(key());
    }
    keys.into_iter().collect()
}

/// Whether there is a key of another dimension than its limit's, which is a fault.
fn is_stray<T>(section: &Section<'_>, read: Option<&Placed<Option<T>>>, per: &str) -> bool {
    let Some(Placed { value: Some(_), place }) = read else { return false };
    let problem = format!("names something else than the limit's per = [\"{per}\"]");
    section.fault(place, &Wrong::new(problem, "remove it, or write a limit of its own"));
    true
}

/// A key that this limit's dimension makes necessary. That it is missing needs no mention where a
/// stray one stands in its place.
fn present<T, const N: usize>(
    section: &Section<'_>,
    read: Placed<Option<T>>,
    remedy: &str,
    stray: [bool; N],
) -> Option<Placed<T>> {
    let Placed { value, place } = read;
    if value.is_none() && !stray.contains(&true) {
        section.fault(&place, &Wrong::new("is missing", remedy));
    }
    value.map(|value| Placed { value, place })
}

fn merchant_key(
    section: &Section<'_>,
    seen: &mut Seen,
    merchant: Option<Placed<String>>,
    acquirer: Option<Placed<String>>,
) -> Option<KeyMatch> {
    let (merchant, acquirer) = (merchant?, acquirer?);
    let id = MerchantId::new(acquirer.value.as_bytes(), merchant.value.as_bytes())?;
    let name = quoted(&String::from_utf8_lossy(id.name()));
    seen.check(section, &merchant, name, "remove one of the two");
    Some(KeyMatch::Merchant(id))
}

/// The ranges of one limit, of which two of the same width may not overlap.
#[derive(Default)]
struct Ranges {
    /// The line of each by its width and its first number.
    lines: BTreeMap<(u32, u32), usize>,
}

struct Range {
    first: u32,
    last: u32,
    text: String,
}

impl Ranges {
    fn take(&mut self, section: &Section<'_>, range: Placed<Range>) -> KeyMatch {
        let Placed { value: Range { first, last, text }, place } = range;
        // Two ranges of one width meet when they begin no further apart than they are wide.
        let width = last - first;
        let near = (width, first.saturating_sub(width))..=(width, last);
        if let Some(((_, other), line)) = self.lines.range(near).next() {
            let text = quoted(&text);
            let wrong = if *other == first {
                let problem = format!("{text} is the same range as at line {line}");
                Wrong::new(problem, "remove one of the two")
            } else {
                let problem = format!("{text} overlaps a range of the same width at line {line}");
                Wrong::new(problem, "narrow one of the two: the narrower range wins")
            };
            section.fault(&place, &wrong);
        }
        self.lines.entry((width, first)).or_insert(place.line);
        KeyMatch::BinRange { first, last }
    }
}

/// Reads a BIN. The value is not repeated in a fault unless it is short: it may be a card number.
fn bin(value: &DeValue<'_>) -> Result<Range, Wrong> {
    let text = value::text(value, "digits in quotes", BIN_REMEDY)?;
    let problem = |error| match error {
        KeyError::Digits => "is neither digits nor a range of them".to_owned(),
        KeyError::Long => "is longer than a BIN".to_owned(),
        KeyError::Lengths | KeyError::Backwards => format!("{} is not a range", quoted(text)),
    };
    match KeyMatch::parse_bin(text) {
        Ok(KeyMatch::BinRange { first, last }) => Ok(Range { first, last, text: text.to_owned() }),
        Ok(KeyMatch::Merchant(_)) => Err(not(value, "a BIN", BIN_REMEDY)),
        Err(error) => Err(Wrong::new(problem(error), error.to_string())),
    }
}

/// Reads a card acceptor, as long as ISO 8583:2003 allows it to be.
fn merchant(value: &DeValue<'_>) -> Result<String, Wrong> {
    const WHAT: &str = "a merchant";
    let text = value::text(value, WHAT, MERCHANT_REMEDY)?;
    let printable = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if printable && (1..=35).contains(&text.len()) && !text.trim().is_empty() {
        Ok(text.to_owned())
    } else {
        Err(not(value, WHAT, MERCHANT_REMEDY))
    }
}

fn acquirer(value: &DeValue<'_>) -> Result<String, Wrong> {
    const WHAT: &str = "an acquirer";
    let text = value::text(value, WHAT, ACQUIRER_REMEDY)?;
    if text.len() <= 11 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        Ok(text.to_owned())
    } else {
        Err(not(value, WHAT, ACQUIRER_REMEDY))
    }
}

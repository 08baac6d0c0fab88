//! `[[limit]]`: the rules of the limiter.
//!
//! What one rate, burst or BIN may be is `limits`' to say, and asked of its types. What is said
//! here is where in the file, and how the keys of a limit stand to each other.

use toml::de::DeValue;

use super::fault::Wrong;
use super::limit_amount::{self, Beside};
use super::limit_key;
use super::limit_value as read;
use super::reader::{Placed, Section, Seen};
use super::value;
use crate::limits::rule::{
    BIN_DIGITS_DEFAULT, Burst, KEYS_DEFAULT, KEYS_MAX, MccRange, Mode, Rate, Rule, When,
};
use crate::limits::{Dimension, Hold, LIMITS_MAX, Per};

pub(super) const RATE_REMEDY: &str = "write tokens per second, such as 2000 or 0.5";
const BURST_REMEDY: &str = "write a number of tokens, such as 4000";
const PER_REMEDY: &str = "write one or more of \"bin\", \"merchant\", \"terminal\", \"operation\", \"mcc\" and \"link\", \
     or [] for one bucket for all";

/// Reads all limits; `None` when one of them has a fault. `links` are the names of the links, in
/// their order, if they could be read.
pub(super) fn read_all(root: &Section<'_>, links: Option<&[String]>) -> Option<Vec<Rule>> {
    let mut names = Seen::default();
    let mut rules = Vec::new();
    for (index, section) in root.tables("limit")?.into_iter().enumerate() {
        if index == LIMITS_MAX {
            let problem = format!("there are more than {LIMITS_MAX} limits");
            let remedy = "give keys of one limit rates of their own in [[limit.key]]";
            section.fault(section.place(), &Wrong::new(problem, remedy));
        }
        rules.push(read_one(&section, &mut names, links));
        section.finish(&[]);
    }
    rules.into_iter().collect()
}

fn read_one(section: &Section<'_>, names: &mut Seen, links: Option<&[String]>) -> Option<Rule> {
    let name = section.required("name", "write a name for logs and metrics", value::name);
    if let Some(name) = &name {
        names.check_name(section, name);
    }
    let per = per(section);
    let rate = section.required("rate", RATE_REMEDY, rate);
    let burst = section.optional("burst", burst);
    let beside = Beside::read(section, rate.as_ref());
    let holds = Hold::ALL.map(|hold| (hold.name(), hold));
    let hold = section.or("hold", Hold::default(), value::choice(holds, value::none_later));
    let modes = Mode::ALL.map(|mode| (mode.name(), mode));
    let mode = value::choice(modes, value::none_later);
    let remedy = "write \"enforce\", or \"shadow\" to see first what it would refuse";
    let mode = section.required("mode", remedy, mode);
    let when = when(section.table("when"), links);
    let reserve = limit_amount::reserve(section.table("reserve"), when.as_ref());
    let bin_digits = section.optional("bin_digits", value::whole(6..=8));
    let keys_max = section.optional("keys_max", value::whole(1..=KEYS_MAX));
    if let Some(per) = per {
        let without_bin = "means nothing without \"bin\" in per";
        useless_if(section, !per.has(Dimension::Bin), bin_digits.as_ref(), without_bin);
        let one_bucket = "means nothing with per = []";
        useless_if(section, per.is_nothing(), keys_max.as_ref(), one_bucket);
    }
    let keys = limit_key::read_all(section, per, links);
    let (rate, beside) = (rate?.value, beside?);
    Some(Rule {
        name: name?.value,
        per: per?,
        rate,
        burst: burst?.value.unwrap_or_else(|| Burst::of_rate(rate)),
        mode: mode?.value,
        when: when?,
        bin_digits: bin_digits?.value.unwrap_or(BIN_DIGITS_DEFAULT),
        keys_max: keys_max?.value.unwrap_or(KEYS_DEFAULT),
        hold: hold?.value,
        peak: beside.peak,
        floor: beside.floor,
        reserve: reserve?,
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
    let Some(dimensions) = dimensions else {
        section.fault(&place, &Wrong::new("is missing", PER_REMEDY));
        return None;
    };
    let mut seen = Seen::default();
    for dimension in &dimensions {
        let name = fault_name(dimension.value);
        seen.check(section, dimension, name, "remove one of the two");
    }
    let dimensions: Vec<Dimension> = dimensions.iter().map(|placed| placed.value).collect();
    Some(Per::of(&dimensions))
}

fn fault_name(dimension: Dimension) -> String {
    super::fault::quoted(dimension.name())
}

fn dimension(value: &DeValue<'_>) -> Result<Dimension, Wrong> {
    let choices = Dimension::ALL.map(|dimension| (dimension.name(), dimension));
    value::choice(choices, |name| name == "card")(value)
}

pub(super) fn rate(value: &DeValue<'_>) -> Result<Rate, Wrong> {
    let tokens = value::number(value, RATE_REMEDY)?;
    Rate::per_second(tokens)
        .map_err(|error| Wrong::new(format!("{tokens} is out of range"), error.to_string()))
}

pub(super) fn burst(value: &DeValue<'_>) -> Result<Burst, Wrong> {
    let tokens = value::number(value, BURST_REMEDY)?;
    Burst::tokens(tokens)
        .map_err(|error| Wrong::new(format!("{tokens} is out of range"), error.to_string()))
}

/// Reads which messages a limit is for.
fn when(section: Section<'_>, links: Option<&[String]>) -> Option<When> {
    let operations = those(&section, "operation", read::operation);
    let classes = those(&section, "class", read::class);
    let mccs = those(&section, "mcc", read::mcc_range);
    let links = those(&section, "link", |value| read::link(value, links));
    section.finish(&[]);
    let mccs = mccs?.into_iter().map(|(first, last)| MccRange { first, last }).collect();
    Some(When { links: links?, classes: classes?, operations: operations?, mccs })
}

/// The values listed at `key`: none when there is no list.
fn those<T>(
    section: &Section<'_>,
    key: &'static str,
    read: impl Fn(&DeValue<'_>) -> Result<T, Wrong>,
) -> Option<Vec<T>> {
    let Placed { value: listed, place } =
        section.list(key, "write a list of what the limit is for", read)?;
    if listed.as_ref().is_some_and(Vec::is_empty) {
        let remedy = "remove it, or write mode = \"off\"";
        section.fault(&place, &Wrong::new("is empty, so that the limit is for nothing", remedy));
    }
    Some(listed.into_iter().flatten().map(|placed| placed.value).collect())
}

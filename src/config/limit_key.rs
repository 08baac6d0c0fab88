//! `[[limit.key]]`: keys of a limit with a bucket of their own.
//!
//! A key names at least one of the dimensions of its limit, and no other. Two keys may not be for
//! the same messages, as nobody could say which of them wins.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use super::fault::{Place, Wrong, quoted};
use super::limit::{RATE_REMEDY, burst, rate};
use super::limit_amount::Beside;
use super::limit_value as read;
use super::reader::{Placed, Section};
use crate::limits::rule::{BinRange, Burst, KeyMatch, RuleKey};
use crate::limits::{Dimension, Per};
use crate::traffic::{MerchantId, TerminalId};

/// Reads the keys of a limit; `None` when one of them has a fault.
pub(super) fn read_all(
    limit: &Section<'_>,
    per: Option<Per>,
    links: Option<&[String]>,
) -> Option<Vec<RuleKey>> {
    let mut known = Known::default();
    let mut keys = Vec::new();
    for section in limit.tables("key")? {
        let named = Named::read(&section, links);
        let rate = section.required("rate", RATE_REMEDY, rate);
        let burst = section.optional("burst", burst);
        let beside = Beside::read(&section, rate.as_ref());
        let matches = match per {
            Some(per) if per.is_nothing() => {
                let remedy = "remove it, or name what has a bucket of its own in per";
                let wrong = Wrong::new("has no bucket in a limit with per = []", remedy);
                section.fault(section.place(), &wrong);
                None
            }
            Some(per) => named.and_then(|named| named.matches(&section, per, links, &mut known)),
            None => None,
        };
        section.finish(&[]);
        let key = || {
            let rate = rate?.value;
            let burst = burst?.value.unwrap_or_else(|| Burst::of_rate(rate));
            let Beside { peak, floor } = beside?;
            Some(RuleKey { matches: matches?, rate, burst, peak, floor })
        };
        keys.push(key());
    }
    keys.into_iter().collect()
}

/// What one key names, and where.
struct Named {
    matches: KeyMatch,
    /// The range as it is written.
    bin: Option<Placed<String>>,
    merchant: Placed<Option<String>>,
    terminal: Placed<Option<String>>,
    acquirer: Placed<Option<String>>,
    places: Vec<(Dimension, Place)>,
}

impl Named {
    fn read(section: &Section<'_>, links: Option<&[String]>) -> Option<Self> {
        let bin = section.optional("bin", read::bin);
        let merchant = section.optional("merchant", read::merchant);
        let terminal = section.optional("terminal", read::terminal);
        let acquirer = section.optional("acquirer", read::acquirer);
        let mcc = section.optional("mcc", read::mcc);
        let operation = section.optional("operation", read::operation);
        let link = section.optional("link", |value| read::link(value, links));
        let (bin, mcc, operation, link) = (bin?, mcc?, operation?, link?);
        let (merchant, terminal, acquirer) = (merchant?, terminal?, acquirer?);
        let mut places = Vec::new();
        let mut note = |dimension, is_named: bool, place: &Place| {
            if is_named {
                places.push((dimension, place.clone()));
            }
        };
        note(Dimension::Terminal, terminal.value.is_some(), &terminal.place);
        note(Dimension::Merchant, merchant.value.is_some(), &merchant.place);
        note(Dimension::Bin, bin.value.is_some(), &bin.place);
        note(Dimension::Mcc, mcc.value.is_some(), &mcc.place);
        note(Dimension::Operation, operation.value.is_some(), &operation.place);
        note(Dimension::Link, link.value.is_some(), &link.place);
        let (range, text) = bin.value.unzip();
        Some(Self {
            matches: KeyMatch {
                bin: range,
                mcc: mcc.value,
                operation: operation.value,
                link: link.value,
                ..KeyMatch::default()
            },
            bin: text.map(|value| Placed { value, place: bin.place }),
            merchant,
            terminal,
            acquirer,
            places,
        })
    }

    /// What it is for, unless that is something else than its limit has or than nobody else is for.
    fn matches(
        mut self,
        section: &Section<'_>,
        per: Per,
        links: Option<&[String]>,
        known: &mut Known,
    ) -> Option<KeyMatch> {
        let strays = self.strays(section, per);
        let terminal_or_merchant = [Dimension::Merchant, Dimension::Terminal];
        let of_acquirer = terminal_or_merchant.into_iter().any(|dimension| per.has(dimension));
        if !of_acquirer {
            let stray = self.acquirer.value.is_some();
            if stray {
                stray_fault(section, &self.acquirer.place, per);
            }
            if stray || strays {
                return None;
            }
        } else if strays {
            return None;
        }
        let Some((_, place)) = self.places.first().cloned() else {
            missing(section, per);
            return None;
        };
        self.add_acquirer(section)?;
        known.check(section, &self, &place, links);
        Some(self.matches)
    }

    /// Whether it names a dimension that its limit does not have, which is a fault.
    fn strays(&self, section: &Section<'_>, per: Per) -> bool {
        let strays = self.places.iter().filter(|(dimension, _)| !per.has(*dimension));
        strays.map(|(_, place)| stray_fault(section, place, per)).count() > 0
    }

    /// Merchants and terminals are told apart by acquirer, which has to be named with them.
    fn add_acquirer(&mut self, section: &Section<'_>) -> Option<()> {
        let acquirer = self.acquirer.value.as_deref();
        if self.merchant.value.is_none() && self.terminal.value.is_none() {
            if acquirer.is_some() {
                let remedy = "remove it, or name a merchant or a terminal of this acquirer";
                section.fault(&self.acquirer.place, &Wrong::new("means nothing alone", remedy));
                return None;
            }
            return Some(());
        }
        let Some(acquirer) = acquirer else {
            let wrong = Wrong::new("is missing", read::ACQUIRER_REMEDY);
            section.fault(&self.acquirer.place, &wrong);
            return None;
        };
        if let Some(merchant) = &self.merchant.value {
            self.matches.merchant = MerchantId::new(acquirer.as_bytes(), merchant.as_bytes());
        }
        if let Some(terminal) = &self.terminal.value {
            self.matches.terminal = TerminalId::new(acquirer.as_bytes(), terminal.as_bytes());
        }
        Some(())
    }
}

fn stray_fault(section: &Section<'_>, place: &Place, per: Per) {
    let dimensions: Vec<String> = per.iter().map(|dimension| quoted(dimension.name())).collect();
    let problem =
        format!("names something else than the limit's per = [{}]", dimensions.join(", "));
    section.fault(place, &Wrong::new(problem, "remove it, or write a limit of its own"));
}

/// A key of one dimension lacks it, or one of several lacks them all.
fn missing(section: &Section<'_>, per: Per) {
    let remedy = |dimension| match dimension {
        Dimension::Terminal => read::TERMINAL_REMEDY,
        Dimension::Merchant => read::MERCHANT_REMEDY,
        Dimension::Bin => read::BIN_REMEDY,
        Dimension::Mcc | Dimension::Operation | Dimension::Link => "name one",
    };
    let mut dimensions = per.iter();
    match (dimensions.next(), dimensions.next()) {
        (Some(only), None) => {
            let place = section.place_of(only.name());
            section.fault(&place, &Wrong::new("is missing", remedy(only)));
        }
        _ => {
            let names = per.iter().map(|dimension| dimension.name().to_owned());
            let remedy = format!("name {} in it", super::value::one_of(names));
            section.fault(section.place(), &Wrong::new("names no key", remedy));
        }
    }
}

/// The keys of one limit that were read before.
#[derive(Default)]
struct Known {
    /// The line of each.
    without_bin: HashMap<KeyMatch, usize>,
    /// By what else they name.
    ranges: HashMap<KeyMatch, Ranges>,
}

impl Known {
    fn check(
        &mut self,
        section: &Section<'_>,
        named: &Named,
        place: &Place,
        links: Option<&[String]>,
    ) {
        if let (Some(range), Some(text)) = (named.matches.bin, &named.bin) {
            let rest = KeyMatch { bin: None, ..named.matches };
            self.ranges.entry(rest).or_default().take(section, range, text);
            return;
        }
        match self.without_bin.entry(named.matches) {
            Entry::Vacant(free) => {
                free.insert(place.line);
            }
            Entry::Occupied(first) => {
                let same = quoted(&values(&named.matches, links));
                let problem = format!("{same} stands at line {} already", first.get());
                section.fault(place, &Wrong::new(problem, "remove one of the two"));
            }
        }
    }
}

/// What a key names, but for its BIN.
fn values(matches: &KeyMatch, links: Option<&[String]>) -> String {
    let KeyMatch { terminal, merchant, bin: _, mcc, operation, link } = matches;
    let link = link.and_then(|link| links?.get(usize::from(link.0)).cloned());
    let values = [
        terminal.map(|terminal| terminal.to_string()),
        merchant.map(|merchant| merchant.to_string()),
        mcc.map(|mcc| mcc.to_string()),
        operation.map(|operation| operation.name().to_owned()),
        link,
    ];
    values.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The ranges of keys that are the same but for them, of which two of the same width may not
/// overlap.
#[derive(Default)]
struct Ranges {
    /// The line of each by its width and its first number.
    lines: BTreeMap<(u32, u32), usize>,
}

impl Ranges {
    fn take(&mut self, section: &Section<'_>, range: BinRange, written: &Placed<String>) {
        let Placed { value: text, place } = written;
        let BinRange { first, last } = range;
        // Two ranges of one width meet when they begin no further apart than they are wide.
        let width = last - first;
        let near = (width, first.saturating_sub(width))..=(width, last);
        if let Some(((_, other), line)) = self.lines.range(near).next() {
            let text = quoted(text);
            let wrong = if *other == first {
                let problem = format!("{text} is the same range as at line {line}");
                Wrong::new(problem, "remove one of the two")
            } else {
                let problem = format!("{text} overlaps a range of the same width at line {line}");
                Wrong::new(problem, "narrow one of the two: the narrower range wins")
            };
            section.fault(place, &wrong);
        }
        self.lines.entry((width, first)).or_insert(place.line);
    }
}

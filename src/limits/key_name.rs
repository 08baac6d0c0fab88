//! The readable name of a key: its values, as an operator would write them.
//!
//! One dimension gives its value alone (`411111`, `123456:SHOP0001`), several give each with its
//! name (`bin=411111 operation=refund`). No name holds more of a card number than a BIN.

use super::per::{Dimension, Per};
use super::rule::{BinRange, KeyMatch, Rule};
use crate::traffic::{Bin, LinkId, Traffic};

/// The name of the automatic key that a message has; `None` when it lacks a dimension.
pub(super) fn of_message(rule: &Rule, traffic: &Traffic, links: &[String]) -> Option<String> {
    let digits = usize::from(rule.bin_digits);
    name(rule.per, |dimension| match dimension {
        Dimension::Terminal => traffic.terminal.map(|terminal| terminal.to_string()),
        Dimension::Merchant => traffic.merchant.map(|merchant| merchant.to_string()),
        Dimension::Bin => {
            traffic.bin.map(|bin| format!("{:0digits$}", bin.prefix(rule.bin_digits)))
        }
        Dimension::Mcc => traffic.mcc.map(|mcc| mcc.to_string()),
        Dimension::Operation => Some(traffic.operation.name().to_owned()),
        Dimension::Link => link(traffic.link, links),
    })
}

/// The name of a key of the configuration.
pub(super) fn of_match(matches: &KeyMatch, links: &[String]) -> Option<String> {
    name(matches.per(), |dimension| match dimension {
        Dimension::Terminal => matches.terminal.map(|terminal| terminal.to_string()),
        Dimension::Merchant => matches.merchant.map(|merchant| merchant.to_string()),
        Dimension::Bin => matches.bin.map(range),
        Dimension::Mcc => matches.mcc.map(|mcc| mcc.to_string()),
        Dimension::Operation => matches.operation.map(|operation| operation.name().to_owned()),
        Dimension::Link => matches.link.and_then(|place| link(place, links)),
    })
}

fn name(per: Per, value: impl Fn(Dimension) -> Option<String>) -> Option<String> {
    if per.is_nothing() {
        return Some(per.to_string());
    }
    let values: Option<Vec<String>> = per
        .iter()
        .map(|dimension| {
            let value = value(dimension)?;
            let alone = per.count() == 1;
            Some(if alone { value } else { format!("{}={value}", dimension.name()) })
        })
        .collect();
    Some(values?.join(" "))
}

fn link(place: LinkId, links: &[String]) -> Option<String> {
    links.get(usize::from(place.0)).cloned()
}

/// A prefix, or both ends of a range, in no more digits than it takes.
fn range(BinRange { mut first, mut last }: BinRange) -> String {
    let mut digits = Bin::DIGITS;
    while digits > 1 && first % 10 == 0 && last % 10 == 9 {
        (first, last, digits) = (first / 10, last / 10, digits - 1);
    }
    if first == last {
        format!("{first:0digits$}")
    } else {
        format!("{first:0digits$}-{last:0digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::rule::{Burst, Rate};
    use crate::traffic::{Class, MerchantId, Operation};

    #[test]
    fn a_range_is_named_as_it_was_written() {
        for text in ["4", "411111", "04111112", "400000-409998", "41-43", "00000000"] {
            assert_eq!(range(BinRange::parse(text).unwrap()), text);
        }
        assert_eq!(range(BinRange::parse("400000-409999").unwrap()), "40");
    }

    #[test]
    fn one_value_stands_alone_and_several_each_with_its_dimension() {
        let links = ["visa".to_owned()];
        let mut traffic = Traffic::new(LinkId(0), Class::Critical, Operation::Refund);
        traffic.bin = Bin::from_digits(&[0, 4, 1, 1, 1, 1, 9, 9]);
        traffic.merchant = MerchantId::new(b"123456", b"SHOP 1");
        let named = |per| {
            let (rate, burst) = (Rate::per_second(1.0).unwrap(), Burst::tokens(1.0).unwrap());
            of_message(&Rule::new("limit", per, rate, burst), &traffic, &links)
        };
        assert_eq!(named(Per::BIN).unwrap(), "041111");
        assert_eq!(named(Per::MERCHANT).unwrap(), "123456:SHOP 1");
        assert_eq!(named(Per::NOTHING).unwrap(), "everything");
        let several = Per::of(&[Dimension::Link, Dimension::Operation, Dimension::Bin]);
        assert_eq!(named(several).unwrap(), "bin=041111 operation=refund link=visa");
        assert_eq!(named(several.and(Per::TERMINAL)), None);
        let bin = Some(BinRange::parse("041111").unwrap());
        let matches = KeyMatch { bin, operation: Some(Operation::Refund), ..KeyMatch::default() };
        assert_eq!(of_match(&matches, &links).unwrap(), "bin=041111 operation=refund");
    }
}

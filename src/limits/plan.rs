//! Which limits can apply to a message, known before it comes.
//!
//! Link, class, operation and what a message has (a BIN, a merchant, a terminal, a category) choose
//! one word of a table that is made with the policy; the limits in it are asked and no others. What
//! is left for the limit itself is the list of categories that it is for.

use super::limit_set::{LIMITS_MAX, bits};
use super::per::{Dimension, Per};
use super::rule::{Rule, When};
use crate::traffic::{Class, LinkId, Operation, Traffic};

/// What a message may have or lack, each with a bit of its own.
const PRESENCES: usize = 1 << 4;
/// Most limits, each part of a rule counted: three of sixteen rules.
const ASKED_MAX: usize = 3 * LIMITS_MAX;
/// Words for one link.
const PER_LINK: usize = Class::ALL.len() * Operation::ALL.len() * PRESENCES;

/// Some limits, by their places in the order in which they are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked(u64);

impl Asked {
    /// How many they are.
    pub(super) const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Their places, in order.
    #[inline]
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        bits(self.0)
    }

    /// Those of them that are among `others`.
    pub(super) const fn among(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// Those of them that are not among `others`.
    pub(super) const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// These and the limit of a place.
    pub(super) const fn and(self, place: usize) -> Self {
        Self(self.0 | 1 << (place % ASKED_MAX))
    }

    /// Whether they are none.
    pub(super) const fn is_nothing(self) -> bool {
        self.0 == 0
    }
}

/// The table.
#[derive(Debug)]
pub(super) struct Plan {
    words: Box<[Asked]>,
    links: usize,
    needs: Per,
}

impl Plan {
    /// The plan of the parts of rules in the order in which they are asked, each by its rule, for so
    /// many links.
    pub(super) fn new(rules: &[&Rule], links: usize) -> Self {
        let mut words = Vec::with_capacity((links + 1) * PER_LINK);
        // One link more than there are: it stands for all that the configuration does not know.
        for link in 0..=links {
            let link = LinkId(u16::try_from(link).unwrap_or(u16::MAX));
            for class in Class::ALL {
                for operation in Operation::ALL {
                    let fits = |rule: &Rule| fits(&rule.when, link, class, operation);
                    words.extend((0..PRESENCES).map(|presence| {
                        let asked = |rule: &&Rule| {
                            fits(rule) && presence_bits(needs(rule)) & !presence == 0
                        };
                        let places = rules.iter().enumerate().filter(|(_, rule)| asked(rule));
                        places.fold(Asked::default(), |all, (place, _)| all.and(place))
                    }));
                }
            }
        }
        let needs = rules.iter().fold(Per::NOTHING, |all, rule| all.and(needs(rule)));
        Self { words: words.into(), links, needs }
    }

    /// The dimensions that some limit looks at.
    pub(super) const fn needs(&self) -> Per {
        self.needs
    }

    /// The limits that can apply to a message.
    #[inline]
    pub(super) fn of(&self, traffic: &Traffic) -> Asked {
        let link = usize::from(traffic.link.0).min(self.links);
        let (class, operation) = (traffic.class as usize, traffic.operation as usize);
        let row = (link * Class::ALL.len() + class) * Operation::ALL.len() + operation;
        self.words.get(row * PRESENCES + presence(traffic)).copied().unwrap_or_default()
    }
}

/// What a rule has to find in a message.
fn needs(rule: &Rule) -> Per {
    if rule.when.mccs.is_empty() { rule.per } else { rule.per.and(Per::MCC) }
}

/// Whether a filter lets such messages through, whatever their category.
fn fits(when: &When, link: LinkId, class: Class, operation: Operation) -> bool {
    let When { links, classes, operations, mccs: _ } = when;
    (links.is_empty() || links.contains(&link))
        && (classes.is_empty() || classes.contains(&class))
        && (operations.is_empty() || operations.contains(&operation))
}

const fn presence_bits(per: Per) -> usize {
    per.has(Dimension::Bin) as usize
        | (per.has(Dimension::Merchant) as usize) << 1
        | (per.has(Dimension::Terminal) as usize) << 2
        | (per.has(Dimension::Mcc) as usize) << 3
}

#[inline]
const fn presence(traffic: &Traffic) -> usize {
    traffic.bin.is_some() as usize
        | (traffic.merchant.is_some() as usize) << 1
        | (traffic.terminal.is_some() as usize) << 2
        | (traffic.mcc.is_some() as usize) << 3
}

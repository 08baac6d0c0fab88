//! The parts of a limit: the buckets that one rule asks for, each by its own amounts.
//!
//! A rule has a bucket of its rate for each key; it may have a second one beside it, its peak, and a
//! third, its floor, that says which messages are not refused. Each part is a set of buckets like
//! those of a limit of its own. This module says which buckets a part has and how large they are.

use std::time::Duration;

use super::lease::{Hold, Leases};
use super::leasing::Role;
use super::rule::{Amount, Burst, Rate, Rule};

/// A floor lets through what keeps to it even while what it spent is reported: with its burst it has
/// what its rate gives in so long (docs/leasing.md, the bound of false rejects).
const FLOOR_MARGIN: Duration = Duration::from_millis(150);

/// Which part of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What a limit is asked for first: whether a message may not be refused.
    Floor,
    /// The rate and burst of the rule.
    Rate,
    /// The second bucket.
    Peak,
}

impl Part {
    /// Every part, in the order in which they are asked.
    pub(super) const ALL: [Self; 3] = [Self::Floor, Self::Rate, Self::Peak];

    /// What the lease sync has to know of its buckets.
    pub(super) const fn role(self, hold: Hold) -> Role {
        match self {
            Self::Floor => Role::Floor,
            Self::Rate | Self::Peak => Role::Limit(hold),
        }
    }

    /// How much of its buckets one node may spend unreported.
    pub(super) const fn hold(self, hold: Hold) -> Hold {
        match self {
            Self::Floor => Hold::Burst,
            Self::Rate | Self::Peak => hold,
        }
    }
}

/// The amounts of one part.
#[derive(Clone, Debug)]
pub(super) struct Amounts {
    pub(super) part: Part,
    /// Of a key that is not named; `None` when such a key has no bucket here.
    pub(super) own: Option<Amount>,
    /// Of each named key.
    pub(super) named: Vec<Option<Amount>>,
}

impl Amounts {
    /// Those of a rule's part; `None` when it has no such part. A named key has what it states, and
    /// nothing of the limit's peak and floor.
    pub(super) fn of(rule: &Rule, part: Part, leases: &Leases) -> Option<Self> {
        let (own, named): (_, Vec<_>) = match part {
            Part::Rate => {
                (Some(rule.amount()), rule.keys.iter().map(|key| Some(key.amount())).collect())
            }
            Part::Peak => (rule.peak, rule.keys.iter().map(|key| key.peak).collect()),
            Part::Floor => {
                let room =
                    |floor: Amount| if leases.terms().is_some() { widened(floor) } else { floor };
                let named = rule.keys.iter().map(|key| key.floor.map(room)).collect();
                (rule.floor.map(room), named)
            }
        };
        let is_there = own.is_some() || named.iter().any(Option::is_some);
        is_there.then_some(Self { part, own, named })
    }
}

fn widened(Amount { rate, burst }: Amount) -> Amount {
    Amount { rate, burst: burst.plus(rate, FLOOR_MARGIN) }
}

/// An amount for buckets that nobody meets.
pub(super) fn nominal() -> Amount {
    Amount { rate: Rate::SLOWEST, burst: Burst::ONE }
}

//! How the limits stand to one message, for an operator who wants to know why.
//!
//! It looks and spends nothing. What it says holds at the moment of asking: another message may take
//! the last token before the next look.

use std::time::Duration;

use super::grant::ONE;
use super::id::Digests;
use super::key_name;
use super::leasing::Place;
use super::limit::{Found, Limit};
use super::limit_set::LimitIx;
use super::part::Part;
use super::per::{Dimension, Per};
use super::policy::Policy;
use super::rule::{Amount, Burst, MccRange, Mode, Rate, Rule};
use super::store_key::StoreKey;
use crate::clock::Moment;
use crate::traffic::Traffic;

/// How one limit stands to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its mode is off.
    Off,
    /// Its filter leaves such messages out, by what is named here.
    NotFor(Filter),
    /// The message has no value in this dimension.
    Lacks(Dimension),
    /// It applies, with this bucket.
    Applies(Bucket),
}

/// What a limit's `when` may leave a message out by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The link that it came in on.
    Link,
    /// How gladly it is refused.
    Class,
    /// What it does.
    Operation,
    /// What the merchant sells, or that it does not say.
    Mcc,
}

impl Filter {
    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Class => "class",
            Self::Operation => "operation",
            Self::Mcc => "mcc",
        }
    }
}

/// The bucket of one key at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The key's readable name.
    pub key: String,
    /// Whose bucket it is.
    pub holder: Holder,
    /// Micro-tokens that may be spent; below zero is debt.
    pub level: i64,
    /// What it holds when it is full.
    pub burst: Burst,
    /// How fast it refills.
    pub rate: Rate,
    /// How long it takes to be full again if nobody spends.
    pub full_after: Duration,
    /// Micro-tokens that a request of the message's class leaves to others.
    pub reserved: i64,
    /// The second bucket of the key.
    pub peak: Option<Beside>,
    /// The bucket that says whether the message may not be refused.
    pub floor: Option<Beside>,
}

/// A bucket beside that of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Micro-tokens that may be spent; below zero is debt.
    pub level: i64,
    /// What it holds when it is full, and how fast it refills.
    pub amount: Amount,
    /// Micro-tokens that a request of the message's class leaves to others.
    pub reserved: i64,
}

impl Bucket {
    /// Whether a message that may be refused would find a token of each bucket.
    pub fn has_token(&self) -> bool {
        has_token(self.level, self.reserved)
            && self.peak.is_none_or(|peak| has_token(peak.level, peak.reserved))
    }

    /// Whether the message keeps to its floor, so that the limit may not refuse it.
    pub fn conforms(&self) -> bool {
        self.floor.is_some_and(|floor| has_token(floor.level, 0))
    }

    /// Whether one more message that may not be refused would be forgiven its charge.
    pub fn would_forgive(&self) -> bool {
        would_forgive(self.level, self.burst)
            || self.peak.is_some_and(|peak| would_forgive(peak.level, peak.amount.burst))
    }
}

const fn has_token(level: i64, reserved: i64) -> bool {
    level >= ONE.saturating_add(reserved)
}

const fn would_forgive(level: i64, burst: Burst) -> bool {
    level.saturating_sub(ONE) < -burst.micro()
}

/// What is left of a bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Left {
    /// Of a full bucket, 0 to 1; 0 for debt.
    pub share: f64,
    /// The mark of its key, as of [`Policy::key_mark`].
    pub mark: u64,
}

/// Whose bucket a message meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The one bucket of a limit per nothing.
    Everything,
    /// A key of the configuration.
    Named,
    /// A key that was met before.
    Automatic,
    /// A key that has not been met, or not for long: its bucket will be full.
    New,
    /// Several keys, as the limit has no bucket left (`keys_max`).
    Shared,
}

impl Holder {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::Everything, Self::Named, Self::Automatic, Self::New, Self::Shared];

    /// The name in answers to operators.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Named => "named",
            Self::Automatic => "automatic",
            Self::New => "new",
            Self::Shared => "shared",
        }
    }
}

impl Policy {
    /// Every limit with its standing: first those that are asked, in the order in which they are,
    /// then those that are off.
    pub fn findings(&self, traffic: &Traffic, now: Moment) -> Vec<(LimitIx, Standing)> {
        let off = (0u8..).map(LimitIx).zip(self.limits());
        let off = off.filter(|(_, rule)| rule.mode == Mode::Off).map(|(limit, _)| limit);
        let all = self.in_order().chain(off);
        all.filter_map(|limit| Some((limit, self.standing(limit, traffic, now)?))).collect()
    }

    /// How a limit stands to a message; `None` when there is no such limit.
    pub fn standing(&self, limit: LimitIx, traffic: &Traffic, now: Moment) -> Option<Standing> {
        let rule = self.limits().get(usize::from(limit.0))?;
        if rule.mode != Mode::Off
            && let Some(filter) = left_out_by(rule, traffic)
        {
            return Some(Standing::NotFor(filter));
        }
        self.bucket(limit, traffic, now)
    }

    /// The same for a key alone, whatever the limit's `when` says.
    pub fn bucket(&self, limit: LimitIx, traffic: &Traffic, now: Moment) -> Option<Standing> {
        let rule = self.limits().get(usize::from(limit.0))?;
        let Some(asked) = self.limit(limit) else { return Some(Standing::Off) };
        if let Some(dimension) = lacking(rule.per, traffic) {
            return Some(Standing::Lacks(dimension));
        }
        let _turn = self.turn(usize::MAX);
        let mut bucket = look(rule, asked, traffic, self.links(), now)?;
        bucket.peak = self.beside(limit, Part::Peak, traffic, now);
        bucket.floor = self.beside(limit, Part::Floor, traffic, now);
        Some(Standing::Applies(bucket))
    }

    /// Where the lease sync finds the bucket of the key that a message has; `None` when it has none, or
    /// only shares one.
    pub fn leased_place(&self, limit: LimitIx, traffic: &Traffic) -> Option<Place> {
        let _turn = self.turn(usize::MAX);
        let at = self.limits.iter().position(|own| own.ix == limit && own.part == Part::Rate)?;
        let found = self.limits.get(at)?.find(traffic, &mut Digests::none())?;
        Some(Place { limit: u8::try_from(at).ok()?, number: found.cell?.number() })
    }

    /// What the store calls the bucket of the key that a message has; `None` when it has none.
    pub fn store_key(&self, limit: LimitIx, traffic: &Traffic) -> Option<StoreKey> {
        let _turn = self.turn(usize::MAX);
        self.limit(limit)?.store_key_of(traffic, &mut Digests::none())
    }

    /// The bucket of another part of a limit, if the message meets one.
    fn beside(&self, ix: LimitIx, part: Part, traffic: &Traffic, now: Moment) -> Option<Beside> {
        let rule = self.limits().get(usize::from(ix.0))?;
        let limit = self.part(ix, part)?;
        let found = limit.find(traffic, &mut Digests::none())?;
        let named = found.named.and_then(|place| rule.keys.get(place));
        let amount = match part {
            Part::Rate => Some(rule.amount()),
            Part::Peak => named.map_or(rule.peak, |key| key.peak),
            Part::Floor => named.map_or(rule.floor, |key| key.floor),
        };
        let shared = if found.cell.is_none() { limit.shared(traffic) } else { None };
        let level = found.cell.or(shared).and_then(|cell| cell.level(found.grant, now));
        let (level, amount) = (level.unwrap_or(found.grant.cap()), amount?);
        // A leased floor holds a little more than was asked for, which is nobody's to count on.
        Some(Beside {
            level: level.min(amount.burst.micro()),
            amount,
            reserved: found.grant.reserved(limit.reserve.of(traffic.class)),
        })
    }

    /// Micro-tokens left at `now` in the bucket of a limit that a message would meet; below zero is
    /// debt, and a key without a bucket has a full one coming. `None` when the limit is off or does
    /// not apply.
    pub fn level(&self, limit: LimitIx, traffic: &Traffic, now: Moment) -> Option<i64> {
        match self.standing(limit, traffic, now)? {
            Standing::Applies(bucket) => Some(bucket.level),
            Standing::Off | Standing::NotFor(_) | Standing::Lacks(_) => None,
        }
    }

    /// Micro-tokens left in the bucket of the key that a message has, whatever the limit's `when` says.
    pub fn key_level(&self, limit: LimitIx, traffic: &Traffic, now: Moment) -> Option<i64> {
        match self.bucket(limit, traffic, now)? {
            Standing::Applies(bucket) => Some(bucket.level),
            Standing::Off | Standing::NotFor(_) | Standing::Lacks(_) => None,
        }
    }

    /// Looks at the buckets that a message meets, whatever was decided on it, without reading more of
    /// them than their level. Within a turn of the caller's.
    pub fn peek(&self, traffic: &Traffic, now: Moment, mut look: impl FnMut(LimitIx, Left)) {
        let mut digests = Digests::none();
        for limit in self.applying(traffic) {
            let Some(found) = limit.find(traffic, &mut digests) else { continue };
            let level = found.cell.and_then(|cell| cell.level(found.grant, now));
            let level = level.unwrap_or(found.grant.cap());
            let share = level.max(0) as f64 / found.grant.cap() as f64;
            look(limit.ix, Left { share, mark: limit.mark(&found, traffic, &mut digests) });
        }
    }

    /// A number that is the same for all messages of one key of a limit, and for those of another
    /// only by chance. `None` when the limit is off or the message has no such key.
    pub fn key_mark(&self, limit: LimitIx, traffic: &Traffic) -> Option<u64> {
        let (limit, mut digests) = (self.limit(limit)?, Digests::none());
        let found = limit.find(traffic, &mut digests)?;
        Some(limit.mark(&found, traffic, &mut digests))
    }

    /// The readable name of the key that a message has in a limit: of the configuration's key that
    /// it meets, or of its own values. `None` when the limit is off or the message lacks a value.
    pub fn key_name(&self, limit: LimitIx, traffic: &Traffic) -> Option<String> {
        let rule = self.limits().get(usize::from(limit.0))?;
        let found = self.limit(limit)?.find(traffic, &mut Digests::none())?;
        name_of(rule, &found, traffic, self.links())
    }
}

fn name_of(rule: &Rule, found: &Found<'_>, traffic: &Traffic, links: &[String]) -> Option<String> {
    match found.named {
        Some(place) => key_name::of_match(&rule.keys.get(place)?.matches, links),
        None => key_name::of_message(rule, traffic, links),
    }
}

fn look(
    rule: &Rule,
    limit: &Limit,
    traffic: &Traffic,
    links: &[String],
    now: Moment,
) -> Option<Bucket> {
    let found = limit.find(traffic, &mut Digests::none())?;
    let key = name_of(rule, &found, traffic, links)?;
    let shared = if found.cell.is_none() { limit.shared(traffic) } else { None };
    let level = found.cell.or(shared).and_then(|cell| cell.level(found.grant, now));
    let holder = match (found.named, level, shared) {
        _ if rule.per.is_nothing() => Holder::Everything,
        (Some(_), ..) => Holder::Named,
        (None, Some(_), Some(_)) => Holder::Shared,
        (None, Some(_), None) => Holder::Automatic,
        (None, None, _) => Holder::New,
    };
    let level = level.unwrap_or(found.grant.cap());
    let full_after = found.grant.time_to_full(level);
    let named = found.named.and_then(|place| rule.keys.get(place));
    let (rate, burst) = named.map_or((rule.rate, rule.burst), |key| (key.rate, key.burst));
    let reserved = found.grant.reserved(limit.reserve.of(traffic.class));
    let (peak, floor) = (None, None);
    Some(Bucket { key, holder, level, burst, rate, full_after, reserved, peak, floor })
}

/// What the limit's filter leaves the message out by.
fn left_out_by(rule: &Rule, traffic: &Traffic) -> Option<Filter> {
    let when = &rule.when;
    let fits = [
        (Filter::Link, when.links.is_empty() || when.links.contains(&traffic.link)),
        (Filter::Class, when.classes.is_empty() || when.classes.contains(&traffic.class)),
        (
            Filter::Operation,
            when.operations.is_empty() || when.operations.contains(&traffic.operation),
        ),
        (Filter::Mcc, MccRange::include(&when.mccs, traffic.mcc)),
    ];
    fits.into_iter().find(|(_, fits)| !fits).map(|(filter, _)| filter)
}

/// The narrowest dimension in which a message has no value.
fn lacking(per: Per, traffic: &Traffic) -> Option<Dimension> {
    per.iter().find(|dimension| match dimension {
        Dimension::Terminal => traffic.terminal.is_none(),
        Dimension::Merchant => traffic.merchant.is_none(),
        Dimension::Bin => traffic.bin.is_none(),
        Dimension::Mcc => traffic.mcc.is_none(),
        Dimension::Operation | Dimension::Link => false,
    })
}

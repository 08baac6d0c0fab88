//! One limit at work: where its bucket for a message is, and what is done to it.

use super::cell::{Cell, Notice, Take};
use super::grant::Grant;
use super::id::{Digests, KeyId, Namer, Spread};
use super::lease::{Hold, Leases};
use super::limit_set::LimitIx;
use super::marks::Marks;
use super::named::NamedKeys;
use super::part::{Amounts, Part, nominal};
use super::per::Per;
use super::rule::{MccRange, Mode, Reserve, Rule};
use super::table::{Lone, Slot, Table, Visit, Visits, before_rest};
use super::turns::Turns;
use crate::clock::Moment;
use crate::traffic::Traffic;

/// One limit.
#[derive(Debug)]
pub(super) struct Limit {
    pub(super) ix: LimitIx,
    /// Which part of it.
    pub(super) part: Part,
    /// Its own in the order in which limits are asked.
    place: usize,
    pub(super) enforces: bool,
    per: Per,
    /// Categories that it is for; none means all.
    mccs: Box<[MccRange]>,
    /// For keys that are not named.
    pub(super) grant: Grant,
    /// Whether such keys have a bucket here.
    has_automatic: bool,
    pub(super) reserve: Reserve,
    /// What the limit itself is to all nodes.
    pub(super) id: KeyId,
    pub(super) hold: Hold,
    /// What gates tell the lease sync; `None` when there is none.
    pub(super) news: Option<Box<News>>,
    pub(super) buckets: Buckets,
}

/// The cells that the lease sync has to look at.
#[derive(Debug)]
pub(super) struct News {
    /// At its next tick.
    pub(super) soon: Marks,
    /// At once.
    pub(super) urgent: Marks,
}

#[derive(Debug)]
pub(super) enum Buckets {
    /// One for everything.
    One(Box<Lone>),
    /// One for each key.
    Keyed(Box<Keys>),
}

#[derive(Debug)]
pub(super) struct Keys {
    namer: Namer,
    pub(super) named: NamedKeys,
    pub(super) table: Table,
}

impl Keys {
    /// The id of a message's automatic key, if the message has what the limit is by.
    #[inline]
    fn id(
        &self,
        place: usize,
        per: Per,
        traffic: &Traffic,
        digests: &mut Digests,
    ) -> Option<KeyId> {
        let kept = digests.kept().find(|(kept_of, _)| *kept_of == place).map(|(_, id)| id);
        kept.or_else(|| self.namer.id(per, traffic, digests))
    }
}

/// Where one limit's bucket for a message is: two words, as they are written and read again within
/// a few nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Met<'a> {
    /// `None` when the limit does not apply.
    grant: Option<&'a Grant>,
    /// `None` when the key has no bucket yet.
    cell: Option<&'a Cell>,
}

impl Met<'_> {
    pub(super) const NOTHING: Self = Self { grant: None, cell: None };

    /// Whether the limit applies at all.
    pub(super) const fn applies(&self) -> bool {
        self.grant.is_some()
    }
}

/// The bucket of one message, for whoever wants to know of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub(super) grant: &'a Grant,
    /// `None` when the key has no bucket yet.
    pub(super) cell: Option<&'a Cell>,
    /// The named key that it is, by its place in the rule.
    pub(super) named: Option<usize>,
}

impl Limit {
    pub(super) fn new(
        (place, ix): (usize, LimitIx),
        (rule, amounts): (&Rule, &Amounts),
        (namer, links): (Namer, &[String]),
        leases: &Leases,
        (spread, now): (Spread, Moment),
    ) -> Self {
        let grant = Grant::of(amounts.own.unwrap_or_else(nominal));
        let hold = amounts.part.hold(rule.hold);
        let reach = |grant: &Grant| leases.first_reach(grant, hold);
        let id = namer.limit();
        let (buckets, cells) = if rule.per.is_nothing() {
            let cell = Cell::opened(&grant, now, reach(&grant), 0);
            (Buckets::One(Box::new(Lone(cell))), 1)
        } else {
            let keys = (rule.keys.as_slice(), amounts.named.as_slice());
            let named = NamedKeys::new(keys, (&namer, links), spread, now, reach);
            let first = u32::try_from(named.len()).unwrap_or(u32::MAX);
            // Where only named keys have buckets, nobody asks the table.
            let keys_max = if amounts.own.is_some() { rule.keys_max } else { 1 };
            let table = Table::new(keys_max, first, &grant, spread, now);
            let cells = named.len() + keys_max;
            (Buckets::Keyed(Box::new(Keys { namer, named, table })), cells)
        };
        let news = || Box::new(News { soon: Marks::new(cells), urgent: Marks::new(cells) });
        Self {
            ix,
            part: amounts.part,
            place,
            enforces: rule.mode == Mode::Enforce,
            per: rule.per,
            mccs: rule.when.mccs.as_slice().into(),
            grant,
            has_automatic: amounts.own.is_some(),
            reserve: rule.reserve,
            id,
            hold,
            news: leases.terms().map(|_| news()),
            buckets,
        }
    }

    /// The bucket for a message that has all that the limit needs.
    #[inline(always)]
    pub(super) fn meet(&self, traffic: &Traffic, digests: &mut Digests) -> Met<'_> {
        if !self.is_for_category(traffic) {
            return Met::NOTHING;
        }
        match self.find(traffic, digests) {
            Some(Found { grant, cell, .. }) => Met { grant: Some(grant), cell },
            None => Met::NOTHING,
        }
    }

    /// Whether the key that a message meets here is one of the configuration.
    pub(super) fn meets_named(&self, traffic: &Traffic, digests: &mut Digests) -> bool {
        self.find(traffic, digests).is_some_and(|found| found.named.is_some())
    }

    /// Whether the limit is for what the merchant sells.
    #[inline]
    pub(super) fn is_for_category(&self, traffic: &Traffic) -> bool {
        MccRange::include(&self.mccs, traffic.mcc)
    }

    /// The bucket of the key that a message has; `None` when it has none.
    #[inline(always)]
    pub(super) fn find(&self, traffic: &Traffic, digests: &mut Digests) -> Option<Found<'_>> {
        let keys = match &self.buckets {
            Buckets::One(lone) => {
                let found = Found { grant: &self.grant, cell: Some(&lone.0), named: None };
                return self.has_automatic.then_some(found);
            }
            Buckets::Keyed(keys) => &**keys,
        };
        if let Some(key) = keys.named.find(&keys.namer, traffic, digests) {
            let named = Some(key.place as usize);
            let found = Found { grant: &key.grant, cell: Some(&key.cell), named };
            return key.has_bucket.then_some(found);
        }
        if !self.has_automatic {
            return None;
        }
        let id = keys.id(self.place, self.per, traffic, digests)?;
        Some(Found { grant: &self.grant, cell: keys.table.cell(id), named: None })
    }

    /// Lets `spend` have the bucket that a message met, and hands it out for an undo; `None` when
    /// the limit does not apply.
    #[inline(always)]
    pub(super) fn spend<'a>(
        &'a self,
        met: Met<'a>,
        traffic: &Traffic,
        (now, leases): (Moment, &Leases),
        spend: impl Fn(&Cell, &Grant) -> Take,
    ) -> Option<(&'a Cell, Take)> {
        let grant = met.grant?;
        if let Some(cell) = met.cell {
            let take = spend(cell, grant);
            if take != Take::Retired {
                self.tell(cell, take, leases);
                return Some((cell, take));
            }
        }
        let (cell, take) = self.spend_new(traffic, (now, leases), spend)?;
        self.tell(cell, take, leases);
        Some((cell, take))
    }

    /// Tells the lease sync, if there is one.
    #[inline]
    fn tell(&self, cell: &Cell, take: Take, leases: &Leases) {
        if let Some(news) = &self.news {
            news.tell(cell, take, leases);
        }
    }

    /// The same for an automatic key that has no bucket yet or has just lost it.
    #[cold]
    fn spend_new(
        &self,
        traffic: &Traffic,
        (now, leases): (Moment, &Leases),
        spend: impl Fn(&Cell, &Grant) -> Take,
    ) -> Option<(&Cell, Take)> {
        let id = self.key_id(traffic)?;
        let reach = leases.first_reach(&self.grant, self.hold);
        self.table()?.spend_new(id, &self.grant, (now, reach), |cell| spend(cell, &self.grant))
    }

    fn key_id(&self, traffic: &Traffic) -> Option<KeyId> {
        self.id_with(traffic, &mut Digests::none())
    }

    /// The id of the automatic key that a message has, made of what was hashed of it already.
    #[inline]
    pub(super) fn id_with(&self, traffic: &Traffic, digests: &mut Digests) -> Option<KeyId> {
        match &self.buckets {
            Buckets::One(_) => None,
            Buckets::Keyed(keys) => keys.id(self.place, self.per, traffic, digests),
        }
    }

    /// The bucket that a key without one of its own would share with others, if none is left.
    pub(super) fn shared(&self, traffic: &Traffic) -> Option<&Cell> {
        self.table()?.shared(self.key_id(traffic)?)
    }

    /// A number for the key of a bucket that was found.
    pub(super) fn mark(&self, found: &Found<'_>, traffic: &Traffic, digests: &mut Digests) -> u64 {
        match (&self.buckets, found.named) {
            (Buckets::One(_), _) => 0,
            (Buckets::Keyed(_), Some(place)) => place as u64,
            (Buckets::Keyed(_), None) => {
                self.id_with(traffic, digests).map_or(0, |id| id.first ^ id.second)
            }
        }
    }

    /// The automatic keys.
    pub(super) fn table(&self) -> Option<&Table> {
        match &self.buckets {
            Buckets::One(_) => None,
            Buckets::Keyed(keys) => Some(&keys.table),
        }
    }

    /// The automatic keys, where they are so many.
    #[inline]
    pub(super) fn far(&self, far_keys: usize) -> Option<&Table> {
        self.table().filter(|table| table.keys_in_use() >= far_keys)
    }

    /// Settles a few cells and retires those keys that `retire` does.
    pub(super) fn sweep(
        &self,
        turns: &Turns,
        now: Moment,
        visits: Visits,
        retire: impl FnMut(&Slot, Visit) -> bool,
    ) {
        match &self.buckets {
            Buckets::Keyed(keys) => {
                keys.named.settle(before_rest(now));
                keys.table.sweep(&self.grant, turns, (now, visits), retire);
            }
            Buckets::One(lone) => lone.0.settle(&self.grant, before_rest(now)),
        }
    }
}

impl News {
    #[inline]
    fn tell(&self, cell: &Cell, take: Take, leases: &Leases) {
        match cell.notice(take) {
            Notice::Known => {}
            Notice::Soon => self.soon.set(cell.number()),
            Notice::Urgent => {
                self.urgent.set(cell.number());
                leases.call();
            }
        }
    }
}

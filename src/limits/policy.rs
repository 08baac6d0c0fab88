//! The policy: all limits of a configuration, and the one fixed order in which they are asked.
//!
//! Merchant, then BIN, then all: narrowest first, so that who is over its own limit takes nothing
//! from those it shares a wider one with. [`Policy::decide`] is the only place that knows the order
//! and the only one that undoes. The policy counts tokens and nothing else; who counts refusals is
//! the worker, and who knows what may be refused at all is the gate.

use super::cell::{Cell, Grant, Take};
use super::id::{Namer, Spread};
use super::named::NamedKeys;
use super::rule::{self, Mode, Per, Rule, RuleFault};
use super::table::{Lone, Table, before_rest};
use super::turns::{Turn, Turns};
use crate::clock::Moment;
use crate::traffic::Traffic;

/// Most limits of one policy: what a [`LimitSet`] holds.
pub const LIMITS_MAX: usize = 16;

/// Up to so many limits a decision keeps its notes in a few registers and one cache line or two;
/// clearing room for [`LIMITS_MAX`] costs as much as two takes.
const FEW: usize = 4;

/// A limit, by its place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LimitIx(pub u8);

/// Some of a policy's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitSet(u16);

impl LimitSet {
    /// No limit.
    pub const EMPTY: Self = Self(0);

    /// Whether there is none in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `limit` is in it.
    pub const fn contains(self, limit: LimitIx) -> bool {
        self.0 & Self::bit(limit) != 0
    }

    /// Those in it, in the order of the configuration.
    pub fn iter(self) -> impl Iterator<Item = LimitIx> {
        (0..LIMITS_MAX as u8).map(LimitIx).filter(move |limit| self.contains(*limit))
    }

    const fn insert(&mut self, limit: LimitIx) {
        self.0 |= Self::bit(limit);
    }

    const fn bit(limit: LimitIx) -> u16 {
        // A policy has no limit beyond the sixteenth.
        1 << (limit.0 as usize % LIMITS_MAX)
    }
}

/// Whether a message may go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The limit that refuses the message, if one does.
    pub refused_by: Option<LimitIx>,
    /// The shadow limits that would have. Those after `refused_by` were not asked.
    pub shadowed: LimitSet,
}

/// What came of charging a message that may not be refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// The limits whose bucket owes a burst already and was let off.
    pub forgiven: LimitSet,
}

/// What a limit is called, for labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitInfo {
    /// Its name in the configuration.
    pub name: String,
    /// What has a bucket of its own.
    pub per: Per,
    /// Whether it refuses.
    pub mode: Mode,
}

/// All limits, shared by all workers.
#[derive(Debug)]
pub struct Policy {
    infos: Box<[LimitInfo]>,
    /// Those that are not off, in the order in which they are asked.
    limits: Box<[Limit]>,
    turns: Turns,
}

#[derive(Debug)]
struct Limit {
    ix: LimitIx,
    enforces: bool,
    /// For keys that are not named.
    grant: Grant,
    buckets: Buckets,
}

#[derive(Debug)]
enum Buckets {
    Merchant { namer: Namer, named: NamedKeys, table: Table },
    Bin { namer: Namer, digits: u8, named: NamedKeys, table: Table },
    All(Box<Lone>),
}

/// Where one limit's bucket for a message is: two words, as they are written and read again within
/// a few nanoseconds.
#[derive(Clone, Copy)]
struct Met<'a> {
    /// `None` when the limit does not apply.
    grant: Option<&'a Grant>,
    /// `None` when the key has no bucket yet.
    cell: Option<&'a Cell>,
}

impl Met<'_> {
    const NOTHING: Self = Self { grant: None, cell: None };
}

impl Policy {
    /// The policy of `rules`, every bucket full at `now`. `workers` is how many threads will take
    /// turns, `seed` a random number that nobody outside knows. The first fault is the error; for
    /// all of them ask [`rule::faults`] before.
    pub fn new(rules: &[Rule], workers: usize, seed: u64, now: Moment) -> Result<Self, RuleFault> {
        if let Some(fault) = rule::faults(rules).first() {
            return Err(*fault);
        }
        let mut asked: Vec<_> = (0u8..).map(LimitIx).zip(rules).collect();
        asked.retain(|(_, rule)| rule.mode != Mode::Off);
        // A stable sort: limits of one kind stay in the order of the configuration.
        asked.sort_by_key(|(_, rule)| match rule.per {
            Per::Merchant => 0,
            Per::Bin => 1,
            Per::All => 2,
        });
        let spread = Spread::new(seed);
        let info =
            |rule: &Rule| LimitInfo { name: rule.name.clone(), per: rule.per, mode: rule.mode };
        Ok(Self {
            infos: rules.iter().map(info).collect(),
            limits: asked.into_iter().map(|(ix, rule)| Limit::new(ix, rule, spread, now)).collect(),
            turns: Turns::new(workers),
        })
    }

    /// Begins a turn of `worker`, counted from 0. Decisions and charges happen within one, as it
    /// keeps the slots they meet from going to other keys. One thread per number, and one turn of a
    /// worker at a time; any number of threads beyond the workers may use a number beyond theirs.
    pub fn turn(&self, worker: usize) -> Turn<'_> {
        self.turns.begin(worker)
    }

    /// Takes a token of each limit that applies to a message, merchant before BIN before all. At
    /// the first refusal of an enforcing limit what was taken is given back, last first, and every
    /// counter is as it was.
    pub fn decide(&self, traffic: &Traffic, now: Moment) -> Decision {
        if self.limits.len() <= FEW {
            self.decide_among::<FEW>(traffic, now)
        } else {
            self.decide_among::<LIMITS_MAX>(traffic, now)
        }
    }

    /// Charges each limit that applies to a message that is never refused, down to a debt of one
    /// burst. What would go deeper is forgiven.
    pub fn charge(&self, traffic: &Traffic, now: Moment) -> Charge {
        let mut charge = Charge::default();
        for limit in &self.limits {
            let spent = limit.spend(limit.meet(traffic), traffic, now, Cell::charge);
            if spent.is_some_and(|(_, take)| take != Take::Granted) {
                charge.forgiven.insert(limit.ix);
            }
        }
        charge
    }

    /// [`decide`](Self::decide) with room for `N` limits. All buckets are looked up before the
    /// first take: a take is a fence to the processor, and the cache misses of the lookups pass
    /// beside each other only if none comes between them.
    #[inline]
    fn decide_among<const N: usize>(&self, traffic: &Traffic, now: Moment) -> Decision {
        let mut met = [Met::NOTHING; N];
        for (limit, met) in self.limits.iter().zip(&mut met) {
            *met = limit.meet(traffic);
        }
        let mut decision = Decision::default();
        let mut taken: [Option<&Cell>; N] = [None; N];
        for ((limit, met), kept) in self.limits.iter().zip(&met).zip(&mut taken) {
            match limit.spend(*met, traffic, now, Cell::take) {
                Some((cell, Take::Granted)) => *kept = Some(cell),
                None => {}
                Some(_) if limit.enforces => {
                    taken.iter().rev().copied().flatten().for_each(Cell::undo);
                    decision.refused_by = Some(limit.ix);
                    return decision;
                }
                Some(_) => decision.shadowed.insert(limit.ix),
            }
        }
        decision
    }

    /// Every limit of the configuration; a [`LimitIx`] is an index into this.
    pub fn limits(&self) -> &[LimitInfo] {
        &self.infos
    }

    /// Retires resting keys of tables that are nearly full, at most `budget` visits in each, and
    /// settles a few cells of all limits. Some worker has to call it again and again, about every
    /// 5 ms; [`SETTLE_WITHIN`](super::cell::SETTLE_WITHIN) says what for. It waits for nobody.
    pub fn sweep(&self, now: Moment, budget: usize) {
        for limit in &self.limits {
            limit.sweep(&self.turns, now, budget);
        }
    }

    /// Automatic keys of a limit that have a bucket of their own.
    pub fn keys_in_use(&self, limit: LimitIx) -> usize {
        self.table(limit).map_or(0, Table::keys_in_use)
    }

    /// Messages of a limit that were served by a bucket which several keys share, since the start.
    pub fn overflowed(&self, limit: LimitIx) -> u64 {
        self.table(limit).map_or(0, Table::overflowed)
    }

    /// Micro-tokens left at `now` in the bucket of a limit that a message would meet; below zero is
    /// debt, and a key without a bucket has a full one coming. `None` when the limit is off or does
    /// not apply. For operators and tests, from any thread.
    pub fn level(&self, limit: LimitIx, traffic: &Traffic, now: Moment) -> Option<i64> {
        let _turn = self.turns.begin(usize::MAX);
        self.limit(limit)?.level(traffic, now)
    }

    fn limit(&self, ix: LimitIx) -> Option<&Limit> {
        self.limits.iter().find(|limit| limit.ix == ix)
    }

    fn table(&self, ix: LimitIx) -> Option<&Table> {
        match &self.limit(ix)?.buckets {
            Buckets::Merchant { table, .. } | Buckets::Bin { table, .. } => Some(table),
            Buckets::All(_) => None,
        }
    }
}

impl Limit {
    fn new(ix: LimitIx, rule: &Rule, spread: Spread, now: Moment) -> Self {
        let grant = Grant::new(rule.rate, rule.burst);
        let namer = Namer::new(&rule.name);
        let named = || NamedKeys::new(&rule.keys, &namer, spread, now);
        let table = || Table::new(rule.keys_max, &grant, spread, now);
        let buckets = match rule.per {
            Per::All => Buckets::All(Box::new(Lone(Cell::full(&grant, now)))),
            Per::Merchant => Buckets::Merchant { named: named(), table: table(), namer },
            Per::Bin => {
                let digits = rule.bin_digits;
                Buckets::Bin { named: named(), table: table(), digits, namer }
            }
        };
        Self { ix, enforces: rule.mode == Mode::Enforce, grant, buckets }
    }

    #[inline]
    fn meet(&self, traffic: &Traffic) -> Met<'_> {
        let (named, cell) = match &self.buckets {
            Buckets::All(lone) => (None, Some(&lone.0)),
            Buckets::Merchant { namer, named, table } => {
                let Some(merchant) = &traffic.merchant else { return Met::NOTHING };
                let id = namer.id(merchant.name());
                (named.of_merchant(id), table.cell(id))
            }
            Buckets::Bin { namer, digits, named, table } => {
                let Some(bin) = traffic.bin else { return Met::NOTHING };
                match named.of_bin(bin) {
                    Some(key) => (Some(key), None),
                    None => (None, table.cell(namer.bin_id(bin, *digits))),
                }
            }
        };
        match named {
            Some(key) => Met { grant: Some(&key.grant), cell: Some(&key.cell) },
            None => Met { grant: Some(&self.grant), cell },
        }
    }

    /// Lets `spend` have the bucket that a message met, and hands it out for an undo; `None` when
    /// the limit does not apply.
    #[inline]
    fn spend<'a>(
        &'a self,
        met: Met<'a>,
        traffic: &Traffic,
        now: Moment,
        spend: fn(&Cell, &Grant, Moment) -> Take,
    ) -> Option<(&'a Cell, Take)> {
        let grant = met.grant?;
        if let Some(cell) = met.cell {
            let take = spend(cell, grant, now);
            if take != Take::Retired {
                return Some((cell, take));
            }
        }
        self.spend_new(traffic, now, spend)
    }

    /// The same for an automatic key that has no bucket yet or has just lost it.
    #[cold]
    fn spend_new(
        &self,
        traffic: &Traffic,
        now: Moment,
        spend: fn(&Cell, &Grant, Moment) -> Take,
    ) -> Option<(&Cell, Take)> {
        let (id, table) = match &self.buckets {
            Buckets::All(_) => return None,
            Buckets::Merchant { namer, table, .. } => {
                (namer.id(traffic.merchant.as_ref()?.name()), table)
            }
            Buckets::Bin { namer, digits, table, .. } => {
                (namer.bin_id(traffic.bin?, *digits), table)
            }
        };
        table.spend_new(id, &self.grant, now, |cell| spend(cell, &self.grant, now))
    }

    fn level(&self, traffic: &Traffic, now: Moment) -> Option<i64> {
        let met = self.meet(traffic);
        let grant = met.grant?;
        met.cell.and_then(|cell| cell.level(grant, now)).or(Some(grant.cap()))
    }

    fn sweep(&self, turns: &Turns, now: Moment, budget: usize) {
        match &self.buckets {
            Buckets::Merchant { named, table, .. } | Buckets::Bin { named, table, .. } => {
                named.settle(before_rest(now));
                table.sweep(&self.grant, turns, now, budget);
            }
            Buckets::All(lone) => lone.0.settle(&self.grant, before_rest(now)),
        }
    }
}

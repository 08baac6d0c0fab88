//! The policy: all limits of a configuration, and the one fixed order in which they are asked.
//!
//! Narrowest first (a terminal, a merchant, a BIN, ..., all), so that who is over its own limit takes
//! nothing from those it shares a wider one with. [`Policy::decide`] is the only place that knows the
//! order and the only one that undoes. The policy counts tokens and nothing else; who counts refusals
//! is the worker, and who knows what may be refused at all is the gate.

use std::sync::Arc;

use super::ahead::FAR_KEYS;
use super::cell::{Asking, Cell, Take};
use super::id::{Digests, Namer, Spread, link_ids};
use super::lease::{Leases, Terms};
use super::limit::{Limit, Met};
use super::limit_set::{LIMITS_MAX, LimitIx, LimitSet};
use super::part::{Amounts, Part};
use super::per::Per;
use super::plan::{Asked, Plan};
use super::rule::{self, Mode, Rule, RuleFault};
use super::table::{Table, Visits};
use super::turns::{Turn, Turns};
use crate::clock::Moment;
use crate::traffic::Traffic;

/// Up to so many limits a decision keeps its notes in a few registers and one cache line or two;
/// clearing room for [`LIMITS_MAX`] costs as much as two takes.
const FEW: usize = 4;
/// Most parts of limits that one message may meet.
pub(super) const PARTS_MAX: usize = Part::ALL.len() * LIMITS_MAX;

/// Slots that a sweep visits when it needs no room: enough to settle the largest table in hours.
const ROOMY_VISITS: usize = 8;

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

/// All limits, shared by all workers.
#[derive(Debug)]
pub struct Policy {
    rules: Box<[Rule]>,
    /// The links' names, by their place.
    links: Box<[String]>,
    /// Those that are not off, in the order in which they are asked.
    pub(super) limits: Box<[Limit]>,
    /// Those of them that are floors.
    pub(super) floors: Asked,
    /// Those that make a decision more than one token of each: floors, and peaks of limits that are
    /// not enforced.
    pub(super) special: Asked,
    pub(super) plan: Plan,
    /// So many keys of a limit in use lie far away.
    pub(super) far_keys: usize,
    pub(super) turns: Turns,
    pub(super) leases: Leases,
}

impl Policy {
    /// The policy of `rules` for these links on the only node, every bucket full at `now` and filling
    /// by itself. `workers` is how many threads will take turns, `seed` a random number that nobody
    /// outside knows. The first fault is the error; for all of them ask [`rule::faults`] before.
    pub fn new(
        rules: &[Rule],
        links: &[String],
        workers: usize,
        seed: u64,
        now: Moment,
    ) -> Result<Self, RuleFault> {
        Self::with(rules, links, None, workers, seed, now)
    }

    /// The same on one node of several, with buckets that are leased on these terms. Somebody has to
    /// sync them with the store.
    pub fn leased(
        rules: &[Rule],
        links: &[String],
        terms: Terms,
        workers: usize,
        seed: u64,
        now: Moment,
    ) -> Result<Self, RuleFault> {
        Self::with(rules, links, Some(terms), workers, seed, now)
    }

    fn with(
        rules: &[Rule],
        links: &[String],
        terms: Option<Terms>,
        workers: usize,
        seed: u64,
        now: Moment,
    ) -> Result<Self, RuleFault> {
        if let Some(fault) = rule::faults(rules).first() {
            return Err(*fault);
        }
        let mut asked: Vec<_> = (0u8..).map(LimitIx).zip(rules).collect();
        asked.retain(|(_, rule)| rule.mode != Mode::Off);
        // A stable sort: limits of one kind stay in the order of the configuration.
        asked.sort_by_key(|(_, rule)| std::cmp::Reverse(rule.per));
        let (spread, ids, leases) = (Spread::new(seed), link_ids(links), Leases::new(terms));
        let parts = asked.iter().flat_map(|(ix, rule)| {
            let amounts = Part::ALL.into_iter().filter_map(|part| Amounts::of(rule, part, &leases));
            amounts.map(|amounts| (*ix, *rule, amounts))
        });
        let parts: Vec<_> = parts.collect();
        let limit = |(place, (ix, rule, amounts)): (usize, &(LimitIx, &Rule, Amounts))| {
            let namer = Namer::new(&rule.name, rule.bin_digits, Arc::clone(&ids));
            let namer = (namer.of_part(amounts.part), links);
            Limit::new((place, *ix), (rule, amounts), namer, &leases, (spread, now))
        };
        let in_order: Vec<&Rule> = parts.iter().map(|(_, rule, _)| *rule).collect();
        let limits: Box<[Limit]> = parts.iter().enumerate().map(limit).collect();
        let floors = limits.iter().enumerate().filter(|(_, limit)| limit.part == Part::Floor);
        let floors = floors.fold(Asked::default(), |all, (place, _)| all.and(place));
        let shadow_peaks = limits.iter().enumerate();
        let shadow_peaks = shadow_peaks.filter(|(_, own)| own.part == Part::Peak && !own.enforces);
        let special = shadow_peaks.fold(floors, |all, (place, _)| all.and(place));
        if !special.is_nothing() {
            leases.expect_special();
        }
        Ok(Self {
            rules: rules.into(),
            links: links.into(),
            limits,
            floors,
            special,
            plan: Plan::new(&in_order, links.len()),
            far_keys: FAR_KEYS,
            turns: Turns::new(workers),
            leases,
        })
    }

    /// Begins a turn of `worker`, counted from 0. Decisions and charges happen within one, as it
    /// keeps the slots they meet from going to other keys. One thread per number, and one turn of a
    /// worker at a time; any number of threads beyond the workers may use a number beyond theirs.
    pub fn turn(&self, worker: usize) -> Turn<'_> {
        self.turns.begin(worker)
    }

    /// The dimensions that some limit looks at. What is not among them may be left out of a
    /// [`Traffic`].
    pub const fn needs(&self) -> Per {
        self.plan.needs()
    }

    /// Takes a token of each limit that applies to a message, the narrowest first. At the first
    /// refusal of an enforcing limit what was taken is given back, last first, and every counter is
    /// as it was.
    pub fn decide(&self, traffic: &Traffic, now: Moment) -> Decision {
        self.decide_with(traffic, &mut Digests::none(), now)
    }

    /// [`decide`](Self::decide) with what was hashed of the message already.
    pub fn decide_with(&self, traffic: &Traffic, digests: &mut Digests, now: Moment) -> Decision {
        let asked = self.plan.of(traffic);
        if self.leases.may_be_special() && self.decides_specially(asked, now) {
            self.decide_specially(asked, traffic, digests, now)
        } else if asked.len() <= FEW {
            self.decide_among::<FEW>(asked, traffic, digests, now)
        } else {
            self.decide_among::<PARTS_MAX>(asked, traffic, digests, now)
        }
    }

    /// Charges each limit that applies to a message that is never refused, down to a debt of one
    /// burst. What would go deeper is forgiven.
    pub fn charge(&self, traffic: &Traffic, now: Moment) -> Charge {
        self.charge_with(traffic, &mut Digests::none(), now)
    }

    /// [`charge`](Self::charge) with what was hashed of the message already.
    pub fn charge_with(&self, traffic: &Traffic, digests: &mut Digests, now: Moment) -> Charge {
        let mut charge = Charge::default();
        // Nothing is guaranteed to what is never refused anyway: a floor is for the others.
        for limit in self.those(self.plan.of(traffic).without(self.floors)) {
            let spent = self.charge_one(limit, traffic, digests, now);
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
    fn decide_among<const N: usize>(
        &self,
        asked: Asked,
        traffic: &Traffic,
        digests: &mut Digests,
        now: Moment,
    ) -> Decision {
        let leased = self.leases.is_valid(now);
        let mut met = [Met::NOTHING; N];
        for (limit, met) in self.those(asked).zip(&mut met) {
            *met = limit.meet(traffic, digests);
        }
        let mut decision = Decision::default();
        let mut taken: [Option<&Cell>; N] = [None; N];
        for ((limit, met), kept) in self.those(asked).zip(&met).zip(&mut taken) {
            match self.take(limit, *met, traffic, (now, leased)) {
                Some((cell, Take::Granted)) => *kept = Some(cell),
                None => {}
                Some((_, refusal)) => {
                    self.note(refusal);
                    if limit.enforces {
                        self.undo(&taken);
                        decision.refused_by = Some(limit.ix);
                        return decision;
                    }
                    decision.shadowed.insert(limit.ix);
                }
            }
        }
        decision
    }

    /// Takes a token of the bucket that a message met, if the limit applies.
    #[inline(always)]
    pub(super) fn take<'a>(
        &'a self,
        limit: &'a Limit,
        met: Met<'a>,
        traffic: &Traffic,
        (now, leased): (Moment, bool),
    ) -> Option<(&'a Cell, Take)> {
        let reserve = limit.reserve.of(traffic.class);
        limit.spend(met, traffic, (now, &self.leases), |cell, grant| {
            cell.take(grant, Asking { now, reserve: grant.reserved(reserve), leased })
        })
    }

    /// Counts what held a message back, if it was not the bucket.
    pub(super) fn note(&self, refusal: Take) {
        if refusal == Take::Held {
            self.leases.count_held();
        }
    }

    /// Gives back what was taken, last first.
    pub(super) fn undo(&self, taken: &[Option<&Cell>]) {
        let cells = || taken.iter().copied().flatten();
        cells().rev().for_each(Cell::undo);
        // Nothing is counted where nothing was taken: the count is everybody's.
        if self.leases.terms().is_some() && cells().next().is_some() {
            self.leases.count_undone(cells().count() as u64);
        }
    }

    /// Charges the bucket of one limit, if it applies.
    pub(super) fn charge_one<'a>(
        &'a self,
        limit: &'a Limit,
        traffic: &Traffic,
        digests: &mut Digests,
        now: Moment,
    ) -> Option<(&'a Cell, Take)> {
        let met = limit.meet(traffic, digests);
        limit.spend(met, traffic, (now, &self.leases), |cell, grant| cell.charge(grant, now))
    }

    #[inline]
    pub(super) fn those(&self, asked: Asked) -> impl Iterator<Item = &Limit> {
        asked.iter().filter_map(|place| self.limits.get(place))
    }

    /// The limits that apply to a message, in the order in which they are asked.
    pub(super) fn applying<'a>(&'a self, traffic: &'a Traffic) -> impl Iterator<Item = &'a Limit> {
        let parts = self.those(self.plan.of(traffic));
        parts.filter(|limit| limit.part == Part::Rate && limit.is_for_category(traffic))
    }

    /// Every limit of the configuration; a [`LimitIx`] is an index into this.
    pub fn limits(&self) -> &[Rule] {
        &self.rules
    }

    /// The names of the links, by their place.
    pub fn links(&self) -> &[String] {
        &self.links
    }

    /// Retires resting keys of tables that are nearly full, at most `budget` visits in each, and
    /// settles a few cells of all limits. Some worker has to call it again and again, about every
    /// 5 ms; [`SETTLE_WITHIN`](super::cell::SETTLE_WITHIN) says what for. It waits for nobody. Leased
    /// buckets are the sync's to sweep, and are left alone.
    pub fn sweep(&self, now: Moment, budget: usize) {
        if self.leases.terms().is_some() {
            return;
        }
        let visits = Visits { crowded: budget, roomy: budget.min(ROOMY_VISITS) };
        for limit in &self.limits {
            limit.sweep(&self.turns, now, visits, |slot, visit| {
                visit.crowded && slot.cell.retire(&limit.grant, visit.full_at, |_| true)
            });
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

    /// The limits that are not off, in the order in which they are asked.
    pub(super) fn in_order(&self) -> impl Iterator<Item = LimitIx> {
        self.limits.iter().filter(|limit| limit.part == Part::Rate).map(|limit| limit.ix)
    }

    /// The limit by its rate, unless it is off.
    pub(super) fn limit(&self, ix: LimitIx) -> Option<&Limit> {
        self.part(ix, Part::Rate)
    }

    /// A part of a limit.
    pub(super) fn part(&self, ix: LimitIx, part: Part) -> Option<&Limit> {
        self.limits.iter().find(|limit| limit.ix == ix && limit.part == part)
    }

    fn table(&self, ix: LimitIx) -> Option<&Table> {
        self.limit(ix)?.table()
    }
}

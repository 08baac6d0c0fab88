//! Decisions that are more than one token of each limit: where a floor says what may not be refused,
//! where a limit of two buckets is not enforced, and while the store is lost and the configuration
//! asks for more than that each node goes on, or while only some of its shards are.
//!
//! A floor is asked before anything else. What keeps to it conforms: the limits that it exempts from
//! are charged, and may owe for it, but do not refuse. The floor of a limit exempts from that limit
//! alone. The floor of a named key exempts from every limit, since only the configuration can bring
//! one into being; a limit that is not enforced exempts from nothing but itself.
//!
//! Of a store in several shards each may be lost by itself. Then every bucket goes by the lease of its
//! own key: those of the other shards decide as ever. A message that a limit of a lost shard applies to
//! is refused by it where the configuration says `closed`, unless a floor exempts it, whichever shard
//! that is in. Where it says `open`, such a limit is charged and does not refuse; another one still may,
//! and takes the charge back.
//!
//! A limit that would refuse and is not enforced spends nothing for the message, of either bucket: what
//! it counts is what it would refuse if it were.

use super::cell::{Cell, Take};
use super::id::Digests;
use super::lease::OnLoss;
use super::limit::{Limit, Met};
use super::limit_set::LimitSet;
use super::plan::Asked;
use super::policy::{Decision, PARTS_MAX, Policy};
use crate::clock::Moment;
use crate::traffic::Traffic;

/// What was spent for a message so far, in order.
struct Spent<'a> {
    cells: [Option<&'a Cell>; PARTS_MAX],
    count: usize,
}

/// What a message is exempt from.
#[derive(Default)]
struct Exempt {
    limits: LimitSet,
    all: bool,
}

impl<'a> Spent<'a> {
    const NOTHING: Self = Self { cells: [None; PARTS_MAX], count: 0 };

    fn note(&mut self, cell: &'a Cell) {
        // No more parts are asked than there is room for.
        if let Some(room) = self.cells.get_mut(self.count) {
            *room = Some(cell);
            self.count += 1;
        }
    }

    /// Whether a bucket that was asked does not stand in the way: it has given its token, or there is
    /// none.
    fn note_granted(&mut self, asked: Option<(&'a Cell, Take)>) -> bool {
        if let Some((cell, Take::Granted)) = asked {
            self.note(cell);
        }
        asked.is_none_or(|(_, take)| take == Take::Granted)
    }

    fn forget_after(&mut self, count: usize) {
        self.cells.iter_mut().skip(count).for_each(|cell| *cell = None);
        self.count = self.count.min(count);
    }
}

impl Policy {
    /// Whether there is a special one among these limits, or not every lease is valid where the others
    /// count all the same, or where the configuration asks for more than that each node goes on by itself.
    pub(super) fn decides_specially(&self, asked: Asked, now: Moment) -> bool {
        let leased = self.leases.is_valid(now);
        (!leased && self.leases.are_divided())
            || self.leases.loss(leased).is_some()
            || !asked.among(self.special).is_nothing()
    }

    /// [`decide`](Self::decide) where there is something special, or not every key has a lease. Each
    /// key then goes by the lease of its own shard of the store.
    #[cold]
    pub(super) fn decide_specially(
        &self,
        asked: Asked,
        traffic: &Traffic,
        digests: &mut Digests,
        now: Moment,
    ) -> Decision {
        let all_leased = self.leases.is_valid(now);
        let opens = self.leases.loss(all_leased) == Some(OnLoss::Open);
        if opens && self.leases.shards_lost(now) == self.leases.shards() {
            return self.fail_open(asked, traffic, digests, now);
        }
        let (mut spent, mut decision) = (Spent::NOTHING, Decision::default());
        let exempt = self.ask_floors(asked, traffic, digests, (now, all_leased), &mut spent);
        let (mut began, mut failed_open) = ((None, spent.count), false);
        for limit in self.those(asked.without(self.floors)) {
            if decision.shadowed.contains(limit.ix) {
                continue;
            }
            if began.0 != Some(limit.ix) {
                began = (Some(limit.ix), spent.count);
            }
            let leased = all_leased || self.is_leased(limit, traffic, digests, now);
            let lost = self.leases.loss(leased);
            let is_exempt = exempt.all || exempt.limits.contains(limit.ix);
            if is_exempt || lost == Some(OnLoss::Open) {
                let charged = self.charge_one(limit, traffic, digests, now);
                failed_open |= !is_exempt && charged.is_some();
                spent.note_granted(charged);
                continue;
            }
            let met = limit.meet(traffic, digests);
            let refused = if lost == Some(OnLoss::Closed) {
                met.applies()
            } else {
                let taken = self.take(limit, met, traffic, (now, leased));
                if let Some((_, take)) = taken {
                    self.note(take);
                }
                !spent.note_granted(taken)
            };
            if refused && limit.enforces {
                self.undo(&spent.cells);
                decision.refused_by = Some(limit.ix);
                return decision;
            }
            if refused {
                self.undo(spent.cells.get(began.1..).unwrap_or_default());
                spent.forget_after(began.1);
                decision.shadowed.insert(limit.ix);
            }
        }
        if failed_open {
            self.leases.count_failed_open();
        }
        decision
    }

    /// Whether the shard that keeps a message's key has a valid lease, where not all have.
    fn is_leased(
        &self,
        limit: &Limit,
        traffic: &Traffic,
        digests: &mut Digests,
        now: Moment,
    ) -> bool {
        self.leases.are_divided()
            && limit
                .store_key_of(traffic, digests)
                .is_some_and(|key| self.leases.is_shard_valid(key.shard(self.leases.shards()), now))
    }

    /// Asks the floors of a message: those of named keys first, as one of them settles everything.
    fn ask_floors<'a>(
        &'a self,
        asked: Asked,
        traffic: &Traffic,
        digests: &mut Digests,
        (now, all_leased): (Moment, bool),
        spent: &mut Spent<'a>,
    ) -> Exempt {
        let mut exempt = Exempt::default();
        for of_named in [true, false] {
            for floor in self.those(asked.among(self.floors)) {
                let met = floor.meet(traffic, digests);
                let exempts_all = floor.enforces && floor.meets_named(traffic, digests);
                if exempts_all != of_named {
                    continue;
                }
                let leased = all_leased || self.is_leased(floor, traffic, digests, now);
                let asked = self.ask_floor(floor, met, traffic, (now, leased));
                if let Some((cell, Take::Granted)) = asked {
                    spent.note(cell);
                    exempt.limits.insert(floor.ix);
                    if exempts_all {
                        exempt.all = true;
                        return exempt;
                    }
                }
            }
        }
        exempt
    }

    /// A floor keeps nothing back from any class.
    fn ask_floor<'a>(
        &'a self,
        floor: &'a Limit,
        met: Met<'a>,
        traffic: &Traffic,
        (now, leased): (Moment, bool),
    ) -> Option<(&'a Cell, Take)> {
        floor.spend(met, traffic, (now, &self.leases), |cell, grant| {
            cell.take(grant, super::cell::Asking { now, reserve: 0, leased })
        })
    }

    /// The store is lost and the configuration says `open`.
    fn fail_open(
        &self,
        asked: Asked,
        traffic: &Traffic,
        digests: &mut Digests,
        now: Moment,
    ) -> Decision {
        self.charge_with(traffic, digests, now);
        if self.those(asked).any(|limit| limit.meet(traffic, digests).applies()) {
            self.leases.count_failed_open();
        }
        Decision::default()
    }
}

//! When keys are reported: all that are marked with the next tick, and with a flush those that cannot
//! wait for it. Each shard of the store has calls of its own.

use super::shard::{fair_part, sort_in};
use super::{Outgoing, Sync};
use crate::clock::Moment;
use crate::limits::{Place, Policy};

/// So many calls leave with one tick; more keys than they hold wait for the next.
const CALLS_PER_TICK: usize = 256;

impl Sync {
    /// Reports what gates have marked, renews the leases of all keys, and looks for keys that rest.
    pub(super) fn tick(&mut self, now: Moment, out: &mut Vec<Outgoing>) {
        // Give or take a tenth, so that nodes do not call in step.
        let tenths = 90 + self.draw() % 21;
        self.next_tick = now.after(self.settings.tick * tenths as u32 / 100);
        let (policy, shards) = (&self.policy, &mut self.shards);
        // A key that was reported since it was marked has nothing new to say.
        for shard in shards.iter_mut() {
            shard.due.append(&mut shard.late);
            shard.due.retain(|place| is_marked(policy, *place));
        }
        policy.collect_soon(|place| {
            if is_marked(policy, place) {
                sort_in(shards, policy, place);
            }
        });
        // Whoever wanted to be heard at once and was not is heard with the next flush.
        if policy.has_urgent() {
            self.urge(now);
        }
        self.begin_tally();
        self.put_off(now);
        for shard in self.each_shard() {
            let places = self.take_due(shard);
            if self.is_heard(shard, now) {
                self.report(now, shard, &places, out);
            } else {
                self.answer_locally(now, shard, &places);
                self.probe(now, shard, out);
            }
            self.give_due_back(shard, places);
        }
        self.sweep(now);
    }

    /// Leaves what is more than one tick's calls can tell for the next one, where it comes first. The
    /// shards that answer share the calls evenly, as far as they need them.
    fn put_off(&mut self, now: Moment) {
        let batch_max = self.settings.batch_max.max(1);
        let heard: Vec<u16> =
            self.each_shard().filter(|shard| self.is_heard(*shard, now)).collect();
        let due = |shard: &u16| self.shards.get(usize::from(*shard)).map_or(0, |own| own.due.len());
        let wanted = heard.iter().map(|shard| due(shard).div_ceil(batch_max)).collect();
        let most = fair_part(wanted, CALLS_PER_TICK).saturating_mul(batch_max);
        let (policy, mut late_keys) = (&self.policy, 0);
        for shard in heard {
            let Some(own) = self.shards.get_mut(usize::from(shard)) else { continue };
            own.late.extend(own.due.drain(most.min(own.due.len())..));
            for place in &own.late {
                // It counts as told, so that no gate tells it again.
                policy.leased_cell(*place).map(|leased| leased.cell.remind());
            }
            late_keys += own.late.len();
        }
        self.tally.late_keys = late_keys;
    }

    /// Reports the keys that cannot wait for the tick.
    pub(super) fn flush(&mut self, now: Moment, out: &mut Vec<Outgoing>) {
        (self.flush_at, self.flushed_at) = (None, Some(now));
        let mut places = self.flights.room();
        places.append(&mut self.again);
        self.policy.collect_urgent(|place| places.push(place));
        places.sort_unstable();
        places.dedup();
        for place in &places {
            self.policy.leased_cell(*place).map(|leased| leased.cell.heed());
            sort_in(&mut self.shards, &self.policy, *place);
        }
        self.flights.give_back(places);
        for shard in self.each_shard() {
            let places = self.take_due(shard);
            if places.is_empty() {
                // Somebody else's flush was before, or it is another shard's.
            } else if self.is_heard(shard, now) {
                self.report(now, shard, &places, out);
            } else {
                self.answer_locally(now, shard, &places);
            }
            self.give_due_back(shard, places);
        }
    }

    /// The keys of a shard that are due. The list comes back when they are done with.
    pub(super) fn take_due(&mut self, shard: u16) -> Vec<Place> {
        self.shard_mut(shard).map(|own| std::mem::take(&mut own.due)).unwrap_or_default()
    }

    pub(super) fn give_due_back(&mut self, shard: u16, mut places: Vec<Place>) {
        places.clear();
        if let Some(own) = self.shard_mut(shard) {
            own.due = places;
        }
    }
}

/// Whether a cell was marked since it was last looked at.
fn is_marked(policy: &Policy, place: Place) -> bool {
    policy.leased_cell(place).is_some_and(|leased| leased.cell.heed())
}

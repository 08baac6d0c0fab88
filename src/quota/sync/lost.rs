//! While a shard of the store is lost: the node answers the shard's keys itself, as the store would if
//! it saw this node alone, and reports them when the shard is back.

use std::time::Duration;

use super::{Outgoing, Standing, Sync, known};
use crate::clock::Moment;
use crate::limits::Place;

/// More keys than this return in no order: to sort them would take as long as a lease lasts.
const SORTED_MAX: usize = 50_000;
const LEAST_GAP: Duration = Duration::from_micros(10);

impl Sync {
    /// Answers these keys of a shard itself.
    pub(super) fn answer_locally(&mut self, now: Moment, shard: u16, places: &[Place]) {
        for place in places {
            let answered = self.answer_one(now, *place).is_some();
            let record =
                self.records.get_mut(*place).filter(|record| answered && !record.is_listed);
            if let (Some(record), Some(own)) = (record, self.shards.get_mut(usize::from(shard))) {
                record.is_listed = true;
                own.local.push(*place);
            }
        }
    }

    /// The store cannot keep this key: the node answers it itself, and asks again with its next report.
    pub(super) fn do_without(&mut self, now: Moment, number: u64, place: Place) {
        let Some(record) = self.records.get_mut(place) else { return };
        if record.is_in(number) {
            record.land();
            self.tally.unkept += 1;
            self.answer_one(now, place);
        }
    }

    fn answer_one(&mut self, now: Moment, place: Place) -> Option<()> {
        let nodes = self.policy.leases().nodes();
        let Self { policy, records, last_boot, terms, settings, .. } = self;
        let (leased, record) = known(policy, (records, last_boot), place, now)?;
        if record.is_in_flight() {
            // Its call is given up soon.
            policy.remind(place);
            return None;
        }
        let spent = leased.cell.spent()?;
        record.answer_locally(&leased, (terms, nodes, settings.local_slack), spent, now);
        let reach = record.reach(leased.grant, leased.role, terms, nodes);
        if leased.cell.lease(leased.grant, (record.level, now), spent, reach) {
            policy.remind(place);
        }
        self.tally.answered_locally += 1;
        Some(())
    }

    /// A shard is back: its keys that the node answered itself are reported within one tick, those that
    /// have spent most first, as many at a time as one call takes.
    pub(super) fn begin_return(&mut self, now: Moment, shard: u16) {
        let (policy, records) = (&self.policy, &self.records);
        let Some(own) = self.shards.get_mut(usize::from(shard)) else { return };
        own.returning.append(&mut own.local);
        if own.returning.len() <= SORTED_MAX {
            // The last is reported first.
            own.returning.sort_by_cached_key(|place| {
                let spent = policy.leased_cell(*place).and_then(|leased| leased.cell.spent());
                let charged = records.get(*place).map(|record| record.charged);
                spent.zip(charged).map(|(spent, charged)| spent.wrapping_sub(charged))
            });
        }
        if !own.returning.is_empty() {
            let calls = own.returning.len().div_ceil(self.settings.batch_max.max(1));
            own.return_gap = self.settings.tick / u32::try_from(calls).unwrap_or(u32::MAX);
            own.return_at = Some(now);
        }
    }

    /// Reports those of a shard's keys that are due.
    pub(super) fn report_returning(&mut self, now: Moment, shard: u16, out: &mut Vec<Outgoing>) {
        while self.takes_back(now, shard) {
            self.report_batch(now, shard, out);
            if let Some(own) = self.shard_mut(shard) {
                // By its own time, as a timer may be late by more than a gap.
                let next = own.return_at.map(|at| at.after(own.return_gap.max(LEAST_GAP)));
                own.return_at = next.filter(|_| !own.returning.is_empty());
            }
        }
    }

    /// Whether a report of what returns to a shard is due.
    fn takes_back(&mut self, now: Moment, shard: u16) -> bool {
        let is_heard = self.is_heard(shard, now);
        let own = self.shard_mut(shard).filter(|own| own.return_at.is_some_and(|at| at <= now));
        let Some(own) = own else { return false };
        if !is_heard {
            // Lost again: they are still answered here.
            own.return_at = None;
            own.local.append(&mut own.returning);
        }
        is_heard
    }

    fn report_batch(&mut self, now: Moment, shard: u16, out: &mut Vec<Outgoing>) {
        let batch_max = self.settings.batch_max.max(1);
        let mut places = self.flights.room();
        if let Some(own) = self.shard_mut(shard) {
            let left = own.returning.len().saturating_sub(batch_max);
            places.extend(own.returning.drain(left..).rev());
        }
        let records = &mut self.records;
        places.retain(|place| {
            let Some(record) = records.get_mut(*place) else { return false };
            record.is_listed = false;
            record.standing == Standing::Local && !record.is_in_flight()
        });
        if !places.is_empty() {
            self.report(now, shard, &places, out);
        }
        self.flights.give_back(places);
    }
}

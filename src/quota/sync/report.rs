//! Reports: what the node says of its keys, and in which calls.

use super::flights::Flight;
use super::record::Standing;
use super::shard::sort_in;
use super::{Outgoing, Sync, known, next_boot};
use crate::clock::Moment;
use crate::limits::Place;
use crate::quota::protocol::{Call, Report};

impl Sync {
    /// Reports these keys of a shard, in as many calls as it takes, and calls at least once.
    pub(super) fn report(
        &mut self,
        now: Moment,
        shard: u16,
        places: &[Place],
        out: &mut Vec<Outgoing>,
    ) {
        for batch in places.chunks(self.settings.batch_max.max(1)) {
            self.call(now, shard, batch, out);
        }
        if places.is_empty() {
            self.probe(now, shard, out);
        }
    }

    /// Calls a shard without a report: it renews the leases of its keys and brings its digest.
    pub(super) fn probe(&mut self, now: Moment, shard: u16, out: &mut Vec<Outgoing>) {
        self.call(now, shard, &[], out);
    }

    /// One call of one shard.
    fn call(&mut self, now: Moment, shard: u16, batch: &[Place], out: &mut Vec<Outgoing>) {
        let number = self.flights.next_number();
        let mut places = self.flights.room();
        let mut reports = Vec::with_capacity(batch.len());
        for place in batch {
            if let Some(report) = self.report_of(*place, number, now) {
                reports.push(report);
                places.push(*place);
            }
        }
        self.tally.reported += reports.len() as u64;
        self.flights.send(Flight { number, shard, sent_at: now, places });
        let heard = self.shards.get(usize::from(shard));
        let answered_at = heard.and_then(|own| own.answered_at);
        let elapsed = answered_at.map(|answered| now.since(answered).as_micros());
        let call = Call {
            node: self.node,
            elapsed_us: elapsed.map(|elapsed| u64::try_from(elapsed).unwrap_or(u64::MAX)),
            since: heard.map(|own| own.since).unwrap_or_default(),
            push: self.settings.push,
            leave: false,
            reports,
        };
        out.push(Outgoing { number, shard, call });
    }

    /// What there is to say of a key, which leaves with this call; `None` when a report of it is under
    /// way already, so that it waits for the next tick.
    fn report_of(&mut self, place: Place, number: u64, now: Moment) -> Option<Report> {
        let nodes = self.policy.leases().nodes();
        let Self { policy, records, last_boot, terms, settings, .. } = self;
        let (leased, record) = known(policy, (records, last_boot), place, now)?;
        if record.is_in_flight() {
            policy.remind(place);
            return None;
        }
        record.renew(|| next_boot(last_boot));
        // The gates are hushed before `spent` is read: a token that this reading misses finds the key
        // unmarked, and marks it.
        leased.cell.hush();
        let Some(spent) = leased.cell.spent() else {
            records.remove(place);
            return None;
        };
        let local = record.standing == Standing::Local;
        if local {
            record.answer_locally(&leased, (terms, nodes, settings.local_slack), spent, now);
        }
        record.depart(number, spent);
        let report = Report {
            key: leased.key,
            rate: leased.grant.per_second(),
            cap: leased.grant.cap(),
            boot: record.boot.get(),
            spent: record.counted(spent),
            charged: record.counted(record.charged),
            level: if local { record.level } else { leased.cell.level(leased.grant, now)? },
            local,
        };
        if let Some(tally) = self.tally.limits.get_mut(usize::from(place.limit)) {
            let unreported = spent.wrapping_sub(record.charged).max(0);
            tally.unreported = tally.unreported.saturating_add(unreported);
        }
        Some(report)
    }

    /// The node goes: adds its last reports to `out`, shard by shard, the last to each with its farewell.
    /// A shard that was never heard, and is owed nothing, is not called. Nothing else may be asked of the
    /// node then.
    pub fn leave(&mut self, now: Moment, out: &mut Vec<Outgoing>) {
        let mut places = self.flights.room();
        let policy = &self.policy;
        places.extend(self.records.iter().filter_map(|(place, record)| {
            let spent = policy.leased_cell(place)?.cell.spent()?;
            (spent != record.charged).then_some(place)
        }));
        policy.collect_soon(|place| places.push(place));
        policy.collect_urgent(|place| places.push(place));
        places.sort_unstable();
        places.dedup();
        // What is under way is said once more, as nobody waits for its answer.
        for place in &places {
            if let Some(record) = self.records.get_mut(*place) {
                record.land();
            }
            sort_in(&mut self.shards, &self.policy, *place);
        }
        self.flights.give_back(places);
        for shard in self.each_shard() {
            let places = self.take_due(shard);
            let own = self.shards.get(usize::from(shard));
            let was_heard = own.is_some_and(|own| own.answered_at.is_some());
            if was_heard || !places.is_empty() {
                self.report(now, shard, &places, out);
                if let Some(last) = out.last_mut() {
                    last.call.leave = true;
                }
            }
            self.give_due_back(shard, places);
        }
    }
}

//! The lease sync of one node: when it reports which key, and what it makes of the answers.
//!
//! A state machine without a socket or a clock. The moment, the answers and the pushes go in; calls to
//! send come out, and leases go straight into the cells of the policy. A shell runs it on a thread of
//! its own, the simulation of a cluster runs many of them in one.
//!
//! A store may keep its keys in several shards, each of which is called, heard and lost by itself: the
//! keys of those that answer are leased, whatever becomes of the others.
//!
//! It never waits and never sends a message twice: a call that is not answered in time is forgotten,
//! and what it reported is reported again, as cumulative counters cannot charge twice. What a gate
//! does is not its business; it moves `line`, `stop` and `wake`, and reads `spent`.

mod flights;
mod lost;
mod record;
mod records;
mod report;
mod rest;
mod settings;
mod shard;
mod tally;
mod tick;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use self::flights::Flights;
use self::record::Record;
pub use self::record::Standing;
use self::records::Records;
pub use self::settings::Settings;
use self::shard::Shard;
pub use self::tally::{LimitTally, Tally};
use super::protocol::{Call, Lease, Low, NodeId, Reply};
use crate::clock::Moment;
use crate::limits::grant::ONE;
use crate::limits::{Hold, Leased, Place, Policy, Role, SHARDS_MAX, Terms};

/// An abuser asks for so many times the rate; by it the usual bound is said.
const MANY_TIMES: f64 = 20.0;

/// A call to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// By which its answer is known.
    pub number: u64,
    /// Of the store: each has the keys that are its own, and is called by itself.
    pub shard: u16,
    /// What to say.
    pub call: Call,
}

/// What is known of the lease of one key. Amounts are micro-tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// How the bucket stands to the store.
    pub standing: Standing,
    /// What may be spent now, if nothing holds the node back.
    pub level: i64,
    /// Spent and not acknowledged by the store.
    pub unreported: i64,
    /// What the node may spend beyond what is acknowledged; `None` for as much as the level gives.
    pub hold: Option<i64>,
    /// The node's part of what all spend.
    pub share: f32,
    /// Since the store's last word of this key, or the node's own.
    pub age: Duration,
    /// What the cluster may admit beyond burst and rate at the most.
    pub over_at_most: i64,
    /// What it usually admits beyond when it is asked for twenty times the rate.
    pub over_usually: i64,
}

/// The sync of one node with one store.
#[derive(Debug)]
pub struct Sync {
    settings: Settings,
    terms: Terms,
    node: NodeId,
    policy: Arc<Policy>,
    records: Records,
    flights: Flights,
    /// Of the store, at least one.
    shards: Box<[Shard]>,
    /// State of the jitter.
    random: u64,
    last_boot: u64,
    next_tick: Moment,
    /// When urgent keys are reported.
    flush_at: Option<Moment>,
    flushed_at: Option<Moment>,
    /// Of the calls that were answered, the last ones counting most.
    round_trip: Duration,
    /// Keys to report at the next flush, beside those that gates have marked.
    again: Vec<Place>,
    tally: Tally,
}

impl Sync {
    /// The sync of a node that has just started, whose first call is due at once. `seed` is for the
    /// jitter of its ticks. A policy that leases nothing has nothing to sync, and one has one sync: it
    /// tells the gates how many shards there are.
    pub fn new(
        settings: Settings,
        node: NodeId,
        seed: u64,
        policy: Arc<Policy>,
        now: Moment,
    ) -> Self {
        policy.leases().divide(settings.shards.clamp(1, SHARDS_MAX));
        let shards = 0..policy.leases().shards();
        Self {
            settings,
            shards: shards.map(|_| Shard::default()).collect(),
            terms: policy.leases().terms().copied().unwrap_or_default(),
            node,
            records: Records::new(policy.leased_limits()),
            flights: Flights::default(),
            random: seed,
            last_boot: 0,
            next_tick: now,
            flush_at: None,
            flushed_at: None,
            round_trip: Duration::ZERO,
            again: Vec::new(),
            tally: Tally::new(policy.leased_limits()),
            policy,
        }
    }

    /// When [`turn`](Self::turn) has something to do next, if nothing happens before.
    pub fn due(&self) -> Moment {
        let timeout = self.flights.oldest().map(|sent| sent.after(self.settings.reply_timeout));
        let returns = self.shards.iter().filter_map(|shard| shard.return_at);
        let others = [self.flush_at, timeout].into_iter().flatten().chain(returns);
        others.fold(self.next_tick, Moment::min)
    }

    /// A gate wants to be heard before the next tick.
    pub fn urge(&mut self, now: Moment) {
        let soonest = now.after(self.settings.coalesce);
        let gap = self.flushed_at.map(|flushed| flushed.after(self.settings.min_gap));
        self.flush_at.get_or_insert(gap.map_or(soonest, |gap| gap.max(soonest)));
    }

    /// Does what is due: forgets calls that nobody answered, and adds to `out` what there is to send.
    pub fn turn(&mut self, now: Moment, out: &mut Vec<Outgoing>) {
        while let Some(number) = self.flights.overdue(now, self.settings.reply_timeout) {
            self.fail(number);
        }
        if self.flush_at.is_some_and(|at| at <= now) {
            self.flush(now, out);
        }
        for shard in self.each_shard() {
            self.report_returning(now, shard, out);
        }
        if self.next_tick <= now {
            self.tick(now, out);
        }
    }

    /// The store has answered a call.
    pub fn answer(&mut self, now: Moment, number: u64, reply: &Reply) {
        // Forgotten: what it says of its keys is older than what was sent since.
        let Some(flight) = self.flights.land(number) else { return };
        self.tally.answered += 1;
        self.round_trip = (self.round_trip * 7 + now.since(flight.sent_at)) / 8;
        let (shard, was_lost) = (flight.shard, !self.is_heard(flight.shard, now));
        self.hear_shard(shard, flight.sent_at, reply, now);
        if reply.leases.len() == flight.places.len() {
            for (place, lease) in flight.places.iter().zip(&reply.leases) {
                match lease {
                    Some(lease) => self.take_lease(now, (number, flight.sent_at), *place, lease),
                    None => self.do_without(now, number, *place),
                }
            }
        } else {
            // Nobody can say which lease is whose.
            flight.places.iter().for_each(|place| self.forget(number, *place));
        }
        self.flights.keep_room(flight);
        self.hear(now, &reply.digest);
        if was_lost && self.is_heard(shard, now) {
            self.begin_return(now, shard);
        }
    }

    /// A call will not be answered: what it reported is reported again with the next tick.
    pub fn fail(&mut self, number: u64) {
        let Some(flight) = self.flights.land(number) else { return };
        self.tally.failed += 1;
        for place in &flight.places {
            self.forget(number, *place);
        }
        self.flights.keep_room(flight);
    }

    /// After a bug has ended its work amid an event: whatever was under way is forgotten, and reported
    /// anew.
    pub fn recover(&mut self) {
        self.flights.forget_all();
        let nodes = self.policy.leases().nodes();
        let Self { policy, records, terms, .. } = self;
        records.each_mut(|place, record| {
            record.land();
            if let Some(leased) = policy.leased_cell(place) {
                let reach = record.reach(leased.grant, leased.role, terms, nodes);
                leased.cell.unhush(record.reached_from(), reach);
            }
            policy.remind(place);
        });
    }

    /// How it syncs.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Other nodes have made these keys low.
    pub fn hear(&mut self, now: Moment, lows: &[Low]) {
        for low in lows {
            self.tally.heard += 1;
            if self.lower(now, low).is_none() {
                self.tally.unplaced += 1;
            }
        }
    }

    /// Whether every shard of the store has answered at all.
    pub fn has_answer(&self) -> bool {
        self.shards.iter().all(|shard| shard.answered_at.is_some())
    }

    /// What it has done so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// What is known of the lease of the key at a place; `None` when there is no such cell.
    pub fn look(&self, place: Place, now: Moment) -> Option<Known> {
        let leased = self.policy.leased_cell(place)?;
        let (cap, nodes) = (leased.grant.cap(), self.policy.leases().nodes());
        let first = || Record::first(NonZeroU64::MIN, cap, nodes, now);
        let record = self.records.get(place).copied().unwrap_or_else(first);
        Some(Known {
            standing: record.standing,
            level: leased.cell.level(leased.grant, now)?,
            unreported: leased.cell.spent()?.wrapping_sub(record.charged),
            hold: record.reach(leased.grant, leased.role, &self.terms, nodes).hold,
            share: record.share,
            age: now.since(record.at),
            over_at_most: match leased.role {
                Role::Limit(hold) => self.terms.over_at_most(cap, nodes, hold),
                Role::Floor => self.terms.over_at_most(cap, nodes, Hold::Burst),
            },
            over_usually: {
                let asked = MANY_TIMES * leased.grant.per_second() / ONE as f64;
                Terms::over_usually(asked, self.round_trip) as i64
            },
        })
    }

    /// Takes a lease into the cell, if it answers the newest report of its key.
    fn take_lease(
        &mut self,
        now: Moment,
        (number, sent_at): (u64, Moment),
        place: Place,
        lease: &Lease,
    ) {
        let nodes = self.policy.leases().nodes();
        let Some(record) = self.records.get_mut(place) else { return };
        let Some(leased) = self.policy.leased_cell(place) else { return };
        if !record.is_in(number) {
            return;
        }
        record.land();
        let cap = leased.grant.cap();
        record.take(lease.level.clamp(-cap, cap), lease.charged, lease.share, sent_at);
        let reach = record.reach(leased.grant, leased.role, &self.terms, nodes);
        let told = (record.level, sent_at);
        let due = leased.cell.lease(leased.grant, told, record.charged, reach);
        let spent_since = leased.cell.spent().is_some_and(|spent| spent != record.sent);
        if let Some(tally) = self.tally.limits.get_mut(usize::from(place.limit)) {
            let level = lease.level;
            tally.lowest = Some(tally.lowest.map_or(level, |lowest| lowest.min(level)));
        }
        if due {
            self.again.push(place);
            self.urge(now);
        } else if spent_since {
            self.policy.remind(place);
        }
    }

    /// A report is lost, or its answer: gates wake the sync as before it left, and the key is looked
    /// at again with the next tick.
    fn forget(&mut self, number: u64, place: Place) {
        let nodes = self.policy.leases().nodes();
        let Some(record) = self.records.get_mut(place) else { return };
        if !record.is_in(number) {
            return;
        }
        record.land();
        if let Some(leased) = self.policy.leased_cell(place) {
            let reach = record.reach(leased.grant, leased.role, &self.terms, nodes);
            leased.cell.unhush(record.reached_from(), reach);
        }
        self.policy.remind(place);
    }

    /// Makes the cell of a key stricter that another node has made low; the cell, if there is none.
    /// Where a report is under way, its answer will tell. `None` when there is no room for the key.
    fn lower(&mut self, now: Moment, low: &Low) -> Option<()> {
        let place = self.policy.place_of(&low.key, now)?;
        let Self { policy, records, last_boot, terms, .. } = self;
        let nodes = policy.leases().nodes();
        let (leased, record) = known(policy, (records, last_boot), place, now)?;
        let deaf = leased.role == Role::Floor || record.standing == Standing::Local;
        if !deaf && !record.is_in_flight() {
            record.hear(leased.grant, low.level, now);
            let reach = record.reach(leased.grant, leased.role, terms, nodes);
            leased.cell.lower(leased.grant, (low.level, now), record.charged, reach);
        }
        Some(())
    }

    fn begin_tally(&mut self) {
        let own = self.shards.iter().map(|shard| shard.local.len() + shard.returning.len());
        self.tally.local_keys = own.sum();
        self.tally.late_keys = 0;
        self.tally.limits.fill(LimitTally::default());
    }

    /// One step of SplitMix64.
    const fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.random;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

/// The cell at a place and its record, which is made if nothing was said of the key yet.
fn known<'a>(
    policy: &'a Policy,
    (records, last_boot): (&'a mut Records, &mut u64),
    place: Place,
    now: Moment,
) -> Option<(Leased<'a>, &'a mut Record)> {
    let leased = policy.leased_cell(place)?;
    let (cap, nodes) = (leased.grant.cap(), policy.leases().nodes());
    let first = || Record::first(next_boot(last_boot), cap, nodes, now);
    Some((leased, records.get_or(place, first)?))
}

/// An incarnation that was never used. At a million a second it stays below 2^53 for 285 years.
fn next_boot(last: &mut u64) -> NonZeroU64 {
    *last += 1;
    NonZeroU64::new(*last).unwrap_or(NonZeroU64::MIN)
}

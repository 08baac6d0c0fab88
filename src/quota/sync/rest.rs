//! Keys that rest: whose bucket is full, of whom nobody has heard, and whom the store owes nothing.

use std::time::Duration;

use super::{Standing, Sync};
use crate::clock::Moment;
use crate::limits::Place;

/// Slots of each limit that a tick looks at for keys that have rested, in so many steps: none of them
/// keeps a gate that makes a key waiting for more than some microseconds.
const VISITS_PER_STEP: usize = 128;
const STEPS_PER_TICK: usize = 16;

/// A key rests when it was not heard of for so long, and twice as long as its bucket takes to fill.
const IDLE: Duration = Duration::from_secs(60);
/// The same while few slots are free.
const IDLE_CROWDED: Duration = Duration::from_secs(1);

impl Sync {
    /// Retires keys that have rested, and forgets what was known of them. What the store has not
    /// acknowledged stays.
    pub(super) fn sweep(&mut self, now: Moment) {
        let mut retired = self.flights.room();
        for _ in 0..STEPS_PER_TICK {
            let (records, policy) = (&self.records, &self.policy);
            let rests = |place: Place, crowded, spent| {
                let (Some(record), Some(leased)) = (records.get(place), policy.leased_cell(place))
                else {
                    // Nobody has reported it yet; mostly it is marked.
                    policy.remind(place);
                    return false;
                };
                let idle = if crowded {
                    IDLE_CROWDED
                } else {
                    IDLE.max(leased.grant.time_to_full(0).saturating_mul(2))
                };
                // What was spent while the store is lost is settled by the level, and a full bucket
                // has nothing to settle.
                let settled = record.standing == Standing::Local && !record.is_in_flight();
                if !settled && !record.is_at_rest(spent) {
                    // Mostly it is marked already; a mark that went missing is made up for here.
                    policy.remind(place);
                    return false;
                }
                now.since(record.at) > idle
            };
            policy.sweep_leased(now, VISITS_PER_STEP, rests, &mut retired);
        }
        for place in retired.drain(..) {
            self.records.remove(place);
        }
        self.flights.give_back(retired);
        self.tally.keys = self.records.len();
    }
}

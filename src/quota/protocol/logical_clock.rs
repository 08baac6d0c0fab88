//! The store's time: it goes on with the wall clock, and not along when that is set.
//!
//! Buckets refill by this time alone, so setting a clock by an hour hands out no hour of tokens.

/// In microseconds, more than a wall clock goes on by itself from one call to the next while nodes
/// call several times a second.
const STEP_US: u64 = 500_000;

/// In microseconds, a caller is believed to know of a time that is so much later. A replica that was
/// further behind holds nothing that is worth its time, and a caller that is out of its mind costs all
/// buckets one filling and not the end of time.
const AHEAD_US: u64 = 3_600_000_000;

/// A clock that never goes back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LogicalClock {
    now_us: u64,
    /// The wall time last seen; `None` before the first call.
    wall_us: Option<u64>,
}

impl LogicalClock {
    /// The time as of the last call.
    pub(super) fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Goes on to the call at `wall_us` and says the time there.
    ///
    /// Where the wall clock was set, the time stands in that the caller makes it: `own_us`, when this
    /// store last answered it and what its own clock has gone on since. So nodes that call one after the
    /// other do not each add what they all have seen pass; and a replica that is made the master, and
    /// has lost what the old one answered meanwhile, loses no time with it. A caller that makes it
    /// nothing is believed the wall clock's way forward, for a store that nobody called for long.
    pub(super) fn go_on(&mut self, wall_us: u64, own_us: Option<u64>) -> u64 {
        self.now_us = match self.wall_us {
            None => wall_us,
            Some(last_us) => {
                let by_wall = wall_us.checked_sub(last_us);
                match (by_wall, own_us) {
                    (Some(by), _) if by <= STEP_US => self.now_us.saturating_add(by),
                    (_, Some(own_us)) => {
                        own_us.clamp(self.now_us, self.now_us.saturating_add(AHEAD_US))
                    }
                    (by, None) => self.now_us.saturating_add(by.unwrap_or(0)),
                }
            }
        };
        self.wall_us = Some(wall_us);
        self.now_us
    }

    /// Parts what follows from what was: the next call is a microsecond later, or more.
    pub(super) fn part(&mut self) {
        self.now_us = self.now_us.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_US: u64 = 3_600_000_000;

    fn started(wall_us: u64) -> LogicalClock {
        let mut clock = LogicalClock::default();
        clock.go_on(wall_us, None);
        clock
    }

    #[test]
    fn it_begins_at_the_wall_time_and_goes_on_with_it() {
        let mut clock = started(1_000_000);
        assert_eq!(clock.now_us(), 1_000_000);
        assert_eq!(clock.go_on(1_100_000, Some(7)), 1_100_000);
        assert_eq!(clock.go_on(1_600_000, Some(9_000_000)), 1_600_000);
    }

    #[test]
    fn where_the_wall_clock_is_set_the_callers_time_stands_in() {
        let mut clock = started(2 * HOUR_US);
        let own = |us| Some(2 * HOUR_US + us);
        assert_eq!(clock.go_on(3 * HOUR_US, own(100_000)), 2 * HOUR_US + 100_000);
        assert_eq!(clock.go_on(HOUR_US, own(150_000)), 2 * HOUR_US + 150_000);
        assert_eq!(clock.go_on(HOUR_US + 500_001, own(150_009)), 2 * HOUR_US + 150_009);
    }

    #[test]
    fn where_it_is_set_nodes_do_not_each_add_their_time() {
        let mut clock = started(2 * HOUR_US);
        assert_eq!(clock.go_on(HOUR_US, Some(2 * HOUR_US + 100_000)), 2 * HOUR_US + 100_000);
        assert_eq!(clock.go_on(0, Some(2 * HOUR_US + 125_000)), 2 * HOUR_US + 125_000);
        // What it says has passed already.
        assert_eq!(clock.go_on(HOUR_US, Some(2 * HOUR_US + 110_000)), 2 * HOUR_US + 125_000);
    }

    #[test]
    fn a_replica_that_was_behind_loses_no_time() {
        let mut master = started(HOUR_US);
        let mut replica = master.clone();
        let answered = master.go_on(HOUR_US + 400_000, None);
        let answered = master.go_on(HOUR_US + 800_000, Some(answered));
        // The replica's own clock may say anything.
        for wall in [HOUR_US + 900_000, 3 * HOUR_US, 7] {
            let own = Some(answered + 100_000);
            assert_eq!(replica.clone().go_on(wall, own), HOUR_US + 900_000);
        }
        assert_eq!(replica.go_on(HOUR_US + 400_000, Some(answered)), HOUR_US + 400_000);
    }

    #[test]
    fn a_caller_is_not_believed_to_know_of_more_than_an_hour() {
        let mut clock = started(HOUR_US);
        assert_eq!(clock.go_on(0, Some(u64::MAX)), 2 * HOUR_US);
    }

    #[test]
    fn a_caller_without_time_moves_it_forward_only() {
        let mut clock = started(HOUR_US);
        assert_eq!(clock.go_on(HOUR_US / 2, None), HOUR_US);
        assert_eq!(clock.go_on(HOUR_US, None), HOUR_US + HOUR_US / 2);
    }

    #[test]
    fn it_stops_at_the_end_of_time() {
        let mut clock = started(u64::MAX - 1);
        assert_eq!(clock.go_on(0, Some(u64::MAX)), u64::MAX);
        clock.part();
        assert_eq!(clock.now_us(), u64::MAX);
    }
}

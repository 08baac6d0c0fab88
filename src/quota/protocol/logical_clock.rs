//! The store's time: it goes on with the wall clock, and not along when that is set.
//!
//! Buckets refill by this time alone, so setting a clock by an hour hands out no hour of tokens.

/// In microseconds, more than a wall clock goes on by itself from one call to the next while nodes
/// call several times a second.
const STEP_US: u64 = 500_000;

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
    /// Where the wall clock was set, `elapsed_us` of the caller's own time stands in for it, from
    /// `heard_us` on, when the caller was last heard: nodes that call one after the other do not each
    /// add what they all have seen pass. A caller that was never heard has it added, and one that has
    /// none is believed the clock's way forward, for a store that nobody called for long.
    pub(super) fn go_on(
        &mut self,
        wall_us: u64,
        elapsed_us: Option<u64>,
        heard_us: Option<u64>,
    ) -> u64 {
        self.now_us = match self.wall_us {
            None => wall_us,
            Some(last_us) => {
                let by_wall = wall_us.checked_sub(last_us);
                match (by_wall, elapsed_us) {
                    (Some(by), _) if by <= STEP_US => self.now_us.saturating_add(by),
                    (_, Some(elapsed_us)) => {
                        let from_us = heard_us.unwrap_or(self.now_us);
                        self.now_us.max(from_us.saturating_add(elapsed_us))
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
        clock.go_on(wall_us, None, None);
        clock
    }

    #[test]
    fn it_begins_at_the_wall_time_and_goes_on_with_it() {
        let mut clock = started(1_000_000);
        assert_eq!(clock.now_us(), 1_000_000);
        assert_eq!(clock.go_on(1_100_000, Some(7), None), 1_100_000);
        assert_eq!(clock.go_on(1_600_000, Some(7), Some(9)), 1_600_000);
    }

    #[test]
    fn where_the_wall_clock_is_set_the_callers_time_stands_in() {
        let mut clock = started(2 * HOUR_US);
        assert_eq!(clock.go_on(3 * HOUR_US, Some(100_000), None), 2 * HOUR_US + 100_000);
        assert_eq!(clock.go_on(HOUR_US, Some(50_000), None), 2 * HOUR_US + 150_000);
        assert_eq!(clock.go_on(HOUR_US + 500_001, Some(9), None), 2 * HOUR_US + 150_009);
        assert_eq!(clock.go_on(HOUR_US + 500_002, Some(9), None), 2 * HOUR_US + 150_010);
    }

    #[test]
    fn where_it_is_set_nodes_do_not_each_add_their_time() {
        let mut clock = started(2 * HOUR_US);
        let (one, other) = (clock.now_us(), clock.go_on(2 * HOUR_US + 30_000, Some(9), None));
        let at = clock.go_on(HOUR_US, Some(100_000), Some(one));
        assert_eq!(at, 2 * HOUR_US + 100_000);
        assert_eq!(clock.go_on(0, Some(95_000), Some(other)), 2 * HOUR_US + 125_000);
        // What it says has passed already.
        assert_eq!(clock.go_on(HOUR_US, Some(20_000), Some(at)), 2 * HOUR_US + 125_000);
    }

    #[test]
    fn a_caller_without_time_moves_it_forward_only() {
        let mut clock = started(HOUR_US);
        assert_eq!(clock.go_on(HOUR_US / 2, None, Some(7)), HOUR_US);
        assert_eq!(clock.go_on(HOUR_US, None, None), HOUR_US + HOUR_US / 2);
    }

    #[test]
    fn it_stops_at_the_end_of_time() {
        let mut clock = started(u64::MAX - 1);
        assert_eq!(clock.go_on(0, Some(u64::MAX), Some(1)), u64::MAX);
        clock.part();
        assert_eq!(clock.now_us(), u64::MAX);
    }
}

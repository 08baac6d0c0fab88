//! How long a node waits before it tries to connect again.

use std::time::Duration;

/// The first wait is shorter than this.
const LEAST: Duration = Duration::from_millis(50);
/// And each later one than this. An operator who has mended a Redis wants leases back within a second,
/// and one attempt of each node in half of that is no load for a Redis that is just coming up.
const MOST: Duration = Duration::from_millis(800);

/// Attempts that failed in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The wait after one more failure. `random` is any number: the wait is anywhere below its bound
    /// ("full jitter"), so that nodes which lost one Redis together do not come back together.
    pub(super) fn wait(&mut self, random: u64) -> Duration {
        let most = LEAST.saturating_mul(1 << self.failures.min(10)).min(MOST);
        self.failures = self.failures.saturating_add(1);
        let most_us = u64::try_from(most.as_micros()).unwrap_or(u64::MAX).max(1);
        Duration::from_micros(random % most_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_bound_and_are_anywhere_below_it() {
        let mut backoff = Backoff::default();
        // One below a multiple of every bound.
        let longest = 50_000 * 16 - 1;
        let waits: Vec<_> = (0..7).map(|_| backoff.wait(longest).as_micros()).collect();
        assert_eq!(waits, [49_999, 99_999, 199_999, 399_999, 799_999, 799_999, 799_999]);
        assert_eq!(backoff.wait(0), Duration::ZERO);
        let mut worn = Backoff { failures: u32::MAX };
        assert!(worn.wait(u64::MAX) < MOST);
    }
}

//! When messages are sent without waiting for answers: arrivals at random and at a rate.
//!
//! A load that waits for answers sends less exactly when they are slow, and so hides it. Here each
//! message has the moment at which it was to be sent, and its latency counts from there.

use std::time::Duration;

use crate::clock::Moment;

/// Arrivals of a Poisson process.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// Messages per nanosecond.
    rate: f64,
    next: Moment,
    end: Moment,
    rng: fastrand::Rng,
}

impl Arrivals {
    /// So many per second, above 0, from `start` on and before `end`.
    pub(super) fn new(per_second: f64, start: Moment, end: Moment, rng: fastrand::Rng) -> Self {
        let mut arrivals = Self { rate: per_second / 1e9, next: start, end, rng };
        arrivals.advance();
        arrivals
    }

    /// When the next one is due; `None` when no more will come.
    pub(super) fn next(&self) -> Option<Moment> {
        (self.next < self.end).then_some(self.next)
    }

    /// The next one, if it is due by now.
    pub(super) fn take(&mut self, now: Moment) -> Option<Moment> {
        let at = self.next().filter(|at| *at <= now)?;
        self.advance();
        Some(at)
    }

    /// No more will come.
    pub(super) const fn stop(&mut self) {
        self.end = Moment::START;
    }

    fn advance(&mut self) {
        // 1 - f64() is above 0, so the logarithm is finite.
        let gap = -(1.0 - self.rng.f64()).ln() / self.rate;
        self.next = self.next.after(Duration::from_nanos(gap as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_come_at_their_rate_and_none_after_the_end() {
        let end = Moment::from_nanos(10_000_000_000);
        let rng = fastrand::Rng::with_seed(1);
        let mut arrivals = Arrivals::new(5_000.0, Moment::START, end, rng);
        assert_eq!(arrivals.take(Moment::START), None);
        let mut before = Moment::START;
        let mut count = 0_i32;
        while let Some(at) = arrivals.take(end) {
            assert!(at >= before && at < end);
            before = at;
            count += 1;
        }
        assert!((count - 50_000).abs() < 1_000, "{count}");
        assert_eq!(arrivals.next(), None);
    }
}

//! What a bucket hands out: so much at a time, so fast.
//!
//! It turns rates and bursts into the integers that a [`Cell`](super::cell::Cell) counts in, and
//! holds no state.

use std::time::Duration;

use super::rule::{Amount, Burst, Rate, Share};
use crate::clock::Moment;

/// One token, in micro-tokens: the unit of every amount in a cell.
pub const ONE: i64 = 1_000_000;

/// Fractional bits of [`Grant::rate`].
const RATE_FRACTION_BITS: u32 = 48;

/// What a bucket hands out: its rate and its burst. Kept beside the cells, as many cells share one.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    /// Micro-tokens per nanosecond, with 48 fractional bits.
    rate: u64,
    /// The level of a full bucket, in micro-tokens.
    cap: i64,
}

impl Grant {
    /// The grant of a bucket of `burst` tokens that refills at `rate`.
    ///
    /// The rate is rounded up, by less than 2^-48 micro-tokens per nanosecond (a token in nine
    /// thousand years). Rounded down, a bucket of one token would be a millionth short at the very
    /// moment at which it is full again, and refuse every other message of one who keeps to it.
    pub fn new(rate: Rate, burst: Burst) -> Self {
        // pico-tokens/s to micro-tokens/ns: 10^6 * 10^-12 * 10^-9.
        let scaled = u128::from(rate.pico_per_second()) << RATE_FRACTION_BITS;
        let rate = u64::try_from(scaled.div_ceil(10u128.pow(15))).unwrap_or(u64::MAX);
        Self { rate, cap: burst.micro() }
    }

    /// The grant of a bucket of this amount.
    pub(super) fn of(Amount { rate, burst }: Amount) -> Self {
        Self::new(rate, burst)
    }

    /// The level of a full bucket, in micro-tokens.
    pub const fn cap(&self) -> i64 {
        self.cap
    }

    /// What a class that leaves so much of a bucket has to find beside its own token. A small bucket
    /// shuts no class out for ever: full, it has a token for each.
    #[inline]
    pub(super) fn reserved(&self, share: Share) -> i64 {
        if share.is_nothing() { 0 } else { share.part(self.cap).min(self.cap - ONE) }
    }

    /// How long a bucket of this level takes to be full again if nobody spends.
    pub fn time_to_full(&self, level: i64) -> Duration {
        let missing = u128::from(u64::try_from(self.cap.saturating_sub(level)).unwrap_or(0));
        let nanos = (missing << RATE_FRACTION_BITS).div_ceil(u128::from(self.rate.max(1)));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Micro-tokens that refill in so long.
    pub fn refill(&self, elapsed: Duration) -> i64 {
        let refill = elapsed.as_nanos().saturating_mul(u128::from(self.rate)) >> RATE_FRACTION_BITS;
        i64::try_from(refill).unwrap_or(i64::MAX)
    }

    /// Micro-tokens per second.
    pub fn per_second(&self) -> f64 {
        self.rate as f64 * 1e9 / (1u64 << RATE_FRACTION_BITS) as f64
    }

    /// What a never-empty bucket would have handed out by `now`, modulo 2^64.
    pub(super) const fn issued(&self, now: Moment) -> i64 {
        ((now.nanos() as u128 * self.rate as u128) >> RATE_FRACTION_BITS) as i64
    }

    /// The line of a bucket that is full at `at` and has `spent` behind it.
    pub(super) const fn full_line(&self, spent: i64, at: Moment) -> i64 {
        spent.wrapping_add(self.cap).wrapping_sub(self.issued(at))
    }
}

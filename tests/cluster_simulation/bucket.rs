//! The yardstick: a token bucket without rounding.

use tollgate::clock::Moment;
use tollgate::limits::{Burst, Rate};

/// One token, in the unit in which a legal rate gives a whole number each nanosecond.
const ONE: i128 = 10i128.pow(21);
/// A millionth of a token, in which a burst is given.
const MICRO: i128 = ONE / 1_000_000;

/// One bucket that everybody would share if asking cost nothing.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Refill of a nanosecond.
    rate: i128,
    cap: i128,
    level: i128,
    at: Moment,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(rate: Rate, burst: Burst) -> Self {
        let cap = i128::from(burst.micro()) * MICRO;
        Self { rate: i128::from(rate.pico_per_second()), cap, level: cap, at: Moment::START }
    }

    /// Whether a token is there at `now` above `reserve`, a part of the burst.
    pub(crate) fn has(&mut self, now: Moment, reserve: f64) -> bool {
        self.refill(now);
        // The last token is for everybody, so that a small bucket shuts no class out for ever.
        let reserve = ((self.cap as f64 * reserve) as i128).min(self.cap - ONE);
        self.level >= ONE + reserve
    }

    /// Spends a token if one is there.
    pub(crate) fn take(&mut self, now: Moment) -> bool {
        let is_there = self.has(now, 0.0);
        if is_there {
            self.spend(now);
        }
        is_there
    }

    /// Gives tokens back; what is more than a burst is lost.
    pub(crate) fn put_back(&mut self, now: Moment, tokens: u32) {
        self.refill(now);
        self.level = (self.level + i128::from(tokens) * ONE).min(self.cap);
    }

    /// Spends a token, whether it is there or not.
    pub(crate) fn spend(&mut self, now: Moment) {
        self.refill(now);
        self.level -= ONE;
    }

    /// Spends a token unless the debt would be more than a burst.
    pub(crate) fn charge(&mut self, now: Moment) {
        self.refill(now);
        if self.level - ONE >= -self.cap {
            self.level -= ONE;
        }
    }

    /// Below zero is debt.
    pub(crate) fn tokens(&self) -> f64 {
        self.level as f64 / ONE as f64
    }

    fn refill(&mut self, now: Moment) {
        let nanos = i128::try_from(now.since(self.at).as_nanos()).unwrap();
        self.level = (self.level + self.rate * nanos).min(self.cap);
        self.at = self.at.max(now);
    }
}

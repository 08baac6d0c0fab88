//! Rates and bursts, in the ranges that a bucket can have.

use thiserror::Error;

/// Fastest refill, in tokens per second: a hundred times what one core can carry.
pub const RATE_MAX: f64 = 10_000_000.0;
/// Slowest refill: one token a day.
pub const RATE_MIN: f64 = 1.0 / 86_400.0;
/// Largest burst, in tokens.
pub const BURST_MAX: f64 = 1_000_000_000.0;

/// Tokens per second, from one a day to ten million a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    /// Pico-tokens: the fastest still fits, and one an hour is right to nine digits.
    pico_per_second: u64,
}

impl Rate {
    /// A rate in tokens per second; fractions are welcome.
    pub fn per_second(tokens: f64) -> Result<Self, AmountError> {
        if (RATE_MIN..=RATE_MAX).contains(&tokens) {
            Ok(Self { pico_per_second: (tokens * 1e12).round() as u64 })
        } else {
            Err(AmountError::Rate)
        }
    }

    /// One token a day.
    pub const SLOWEST: Self = Self { pico_per_second: 11_574_074 };

    /// In pico-tokens per second, exactly.
    pub const fn pico_per_second(self) -> u64 {
        self.pico_per_second
    }
}

/// Tokens of a full bucket, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Burst {
    micro: i64,
}

impl Burst {
    /// A burst in tokens; parts of a token count to the millionth.
    pub fn tokens(tokens: f64) -> Result<Self, AmountError> {
        if (1.0..=BURST_MAX).contains(&tokens) {
            Ok(Self { micro: (tokens * 1e6).round() as i64 })
        } else {
            Err(AmountError::Burst)
        }
    }

    /// The burst of a rule that names none: what `rate` gives in a second, at least one token.
    pub fn of_rate(rate: Rate) -> Self {
        let micro = i64::try_from(rate.pico_per_second / 1_000_000).unwrap_or(i64::MAX);
        Self { micro: micro.max(1_000_000) }
    }

    /// One token.
    pub const ONE: Self = Self { micro: 1_000_000 };

    /// With what `rate` gives in so long.
    #[must_use]
    pub fn plus(self, rate: Rate, during: std::time::Duration) -> Self {
        let pico = u128::from(rate.pico_per_second) * during.as_millis() / 1_000;
        let more = i64::try_from(pico / 1_000_000).unwrap_or(i64::MAX);
        Self { micro: self.micro.saturating_add(more) }
    }

    /// In micro-tokens.
    pub const fn micro(self) -> i64 {
        self.micro
    }
}

/// A bucket's rate and burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// How fast it refills.
    pub rate: Rate,
    /// What it holds when it is full.
    pub burst: Burst,
}

/// The part of a burst that requests of a class must leave to others, in fractions of 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share(u32);

impl Share {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// One fourth.
    pub const QUARTER: Self = Self(1 << 30);

    /// A share from 0 to 1.
    pub fn of(share: f64) -> Result<Self, AmountError> {
        if (0.0..=1.0).contains(&share) {
            Ok(Self((share * f64::from(u32::MAX)).round() as u32))
        } else {
            Err(AmountError::Share)
        }
    }

    /// Whether nothing is kept.
    #[inline]
    pub const fn is_nothing(self) -> bool {
        self.0 == 0
    }

    /// Of an amount of micro-tokens.
    #[inline]
    pub const fn part(self, micro: i64) -> i64 {
        ((micro as i128 * self.0 as i128) >> 32) as i64
    }

    /// From 0 to 1.
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(u32::MAX)
    }
}

/// A rate, a burst or a share that no bucket can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AmountError {
    /// The rate is out of range.
    #[error("a rate is from one token a day (0.0000116) to 10000000 tokens per second")]
    Rate,
    /// The share is out of range.
    #[error("a share is from 0 to 1")]
    Share,
    /// The burst is out of range.
    #[error("a burst is from 1 to 1000000000 tokens")]
    Burst,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_keep_to_their_ranges_and_are_exact() {
        assert_eq!(Rate::per_second(10_000_000.0).unwrap().pico_per_second(), 10u64.pow(19));
        assert_eq!(Rate::per_second(1.0 / 3_600.0).unwrap().pico_per_second(), 277_777_778);
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-6, 10_000_000.1] {
            assert_eq!(Rate::per_second(rate), Err(AmountError::Rate));
        }
        assert_eq!(Burst::tokens(1.5).unwrap().micro(), 1_500_000);
        for burst in [0.0, 0.999, f64::NAN, 2e9] {
            assert_eq!(Burst::tokens(burst), Err(AmountError::Burst));
        }
        let default_of = |rate| Burst::of_rate(Rate::per_second(rate).unwrap()).micro();
        assert_eq!((default_of(2.5), default_of(0.1)), (2_500_000, 1_000_000));
    }
}

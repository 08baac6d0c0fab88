//! The network between nodes and store: late, lossy, forgetful of order, and it repeats itself.

use std::time::Duration;

/// How long messages are on their way, and how many never arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// The least and the most that half a round trip takes.
    pub(crate) half_trip_us: (u64, u64),
    /// So many of a thousand messages ...
    pub(crate) late_permille: u64,
    /// ... take so much longer.
    pub(crate) later_us: (u64, u64),
    pub(crate) lost_permille: u64,
    pub(crate) doubled_permille: u64,
}

impl Weather {
    /// A data centre: half a millisecond to two for a round trip, now and then ten more.
    pub(crate) const FAIR: Self = Self {
        half_trip_us: (250, 1_000),
        late_permille: 10,
        later_us: (2_000, 10_000),
        lost_permille: 0,
        doubled_permille: 0,
    };

    /// A twentieth of the messages come late enough to overtake and to be given up.
    pub(crate) const SPIKY: Self =
        Self { late_permille: 50, later_us: (10_000, 40_000), ..Self::FAIR };

    /// A store 40 ms away.
    pub(crate) const FAR: Self = Self { half_trip_us: (20_250, 21_000), ..Self::FAIR };

    /// One message of twenty is lost, one of fifty arrives twice.
    pub(crate) const LOSSY: Self = Self { lost_permille: 50, doubled_permille: 20, ..Self::FAIR };
}

/// The network at work.
#[derive(Debug)]
pub(crate) struct Network {
    weather: Weather,
    random: fastrand::Rng,
}

impl Network {
    pub(crate) const fn new(weather: Weather, random: fastrand::Rng) -> Self {
        Self { weather, random }
    }

    /// After how long each copy of a message arrives: none if it is lost, two if it is repeated.
    pub(crate) fn copies(&mut self) -> impl Iterator<Item = Duration> + use<> {
        let copies = if self.chance(self.weather.lost_permille) {
            [None, None]
        } else if self.chance(self.weather.doubled_permille) {
            [Some(self.trip()), Some(self.trip())]
        } else {
            [Some(self.trip()), None]
        };
        copies.into_iter().flatten()
    }

    fn trip(&mut self) -> Duration {
        let mut micros = self.between(self.weather.half_trip_us);
        if self.chance(self.weather.late_permille) {
            micros += self.between(self.weather.later_us);
        }
        // No two messages are on their way for exactly as long.
        Duration::from_micros(micros) + Duration::from_nanos(self.random.u64(..1_000))
    }

    fn between(&mut self, (least, most): (u64, u64)) -> u64 {
        self.random.u64(least..=most)
    }

    fn chance(&mut self, permille: u64) -> bool {
        permille > 0 && self.random.u64(..1_000) < permille
    }
}

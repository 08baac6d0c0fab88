//! Time: monotonic moments for every decision, wall time for what is printed or put into Field 7.
//!
//! This is the only file that reads a clock. The core takes a [`Moment`] as an argument and never
//! asks for one, so a simulation may run a day in a second. Wall time steps, and so nothing is
//! ever decided by it.

use std::fmt;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A point in monotonic time: nanoseconds since the [`Clock`] it came from was started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(u64);

impl Moment {
    /// The start of the clock.
    pub const START: Self = Self(0);

    /// A moment `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start; enough for 584 years.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// This moment moved on by `by`, at most to the end of time.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos_of(by)))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

fn nanos_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A source of moments, shared by every thread of the process.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts a clock at [`Moment::START`].
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// The present moment. About 23 ns, more than a decision costs: read once per batch of frames.
    pub fn now(&self) -> Moment {
        Moment(nanos_of(self.origin.elapsed()))
    }
}

/// The present wall time in seconds since 1970-01-01T00:00:00Z.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is the one place that reads wall time"
)]
pub fn unix_seconds() -> u64 {
    let epoch = std::time::SystemTime::UNIX_EPOCH;
    std::time::SystemTime::now().duration_since(epoch).unwrap_or_default().as_secs()
}

/// The time that the calling thread has spent on a processor.
pub fn thread_cpu() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(spent).unwrap_or_default()
}

/// Coordinated universal time to the second, as Field 7 (MMDDhhmmss) wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utc {
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59; leap seconds are not shown.
    pub second: u8,
}

impl Utc {
    /// The present wall time.
    pub fn now() -> Self {
        Self::from_unix(unix_seconds())
    }

    /// The wall time `seconds` after 1970-01-01T00:00:00Z.
    pub fn from_unix(seconds: u64) -> Self {
        // Days to civil date by whole 400-year eras that start on 1 March 0000 (Howard Hinnant,
        // "chrono-compatible low-level date algorithms"), so that leap days fall at a year's end.
        let days = seconds / 86_400 + 719_468;
        let day_of_era = days % 146_097;
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let narrow = |value: u64| u8::try_from(value).unwrap_or(0);
        Self {
            month: narrow(month),
            day: narrow(day),
            hour: narrow(seconds / 3_600 % 24),
            minute: narrow(seconds / 60 % 60),
            second: narrow(seconds % 60),
        }
    }
}

/// Field 7 as it is transmitted: MMDDhhmmss.
impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { month, day, hour, minute, second } = self;
        write!(f, "{month:02}{day:02}{hour:02}{minute:02}{second:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_do_not_wrap_at_either_end() {
        assert_eq!(Moment::from_nanos(5).since(Moment::from_nanos(9)), Duration::ZERO);
        assert_eq!(Moment::from_nanos(u64::MAX).after(Duration::from_secs(1)).nanos(), u64::MAX);
    }

    #[test]
    fn unix_seconds_become_field_7() {
        for (seconds, text) in [
            (0, "0101000000"),
            (951_782_399, "0228235959"),
            (951_782_400, "0229000000"),
            (1_709_251_199, "0229235959"),
            (1_709_251_200, "0301000000"),
            (4_102_444_799, "1231235959"),
        ] {
            assert_eq!(Utc::from_unix(seconds).to_string(), text);
        }
    }
}

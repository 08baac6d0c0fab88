//! One token bucket in two atomic words, shared by every worker without a lock.
//!
//! `level = issued(now) + line - spent`: what a never-empty bucket would have handed out since the
//! clock started, moved by a line, less what was spent. A take is one compare-and-exchange of
//! `spent`. Beside the level itself nothing is kept, so nothing is left to keep in step. With the
//! embedded store the line is moved only to cut an overflow; the lease sync of a cluster will move
//! it as well, and adds the words that hold back and wake.
//!
//! **The words go round.** All arithmetic is modulo 2^64, and a difference is right as long as the
//! true level fits an `i64`. A bucket that is in use is cut at its burst and always fits. One
//! that nobody asks grows on paper: at the fastest rate it leaves the range after 10.6 days. So
//! somebody has to [`settle`](Cell::settle) every cell within [`SETTLE_WITHIN`]; the policy's sweep
//! does it within minutes. `spent` itself may go round as often as it likes.
//!
//! **Rounding** is in favour of who is being limited. A cell never refuses what a bucket of the same
//! history without rounding would grant; in any window it admits at most burst + rate x time and a
//! millionth of a token, which is where the window may have cut a micro-token in two.
//!
//! A cell refuses to know whose it is, and reads no clock.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use super::rule::{Burst, Rate};
use crate::clock::Moment;

/// One token, in micro-tokens: the unit of every amount in a cell.
pub const ONE: i64 = 1_000_000;

/// Longest time that a cell may be left alone, at any legal rate and burst.
pub const SETTLE_WITHIN: Duration = Duration::from_secs(7 * 86_400);

/// A level beyond this is cut by [`Cell::settle`]: a quarter of what the word holds, so that the
/// rest is good for 8 days at the fastest rate.
const SETTLE_ABOVE: i64 = 1 << 61;

/// `spent` of a cell that was retired. A legal `spent` is a multiple of 64 even after it has gone
/// round, since 1,000,000 and 2^64 both are.
const RETIRED: i64 = 1;

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

    /// The level of a full bucket, in micro-tokens.
    pub const fn cap(&self) -> i64 {
        self.cap
    }

    /// How long a bucket of this level takes to be full again if nobody spends.
    pub fn time_to_full(&self, level: i64) -> Duration {
        let missing = u128::from(u64::try_from(self.cap.saturating_sub(level)).unwrap_or(0));
        let nanos = (missing << RATE_FRACTION_BITS).div_ceil(u128::from(self.rate.max(1)));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// What a never-empty bucket would have handed out by `now`, modulo 2^64.
    const fn issued(&self, now: Moment) -> i64 {
        ((now.nanos() as u128 * self.rate as u128) >> RATE_FRACTION_BITS) as i64
    }

    /// The line of a bucket that is full at `at` and has `spent` behind it.
    const fn full_line(&self, spent: i64, at: Moment) -> i64 {
        spent.wrapping_add(self.cap).wrapping_sub(self.issued(at))
    }
}

/// What came of a [`Cell::take`] or a [`Cell::charge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// One token was spent.
    Granted,
    /// Nothing was spent: the bucket has no token left, or no room for more debt.
    Empty,
    /// Nothing was spent: the key has left this cell and has to be looked up again.
    Retired,
}

/// One bucket. Its [`Grant`] comes with every call and has to be the same one each time.
#[derive(Debug)]
pub struct Cell {
    /// Micro-tokens admitted and not undone, or [`RETIRED`].
    spent: AtomicI64,
    /// What is added to `issued(now) - spent`; goes down when an overflow is cut.
    line: AtomicI64,
}

impl Cell {
    /// A bucket that is full at `now`.
    pub const fn full(grant: &Grant, now: Moment) -> Self {
        Self { spent: AtomicI64::new(0), line: AtomicI64::new(grant.full_line(0, now)) }
    }

    /// A cell of no key: everybody is told to look again.
    pub(super) const fn retired() -> Self {
        Self { spent: AtomicI64::new(RETIRED), line: AtomicI64::new(0) }
    }

    /// Gives a retired cell that nobody can reach to a new key, full at `now`.
    pub(super) fn renew(&self, grant: &Grant, now: Moment) {
        self.line.store(grant.full_line(0, now), Release);
        self.spent.store(0, Release);
    }

    /// Spends one token if there is one. Moments of different workers may lie apart and go back: an
    /// older one sees less, never more.
    #[inline]
    pub fn take(&self, grant: &Grant, now: Moment) -> Take {
        self.spend(grant, now, ONE)
    }

    /// Spends one token whether it is there or not, down to a debt of one burst, so that a storm
    /// of messages that may not be refused shuts out the others for the time of one burst at most.
    #[inline]
    pub fn charge(&self, grant: &Grant, now: Moment) -> Take {
        self.spend(grant, now, ONE - grant.cap)
    }

    /// Spends one token if the level is `least` or more.
    #[inline]
    fn spend(&self, grant: &Grant, now: Moment, least: i64) -> Take {
        let issued = grant.issued(now);
        let mut spent = self.spent.load(Acquire);
        loop {
            if spent == RETIRED {
                return Take::Retired;
            }
            let line = self.line.load(Acquire);
            let level = issued.wrapping_add(line).wrapping_sub(spent);
            if level > grant.cap {
                // The overflow is lost before the take. With a `spent` gone stale the cut is as if
                // made just before the other's take, which is a legal order of the two.
                let full = grant.full_line(spent, now);
                if self.line.compare_exchange(line, full, AcqRel, Relaxed).is_err() {
                    spent = self.spent.load(Acquire);
                    continue;
                }
            } else if level < least {
                // An undo may have come between the two loads: refuse on one moment's words only.
                let present = self.spent.load(Acquire);
                if present == spent {
                    return Take::Empty;
                }
                spent = present;
                continue;
            }
            match self.spent.compare_exchange_weak(spent, spent.wrapping_add(ONE), AcqRel, Acquire)
            {
                Ok(_) => return Take::Granted,
                Err(present) => spent = present,
            }
        }
    }

    /// Gives one token back. A cell that was retired since was full without it, and stays as it is.
    pub fn undo(&self) {
        let mut spent = self.spent.load(Acquire);
        while spent != RETIRED {
            match self.spent.compare_exchange_weak(spent, spent.wrapping_sub(ONE), AcqRel, Acquire)
            {
                Ok(_) => return,
                Err(present) => spent = present,
            }
        }
    }

    /// Micro-tokens that may be spent at `now`; below zero is debt. `None` for a retired cell.
    pub fn level(&self, grant: &Grant, now: Moment) -> Option<i64> {
        let spent = self.spent.load(Acquire);
        let level = grant.issued(now).wrapping_add(self.line.load(Acquire)).wrapping_sub(spent);
        (spent != RETIRED).then_some(level.min(grant.cap))
    }

    /// Cuts an overflow that has grown for days. `at` lies a little in the past, so that a worker
    /// whose clock reading is older than the caller's does not find the bucket short.
    pub fn settle(&self, grant: &Grant, at: Moment) {
        let spent = self.spent.load(Acquire);
        let line = self.line.load(Acquire);
        let level = grant.issued(at).wrapping_add(line).wrapping_sub(spent);
        if spent != RETIRED && level > SETTLE_ABOVE {
            // Whoever was faster has cut it as well.
            let _ = self.line.compare_exchange(line, grant.full_line(spent, at), AcqRel, Relaxed);
        }
    }

    /// Retires the cell if it was full at `at`, counting all that was spent since. Nothing is lost
    /// by it: a take either comes first, and the cell stays, or is told to look again.
    pub(super) fn retire(&self, grant: &Grant, at: Moment) -> bool {
        let spent = self.spent.load(Acquire);
        let level = grant.issued(at).wrapping_add(self.line.load(Acquire)).wrapping_sub(spent);
        spent != RETIRED
            && level >= grant.cap
            && self.spent.compare_exchange(spent, RETIRED, AcqRel, Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_take_and_a_retirement_never_both_succeed() {
        let grant = Grant::new(Rate::per_second(1.0).unwrap(), Burst::tokens(5.0).unwrap());
        let now = Moment::START;
        let cells: Vec<_> = (0..200_000).map(|_| Cell::full(&grant, now)).collect();
        let (taken, retired) = thread::scope(|scope| {
            let taker = scope.spawn(|| cells.iter().map(|cell| cell.take(&grant, now)).collect());
            let retired: Vec<_> = cells.iter().map(|cell| cell.retire(&grant, now)).collect();
            let taken: Vec<_> = taker.join().unwrap();
            (taken, retired)
        });
        for ((take, retired), cell) in taken.into_iter().zip(retired).zip(&cells) {
            assert_eq!(take, if retired { Take::Retired } else { Take::Granted });
            // An undo after the retirement finds nobody.
            cell.undo();
            assert_eq!(cell.level(&grant, now), (!retired).then_some(grant.cap()));
        }
    }

    #[test]
    fn only_a_full_cell_is_retired() {
        let grant = Grant::new(Rate::per_second(1.0).unwrap(), Burst::tokens(5.0).unwrap());
        let cell = Cell::full(&grant, Moment::START);
        cell.take(&grant, Moment::START);
        assert!(!cell.retire(&grant, Moment::from_nanos(999_999_000)));
        assert!(cell.retire(&grant, Moment::from_nanos(1_000_000_000)));
        assert_eq!(cell.take(&grant, Moment::from_nanos(1_000_000_000)), Take::Retired);
        cell.renew(&grant, Moment::from_nanos(1_000_000_000));
        assert_eq!(cell.level(&grant, Moment::from_nanos(1_000_000_000)), Some(5 * ONE));
    }
}

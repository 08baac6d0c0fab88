//! One token bucket in a few atomic words, shared by every worker and the lease sync without a lock.
//!
//! `level = issued(now) + line - spent`: what a never-empty bucket would have handed out since the
//! clock started, moved by a line, less what was spent. A take is one compare-and-exchange of
//! `spent`, which is the only record of spending.
//!
//! **A lease is one store to `line`**, in terms of `spent`: what gates spend before, while and after
//! it is subtracted by itself. `stop` is what `spent` must not pass while the lease is valid, `wake`
//! where the sync wants to hear of it, `dirty` says that it will. Each is meaningful alone, so a gate
//! that sees old ones beside new ones is a round trip older and no worse. With the embedded store and
//! one node the line moves only when an overflow is cut: the cell *is* the bucket.
//!
//! **The words go round.** All arithmetic is modulo 2^64, and a difference is right as long as the
//! true level fits an `i64`. A bucket that is in use is cut at its burst and always fits. One
//! that nobody asks grows on paper: at the fastest rate it leaves the range after 10.6 days. So
//! somebody has to [`settle`](Cell::settle) every cell within [`SETTLE_WITHIN`]; the sweep does it
//! within minutes. `spent` itself may go round as often as it likes: what is reported of it counts
//! from the beginning of an incarnation, which the sync ends in time.
//!
//! **Rounding** is in favour of who is being limited. A cell never refuses what a bucket of the same
//! history without rounding would grant; in any window it admits at most burst + rate x time and a
//! millionth of a token, which is where the window may have cut a micro-token in two.
//!
//! A cell refuses to know whose it is, and reads no clock.

use std::time::Duration;

use super::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use super::atomic::{AtomicBool, AtomicI64};
use super::grant::{Grant, ONE};
use crate::clock::Moment;

/// Longest time that a cell may be left alone, at any legal rate and burst.
pub const SETTLE_WITHIN: Duration = Duration::from_secs(7 * 86_400);

/// A level beyond this is cut by [`Cell::settle`]: a quarter of what the word holds, so that the
/// rest is good for 8 days at the fastest rate.
const SETTLE_ABOVE: i64 = 1 << 61;

/// `spent` of a cell that was retired. A legal `spent` is a multiple of 64 even after it has gone
/// round, since 1,000,000 and 2^64 both are.
const RETIRED: i64 = 1;

/// Who asks for a token, and when.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    /// The moment of asking.
    pub now: Moment,
    /// Micro-tokens that have to be left; less than a full bucket by one token at least, so that a
    /// small bucket shuts nobody out for ever.
    pub reserve: i64,
    /// Whether the lease is valid, so that its hold counts.
    pub leased: bool,
}

impl Asking {
    /// One who may have the last token, of a bucket that nobody leases.
    pub const fn at(now: Moment) -> Self {
        Self { now, reserve: 0, leased: false }
    }
}

/// What came of a [`Cell::take`] or a [`Cell::charge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// One token was spent.
    Granted,
    /// Nothing was spent: the bucket has no token left, or no room for more debt.
    Empty,
    /// Nothing was spent: this node has to hear from the store first.
    Held,
    /// Nothing was spent: the key has left this cell and has to be looked up again.
    Retired,
}

/// What the lease sync has to be told after a [`Take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Nothing: it knows.
    Known,
    /// At its next tick.
    Soon,
    /// At once.
    Urgent,
}

/// How far a lease lets a node go. Amounts are micro-tokens beyond what is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// What may be spent until the node hears again; `None`: whatever the level gives.
    pub hold: Option<i64>,
    /// After so much the sync wants to know; `None`: it does not.
    pub budget: Option<i64>,
}

impl Reach {
    /// That of a bucket which nobody leases.
    pub const FREE: Self = Self { hold: None, budget: None };

    const fn stop(self, charged: i64) -> i64 {
        match self.hold {
            // Rounded up to even, as the lowest bit is the flag.
            Some(hold) => charged.wrapping_add(hold).wrapping_add(1) & !NEVER,
            None => NEVER,
        }
    }

    const fn wake(self, charged: i64) -> i64 {
        match self.budget {
            Some(budget) => charged.wrapping_add(budget).wrapping_add(1) & !NEVER,
            None => NEVER,
        }
    }
}

/// A `stop` without a hold, a `wake` of a sync that does not want to hear. A value would be met one
/// day by a `spent` that goes round; a set lowest bit is not.
const NEVER: i64 = 1;

/// One bucket. Its [`Grant`] comes with every call and has to be the same one each time.
#[derive(Debug)]
pub struct Cell {
    /// Micro-tokens admitted and not undone, or [`RETIRED`].
    spent: AtomicI64,
    /// What is added to `issued(now) - spent`; a gate moves it only to cut an overflow.
    line: AtomicI64,
    /// Where `spent` has to stop while the lease is valid, or [`NEVER`].
    stop: AtomicI64,
    /// Where `spent` wakes the sync, or [`NEVER`].
    wake: AtomicI64,
    /// The sync will look at this cell at its next tick.
    dirty: AtomicBool,
    /// Its place among the cells of its limit, by which the sync is told of it.
    number: u32,
}

impl Cell {
    /// A bucket that is full at `now`, and that nobody leases.
    pub fn full(grant: &Grant, now: Moment) -> Self {
        Self::opened(grant, now, Reach::FREE, 0)
    }

    /// The bucket of this number, full at `now`.
    pub(super) fn opened(grant: &Grant, now: Moment, reach: Reach, number: u32) -> Self {
        let cell = Self::retired(number);
        cell.renew(grant, now, reach);
        cell
    }

    /// A cell of no key: everybody is told to look again.
    pub(super) fn retired(number: u32) -> Self {
        Self {
            spent: AtomicI64::new(RETIRED),
            line: AtomicI64::new(0),
            stop: AtomicI64::new(NEVER),
            wake: AtomicI64::new(NEVER),
            dirty: AtomicBool::new(true),
            number,
        }
    }

    /// Gives a retired cell that nobody can reach to a new key, full at `now`.
    pub(super) fn renew(&self, grant: &Grant, now: Moment, reach: Reach) {
        self.line.store(grant.full_line(0, now), Release);
        self.stop.store(reach.stop(0), Release);
        self.wake.store(reach.wake(0), Release);
        // Where no sync listens, it counts as told.
        self.dirty.store(reach.budget.is_none(), Release);
        self.spent.store(0, Release);
    }

    /// Its place among the cells of its limit.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// Spends one token if there is one. Moments of different workers may lie apart and go back: an
    /// older one sees less, never more.
    #[inline]
    pub fn take(&self, grant: &Grant, asking: Asking) -> Take {
        self.spend(grant, asking, ONE + asking.reserve)
    }

    /// Spends one token whether it is there or not, down to a debt of one burst, so that a storm
    /// of messages that may not be refused shuts out the others for the time of one burst at most.
    #[inline]
    pub fn charge(&self, grant: &Grant, now: Moment) -> Take {
        self.spend(grant, Asking::at(now), ONE - grant.cap())
    }

    /// Spends one token if the level is `least` or more and the hold allows it.
    #[inline]
    fn spend(&self, grant: &Grant, asking: Asking, least: i64) -> Take {
        let issued = grant.issued(asking.now);
        let mut spent = self.spent.load(Acquire);
        loop {
            if spent == RETIRED {
                return Take::Retired;
            }
            let line = self.line.load(Acquire);
            let level = issued.wrapping_add(line).wrapping_sub(spent);
            if level > grant.cap() {
                // The overflow is lost before the take. With a `spent` gone stale the cut is as if
                // made just before the other's take, which is a legal order of the two.
                let full = grant.full_line(spent, asking.now);
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
            if asking.leased && self.is_held(spent) {
                return Take::Held;
            }
            // Sequentially consistent, as are the loads of `notice`: either this gate sees what the
            // sync wrote before it read `spent`, or the sync reads this token.
            match self.spent.compare_exchange_weak(spent, spent.wrapping_add(ONE), SeqCst, Acquire)
            {
                Ok(_) => return Take::Granted,
                Err(present) => spent = present,
            }
        }
    }

    #[inline]
    fn is_held(&self, spent: i64) -> bool {
        let stop = self.stop.load(Acquire);
        stop & NEVER == 0 && stop.wrapping_sub(spent) < ONE
    }

    /// What the sync has to be told after `take`. A refusal for want of tokens is never urgent: a
    /// flood of refused requests costs the store one report a tick and node.
    #[inline]
    pub fn notice(&self, take: Take) -> Notice {
        let urgent = match take {
            Take::Granted => self.is_due(self.spent.load(SeqCst)),
            Take::Held => self.wake.load(SeqCst) & NEVER == 0,
            Take::Empty => false,
            Take::Retired => return Notice::Known,
        };
        if urgent {
            Notice::Urgent
        } else if !self.dirty.load(SeqCst) && !self.dirty.swap(true, SeqCst) {
            Notice::Soon
        } else {
            Notice::Known
        }
    }

    /// Whether `spent` is where the sync wants to hear of it.
    #[inline]
    fn is_due(&self, spent: i64) -> bool {
        let wake = self.wake.load(SeqCst);
        wake & NEVER == 0 && spent.wrapping_sub(wake) >= 0
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
        (spent != RETIRED).then_some(level.min(grant.cap()))
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

    /// Retires the cell if it was full at `at`, counting all that was spent since, and `spent` is
    /// one that may be left behind. Nothing is lost by it: a take either comes first, and the cell
    /// stays, or is told to look again.
    pub(super) fn retire(
        &self,
        grant: &Grant,
        at: Moment,
        may_leave: impl FnOnce(i64) -> bool,
    ) -> bool {
        let spent = self.spent.load(Acquire);
        let level = grant.issued(at).wrapping_add(self.line.load(Acquire)).wrapping_sub(spent);
        spent != RETIRED
            && level >= grant.cap()
            && may_leave(spent)
            && self.spent.compare_exchange(spent, RETIRED, AcqRel, Relaxed).is_ok()
    }
}

/// What the sync does to a cell. One task calls these, so no writer races with a writer.
impl Cell {
    /// What was spent, modulo 2^64; `None` for a retired cell.
    pub fn spent(&self) -> Option<i64> {
        let spent = self.spent.load(SeqCst);
        (spent != RETIRED).then_some(spent)
    }

    /// Takes note that the sync looks at the cell: what is spent from here on is told anew. Returns
    /// whether somebody had told.
    pub fn heed(&self) -> bool {
        self.dirty.swap(false, SeqCst)
    }

    /// Makes the sync look at its next tick; says whether somebody has to be told so.
    pub fn remind(&self) -> bool {
        !self.dirty.swap(true, SeqCst)
    }

    /// A report leaves: gates need not wake the sync until it is answered.
    pub fn hush(&self) {
        self.wake.store(NEVER, SeqCst);
    }

    /// No answer came: gates wake the sync as before the report.
    pub fn unhush(&self, charged: i64, reach: Reach) {
        self.wake.store(reach.wake(charged), SeqCst);
    }

    /// A lease: the bucket had `level` micro-tokens at `at`, with `charged` of `spent` counted.
    /// Says whether the gates have reached what would wake the sync already.
    pub fn lease(
        &self,
        grant: &Grant,
        (level, at): (i64, Moment),
        charged: i64,
        reach: Reach,
    ) -> bool {
        self.line.store(line(grant, (level, at), charged), Release);
        self.stop.store(reach.stop(charged), Release);
        self.wake.store(reach.wake(charged), SeqCst);
        self.is_due(self.spent.load(SeqCst))
    }

    /// The store says that the bucket is low. The cell only ever gets stricter by it.
    pub fn lower(
        &self,
        grant: &Grant,
        (level, at): (i64, Moment),
        charged: i64,
        reach: Reach,
    ) -> bool {
        let told = line(grant, (level, at), charged);
        // A gate that cuts an overflow beside this cuts it once more.
        if told.wrapping_sub(self.line.load(Acquire)) < 0 {
            self.line.store(told, Release);
        }
        lower_word(&self.stop, reach.stop(charged));
        lower_word(&self.wake, reach.wake(charged));
        self.is_due(self.spent.load(SeqCst))
    }
}

/// The line of a bucket that had `level` at `at` with `charged` behind it.
fn line(grant: &Grant, (level, at): (i64, Moment), charged: i64) -> i64 {
    level.wrapping_add(charged).wrapping_sub(grant.issued(at))
}

/// Moves a `stop` or a `wake` down to `to`; one that never comes is above all.
fn lower_word(word: &AtomicI64, to: i64) {
    let present = word.load(Acquire);
    let lower = present & NEVER != 0 || to.wrapping_sub(present) < 0;
    if to & NEVER == 0 && lower {
        word.store(to, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::limits::rule::{Burst, Rate};

    #[test]
    fn a_take_and_a_retirement_never_both_succeed() {
        let grant = Grant::new(Rate::per_second(1.0).unwrap(), Burst::tokens(5.0).unwrap());
        let now = Moment::START;
        let cells: Vec<_> = (0..200_000).map(|_| Cell::full(&grant, now)).collect();
        let (taken, retired) = thread::scope(|scope| {
            let taker = scope
                .spawn(|| cells.iter().map(|cell| cell.take(&grant, Asking::at(now))).collect());
            let retired: Vec<_> =
                cells.iter().map(|cell| cell.retire(&grant, now, |_| true)).collect();
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
        cell.take(&grant, Asking::at(Moment::START));
        assert!(!cell.retire(&grant, Moment::from_nanos(999_999_000), |_| true));
        assert!(cell.retire(&grant, Moment::from_nanos(1_000_000_000), |_| true));
        assert_eq!(cell.take(&grant, Asking::at(Moment::from_nanos(1_000_000_000))), Take::Retired);
        cell.renew(&grant, Moment::from_nanos(1_000_000_000), Reach::FREE);
        assert_eq!(cell.level(&grant, Moment::from_nanos(1_000_000_000)), Some(5 * ONE));
    }
}

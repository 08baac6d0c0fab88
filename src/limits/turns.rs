//! Turns: how a table knows that nobody holds a slot any more.
//!
//! A worker counts up when a turn begins and again when it ends, so an odd count is a turn under
//! way. What was unlinked is out of everybody's hands once each worker that was in a turn then has
//! ended it. This module knows nothing of slots; it only says when.

use super::atomic::Ordering::{Acquire, Release, SeqCst};
use super::atomic::{AtomicU64, fence};

/// A count on a cache line of its own: it is written twice a turn by its worker alone.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Count(AtomicU64);

/// The counts of all workers.
#[derive(Debug)]
pub(super) struct Turns {
    workers: Box<[Count]>,
    /// How many turns of other threads are under way.
    guests: Count,
}

/// A turn under way; it ends when this is dropped.
#[derive(Debug)]
#[must_use = "the turn ends when this is dropped"]
pub struct Turn<'a> {
    turns: &'a Turns,
    worker: Option<&'a Count>,
}

impl Turns {
    pub(super) fn new(workers: usize) -> Self {
        Self { workers: (0..workers).map(|_| Count::default()).collect(), guests: Count::default() }
    }

    /// Begins a turn of `worker`. Only the worker's own thread does, and one turn at a time. Any
    /// other number is a guest, of which there may be several; the guests' count is shared and so
    /// not for the message path.
    pub(super) fn begin(&self, worker: usize) -> Turn<'_> {
        let worker = self.workers.get(worker);
        match worker {
            Some(count) => count.0.fetch_add(1, SeqCst),
            None => self.guests.0.fetch_add(1, SeqCst),
        };
        // Against the fence in `mark`: either this turn sees the unlinked chain, or the one who
        // unlinked sees this turn.
        fence(SeqCst);
        Turn { turns: self, worker }
    }

    /// Notes in `since` who is in a turn now, after something was unlinked.
    pub(super) fn mark(&self, since: &mut Since) {
        fence(SeqCst);
        since.counts.clear();
        since.counts.extend(self.workers.iter().map(|count| count.0.load(Acquire)));
        since.guests_gone = false;
    }

    /// Whether every turn that was under way at the mark has ended.
    pub(super) fn have_ended(&self, since: &mut Since) -> bool {
        since.guests_gone |= self.guests.0.load(Acquire) == 0;
        since.guests_gone
            && since
                .counts
                .iter()
                .zip(&self.workers)
                .all(|(then, now)| then % 2 == 0 || now.0.load(Acquire) != *then)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        match self.worker {
            Some(count) => count.0.fetch_add(1, Release),
            None => self.turns.guests.0.fetch_sub(1, Release),
        };
    }
}

/// Who was in a turn at a moment.
#[derive(Debug, Default)]
pub(super) struct Since {
    counts: Vec<u64>,
    /// Guests have no count of their own: they are waited for until none is left.
    guests_gone: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_was_under_way_is_waited_for_and_a_later_one_is_not() {
        let turns = Turns::new(2);
        let mut since = Since::default();
        let first = turns.begin(0);
        turns.mark(&mut since);
        let later = turns.begin(1);
        assert!(!turns.have_ended(&mut since));
        drop(first);
        assert!(turns.have_ended(&mut since));
        drop(later);
        let again = turns.begin(0);
        assert!(turns.have_ended(&mut since));
        drop(again);
    }

    #[test]
    fn a_guest_is_waited_for() {
        let turns = Turns::new(1);
        let mut since = Since::default();
        let guest = turns.begin(usize::MAX);
        turns.mark(&mut since);
        assert!(!turns.have_ended(&mut since));
        drop(guest);
        assert!(turns.have_ended(&mut since));
        let _late = turns.begin(usize::MAX);
        assert!(turns.have_ended(&mut since));
    }
}

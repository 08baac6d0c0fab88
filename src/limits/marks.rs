//! Marks: which cells of a limit the lease sync has to look at, told by gates without a lock.
//!
//! One bit for each cell, and one for each word of bits, so that a million cells of which ten are
//! marked are found by looking at a few hundred words. Nothing is queued, so nothing can be full; a
//! mark that is set while the sync collects is found by this collection or by the next.

use super::atomic::AtomicU64;
use super::atomic::Ordering::SeqCst;
use super::limit_set::bits;

/// The bits of one limit's cells.
#[derive(Debug)]
pub(super) struct Marks {
    words: Box<[AtomicU64]>,
    groups: Box<[AtomicU64]>,
}

impl Marks {
    /// Room for so many cells.
    pub(super) fn new(cells: usize) -> Self {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>();
        let words = cells.div_ceil(64);
        Self { words: zeros(words), groups: zeros(words.div_ceil(64)) }
    }

    /// Marks a cell.
    pub(super) fn set(&self, number: u32) {
        let at = number as usize;
        // The word before its group: who collects looks at the group first.
        if set_bit(&self.words, at) {
            set_bit(&self.groups, at / 64);
        }
    }

    /// Whether there may be none.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.load(SeqCst) == 0)
    }

    /// Takes all marks, the lowest cell first.
    pub(super) fn collect(&self, mut found: impl FnMut(u32)) {
        for (group_at, group) in self.groups.iter().enumerate() {
            if group.load(SeqCst) == 0 {
                continue;
            }
            for word_at in bits(group.swap(0, SeqCst)).map(|bit| group_at * 64 + bit) {
                let word = self.words.get(word_at).map_or(0, |word| word.swap(0, SeqCst));
                bits(word).for_each(|bit| found((word_at * 64 + bit) as u32));
            }
        }
    }
}

/// Sets a bit; whether it was not set. A set bit is not written again: gates on several cores would
/// throw its line to and fro.
fn set_bit(words: &[AtomicU64], at: usize) -> bool {
    let bit = 1 << (at % 64);
    words
        .get(at / 64)
        .is_some_and(|word| word.load(SeqCst) & bit == 0 && word.fetch_or(bit, SeqCst) & bit == 0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    fn collected(marks: &Marks) -> Vec<u32> {
        let mut all = Vec::new();
        marks.collect(|number| all.push(number));
        all
    }

    #[test]
    fn what_is_marked_is_collected_once() {
        let marks = Marks::new(10_000);
        for number in [0, 63, 64, 4_095, 4_096, 9_999, 63] {
            marks.set(number);
        }
        assert_eq!(collected(&marks), [0, 63, 64, 4_095, 4_096, 9_999]);
        assert!(collected(&marks).is_empty());
        marks.set(63);
        assert_eq!(collected(&marks), [63]);
        // A number that no cell has is nobody's.
        marks.set(20_000);
        assert!(collected(&marks).is_empty());
    }

    #[test]
    fn no_mark_is_lost_between_two_who_set_and_one_who_collects() {
        const CELLS: u32 = 300;
        let marks = Marks::new(CELLS as usize);
        // As a cell's `dirty` does: who finds it unset sets it and marks.
        let told: Vec<AtomicBool> = (0..CELLS).map(|_| AtomicBool::new(false)).collect();
        let (set, mut found) = thread::scope(|scope| {
            let setters: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut set = 0;
                        for round in 0..200_000_u32 {
                            let number = round % CELLS;
                            if !told[number as usize].swap(true, SeqCst) {
                                marks.set(number);
                                set += 1;
                            }
                        }
                        set
                    })
                })
                .collect();
            let mut found = 0;
            while setters.iter().any(|setter| !setter.is_finished()) {
                marks.collect(|number| {
                    told[number as usize].store(false, SeqCst);
                    found += 1;
                });
            }
            (setters.into_iter().map(|setter| setter.join().unwrap()).sum::<i32>(), found)
        });
        marks.collect(|_| found += 1);
        assert_eq!(found, set);
    }
}

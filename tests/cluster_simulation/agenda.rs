//! What is to happen, in the order of virtual time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tollgate::clock::Moment;

/// Events to come. Those of one moment happen in the order in which they were put down, so that a
/// seed plays the same every time.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    entries: BinaryHeap<Reverse<Entry<E>>>,
    put_down: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Moment,
    number: u64,
    event: E,
}

impl<E> Agenda<E> {
    pub(crate) const fn new() -> Self {
        Self { entries: BinaryHeap::new(), put_down: 0 }
    }

    pub(crate) fn put(&mut self, at: Moment, event: E) {
        let number = self.put_down;
        self.put_down += 1;
        self.entries.push(Reverse(Entry { at, number, event }));
    }

    /// The next event, if there is one before `end`.
    pub(crate) fn next_before(&mut self, end: Moment) -> Option<(Moment, E)> {
        if self.entries.peek()?.0.at >= end {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

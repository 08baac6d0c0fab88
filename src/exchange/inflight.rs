//! What is waited for: entries of one timeout, found by what their answer looks like.
//!
//! One register holds entries that all wait equally long, so that the order in which they came is
//! the order in which they are due and no timer is needed: the oldest is looked at, a few hundred
//! times a second. Entries lie in a slab and are chained in two lists, by age and by index key;
//! a value is reused in place, so that once the register has been as full as it gets, nothing is
//! allocated any more.

use std::num::NonZeroU32;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Indexed;

use super::identity::Identity;
use crate::clock::Moment;

/// Where an entry lies, counted from 1. Good until the entry is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(NonZeroU32);

impl Place {
    const fn index(self) -> usize {
        (self.0.get() as usize).wrapping_sub(1)
    }
}

/// Neighbours in a list of the slab.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    previous: Option<Place>,
    next: Option<Place>,
}

/// In this order and at the start of a cache line, so that an entry is found in its first line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Entry<T> {
    /// Entries with the same index key, the oldest first; before the oldest comes the youngest.
    by_key: Links,
    by_age: Links,
    identity: Identity,
    due: Moment,
    value: T,
}

/// First and last of a list.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: Place,
    last: Place,
}

/// Entries of one timeout.
#[derive(Debug)]
pub(super) struct Inflight<T> {
    entries: Vec<Entry<T>>,
    free: Vec<Place>,
    /// The oldest of each index key, which is its hash.
    index: HashTable<Place>,
    ages: Option<Ends>,
    len: usize,
    entries_max: usize,
}

impl<T: Default> Inflight<T> {
    /// An empty register for at most `entries_max` entries; its index is reserved at once, the
    /// entries as they are needed. The index is kept half empty, since a map that is fuller than
    /// that allocates when it clears away what was removed.
    pub(super) fn new(entries_max: usize) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            index: HashTable::with_capacity(entries_max.saturating_mul(2)),
            ages: None,
            len: 0,
            entries_max,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_full(&self) -> bool {
        self.len >= self.entries_max
    }

    /// Adds an entry, the youngest, and lends its value, which holds what the slot's last user left.
    /// The caller makes room first: a full register grows beyond its bound rather than refuse.
    pub(super) fn insert(&mut self, identity: Identity, due: Moment) -> &mut T {
        let place = self.free_place();
        self.len += 1;
        let previous = self.ages.map(|ages| ages.last);
        if let Some(entry) = previous.and_then(|last| self.entry_mut(last)) {
            entry.by_age.next = Some(place);
        }
        self.ages = Some(Ends { first: self.ages.map_or(place, |ages| ages.first), last: place });
        let youngest_namesake = self.index_youngest(identity.index_key(), place);
        #[expect(clippy::indexing_slicing, reason = "free_place returns a place of the slab")]
        let entry = &mut self.entries[place.index()];
        entry.identity = identity;
        entry.due = due;
        entry.by_age = Links { previous, next: None };
        entry.by_key = Links { previous: Some(youngest_namesake), next: None };
        &mut entry.value
    }

    fn free_place(&mut self) -> Place {
        if let Some(place) = self.free.pop() {
            return place;
        }
        self.entries.push(Entry::default());
        let count = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let place = Place(NonZeroU32::new(count).unwrap_or(NonZeroU32::MAX));
        // As many places can become free as there are entries; reserving here keeps remove() from
        // ever allocating.
        self.free.reserve(self.entries.len());
        place
    }

    /// Makes `place` the youngest of its key and returns the one that was, or `place` for want of one.
    fn index_youngest(&mut self, key: u64, place: Place) -> Place {
        let key_of = |at: &Place| key_at(&self.entries, *at);
        let hash = |at: &Place| key_of(at).unwrap_or_default();
        let oldest = match self.index.entry(key, |at| key_of(at) == Some(key), hash) {
            Indexed::Occupied(oldest) => *oldest.get(),
            Indexed::Vacant(none) => {
                none.insert(place);
                return place;
            }
        };
        let youngest = self
            .entry_mut(oldest)
            .and_then(|oldest| oldest.by_key.previous.replace(place))
            .unwrap_or(oldest);
        if let Some(youngest) = self.entry_mut(youngest) {
            youngest.by_key.next = Some(place);
        }
        youngest
    }

    /// Takes an entry out, and lends its value until the next insert. Removal is the act of
    /// answering: whoever removes an entry answers it, so nothing is answered twice.
    pub(super) fn remove(&mut self, place: Place) -> Option<&mut T> {
        let entry = self.entry(place)?;
        let (by_age, by_key, key) = (entry.by_age, entry.by_key, entry.identity.index_key());
        if let Some(entry) = by_age.previous.and_then(|at| self.entry_mut(at)) {
            entry.by_age.next = by_age.next;
        }
        if let Some(entry) = by_age.next.and_then(|at| self.entry_mut(at)) {
            entry.by_age.previous = by_age.previous;
        }
        self.ages = self.ages.and_then(|ages| without(ages, by_age));
        self.unindex(place, key, by_key);
        self.len -= 1;
        self.free.push(place);
        self.entry_mut(place).map(|entry| &mut entry.value)
    }

    /// Takes an entry with these neighbours from the list of its key. Only the oldest is indexed.
    fn unindex(&mut self, place: Place, key: u64, Links { previous, next }: Links) {
        match self.index.find_entry(key, |at| *at == place) {
            Ok(mut oldest) => match next {
                Some(next) => *oldest.get_mut() = next,
                None => {
                    oldest.remove();
                    return;
                }
            },
            Err(_) => {
                if let Some(entry) = previous.and_then(|at| self.entry_mut(at)) {
                    entry.by_key.next = next;
                }
            }
        }
        // The next one's previous, or where it was the youngest, the oldest one's.
        let behind = next.or_else(|| self.oldest_of(key));
        if let Some(entry) = behind.and_then(|at| self.entry_mut(at)) {
            entry.by_key.previous = previous;
        }
    }

    fn oldest_of(&self, key: u64) -> Option<Place> {
        if self.len == 0 {
            return None;
        }
        self.index.find(key, |at| key_at(&self.entries, *at) == Some(key)).copied()
    }

    /// The oldest entry that is due.
    pub(super) fn due(&self, now: Moment) -> Option<Place> {
        let oldest = self.oldest()?;
        (self.entry(oldest)?.due <= now).then_some(oldest)
    }

    pub(super) fn oldest(&self) -> Option<Place> {
        self.ages.map(|ages| ages.first)
    }

    pub(super) fn identity(&self, place: Place) -> Option<Identity> {
        self.entry(place).map(|entry| entry.identity)
    }

    /// Every entry with this index key, the oldest first.
    pub(super) fn by_key(&self, key: u64) -> List<'_, T> {
        List { entries: &self.entries, next: self.oldest_of(key), links: |entry| entry.by_key }
    }

    /// Every entry, the oldest first.
    pub(super) fn by_age(&self) -> List<'_, T> {
        List { entries: &self.entries, next: self.oldest(), links: |entry| entry.by_age }
    }

    /// The value of an entry and the entry after it in age, to walk all of them while changing some.
    pub(super) fn value_and_next(&mut self, place: Place) -> Option<(&mut T, Option<Place>)> {
        self.entry_mut(place).map(|entry| (&mut entry.value, entry.by_age.next))
    }

    fn entry(&self, place: Place) -> Option<&Entry<T>> {
        self.entries.get(place.index())
    }

    fn entry_mut(&mut self, place: Place) -> Option<&mut Entry<T>> {
        self.entries.get_mut(place.index())
    }
}

/// The ends of a list after an entry with these neighbours has left it; `None` when it was the last.
fn without(ends: Ends, neighbours: Links) -> Option<Ends> {
    match (neighbours.previous, neighbours.next) {
        (None, None) => None,
        (None, Some(next)) => Some(Ends { first: next, ..ends }),
        (Some(previous), None) => Some(Ends { last: previous, ..ends }),
        (Some(_), Some(_)) => Some(ends),
    }
}

fn key_at<T>(entries: &[Entry<T>], place: Place) -> Option<u64> {
    entries.get(place.index()).map(|entry| entry.identity.index_key())
}

/// Walks over one of the lists that entries are chained in.
pub(super) struct List<'a, T> {
    entries: &'a [Entry<T>],
    next: Option<Place>,
    links: fn(&Entry<T>) -> Links,
}

impl<'a, T> Iterator for List<'a, T> {
    type Item = (Place, &'a Identity);

    fn next(&mut self) -> Option<Self::Item> {
        let place = self.next?;
        let entry = self.entries.get(place.index())?;
        self.next = (self.links)(entry).next;
        Some((place, &entry.identity))
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn an_entry_is_found_in_its_first_cache_line() {
        assert_eq!(align_of::<Entry<()>>(), 64);
        assert_eq!(offset_of!(Entry<()>, identity) + Identity::FOUND_BY_BYTES, 64);
        assert_eq!((size_of::<Links>(), size_of::<Identity>()), (8, 120));
        assert_eq!(size_of::<Entry<[u64; 9]>>(), 256, "a request takes up four lines");
    }
}

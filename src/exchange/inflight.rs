//! What is waited for: entries of one timeout, found by what their answer looks like.
//!
//! One register holds entries that all wait equally long, so that the order in which they came is
//! the order in which they are due and no timer is needed: the oldest is looked at, a few hundred
//! times a second. Entries lie in a slab and are chained in two lists, by age and by index key;
//! a value is reused in place, so that once the register has been as full as it gets, nothing is
//! allocated any more.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry as Indexed;

use super::identity::Identity;
use crate::clock::Moment;

/// Where an entry lies. Good until the entry is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

/// Neighbours in a list of the slab.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    previous: Option<Place>,
    next: Option<Place>,
}

#[derive(Debug)]
struct Entry<T> {
    identity: Identity,
    due: Moment,
    by_age: Links,
    /// Entries with the same index key, the oldest first.
    by_key: Links,
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
    index: HashMap<u64, Ends, FixedState>,
    ages: Option<Ends>,
    len: usize,
    entries_max: usize,
}

impl<T: Default> Inflight<T> {
    /// An empty register for at most `entries_max` entries; its index is reserved at once, the
    /// entries as they are needed. The index is kept half empty, since a map that is fuller than
    /// that allocates when it clears away what was removed.
    pub(super) fn new(entries_max: usize, seed: u64) -> Self {
        let reserved = entries_max.saturating_mul(2);
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            index: HashMap::with_capacity_and_hasher(reserved, FixedState::with_seed(seed)),
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
        let older_namesake = self.index_youngest(identity.index_key(), place);
        if let Some(entry) = older_namesake.and_then(|older| self.entry_mut(older)) {
            entry.by_key.next = Some(place);
        }
        #[expect(clippy::indexing_slicing, reason = "free_place returns a place of the slab")]
        let entry = &mut self.entries[place.0 as usize];
        entry.identity = identity;
        entry.due = due;
        entry.by_age = Links { previous, next: None };
        entry.by_key = Links { previous: older_namesake, next: None };
        &mut entry.value
    }

    fn free_place(&mut self) -> Place {
        if let Some(place) = self.free.pop() {
            return place;
        }
        let place = Place(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        self.entries.push(Entry {
            identity: Identity::default(),
            due: Moment::START,
            by_age: Links::default(),
            by_key: Links::default(),
            value: T::default(),
        });
        // As many places can become free as there are entries; reserving here keeps remove() from
        // ever allocating.
        self.free.reserve(self.entries.len());
        place
    }

    /// Makes `place` the youngest of its key and returns the one before it.
    fn index_youngest(&mut self, key: u64, place: Place) -> Option<Place> {
        match self.index.entry(key) {
            Indexed::Occupied(mut namesakes) => {
                Some(std::mem::replace(&mut namesakes.get_mut().last, place))
            }
            Indexed::Vacant(none) => {
                none.insert(Ends { first: place, last: place });
                None
            }
        }
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
        if let Some(entry) = by_key.previous.and_then(|at| self.entry_mut(at)) {
            entry.by_key.next = by_key.next;
        }
        if let Some(entry) = by_key.next.and_then(|at| self.entry_mut(at)) {
            entry.by_key.previous = by_key.previous;
        }
        if let Indexed::Occupied(mut namesakes) = self.index.entry(key) {
            match without(*namesakes.get(), by_key) {
                Some(ends) => *namesakes.get_mut() = ends,
                None => {
                    namesakes.remove();
                }
            }
        }
        self.len -= 1;
        self.free.push(place);
        self.entry_mut(place).map(|entry| &mut entry.value)
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

    /// Entries whose kind and STAN are those of `answer`, the oldest first.
    pub(super) fn namesakes<'a>(
        &'a self,
        answer: &'a Identity,
    ) -> impl Iterator<Item = (Place, &'a Identity)> + 'a {
        let first = self.index.get(&answer.index_key()).map(|ends| ends.first);
        std::iter::successors(first, |at| self.entry(*at)?.by_key.next)
            .filter_map(|at| Some((at, &self.entry(at)?.identity)))
            .filter(|(_, identity)| identity.same_kind(answer) && identity.same_stan(answer))
    }

    /// Every entry, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Place, &Identity)> + '_ {
        std::iter::successors(self.oldest(), |at| self.entry(*at)?.by_age.next)
            .filter_map(|at| Some((at, &self.entry(at)?.identity)))
    }

    /// The value of an entry and the entry after it in age, to walk all of them while changing some.
    pub(super) fn value_and_next(&mut self, place: Place) -> Option<(&mut T, Option<Place>)> {
        self.entry_mut(place).map(|entry| (&mut entry.value, entry.by_age.next))
    }

    fn entry(&self, place: Place) -> Option<&Entry<T>> {
        self.entries.get(place.0 as usize)
    }

    fn entry_mut(&mut self, place: Place) -> Option<&mut Entry<T>> {
        self.entries.get_mut(place.0 as usize)
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

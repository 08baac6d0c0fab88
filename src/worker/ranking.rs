//! Which keys are met most: a sketch of a few counters for any number of keys.
//!
//! Space-Saving (Metwally, Agrawal, El Abbadi, 2005): a key without a counter takes over the smallest
//! one and its count, so that whatever has more than one in [`PLACES`] of all messages has a counter,
//! and no count is too low. It counts for about a minute and starts again; what it counted before is
//! kept for one minute more.

use crate::traffic::Traffic;

/// Counters of one ranking.
pub const PLACES: usize = 16;

/// A key, as one of the messages that have it, and how often it was met, at most.
#[derive(Clone, Copy, Debug)]
pub struct Ranked {
    /// A message with this key.
    pub example: Traffic,
    /// How often the key was met in the span of the ranking, at most.
    pub count: u64,
    mark: u64,
}

/// The keys of one limit that were met most.
#[derive(Clone, Copy, Debug)]
pub struct Ranking {
    places: [Option<Ranked>; PLACES],
    /// All messages that were counted.
    total: u64,
}

impl Ranking {
    /// Nothing was met.
    pub const EMPTY: Self = Self { places: [None; PLACES], total: 0 };

    /// All messages that were counted.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The keys that were met most, the most frequent first.
    pub fn top(&self) -> Vec<Ranked> {
        let mut top: Vec<_> = self.places.iter().flatten().copied().collect();
        top.sort_by_key(|ranked| std::cmp::Reverse(ranked.count));
        top
    }

    /// Counts a message whose key has this mark, which is the same for no other key but by chance.
    pub(super) fn count(&mut self, mark: u64, example: &Traffic) {
        self.total += 1;
        if let Some(ranked) = self.places.iter_mut().flatten().find(|ranked| ranked.mark == mark) {
            ranked.count += 1;
            return;
        }
        // An empty place counts as none.
        let smallest = self.places.iter_mut().min_by_key(|place| place.map_or(0, |it| it.count));
        if let Some(place) = smallest {
            let count = place.map_or(0, |it| it.count) + 1;
            *place = Some(Ranked { example: *example, count, mark });
        }
    }

    /// With what another ranking counted, of another time or another link.
    pub fn add(&mut self, other: &Self) {
        self.total += other.total;
        let mut all = self.top();
        for ranked in other.places.iter().flatten() {
            match all.iter_mut().find(|own| own.mark == ranked.mark) {
                Some(own) => own.count += ranked.count,
                None => all.push(*ranked),
            }
        }
        all.sort_by_key(|ranked| std::cmp::Reverse(ranked.count));
        self.places = std::array::from_fn(|place| all.get(place).copied());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{Class, LinkId, Operation};

    fn example() -> Traffic {
        Traffic::new(LinkId(0), Class::Standard, Operation::Purchase)
    }

    #[test]
    fn what_is_met_often_is_found_among_any_number_of_others() {
        let mut ranking = Ranking::EMPTY;
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..100_000 {
            // Two keys with a fifth and a tenth of all, in a sea of strangers.
            let mark = match rng.u32(..10) {
                0 | 1 => 1,
                2 => 2,
                _ => rng.u64(10..),
            };
            ranking.count(mark, &example());
        }
        let top = ranking.top();
        assert_eq!((ranking.total(), top.len()), (100_000, PLACES));
        assert_eq!((top[0].mark, top[1].mark), (1, 2));
        // No count is too low, and none is too high by more than its share.
        assert!((20_000 - 600..20_000 + 6_250 + 600).contains(&(top[0].count as usize)));
    }

    #[test]
    fn rankings_of_two_links_are_added_key_by_key() {
        let (mut one, mut other) = (Ranking::EMPTY, Ranking::EMPTY);
        (0..3).for_each(|_| one.count(1, &example()));
        (0..2).for_each(|_| other.count(1, &example()));
        (0..4).for_each(|_| other.count(2, &example()));
        one.add(&other);
        let counts: Vec<_> = one.top().iter().map(|ranked| (ranked.mark, ranked.count)).collect();
        assert_eq!((counts.as_slice(), one.total()), ([(1, 5), (2, 4)].as_slice(), 9));
    }
}

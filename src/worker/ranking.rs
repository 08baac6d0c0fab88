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

    /// With what another ranking counted, of another time or another link. What has a place in one of
    /// them alone may have lost it in the other.
    pub fn add(&mut self, other: &Self) {
        let counted_by = |ranking: &Self, mark| {
            let place = ranking.places.iter().flatten().find(|ranked| ranked.mark == mark);
            place.map_or_else(|| ranking.without_a_place(), |ranked| ranked.count)
        };
        let own = self.places.iter().flatten();
        let own = own.map(|own| Ranked { count: own.count + counted_by(other, own.mark), ..*own });
        let is_new = |theirs: &&Ranked| {
            let mut own = self.places.iter().flatten();
            own.all(|own| own.mark != theirs.mark)
        };
        let new = other.places.iter().flatten().filter(is_new);
        let new = new.map(|new| Ranked { count: new.count + self.without_a_place(), ..*new });
        let mut all: Vec<Ranked> = own.chain(new).collect();
        all.sort_by_key(|ranked| std::cmp::Reverse(ranked.count));
        self.places = std::array::from_fn(|place| all.get(place).copied());
        self.total += other.total;
    }

    /// How often a key that has no place was met, at most.
    fn without_a_place(&self) -> u64 {
        self.places.iter().map(|place| place.map_or(0, |ranked| ranked.count)).min().unwrap_or(0)
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

    /// Whatever is counted where and added up how, no count is too low, and a key without a place was
    /// met no more often than the smallest count.
    #[test]
    fn sums_of_rankings_count_nothing_too_low() {
        let mut rng = fastrand::Rng::with_seed(11);
        for _ in 0..200 {
            let mut met = [0_u64; 40];
            let mut sum = Ranking::EMPTY;
            let widest = rng.usize(1..=met.len());
            for _ in 0..rng.u8(1..5) {
                let mut ranking = Ranking::EMPTY;
                for _ in 0..rng.u16(..300) {
                    // The lower ones more often.
                    let key = rng.usize(..widest).min(rng.usize(..widest));
                    met[key] += 1;
                    ranking.count(key as u64, &example());
                }
                sum.add(&ranking);
            }
            assert_eq!(sum.total(), met.iter().sum::<u64>());
            for (mark, met) in (0..).zip(met) {
                let place = sum.top().into_iter().find(|ranked| ranked.mark == mark);
                let at_most = place.map_or(sum.without_a_place(), |ranked| ranked.count);
                assert!(at_most >= met, "{mark}: {at_most} of {met}");
            }
        }
    }
}

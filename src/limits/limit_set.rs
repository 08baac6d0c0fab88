//! Which limits: by their place in the configuration, and several of them at once.

/// Most limits of one policy: what a [`LimitSet`] holds.
pub const LIMITS_MAX: usize = 16;

/// A limit, by its place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LimitIx(pub u8);

/// Some of a policy's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitSet(u16);

impl LimitSet {
    /// No limit.
    pub const EMPTY: Self = Self(0);

    /// Whether there is none in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `limit` is in it.
    pub const fn contains(self, limit: LimitIx) -> bool {
        self.0 & Self::bit(limit) != 0
    }

    /// How many are in it.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Those in it, in the order of the configuration.
    pub fn iter(self) -> impl Iterator<Item = LimitIx> {
        bits(self.0.into()).map(|bit| LimitIx(bit as u8))
    }

    /// Puts `limit` into it.
    pub const fn insert(&mut self, limit: LimitIx) {
        self.0 |= Self::bit(limit);
    }

    const fn bit(limit: LimitIx) -> u16 {
        // A policy has no limit beyond the sixteenth.
        1 << (limit.0 as usize % LIMITS_MAX)
    }
}

/// The places of the bits that are set, from the lowest.
#[inline]
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (lowest < u64::BITS).then_some(lowest as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_lists_what_was_put_into_it_in_order() {
        let mut set = LimitSet::EMPTY;
        assert_eq!(set.iter().count(), 0);
        for place in [15, 3, 0, 3] {
            set.insert(LimitIx(place));
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [LimitIx(0), LimitIx(3), LimitIx(15)]);
        assert!(set.len() == 3 && set.contains(LimitIx(15)) && !set.contains(LimitIx(1)));
    }
}

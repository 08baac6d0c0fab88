//! A set of field numbers, as a bitmap has them.

use std::fmt;

/// The first field of a word. In the first word it says "another word follows".
pub(super) const FIRST_BIT: u64 = 1 << 63;

/// A set of field numbers, 1 to 192. Numbers outside are never members.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct FieldSet {
    /// As a bitmap has them: the first word's highest bit is field 1.
    words: [u64; 3],
}

impl FieldSet {
    /// The highest field number that a bitmap of three words announces.
    pub const MAX: u8 = 192;

    /// No fields.
    pub const EMPTY: Self = Self { words: [0; 3] };

    /// The fields of a list.
    pub const fn of(mut list: &[u8]) -> Self {
        let mut set = Self::EMPTY;
        while let [first, rest @ ..] = list {
            set.insert(*first);
            list = rest;
        }
        set
    }

    /// Adds a field; a number that no bitmap can announce is left out.
    pub const fn insert(&mut self, de: u8) {
        let bit = Self::bit(de);
        let [first, second, third] = &mut self.words;
        match de {
            1..=64 => *first |= bit,
            65..=128 => *second |= bit,
            129..=192 => *third |= bit,
            _ => {}
        }
    }

    /// Whether the field is in the set.
    #[inline]
    pub const fn contains(&self, de: u8) -> bool {
        let [first, second, third] = self.words;
        let word = match de {
            1..=64 => first,
            65..=128 => second,
            129..=192 => third,
            _ => 0,
        };
        word & Self::bit(de) != 0
    }

    /// The fields in ascending order.
    pub const fn iter(&self) -> FieldSetIter {
        FieldSetIter { words: self.words }
    }

    /// Whether there are no fields in it.
    pub const fn is_empty(&self) -> bool {
        matches!(self.words, [0, 0, 0])
    }

    /// The fields that are in both.
    pub const fn intersection(self, other: Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.words, other.words);
        Self { words: [a & x, b & y, c & z] }
    }

    /// The fields that are not in `other`.
    pub const fn difference(self, other: Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.words, other.words);
        Self { words: [a & !x, b & !y, c & !z] }
    }

    pub(super) const fn words(&self) -> [u64; 3] {
        self.words
    }

    pub(super) const fn from_words(words: [u64; 3]) -> Self {
        Self { words }
    }

    /// The bit of a field in its word; the word is found from the number apart.
    const fn bit(de: u8) -> u64 {
        // The shift counts modulo 64, which is what a field's place in its word is.
        FIRST_BIT.wrapping_shr(de.wrapping_sub(1) as u32)
    }
}

impl FromIterator<u8> for FieldSet {
    fn from_iter<I: IntoIterator<Item = u8>>(fields: I) -> Self {
        let mut set = Self::EMPTY;
        for de in fields {
            set.insert(de);
        }
        set
    }
}

impl fmt::Debug for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The fields of a [`FieldSet`] in ascending order.
#[derive(Clone, Debug)]
pub struct FieldSetIter {
    words: [u64; 3],
}

impl Iterator for FieldSetIter {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        for (word, before) in self.words.iter_mut().zip([1u8, 65, 129]) {
            if *word != 0 {
                let place = word.leading_zeros();
                *word &= !FIRST_BIT.wrapping_shr(place);
                return Some(before.wrapping_add(place as u8));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_the_fields_that_a_bitmap_can_announce_and_no_others() {
        let all: FieldSet = (0..=255).collect();
        assert!(all.iter().eq(1..=192));
        for de in 0..=255u8 {
            assert_eq!(all.contains(de), (1..=192).contains(&de));
            assert_eq!(FieldSet::of(&[de]).contains(de), (1..=192).contains(&de));
            assert!(!FieldSet::of(&[de]).contains(de.wrapping_add(64)));
        }
        let some = FieldSet::of(&[128, 2, 64, 65, 192]);
        assert!(some.iter().eq([2, 64, 65, 128, 192]));
        assert!(some.difference(FieldSet::of(&[64, 3])).iter().eq([2, 65, 128, 192]));
        assert!(some.intersection(FieldSet::of(&[64, 3, 192])).iter().eq([64, 192]));
        assert!(FieldSet::EMPTY.is_empty() && !some.is_empty());
    }
}

//! Words that stand for the content of fields inside this process.
//!
//! A word is a hash of 64 bits under a key that each process draws for itself. It is no proof of
//! anything to anybody else, and no two processes can compare theirs.

use std::fmt;

/// Digits of pi.
const PI: [u64; 4] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];

/// So much goes into one multiplication.
const BLOCK: usize = 16;

/// What words are keyed with.
#[derive(Clone, Copy)]
pub(super) struct Key {
    first: u64,
    second: u64,
}

impl Key {
    pub(super) const fn new(seed: u64) -> Self {
        let [a, b, c, d] = PI;
        Self { first: fold(seed ^ a, b), second: fold(seed ^ c, d) }
    }

    /// The word for some bytes. It is never 0, which stands for an absent field.
    #[inline]
    pub(super) fn word(self, bytes: &[u8]) -> u64 {
        match ends(bytes) {
            Some(ends) if bytes.len() <= BLOCK => self.mix(self.turned(bytes), ends).max(1),
            _ => self.word_of_any(bytes),
        }
    }

    /// The same for bytes that are not a few.
    #[inline(never)]
    fn word_of_any(self, mut bytes: &[u8]) -> u64 {
        let mut word = self.turned(bytes);
        while bytes.len() > BLOCK
            && let Some((block, rest)) = bytes.split_first_chunk::<BLOCK>()
        {
            word = self.mix(word, ends(block).unwrap_or_default());
            bytes = rest;
        }
        let few = || (bytes.iter().fold(0, |few, byte| (few << 8) | u64::from(*byte)), 0);
        self.mix(word, ends(bytes).unwrap_or_else(few)).max(1)
    }

    /// The ends of a text and of a longer one may be the same bytes, so that the key turns with the
    /// length. A length that was XORed in could be undone by a byte of the text.
    #[inline]
    const fn turned(self, bytes: &[u8]) -> u64 {
        self.first.rotate_right(bytes.len() as u32)
    }

    /// A word for two words in this order.
    #[inline]
    pub(super) const fn join(self, word: u64, next: u64) -> u64 {
        self.mix(self.first, (word, next))
    }

    #[inline]
    const fn mix(self, word: u64, (head, tail): (u64, u64)) -> u64 {
        fold(word ^ head, self.second ^ tail)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The first and the last bytes of 4 to [`BLOCK`]; they overlap, so that none is left out.
#[inline]
fn ends(bytes: &[u8]) -> Option<(u64, u64)> {
    if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return Some((u64::from_le_bytes(*head), u64::from_le_bytes(*tail)));
    }
    let (head, tail) = (bytes.first_chunk()?, bytes.last_chunk()?);
    Some((u32::from_le_bytes(*head).into(), u32::from_le_bytes(*tail).into()))
}

/// Both halves of the product in one: its middle bits depend on all bits of the factors.
#[inline]
const fn fold(one: u64, other: u64) -> u64 {
    let product = (one as u128).wrapping_mul(other as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_differ_when_any_byte_does(
            seed: u64, bytes in prop::collection::vec(any::<u8>(), 1..80), at: usize, by in 1_u8..,
        ) {
            let mut other = bytes.clone();
            let at = at % bytes.len();
            other[at] ^= by;
            let key = Key::new(seed);
            prop_assert_eq!(key.word(&bytes), key.word(&bytes.clone()));
            prop_assert_ne!(key.word(&bytes), key.word(&other));
        }

        /// Rows of one character have the same ends, however long they are.
        #[test]
        fn words_differ_when_the_length_does(seed: u64, byte: u8, one in 0_usize..80, other in 0_usize..80) {
            prop_assume!(one != other);
            let key = Key::new(seed);
            prop_assert_ne!(key.word(&vec![byte; one]), key.word(&vec![byte; other]));
        }

        #[test]
        fn words_differ_when_the_key_does(
            seed: u64, other: u64, bytes in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            prop_assume!(seed != other);
            prop_assert_ne!(Key::new(seed).word(&bytes), Key::new(other).word(&bytes));
        }

        #[test]
        fn words_are_joined_in_order(seed: u64, one: u64, other: u64) {
            prop_assume!(one != other);
            let key = Key::new(seed);
            prop_assert_ne!(key.join(one, other), key.join(other, one));
            prop_assert_ne!(key.join(one, one), key.join(one, other));
            prop_assert_ne!(key.join(one, one), key.join(other, one));
        }
    }

    /// What an index makes of a word: its bucket from the low bits, a tag from the high ones.
    #[test]
    fn words_of_numbers_in_a_row_are_spread_evenly() {
        const NUMBERS: usize = 1 << 14;
        for seed in [0, 1, 42, u64::MAX] {
            let key = Key::new(seed);
            let words: Vec<u64> =
                (0..NUMBERS).map(|number| key.word(format!("{number:06}").as_bytes())).collect();
            assert_eq!(words.iter().collect::<HashSet<_>>().len(), NUMBERS, "{seed}");
            let buckets: HashSet<_> = words.iter().map(|word| word % NUMBERS as u64).collect();
            // Of balls thrown at random into as many urns, 63 % of the urns have one.
            assert!(
                (60..66).contains(&(buckets.len() * 100 / NUMBERS)),
                "{seed} {}",
                buckets.len()
            );
            for tag in 0..128 {
                let tagged = words.iter().filter(|word| **word >> 57 == tag).count();
                assert!((64..256).contains(&tagged), "{seed} {tag} {tagged}");
            }
        }
    }
}

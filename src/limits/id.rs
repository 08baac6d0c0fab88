//! A key's identity: the 128-bit hash of its readable name, the same on every node.
//!
//! The name is the limit's name and the key's value, `merchant:123456:SHOP0001` or `bin:411111`. It
//! is fed to the hasher in parts and never built. The hash key is public and fixed, as nodes have to
//! agree; what places keys in a table of this process is the seeded [`Spread`].

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::traffic::Bin;

/// The key of every node's SipHash-1-3: the ASCII bytes of `tollgate` and of `key name`, read as
/// little-endian words. A change of it makes strangers of the nodes that still have the old one.
const NAME_KEY: (u64, u64) = (u64::from_le_bytes(*b"tollgate"), u64::from_le_bytes(*b"key name"));

/// A key of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyId {
    pub(super) first: u64,
    pub(super) second: u64,
}

/// Hashes the names of one limit's keys; has already taken in the limit's name.
#[derive(Clone, Debug)]
pub(super) struct Namer(SipHasher13);

impl Namer {
    /// The namer of a limit's keys.
    pub(super) fn new(limit: &str) -> Self {
        let mut hasher = SipHasher13::new_with_keys(NAME_KEY.0, NAME_KEY.1);
        hasher.write(limit.as_bytes());
        hasher.write(b":");
        Self(hasher)
    }

    /// The id of `limit:value`.
    #[inline]
    pub(super) fn id(&self, value: &[u8]) -> KeyId {
        let mut hasher = self.0;
        hasher.write(value);
        let hash = hasher.finish128();
        KeyId { first: hash.h1, second: hash.h2 }
    }

    /// The id of `limit:` and the first `digits` digits of `bin`.
    #[inline]
    pub(super) fn bin_id(&self, bin: Bin, digits: u8) -> KeyId {
        let text = decimal(bin.number());
        self.id(text.get(..usize::from(digits)).unwrap_or(&text))
    }
}

/// Eight decimal digits of a number below 100,000,000, all at once: two halves, four pairs and
/// eight digits in the lanes of one word. A division for each digit would cost more than the hash.
#[inline]
const fn decimal(number: u32) -> [u8; Bin::DIGITS] {
    let halves = (number / 10_000) as u64 | ((number % 10_000) as u64) << 32;
    // x / 100 for x < 10,000, and x / 10 for x < 100, as multiplications that stay in their lane.
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (halves - hundreds * 100) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | (pairs - tens * 10) << 8;
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

/// Where ids fall in this process. Both halves of an id meet a secret word, so that nobody outside
/// can find names that share a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread(u64, u64);

impl Spread {
    /// The spread of a seed that was drawn at random.
    pub(super) const fn new(seed: u64) -> Self {
        Self(scramble(seed), scramble(seed ^ 0x9e37_79b9_7f4a_7c15))
    }

    /// A well mixed word for `id`: a folded multiplication, as in foldhash.
    #[inline]
    pub(super) const fn word(self, id: KeyId) -> u64 {
        let wide = (id.first ^ self.0) as u128 * (id.second ^ self.1) as u128;
        (wide as u64) ^ (wide >> 64) as u64
    }
}

/// One step of SplitMix64.
const fn scramble(seed: u64) -> u64 {
    let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(name: &str) -> KeyId {
        let mut hasher = SipHasher13::new_with_keys(NAME_KEY.0, NAME_KEY.1);
        hasher.write(name.as_bytes());
        let hash = hasher.finish128();
        KeyId { first: hash.h1, second: hash.h2 }
    }

    fn bin(number: u32) -> Bin {
        let digits: Vec<u8> = format!("{number:08}").bytes().map(|byte| byte - b'0').collect();
        Bin::from_digits(&digits).unwrap()
    }

    #[test]
    fn an_id_is_the_hash_of_the_readable_name() {
        assert_eq!(
            Namer::new("merchant").id(b"123456:SHOP0001"),
            whole("merchant:123456:SHOP0001")
        );
        assert_eq!(Namer::new("bin").bin_id(bin(41_111_199), 6), whole("bin:411111"));
        assert_eq!(Namer::new("bin").bin_id(bin(4_111_112), 8), whole("bin:04111112"));
        assert_ne!(Namer::new("bin").id(b"411111"), Namer::new("bins").id(b"411111"));
    }

    #[test]
    fn ids_stay_what_they_are_from_one_release_to_the_next() {
        let id = Namer::new("bin").id(b"411111");
        assert_eq!((id.first, id.second), (1_527_159_937_366_779_702, 2_248_687_768_823_851_291));
    }

    #[test]
    fn decimals_are_what_the_standard_library_prints() {
        for number in (0..100_000_000).step_by(997).chain([9_999, 10_000, 99_999_999]) {
            assert_eq!(decimal(number).as_slice(), format!("{number:08}").as_bytes());
        }
    }

    #[test]
    fn two_seeds_spread_the_same_ids_differently() {
        let ids: Vec<_> = (0..4096).map(|n| Namer::new("bin").bin_id(bin(n), 8)).collect();
        let chain = |seed| ids.iter().filter(|id| Spread::new(seed).word(**id) % 64 == 7).count();
        let (one, two) = (Spread::new(1), Spread::new(2));
        let same = ids.iter().filter(|id| one.word(**id) % 64 == two.word(**id) % 64).count();
        assert!((32..=96).contains(&chain(1)) && (32..=96).contains(&chain(2)));
        assert!(same < 128, "{same} of 4096 ids share a place under both seeds");
    }
}

//! A key's identity: 128 bits made of its limit's name and its values, the same on every node.
//!
//! The readable name of a key is its limit and its values, `merchant: 123456:SHOP0001`. It is never
//! built on the path of a message: the id is a sum of what its parts give, so that the text of a
//! merchant is hashed once for all limits that ask for it, and numbers not at all. Within one limit
//! two keys that differ in numbers alone have different ids for certain; for keys that differ in
//! text the hash is SipHash-1-3 of 128 bits, under a public key, as nodes have to agree. What places
//! keys in a table of this process is the seeded [`Spread`].

use std::fmt;
use std::hash::Hasher;
use std::sync::Arc;

use siphasher::sip128::{Hasher128, SipHasher13};

use super::part::Part;
use super::per::{Dimension, Per};
use crate::traffic::{Bin, LinkId, Traffic};

/// The key of every node's SipHash-1-3: the ASCII bytes of `tollgate` and of `key name`, read as
/// little-endian words. A change of it makes strangers of the nodes that still have the old one.
const NAME_KEY: (u64, u64) = (u64::from_le_bytes(*b"tollgate"), u64::from_le_bytes(*b"key name"));

/// Odd, so that multiplying by one of them loses nothing; different, so that a text that is both a
/// merchant and a terminal, or numbers in another order, do not give the same sum.
const NUMBERS: KeyId = KeyId { first: 0x9e37_79b9_7f4a_7c15, second: 0xc2b2_ae3d_27d4_eb4f };
const TERMINAL: KeyId = KeyId { first: 0xd6e8_feb8_6659_fd93, second: 0xa076_1d64_78bd_642f };
const LINK: KeyId = KeyId { first: 0xff51_afd7_ed55_8ccd, second: 0x8ebc_6af0_9c88_c6e3 };

const NAMED: KeyId = KeyId { first: 0xe703_7ed1_a0b4_28db, second: 0x5899_6567_b333_bf5d };

/// What the parts of a limit add to its id.
const PEAK: KeyId = KeyId { first: 0x8bb8_4b93_962e_acc9, second: 0x4b33_a62e_d433_d4a3 };
const FLOOR: KeyId = KeyId { first: 0x4d5a_2da5_1de1_aa47, second: 0xc0fe_e5d1_9c5b_b2cf };

/// Bits of a BIN of eight digits.
const BIN_BITS: u32 = 27;
/// Bits of an operation's number.
const OPERATION_BITS: u32 = 4;

/// A key of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyId {
    pub(super) first: u64,
    pub(super) second: u64,
}

impl KeyId {
    /// The id of a text.
    fn of_text(text: &[u8]) -> Self {
        let mut hasher = SipHasher13::new_with_keys(NAME_KEY.0, NAME_KEY.1);
        hasher.write(text);
        let hash = hasher.finish128();
        Self { first: hash.h1, second: hash.h2 }
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            first: self.first.wrapping_add(other.first),
            second: self.second.wrapping_add(other.second),
        }
    }

    const fn times(self, other: Self) -> Self {
        Self {
            first: self.first.wrapping_mul(other.first),
            second: self.second.wrapping_mul(other.second),
        }
    }
}

/// Few limits of many keys apply to one message.
const FAR_MAX: usize = 2;

/// The hashes of one message's texts, each made when it is first asked for.
#[derive(Clone)]
pub struct Digests {
    merchant: Option<KeyId>,
    terminal: Option<KeyId>,
    /// Keys that were looked ahead at, each with the place of its limit.
    far: [Option<(usize, KeyId)>; FAR_MAX],
}

/// Nothing: under a public key a hash tells whoever can guess the text.
impl fmt::Debug for Digests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digests(..)")
    }
}

impl Digests {
    /// None made yet.
    pub const fn none() -> Self {
        Self { merchant: None, terminal: None, far: [None; FAR_MAX] }
    }

    /// Keeps the key that a message has in the limit of this place, if there is room.
    #[inline]
    pub(super) fn keep(&mut self, place: usize, id: KeyId) {
        if let Some(free) = self.far.iter_mut().find(|far| far.is_none()) {
            *free = Some((place, id));
        }
    }

    /// The keys that were kept.
    #[inline]
    pub(super) fn kept(&self) -> impl Iterator<Item = (usize, KeyId)> {
        self.far.iter().copied().flatten()
    }

    #[inline]
    fn merchant(&mut self, traffic: &Traffic) -> Option<KeyId> {
        if self.merchant.is_none() {
            self.merchant = Some(KeyId::of_text(traffic.merchant.as_ref()?.name()));
        }
        self.merchant
    }

    #[inline]
    fn terminal(&mut self, traffic: &Traffic) -> Option<KeyId> {
        if self.terminal.is_none() {
            let terminal = KeyId::of_text(traffic.terminal.as_ref()?.name());
            self.terminal = Some(terminal.times(TERMINAL));
        }
        self.terminal
    }
}

/// What the links of a configuration give to an id, by their place.
pub(super) fn link_ids(links: &[String]) -> Arc<[KeyId]> {
    links.iter().map(|link| KeyId::of_text(link.as_bytes()).times(LINK)).collect()
}

/// Makes the ids of one limit's keys.
#[derive(Clone, Debug)]
pub(super) struct Namer {
    limit: KeyId,
    bin_digits: u8,
    links: Arc<[KeyId]>,
}

impl Namer {
    /// The namer of a limit whose BINs have so many digits.
    pub(super) fn new(limit: &str, bin_digits: u8, links: Arc<[KeyId]>) -> Self {
        Self { limit: KeyId::of_text(limit.as_bytes()), bin_digits, links }
    }

    /// The id of a message's values in the dimensions `per`; `None` when it lacks one of them.
    #[inline]
    pub(super) fn id(&self, per: Per, traffic: &Traffic, digests: &mut Digests) -> Option<KeyId> {
        let mut id = self.limit;
        let mut numbers = 0;
        if per.has(Dimension::Bin) {
            numbers = u64::from(bin_prefix(traffic.bin?, self.bin_digits));
        }
        if per.has(Dimension::Operation) {
            numbers |= (traffic.operation as u64) << BIN_BITS;
        }
        if per.has(Dimension::Mcc) {
            numbers |= u64::from(traffic.mcc?.number()) << (BIN_BITS + OPERATION_BITS);
        }
        id = id.plus(NUMBERS.times(KeyId { first: numbers, second: numbers }));
        if per.has(Dimension::Merchant) {
            id = id.plus(digests.merchant(traffic)?);
        }
        if per.has(Dimension::Terminal) {
            id = id.plus(digests.terminal(traffic)?);
        }
        if per.has(Dimension::Link) {
            id = id.plus(self.link(traffic.link)?);
        }
        Some(id)
    }

    /// The namer of a part of the limit, whose keys are others than the limit's own.
    pub(super) fn of_part(mut self, part: Part) -> Self {
        self.limit = match part {
            Part::Rate => self.limit,
            Part::Peak => self.limit.plus(PEAK),
            Part::Floor => self.limit.plus(FLOOR),
        };
        self
    }

    /// The id of the limit itself, which is that of its one bucket if it has no more.
    pub(super) const fn limit(&self) -> KeyId {
        self.limit
    }

    /// The id of a key that the configuration names, by its readable name.
    pub(super) fn named(&self, name: &str) -> KeyId {
        self.limit.plus(KeyId::of_text(name.as_bytes()).times(NAMED))
    }

    fn link(&self, link: LinkId) -> Option<KeyId> {
        self.links.get(usize::from(link.0)).copied()
    }
}

/// [`Bin::prefix`] of 6 to 8 digits, without its division.
#[inline]
const fn bin_prefix(bin: Bin, digits: u8) -> u32 {
    match digits {
        6 => bin.number() / 100,
        7 => bin.number() / 10,
        _ => bin.number(),
    }
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

    /// A well mixed word for `id`: a folded multiplication.
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
    use crate::traffic::{Class, Mcc, MerchantId, Operation, TerminalId};

    fn bin(number: u32) -> Bin {
        let digits: Vec<u8> = format!("{number:08}").bytes().map(|byte| byte - b'0').collect();
        Bin::from_digits(&digits).unwrap()
    }

    fn message() -> Traffic {
        Traffic {
            bin: Some(bin(41_111_199)),
            merchant: MerchantId::new(b"123456", b"SHOP0001"),
            terminal: TerminalId::new(b"123456", b"T0001"),
            mcc: Mcc::new(5_411),
            ..Traffic::new(LinkId(1), Class::Standard, Operation::Refund)
        }
    }

    fn id(limit: &str, per: Per, traffic: &Traffic) -> Option<KeyId> {
        let links = link_ids(&["visa".to_owned(), "mastercard".to_owned()]);
        Namer::new(limit, 6, links).id(per, traffic, &mut Digests::none())
    }

    #[test]
    fn an_id_differs_by_limit_and_by_every_dimension_that_it_has_and_by_no_other() {
        let one = message();
        let others = [
            Traffic { bin: Some(bin(41_111_299)), ..one },
            Traffic { merchant: MerchantId::new(b"123457", b"SHOP0001"), ..one },
            Traffic { terminal: TerminalId::new(b"123456", b"T0002"), ..one },
            Traffic { mcc: Mcc::new(5_412), ..one },
            Traffic { operation: Operation::Credit, ..one },
            Traffic { link: LinkId(0), ..one },
        ];
        let changed = [
            Dimension::Bin,
            Dimension::Merchant,
            Dimension::Terminal,
            Dimension::Mcc,
            Dimension::Operation,
            Dimension::Link,
        ];
        for bits in 0_u32..64 {
            let per = Dimension::ALL.into_iter().enumerate();
            let per: Vec<_> =
                per.filter(|(at, _)| bits >> at & 1 == 1).map(|(_, dimension)| dimension).collect();
            let per = Per::of(&per);
            assert_ne!(id("one", per, &one), id("other", per, &one));
            for (other, dimension) in others.iter().zip(changed) {
                let differs = id("one", per, &one) != id("one", per, other);
                assert_eq!(differs, per.has(dimension), "{per} {dimension:?}");
            }
        }
    }

    #[test]
    fn a_bin_counts_in_the_digits_of_its_limit() {
        let near = Traffic { bin: Some(bin(41_111_100)), ..message() };
        assert_eq!(id("bin", Per::BIN, &near), id("bin", Per::BIN, &message()));
        for digits in 6..=8 {
            let number = bin(41_111_199);
            assert_eq!(bin_prefix(number, digits), number.prefix(digits));
        }
    }

    #[test]
    fn what_a_message_lacks_gives_no_id() {
        let bare = Traffic::new(LinkId(9), Class::Standard, Operation::Refund);
        for per in [Per::BIN, Per::MERCHANT, Per::TERMINAL, Per::MCC, Per::LINK] {
            assert_eq!(id("limit", per, &bare), None, "{per}");
        }
        assert!(id("limit", Per::OPERATION, &bare).is_some());
    }

    #[test]
    fn a_merchant_is_not_the_terminal_of_the_same_name() {
        let same = Traffic { terminal: TerminalId::new(b"123456", b"SHOP0001"), ..message() };
        assert_ne!(id("limit", Per::MERCHANT, &same), id("limit", Per::TERMINAL, &same));
    }

    #[test]
    fn ids_stay_what_they_are_from_one_release_to_the_next() {
        let every = Per::of(&Dimension::ALL);
        let ids = [id("limit", every, &message()), id("bin", Per::BIN, &message())];
        let halves = ids.map(|id| id.map(|KeyId { first, second }| (first, second)));
        assert_eq!(
            halves,
            [
                Some((16_602_884_381_242_877_579, 18_096_690_536_885_504_645)),
                Some((8_777_497_900_487_106_158, 4_591_540_543_186_866_139)),
            ]
        );
    }

    #[test]
    fn two_seeds_spread_the_same_ids_differently() {
        let of = |number: u32| Traffic { bin: Some(bin(number * 100)), ..message() };
        let ids: Vec<_> = (0..4096).map(|n| id("bin", Per::BIN, &of(n)).unwrap()).collect();
        let chain = |seed| ids.iter().filter(|id| Spread::new(seed).word(**id) % 64 == 7).count();
        let (one, two) = (Spread::new(1), Spread::new(2));
        let same = ids.iter().filter(|id| one.word(**id) % 64 == two.word(**id) % 64).count();
        assert!((32..=96).contains(&chain(1)) && (32..=96).contains(&chain(2)));
        assert!(same < 128, "{same} of 4096 ids share a place under both seeds");
    }
}

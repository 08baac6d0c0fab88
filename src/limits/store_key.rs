//! What the quota store calls a bucket: the same on every node, and no node's own business.

use std::fmt;

/// Most shards that a store may have.
pub const SHARDS_MAX: u16 = 64;

/// The bucket of one key of one limit, for all nodes.
///
/// Its parts are hashes of names under a public key, so a node that is told of a key that it has
/// never met can make its cell. They hold nothing of a card beyond a BIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreKey {
    /// Of the limit's name.
    pub limit: u64,
    /// Of the limit's name and the key's values.
    pub id: [u64; 2],
}

impl StoreKey {
    /// Which shard keeps the key, in a store that has so many.
    ///
    /// A part of the protocol, fixed for life: nodes that take another one would keep two buckets of
    /// one key. The upper half of the id decides, as the lower bits of an id that is made of numbers
    /// alone are those of one number, and would leave shards empty.
    pub fn shard(self, shards: u16) -> u16 {
        let [first, _] = self.id;
        u16::try_from((first >> 32) % u64::from(shards.max(1))).unwrap_or(0)
    }
}

impl fmt::Display for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, id: [first, second] } = self;
        write!(f, "{limit:016x}:{first:016x}{second:016x}")
    }
}

impl StoreKey {
    /// Bytes of a key's text.
    pub const TEXT_BYTES: usize = 49;

    /// The key of which this is the text, to the letter; `None` for anything else.
    pub fn read(text: &[u8]) -> Option<Self> {
        let (limit, rest) = text.split_first_chunk()?;
        let (&colon, rest) = rest.split_first()?;
        let (first, second) = rest.split_first_chunk()?;
        let second = second.try_into().ok()?;
        let key = Self { limit: word(limit)?, id: [word(first)?, word(second)?] };
        (colon == b':').then_some(key)
    }
}

/// A number as sixteen lower-case digits.
fn word(digits: &[u8; 16]) -> Option<u64> {
    digits.iter().try_fold(0, |word: u64, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(word << 4 | u64::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;
    use crate::limits::{Burst, LimitIx, Per, Policy, Rate, Rule};
    use crate::traffic::{Bin, Class, LinkId, Mcc, MerchantId, Operation, Traffic};

    #[test]
    fn keys_of_every_kind_of_limit_are_spread_over_all_shards() {
        let bare = Traffic::new(LinkId(0), Class::Standard, Operation::Purchase);
        let digits = |number: usize| -> Vec<u8> {
            format!("{:08}", 41_000_000 + number * 100).bytes().map(|byte| byte - b'0').collect()
        };
        let shop = |number: usize| format!("SHOP{number}");
        type Make<'a> = &'a dyn Fn(usize) -> Traffic;
        let kinds: [(Per, Make<'_>); 3] = [
            (Per::BIN, &|number| Traffic { bin: Bin::from_digits(&digits(number)), ..bare }),
            (Per::MCC, &|number| Traffic { mcc: Mcc::new(number as u16 + 3_000), ..bare }),
            (Per::MERCHANT, &|number| Traffic {
                merchant: MerchantId::new(b"123456", shop(number).as_bytes()),
                ..bare
            }),
        ];
        for (per, make) in kinds {
            let (rate, burst) = (Rate::per_second(1.0).unwrap(), Burst::tokens(1.0).unwrap());
            let rule = Rule::new("limit", per, rate, burst);
            let policy = Policy::new(&[rule], &[], 1, 1, Moment::START).unwrap();
            for shards in [1, 3, 8, SHARDS_MAX] {
                let mut kept = vec![0; usize::from(shards)];
                let even = 2_048 / kept.len();
                for number in 0..2_048 {
                    let key = policy.store_key(LimitIx(0), &make(number)).unwrap();
                    kept[usize::from(key.shard(shards))] += 1;
                }
                let fair = even / 2..=even * 2;
                assert!(kept.iter().all(|keys| fair.contains(keys)), "{per} {kept:?}");
            }
        }
    }

    #[test]
    fn a_key_stays_in_its_shard_from_one_release_to_the_next() {
        let of = |first, shards| StoreKey { limit: 0, id: [first, 7] }.shard(shards);
        assert_eq!([1, 8, 64].map(|shards| of(0x9e37_79b9_7f4a_7c15, shards)), [0, 1, 57]);
        assert_eq!(
            [u64::MAX, 1 << 32, u64::from(u32::MAX), 0].map(|first| of(first, 8)),
            [7, 1, 0, 0]
        );
    }

    #[test]
    fn a_key_is_read_from_its_own_text_and_from_no_other() {
        let key = StoreKey { limit: 0xfe, id: [u64::MAX, 0x0123_4567_89ab_cdef] };
        let text = key.to_string();
        assert_eq!(text, "00000000000000fe:ffffffffffffffff0123456789abcdef");
        assert_eq!(text.len(), StoreKey::TEXT_BYTES);
        assert_eq!(StoreKey::read(text.as_bytes()), Some(key));
        for other in [
            "",
            ":",
            text.trim_end_matches('f'),
            &format!("{text}0"),
            &text.to_uppercase(),
            &text.replace(':', "0"),
            &text.replacen('0', "+", 1),
            &text.replacen("00", "é", 1),
        ] {
            assert_eq!(StoreKey::read(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn texts_are_in_the_order_of_their_keys() {
        let words = [0, 1, 9, 10, 1 << 63, u64::MAX];
        let keys = words.iter().flat_map(|&limit| {
            let with = move |first| words.map(|second| StoreKey { limit, id: [first, second] });
            words.into_iter().flat_map(with)
        });
        let texts: Vec<_> = keys.map(|key| key.to_string()).collect();
        assert!(texts.is_sorted());
        assert_eq!(texts.len(), 216);
    }
}

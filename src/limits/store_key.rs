//! What the quota store calls a bucket: the same on every node, and no node's own business.

use std::fmt;

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

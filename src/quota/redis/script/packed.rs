//! Numbers and records as the script packs them: little-endian doubles that hold whole numbers.

use crate::limits::StoreKey;
use crate::quota::protocol::Low;

/// Bytes of a key that is low: its text, then its level.
pub(super) const LOW_BYTES: usize = StoreKey::TEXT_BYTES + DOUBLE_BYTES;

const DOUBLE_BYTES: usize = 8;

/// Adds numbers at the end.
pub(super) fn pack(bytes: &mut Vec<u8>, numbers: impl IntoIterator<Item = f64>) {
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

/// The numbers of a record that has nothing else.
pub(super) fn doubles<const COUNT: usize>(record: &[u8]) -> Option<[f64; COUNT]> {
    let (doubles, rest) = record.as_chunks::<DOUBLE_BYTES>();
    let doubles: &[_; COUNT] = doubles.try_into().ok()?;
    rest.is_empty().then(|| doubles.map(f64::from_le_bytes))
}

/// An amount; `None` for what is no number.
pub(super) fn whole(number: f64) -> Option<i64> {
    // The ends of what an i64 holds stand for everything beyond.
    (!number.is_nan()).then_some(number as i64)
}

/// Records of keys that are low. Names that are no key's are left out, for anybody can write into a
/// Redis; `None` when it is not whole records, or more than so many.
pub(super) fn lows(bytes: &[u8], most: usize) -> Option<Vec<Low>> {
    let (records, rest) = bytes.as_chunks::<LOW_BYTES>();
    if !rest.is_empty() || records.len() > most {
        return None;
    }
    Some(records.iter().filter_map(low).collect())
}

fn low(record: &[u8; LOW_BYTES]) -> Option<Low> {
    let (name, level) = record.split_at_checked(StoreKey::TEXT_BYTES)?;
    let [level] = doubles(level)?;
    Some(Low { key: StoreKey::read(name)?, level: whole(level)? })
}

//! An answer of the script, read back.

use redis::Value;
use thiserror::Error;

use super::packed::{doubles, lows, whole};
use crate::limits::StoreKey;
use crate::quota::protocol::{DIGEST_MAX, Lease, Low, Reply, Since};

/// Bytes of a lease: level, charged, share.
const LEASE_BYTES: usize = 24;

/// What is wrong with an answer. It repeats nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// No five values.
    #[error("the store's answer is none of the script's")]
    Shape,
    /// The number of live nodes.
    #[error("the store's answer has no number of nodes")]
    Nodes,
    /// Where the digest ends.
    #[error("the store's answer has no time")]
    Since,
    /// Not one for each report, or not of numbers.
    #[error("the store's answer has not a lease for each report")]
    Leases,
    /// Not of keys and levels, or too long.
    #[error("the store's answer has no digest")]
    Digest,
}

pub(super) fn read(answer: &Value, reports: usize) -> Result<Reply, Unreadable> {
    let Value::Array(values) = answer else { return Err(Unreadable::Shape) };
    let [nodes, time_us, after, leases, digest] = values.as_slice() else {
        return Err(Unreadable::Shape);
    };
    Ok(Reply {
        nodes: number(nodes).ok_or(Unreadable::Nodes)?,
        leases: leases_of(leases, reports).ok_or(Unreadable::Leases)?,
        digest: digest_of(digest).ok_or(Unreadable::Digest)?,
        since: since_of(time_us, after).ok_or(Unreadable::Since)?,
    })
}

fn number<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    let Value::Int(number) = value else { return None };
    (*number).try_into().ok()
}

fn bytes(value: &Value) -> Option<&[u8]> {
    let Value::BulkString(bytes) = value else { return None };
    Some(bytes)
}

/// A name that is no key's, which somebody else has put into the list, is not gone on from: the next
/// page begins at its time.
fn since_of(time_us: &Value, after: &Value) -> Option<Since> {
    Some(Since { time_us: number(time_us)?, after: StoreKey::read(bytes(after)?) })
}

fn leases_of(value: &Value, reports: usize) -> Option<Vec<Option<Lease>>> {
    let (records, rest) = bytes(value)?.as_chunks::<LEASE_BYTES>();
    if !rest.is_empty() || records.len() != reports {
        return None;
    }
    records.iter().map(lease).collect()
}

/// The inner `None` is a key that the store does not keep.
fn lease(record: &[u8; LEASE_BYTES]) -> Option<Option<Lease>> {
    let [level, charged, share] = doubles(record)?;
    if share == -1.0 {
        return Some(None);
    }
    let is_share = (0.0..=1.0).contains(&share);
    let lease = Lease { level: whole(level)?, charged: whole(charged)?, share };
    is_share.then_some(Some(lease))
}

fn digest_of(value: &Value) -> Option<Vec<Low>> {
    lows(bytes(value)?, DIGEST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: StoreKey = StoreKey { limit: 1, id: [2, 3] };

    fn packed(numbers: &[f64]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn text(bytes: impl Into<Vec<u8>>) -> Value {
        Value::BulkString(bytes.into())
    }

    fn low(level: f64) -> Vec<u8> {
        [KEY.to_string().as_bytes(), &level.to_le_bytes()].concat()
    }

    /// Two leases, the second of a key that is not kept, and two keys that are low.
    fn answer() -> [Value; 5] {
        [
            Value::Int(4),
            Value::Int(1_800_000_000_000_000),
            text(""),
            text(packed(&[-5e6, 7e6, 0.25, 0.0, 0.0, -1.0])),
            text([low(1e6), low(-2.0)].concat()),
        ]
    }

    fn with(at: usize, value: Value) -> Result<Reply, Unreadable> {
        let mut values = answer();
        values[at] = value;
        read(&Value::Array(values.to_vec()), 2)
    }

    #[test]
    fn an_answer_is_read() {
        let reply = read(&Value::Array(answer().to_vec()), 2).unwrap();
        let lease = Lease { level: -5_000_000, charged: 7_000_000, share: 0.25 };
        assert_eq!(
            reply,
            Reply {
                nodes: 4,
                leases: vec![Some(lease), None],
                digest: vec![Low { key: KEY, level: 1_000_000 }, Low { key: KEY, level: -2 }],
                since: Since { time_us: 1_800_000_000_000_000, after: None },
            }
        );
        let since = with(2, text(KEY.to_string())).unwrap().since;
        assert_eq!(since.after, Some(KEY));
    }

    #[test]
    fn an_answer_of_another_shape_is_unreadable() {
        for value in [
            Value::Nil,
            Value::Okay,
            text("OK"),
            Value::Array(vec![]),
            Value::Array(answer()[..4].to_vec()),
            Value::Array([answer().to_vec(), vec![Value::Nil]].concat()),
            Value::Array(vec![Value::Nil; 1_000]),
            Value::Map(vec![(Value::Nil, Value::Nil)]),
            Value::Set(answer().to_vec()),
        ] {
            assert_eq!(read(&value, 2), Err(Unreadable::Shape), "{value:?}");
        }
    }

    #[test]
    fn a_damaged_value_is_named() {
        let faults = [
            Unreadable::Nodes,
            Unreadable::Since,
            Unreadable::Since,
            Unreadable::Leases,
            Unreadable::Digest,
        ];
        let others = [Value::Nil, Value::Okay, Value::Double(1.0), Value::Array(vec![])];
        for (at, fault) in faults.into_iter().enumerate() {
            for other in &others {
                assert_eq!(with(at, other.clone()), Err(fault), "{at}: {other:?}");
            }
        }
        for nodes in [-1, i64::MIN, 1 << 32] {
            assert_eq!(with(0, Value::Int(nodes)), Err(Unreadable::Nodes));
        }
        assert_eq!(with(1, Value::Int(-1)), Err(Unreadable::Since));
    }

    #[test]
    fn leases_are_one_for_each_report_and_all_of_numbers() {
        let whole = packed(&[1.0, 2.0, 0.5, 1.0, 2.0, 1.0]);
        assert!(with(3, text(whole.clone())).is_ok());
        for bytes in 0..whole.len() {
            assert_eq!(with(3, text(&whole[..bytes])), Err(Unreadable::Leases), "{bytes} bytes");
        }
        assert_eq!(with(3, text([whole.clone(), whole].concat())), Err(Unreadable::Leases));
        for damaged in [
            [f64::NAN, 2.0, 0.5],
            [1.0, f64::NAN, 0.5],
            [1.0, 2.0, f64::NAN],
            [1.0, 2.0, 1.001],
            [1.0, 2.0, -0.5],
            [1.0, 2.0, f64::INFINITY],
        ] {
            let leases = packed(&[[1.0, 2.0, 0.5], damaged].concat());
            assert_eq!(with(3, text(leases)), Err(Unreadable::Leases), "{damaged:?}");
        }
    }

    #[test]
    fn amounts_beyond_an_i64_are_its_ends() {
        let ends = [f64::INFINITY, f64::NEG_INFINITY, 0.0, 1e300, -1e300, 1.0];
        let leases = with(3, text(packed(&ends))).unwrap().leases;
        let amounts = leases.iter().flatten().map(|lease| (lease.level, lease.charged));
        assert_eq!(amounts.collect::<Vec<_>>(), [(i64::MAX, i64::MIN); 2]);
    }

    #[test]
    fn a_digest_is_whole_records_and_one_page_at_most() {
        let page = low(1.0).repeat(DIGEST_MAX);
        assert_eq!(with(4, text(page.clone())).unwrap().digest.len(), DIGEST_MAX);
        for digest in [[page, low(1.0)].concat(), low(1.0)[1..].to_vec(), vec![0]] {
            assert_eq!(with(4, text(digest)), Err(Unreadable::Digest));
        }
    }

    #[test]
    fn names_that_are_no_keys_are_left_out() {
        let foreign = [&[b'z'; StoreKey::TEXT_BYTES][..], &1f64.to_le_bytes()].concat();
        let digest = with(4, text([foreign, low(2.0)].concat())).unwrap().digest;
        assert_eq!(digest, [Low { key: KEY, level: 2 }]);
        assert_eq!(with(2, text("of somebody else")).unwrap().since.after, None);
    }
}

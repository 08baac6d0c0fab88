//! What a call has published, read back.

use super::packed::lows;
use crate::quota::protocol::{Low, NodeId};

/// Most keys of one message, which is more than one call may report.
const LOWS_MAX: usize = 4_096;

/// Hexadecimal digits of a node.
const NODE_BYTES: usize = 16;

/// Who published it, and what is low. `None` for a message of other make.
pub(super) fn read(message: &[u8]) -> Option<(NodeId, Vec<Low>)> {
    let (node, records) = message.split_at_checked(NODE_BYTES)?;
    if !node.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let node = u64::from_str_radix(str::from_utf8(node).ok()?, 16).ok()?;
    Some((NodeId(node), lows(records, LOWS_MAX)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::StoreKey;

    const KEY: StoreKey = StoreKey { limit: 1, id: [2, 3] };

    fn message(levels: impl IntoIterator<Item = f64>) -> Vec<u8> {
        let mut message = b"00000000deadbeef".to_vec();
        for level in levels {
            message.extend(KEY.to_string().bytes());
            message.extend(level.to_le_bytes());
        }
        message
    }

    #[test]
    fn a_message_says_who_and_what() {
        let (node, lows) = read(&message([5e6, -1.0])).unwrap();
        assert_eq!(node, NodeId(0xdead_beef));
        assert_eq!(lows, [Low { key: KEY, level: 5_000_000 }, Low { key: KEY, level: -1 }]);
        assert_eq!(read(&message([])), Some((NodeId(0xdead_beef), Vec::new())));
    }

    #[test]
    fn a_message_of_other_make_is_none() {
        let whole = message([1.0, 2.0]);
        for bytes in (0..whole.len()).filter(|bytes| ![16, 73].contains(bytes)) {
            assert_eq!(read(&whole[..bytes]), None, "{bytes} bytes");
        }
        for node in ["+0000000deadbeef", "00000000deadbee\u{e9}", "                "] {
            assert_eq!(read(&[node.as_bytes(), &whole[node.len()..]].concat()), None, "{node}");
        }
        assert!(read(&message(vec![1.0; LOWS_MAX])).is_some());
        assert_eq!(read(&message(vec![1.0; LOWS_MAX + 1])), None);
    }

    #[test]
    fn a_name_or_level_that_is_none_is_left_out() {
        assert_eq!(read(&message([f64::NAN, 2.0])).unwrap().1.len(), 1);
        let mut renamed = message([1.0, 2.0]);
        renamed[20] = b'G';
        assert_eq!(read(&renamed).unwrap().1, [Low { key: KEY, level: 2 }]);
    }
}

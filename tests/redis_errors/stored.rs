//! What stands in the store, read past every relay and by no code of tollgate's own.

use std::collections::BTreeMap;

use redis::Value;

use crate::support::redis::RedisServer;

/// The keys of all buckets.
const BUCKETS: &str = "tollgate:v1:*:k:*";
/// Micro-tokens of one.
const ONE: f64 = 1e6;

/// A bucket as it is stored. Amounts are tokens.
#[derive(Debug)]
pub struct Stored {
    pub level: f64,
    /// What each node has spent, by the node.
    pub spent: BTreeMap<String, f64>,
}

/// The names of all buckets' keys.
#[track_caller]
pub fn names(server: &RedisServer) -> Vec<String> {
    let names = server.cli_text(&["KEYS", BUCKETS]);
    names.lines().map(str::to_owned).collect()
}

/// The only bucket that there is; none before it was reported.
#[track_caller]
pub fn only(server: &RedisServer) -> Option<Stored> {
    let names = names(server);
    assert!(names.len() <= 1, "{names:?}");
    let Value::Array(fields) = server.cli(&["HGETALL", names.first()?]) else { panic!("no hash") };
    let bytes = |value: &Value| match value {
        Value::BulkString(bytes) => bytes.clone(),
        other => panic!("no bytes: {other:?}"),
    };
    let fields: BTreeMap<String, Vec<u8>> = fields
        .chunks(2)
        .map(|pair| (String::from_utf8(bytes(&pair[0])).unwrap(), bytes(&pair[1])))
        .collect();
    let rows = fields.iter().filter_map(|(name, row)| Some((name.strip_prefix("n:")?, row)));
    Some(Stored {
        level: double(&fields["b"], 0) / ONE,
        spent: rows.map(|(node, row)| (node.to_owned(), double(row, 1) / ONE)).collect(),
    })
}

/// The nth number of these.
fn double(bytes: &[u8], at: usize) -> f64 {
    f64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap())
}

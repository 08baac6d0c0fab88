//! What a store has been told of all that was spent, read from its keys.

use std::collections::BTreeMap;

use ::redis::Value;

use super::RedisServer;
use super::server::text;

/// Tokens that the nodes have spent of each bucket, by what the store calls it: all rows together.
///
/// Servers that are no masters, or do not run, are left out.
#[track_caller]
pub fn spent<'a>(servers: impl IntoIterator<Item = &'a RedisServer>) -> BTreeMap<String, u64> {
    let is_master = |server: &&RedisServer| {
        server.is_running() && server.info("role").is_some_and(|role| role == "master")
    };
    let mut all = BTreeMap::new();
    for server in servers.into_iter().filter(is_master) {
        let Value::Array(keys) = server.cli(&["KEYS", "*:k:*"]) else { panic!("no keys") };
        for key in keys {
            let key = text(&key);
            let Value::Array(fields) = server.cli(&["HGETALL", &key]) else {
                panic!("no hash {key}")
            };
            let rows = fields.chunks(2).filter(|pair| text(&pair[0]).starts_with("n:"));
            let tokens = rows.map(|row| tokens_of(&row[1])).sum();
            assert_eq!(all.insert(key, tokens), None, "a key stands in two places");
        }
    }
    all
}

/// A row is four doubles: the incarnation, what was spent in micro-tokens, the rate and the time.
fn tokens_of(row: &Value) -> u64 {
    let Value::BulkString(bytes) = row else { panic!("no row") };
    let spent = f64::from_le_bytes(bytes[8..16].try_into().unwrap());
    assert_eq!(spent % 1e6, 0.0, "a part of a token was spent");
    (spent / 1e6) as u64
}

//! What stands in the store, read past tollgate: buckets, what each node has spent of them, and which
//! nodes are known. It follows the words at the head of `src/quota/redis/script.lua`.

use std::collections::BTreeSet;

use ::redis::Value;

use super::RedisServer;
use super::server::text;
use crate::support::wait_for;

const MICROS: f64 = 1e6;

/// One key of one limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// What Redis calls it.
    pub key: String,
    /// When it was last refilled.
    pub level_tokens: f64,
    pub cap_tokens: f64,
    pub rows: Vec<Row>,
}

/// What one node has spent of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub node: String,
    pub boot: u64,
    pub spent_tokens: f64,
}

impl Bucket {
    pub fn spent_tokens(&self) -> f64 {
        self.rows.iter().map(|row| row.spent_tokens).sum()
    }
}

/// What all nodes have spent of all buckets at this server.
#[track_caller]
pub fn spent_tokens(server: &RedisServer) -> f64 {
    buckets(server).iter().map(Bucket::spent_tokens).sum()
}

/// Waits until the store knows of so many tokens, to the token: at rest its rows say what the nodes
/// have spent.
#[track_caller]
pub fn wait_for_spent(server: &RedisServer, tokens: usize) {
    wait_for(&format!("the store knows of {tokens} tokens"), || {
        (spent_tokens(server) == tokens as f64).then_some(())
    });
}

/// Every bucket at this server. One that has expired meanwhile is left out.
#[track_caller]
pub fn buckets(server: &RedisServer) -> Vec<Bucket> {
    let keys = server.cli_text(&["KEYS", "*:k:*"]);
    keys.lines().filter_map(|key| bucket(server, key)).collect()
}

#[track_caller]
fn bucket(server: &RedisServer, key: &str) -> Option<Bucket> {
    let mut rows = Vec::new();
    let mut own = None;
    for (field, value) in fields(server, key) {
        match (field.as_str(), doubles(&value).as_slice()) {
            ("b", &[level, _, _, _, cap, ..]) => own = Some((level / MICROS, cap / MICROS)),
            (node, &[boot, spent, ..]) => rows.push(Row {
                node: node.trim_start_matches("n:").to_owned(),
                boot: boot as u64,
                spent_tokens: spent / MICROS,
            }),
            other => panic!("{key} has {other:?}"),
        }
    }
    let (level_tokens, cap_tokens) = own?;
    Some(Bucket { key: key.to_owned(), level_tokens, cap_tokens, rows })
}

/// The nodes that have called the shards of this server and have not left.
#[track_caller]
pub fn nodes(server: &RedisServer) -> BTreeSet<String> {
    let shards = server.cli_text(&["KEYS", "*:shard"]);
    let fields = shards.lines().flat_map(|shard| fields(server, shard));
    fields.filter_map(|(field, _)| field.strip_prefix("n:").map(str::to_owned)).collect()
}

#[track_caller]
fn fields(server: &RedisServer, key: &str) -> Vec<(String, Vec<u8>)> {
    let Value::Array(all) = server.cli(&["HGETALL", key]) else { panic!("{key} is no hash") };
    let pair = |pair: &[Value]| {
        let Value::BulkString(value) = &pair[1] else { panic!("{key} has {pair:?}") };
        (text(&pair[0]), value.clone())
    };
    all.chunks(2).map(pair).collect()
}

fn doubles(bytes: &[u8]) -> Vec<f64> {
    let (doubles, _) = bytes.as_chunks::<8>();
    doubles.iter().map(|double| f64::from_le_bytes(*double)).collect()
}

//! What both stores hold in the end.

use std::collections::BTreeMap;

use redis::{Cmd, FromRedisValue, Value, cmd};
use tollgate::quota::protocol::{NodeId, Row};

use crate::sequence::{Sequence, is_near};

/// A hash of Redis.
type Fields = BTreeMap<String, Vec<u8>>;

/// The bucket as the script packs it.
struct Bucket {
    level: f64,
    at_us: f64,
    rate_sum: f64,
    refill: f64,
    cap: f64,
    rows: f64,
}

/// Asks Redis for all that it holds of a sequence.
pub(crate) fn questions(sequence: &Sequence) -> Vec<Cmd> {
    let names = sequence.names();
    let buckets = sequence.keys().map(|key| names.bucket(key));
    let hashes = [names.shard()].into_iter().chain(buckets);
    let lists =
        [cmd("ZCARD").arg(names.low()).to_owned(), cmd("HLEN").arg(names.lows()).to_owned()];
    let hashes = hashes.map(|name| cmd("HGETALL").arg(name).to_owned());
    lists.into_iter().chain(hashes).collect()
}

pub(crate) fn check(sequence: &Sequence, answers: &[Value]) {
    let hash = |value: &Value| Fields::from_redis_value_ref(value).unwrap();
    let [noted, levels, shard, buckets @ ..] = answers else { panic!("{answers:?}") };
    assert_eq!(noted, levels, "keys that are low and their levels");
    let store = sequence.store();
    let shard = hash(shard);
    let now = text(&shard["now"]);
    assert_eq!(now, store.now_us().to_string());
    let now_us = store.now_us() as f64;
    for (key, value) in sequence.keys().zip(buckets) {
        let fields = hash(value);
        let bucket = fields.get("b").map(|packed| Bucket::read(packed));
        let bucket = bucket.filter(|bucket| !bucket.is_expired(now_us));
        let level = bucket.as_ref().map(|bucket| bucket.level_at(now_us));
        assert_eq!(store.level(key), level, "{key}");
        let Some(bucket) = bucket else { continue };
        let sum = bucket.rate_sum * (-bucket.seconds_to(now_us) / 8.0).exp();
        assert!(is_near(store.rate_sum(key), sum), "{key}: {} {sum}", store.rate_sum(key));
        let rows: BTreeMap<_, _> = store.rows(key).collect();
        assert_eq!(rows.len(), fields.len() - 1, "{key}: {rows:?}");
        assert_eq!(rows.len() as f64, bucket.rows, "{key}");
        for (node, row) in rows {
            let told = read_row(&fields, node, now_us);
            let exact = |row: Row| (row.boot, row.spent, row.at_us);
            assert_eq!(exact(row), exact(told), "{key} {node:?}");
            assert!(is_near(row.rate, told.rate), "{key} {row:?} {told:?}");
        }
    }
}

impl Bucket {
    fn read(packed: &[u8]) -> Self {
        let [level, at_us, rate_sum, refill, cap, rows, _sweep] = doubles(packed);
        Self { level, at_us, rate_sum, refill, cap, rows }
    }

    fn seconds_to(&self, now_us: f64) -> f64 {
        (now_us - self.at_us).max(0.0) / 1e6
    }

    fn level_at(&self, now_us: f64) -> i64 {
        self.cap.min(self.level + self.refill * self.seconds_to(now_us)).floor() as i64
    }

    fn is_expired(&self, now_us: f64) -> bool {
        let kept_ms = (3_000.0 * self.cap / self.refill).floor().max(10_000.0);
        now_us - self.at_us > kept_ms * 1_000.0
    }
}

fn read_row(fields: &Fields, node: NodeId, now_us: f64) -> Row {
    let [boot, spent, rate, at_us] = doubles(&fields[&format!("n:{:016x}", node.0)]);
    let rate = rate * (-(now_us - at_us).max(0.0) / 8e6).exp();
    Row { boot: boot as u64, spent: spent as i64, rate, at_us: at_us as u64 }
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

fn doubles<const COUNT: usize>(packed: &[u8]) -> [f64; COUNT] {
    let (doubles, rest) = packed.as_chunks::<8>();
    assert_eq!((doubles.len(), rest.len()), (COUNT, 0));
    std::array::from_fn(|at| f64::from_le_bytes(doubles[at]))
}

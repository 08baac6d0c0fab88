//! The script says to a real Redis exactly what the store in process says, and keeps to its own keys.
//!
//! `TOLLGATE_SCRIPT_GROUPS=17-17` plays one group of the random sequences again, and
//! `TOLLGATE_REDIS_SERVER` names another server to run, such as a `valkey-server`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs,
    reason = "a test states its expectations"
)]

#[path = "redis_script/group.rs"]
mod group;
#[path = "redis_script/sequence.rs"]
mod sequence;
#[path = "redis_script/server.rs"]
mod server;
#[path = "redis_script/state.rs"]
mod state;
#[path = "redis_script/timed.rs"]
mod timed;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use group::Ends;
use redis::{Connection, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value, cmd};
use sequence::TOKEN;
use server::RedisServer;
use timed::Timed;
use tollgate::limits::StoreKey;
use tollgate::quota::protocol::{Call, Low, NodeId, Reply, Report, Since};
use tollgate::quota::redis::script::Script;

/// Of a hundred sequences each.
const GROUPS: &str = "0-199";

/// Each with a server of its own.
const PLAYERS: usize = 2;

const START_US: u64 = 1_800_000_000_000_000;

#[test]
fn twenty_thousand_random_sequences_of_calls_are_answered_alike() {
    let groups = std::env::var("TOLLGATE_SCRIPT_GROUPS");
    let groups = groups.as_deref().unwrap_or(GROUPS);
    let (first, last) = groups.split_once('-').expect("first-last");
    let (next, last) = (AtomicU64::new(first.parse().unwrap()), last.parse().unwrap());
    let play = || {
        let server = RedisServer::start();
        let (mut caller, mut listener) = (server.connect(), server.connect());
        let timed = Timed::load(&mut caller);
        let mut ends = Ends::new(timed, caller, &mut listener);
        loop {
            let group = next.fetch_add(1, Ordering::Relaxed);
            if group > last {
                break;
            }
            let (calls, reports) = group::play(&mut ends, group);
            assert!(calls > 500 && reports > calls, "{calls} calls, {reports} reports");
        }
    };
    std::thread::scope(|scope| (0..PLAYERS).for_each(|_| drop(scope.spawn(play))));
}

/// What the random sequences are worth: each of these is found in a few of them.
#[test]
fn a_script_that_says_otherwise_is_found_out() {
    let others = [
        ("STEP_US = 500000", "STEP_US = 500001"),
        ("LIVE_US = 1500000", "LIVE_US = 1400000"),
        ("DIGEST_AGE_US = 300000", "DIGEST_AGE_US = 290000"),
        ("DIGEST_MAX = 256", "DIGEST_MAX = 255"),
        ("SHARE_TAU_S = 8", "SHARE_TAU_S = 8.001"),
        (
            "LOW_WATER_SHARE, LOW_WATER_MIN = 0.25, 1500000",
            "LOW_WATER_SHARE, LOW_WATER_MIN = 0.25, 0",
        ),
        ("ROWS_MAX = 32", "ROWS_MAX = 33"),
        ("left, oldest + SILENT_US", "left, oldest + SILENT_US * 2"),
        ("now = max(clock, min(since + elapsed, clock + AHEAD_US))", "now = clock + elapsed"),
        ("now = max(clock, min(since + elapsed,", "now = (min(since + elapsed,"),
        ("min(since + elapsed, clock + AHEAD_US)", "since + elapsed"),
        ("row_spent >= charged, max(row_spent, charged)", "true, max(row_spent, charged)"),
        ("row_spent >= charged, max(row_spent, charged)", "row_spent >= charged, row_spent"),
        ("now = clock + max(by, 0)", "now = clock"),
        ("leaves and 0 or 1", "1"),
        ("call('HDEL', shard, node)", ""),
        ("if row or call('EXISTS', key) == 1 then return false end", ""),
        ("#bucket ~= BUCKET_BYTES", "#bucket < 9"),
        ("call('DEL', key)", ""),
        ("kept_ms(old_rate, old_cap) * 1000", "1e20"),
        ("if row_boot > boot then return level, spent, 0 end", ""),
        ("if row_boot == boot then", "if true then"),
        ("bucket_level + rate * seconds", "bucket_level + rate * (now - at) / 1e6"),
        ("max(spent - known_spent, 0)", "spent - known_spent"),
        ("(is_local and new > 0)", "is_local"),
        ("max(bucket_level, -cap)", "max(bucket_level, -2 * cap)"),
        ("known_spent = max(known_spent, spent)", "known_spent = spent"),
        ("local whole = floor(bucket_level)", "local whole = floor(bucket_level + 0.5)"),
        ("if new > 0 then news", "if true then news"),
        ("rate > 0 and rate < math.huge", "true"),
        ("and boot < 2 ^ 53", ""),
        ("if since > now then since, after = 0, '' end", ""),
        ("<= after then", "< after then"),
        ("next_now = now + 1", "next_now = now"),
        ("if publish ~= ''", "if true"),
    ];
    let server = RedisServer::start();
    for other in others {
        let mut caller = server.connect();
        cmd("FLUSHALL").exec(&mut caller).unwrap();
        let timed = Timed::load_but(&mut caller, other);
        let mut listener = server.connect();
        let mut ends = Ends::new(timed, caller, &mut listener);
        let play = || {
            (0..10).for_each(|group| {
                group::play(&mut ends, group);
            })
        };
        assert!(catch_unwind(AssertUnwindSafe(play)).is_err(), "nobody minds {other:?}");
    }
}

fn key(number: u64) -> StoreKey {
    StoreKey { limit: 7, id: [number, 0] }
}

/// Of a bucket of 50 tokens that refills by 25 a second.
fn report(number: u64, spent: i64) -> Report {
    Report {
        key: key(number),
        rate: 25e6,
        cap: 50 * TOKEN,
        boot: 1,
        spent: spent * TOKEN,
        charged: 0,
        level: 50 * TOKEN,
        local: false,
    }
}

fn call(node: u64, reports: impl IntoIterator<Item = Report>) -> Call {
    Call {
        node: NodeId(node),
        elapsed_us: None,
        since: Since::default(),
        push: true,
        leave: false,
        reports: reports.into_iter().collect(),
    }
}

fn script() -> Script {
    Script::new("test", false)
}

/// Calls a server that may not have the script.
fn reply(connection: &mut Connection, call: &Call) -> Reply {
    let answer: Value = script().load_and_call(0, call).query(connection).unwrap();
    script().read(&answer, call.reports.len()).unwrap()
}

/// In tokens.
fn levels(reply: &Reply) -> Vec<Option<i64>> {
    reply.leases.iter().map(|lease| lease.map(|lease| lease.level / TOKEN)).collect()
}

fn run(connection: &mut Connection, words: &[&str]) -> Value {
    cmd(words[0]).arg(&words[1..]).query(connection).unwrap()
}

#[test]
fn a_server_that_lost_the_script_has_it_after_one_call_with_the_source() {
    let server = RedisServer::start();
    let mut connection = server.connect();
    let call = call(1, [report(1, 20)]);
    for _ in 0..2 {
        let unknown = script().call(0, &call).query::<Value>(&mut connection).unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::Server(ServerErrorKind::NoScript), "{unknown}");
        assert_eq!(run(&mut connection, &["DBSIZE"]), Value::Int(0), "something was run");
        assert_eq!(levels(&reply(&mut connection, &call)), [Some(30)]);
        let answer: Value = script().call(0, &call).query(&mut connection).unwrap();
        assert_eq!(levels(&script().read(&answer, 1).unwrap()), [Some(30)]);
        run(&mut connection, &["SCRIPT", "FLUSH"]);
        run(&mut connection, &["FLUSHALL"]);
    }
}

#[test]
fn what_is_no_bucket_is_left_alone_and_the_other_keys_are_leased() {
    let server = RedisServer::start();
    let mut connection = server.connect();
    let names = script().names(0);
    let name = |number| names.bucket(key(number));
    let long = "a bucket's length of text that is no bucket's numbers...";
    assert_eq!(long.len(), 56);
    let foreign: [&[&str]; 9] = [
        &["SET", &name(0), "text"],
        &["RPUSH", &name(1), "b"],
        &["SADD", &name(2), "b"],
        &["ZADD", &name(3), "1", "b"],
        &["XADD", &name(4), "*", "b", "1"],
        &["HSET", &name(5), "field", "value"],
        &["HSET", &name(6), "b", "short"],
        &["HSET", &name(7), "n:0000000000000001", "short"],
        &["HSET", &name(8), "b", long],
    ];
    for words in foreign {
        run(&mut connection, words);
    }
    let dumps = |connection: &mut Connection| {
        let dump = |number| run(connection, &["DUMP", &name(number)]);
        (0..9).map(dump).collect::<Vec<_>>()
    };
    let before = dumps(&mut connection);
    let reports = (0..11).map(|number| report(number, 20));
    let told = reply(&mut connection, &call(1, reports));
    let expected = [vec![None; 9], vec![Some(30); 2]].concat();
    assert_eq!(levels(&told), expected);
    assert_eq!(dumps(&mut connection), before);
    for number in 0..9 {
        assert_eq!(run(&mut connection, &["PTTL", &name(number)]), Value::Int(-1), "{number}");
    }
    // What is not kept is not low either.
    assert_eq!(run(&mut connection, &["EXISTS", &names.low(), &names.lows()]), Value::Int(0));
}

#[test]
fn what_somebody_else_has_put_into_the_shards_keys_stops_no_node() {
    let server = RedisServer::start();
    let mut connection = server.connect();
    let names = script().names(0);
    let mut command = cmd("ZADD");
    command.arg(names.low());
    for number in 0..600 {
        command.arg("+inf").arg(if number % 2 == 0 {
            format!("of somebody else {number}")
        } else {
            key(1_000 + number).to_string()
        });
    }
    command.exec(&mut connection).unwrap();
    run(&mut connection, &["HSET", &names.lows(), &key(1_001).to_string(), "no level"]);
    run(&mut connection, &["HSET", &names.lows(), &key(1_003).to_string(), "nothing"]);
    for now in ["nan", "inf", "-1", "1e300", "soon"] {
        let shard = names.shard();
        run(&mut connection, &["HSET", &shard, "now", now, "wall", now, "n:x", now, "", now]);
        let mut since = Since::default();
        for _ in 0..4 {
            let told = reply(&mut connection, &Call { since, ..call(1, [report(1, 50)]) });
            assert_eq!(levels(&told).len(), 1, "{now}");
            assert!(told.digest.iter().all(|low| low.key == key(1) || low.key == key(1_001)));
            since = told.since;
        }
    }
}

#[test]
fn a_row_that_is_none_keeps_its_node_from_the_bucket_alone() {
    let server = RedisServer::start();
    let mut connection = server.connect();
    let name = script().names(0).bucket(key(1));
    reply(&mut connection, &call(1, [report(1, 20)]));
    run(&mut connection, &["HSET", &name, "n:0000000000000002", "no row"]);
    assert_eq!(levels(&reply(&mut connection, &call(2, [report(1, 20)]))), [None]);
    assert_eq!(levels(&reply(&mut connection, &call(3, [report(1, 5)]))).len(), 1);
    let row = run(&mut connection, &["HGET", &name, "n:0000000000000002"]);
    assert_eq!(row, Value::BulkString(b"no row".to_vec()));
}

#[test]
fn a_key_of_the_shard_that_is_of_somebody_else_is_named_and_nothing_is_written() {
    let server = RedisServer::start();
    let mut connection = server.connect();
    let names = script().names(0);
    for name in [names.shard(), names.low(), names.lows()] {
        run(&mut connection, &["SET", &name, "text"]);
        let command = script().load_and_call(0, &call(1, [report(1, 50)]));
        let error = command.query::<Value>(&mut connection).unwrap_err();
        assert_eq!(error.code(), Some("WRONGTYPE"), "{error}");
        let said = error.detail().unwrap_or_default();
        assert!(said.starts_with(&format!("{name} is not of tollgate")), "{said}");
        assert_eq!(run(&mut connection, &["DBSIZE"]), Value::Int(1));
        run(&mut connection, &["FLUSHALL"]);
    }
}

#[test]
fn every_key_is_kept_for_as_long_as_it_is_worth() {
    let server = RedisServer::start();
    let mut connection = server.connect();
    let names = script().names(0);
    let of = |number, rate, cap| Report { rate, cap, ..report(number, 50) };
    let reports = [
        of(0, 25e6, 50 * TOKEN),
        of(1, 1e6, 50 * TOKEN),
        of(2, 3e6, 1_000_000 * TOKEN),
        of(3, f64::MIN_POSITIVE, i64::MAX),
        of(4, 1.0, i64::MAX),
    ];
    let kept_ms = [10_000, 150_000, 1_000_000_000, 10_000_000_000_000, 10_000_000_000_000];
    let hour_ms = 3_600_000;
    let buckets = (0..).zip(kept_ms).map(|(number, kept_ms)| (names.bucket(key(number)), kept_ms));
    let shard = [names.shard(), names.low(), names.lows()].map(|name| (name, hour_ms));
    let kept: Vec<(String, i64)> = buckets.chain(shard).collect();
    // In one transaction, so that no time goes by in between.
    let mut pipeline = Pipeline::new();
    pipeline.atomic().add_command(script().load_and_call(0, &call(1, reports)));
    for (name, _) in &kept {
        pipeline.cmd("PTTL").arg(name);
    }
    let answers: Vec<Value> = pipeline.query(&mut connection).unwrap();
    for ((name, kept_ms), answer) in kept.iter().zip(&answers[1..]) {
        let Value::Int(left_ms) = *answer else { panic!("{answer:?}") };
        assert!((kept_ms - 2_000..=*kept_ms).contains(&left_ms), "{name}: {left_ms}");
    }
    let Value::Array(all) = run(&mut connection, &["KEYS", "*"]) else { panic!("no keys") };
    assert_eq!(all.len(), kept.len());
}

#[test]
fn a_call_publishes_once_what_it_spent_of_and_left_low() {
    let server = RedisServer::start();
    let (mut connection, mut listener) = (server.connect(), server.connect());
    let mut listener = listener.as_pubsub();
    listener.subscribe(script().channel(0)).unwrap();
    let spending = call(0xfeed, (0..1_000).map(|number| report(number, 49)));
    let silent = Call { push: false, ..call(2, [report(2_000, 50)]) };
    reply(&mut connection, &silent);
    reply(&mut connection, &spending);
    // Nothing is new the second time.
    reply(&mut connection, &spending);
    reply(&mut connection, &call(3, [report(3_000, 50), report(3_001, 0)]));
    let mut heard = || {
        let message = listener.get_message().unwrap();
        script().read_news(message.get_payload_bytes()).unwrap()
    };
    let low = |number, level: i64| Low { key: key(number), level: level * TOKEN };
    let all = (0..1_000).map(|number| low(number, 1)).collect();
    assert_eq!(heard(), (NodeId(0xfeed), all));
    assert_eq!(heard(), (NodeId(3), vec![low(3_000, 0)]));
}

#[test]
fn six_hundred_keys_that_are_low_at_once_reach_every_node() {
    let server = RedisServer::start();
    let mut connection = server.connect();
    let timed = Timed::load(&mut connection);
    let nodes = 1..=3;
    for first in [0, 300] {
        let reports = (first..first + 300).map(|number| report(number, 50));
        timed.reply(&mut connection, &call(9, reports), START_US);
    }
    for node in nodes {
        let (mut told, mut since, mut pages) = (Vec::new(), Since::default(), 0);
        loop {
            let asking = Call { since, ..call(node, []) };
            let reply = timed.reply(&mut connection, &asking, START_US + 1_000);
            told.extend(reply.digest.iter().map(|low| low.key));
            (since, pages) = (reply.since, pages + 1);
            if since.after.is_none() {
                break;
            }
        }
        assert_eq!((pages, told.len()), (3, 600), "node {node}");
        let told: BTreeSet<_> = told.into_iter().collect();
        assert_eq!(told, (0..600).map(key).collect());
    }
}

#[test]
fn keys_that_nobody_is_told_of_any_more_are_forgotten_a_page_at_a_time() {
    let server = RedisServer::start();
    let mut connection = server.connect();
    let (timed, names) = (Timed::load(&mut connection), script().names(0));
    for first in [0, 300] {
        let reports = (first..first + 300).map(|number| report(number, 50));
        timed.reply(&mut connection, &call(1, reports), START_US);
    }
    for (wall_us, left) in [(299_000, 600), (301_000, 344), (301_001, 88), (301_002, 0)] {
        let reply = timed.reply(&mut connection, &call(2, []), START_US + wall_us);
        assert_eq!(reply.digest.is_empty(), left < 600);
        assert_eq!(run(&mut connection, &["ZCARD", &names.low()]), Value::Int(left));
        assert_eq!(run(&mut connection, &["HLEN", &names.lows()]), Value::Int(left));
    }
    let many = (0..1_000).map(|number| report(number, 60));
    timed.reply(&mut connection, &call(1, many.clone()), START_US + 400_000);
    // As many as a call can make.
    let unspent = many.map(|report| Report { spent: 0, local: true, level: report.cap, ..report });
    timed.reply(&mut connection, &call(3, unspent), START_US + 9_000_000);
    assert_eq!(run(&mut connection, &["ZCARD", &names.low()]), Value::Int(0));
}

#[test]
fn every_name_of_a_call_has_the_tag_of_its_shard() {
    let script = Script::new("test", true);
    for shard in [0, 7, u16::MAX] {
        let (names, call) = (script.names(shard), call(1, (0..50).map(|it| report(it, 1))));
        let keys = names.keys_of(&call);
        assert_eq!(keys.len(), 53);
        for name in keys.iter().chain([&script.channel(shard)]) {
            // The first braces are what Cluster hashes.
            let (_, from) = name.split_once('{').unwrap();
            let (tag, _) = from.split_once('}').unwrap();
            assert_eq!(tag, shard.to_string(), "{name}");
        }
    }
}

#[test]
fn a_user_with_the_named_permissions_and_a_password_can_run_it_and_little_else() {
    for sharded in [false, true] {
        let server = RedisServer::start();
        let (mut admin, mut connection) = (server.connect(), server.connect());
        let is_known =
            run(&mut admin, &["COMMAND", "INFO", "SPUBLISH"]) != Value::Array(vec![Value::Nil]);
        if sharded && !is_known {
            continue;
        }
        let script = Script::new("test", sharded);
        let mut command = cmd("ACL");
        command.arg(&["SETUSER", "tollgate", ">secret", "on", "-@all"]);
        command.arg(script.permissions().split(' ').collect::<Vec<_>>());
        command.exec(&mut admin).unwrap();
        run(&mut admin, &["CONFIG", "SET", "requirepass", "other"]);
        let timed = Timed { script: script.clone(), ..Timed::load(&mut admin) };
        run(&mut connection, &["AUTH", "tollgate", "secret"]);
        let call_now = call(1, [report(2_000, 50)]);
        script.load_and_call(0, &call_now).exec(&mut connection).unwrap();
        // All that the script can come to: pages, expired buckets, silent rows and nodes, leaving.
        let mut since = Since::default();
        for (node, wall_us) in (1..40).zip((START_US..).step_by(700_000_000)) {
            let many = (0..300).map(|number| Report { rate: 1.0, ..report(number, 50) });
            let reports = many.chain([report(1_000, 1)]);
            let call = Call { since, leave: node % 5 == 0, ..call(node, reports) };
            since = timed.reply(&mut connection, &call, wall_us).since;
            let call = Call { since, ..call };
            timed.reply(&mut connection, &call, wall_us + 1_000);
        }
        let denied = |connection: &mut Connection, words: &[&str]| {
            let error: RedisError =
                cmd(words[0]).arg(&words[1..]).query::<Value>(connection).unwrap_err();
            assert_eq!(error.code(), Some("NOPERM"), "{words:?}: {error}");
        };
        denied(&mut connection, &["FLUSHALL"]);
        denied(&mut connection, &["GET", "test:v1:{0}:shard"]);
        denied(&mut connection, &["HGETALL", "of:somebody:else"]);
        denied(&mut connection, &["PUBLISH", "elsewhere", ""]);
    }
}

#[test]
fn both_versions_of_the_protocol_bring_the_same_answer() {
    let server = RedisServer::start();
    let (mut two, mut three) = (server.connect(), server.connect_as("?protocol=resp3"));
    let (timed, call) = (Timed::load(&mut two), call(1, (0..300).map(|it| report(it, 50))));
    let said = timed.reply(&mut two, &call, START_US);
    assert_eq!(said.digest.len(), 256);
    run(&mut two, &["FLUSHALL"]);
    assert_eq!(timed.reply(&mut three, &call, START_US), said);
}

#[test]
fn the_ends_of_every_number_are_no_error() {
    let server = RedisServer::start();
    let mut connection = server.connect();
    let timed = Timed::load(&mut connection);
    let ends = [i64::MIN, -1, 0, 1, i64::MAX];
    let rates = [f64::NAN, f64::INFINITY, -1.0, 0.0, f64::MIN_POSITIVE, 1e6, f64::MAX];
    let mut reports = Vec::new();
    for (number, rate) in (0..).zip(rates) {
        for cap in ends {
            for spent in ends {
                for boot in [0, 1 << 53, u64::MAX] {
                    let (charged, level) = (spent.wrapping_neg(), spent);
                    let key = key(number);
                    let local = boot == 0;
                    reports.push(Report { key, rate, cap, boot, spent, charged, level, local });
                }
            }
        }
    }
    for wall_us in [0, START_US, 1, START_US * 4] {
        for elapsed_us in [None, Some(0), Some(u64::MAX)] {
            for time_us in [0, START_US, u64::MAX] {
                let since = Since { time_us, after: Some(key(3)) };
                let call = Call { elapsed_us, since, ..call(time_us, reports.clone()) };
                let reply = timed.reply(&mut connection, &call, wall_us);
                for lease in reply.leases {
                    let share = lease.unwrap().share;
                    assert!((0.0..=1.0).contains(&share), "{share}");
                }
            }
        }
    }
}

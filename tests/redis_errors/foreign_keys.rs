//! Somebody else's keys under names of ours.

use crate::node::{FAILS, Node, UNKEPT, per_merchant_once};
use crate::stored;
use crate::support::redis::RedisServer;
use crate::support::wait_for;
use crate::traffic::{GOOD, Traffic, limit};

const BURST: u32 = 20;
const OURS: &str = "SHOP9999";
const FOREIGN: &str = "something that is no bucket stands under this name";

/// A command that puts a value of each kind under a name, one that reads it, and what that says.
const KINDS: [(&[&str], &[&str], &str); 4] = [
    (&["SET", "{}", "hello"], &["GET", "{}"], "hello"),
    (&["RPUSH", "{}", "hello", "there"], &["LRANGE", "{}", "0", "-1"], "hello\nthere"),
    (&["SADD", "{}", "hello"], &["SMEMBERS", "{}"], "hello"),
    (&["HSET", "{}", "hello", "there"], &["HGETALL", "{}"], "hello\nthere"),
];

fn slow_limit() -> String {
    per_merchant_once(BURST)
}

fn shop(number: usize) -> String {
    format!("SHOP{number:04}")
}

fn about(words: &[&str], name: &str) -> Vec<String> {
    words.iter().map(|word| word.replace("{}", name)).collect()
}

fn ask(server: &RedisServer, words: &[&str], name: &str) -> String {
    let words = about(words, name);
    server.cli_text(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// What the buckets of the shops are called, as a node finds out that uses them.
fn names(server: &RedisServer) -> Vec<String> {
    let node = Node::start(&(server.quota(None) + &slow_limit()));
    node.wait_until_leased();
    let mut terminal = node.terminal();
    let of_shop = |number| {
        let before = stored::names(server);
        assert!(terminal.sale(&shop(number)));
        wait_for("the shop's key", || {
            stored::names(server).into_iter().find(|name| !before.contains(name))
        })
    };
    let names = (0..KINDS.len()).map(of_shop).collect();
    drop(node);
    server.cli(&["FLUSHALL"]);
    names
}

/// BR098.
#[test]
fn a_key_that_is_somebody_elses_is_limited_by_the_node_and_no_other_is() {
    let server = RedisServer::start();
    let names = names(&server);
    for ((put, ..), name) in KINDS.iter().zip(&names) {
        ask(&server, put, name);
    }
    let node = Node::start(&(server.quota(None) + &slow_limit()));
    node.wait_until_leased();
    let mut terminal = node.terminal();
    for (number, name) in names.iter().enumerate() {
        // Not a token more than the bucket has.
        assert_eq!(terminal.sales(&shop(number), 2 * BURST as usize), BURST as usize);
        wait_for("the key is said to be foreign", || {
            (node.proxy.log_lines(&["WARN", FOREIGN, name]) == 1).then_some(())
        });
        wait_for("the node answers the key itself", || {
            (node.lease(&shop(number))["standing"] == "local").then_some(())
        });
    }
    let unkept = node.proxy.metric(UNKEPT);
    assert!(unkept >= KINDS.len() as f64, "{unkept}");
    // All others are leased, and the store is as good as ever.
    assert_eq!(terminal.sales(OURS, 5), 5);
    node.wait_until_reported(OURS);
    node.wait_until_leased();
    assert_eq!(node.proxy.log_lines(&[FAILS, "wrongtype"]), 0);
    for ((_, read, value), name) in KINDS.iter().zip(&names) {
        assert_eq!(ask(&server, read, name), *value);
        server.cli(&["DEL", name]);
    }
    for number in 0..KINDS.len() {
        // A sale that is refused is a reason to report too.
        wait_for("the key is leased", || {
            terminal.sale(&shop(number));
            (node.lease(&shop(number))["standing"] == "leased").then_some(())
        });
        // It comes back as empty as the node knows it.
        assert_eq!(terminal.sales(&shop(number), 5), 0);
    }
    assert_eq!(stored::names(&server).len(), KINDS.len() + 1);
    assert_eq!(node.proxy.log_lines(&[FOREIGN]), KINDS.len(), "once each");
}

#[test]
fn a_shards_own_key_that_is_somebody_elses_is_a_lost_store_that_says_which_key_it_is() {
    for part in ["shard", "low", "lows"] {
        let (server, name) = (RedisServer::start(), format!("tollgate:v1:{{0}}:{part}"));
        let node = Node::start(&(server.quota(None) + &limit()));
        node.wait_until_leased();
        let traffic = Traffic::through(&node);
        traffic.goes_on();
        server.cli(&["SET", &name, "hello"]);
        node.wait_until_lost();
        wait_for("the log says why", || {
            (node.proxy.log_lines(&[FAILS, "fault=\"wrongtype\"", &name]) > 0).then_some(())
        });
        traffic.goes_on();
        assert_eq!(server.cli_text(&["GET", &name]), "hello");
        server.cli(&["DEL", &name]);
        node.wait_until_all_is_leased();
        traffic.goes_on();
        traffic.ends_well();
        node.wait_until_reported(GOOD);
    }
}

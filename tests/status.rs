//! `/status`: what an operator sees of a running node, that it stays small whatever comes, and that
//! it is right.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use std::collections::BTreeSet;

use serde_json::Value;
use support::house::{House, Plan, key, limit, limit_in};
use support::message::Message;
use support::peer::{Framing, Peer};
use support::proxy::Proxy;
use support::wait_for;

const CARD: &str = "4111111111111111";
/// Keys of each limit that are shown at most.
const KEYS_SHOWN: usize = 10;

#[track_caller]
fn json(proxy: &Proxy, path: &str) -> Value {
    let (found, body) = proxy.page(path);
    assert!(found, "{path}: {body}");
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

#[track_caller]
fn limit_of<'a>(status: &'a Value, name: &str) -> &'a Value {
    let limits = status["limits"].as_array().unwrap();
    limits.iter().find(|limit| limit["name"] == name).expect(name)
}

fn keys_of(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The names of the keys in a ranking, in its order.
fn ranked(ranking: &Value) -> Vec<String> {
    let keys = ranking.as_array().unwrap().iter();
    keys.map(|ranked| ranked["key"].as_str().unwrap().to_owned()).collect()
}

/// A session, and how it sends what may be refused.
struct Till {
    house: House,
    terminal: Peer,
    stan: u32,
}

impl Till {
    fn open(sections: &[String]) -> Self {
        // Nothing is answered by the host, and nothing of it may end in overload.
        let upstream = "inflight_max = 1000000".to_owned();
        let house = Plan { upstream, ..Plan::limits(sections) }.start();
        let terminal = house.terminal();
        Self { house, terminal, stan: 0 }
    }

    /// Sends these requests; says how many of them the host got. The others were answered.
    fn send(&mut self, requests: &[Message]) -> usize {
        for request in requests {
            self.stan = (self.stan + 1) % 1_000_000;
            let request = request.clone().with(11, &format!("{:06}", self.stan));
            self.terminal.send(&request.encode());
        }
        // Behind them comes what meets no limit but one for all.
        let marker = Message::new("0820", &[(11, "777777"), (70, "301")]).encode();
        self.terminal.send(&marker);
        let mut passed = 0;
        while self.house.at_host.receive() != marker {
            passed += 1;
        }
        for _ in passed..requests.len() {
            self.terminal.receive();
        }
        passed
    }

    fn status(&self) -> Value {
        json(&self.house.proxy, "/status")
    }

    /// One key by a query.
    #[track_caller]
    fn key(&self, query: &str) -> Value {
        json(&self.house.proxy, &format!("/status?{query}"))
    }
}

fn at(merchant: &str) -> Message {
    Message::sale(CARD, 1).with(42, &format!("{merchant:15}"))
}

#[test]
fn a_node_shows_its_links_and_limits_and_counts_what_they_did() {
    let limits = [
        limit("merchant", "merchant", 2),
        limit_in("shadow", "bin", "bin", 1),
        limit_in("off", "link", "link", 1),
    ];
    let mut till = Till::open(&limits);
    assert_eq!(till.send(&vec![at("SHOP"); 5]), 2);
    // What is in flight is published every few milliseconds.
    let status = wait_for("both sales are in flight", || {
        let status = till.status();
        (status["links"][0]["in_flight"]["requests"] == 2).then_some(status)
    });
    assert_eq!(
        keys_of(&status),
        BTreeSet::from(["node", "version", "uptime_seconds", "ready", "links", "limits", "store"])
    );
    assert_eq!(status["ready"], true);
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));

    let [link] = status["links"].as_array().unwrap().as_slice() else { panic!("{status:#}") };
    let names = [
        "name",
        "state",
        "sessions",
        "upstream",
        "in_flight",
        "forwarded",
        "rejected",
        "answered_at_deadline",
    ];
    assert_eq!(keys_of(link), BTreeSet::from(names));
    assert_eq!((&link["name"], &link["state"]), (&"visa".into(), &"up".into()));
    assert_eq!((&link["sessions"], &link["upstream"]["up"]), (&1.into(), &true.into()));
    // Two sales and the marker.
    assert_eq!((&link["forwarded"], &link["rejected"]), (&3.into(), &3.into()));

    let shown: Vec<_> = status["limits"].as_array().unwrap().iter().collect();
    let names: Vec<_> = shown.iter().map(|limit| limit["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["merchant", "bin", "link"], "the order of the configuration");
    let names = [
        "name",
        "per",
        "mode",
        "rate_per_second",
        "burst_tokens",
        "keys_named",
        "keys_automatic",
        "keys_max",
        "overflowed",
        "rejected",
        "shadow_rejected",
        "forgiven",
        "seen_within_seconds",
        "busiest",
        "most_refused",
    ];
    assert!(shown.iter().all(|limit| keys_of(limit) == BTreeSet::from(names)), "{status:#}");
    let merchant = limit_of(&status, "merchant");
    assert_eq!(merchant["per"], serde_json::json!(["merchant"]));
    assert_eq!((&merchant["rejected"], &merchant["shadow_rejected"]), (&3.into(), &0.into()));
    assert_eq!(
        (&merchant["rate_per_second"], &merchant["burst_tokens"]),
        (&0.001.into(), &2.0.into())
    );
    // The BIN is asked for those alone that their merchant's limit lets pass.
    assert_eq!(limit_of(&status, "bin")["shadow_rejected"], 1);
    let off = limit_of(&status, "link");
    assert_eq!((&off["mode"], &off["busiest"]), (&"off".into(), &serde_json::json!([])));
}

/// Half of all messages come from one merchant, a quarter from another, and the rest from thousands,
/// of which no one comes often.
#[test]
fn the_busiest_and_the_most_refused_keys_stand_first_and_ten_are_shown_of_thousands() {
    let mut till = Till::open(&[limit("merchant", "merchant", 40), limit("bin", "bin", 1_000_000)]);
    let mut rng = fastrand::Rng::with_seed(5);
    let top = wait_for("the busiest merchants", || {
        let requests: Vec<Message> = (0..400)
            .map(|_| match rng.u8(..4) {
                0 | 1 => at("LOUD"),
                2 => at("BUSY"),
                _ => at(&format!("SHOP{:06}", rng.u32(..5_000))),
            })
            .collect();
        till.send(&requests);
        let status = till.status();
        let merchants = limit_of(&status, "merchant").clone();
        let first = |ranking| {
            let mut names = ranked(&merchants[ranking]);
            names.truncate(2);
            names
        };
        let expected = ["123456:LOUD", "123456:BUSY"];
        // All the others together have to be many before the bound shows.
        let many = merchants["keys_automatic"].as_u64().unwrap() > 500;
        (many && first("busiest") == expected && first("most_refused") == expected)
            .then_some(merchants)
    });
    for ranking in ["busiest", "most_refused"] {
        let keys = top[ranking].as_array().unwrap();
        assert!(keys.len() <= KEYS_SHOWN, "{top:#}");
        for key in keys {
            let names = ["key", "share_at_most", "remaining_tokens"];
            assert_eq!(keys_of(key), BTreeSet::from(names));
            assert!((0.0..=1.0).contains(&key["share_at_most"].as_f64().unwrap()), "{key}");
        }
    }
    assert_eq!(top["busiest"].as_array().unwrap().len(), KEYS_SHOWN, "{top:#}");
    // Only these two were ever refused often; no refusal leaves more than a part of a token.
    assert!(top["most_refused"][0]["remaining_tokens"].as_f64().unwrap() < 1.0, "{top:#}");
}

#[test]
fn the_status_of_a_node_does_not_grow_with_the_keys_that_it_met() {
    let dimensions = ["merchant", "terminal", "bin", "mcc", "operation", "link"];
    let limits: Vec<String> =
        dimensions.iter().map(|per| limit_in("shadow", per, per, 1)).collect();
    let mut till = Till::open(&limits);
    let sale = |number: u32| {
        Message::sale(&format!("{}0000000000", 300_000 + number), number)
            .with(41, &format!("T{number:07}"))
            .with(42, &format!("M{number:014}"))
            .with(18, &format!("{:04}", number % 10_000))
            .with(3, &format!("{:02}0000", number % 100))
    };
    let mut sent = 0;
    let mut size_after = |till: &mut Till, total: u32| {
        while sent < total {
            let requests: Vec<Message> = (sent..sent + 200).map(sale).collect();
            till.send(&requests);
            sent += 200;
        }
        let is_full = |limit: &str, status: &Value| {
            limit_of(status, limit)["busiest"].as_array().unwrap().len() == KEYS_SHOWN
        };
        wait_for("rankings that are full", || {
            let (_, page) = till.house.proxy.page("/status");
            let status: Value = serde_json::from_str(&page).unwrap();
            is_full("merchant", &status).then_some(page.len())
        })
    };
    let early = size_after(&mut till, 2_000);
    let late = size_after(&mut till, 8_000);
    // Counts have more digits, and what was rare may be shown now.
    assert!(late < early + 2_000 && late < 32_000, "{early} bytes, later {late}");
    let status = till.status();
    for (limit, keys) in [("merchant", 8_000), ("terminal", 8_000), ("operation", 9), ("link", 1)] {
        assert_eq!(limit_of(&status, limit)["keys_automatic"], keys, "{limit}");
    }
}

/// What is said of one key.
const OF_A_KEY: [&str; 10] = [
    "limit",
    "key",
    "held_by",
    "remaining_tokens",
    "burst_tokens",
    "rate_per_second",
    "full_in_seconds",
    "peak",
    "floor",
    "lease",
];

#[test]
fn one_key_is_asked_for_by_its_values_and_says_what_is_left_and_when_it_is_full() {
    let several = r#"
        [[limit]]
        name = "several"
        per = ["merchant", "bin", "operation", "link"]
        rate = 0.001
        burst = 5
        mode = "enforce"
        bin_digits = 8
        "#;
    let named = key("merchant = \"SHOP0001\"\nacquirer = \"123456\"\noperation = \"refund\"", 9);
    let limits =
        [limit("merchant", "merchant", 10), several.to_owned(), named, limit("all", "", 1_000)];
    let mut till = Till::open(&limits);
    let sale = Message::sale(CARD, 1);
    assert_eq!(till.send(&vec![sale.clone(); 3]), 3);
    assert_eq!(till.send(&vec![sale.with(3, "200000"); 4]), 4);

    let shop = "acquirer=123456&merchant=SHOP0001";
    let whole = format!("{shop}&bin=41111111&link=visa");
    let cases = [
        (format!("limit=merchant&{shop}"), "123456:SHOP0001", "automatic", 10.0, 3.0),
        // What a limit is not kept per may be named all the same.
        (
            format!("limit=merchant&operation=refund&{whole}"),
            "123456:SHOP0001",
            "automatic",
            10.0,
            3.0,
        ),
        (
            format!("limit=several&operation=purchase&{whole}"),
            "merchant=123456:SHOP0001 bin=41111111 operation=purchase link=visa",
            "automatic",
            5.0,
            2.0,
        ),
        (
            format!("limit=several&operation=refund&{whole}"),
            "merchant=123456:SHOP0001 operation=refund",
            "named",
            9.0,
            5.0,
        ),
        ("limit=merchant&acquirer=&merchant=SHOP0001".to_owned(), ":SHOP0001", "new", 10.0, 10.0),
        // And the marker behind each batch.
        ("limit=all".to_owned(), "everything", "everything", 1_000.0, 991.0),
    ];
    for (query, name, holder, burst, left) in cases {
        let key = till.key(&query);
        assert_eq!(keys_of(&key), BTreeSet::from(OF_A_KEY), "{query}");
        assert_eq!((&key["key"], &key["held_by"]), (&name.into(), &holder.into()), "{query}");
        assert_eq!(key["burst_tokens"], burst, "{query}");
        let remaining = key["remaining_tokens"].as_f64().unwrap();
        assert!((left..left + 1.0).contains(&remaining), "{query}: {remaining}");
        let full_in = (burst - remaining) * 1_000.0;
        assert!(
            (key["full_in_seconds"].as_f64().unwrap() - full_in).abs() < 0.01,
            "{query}: {key}"
        );
    }
    // To look costs nothing, and makes no bucket.
    let status = till.status();
    assert_eq!(limit_of(&status, "merchant")["keys_automatic"], 1);
    assert_eq!(limit_of(&status, "several")["keys_named"], 1);
}

#[test]
fn a_query_that_has_no_answer_says_why_and_repeats_nothing_of_it() {
    let house = Plan::limits(&[
        limit("merchant", "merchant", 1),
        limit("operation", "operation", 1),
        limit("link", "link", 1),
        limit("bin", "bin", 1).replace("mode", "bin_digits = 8\nmode"),
        limit_in("off", "off", "mcc", 1),
    ])
    .start();
    let secret = "4111111111111111";
    for (query, why) in [
        ("pan=4111111111111111", "the parameters are"),
        ("limit=4111111111111111", "not the name of a limit"),
        ("bin=41111111", "limit is missing"),
        ("limit=bin&bin=4111111111111111", "bin has a value"),
        ("limit=bin&bin=41111x", "bin has a value"),
        ("limit=bin&bin=411111", "per bin of 8 digits"),
        ("limit=bin&mcc=4111111111111111", "mcc has a value"),
        ("limit=operation&operation=4111111111111111", "operation has a value"),
        ("limit=link&link=4111111111111111", "link has a value"),
        ("limit=merchant&bin=41111111", "kept per merchant"),
        ("limit=merchant&acquirer=1&merchant=%20", "kept per merchant"),
        ("limit=merchant&merchant=4111111111111111", "acquirer"),
        ("limit=bin&merchant=A&acquirer=1", "kept per bin"),
        ("limit=operation", "kept per operation"),
        ("limit=link", "kept per link"),
        ("limit=off&mcc=5411", "off"),
        ("&&&=%ff4111111111111111", "the parameters are"),
    ] {
        let (found, body) = house.proxy.page(&format!("/status?{query}"));
        assert!(!found, "{query}: {body}");
        let error: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(keys_of(&error), BTreeSet::from(["error"]));
        assert!(error["error"].as_str().unwrap().contains(why), "{query}: {body}");
        assert!(!body.contains(secret) && !body.contains("41111"), "{query}: {body}");
    }
    assert!(house.proxy.page("/status?").0);
}

/// One message in sixteen is looked at, on the whole.
#[test]
fn budgets_are_looked_at_in_one_message_of_sixteen_and_show_what_is_left() {
    const SENT: usize = 16_000;
    let mut till = Till::open(&[limit("all", "", 100_000), limit("merchant", "merchant", 1)]);
    for _ in 0..SENT / 400 {
        till.send(&vec![at("SHOP"); 400]);
    }
    let page = till.house.proxy.page("/metrics").1;
    let bucket = |limit: &str, le: &str| {
        let series =
            format!("tollgate_budget_remaining_ratio_bucket{{limit=\"{limit}\",le=\"{le}\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(series.as_str()));
        line.expect("a bucket").parse::<f64>().unwrap()
    };
    for limit in ["all", "merchant"] {
        let count = format!("tollgate_budget_remaining_ratio_count{{limit=\"{limit}\"}}");
        let looked = till.house.proxy.metric(&count);
        let expected = SENT as f64 / 16.0;
        assert!((0.7 * expected..1.3 * expected).contains(&looked), "{limit}: {looked}");
        assert_eq!(looked, bucket(limit, "+Inf"));
    }
    // The merchant has spent its one token with its first message, and nearly all are left of the
    // others.
    assert!(bucket("merchant", "0.05") >= bucket("merchant", "+Inf") - 1.0, "{page}");
    assert_eq!(bucket("all", "0.9"), 0.0);
}

/// The peer's framing is that of the plan.
#[test]
fn a_link_that_nobody_uses_is_down_and_its_host_up() {
    let house = Plan::default().start();
    let link = json(&house.proxy, "/status")["links"][0].clone();
    assert_eq!((&link["state"], &link["upstream"]["up"]), (&"down".into(), &true.into()));
    let _terminal = house.proxy.connect("visa", Framing::Be16);
    wait_for("a link that is up", || {
        (json(&house.proxy, "/status")["links"][0]["state"] == "up").then_some(())
    });
}

//! The admin interface: every metric of the one table is on its page, as the table says, and nothing
//! else is.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;

use support::host::Host;
use support::house::{Plan, limit};
use support::message::Message;
use support::peer::{Framing, Peer};
use support::proxy::Proxy;
use support::{PATIENCE, wait_for};
use tollgate::metrics::{Kind, TABLE};

/// Names that dashboards are built on: to rename one is a breaking change.
const LASTING: [&str; 14] = [
    "tollgate_advices_unanswered_total",
    "tollgate_build_info",
    "tollgate_deadline_answers_total",
    "tollgate_decision_seconds",
    "tollgate_decisions_total",
    "tollgate_inflight",
    "tollgate_late_responses_total",
    "tollgate_link_sockets",
    "tollgate_link_state",
    "tollgate_messages_total",
    "tollgate_parse_errors_total",
    "tollgate_reconnects_total",
    "tollgate_rejects_total",
    "tollgate_response_seconds",
];

/// The names of the labels of a series, in order; their values hold neither comma nor brace.
fn labels(series: &str) -> Vec<&str> {
    let Some((_, labels)) = series.split_once('{') else { return Vec::new() };
    let pairs = labels.trim_end_matches('}').split(',').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap().0).collect()
}

#[test]
fn the_page_holds_every_metric_of_the_table_under_its_labels_and_no_other() {
    // With a Redis a node shows all that it can, also with one that is not there.
    let redis = "[quota.redis]\nurl = \"unix:///no/redis.sock\"\n";
    let leases = format!("[quota]\nstore = \"redis\"\n{redis}");
    let mut house = Plan::limits(&[leases, limit("bin", "bin", 1)]).start();
    let mut terminal = house.terminal();
    let sale = Message::sale("4111111111111111", 1);
    terminal.send(&sale.encode());
    house.at_host.receive();
    house.at_host.send(&sale.answer("00").encode());
    terminal.receive();
    let (found, page) = house.proxy.page("/metrics");
    assert!(found);

    let heads = |what: &str| -> BTreeMap<&str, &str> {
        let lines = page.lines().filter_map(|line| line.strip_prefix(what));
        lines.map(|line| line.split_once(' ').unwrap()).collect()
    };
    let kind = |kind| match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let table = |of: fn(&tollgate::metrics::Metric) -> &'static str| -> BTreeMap<_, _> {
        TABLE.iter().map(|metric| (metric.name, of(metric))).collect()
    };
    assert_eq!(heads("# HELP "), table(|metric| metric.help));
    let kinds: BTreeMap<_, _> =
        TABLE.iter().map(|metric| (metric.name, kind(metric.kind))).collect();
    assert_eq!(heads("# TYPE "), kinds);
    assert_eq!(kinds.len(), TABLE.len(), "a name stands in the table twice");

    let mut seen = BTreeSet::new();
    for line in page.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{line}");
        let name = series.split('{').next().unwrap();
        let metric = TABLE.iter().find(|metric| match metric.kind {
            Kind::Histogram => ["_bucket", "_sum", "_count"]
                .iter()
                .any(|part| name.strip_suffix(part) == Some(metric.name)),
            _ => name == metric.name,
        });
        let metric = metric.unwrap_or_else(|| panic!("{line} is not in the table"));
        let mut expected = metric.labels.to_vec();
        if name.ends_with("_bucket") {
            expected.push("le");
        }
        assert_eq!(labels(series), expected, "{line}");
        let total = metric.kind == Kind::Counter;
        assert_eq!(metric.name.ends_with("_total"), total, "{line}");
        seen.insert(metric.name);
    }
    assert_eq!(seen, kinds.into_keys().collect(), "a metric has no series");
    for name in LASTING {
        assert!(seen.contains(name), "{name} is gone");
    }
}

#[test]
fn what_is_no_page_is_not_found() {
    let house = Plan::default().start();
    for page in ["/", "/metric", "/metrics/", "/status/", "/status/visa"] {
        assert!(!house.proxy.page(page).0, "{page}");
    }
    assert!(house.proxy.page("/healthz").0);
}

#[test]
fn who_connects_and_asks_nothing_is_bounded_in_number_and_keeps_no_file_from_a_session() {
    let house = Plan::default().start();
    let address = house.proxy.admin_address();
    let connect = || Peer::connect(address, Framing::Be16);
    let mut idle: Vec<_> = (0..64).map(|_| connect()).collect();
    // One more is closed unread, however long the others last.
    connect().expect_end();
    for peer in &mut idle {
        peer.expect_nothing_yet();
    }
    // A place that is free again is another's.
    drop(idle.pop());
    wait_for("a page again", || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let asked = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n");
        let mut answer = String::new();
        let answered = asked.and_then(|()| stream.read_to_string(&mut answer));
        (answered.is_ok() && answer.starts_with("HTTP/1.1 200")).then_some(())
    });
}

#[test]
fn an_empty_address_turns_it_off() {
    let host = Host::listen(Framing::Be16);
    let config = Plan::default().config(host.address());
    let with = "[admin]\n            listen = \"127.0.0.1:0\"";
    assert!(config.contains(with));
    let proxy = Proxy::start(&config.replace(with, "[admin]\nlisten = \"\""));
    assert_eq!(proxy.log_lines(&["admin"]), 0);
    let mut at_host = host.accept();
    let mut terminal = proxy.connect("visa", Framing::Be16);
    let echo = Message::new("0800", &[(7, "1130045900"), (11, "000001"), (70, "301")]);
    terminal.send(&echo.encode());
    assert_eq!(at_host.receive_message(), echo);
}

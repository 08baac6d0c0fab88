//! `tollgate explain` as an operator runs it: every real message can be explained, and what is said
//! with `--live` of a message is what the running node then does with it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use fastrand::Rng;
use serde_json::Value;
use support::config;
use support::fixtures::{self, Line};
use support::house::{House, Plan, key, limit, limit_in};
use support::message::Message;
use support::proxy::tollgate;
use support::wait_for;

const CARD: &str = "4111111111111111";

/// A configuration on disk; it goes when this is dropped.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("explain-{}-{name}.toml", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn explain(&self, link: &str, more: &[&str]) -> Output {
        let config = self.0.to_str().unwrap();
        tollgate(&[&["explain", "--config", config, "--link", link], more].concat())
    }

    #[track_caller]
    fn json(&self, link: &str, more: &[&str]) -> Value {
        let output = self.explain(link, &[&["--json"], more].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{more:?}: {said}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_real_message_can_be_explained() {
    let limits = [limit("bin", "bin", 1), limit("merchant", "merchant", 1), limit("all", "", 1)];
    let mut explained = 0;
    for line in fixtures::lines() {
        let (id, recorded) = (line.id().to_owned(), line.recorded());
        let (dialect, own, expected) = match &line {
            Line::Keepalive { .. } => continue,
            Line::Message(message) => {
                let own = message.own_dialect("own");
                let dialect = if own.is_empty() { message.dialect.as_str() } else { "own" };
                (dialect, own, &message.expected)
            }
        };
        let framing = recorded.framing.unwrap_or("be16");
        let link_keys = format!("header = \"{}\"", recorded.header);
        let link = config::link("row", ([127, 0, 0, 1], 9).into(), &link_keys, "")
            .replace("dialect = \"iso87_ascii\"", &format!("dialect = \"{dialect}\""))
            .replace("framing = \"be16\"", &format!("framing = \"{framing}\""));
        let text = format!("{}{link}{own}\n{}", config::node("0s"), limits.concat());
        let file = File::new(&id, &text);
        let page = file.json("row", &[&recorded.hex]);
        assert_eq!(page["link"], "row", "{id}");
        assert_eq!(page["mti"].as_str(), Some(expected[&0].as_str()), "{id}: {page}");
        assert!(page["fault"].is_null(), "{id}: {page}");
        assert!(page["outcome"].is_string(), "{id}: {page}");
        let output = file.explain("row", &[&recorded.hex]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("\noutcome "), "{id}: {text}");
        for fields in [2, 35, 36, 45, 52, 55].iter().filter_map(|de| expected.get(de)) {
            let digits: String = fields.chars().take_while(char::is_ascii_digit).collect();
            if digits.len() >= 12 {
                let said = format!("{page}{text}");
                assert!(!said.contains(&digits), "{id} says {digits}: {said}");
            }
        }
        explained += 1;
    }
    assert_eq!(explained, 53, "messages of the fixtures");
}

/// Limits of each kind, of which all run dry in the course of some hundred messages.
fn limits() -> Vec<String> {
    let several = |burst| {
        limit("several", "merchant", burst)
            .replace("per = [\"merchant\"]", "per = [\"merchant\", \"operation\"]")
    };
    let named = key("merchant = \"SHOP0001\"\nacquirer = \"123456\"\noperation = \"refund\"", 9);
    vec![
        limit_in("shadow", "terminal", "terminal", 6),
        several(7),
        named,
        limit("bin", "bin", 40) + "bin_digits = 7\n",
        key("bin = \"4\"", 60),
        limit_in("off", "nothing", "link", 1),
        limit("all", "", 110),
        limit("advices", "bin", 5) + "when = { class = [\"protected\"] }\n",
    ]
}

/// Mostly sales; the others may not be answered, by type, by their MAC, or for a fault.
fn message(rng: &mut Rng, stan: u32) -> Vec<u8> {
    let one = |rng: &mut Rng, of: &[&'static str]| of[rng.usize(..of.len())];
    let pan = one(rng, &[CARD, "4222222222222", "5555555555554444"]);
    let mut message = Message::sale(pan, stan)
        .with(3, one(rng, &["000000", "200000", "310000"]))
        .with(41, one(rng, &["TERM0001", "TERM0002", "TERM0003"]))
        .with(42, one(rng, &["SHOP0001       ", "SHOP/2 & SONS  ", "               "]));
    match rng.u8(..10) {
        0 => message = message.mti("0420"),
        1 => message = message.mti("0120").without(42),
        2 => message = message.with(64, "0123456789ABCDEF"),
        3 => message = message.without(2),
        _ => {}
    }
    let mut frame = message.encode();
    match rng.u8(..12) {
        0 => frame.truncate(rng.usize(20..frame.len())),
        1 => frame.extend(*b"more"),
        _ => {}
    }
    frame
}

#[test]
fn a_leased_key_is_explained_with_its_lease_and_both_bounds() {
    let quota = "[quota]\nleases = true\n".to_owned();
    let plan = Plan { sections: quota + &limit("merchant", "merchant", 20), ..Plan::default() };
    let mut house = plan.start();
    let admin = format!("listen = \"{}\"", house.proxy.admin_address());
    let text = plan.config(house.host.address()).replacen("listen = \"127.0.0.1:0\"", &admin, 1);
    let file = File::new("leased", &text);
    let sale = Message::sale(CARD, 1).encode();
    let lease = |file: &File| {
        let page = file.json("visa", &["--live", &hex(&sale)]);
        page["limits"][0]["lease"].clone()
    };
    assert_eq!(lease(&file)["standing"], "new");
    let mut terminal = house.terminal();
    terminal.send(&sale);
    house.at_host.receive();
    let told = wait_for("the sale at the store", || {
        let lease = lease(&file);
        (lease["standing"] == "leased" && lease["unreported_tokens"] == 0.0).then_some(lease)
    });
    let names = ["mode", "nodes", "hold_tokens", "over_at_most_tokens"];
    let values = names.map(|name| told[name].to_string());
    assert_eq!(values, ["\"leased\"", "1", "20.0", "0.0"], "{told:#}");
    assert!((told["level_tokens"].as_f64().unwrap() - 19.0).abs() < 0.1, "{told:#}");
    for name in ["share", "age_seconds", "over_usually_tokens"] {
        assert!(told[name].as_f64().unwrap() > 0.0, "{name}: {told:#}");
    }
    let said = file.explain("visa", &["--live", &hex(&sale)]).stdout;
    let said = String::from_utf8(said).unwrap();
    let line = said.lines().find(|line| line.starts_with("lease merchant ")).unwrap();
    for word in ["mode leased", "unreported", "(hold)", "share", "at most", "20 times"] {
        assert!(line.contains(word), "{word}: {line}");
    }
}

#[test]
fn what_is_explained_live_is_what_the_node_then_does() {
    const MESSAGES: u32 = 300;
    let plan = Plan { link: "malformed = \"answer\"".to_owned(), ..Plan::limits(&limits()) };
    let mut house = plan.start();
    let admin = format!("listen = \"{}\"", house.proxy.admin_address());
    let text = plan.config(house.host.address()).replacen("listen = \"127.0.0.1:0\"", &admin, 1);
    let file = File::new("live", &text);
    let mut terminal = house.terminal();
    let mut rng = Rng::with_seed(3);
    let mut outcomes: BTreeMap<String, u32> = BTreeMap::new();
    let mut shadowed = 0;
    for stan in 0..MESSAGES {
        let frame = message(&mut rng, stan);
        let page = file.json("visa", &["--live", &hex(&frame)]);
        assert_eq!(page["live"], true);
        shadowed += shadowed_by(&page);
        terminal.send(&frame);
        let outcome = page["outcome"].as_str().unwrap();
        if outcome == "reject" {
            let answer = terminal.receive();
            // Whatever else it holds: MTI, STAN and code stand there.
            let code = page["code_1987"].as_str().unwrap();
            let answer = Message::decode(&answer);
            assert_eq!(answer.get(39), Some(code), "{page:#}");
            assert_eq!(answer.get(11), Some(format!("{stan:06}").as_str()));
            assert!(!page["limit"].is_null() || page["reason"] == "format", "{page:#}");
        } else {
            assert_eq!(house.at_host.receive(), frame, "{page:#}");
        }
        let why = page["reason"].as_str().unwrap_or_default();
        *outcomes.entry(format!("{outcome} {why}")).or_default() += 1;
    }
    for (outcome, reason) in [
        ("forward", ""),
        ("pass_protected", ""),
        ("unenforceable", ""),
        ("reject", "limit"),
        ("reject", "format"),
    ] {
        let count = outcomes.get(&format!("{outcome} {reason}")).copied().unwrap_or(0);
        assert!(count > 3, "{outcome} {reason}: {outcomes:?}");
        let outcome = format!("outcome=\"{outcome}\"");
        let metric =
            if reason.is_empty() { "tollgate_decisions_total" } else { "tollgate_rejects_total" };
        let reason = format!("reason=\"{reason}\"");
        let label = if metric == "tollgate_rejects_total" { reason } else { outcome };
        assert_eq!(house.proxy.metric_sum(metric, &[&label]), f64::from(count), "{label}");
    }
    let counted = house.proxy.metric_sum(
        "tollgate_limit_decisions_total",
        &["limit=\"terminal\"", "outcome=\"shadow_reject\""],
    );
    assert!(shadowed > 20, "{shadowed}");
    assert_eq!(counted, f64::from(shadowed));
}

/// Shadow limits that are asked and have no token; a limit that refuses is the last one asked.
fn shadowed_by(page: &Value) -> u32 {
    let limits = page["limits"].as_array().unwrap().iter();
    let protected = page["class"] == "protected";
    let by_form = page["reason"] == "format";
    if protected || by_form {
        return 0;
    }
    let asked = limits.take_while(|limit| limit["limit"] != page["limit"]);
    asked.filter(|limit| limit["mode"] == "shadow" && limit["passes"] == false).count() as u32
}

#[test]
fn what_cannot_be_asked_ends_with_its_reason_and_not_with_a_guess() {
    let House { proxy, host, .. } = Plan::limits(&[limit("merchant", "merchant", 1)]).start();
    let other = Plan::limits(&[limit("bin", "bin", 1)]);
    let changed = Plan::limits(&[limit("merchant", "merchant", 2)]);
    let sale = hex(&Message::sale(CARD, 1).encode());
    let listen_of = |plan: &Plan, address: &str| {
        let text = plan.config(host.address());
        text.replacen("listen = \"127.0.0.1:0\"", &format!("listen = \"{address}\""), 1)
    };
    let listen = |address: &str| listen_of(&other, address);
    let node = proxy.admin_address().to_string();
    let cases = [
        ("changed", listen_of(&changed, &node), "with other limits", 1),
        ("other", listen(&node), "with other limits", 1),
        ("nobody", listen(&free_address()), "does not answer", 1),
        ("off", listen(""), "turns the admin interface off", 1),
    ];
    for (name, text, why, code) in cases {
        let file = File::new(name, &text);
        let output = file.explain("visa", &["--live", &sale]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{name}: {said}");
        assert!(said.contains(why), "{name}: {said}");
        assert!(output.stdout.is_empty() && !said.contains("411111"), "{name}: {said}");
    }
    let file = File::new("links", &listen(""));
    let output = file.explain("amex", &[&sale]);
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no such link; it has visa"));
}

/// Where nobody listens.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// `[link.operations]` and `[classes]` are seen by limits, in metrics and in explanations.
#[test]
fn a_processing_code_of_a_links_own_has_its_operation_and_its_class() {
    let refunds = limit("refunds", "operation", 2) + "when = { operation = [\"refund\"] }\n";
    let shed = limit("shed", "", 3) + "when = { class = [\"sheddable\"] }\n";
    let classes = "[classes]\nrefund = \"standard\"\npurchase = \"sheddable\"\n".to_owned();
    let plan = Plan {
        link: String::new(),
        codes: "[link.operations]\n28 = \"refund\"\n20 = \"payment\"".to_owned(),
        ..Plan::limits(&[refunds, shed, classes])
    };
    let mut house = plan.start();
    let file = File::new("operations", &plan.config(house.host.address()));
    let mut terminal = house.terminal();
    // Processing code, operation, class, and how many of five pass.
    for ((code, operation, class, passed), round) in [
        ("280000", "refund", "standard", 2),
        ("200000", "payment", "standard", 5),
        ("000000", "purchase", "sheddable", 3),
        ("310000", "inquiry", "sheddable", 0),
        ("010000", "cash", "standard", 5),
    ]
    .into_iter()
    .zip(0..)
    {
        let series = |outcome: &str| {
            let labels = [format!("class=\"{class}\""), format!("outcome=\"{outcome}\"")];
            let labels = [labels[0].as_str(), labels[1].as_str()];
            house.proxy.metric_sum("tollgate_decisions_total", &labels)
        };
        let before = (series("forward"), series("reject"));
        let sale = Message::sale(CARD, round).with(3, code);
        let page = file.json("visa", &[&hex(&sale.encode())]);
        assert_eq!((&page["operation"], &page["class"]), (&operation.into(), &class.into()));
        for _ in 0..passed {
            terminal.send(&sale.encode());
            assert_eq!(house.at_host.receive(), sale.encode());
        }
        for _ in passed..5 {
            terminal.send(&sale.encode());
            assert_eq!(Message::decode(&terminal.receive()).get(39), Some("91"));
        }
        let after = (series("forward"), series("reject"));
        let expected = (before.0 + f64::from(passed), before.1 + f64::from(5 - passed));
        assert_eq!(after, expected, "{code}");
    }
}

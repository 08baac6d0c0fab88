//! `tollgate simulate host` through the binary: each behaviour is seen from the other end of a
//! socket, by what comes and in which order, and in the report.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test states its expectations"
)]

mod support;

#[path = "simulate_host/connections.rs"]
mod connections;
#[path = "support/encoder.rs"]
#[allow(dead_code, reason = "only what writes given values is taken from it")]
mod encoder;
#[path = "support/purchase.rs"]
mod purchase;
#[path = "simulate_host/scripts.rs"]
mod scripts;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use purchase::purchase;
use serde_json::{Value, json};
use support::message::Message;
use support::peer::{Framing, Peer};
use support::proxy::tollgate;
use support::simulated::SimulatedHost;
use support::{header::Header, wait_for};
use tollgate::iso8583::{Dialect, MtiEncoding, Spans, View};

const CARD: &str = "4111111111111111";

fn sale(stan: u32) -> Message {
    Message::sale(CARD, stan)
}

/// Sends all of them at once, so that they are most likely read at once.
#[track_caller]
fn send_all(peer: &mut Peer, messages: impl IntoIterator<Item = Message>) {
    let framed = messages.into_iter().map(|message| Framing::Be16.wrap(&message.encode()));
    peer.send_raw(&framed.flatten().collect::<Vec<u8>>());
}

/// Everything that comes until the other side ends the connection.
#[track_caller]
fn until_the_end(peer: &mut Peer) -> Vec<Message> {
    let mut messages = Vec::new();
    loop {
        match peer.receive_within(support::PATIENCE).expect("a frame or the end") {
            Some(frame) => messages.push(Message::decode(&frame)),
            None => return messages,
        }
    }
}

/// Sends all of them, nothing more, and gives all that is answered.
#[track_caller]
fn ask_all(host: &SimulatedHost, messages: impl IntoIterator<Item = Message>) -> Vec<Message> {
    let mut peer = host.connect();
    send_all(&mut peer, messages);
    peer.half_close();
    until_the_end(&mut peer)
}

fn stan(message: &Message) -> u32 {
    message.get(11).unwrap().parse().unwrap()
}

fn stans(messages: &[Message]) -> Vec<u32> {
    messages.iter().map(stan).collect()
}

/// A script of this test's own.
fn script(text: &str) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("script-{}-{number}.toml", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Stops the host once it has forgotten every connection, so that it has counted all of them.
#[track_caller]
fn report_of(host: SimulatedHost) -> Value {
    let report = host.stop();
    assert!(!report.to_string().contains("411111"), "{report}");
    report
}

#[test]
fn the_report_counts_what_came_and_what_left() {
    let host = SimulatedHost::start(&[]);
    let answers = ask_all(
        &host,
        [
            sale(1),
            sale(2).mti("0200"),
            sale(3).mti("0420"),
            Message::new("0800", &[(7, "1130045900"), (11, "000004"), (70, "301")]),
            sale(5).mti("0110"),
        ],
    );
    let types: Vec<_> = answers.iter().map(|answer| answer.get(0).unwrap()).collect();
    assert_eq!((types, stans(&answers)), (vec!["0110", "0210", "0430", "0810"], vec![1, 2, 3, 4]));
    assert!(answers.iter().all(|answer| answer.get(39) == Some("00")));
    let mut peer = host.connect();
    peer.send_raw(&[0, 0]);
    peer.send(b"no message at all");
    peer.send(&sale(6).encode());
    assert_eq!(stan(&peer.receive_message()), 6);
    let report = report_of(host);
    let received = json!({ "0100": 2, "0110": 1, "0200": 1, "0420": 1, "0800": 1 });
    assert_eq!(report["received"], received, "{report}");
    assert_eq!(report["answers"], json!({ "00": 5 }), "{report}");
    let expected = [
        ("messages", 6),
        ("answered", 5),
        ("not_answerable", 1),
        ("unreadable", 1),
        ("keepalives", 1),
        ("accepted", 2),
        ("open", 1),
        ("late", 0),
        ("dropped", 0),
        ("closed", 0),
        ("broken", 0),
    ];
    for (name, count) in expected {
        assert_eq!(report[name], count, "{name} in {report}");
    }
    assert!(report["cpu_seconds"].is_number() && report["rate"].as_f64().unwrap() > 0.0);
    assert_eq!((&report["phase"], &report["listening"]), (&Value::Null, &Value::Bool(true)));
}

#[test]
fn it_ends_by_itself_and_speaks_to_people_unless_it_is_told_otherwise() {
    let report = SimulatedHost::start(&["--seconds", "1"]).wait();
    assert_eq!(report["messages"], 0);
    let output = tollgate(&["simulate", "host", "--listen", "127.0.0.1:0", "--seconds", "1"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    let mut lines = said.lines();
    let address = lines.next().unwrap().strip_prefix("simulated host: listening on ").unwrap();
    assert_ne!(address.parse::<std::net::SocketAddr>().unwrap().port(), 0);
    let report = lines.next().unwrap();
    assert!(report.starts_with(&format!("simulated host on {address}: ")), "{said}");
    assert!(report.contains("0 messages") && report.contains("of CPU"), "{said}");
    for title in ["received", "answered", "of these", "unread", "connections"] {
        assert!(said.contains(&format!("\n  {title} ")), "{said}");
    }
}

#[test]
fn shares_are_drawn_anew_for_each_message_and_equal_seeds_draw_alike() {
    let draw = |seed: &str| {
        let host = SimulatedHost::start(&["--drop", "0.25", "--decline", "0.5", "--seed", seed]);
        let answers = ask_all(&host, (0..400).map(sale));
        let report = report_of(host);
        let declined = answers.iter().filter(|answer| answer.get(39) == Some("51")).count();
        assert_eq!(report["dropped"], 400 - answers.len(), "{report}");
        assert_eq!(report["answers"]["51"], declined, "{report}");
        assert_eq!(report["answers"]["00"], answers.len() - declined, "{report}");
        assert!((260..340).contains(&answers.len()), "{report}");
        assert!((100..200).contains(&declined), "{report}");
        stans(&answers)
    };
    let first = draw("7");
    assert_eq!(first, draw("7"));
    assert_ne!(first, draw("8"));
}

#[test]
fn a_decline_hits_no_advice_no_reversal_and_no_network_management() {
    let host = SimulatedHost::start(&["--decline", "1"]);
    let network = Message::new("0800", &[(7, "1130045900"), (11, "000006"), (70, "301")]);
    let types = ["0100", "0101", "0200", "0120", "0420", "0421"];
    let messages = (0..).zip(types).map(|(number, mti)| sale(number).mti(mti));
    let answers = ask_all(&host, messages.chain([network]));
    let codes: Vec<_> = answers.iter().map(|answer| answer.get(39).unwrap()).collect();
    assert_eq!(codes, ["51", "51", "51", "00", "00", "00", "00"]);
    let approved = answers.iter().filter(|answer| answer.get(38).is_some()).count();
    assert_eq!(approved, 0);
}

#[test]
fn a_late_answer_comes_after_ordinary_ones_to_what_was_sent_later() {
    let host = SimulatedHost::start(&["--late", "0.5", "--late-by", "500ms"]);
    let mut peer = host.connect();
    send_all(&mut peer, (0..20).map(sale));
    let answers: Vec<_> = (0..20).map(|_| stan(&peer.receive_message())).collect();
    let first_late = (1..20).find(|at| answers[*at] < answers[at - 1]).expect("an earlier STAN");
    let (ordinary, late) = answers.split_at(first_late);
    assert!(ordinary.is_sorted() && late.is_sorted(), "{answers:?}");
    assert_eq!(report_of(host)["late"], late.len());
}

#[test]
fn an_answer_that_is_owed_when_its_connection_ends_is_not_sent() {
    let host = SimulatedHost::start(&["--delay", "1h"]);
    let mut peer = host.connect();
    send_all(&mut peer, (0..3).map(sale));
    peer.half_close();
    assert!(until_the_end(&mut peer).is_empty());
    let mut other = host.connect();
    other.send(&sale(4).encode());
    // A frame that cannot be cut ends the connection, so that what came before has been read.
    other.send_raw(&[0xFF, 0xFF]);
    other.half_close();
    assert!(until_the_end(&mut other).is_empty());
    let report = report_of(host);
    assert_eq!((&report["unsent"], &report["answered"]), (&json!(4), &json!(0)), "{report}");
}

#[test]
fn answers_carry_the_header_of_their_request_turned_round() {
    for header in Header::ALL {
        for manner in [&[][..], &["--echo"]] {
            let name = header.name();
            let host = SimulatedHost::start(&[&["--header", &name], manner].concat());
            let mut peer = host.connect();
            let request = header.before(&sale(1).encode());
            peer.send(&request);
            let answer = peer.receive();
            let body = header.behind(&answer);
            assert_eq!(answer, header.answer_before(&request, body), "{name}");
            assert_eq!(Message::decode(body).get(0), Some("0110"), "{name}");
        }
    }
}

#[test]
fn an_echo_gives_the_message_back_as_its_own_answer() {
    let host = SimulatedHost::start(&["--echo"]);
    let answers = ask_all(&host, [sale(1), sale(2).mti("0421").with(52, "0011223344556677")]);
    let echoed = [sale(1).mti("0110"), sale(2).mti("0430").with(52, "0011223344556677")];
    assert_eq!(answers, echoed);
    assert_eq!(report_of(host)["messages"], json!(2));
}

#[test]
fn it_answers_in_every_framing() {
    for framing in Framing::ALL {
        let name = framing.name();
        let host = SimulatedHost::start(&["--framing", &name]);
        let mut peer = Peer::connect(host.address(), framing);
        peer.send(&sale(1).encode());
        let answer = peer.receive_message();
        assert_eq!((answer.get(0), answer.get(39)), (Some("0110"), Some("00")), "{name}");
    }
}

#[test]
fn it_answers_in_every_preset() {
    let mut seen = 0;
    for preset in Dialect::PRESETS.iter().filter(|preset| **preset != "iso8583_rs_sample") {
        let host = SimulatedHost::start(&["--dialect", preset]);
        let mut peer = host.connect();
        let mut request = purchase(preset);
        let dialect = Dialect::preset(preset).unwrap();
        if preset.starts_with("iso93") {
            // The first digit of a version is the first of the message, in whatever encoding.
            request[0] |= if dialect.mti() == MtiEncoding::Bcd { 0x10 } else { 1 };
        }
        peer.send(&request);
        let answer = peer.receive();
        let mut spans = Spans::default();
        let answer = View::parse(&dialect, &answer, &mut spans).unwrap();
        let approved = if preset.starts_with("iso93") { "000" } else { "00" };
        let code = answer.text::<4>(39).unwrap();
        assert_eq!((answer.mti().number() % 1_000, answer.fault()), (110, None), "{preset}");
        assert_eq!(code.as_bytes(), approved.as_bytes(), "{preset}");
        assert_eq!(answer.text::<6>(11).unwrap().as_bytes(), b"123456", "{preset}");
        seen += 1;
    }
    assert!(seen >= 11, "{seen} presets");
}

#[test]
fn options_that_say_nothing_or_contradict_each_other_are_usage_errors() {
    for arguments in [
        &["--drop", "1.5"] as &[&str],
        &["--drop", "NaN"],
        &["--delay", "20"],
        &["--delay", "2h"],
        &["--late", "0.5"],
        &["--late-by", "2s"],
        &["--jitter", "1ms", "--tail", "1ms"],
        &["--mid-frame"],
        &["--close-after", "0"],
        &["--slow-read", "0"],
        &["--echo", "--drop", "0.1"],
        &["--script", "a.toml", "--delay", "1ms"],
        &["--script", "a.toml", "--echo"],
        &["--framing", "be17"],
        &["--header", "tpdu+65"],
        &["--dialect", "iso88"],
        &["--seconds", "0"],
    ] {
        let arguments = [&["simulate", "host", "--listen", "127.0.0.1:0"], arguments].concat();
        let output = tollgate(&arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(64), 0), "{arguments:?}");
    }
    assert_eq!(tollgate(&["simulate", "host"]).status.code(), Some(64));
}

#[test]
fn an_address_that_is_taken_is_a_failure_that_names_it() {
    let host = SimulatedHost::start(&[]);
    let address = host.address().to_string();
    let output = tollgate(&["simulate", "host", "--listen", &address]);
    let why = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{why}");
    assert!(why.starts_with(&format!("cannot listen on {address}: ")), "{why}");
    wait_for("it still answers", || (ask_all(&host, [sale(1)]).len() == 1).then_some(()));
}

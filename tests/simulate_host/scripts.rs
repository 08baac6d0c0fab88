//! Scripts: phases that follow each other, exceptions within one, and what is said of a faulty one.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::json;

use super::{CARD, ask_all, report_of, sale, script, stans};
use crate::support::message::Message;
use crate::support::peer::{Framing, Peer};
use crate::support::proxy::tollgate;
use crate::support::simulated::SimulatedHost;
use crate::support::{PATIENCE, wait_for};

#[track_caller]
fn start(text: &str) -> SimulatedHost {
    SimulatedHost::start(&["--script", script(text).to_str().unwrap()])
}

/// The same on an address of its own, so that no other connection takes the port while nobody
/// listens there.
#[track_caller]
fn start_apart(text: &str) -> SimulatedHost {
    static NUMBER: AtomicU8 = AtomicU8::new(1);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = format!("127.{}.{high}.{low}:0", 250 - number);
    SimulatedHost::start_at(&address, &["--script", script(text).to_str().unwrap()])
}

/// A connection of its own on which a sale was answered, with Field 39 of the answer; `None` without
/// a connection, or when it ends unanswered.
fn answered(host: &SimulatedHost) -> Option<(Peer, String)> {
    let stream = TcpStream::connect(host.address()).ok()?;
    let mut peer = Peer::new(stream, Framing::Be16);
    peer.stream.write_all(&Framing::Be16.wrap(&sale(1).encode())).ok()?;
    let answer = Message::decode(&peer.receive_within(PATIENCE)??);
    Some((peer, answer.get(39)?.to_owned()))
}

fn is_answered(host: &SimulatedHost, code: &str) -> Option<()> {
    answered(host).filter(|(_, answer)| answer == code).map(drop)
}

fn is_refused(host: &SimulatedHost) -> bool {
    TcpStream::connect(host.address())
        .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[test]
fn phases_follow_each_other_and_come_again() {
    let text = "at_the_end = \"repeat\"\n\
                [[phase]]\nfor = \"300ms\"\n\
                [[phase]]\nfor = \"300ms\"\ndecline = 1\n\
                [[phase]]\nfor = \"300ms\"\nlisten = false\n";
    let host = start_apart(text);
    for _ in 0..2 {
        for code in ["00", "51"] {
            wait_for(code, || is_answered(&host, code));
        }
        wait_for("connections are refused", || is_refused(&host).then_some(()));
    }
    let report = report_of(host);
    assert!((1..=3).contains(&report["phase"].as_u64().unwrap()), "{report}");
}

#[test]
fn a_host_that_does_not_listen_has_no_connections_and_one_that_closes_all_goes_on() {
    for closes in ["listen = false", "close_all = true"] {
        let text = format!(
            "at_the_end = \"repeat\"\n[[phase]]\nfor = \"300ms\"\n[[phase]]\nfor = \"300ms\"\n{closes}\n"
        );
        let host = start_apart(&text);
        let (mut peer, _) = wait_for("an answer", || answered(&host));
        peer.expect_end();
        wait_for("another answer", || answered(&host));
        let report = report_of(host);
        assert!(report["closed"].as_u64().unwrap() > 0, "{report}");
    }
}

#[test]
fn the_last_phase_goes_on_if_none_follows() {
    let host = start("[[phase]]\nfor = \"10ms\"\n[[phase]]\ndecline = 1\n");
    wait_for("the last phase", || is_answered(&host, "51"));
    let answers = ask_all(&host, (0..20).map(sale));
    assert!(answers.len() == 20 && answers.iter().all(|answer| answer.get(39) == Some("51")));
    assert_eq!(report_of(host)["phase"], 2);
}

#[test]
fn exceptions_are_for_the_messages_that_they_name_and_the_first_that_fits_holds() {
    let host = start(
        "[[phase]]\n\
         [[phase.answer]]\nbin = \"555555-555559\"\ncode = \"05\"\n\
         [[phase.answer]]\nmti = \"0420\"\ndrop = 1\n\
         [[phase.answer]]\nmerchant = \"SHOP0002\"\namount_min = 5000\ncode = \"61\"\n\
         [[phase.answer]]\noperation = \"refund\"\ncode = \"57\"\n\
         [[phase.answer]]\nmerchant = \"SHOP0002\"\ncode = \"03\"\n",
    );
    let shop = |stan| sale(stan).with(42, "SHOP0002       ");
    let messages = [
        sale(1),
        Message::sale("5555555555554444", 2),
        Message::sale("5555555555554444", 3).mti("0120"),
        sale(4).mti("0420"),
        sale(5).mti("0421"),
        shop(6),
        shop(7).with(4, "000000005000"),
        shop(8).with(3, "200000"),
        sale(9).without(42),
    ];
    let answers = ask_all(&host, messages);
    let said: Vec<_> = answers.iter().map(|answer| answer.get(39).unwrap()).collect();
    assert_eq!(stans(&answers), [1, 2, 3, 5, 6, 7, 8, 9]);
    assert_eq!(said, ["00", "05", "00", "00", "03", "61", "57", "00"]);
    assert_eq!(report_of(host)["dropped"], 1);
}

#[test]
fn an_exception_that_takes_longer_lets_later_messages_overtake() {
    let host = start(
        "[[phase]]\n[[phase.answer]]\nmti = \"0200\"\ndelay = \"300ms\"\njitter = \"100ms\"\n",
    );
    let mut peer = host.connect();
    super::send_all(&mut peer, [sale(1).mti("0200"), sale(2), sale(3)]);
    let answers = [peer.receive_message(), peer.receive_message(), peer.receive_message()];
    assert_eq!(stans(&answers), [2, 3, 1]);
}

#[test]
fn every_fault_of_a_script_is_said_at_once_with_its_line_and_its_key() {
    let path = script(include_str!("../../fixtures/script/faults.toml"));
    let output = tollgate(&[
        "simulate",
        "host",
        "--listen",
        "127.0.0.1:0",
        "--script",
        path.to_str().unwrap(),
    ]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(78), 0));
    let said = String::from_utf8(output.stderr).unwrap();
    let said = said.replace(&format!("{}: ", path.display()), "");
    assert_eq!(said, include_str!("../../fixtures/script/faults.err"));
    assert!(!said.contains(CARD));
    for (text, fault) in [
        ("", "line 1: phase: there is none; write a [[phase]] with for and what it does"),
        ("[[phase]]\nfor = 60\n", "line 2: phase.for: 60 is not a duration; "),
        ("[phase]\nfor = \"1s\"\n", "line 1: phase: is not a list of sections; "),
        (
            "at_the_end = \"repeat\"\n[[phase]]\n",
            "line 2: phase.for: is missing; write how long the phase lasts, such as \"60s\"",
        ),
    ] {
        let path = script(text);
        let output = tollgate(&[
            "simulate",
            "host",
            "--listen",
            "127.0.0.1:0",
            "--script",
            path.to_str().unwrap(),
        ]);
        let said = String::from_utf8(output.stderr).unwrap();
        let begins = format!("{}: {fault}", path.display());
        assert_eq!(output.status.code(), Some(78), "{text}");
        assert!(said.starts_with(&begins) && said.lines().count() == 1, "{text}\n{said}");
    }
    let output = tollgate(&[
        "simulate",
        "host",
        "--listen",
        "127.0.0.1:0",
        "--script",
        "no/such/script.toml",
    ]);
    assert_eq!(output.status.code(), Some(78));
}

#[test]
fn the_scripts_that_are_shipped_are_sound_and_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/scripts");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let host = SimulatedHost::start(&["--script", path.to_str().unwrap()]);
        let mut peer = host.connect();
        peer.send(&sale(2).encode());
        assert_eq!(stans(&[peer.receive_message()]), [2]);
        assert_eq!(report_of(host)["phase"], json!(1));
        seen += 1;
    }
    assert!(seen >= 2, "{seen} scripts");
}

#[test]
fn a_script_may_begin_without_anybody_listening() {
    let host = start_apart("[[phase]]\nlisten = false\n");
    wait_for("connections are refused", || is_refused(&host).then_some(()));
    let report = report_of(host);
    assert_eq!((&report["listening"], &report["accepted"]), (&json!(false), &json!(0)), "{report}");
}

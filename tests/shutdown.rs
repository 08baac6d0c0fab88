//! How the process ends and why it does not begin, and what it says when a link or its host comes
//! and goes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use support::host::Host;
use support::message::Message;
use support::peer::{Framing, Peer};
use support::proxy::{Proxy, run_to_its_end, tollgate};
use support::{PATIENCE, config, wait_for};

const CARD: &str = "4111111111111111";
const UP: &str = r#"tollgate_upstream_up{link="visa",upstream="visa-host"}"#;
/// A grace that does not pass while a test runs.
const LONG: &str = "10m";

#[track_caller]
fn start(grace: &str, deadline: &str) -> (Proxy, Peer) {
    let host = Host::listen(Framing::Be16);
    let deadline = format!("deadline = \"{deadline}\"");
    let link = config::link("visa", host.address(), &deadline, "connections = 1");
    let proxy = Proxy::start(&format!("{}{link}", config::node(grace)));
    let at_host = host.accept();
    proxy.wait_for_gauge(UP, 1.0);
    (proxy, at_host)
}

fn session(proxy: &Proxy) -> Peer {
    proxy.connect("visa", Framing::Be16)
}

fn sale(stan: u32) -> Message {
    Message::sale(CARD, stan)
}

#[track_caller]
fn is_served(terminal: &mut Peer, at_host: &mut Peer, stan: u32) {
    terminal.send(&sale(stan).encode());
    assert_eq!(at_host.receive_message(), sale(stan));
    at_host.send(&sale(stan).answer("00").encode());
    assert_eq!(terminal.receive_message(), sale(stan).answer("00"));
}

/// The shutdown has begun: no more connections, and no more traffic wanted.
#[track_caller]
fn wait_until_stopping(proxy: &Proxy) {
    wait_for("not ready", || (!proxy.page("/readyz").0).then_some(()));
    let address = proxy.address("visa");
    wait_for("the listener is closed", || TcpStream::connect(address).err());
}

#[test]
fn a_stop_serves_open_sessions_to_their_end_and_accepts_no_others() {
    for signal in ["TERM", "INT"] {
        let (mut proxy, mut at_host) = start(LONG, "50s");
        let (mut one, mut other) = (session(&proxy), session(&proxy));
        is_served(&mut one, &mut at_host, 1);
        other.send(&sale(2).encode());
        assert_eq!(at_host.receive_message(), sale(2));
        assert!(proxy.page("/readyz").0);
        proxy.signal(signal);
        wait_until_stopping(&proxy);
        // What was in flight, what comes now, and the operators are still served.
        at_host.send(&sale(2).answer("00").encode());
        assert_eq!(other.receive_message(), sale(2).answer("00"));
        is_served(&mut one, &mut at_host, 3);
        assert!(proxy.page("/healthz").0);
        assert_eq!(proxy.metric("tollgate_ready"), 0.0);
        one.half_close();
        one.expect_end();
        is_served(&mut other, &mut at_host, 4);
        drop(other);
        assert_eq!(proxy.wait().code(), Some(0), "{signal}");
        assert_eq!(proxy.log_lines(&[&format!("SIG{signal}")]), 1);
        assert_eq!(proxy.log_lines(&["ERROR"]), 0);
    }
}

#[test]
fn what_is_in_flight_at_the_end_of_the_grace_is_answered_by_the_host_or_at_the_deadline() {
    for signal in ["TERM", "INT"] {
        let (mut proxy, mut at_host) = start("0s", "2s");
        let mut terminal = session(&proxy);
        let messages = [sale(1), sale(2), sale(3).mti("0120")];
        for message in &messages {
            terminal.send(&message.encode());
            assert_eq!(&at_host.receive_message(), message);
        }
        proxy.signal(signal);
        wait_until_stopping(&proxy);
        for message in [&messages[2], &messages[0]] {
            at_host.send(&message.answer("00").encode());
            assert_eq!(terminal.receive_message(), message.answer("00"));
        }
        let at_deadline = terminal.receive_message();
        assert_eq!((at_deadline.get(11), at_deadline.get(39)), (Some("000002"), Some("91")));
        terminal.expect_end();
        assert_eq!(proxy.wait().code(), Some(0), "{signal}");
        assert_eq!(proxy.log_lines(&["ERROR"]), 0);
    }
}

/// Hundreds of them: each is answered once, by whoever is in time.
#[test]
fn hundreds_of_requests_in_flight_are_each_answered_once_at_the_end() {
    const SALES: u32 = 300;
    let (mut proxy, mut at_host) = start("0s", "3s");
    let mut terminals = [session(&proxy), session(&proxy), session(&proxy)];
    for stan in 1..=SALES {
        terminals[stan as usize % 3].send(&sale(stan).encode());
    }
    for _ in 1..=SALES {
        at_host.receive();
    }
    proxy.signal("TERM");
    wait_until_stopping(&proxy);
    for stan in (1..=SALES).filter(|stan| stan % 2 == 0) {
        at_host.send(&sale(stan).answer("00").encode());
    }
    let mut answered = BTreeSet::new();
    for terminal in &mut terminals {
        for _ in 0..SALES / 3 {
            let answer = terminal.receive_message();
            let stan: u32 = answer.get(11).unwrap().parse().unwrap();
            assert!(answered.insert(stan), "answered twice: {stan}");
            // The host may have been too late on a busy machine.
            let by_host = stan.is_multiple_of(2) && answer == sale(stan).answer("00");
            assert!(by_host || answer.get(39) == Some("91"), "{stan}");
        }
        terminal.expect_end();
    }
    assert_eq!(answered.len(), SALES as usize);
    assert_eq!(proxy.wait().code(), Some(0));
    assert_eq!(proxy.log_lines(&["ERROR"]), 0);
}

/// Dropped unanswered, it would cost its sender the whole of a time-out.
#[test]
fn what_comes_while_the_last_answers_are_waited_for_meets_no_host_and_is_answered_at_once() {
    let (mut proxy, mut at_host) = start("0s", "50s");
    let (mut waiting, mut other) = (session(&proxy), session(&proxy));
    waiting.send(&sale(1).encode());
    assert_eq!(at_host.receive_message(), sale(1));
    proxy.signal("TERM");
    // It is owed nothing, and is told so when nothing more is forwarded.
    other.expect_end();
    waiting.send(&sale(2).mti("0420").encode());
    for stan in [3, 4] {
        waiting.send(&sale(stan).encode());
        let answer = waiting.receive_message();
        assert_eq!((answer.get(0), answer.get(39)), (Some("0110"), Some("91")));
        assert_eq!(answer.get(37), sale(stan).get(37));
    }
    let unavailable = [r#"reason="unavailable""#];
    assert_eq!(proxy.metric_sum("tollgate_rejects_total", &unavailable), 2.0);
    assert_eq!(proxy.metric_sum("tollgate_unsent_total", &[]), 1.0);
    at_host.send(&sale(1).answer("00").encode());
    assert_eq!(waiting.receive_message(), sale(1).answer("00"));
    waiting.expect_end();
    // Nothing of it reached the host.
    at_host.expect_end();
    assert_eq!(proxy.wait().code(), Some(0));
    assert_eq!(proxy.log_lines(&["ERROR"]), 0);
}

#[test]
fn a_hangup_ends_nothing() {
    let (mut proxy, mut at_host) = start("0s", "2s");
    let mut terminal = session(&proxy);
    proxy.signal("HUP");
    proxy.wait_for_log("SIGHUP");
    is_served(&mut terminal, &mut at_host, 1);
    assert!(proxy.page("/readyz").0);
    proxy.signal("TERM");
    assert_eq!(proxy.wait().code(), Some(0));
}

/// A reset could take from a peer what it has not read yet.
#[test]
fn a_session_that_goes_on_sending_is_ended_and_not_reset() {
    let (mut proxy, mut at_host) = start("0s", "150ms");
    let mut terminal = session(&proxy);
    terminal.send(&sale(1).encode());
    assert_eq!(at_host.receive_message(), sale(1));
    let mut more = terminal.stream.try_clone().unwrap();
    let (ended, has_ended) = std::sync::mpsc::channel::<()>();
    let sender = std::thread::spawn(move || {
        let fields = [(7, "1130045900"), (11, "000002"), (70, "301")];
        let echo = Framing::Be16.wrap(&Message::new("0800", &fields).encode());
        while has_ended.try_recv().is_err() && more.write_all(&echo).is_ok() {}
    });
    // What the host is sent stands in nobody's way.
    let host = std::thread::spawn(move || {
        while at_host.receive_within(PATIENCE).is_some_and(|frame| frame.is_some()) {}
    });
    proxy.signal("TERM");
    let mut bytes = Vec::new();
    // An end, and not an error.
    terminal.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    terminal.stream.read_to_end(&mut bytes).unwrap();
    ended.send(()).unwrap();
    drop(terminal);
    let answer = Message::decode(&bytes[2..]);
    assert_eq!((answer.get(11), answer.get(39)), (Some("000001"), Some("91")));
    assert_eq!(proxy.wait().code(), Some(0));
    sender.join().unwrap();
    host.join().unwrap();
}

/// Their senders keep them and send them again, so that they do not make the end an unclean one.
#[test]
fn advices_without_the_hosts_answer_do_not_keep_the_process() {
    let (mut proxy, mut at_host) = start("0s", "150ms");
    let mut terminal = session(&proxy);
    terminal.send(&sale(1).mti("0120").encode());
    assert_eq!(at_host.receive_message(), sale(1).mti("0120"));
    proxy.signal("TERM");
    terminal.expect_end();
    assert_eq!(proxy.wait().code(), Some(0));
    assert_eq!(proxy.log_lines(&["WARN", "others=1"]), 1);
}

#[test]
fn a_second_signal_ends_at_once_and_says_so_in_the_exit_code() {
    for (first, second) in [("TERM", "TERM"), ("INT", "INT"), ("TERM", "INT")] {
        let (mut proxy, mut at_host) = start(LONG, "50s");
        let mut terminal = session(&proxy);
        terminal.send(&sale(1).encode());
        assert_eq!(at_host.receive_message(), sale(1));
        proxy.signal(first);
        wait_until_stopping(&proxy);
        proxy.signal(second);
        assert_eq!(proxy.wait().code(), Some(1), "{first}, {second}");
        terminal.expect_end();
    }
}

/// The same when the grace is over and what is in flight is waited for.
#[test]
fn a_second_signal_ends_the_wait_for_what_is_in_flight_as_well() {
    let (mut proxy, mut at_host) = start("0s", "50s");
    let mut terminal = session(&proxy);
    terminal.send(&sale(1).encode());
    assert_eq!(at_host.receive_message(), sale(1));
    proxy.signal("TERM");
    wait_until_stopping(&proxy);
    proxy.wait_for_log("waiting for what is in flight");
    proxy.signal("TERM");
    assert_eq!(proxy.wait().code(), Some(1));
}

#[test]
fn a_session_that_dies_during_the_end_does_not_make_it_unclean() {
    let (mut proxy, mut at_host) = start("0s", "50s");
    let mut terminal = session(&proxy);
    let mut other = session(&proxy);
    for stan in 1..=3 {
        terminal.send(&sale(stan).encode());
        assert_eq!(at_host.receive_message(), sale(stan));
    }
    other.send(&sale(9).encode());
    assert_eq!(at_host.receive_message(), sale(9));
    proxy.signal("TERM");
    proxy.wait_for_log("waiting for what is in flight");
    drop(terminal);
    for stan in [1, 2, 3] {
        at_host.send(&sale(stan).answer("00").encode());
        let answered = f64::from(stan);
        wait_for("the answer is dealt with", || {
            let delivered = proxy.metric_sum("tollgate_messages_total", &[r#"direction="answer""#]);
            let strays = proxy.metric_sum("tollgate_stray_messages_total", &[]);
            (delivered + strays >= answered).then_some(())
        });
    }
    at_host.send(&sale(9).answer("00").encode());
    assert_eq!(other.receive_message(), sale(9).answer("00"));
    other.expect_end();
    assert_eq!(proxy.wait().code(), Some(0));
}

#[test]
fn an_address_that_is_taken_is_named_and_nothing_is_served() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let host: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let link = config::link("visa", host, "", "");
    let free = r#"listen = "127.0.0.1:0""#;
    let occupied = format!(r#"listen = "{address}""#);
    let node = config::node("0s");
    for (config, whose) in [
        (format!("{node}{}", link.replace(free, &occupied)), "link visa"),
        (format!("{}{link}", node.replace(free, &occupied)), "admin"),
    ] {
        let output = run_to_its_end(&config);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let reason = format!("{whose}: cannot listen on {address}: ");
        assert!(
            said.lines().any(|line| line.contains("ERROR") && line.contains(&reason)),
            "{said}"
        );
        assert!(said.contains("in use"), "{said}");
        assert!(!said.contains(" ready "), "{said}");
    }
}

#[test]
fn a_wrong_configuration_and_a_wrong_command_line_have_exit_codes_of_their_own() {
    let host: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let wrong = config::link("visa", host, "deadlin = \"1s\"\nconnections_max = 0", "");
    let output = run_to_its_end(&format!("{}{wrong}", config::node("0s")));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(said.contains("deadlin") && said.contains("connections_max"), "{said}");
    assert!(!said.contains(" ready "), "{said}");

    let missing = tollgate(&["run", "--config", "/nonexistent/tollgate.toml"]);
    assert_eq!(missing.status.code(), Some(78));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("/nonexistent/tollgate.toml"));

    for usage in [&["run"][..], &["serve"], &["run", "--config"], &["run", "--port", "1"], &[]] {
        let output = tollgate(usage);
        assert_eq!(output.status.code(), Some(64), "{usage:?}");
        assert!(!output.stderr.is_empty(), "{usage:?}");
    }
    for asked in ["--help", "--version"] {
        let output = tollgate(&[asked]);
        assert_eq!(output.status.code(), Some(0), "{asked}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{asked}");
    }
}

/// How often the log says that something came up, and that it went down.
fn changes(proxy: &Proxy, up: &str, down: &str) -> (usize, usize) {
    (proxy.log_lines(&["link=visa", up]), proxy.log_lines(&["link=visa", down]))
}

#[test]
fn a_host_that_comes_and_goes_is_said_in_one_line_each() {
    let host = Host::listen(Framing::Be16);
    let address = host.address();
    let link = config::link("visa", address, "", "connections = 2");
    let proxy = Proxy::start(&format!("{}{link}", config::node("0s")));
    let sockets = r#"tollgate_upstream_sockets{link="visa",upstream="visa-host"}"#;
    let host_changes = || changes(&proxy, " host up", " host down");

    let connections = [host.accept(), host.accept()];
    proxy.wait_for_gauge(sockets, 2.0);
    assert_eq!(proxy.metric(UP), 1.0);
    proxy.wait_for_log(" host up");
    assert_eq!(host_changes(), (1, 0));

    // As long as one connection is up, so is the host.
    drop(host);
    let [one, other] = connections;
    drop(one);
    proxy.wait_for_gauge(sockets, 1.0);
    assert_eq!(proxy.metric(UP), 1.0);
    drop(other);
    proxy.wait_for_gauge(sockets, 0.0);
    assert_eq!(proxy.metric(UP), 0.0);
    proxy.wait_for_log(" host down");
    assert_eq!(host_changes(), (1, 1));

    let host = Host::listen_on(address, Framing::Be16);
    let _connections = [host.accept(), host.accept()];
    proxy.wait_for_gauge(sockets, 2.0);
    assert_eq!(proxy.metric(UP), 1.0);
    wait_for("said a second time", || (host_changes() == (2, 1)).then_some(()));
    assert!(proxy.page("/readyz").0);
}

#[test]
fn a_link_that_comes_and_goes_is_said_in_one_line_each() {
    let (proxy, mut at_host) = start("0s", "50s");
    let link_changes = || changes(&proxy, " link up", " link down");
    let state = |state: &str| {
        proxy.metric(&format!(r#"tollgate_link_state{{link="visa",state="{state}"}}"#))
    };
    let sockets = r#"tollgate_link_sockets{link="visa"}"#;
    assert_eq!((state("up"), state("down")), (0.0, 1.0));
    for round in 1..=2 {
        let (mut one, mut other) = (session(&proxy), session(&proxy));
        is_served(&mut one, &mut at_host, 1);
        is_served(&mut other, &mut at_host, 2);
        assert_eq!((state("up"), state("down")), (1.0, 0.0));
        drop(one);
        proxy.wait_for_gauge(sockets, 1.0);
        is_served(&mut other, &mut at_host, 3);
        wait_for("said up once", || (link_changes() == (round, round - 1)).then_some(()));
        drop(other);
        proxy.wait_for_gauge(sockets, 0.0);
        assert_eq!((state("up"), state("down")), (0.0, 1.0));
        wait_for("said down once", || (link_changes() == (round, round)).then_some(()));
    }
}

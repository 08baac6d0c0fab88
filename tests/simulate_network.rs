//! `tollgate simulate network`, as an operator in staging runs it: against a host, and through a
//! real proxy.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

mod support;

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::config::{link, node};
use support::proxy::{BINARY, Proxy};
use support::wait_for;
use tollgate::clock::{Clock, Moment};
use tollgate::iso8583::{Dialect, Spans, View};
use tollgate::peers::{Echo, Host, HostSettings};
use tollgate::wire::{Framing, Header, Splitter};

fn ascii() -> Dialect {
    Dialect::preset("iso87_ascii").unwrap()
}

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn echo() -> Echo {
    Echo::start(any_port(), Framing::Be16, Header::None, &ascii()).unwrap()
}

/// Starts `simulate network` against an address.
fn start(address: SocketAddr, arguments: &str) -> Child {
    Command::new(BINARY)
        .args(["simulate", "network", "--connect", &address.to_string()])
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What it says when it ends by itself.
#[track_caller]
fn finish(mut child: Child) -> Output {
    wait_for("the network ends by itself", || child.try_wait().unwrap());
    child.wait_with_output().unwrap()
}

/// Its report in JSON.
#[track_caller]
fn report(address: SocketAddr, arguments: &str) -> Value {
    report_of(finish(start(address, &format!("--json {arguments}"))))
}

#[track_caller]
fn report_of(output: Output) -> Value {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && err.is_empty(), "{out}\n{err}");
    serde_json::from_str(&out).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn count(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("no {name} in {report}"))
}

#[track_caller]
fn micros(report: &Value, of: &str, share: &str) -> f64 {
    report[of][share].as_f64().unwrap_or_else(|| panic!("no {of}.{share} in {report}"))
}

/// Takes one connection and reads so many messages of it without a word, then lets it go.
fn silent_host(messages: usize) -> (SocketAddr, JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind(any_port()).unwrap();
    let address = listener.local_addr().unwrap();
    let host = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_messages(&mut stream, messages)
    });
    (address, host)
}

/// The first messages of a connection; fewer when it ends before.
fn read_messages(stream: &mut TcpStream, messages: usize) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::new(Framing::Be16, 65_535);
    let (mut read, mut bytes) = (Vec::new(), Vec::new());
    let mut chunk = [0; 4_096];
    while read.len() < messages {
        let got = stream.read(&mut chunk).unwrap_or(0);
        if got == 0 {
            break;
        }
        bytes.extend_from_slice(&chunk[..got]);
        let mut used = 0;
        while let Some(split) = splitter.split(&bytes[used..]).unwrap() {
            read.push(split.frame.to_vec());
            used += split.whole.len();
        }
        bytes.drain(..used);
    }
    read
}

#[test]
fn all_that_was_sent_is_accounted_for() {
    let echo = echo();
    let report =
        report(echo.address(), "--connections 3 --window 4 --seconds 0.5 --mix sale=9,reversal=1");
    let sent = count(&report, "sent");
    assert!(sent > 100, "{report}");
    assert_eq!((count(&report, "answered"), count(&report, "other")), (sent, sent));
    assert_eq!(echo.answered(), sent);
    for none in [
        "approved",
        "declined",
        "refused",
        "overdue",
        "unanswered",
        "unmatched",
        "unsent",
        "retries",
        "repeats",
        "closed_connections",
    ] {
        assert_eq!(count(&report, none), 0, "{none}: {report}");
    }
    assert_eq!((count(&report, "connections"), count(&report, "window")), (3, 4));
    assert_eq!(count(&report["host_answers"], "count"), sent);
    assert!(report["refusals"]["p50_us"].is_null() && report["rate"].is_null(), "{report}");
    let shares = ["p50_us", "p90_us", "p99_us", "p99_9_us", "max_us"];
    let latencies = shares.map(|share| micros(&report, "host_answers", share));
    assert!(latencies[0] > 0.0 && latencies.is_sorted(), "{report}");
    for above_zero in ["seconds", "messages_per_second", "cpu_utilisation", "cpu_ns_per_message"] {
        assert!(report[above_zero].as_f64().unwrap() > 0.0, "{above_zero}: {report}");
    }
    let saturated = report["cpu_utilisation"].as_f64().unwrap() > 0.9;
    assert_eq!(report["saturated"].as_bool().unwrap(), saturated);
}

#[test]
fn people_get_a_screen() {
    let echo = echo();
    let output = finish(start(echo.address(), "--seconds 0.2"));
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}");
    for part in
        ["1 in flight on each of 1 connection", "messages/s", "p99.9", "ns of CPU a message"]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(out.lines().all(|line| line.len() <= 100), "{out}");
}

#[test]
fn every_layout_framing_and_header_goes_there_and_back() {
    for (dialect, framing, header) in [
        ("iso87_ascii", "ascii4", "base24"),
        ("iso87_ascii", "etx", "none"),
        ("iso87_ascii_binbitmap", "be32_incl", "fixed:3"),
        ("iso87_bcd", "bcd2", "tpdu"),
        ("iso87_bcd_left", "rbp6", "none"),
        ("visa_like_base1", "vmlh4", "visa"),
        ("mastercard_like_ebcdic", "be16_etx", "none"),
        ("mastercard_like_ascii", "hex4", "none"),
        ("cup_pos_bcd", "be16", "tpdu+6"),
    ] {
        let layout = Dialect::preset(dialect).unwrap();
        let header_kind = Header::from_name(header).unwrap();
        let framing_kind = Framing::from_name(framing).unwrap();
        let echo = Echo::start(any_port(), framing_kind, header_kind, &layout).unwrap();
        let arguments = format!(
            "--dialect {dialect} --framing {framing} --header {header} --window 7 --seconds 0.1 \
             --mix purchase=3,sale=3,advice=1"
        );
        let report = report(echo.address(), &arguments);
        let sent = count(&report, "sent");
        assert!(sent > 0 && count(&report, "answered") == sent, "{arguments}: {report}");
        assert_eq!((count(&report, "unmatched"), echo.answered()), (0, sent), "{arguments}");
    }
}

#[test]
fn no_more_than_the_window_is_ever_in_flight() {
    let (address, host) = silent_host(usize::MAX);
    // Nothing is given up before it is over.
    let arguments = "--window 5 --mix purchase=1,sale=1 --seconds 0.3 --patience 1s";
    let report = report(address, arguments);
    assert_eq!((count(&report, "sent"), count(&report, "unanswered")), (5, 5), "{report}");
    assert_eq!(host.join().unwrap().len(), 5);
}

#[test]
fn an_answer_that_never_comes_does_not_hold_the_window_for_good() {
    let (address, host) = silent_host(usize::MAX);
    let report = report(address, "--mix sale=1 --seconds 1 --patience 100ms");
    let sent = count(&report, "sent");
    assert!(sent > 1 && count(&report, "unanswered") == sent, "{report}");
    assert_eq!(host.join().unwrap().len() as u64, sent);
}

#[test]
fn equal_seeds_send_equal_messages() {
    let messages = |seed: &str| {
        let (address, host) = silent_host(200);
        let arguments = format!("--window 200 --seconds 0.1 --patience 10ms --seed {seed}");
        let output = finish(start(address, &arguments));
        assert!(text(&output.stdout).contains("sent"), "{}", text(&output.stderr));
        let dialect = ascii();
        let mut spans = Spans::default();
        let parts: Vec<_> = host
            .join()
            .unwrap()
            .iter()
            .map(|message| {
                let view = View::parse(&dialect, message, &mut spans).unwrap();
                assert_eq!(view.fault(), None);
                // All but the time.
                let fields = [2, 3, 4, 11, 18, 32, 35, 41, 42];
                (view.mti(), fields.map(|de| view.raw(de).map(<[u8]>::to_vec)))
            })
            .collect();
        assert!(parts.len() >= 200, "{}", parts.len());
        parts[..200].to_vec()
    };
    let first = messages("7");
    assert!(first == messages("7"), "the same");
    assert!(first != messages("8"), "not the same");
    let shops: std::collections::BTreeSet<_> = first.iter().map(|(_, fields)| &fields[8]).collect();
    assert!(shops.len() > 100, "{} shops of 1,000 in 200 messages", shops.len());
}

#[test]
fn what_the_proxy_refuses_is_told_apart_and_tried_again() {
    let dialect = Arc::new(ascii());
    let host = Host::start(HostSettings::loopback(Framing::Be16, dialect)).unwrap();
    let limit = "[[limit]]\nname = \"all\"\nper = []\nrate = 1\nburst = 1\nmode = \"enforce\"";
    let config = format!("{}{}{limit}", node("1s"), link("net", host.address(), "", ""));
    let proxy = Proxy::start(&config);
    proxy.wait_for_metric("tollgate_upstream_up{link=\"net\",upstream=\"net-host\"}", 1.0);
    let address = proxy.address("net");
    let common = "--rate 200 --connections 2 --mix purchase=9,reversal=1 --at-once 20s";
    let report_with =
        |more: &str| report(address, &format!("{common} --seconds 1 --retry-after 50ms {more}"));

    let report = report_with("--retry 1 --retries 2");
    let (sent, refused) = (count(&report, "sent"), count(&report, "refused"));
    let (approved, retries) = (count(&report, "approved"), count(&report, "retries"));
    assert_eq!((approved + refused, count(&report, "unanswered")), (sent, 0), "{report}");
    assert!(refused > 0 && retries > 0 && retries <= refused, "{report}");
    // Of three attempts two are retries; the last ones of the run are not made.
    assert!(retries * 3 <= sent * 2, "{report}");
    assert_eq!(count(&report["refusals"], "count"), refused);
    assert_eq!(count(&report["host_answers"], "count"), approved);
    assert!(approved >= host.received_of(420), "no reversal is refused: {report}");

    let report = report_with("");
    assert!(count(&report, "refused") > 0 && count(&report, "retries") == 0, "{report}");
}

#[test]
fn an_open_loop_counts_from_the_moment_at_which_a_message_was_to_be_sent() {
    let echo = echo();
    let arguments = "--json --rate 500 --seconds 2 --seed 3";
    let clock = Clock::start();
    let child = start(echo.address(), arguments);
    wait_for("it is at work", || (echo.answered() >= 50).then_some(()));
    // For so long nothing is sent, and all that was to be is late.
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::STOP).unwrap();
    let stopped = clock.now();
    let stall = std::time::Duration::from_millis(400);
    wait_for("time goes by", || (clock.now().since(stopped) >= stall).then_some(()));
    kill_process(pid, Signal::CONT).unwrap();
    let stalled = report_of(finish(child));

    let undisturbed = report(echo.address(), "--rate 500 --seconds 2 --seed 3");
    assert_eq!(count(&stalled, "sent"), count(&undisturbed, "sent"), "none was left out");
    assert_eq!(count(&stalled, "answered"), count(&stalled, "sent"));
    // A fifth of all messages was late, by up to the whole of it.
    assert!(micros(&stalled, "host_answers", "max_us") > 300_000.0, "{stalled}");
    assert!(micros(&stalled, "host_answers", "p90_us") > 50_000.0, "{stalled}");
    assert!(clock.now() > Moment::START);
}

#[test]
fn an_open_loop_goes_on_sending_while_the_host_says_nothing() {
    let (address, host) = silent_host(usize::MAX);
    let report = report(address, "--rate 300 --seconds 0.5 --mix sale=1 --patience 1s");
    let sent = count(&report, "sent");
    assert!(sent > 50 && count(&report, "unanswered") == sent, "{report}");
    assert_eq!(host.join().unwrap().len() as u64, sent);
}

#[test]
fn the_time_of_warming_up_is_not_counted() {
    let echo = echo();
    let report = report(echo.address(), "--warmup 0.5 --seconds 0.2 --window 2");
    let sent = count(&report, "sent");
    assert!(sent > 0 && echo.answered() > sent, "{} of {report}", echo.answered());
    assert_eq!((count(&report, "answered"), count(&report, "unmatched")), (sent, 0));
}

#[test]
fn an_interrupt_ends_it_with_its_report() {
    let echo = echo();
    let child = start(echo.address(), "--json --seconds 3600");
    wait_for("it is at work", || (echo.answered() > 0).then_some(()));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let report = report_of(finish(child));
    assert!(count(&report, "sent") > 0, "{report}");
    assert_eq!(count(&report, "unanswered"), 0);
}

#[test]
fn a_run_that_nobody_listens_to_fails() {
    let address = echo().address();
    let output = finish(start(address, "--seconds 0.1"));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot connect"), "{}", text(&output.stderr));

    let (address, host) = silent_host(1);
    let output = finish(start(address, "--window 3 --seconds 60"));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("closed connections"), "{}", text(&output.stdout));
    assert!(!host.join().unwrap().is_empty());
}

#[test]
fn what_cannot_be_meant_is_refused_as_usage() {
    for (arguments, why) in [
        ("", "--connect"),
        ("--connect 127.0.0.1:9 --window 2 --rate 5", "cannot be used with"),
        ("--connect 127.0.0.1:9 --rate 0", "write a number from"),
        ("--connect 127.0.0.1:9 --window 0", "--window"),
        ("--connect 127.0.0.1:9 --mix cash=1", "the kinds are purchase"),
        ("--connect 127.0.0.1:9 --retry 1.5", "write a number from"),
        ("--connect 127.0.0.1:9 --patience 5", "a number and a unit"),
        ("--connect 127.0.0.1:9 --framing be17", "unknown framing"),
        ("--connect 127.0.0.1:9 --dialect iso2003", "there is no such dialect"),
        ("--connect 127.0.0.1:9 --dialect iso93_ascii", "messages are of ISO 8583:1987"),
        ("--connect here", "ADDRESS:PORT"),
    ] {
        let output = Command::new(BINARY)
            .args(["simulate", "network"])
            .args(arguments.split_whitespace())
            .output()
            .unwrap();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{arguments}: {err}");
        assert!(err.contains(why) && output.stdout.is_empty(), "{arguments}: {err}");
    }
}

//! Sessions that end in every way there is, that send what cannot be cut, that are too slow, or too
//! many: what is in flight is still delivered, and no other session feels it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use support::host::Host;
use support::message::Message;
use support::peer::{Framing, Peer};
use support::proxy::{BINARY, Proxy};
use support::{config, wait_for};

const CARD: &str = "4111111111111111";
const SOCKETS: &str = r#"tollgate_link_sockets{link="visa"}"#;

/// The proxy with one link and one connection to its host, which the test holds.
#[track_caller]
fn start(link_keys: &str, upstream_keys: &str) -> (Proxy, Peer) {
    start_with_deadline("50s", link_keys, upstream_keys)
}

#[track_caller]
fn start_with_deadline(deadline: &str, link_keys: &str, upstream_keys: &str) -> (Proxy, Peer) {
    let host = Host::listen(Framing::Be16);
    let link_keys = format!("deadline = \"{deadline}\"\n{link_keys}");
    let upstream_keys = format!("connections = 1\n{upstream_keys}");
    let link = config::link("visa", host.address(), &link_keys, &upstream_keys);
    let proxy = Proxy::start(&format!("{}{link}", config::node("0s")));
    let at_host = host.accept();
    proxy.wait_for_gauge(r#"tollgate_upstream_up{link="visa",upstream="visa-host"}"#, 1.0);
    (proxy, at_host)
}

fn session(proxy: &Proxy) -> Peer {
    proxy.connect("visa", Framing::Be16)
}

fn sale(terminal: u32, stan: u32) -> Message {
    Message::sale(CARD, stan).with(41, &format!("TERM{terminal:04}"))
}

fn closed(cause: &str) -> String {
    format!(r#"tollgate_sessions_closed_total{{link="visa",cause="{cause}"}}"#)
}

/// A session is served by its host; nothing else is on its way to either of them.
#[track_caller]
fn is_served(terminal: &mut Peer, at_host: &mut Peer, number: u32, stan: u32) {
    terminal.send(&sale(number, stan).encode());
    assert_eq!(at_host.receive_message(), sale(number, stan));
    at_host.send(&sale(number, stan).answer("00").encode());
    assert_eq!(terminal.receive_message(), sale(number, stan).answer("00"));
}

#[test]
fn a_session_that_sends_nothing_more_still_gets_what_is_in_flight_and_is_then_closed() {
    let (proxy, mut at_host) = start("", "");
    let mut terminal = session(&proxy);
    let messages = [sale(1, 1), sale(1, 2).mti("0120"), sale(1, 3), sale(1, 4).mti("0420")];
    for message in &messages {
        terminal.send(&message.encode());
    }
    terminal.half_close();
    for message in &messages {
        assert_eq!(&at_host.receive_message(), message);
    }
    let mut other = session(&proxy);
    is_served(&mut other, &mut at_host, 2, 1);
    for message in messages.iter().rev() {
        at_host.send(&message.answer("00").encode());
        assert_eq!(terminal.receive_message(), message.answer("00"));
    }
    terminal.expect_end();
    is_served(&mut other, &mut at_host, 2, 2);
}

#[test]
fn a_session_that_sends_nothing_more_gets_its_local_answers_too() {
    let (proxy, mut at_host) = start_with_deadline("150ms", "", "");
    let mut terminal = session(&proxy);
    terminal.send(&sale(1, 1).encode());
    terminal.half_close();
    assert_eq!(at_host.receive_message(), sale(1, 1));
    assert_eq!(terminal.receive_message().get(39), Some("91"));
    terminal.expect_end();
}

#[test]
fn a_session_that_is_owed_nothing_is_closed_when_its_peer_ends_it() {
    let (proxy, mut at_host) = start("", "");
    let mut terminal = session(&proxy);
    is_served(&mut terminal, &mut at_host, 1, 1);
    // A notification is answered by nobody, so nothing is owed for it.
    terminal.send(&sale(1, 2).mti("0140").encode());
    terminal.half_close();
    assert_eq!(at_host.receive_message(), sale(1, 2).mti("0140"));
    terminal.expect_end();
    proxy.wait_for_gauge(SOCKETS, 0.0);
}

#[test]
fn a_session_that_ends_in_mid_frame_still_gets_what_is_in_flight() {
    let (proxy, mut at_host) = start("", "");
    let (mut terminal, mut other) = (session(&proxy), session(&proxy));
    terminal.send(&sale(1, 1).encode());
    let begun = Framing::Be16.wrap(&sale(1, 2).encode());
    terminal.send_raw(&begun[..begun.len() - 1]);
    terminal.half_close();
    assert_eq!(at_host.receive_message(), sale(1, 1));
    proxy.wait_for_log("in the middle of a frame");
    at_host.send(&sale(1, 1).answer("00").encode());
    assert_eq!(terminal.receive_message(), sale(1, 1).answer("00"));
    terminal.expect_end();
    // The half frame was not forwarded.
    is_served(&mut other, &mut at_host, 2, 1);
}

#[test]
fn a_session_that_is_gone_is_closed_once_its_answers_cannot_be_written() {
    // No timeout helps here.
    let (proxy, mut at_host) = start("frame_timeout = \"10m\"", "");
    let mut other = session(&proxy);
    let mut terminal = session(&proxy);
    for stan in 1..=5 {
        terminal.send(&sale(1, stan).encode());
        assert_eq!(at_host.receive_message(), sale(1, stan));
    }
    terminal.send(&sale(1, 6).mti("0120").encode());
    assert_eq!(at_host.receive_message(), sale(1, 6).mti("0120"));
    drop(terminal);
    // The system tells of it with the first bytes that it cannot deliver.
    for stan in 1..=5 {
        at_host.send(&sale(1, stan).answer("00").encode());
        is_served(&mut other, &mut at_host, 2, stan);
    }
    proxy.wait_for_gauge(SOCKETS, 1.0);
    assert_eq!(proxy.metric(&closed("write_stall")), 0.0);
    // What comes for it now has nobody to go to, and is counted.
    let undeliverable =
        r#"tollgate_stray_messages_total{link="visa",kind="undeliverable",approves="false"}"#;
    let before = proxy.metric(undeliverable);
    at_host.send(&sale(1, 6).mti("0120").answer("00").encode());
    proxy.wait_for_metric(undeliverable, before + 1.0);
}

#[test]
fn a_keepalive_is_neither_forwarded_nor_echoed() {
    let host = Host::listen(Framing::Be16);
    let inclusive = config::link("incl", host.address(), "deadline = \"50s\"", "connections = 1")
        .replace(r#"framing = "be16""#, r#"framing = "be16_incl""#)
        .replace("[[upstream]]", "[[upstream]]\nframing = \"be16\"");
    let plain = config::link("visa", host.address(), "deadline = \"50s\"", "connections = 1");
    for (link, framing, config, keepalives) in [
        ("visa", Framing::Be16, plain, &[[0, 0]][..]),
        ("incl", Framing::Be16Incl, inclusive, &[[0, 0], [0, 2]][..]),
    ] {
        let proxy = Proxy::start(&format!("{}{config}", config::node("0s")));
        let mut at_host = host.accept();
        proxy.wait_for_metric(
            &format!(r#"tollgate_upstream_up{{link="{link}",upstream="{link}-host"}}"#),
            1.0,
        );
        let mut terminal = proxy.connect(link, framing);
        let mut sent = 0.0;
        for stan in 1..=3 {
            for keepalive in keepalives {
                terminal.send_raw(keepalive);
                sent += 1.0;
            }
            is_served(&mut terminal, &mut at_host, 1, stan);
        }
        let series = format!(r#"tollgate_keepalives_total{{link="{link}",from="network"}}"#);
        assert_eq!(proxy.metric(&series), sent);
    }
}

#[test]
fn a_length_that_cannot_be_believed_closes_its_session_alone_and_names_the_likely_cause() {
    let (proxy, mut at_host) = start("frame_bytes_max = 2000", "");
    let mut other = session(&proxy);
    is_served(&mut other, &mut at_host, 2, 1);
    let ascii4 = b"00690800823A0000000000000400000000000000";
    let cases: [(&[u8], &str); 3] = [
        (ascii4, "this looks like ascii4 framing"),
        (b"0800823A0000000000000400000000000000", "without any length"),
        (&[0x07, 0xD1], "2001 bytes"),
    ];
    for (count, (bytes, cause)) in (1_u32..).zip(cases) {
        let mut broken = session(&proxy);
        // A good frame before it is still forwarded.
        broken.send(&sale(1, count).encode());
        broken.send_raw(bytes);
        broken.expect_end();
        assert_eq!(at_host.receive_message(), sale(1, count));
        assert_eq!(proxy.metric(&closed("framing")), f64::from(count));
        wait_for("one line that says why", || {
            (proxy.log_lines(&["WARN", "link=visa", "framing", cause]) == 1).then_some(())
        });
        is_served(&mut other, &mut at_host, 2, 1 + count);
    }
    // The longest frame that is allowed still passes.
    let longest = sale(2, 9).with(47, &"x".repeat(999)).with(48, &"y".repeat(865));
    assert_eq!(longest.encode().len(), 2_000);
    other.send(&longest.encode());
    assert_eq!(at_host.receive_message(), longest);
}

#[test]
fn a_length_that_cannot_be_believed_takes_no_answer_from_the_requests_before_it() {
    let host = Host::listen(Framing::Be16).address();
    let proxy =
        Proxy::start(&format!("{}{}", config::node("0s"), config::link("visa", host, "", "")));
    let mut broken = session(&proxy);
    let frames = (1..=3).flat_map(|stan| Framing::Be16.wrap(&sale(1, stan).encode()));
    broken.send_raw(&frames.chain([0xFF, 0xFF]).collect::<Vec<_>>());
    for stan in 1..=3 {
        let answer = broken.receive_message();
        let stan = format!("{stan:06}");
        assert_eq!((answer.get(11), answer.get(39)), (Some(stan.as_str()), Some("91")));
    }
    broken.expect_end();
}

#[test]
fn an_inclusive_length_below_itself_closes_the_session() {
    let host = Host::listen(Framing::Be16Incl);
    let link = config::link("visa", host.address(), "", "connections = 1")
        .replace(r#"framing = "be16""#, r#"framing = "be16_incl""#);
    let proxy = Proxy::start(&format!("{}{link}", config::node("0s")));
    let mut broken = proxy.connect("visa", Framing::Be16Incl);
    broken.send_raw(&[0, 1]);
    broken.expect_end();
    assert_eq!(proxy.metric(&closed("framing")), 1.0);
    proxy.wait_for_log("does not even count its own bytes");
}

#[test]
fn a_frame_that_was_begun_and_is_not_finished_closes_its_session_alone() {
    let (proxy, mut at_host) = start("frame_timeout = \"200ms\"", "");
    // This one has begun no frame, however long it is silent.
    let mut silent = session(&proxy);
    for (count, begun) in (1_u32..).zip([&[0][..], &[0, 60, b'0', b'1']]) {
        let mut slow = session(&proxy);
        slow.send(&sale(1, count).encode());
        slow.send_raw(begun);
        slow.expect_end();
        assert_eq!(at_host.receive_message(), sale(1, count));
        proxy.wait_for_gauge(&closed("frame_timeout"), f64::from(count));
    }
    is_served(&mut silent, &mut at_host, 2, 1);
}

#[test]
fn a_session_that_does_not_take_its_answers_is_closed_and_harms_nobody() {
    let (proxy, mut at_host) = start("frame_timeout = \"200ms\"", "inflight_max = 100000");
    let mut other = session(&proxy);
    let mut deaf = session(&proxy);
    let padding = "x".repeat(900);
    let answer = move |request: &Message| request.answer("00").with(48, &padding).encode();
    // The host answers with much, behind all that is on its way to it; the session reads none of it.
    let mut is_served = |stan| {
        let others = sale(2, stan);
        other.send(&others.encode());
        loop {
            let request = at_host.receive_message();
            at_host.send(&answer(&request));
            if request == others {
                break;
            }
        }
        assert_eq!(other.receive(), answer(&others));
    };
    let mut stan = 0;
    while proxy.metric(&closed("write_stall")) == 0.0 {
        for _ in 0..500 {
            stan += 1;
            assert!(stan < 100_000, "what the system keeps for a session has an end");
            // Once it is closed it takes no more.
            let request = sale(1, stan);
            let _ =
                std::io::Write::write_all(&mut deaf.stream, &Framing::Be16.wrap(&request.encode()));
        }
        is_served(stan);
    }
    proxy.wait_for_gauge(SOCKETS, 1.0);
    assert!(proxy.rss_kib() < 200_000, "{} KiB", proxy.rss_kib());
    is_served(999_999);
}

#[test]
fn a_session_that_is_silent_for_idle_timeout_is_closed() {
    let (proxy, mut at_host) = start("idle_timeout = \"200ms\"", "");
    let mut terminal = session(&proxy);
    is_served(&mut terminal, &mut at_host, 1, 1);
    terminal.expect_end();
    assert_eq!(proxy.metric(&closed("idle")), 1.0);
}

#[test]
fn a_source_that_is_not_allowed_is_closed_unread() {
    let host = Host::listen(Framing::Be16);
    let proxy = Proxy::start(&format!(
        "{}{}{}",
        config::node("0s"),
        config::link("visa", host.address(), "allow = [\"10.0.0.0/8\"]", "connections = 1"),
        config::link("open", host.address(), "allow = [\"127.0.0.0/8\"]", "connections = 1"),
    ));
    for count in [1.0, 2.0] {
        let mut stranger = session(&proxy);
        // It may have been closed before this was sent.
        let _ = std::io::Write::write_all(
            &mut stranger.stream,
            &Framing::Be16.wrap(&sale(1, 1).encode()),
        );
        stranger.expect_end();
        let refused = r#"tollgate_connections_refused_total{link="visa",cause="not_allowed"}"#;
        proxy.wait_for_gauge(refused, count);
    }
    assert_eq!(proxy.metric_sum("tollgate_messages_total", &[r#"link="visa""#]), 0.0);
    let _welcome = proxy.connect("open", Framing::Be16);
    proxy.wait_for_metric(r#"tollgate_link_sockets{link="open"}"#, 1.0);
    assert_eq!(proxy.metric(SOCKETS), 0.0);
}

#[test]
fn one_session_more_than_connections_max_is_refused_until_another_ends() {
    let (proxy, mut at_host) = start("connections_max = 2", "");
    let (mut first, mut second) = (session(&proxy), session(&proxy));
    is_served(&mut first, &mut at_host, 1, 1);
    is_served(&mut second, &mut at_host, 2, 1);
    session(&proxy).expect_end();
    let too_many = r#"tollgate_connections_refused_total{link="visa",cause="too_many"}"#;
    assert_eq!(proxy.metric(too_many), 1.0);
    is_served(&mut first, &mut at_host, 1, 2);

    drop(first);
    proxy.wait_for_gauge(SOCKETS, 1.0);
    let mut third = session(&proxy);
    is_served(&mut third, &mut at_host, 3, 1);
    is_served(&mut second, &mut at_host, 2, 2);
    assert_eq!(proxy.metric(too_many), 1.0);
}

/// Each session is an open file, and the usual limit is below what a link may have.
#[test]
fn the_limit_of_open_files_is_raised_to_what_the_system_allows() {
    let host = Host::listen(Framing::Be16);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -n 64 && exec \"$0\" \"$@\"", BINARY]);
    let link = config::link("visa", host.address(), "", "");
    let proxy = Proxy::start_by(command, &format!("{}{link}", config::node("0s")));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", proxy.pid())).unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let [soft, hard, _unit] = files.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{files}");
    };
    assert_eq!(soft, hard);
    assert_ne!(soft, "64");
}

#[test]
fn every_listen_address_of_a_link_leads_to_the_same_link() {
    let host = Host::listen(Framing::Be16);
    let link = config::link("visa", host.address(), "connections_max = 2", "connections = 1")
        .replace(r#"listen = "127.0.0.1:0""#, r#"listen = ["127.0.0.1:0", "127.0.0.2:0"]"#);
    let proxy = Proxy::start(&format!("{}{link}", config::node("0s")));
    let mut at_host = host.accept();
    proxy.wait_for_gauge(r#"tollgate_upstream_up{link="visa",upstream="visa-host"}"#, 1.0);
    let addresses = proxy.addresses("visa");
    assert_eq!(addresses.len(), 2);
    let mut sessions: Vec<Peer> =
        addresses.iter().map(|address| Peer::connect(*address, Framing::Be16)).collect();
    for (terminal, number) in sessions.iter_mut().zip(1..) {
        is_served(terminal, &mut at_host, number, 1);
    }
    assert_eq!(proxy.metric(SOCKETS), 2.0);
    // They are counted together.
    for address in addresses {
        Peer::new(TcpStream::connect(address).unwrap(), Framing::Be16).expect_end();
    }
}

#[test]
fn a_session_that_floods_does_not_keep_another_from_its_turn() {
    flood(50_000, "");
}

/// Of these, what is read at once holds few, so that turns end for want of bytes and not of patience.
#[test]
fn a_session_that_floods_with_long_messages_does_not_either() {
    flood(10_000, &"x".repeat(900));
}

fn flood(frames: u32, padding: &str) {
    // This host is slow on a busy machine, and not to be given up.
    let (proxy, mut at_host) = start("frame_timeout = \"60s\"", "");
    let mut other = session(&proxy);
    let mut flooding = session(&proxy);
    is_served(&mut other, &mut at_host, 2, 1);
    is_served(&mut flooding, &mut at_host, 1, 1);
    let message = |stan: u32| {
        let advice = Message::new("0120", &[(11, &format!("{stan:06}")), (41, "TERM0001")]);
        if padding.is_empty() { advice } else { advice.with(48, padding) }.encode()
    };
    let all: Vec<u8> = (1..=frames).flat_map(|stan| Framing::Be16.wrap(&message(stan))).collect();
    let all: Arc<[u8]> = all.into();
    let sent = Arc::new(AtomicUsize::new(0));
    let send_all = || {
        let (mut writing, all, sent) = (flooding.writing_half(), all.clone(), sent.clone());
        std::thread::spawn(move || {
            for bytes in all.chunks(4_096) {
                writing.send_raw(bytes);
                sent.fetch_add(bytes.len(), Ordering::SeqCst);
            }
        })
    };
    // A first time alone, by which the system learns to keep much for this session.
    let sender = send_all();
    for stan in 1..=frames {
        assert_eq!(at_host.receive(), message(stan));
    }
    sender.join().unwrap();
    sent.store(0, Ordering::SeqCst);
    // Then both have sent before the proxy looks at either of them.
    proxy.signal("STOP");
    let sender = send_all();
    wait_for("many turns of the flood are sent", || {
        (sent.load(Ordering::SeqCst) > 1_500_000).then_some(())
    });
    other.send(&sale(2, 2).encode());
    proxy.signal("CONT");
    // The flood comes whole and in order, and the other's request well before its end.
    let (mut next, mut others_turn) = (1, None);
    while next <= frames {
        let frame = at_host.receive();
        if frame == sale(2, 2).encode() {
            others_turn = Some(next);
            at_host.send(&sale(2, 2).answer("00").encode());
            assert_eq!(other.receive_message(), sale(2, 2).answer("00"));
        } else {
            assert_eq!(frame, message(next));
            next += 1;
        }
    }
    sender.join().unwrap();
    // New bytes are looked for after some dozens of turns at the latest.
    assert!(others_turn.unwrap() < frames / 2, "its turn came after {others_turn:?} frames");
}

#[test]
fn while_the_host_does_not_read_requests_are_answered_and_advices_still_find_room() {
    let (proxy, mut at_host) = start("frame_timeout = \"60s\"", "inflight_max = 1000000");
    let mut advising = session(&proxy);
    let mut asking = session(&proxy);
    let mut writing = asking.writing_half();
    let before = proxy.rss_kib();
    const ASKED: u32 = 30_000;
    let padding = "x".repeat(900);
    let heavy = move |stan| sale(1, stan).with(48, &padding);
    let request = heavy.clone();
    let sender = std::thread::spawn(move || {
        for stan in 1..=ASKED {
            writing.send(&request(stan).encode());
        }
    });
    // The deadline is far: whatever is answered is answered for overload, and at once.
    let overload = || proxy.metric_sum("tollgate_rejects_total", &[r#"reason="overload""#]);
    let mut refused = std::collections::BTreeSet::new();
    while refused.len() < 1_000 {
        let answer = asking.receive_message();
        assert_eq!(answer.get(39), Some("91"));
        assert!(refused.insert(answer.get(11).unwrap().parse::<u32>().unwrap()));
    }
    // The way to the host is as full as requests may make it; the rest is for these.
    let advice = |stan| sale(2, stan).mti("0120");
    for stan in 1..=200 {
        advising.send(&advice(stan).encode());
    }
    let passed = || proxy.metric_sum("tollgate_decisions_total", &[r#"outcome="pass_protected""#]);
    wait_for("the advices are on their way", || (passed() == 200.0).then_some(()));
    let forwarded = || proxy.metric_sum("tollgate_decisions_total", &[r#"outcome="forward""#]);
    // Its answers are taken, or it would not be read to its end.
    wait_for("every request is decided and every refusal is here", || {
        while let Some(frame) = asking.receive_within(std::time::Duration::from_millis(10)) {
            let answer = Message::decode(&frame.unwrap());
            assert!(refused.insert(answer.get(11).unwrap().parse().unwrap()), "answered twice");
        }
        let overload = overload();
        let all = overload + forwarded() == f64::from(ASKED) && overload == refused.len() as f64;
        all.then_some(())
    });
    sender.join().unwrap();
    let grown = proxy.rss_kib().saturating_sub(before);
    assert!(grown < 48 * 1024, "{grown} KiB more than before");

    // The host reads again: every advice is there in order, and what was refused is not.
    let sent = forwarded();
    let (mut advices, mut requests) = (0, 0.0);
    while advices < 200 || requests < sent {
        let frame = at_host.receive_message();
        if frame.get(0) == Some("0120") {
            advices += 1;
            assert_eq!(frame, advice(advices));
        } else {
            let stan = frame.get(11).unwrap().parse().unwrap();
            assert!(!refused.contains(&stan), "{stan} was answered here and sent all the same");
            requests += 1.0;
        }
    }
    is_served(&mut advising, &mut at_host, 2, 201);
    is_served(&mut asking, &mut at_host, 1, 999_999);
}

#[test]
fn advices_that_fill_the_way_to_the_host_wait_for_it_and_none_is_lost() {
    let (proxy, mut at_host) = start("frame_timeout = \"60s\"", "");
    let mut advising = session(&proxy);
    let mut asking = session(&proxy);
    const ADVICES: u32 = 12_000;
    let padding = "x".repeat(900);
    let advice = move |stan| sale(1, stan).mti("0120").with(48, &padding);
    let message = advice.clone();
    let sender = std::thread::spawn(move || {
        for stan in 1..=ADVICES {
            advising.send(&message(stan).encode());
        }
        advising
    });
    // Requests of another session are still answered, here, once the system takes no more either.
    let refused = || proxy.metric_sum("tollgate_rejects_total", &[r#"reason="overload""#]);
    let passed = || proxy.metric_sum("tollgate_decisions_total", &[r#"outcome="forward""#]);
    let mut asked = 0;
    while refused() == 0.0 {
        asked += 1;
        asking.send(&sale(2, asked).encode());
        wait_for("the request is decided", || {
            (refused() + passed() == f64::from(asked)).then_some(())
        });
    }
    assert_eq!(asking.receive_message().get(39), Some("91"));
    // Whatever was asked before that lies between them.
    let mut next = 1;
    while next <= ADVICES {
        let message = at_host.receive_message();
        if message.get(0) == Some("0120") {
            assert_eq!(message, advice(next));
            next += 1;
        }
    }
    let _advising = sender.join().unwrap();
    is_served(&mut asking, &mut at_host, 2, 999_999);
}

//! Reports about frames that hold no message.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tollgate::clock::{Clock, Moment};

use crate::support::host::Host;
use crate::support::house::{House, Plan, limit};
use crate::support::message::Message;
use crate::support::peer::{Framing, Peer};
use crate::support::proxy::Proxy;
use crate::support::{config, wait_for};

const CARD: &str = "4111111111111111";
/// How long peers are left to themselves.
const WINDOW: Duration = Duration::from_secs(5);
/// More than one a second, and far less than sockets could carry.
const FRAMES_MAX: usize = 20;
const KEEPALIVE: [u8; 2] = [0, 0];

/// Sends one keepalive and then one for each that comes, for `WINDOW`; says how many came.
fn echo_keepalives(mut peer: Peer) -> (Peer, usize) {
    let clock = Clock::start();
    let mut came = 0;
    peer.send_raw(&KEEPALIVE);
    loop {
        let passed = clock.now().since(Moment::START);
        let Some(left) = WINDOW.checked_sub(passed).filter(|left| !left.is_zero()) else {
            return (peer, came);
        };
        if let Some(frame) = peer.receive_within(left) {
            assert_eq!(frame, Some(Vec::new()), "keepalives and nothing else");
            came += 1;
            peer.send_raw(&KEEPALIVE);
        }
    }
}

/// The network and the host both echo what they get.
fn echoed_from_both_sides(link_keys: &str) -> (usize, usize) {
    let plan = Plan { link: link_keys.to_owned(), ..Plan::limits(&[limit("all", "", 1)]) };
    let House { proxy, at_host, host, .. } = plan.start();
    let terminal = proxy.connect("visa", Framing::Be16);
    let before = proxy.cpu();
    let host_echoes = std::thread::spawn(move || echo_keepalives(at_host));
    let (mut terminal, to_network) = echo_keepalives(terminal);
    let (mut at_host, to_host) = host_echoes.join().unwrap();
    let used = proxy.cpu() - before;
    assert!(used < WINDOW / 20, "{used:?} of {WINDOW:?}");
    // Each that came was answered, and a first one was sent by either side.
    let counted = proxy.metric_sum("tollgate_keepalives_total", &["link=\"visa\""]);
    assert!(counted >= (to_network + 1) as f64, "{counted}");
    assert_eq!(proxy.metric_sum("tollgate_decisions_total", &[]), 0.0);
    // None of them took the only token, and none is on its way to the host.
    let sale = Message::sale(CARD, 1);
    terminal.send(&sale.encode());
    let arrived = std::iter::repeat_with(|| at_host.receive()).find(|frame| !frame.is_empty());
    assert_eq!(arrived.unwrap(), sale.encode());
    drop(host);
    (to_network, to_host)
}

#[test]
fn a_peer_that_echoes_keepalives_is_not_echoed_at_the_speed_of_the_socket() {
    let answered = std::thread::spawn(|| echoed_from_both_sides("keepalive = \"answer\""));
    assert_eq!(echoed_from_both_sides("keepalive = \"ignore\""), (0, 0));
    let (to_network, to_host) = answered.join().unwrap();
    assert!((1..FRAMES_MAX).contains(&to_network), "{to_network}");
    assert!((1..FRAMES_MAX).contains(&to_host), "{to_host}");
}

/// A session that sends a keepalive before each request without ever waiting, until `enough` answers
/// and keepalives have come; says how many keepalives had, when every request was answered.
fn interleave(proxy: &Proxy, session: u32, enough: impl Fn(u32, usize) -> bool) -> usize {
    let mut peer = proxy.connect("visa", Framing::Be16);
    let mut writing = peer.writing_half();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let sale = move |stan| Message::sale(CARD, stan).with(41, &format!("TERM{session:04}"));
    let sender = std::thread::spawn(move || {
        let mut sent = 0;
        while !stopped.load(Ordering::SeqCst) && sent < 999_999 {
            sent += 1;
            writing.send_raw(&KEEPALIVE);
            writing.send(&sale(sent).encode());
        }
        sent
    });
    let (mut answers, mut keepalives) = (0, 0);
    let mut count = |frame: &[u8]| {
        if frame.is_empty() {
            keepalives += 1;
        } else {
            answers += 1;
            let answer = Message::decode(frame);
            assert_eq!(answer.get(41), sale(1).get(41), "the answer of another session");
            // What was too much for the host was answered here.
            let code = answer.get(39).unwrap();
            assert!(["00", "91"].contains(&code), "{code}");
        }
        (answers, keepalives)
    };
    let mut answered = loop {
        let (answers, keepalives) = count(&peer.receive());
        if enough(answers, keepalives) {
            break answers;
        }
    };
    stop.store(true, Ordering::SeqCst);
    // It may wait for this side to read.
    while !sender.is_finished() {
        if let Some(frame) = peer.receive_within(Duration::from_millis(10)) {
            answered = count(&frame.expect("a frame, not the end")).0;
        }
    }
    let sent = sender.join().unwrap();
    while answered < sent {
        answered = count(&peer.receive()).0;
    }
    keepalives
}

#[test]
fn keepalives_between_requests_never_fall_into_an_answer() {
    for (word, keepalives_min) in [("ignore", 0), ("answer", 3)] {
        let host = Host::listen(Framing::Be16);
        let keys = format!("deadline = \"50s\"\nkeepalive = \"{word}\"");
        let link = config::link("visa", host.address(), &keys, "connections = 1");
        let served = host.serve(|frame| Some(Message::decode(frame).answer("00").encode()));
        let proxy = Arc::new(Proxy::start(&format!("{}{link}", config::node("0s"))));
        wait_for("the host is up", || (served.connections() == 1).then_some(()));
        let sessions = [1, 2].map(|session| {
            let proxy = proxy.clone();
            std::thread::spawn(move || {
                interleave(&proxy, session, |answers, keepalives| {
                    answers >= 1_000 && keepalives >= keepalives_min
                })
            })
        });
        for session in sessions {
            let keepalives = session.join().unwrap();
            assert!(keepalives >= keepalives_min && (keepalives_min > 0 || keepalives == 0));
        }
        let keepalives = served.received().iter().filter(|frame| frame.is_empty()).count();
        assert_eq!(keepalives, 0, "no keepalive reaches the host");
    }
}

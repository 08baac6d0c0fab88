//! R9: on its way to the host a reversal never precedes its original.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use crate::CARD;
use crate::support::house::{House, Plan};
use crate::support::message::Message;
use crate::support::peer::{Framing, Peer};
use crate::support::wait_for;

/// Number of the pair that a frame is of, and whether it is the reversal.
fn pair_of(frame: &[u8]) -> (u32, bool) {
    let message = Message::decode(frame);
    (message.get(11).unwrap().parse().unwrap(), message.get(0) == Some("0420"))
}

/// A sale and, at once behind it, its reversal, with a length on each.
fn pair(number: u32, padding: &str) -> Vec<u8> {
    let mut sale = Message::sale(CARD, number);
    if !padding.is_empty() {
        sale = sale.with(48, padding);
    }
    let original = format!("0100{number:06}1130045900{:011}{:011}", 123_456, 0);
    let reversal = sale.clone().mti("0420").with(90, &original);
    [Framing::Be16.wrap(&sale.encode()), Framing::Be16.wrap(&reversal.encode())].concat()
}

/// No original comes at or behind its reversal.
fn expect_order(arrived: &[(u32, bool)]) {
    let mut reversed = std::collections::BTreeSet::new();
    for (number, is_reversal) in arrived {
        if *is_reversal {
            reversed.insert(*number);
        } else {
            assert!(!reversed.contains(number), "reversal {number} came before its original");
        }
    }
}

#[test]
fn r09_a_reversal_never_precedes_its_original_among_many_sessions() {
    const SESSIONS: u32 = 8;
    const PAIRS: u32 = 250;
    let upstream = "inflight_max = 10000".to_owned();
    let house = Plan { connections: 3, upstream, ..Plan::default() }.start();
    let House { proxy, at_host, standby, .. } = house;
    let writers: Vec<_> = (0..SESSIONS)
        .map(|session| {
            let mut terminal = proxy.connect("visa", Framing::Be16);
            std::thread::spawn(move || {
                for number in 1..=PAIRS {
                    terminal.send_raw(&pair(session * 1_000 + number, ""));
                }
                terminal
            })
        })
        .collect();
    let (mut active, others) = split_active(at_host, standby);
    let arrived: Vec<_> = (0..2 * SESSIONS * PAIRS).map(|_| pair_of(&active.receive())).collect();
    expect_order(&arrived);
    let mut times = BTreeMap::new();
    arrived.iter().for_each(|frame| *times.entry(frame).or_insert(0) += 1);
    assert_eq!(times.len(), (2 * SESSIONS * PAIRS) as usize, "each arrived, and once");
    // One connection is used, so that the host cannot see a pair on two of them in another order.
    for mut other in others {
        other.expect_nothing_yet();
    }
    let terminals: Vec<Peer> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
    assert_eq!(terminals.len(), SESSIONS as usize);
}

/// The connection on which something has come, and the others.
fn split_active(at_host: Peer, standby: Vec<Peer>) -> (Peer, Vec<Peer>) {
    let mut all = standby;
    all.push(at_host);
    let active = wait_for("a frame on one connection", || {
        all.iter().position(|peer| {
            peer.stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            matches!(peer.stream.peek(&mut [0]), Ok(1))
        })
    });
    let peer = all.remove(active);
    (peer, all)
}

/// The host takes no more on the active connection, until all between is full and a queue stands in
/// tollgate; then that connection breaks. What was not written moves to the standby in its order.
#[test]
fn r09_a_reversal_never_precedes_its_original_when_the_active_connection_breaks() {
    const SESSIONS: u32 = 4;
    const PAIRS: u32 = 3_000;
    let house = Plan {
        connections: 2,
        upstream: "inflight_max = 100000".to_owned(),
        link: "frame_timeout = \"60s\"".to_owned(),
        ..Plan::default()
    }
    .start();
    let House { proxy, host, at_host, standby, .. } = house;
    let writers: Vec<_> = (0..SESSIONS)
        .map(|session| {
            let mut terminal = proxy.connect("visa", Framing::Be16);
            let mut stream = terminal.stream.try_clone().unwrap();
            // Answers for overload have to be taken, or the session is not read any more.
            std::thread::spawn(move || {
                while let Some(Some(_)) = terminal.receive_within(Duration::from_secs(60)) {}
            });
            std::thread::spawn(move || {
                for number in 1..=PAIRS {
                    stream.write_all(&pair(session * 10_000 + number, &"p".repeat(900))).unwrap();
                }
                stream
            })
        })
        .collect();
    let (mut active, mut others) = split_active(at_host, standby);
    let mut standby = others.remove(0);
    let before: Vec<_> = (0..100).map(|_| pair_of(&active.receive())).collect();
    proxy.wait_for_metric("tollgate_host_queue_bytes{link=\"visa\"}", 500_000.0);
    drop(active);

    // The last pair of each session: its reversal is never refused.
    let mut after = Vec::new();
    let mut ended = 0;
    while ended < SESSIONS {
        let frame = pair_of(&standby.receive());
        ended += u32::from(frame.1 && frame.0 % 10_000 == PAIRS);
        after.push(frame);
    }
    assert!(after.iter().any(|frame| !frame.1), "the queue held originals");
    let moved_pairs = after.iter().filter(|frame| !frame.1 && after.contains(&(frame.0, true)));
    assert!(moved_pairs.count() > 100, "whole pairs moved");
    let mut all = before;
    all.extend(after);
    expect_order(&all);
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "nothing was sent twice");
    for writer in writers {
        writer.join().unwrap();
    }
    drop((proxy, host));
}

//! Connections that the host closes, cuts in the middle of a frame, or hardly reads.

use std::io::{ErrorKind, Read, Write};

use serde_json::json;

use super::{report_of, sale, send_all, stans, until_the_end};
use crate::support::peer::Framing;
use crate::support::simulated::SimulatedHost;
use crate::support::{PATIENCE, wait_for};

#[test]
fn a_connection_is_closed_after_so_many_messages_and_another_may_come() {
    let host = SimulatedHost::start(&["--close-after", "3"]);
    for round in 0..2 {
        let mut peer = host.connect();
        send_all(&mut peer, (0..3).map(|number| sale(10 * round + number)));
        let expected: Vec<_> = (10 * round..10 * round + 3).collect();
        assert_eq!(stans(&until_the_end(&mut peer)), expected);
    }
    let mut patient = host.connect();
    send_all(&mut patient, (0..2).map(sale));
    assert_eq!([patient.receive_message(), patient.receive_message()].len(), 2);
    let report = report_of(host);
    let counts = ["accepted", "closed", "open", "answered", "unsent"].map(|name| &report[name]);
    assert_eq!(counts, [&json!(3), &json!(2), &json!(1), &json!(8), &json!(0)], "{report}");
}

#[test]
fn a_connection_may_be_closed_in_the_middle_of_a_frame() {
    let host = SimulatedHost::start(&["--close-after", "2", "--mid-frame"]);
    let mut peer = host.connect();
    send_all(&mut peer, (1..=2).map(sale));
    let mut bytes = Vec::new();
    peer.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    peer.stream.read_to_end(&mut bytes).unwrap();
    let (whole, taken) = Framing::Be16.unwrap(&bytes).expect("a whole answer");
    let (half, full) = (bytes.len() - taken, whole.len() + 2);
    assert_eq!(half, full.div_ceil(2), "of a second answer that is as long");
    assert!(Framing::Be16.unwrap(&bytes[taken..]).is_none());
    let report = report_of(host);
    assert_eq!((&report["answered"], &report["unsent"]), (&json!(1), &json!(1)), "{report}");
}

#[test]
fn a_share_of_messages_closes_the_connection_in_place_of_an_answer() {
    let host = SimulatedHost::start(&["--close-share", "0.2"]);
    let (mut answered, mut ended) = (0, 0);
    for _ in 0..40 {
        let mut peer = host.connect();
        send_all(&mut peer, [sale(1)]);
        peer.half_close();
        match until_the_end(&mut peer).len() {
            0 => ended += 1,
            only => answered += only,
        }
    }
    assert!(ended > 0 && answered > 0, "{ended} ended, {answered} answered");
    let report = report_of(host);
    let counts = ["closed", "unsent", "answered", "accepted"].map(|name| &report[name]);
    assert_eq!(counts, [&json!(ended), &json!(ended), &json!(answered), &json!(40)], "{report}");
}

#[test]
fn a_frame_that_cannot_be_cut_ends_its_connection_and_no_other() {
    let host = SimulatedHost::start(&["--framing", "ascii4"]);
    let mut broken = host.connect();
    let mut other = crate::support::peer::Peer::connect(host.address(), Framing::Ascii(4));
    broken.send_raw(b"no length");
    broken.expect_end();
    other.send(&sale(1).encode());
    assert_eq!(stans(&[other.receive_message()]), [1]);
    assert_eq!(report_of(host)["broken"], 1);
}

#[test]
fn a_host_that_reads_slowly_lets_its_senders_socket_fill() {
    /// More than two sockets hold on any machine.
    const BYTES: usize = 64 << 20;
    let host = SimulatedHost::start(&["--slow-read", "2000"]);
    let mut peer = host.connect();
    let mut quick = host.connect();
    peer.stream.set_nonblocking(true).unwrap();
    let frames = Framing::Be16.wrap(&sale(1).encode()).repeat(200);
    let (mut sent, mut at, mut refused) = (0, 0, 0);
    wait_for("the socket takes no more", || {
        while sent < BYTES {
            match peer.stream.write(&frames[at..]) {
                Ok(bytes) => {
                    (sent, refused) = (sent + bytes, 0);
                    at = (at + bytes) % frames.len();
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    refused += 1;
                    break;
                }
            }
        }
        (refused == 100 || sent >= BYTES).then_some(())
    });
    assert!(sent < BYTES, "it took all {sent} bytes");
    // What it does read it answers, on this connection and on others.
    peer.stream.set_nonblocking(false).unwrap();
    assert_eq!(stans(&[peer.receive_message()]), [1]);
    send_all(&mut quick, [sale(2)]);
    assert_eq!(stans(&[quick.receive_message()]), [2]);
    let report = report_of(host);
    let frame = frames.len() / 200;
    assert!(report["messages"].as_u64().unwrap() < (sent / frame / 2) as u64, "{report}");
}

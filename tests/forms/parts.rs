//! Frames that come in parts (`rbp6`).

use crate::support::message::Message;
use crate::support::peer::Framing;
use crate::{CARD, Form, Way};

const FRAME_BYTES_MAX: usize = 300;

fn way() -> Way {
    let keys = format!("frame_bytes_max = {FRAME_BYTES_MAX}");
    Form { framing: Framing::Rbp6, keys, ..Form::default() }.open()
}

/// A part with its length, and whether another follows.
fn part(bytes: &[u8], more: bool) -> Vec<u8> {
    let [high, low] = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    [&[0xD0, 0x4A, high, low, u8::from(more), 0], bytes].concat()
}

/// A frame in as many parts as it is cut into at these places.
fn in_parts(frame: &[u8], places: &[usize]) -> Vec<u8> {
    let starts = std::iter::once(0).chain(places.iter().copied());
    let ends = places.iter().copied().chain([frame.len()]);
    let parts = starts.zip(ends).map(|(start, end)| part(&frame[start..end], end < frame.len()));
    parts.collect::<Vec<_>>().concat()
}

/// Frames of one length, each with a STAN of its own.
fn frames() -> impl Iterator<Item = Vec<u8>> {
    (1..).map(|stan| Message::sale(CARD, stan).encode())
}

#[test]
fn a_frame_in_three_parts_reaches_the_host_as_one_wherever_it_was_cut_and_interrupted() {
    let mut way = way();
    let mut frames = frames();
    let mut next = || frames.next().unwrap();
    let bytes = next().len();
    // In the MTI, in the bitmap, in fields, one byte long, and without a byte of its own.
    let cuts = [[1, 2], [4, 20], [2, 100], [10, bytes - 1], [60, 60]];
    let mut sent = 0;
    for places in cuts {
        let whole = bytes + 3 * 6;
        for end in 0..=whole {
            let (frame, second) = (next(), next());
            let stream = in_parts(&frame, &places);
            assert_eq!(stream.len(), whole);
            // The second frame comes in the same write as the end of the first.
            let (before, after) = stream.split_at(end);
            way.terminal.send_raw(before);
            way.terminal.send_raw(&[after, &part(&second, false)].concat());
            assert!(way.at_host.receive() == frame, "cut at {places:?}, interrupted at {end}");
            assert!(way.at_host.receive() == second, "behind {places:?}, interrupted at {end}");
            sent += 1;
        }
        let (frame, second) = (next(), next());
        for byte in [in_parts(&frame, &places), in_parts(&second, &places)].concat() {
            way.terminal.send_raw(&[byte]);
        }
        assert!(way.at_host.receive() == frame, "cut at {places:?}, one byte at a time");
        assert!(way.at_host.receive() == second, "the second, one byte at a time");
        sent += 1;
    }
    assert_eq!(sent, cuts.len() * (bytes + 3 * 6 + 2));
    assert_eq!(way.proxy.metric_sum("tollgate_parse_errors_total", &[]), 0.0);
}

#[test]
fn parts_that_together_are_longer_than_a_frame_may_be_close_their_session() {
    const CLOSED: &str = r#"tollgate_sessions_closed_total{link="visa",cause="framing"}"#;
    let mut way = way();
    let mut longest = Message::sale(CARD, 1).encode();
    longest.resize(FRAME_BYTES_MAX, b'x');
    way.terminal.send_raw(&in_parts(&longest, &[100, 200]));
    assert!(way.at_host.receive() == longest, "as long as a frame may be");
    assert_eq!(way.proxy.metric(CLOSED), 0.0);

    // The length of the last part is enough: none of its bytes comes.
    longest.push(b'x');
    let stream = in_parts(&longest, &[100, 200]);
    way.terminal.send_raw(&stream[..stream.len() - 101]);
    way.terminal.expect_end();
    way.proxy.wait_for_metric(CLOSED, 1.0);

    // Nothing of it has reached the host, which serves the next session.
    way.terminal = way.proxy.connect("visa", Framing::Rbp6);
    let next = Message::sale(CARD, 2).encode();
    way.terminal.send_raw(&in_parts(&next, &[30, 31]));
    assert!(way.at_host.receive() == next, "the next session's frame");
    let answer = Message::sale(CARD, 2).answer("00").encode();
    way.at_host.send(&answer);
    assert!(way.terminal.receive() == answer, "an answer comes in one part");
}

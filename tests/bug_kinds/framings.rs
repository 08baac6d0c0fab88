//! Where frames begin and end.

use tollgate::wire::{Framing as Read, Splitter};

use crate::samples::samples;
use crate::support::framing::Framing;
use crate::support::message::Message;
use crate::support::peer::Peer;
use crate::ways::{Wanted, Way, Ways};

const ASCII: &str = "iso87_ascii";
const CARD: &str = "4111111111111111";
const CLOSED: &str = "tollgate_sessions_closed_total";
const ETX: u8 = 3;
/// A limit that short that every framing can say more.
const FRAME_BYTES_MAX: usize = 200;

fn read(framing: Framing) -> Read {
    Read::from_name(&framing.name()).unwrap_or_else(|| panic!("no {framing:?}"))
}

/// Framings with digits in their lengths, and in how many places.
fn digit_framings() -> Vec<(Framing, usize)> {
    let framings = Framing::ALL.into_iter().filter_map(|framing| match framing {
        Framing::Ascii(digits) => Some((framing, digits)),
        Framing::Hex4 | Framing::Bcd2 => Some((framing, 4)),
        _ => None,
    });
    framings.collect()
}

/// A length of zeros with something else at one place. In BCD a place is half a byte.
fn damaged(framing: Framing, place: usize, wrong: u8) -> Vec<u8> {
    let mut length = framing.length(0).unwrap();
    if framing == Framing::Bcd2 {
        length[place / 2] |= if place.is_multiple_of(2) { wrong << 4 } else { wrong & 15 };
    } else {
        length[place] = wrong;
    }
    length
}

/// Three frames of different lengths.
fn three(body: &[u8]) -> Vec<Vec<u8>> {
    vec![body.to_vec(), [body, b"x"].concat(), [body, b"and more"].concat()]
}

fn stream(framing: Framing, frames: &[Vec<u8>]) -> Vec<u8> {
    frames.iter().flat_map(|frame| framing.wrap(frame)).collect()
}

/// Cuts what has come by now, as a session does.
fn cut(splitter: &mut Splitter, unread: &mut Vec<u8>, frames: &mut Vec<Vec<u8>>) {
    loop {
        let Some(split) = splitter.split(unread).expect("a good stream") else { return };
        frames.push(split.frame.to_vec());
        let taken = split.whole.len();
        unread.drain(..taken);
    }
}

#[test]
fn a_stream_is_cut_into_the_same_frames_wherever_it_was_interrupted() {
    for framing in Framing::ALL {
        let frames = three(&Message::sale(CARD, 1).encode());
        let stream = stream(framing, &frames);
        let through = |pieces: &[&[u8]]| {
            let mut splitter = Splitter::new(read(framing), 4_096);
            let (mut unread, mut cut_off) = (Vec::new(), Vec::new());
            for piece in pieces {
                unread.extend_from_slice(piece);
                cut(&mut splitter, &mut unread, &mut cut_off);
            }
            assert!(unread.is_empty(), "{framing:?} left something over");
            cut_off
        };
        for end in 0..=stream.len() {
            let (before, after) = stream.split_at(end);
            assert!(through(&[before, after]) == frames, "{framing:?} at {end}");
        }
        for bytes in 1..stream.len() {
            let pieces: Vec<&[u8]> = stream.chunks(bytes).collect();
            assert!(through(&pieces) == frames, "{framing:?} by {bytes}");
        }
    }
}

/// Every dialect in every framing; pieces and places are drawn from a fixed seed.
#[test]
fn a_stream_in_any_pieces_reaches_the_host_as_the_same_frames() {
    let samples = samples();
    let mut through = 0;
    let mut with_etx = 0;
    for framing in Framing::ALL {
        let carried = samples.iter().filter(|sample| {
            // The end mark ends a frame wherever it stands, so nobody sends it in one.
            framing != Framing::Etx || !sample.body.contains(&ETX)
        });
        let wanted: Vec<Wanted> =
            carried.map(|sample| Wanted { framing, preset: sample.preset }).collect();
        with_etx += samples.len() - wanted.len();
        let mut random = fastrand::Rng::with_seed(8_583);
        for way in &mut Ways::open(wanted, "").all {
            let sample = samples.iter().find(|sample| sample.preset == way.preset).unwrap();
            let frames = three(&sample.body);
            let stream = stream(framing, &frames);
            // Whole, one byte at a time, and in a few other ways.
            way.terminal.send_raw(&stream);
            way.expect_at_host(&frames);
            stream.iter().for_each(|byte| way.terminal.send_raw(&[*byte]));
            way.expect_at_host(&frames);
            for _ in 0..5 {
                let mut rest = &stream[..];
                while !rest.is_empty() {
                    let bytes = random.usize(1..=rest.len());
                    way.terminal.send_raw(&rest[..bytes]);
                    rest = &rest[bytes..];
                }
                way.expect_at_host(&frames);
            }
            through += 1;
        }
    }
    assert_eq!((through, with_etx), (16 * 12 - WITH_ETX, WITH_ETX));
}

/// Presets whose message holds an end mark.
const WITH_ETX: usize = 4;

#[test]
fn nothing_but_a_digit_is_a_digit_of_a_length() {
    let mut looked_at = 0;
    for (framing, places) in digit_framings() {
        for place in 0..places {
            for byte in 0..=u8::MAX {
                let digit = match framing {
                    Framing::Bcd2 if byte > 15 => continue,
                    Framing::Bcd2 => byte < 10,
                    Framing::Hex4 => byte.is_ascii_hexdigit(),
                    _ => byte.is_ascii_digit(),
                };
                let length = damaged(framing, place, byte);
                let mut splitter = Splitter::new(read(framing), usize::MAX);
                assert_eq!(splitter.split(&length).is_ok(), digit, "{framing:?} {length:?}");
                looked_at += 1;
            }
        }
    }
    assert_eq!(looked_at, (3 + 4 + 6 + 4) * 256 + 4 * 16);
}

/// Sends this on a session of its own, which has to end without another word.
#[track_caller]
fn closes(ways: &Ways, way: &Way, bytes: &[u8]) {
    let mut broken = ways.proxy.connect(&way.name, way.framing);
    broken.send_raw(bytes);
    broken.expect_end();
}

/// A good message goes through; whatever reached the host before it would come first.
#[track_caller]
fn is_served(way: &mut Way, stan: u32) {
    let sale = Message::sale(CARD, stan);
    way.terminal.send(&sale.encode());
    way.expect_at_host(&[sale.encode()]);
    way.at_host.send(&sale.answer("00").encode());
    assert_eq!(way.terminal.receive(), sale.answer("00").encode());
}

#[test]
fn a_sign_a_blank_or_a_letter_in_a_length_closes_its_session_at_once() {
    let framings = digit_framings();
    let wanted = framings.iter().map(|(framing, _)| Wanted { framing: *framing, preset: ASCII });
    let mut ways = Ways::open(wanted.collect(), "");
    for (at, (framing, places)) in framings.into_iter().enumerate() {
        let wrong = if framing == Framing::Bcd2 { &[10, 15][..] } else { b"-+ .gGxO\0" };
        let mut closed = 0.0;
        for place in 0..places {
            for wrong in wrong {
                // Nothing but the length: there is no waiting for what it might announce.
                closes(&ways, &ways.all[at], &damaged(framing, place, *wrong));
                closed += 1.0;
            }
        }
        let counted = ways.all[at].counted(&ways.proxy, CLOSED, "cause=\"framing\"");
        assert_eq!(counted, closed, "{framing:?}");
        is_served(&mut ways.all[at], 1);
    }
}

#[test]
fn a_length_above_the_limit_closes_its_session_at_once_and_one_at_the_limit_does_not() {
    let keys = format!("frame_bytes_max = {FRAME_BYTES_MAX}");
    let mut ways = Ways::of_every_framing(ASCII, &keys);
    let mut lengths = 0;
    for at in 0..ways.all.len() {
        let framing = ways.all[at].framing;
        let mut longest = Message::sale(CARD, 1).encode();
        longest.resize(FRAME_BYTES_MAX, b'x');
        ways.all[at].terminal.send(&longest);
        ways.all[at].expect_at_host(&[longest.clone()]);
        let ceiling = framing.frame_bytes_ceiling();
        let mut announced: Vec<usize> = vec![FRAME_BYTES_MAX + 1, FRAME_BYTES_MAX + 2, 900];
        announced.extend(ceiling);
        let mut closed = 0.0;
        for bytes in announced {
            let length = framing.length(bytes + framing.counted_besides());
            // Without a length a frame is too long when so much of it has come.
            let bytes = length.unwrap_or_else(|| vec![b'x'; bytes]);
            closes(&ways, &ways.all[at], &bytes);
            closed += 1.0;
            lengths += 1;
        }
        let way = &mut ways.all[at];
        assert_eq!(way.counted(&ways.proxy, CLOSED, "cause=\"framing\""), closed, "{framing:?}");
        is_served(way, 2);
    }
    assert_eq!(lengths, 16 * 4 - 1);
}

#[test]
fn no_keepalive_of_any_framing_reaches_the_host_or_comes_back() {
    let mut ways = Ways::of_every_framing(ASCII, "");
    for way in &mut ways.all {
        let mut sent = 0.0;
        for stan in 1..=5 {
            for keepalive in way.framing.keepalives() {
                way.terminal.send_raw(&keepalive);
                way.at_host.send_raw(&keepalive);
                sent += 1.0;
            }
            is_served(way, stan);
        }
        assert_eq!(sent > 0.0, way.framing != Framing::Etx);
        let counted = way.counted(&ways.proxy, "tollgate_keepalives_total", "");
        assert!(counted >= sent, "{:?}: {counted} of {sent} counted", way.framing);
    }
}

/// The bytes that come next.
#[track_caller]
fn raw(peer: &mut Peer, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    std::io::Read::read_exact(&mut peer.stream, &mut bytes).unwrap();
    bytes
}

#[test]
fn where_it_is_asked_for_a_keepalive_comes_back_as_it_was_and_goes_no_further() {
    for form in [0, 1] {
        let mut ways = Ways::of_every_framing(ASCII, "keepalive = \"answer\"");
        for way in &mut ways.all {
            let Some(keepalive) = way.framing.keepalives().get(form).cloned() else { continue };
            way.terminal.stream.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
            way.at_host.stream.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
            way.terminal.send_raw(&keepalive);
            assert_eq!(raw(&mut way.terminal, keepalive.len()), keepalive, "{:?}", way.framing);
            way.at_host.send_raw(&keepalive);
            assert_eq!(raw(&mut way.at_host, keepalive.len()), keepalive, "{:?}", way.framing);
            is_served(way, 1);
        }
    }
}

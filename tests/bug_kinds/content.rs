//! What stands in a frame.

use tollgate::iso8583::{
    BitmapEncoding, BitmapRule, Dialect, Fault, FaultKind, MtiEncoding, Spans, View,
};

use crate::samples::{Sample, samples};
use crate::support::framing::Framing;
use crate::ways::{Wanted, Ways};

const PARSE_ERRORS: &str = "tollgate_parse_errors_total";

/// A link for each sample. What is not answered stays in flight.
fn ways(samples: &[Sample]) -> Ways {
    let framing = Framing::Be16;
    let wanted = samples.iter().map(|sample| Wanted { framing, preset: sample.preset });
    Ways::open(wanted.collect(), "")
}

/// Sends all of these at once; the host gets them as they are, and nothing comes back.
#[track_caller]
fn go_through(ways: &mut Ways, at: usize, sample: &Sample, frames: &[Vec<u8>]) {
    let way = &mut ways.all[at];
    // No more than the link has in flight.
    for frames in frames.chunks(500) {
        let stream = frames.iter().flat_map(|frame| way.framing.wrap(frame));
        way.terminal.send_raw(&stream.collect::<Vec<u8>>());
        way.expect_at_host(frames);
    }
    // The session and its link are as well as before.
    way.terminal.send(&sample.body);
    way.expect_at_host(std::slice::from_ref(&sample.body));
    assert_eq!(way.counted(&ways.proxy, "tollgate_rejects_total", ""), 0.0);
    assert_eq!(way.counted(&ways.proxy, "tollgate_sessions_closed_total", ""), 0.0);
}

fn fault(preset: &str, body: &[u8]) -> Option<Fault> {
    let dialect = Dialect::preset(preset).unwrap();
    let mut spans = Spans::default();
    View::parse(&dialect, body, &mut spans).unwrap().fault()
}

#[test]
fn bytes_behind_the_last_field_are_forwarded_uncut_whatever_their_number() {
    let samples = samples();
    let mut ways = ways(&samples);
    for (at, sample) in samples.iter().enumerate() {
        let room = 4_096 - sample.body.len();
        let numbers: Vec<usize> = (1..=64).chain([255, 256, 1_000, room]).collect();
        let trailing = numbers.iter().flat_map(|number| {
            // What looks like anything, like padding, or like another message.
            [vec![b'0'; *number], vec![0xFF; *number], cycle(&sample.body, *number)]
        });
        let frames: Vec<Vec<u8>> =
            trailing.map(|trailing| [&sample.body[..], &trailing].concat()).collect();
        for frame in &frames {
            let fault = fault(sample.preset, frame).unwrap();
            let at = u16::try_from(sample.body.len()).unwrap();
            assert_eq!((fault.kind, fault.at), (FaultKind::Trailing, at), "{}", sample.preset);
        }
        go_through(&mut ways, at, sample, &frames);
        let counted = ways.all[at].counted(&ways.proxy, PARSE_ERRORS, "kind=\"trailing\"");
        assert_eq!(counted, frames.len() as f64, "{}", sample.preset);
    }
}

fn cycle(bytes: &[u8], number: usize) -> Vec<u8> {
    bytes.iter().copied().cycle().take(number).collect()
}

#[test]
fn a_message_that_ends_too_early_is_forwarded_as_far_as_it_goes() {
    let samples = samples();
    let mut ways = ways(&samples);
    for (at, sample) in samples.iter().enumerate() {
        // Of nothing at all there is no message; that is a keepalive.
        let ends = 1..sample.body.len();
        let frames: Vec<Vec<u8>> = ends.map(|end| sample.body[..end].to_vec()).collect();
        go_through(&mut ways, at, sample, &frames);
        let counted = ways.all[at].counted(&ways.proxy, PARSE_ERRORS, "from=\"network\"");
        assert_eq!(counted, frames.len() as f64, "{}: each is a fault", sample.preset);
    }
}

/// The sample's MTI and a bitmap that announces one field, which the dialect does not have.
fn with_undefined(sample: &Sample, dialect: &Dialect, de: u8) -> Vec<u8> {
    let mti_bytes = if dialect.mti() == MtiEncoding::Bcd { 2 } else { 4 };
    let layout = dialect.bitmap();
    let needed = (usize::from(de) - 1) / 64 + 1;
    let always = layout.rule == BitmapRule::Always;
    let words = if always { usize::from(layout.words_max) } else { needed };
    let mut bits = vec![0_u8; words * 8];
    // Each word but the last says that another follows.
    (0..needed - 1).for_each(|word| bits[word * 8] = 0x80);
    let bit = usize::from(de) - 1;
    bits[bit / 8] |= 0x80 >> (bit % 8);
    let mut body = sample.body[..mti_bytes].to_vec();
    match layout.encoding {
        BitmapEncoding::Binary => body.extend(bits),
        BitmapEncoding::HexAscii => {
            body.extend(bits.iter().flat_map(|byte| format!("{byte:02X}").into_bytes()));
        }
        BitmapEncoding::HexEbcdic => panic!("no preset writes it so"),
    }
    body.extend_from_slice(b"whatever it may mean");
    body
}

#[test]
fn a_field_that_the_dialect_does_not_have_stops_no_message() {
    let samples = samples();
    let mut ways = ways(&samples);
    let mut undefined_fields = 0;
    for (at, sample) in samples.iter().enumerate() {
        let dialect = Dialect::preset(sample.preset).unwrap();
        let words = dialect.bitmap().words_max;
        let undefined = (2..=words * 64).filter(|de| de % 64 != 1 && dialect.field(*de).is_none());
        let undefined: Vec<u8> = undefined.collect();
        let frames: Vec<Vec<u8>> =
            undefined.iter().map(|de| with_undefined(sample, &dialect, *de)).collect();
        for (de, frame) in undefined.iter().zip(&frames) {
            let fault = fault(sample.preset, frame).unwrap();
            assert_eq!((fault.field, fault.kind), (*de, FaultKind::UndefinedField));
        }
        go_through(&mut ways, at, sample, &frames);
        let counted = ways.all[at].counted(&ways.proxy, PARSE_ERRORS, "kind=\"undefined_field\"");
        assert_eq!(counted, frames.len() as f64, "{}", sample.preset);
        undefined_fields += frames.len();
    }
    assert_eq!(undefined_fields, UNDEFINED_FIELDS);
}

/// Fields of all presets that their bitmaps can announce and their tables do not have.
const UNDEFINED_FIELDS: usize = 280;

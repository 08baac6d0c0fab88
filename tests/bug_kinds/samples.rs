//! One good message of each preset.

use tollgate::iso8583::{Dialect, Spans, View};

use crate::support::fixtures::{Line, lines, messages};
use crate::support::framing::Framing;
use crate::support::header::Header;
use crate::support::message::{Layout, Message};

/// Rows that are the same network message in one framing each.
const DERIVED: usize = 17;

pub struct Sample {
    pub preset: &'static str,
    pub body: Vec<u8>,
}

/// Of each preset the first message of the fixtures that it reads to its end.
pub fn samples() -> Vec<Sample> {
    let recorded = messages();
    let sample = |preset: &&'static str| {
        let of_preset = recorded.iter().filter(|message| message.dialect == *preset);
        let plain = of_preset.filter(|message| message.reject.is_none());
        let body = plain.map(|message| message.body.clone()).find(|body| is_good(preset, body));
        let body = body.unwrap_or_else(|| {
            assert!(["iso87_ascii_binbitmap", "mastercard_like_ascii"].contains(preset));
            // The two differ in fields that this message does not have.
            Message::sale("5555555555554444", 1).encode_as(Layout::Binary)
        });
        assert!(is_good(preset, &body), "no message of {preset}");
        Sample { preset, body }
    };
    let samples: Vec<Sample> = Dialect::PRESETS.iter().map(sample).collect();
    assert_eq!(samples.len(), 12);
    samples
}

fn is_good(preset: &str, body: &[u8]) -> bool {
    let dialect = Dialect::preset(preset).unwrap();
    let mut spans = Spans::default();
    View::parse(&dialect, body, &mut spans).is_ok_and(|view| view.fault().is_none())
}

/// The same network message was recorded in these framings; what the tests' own peers write is that.
#[test]
fn peers_of_the_tests_write_every_framing_and_header_as_it_was_recorded() {
    let lines = lines();
    let recorded = lines.iter().filter_map(Line::message);
    let derived: Vec<_> = recorded
        .filter(|message| message.id.starts_with("drv-") && message.dialect == "iso87_ascii")
        .collect();
    assert_eq!(derived.len(), DERIVED);
    let message = b"0800823A00000000000004000000000000000420090613900001090613042004200\
                    01";
    let mut framings = Vec::new();
    for line in derived {
        let (id, recorded) = (&line.id, &line.recorded);
        let framing = Framing::from_name(recorded.framing.expect("a length"));
        let header = Header::from_name(recorded.header);
        let (frame, whole) = framing.unwrap(&recorded.bytes).unwrap();
        assert_eq!(whole, recorded.bytes.len(), "{id}");
        assert_eq!(header.behind(&frame), message, "{id}");
        assert_eq!(framing.wrap(&frame), recorded.bytes, "{id}");
        framings.push(framing);
    }
    let unrecorded = [Framing::Le16, Framing::Be32Incl, Framing::Ascii(3)];
    for framing in Framing::ALL {
        assert_ne!(framings.contains(&framing), unrecorded.contains(&framing), "{framing:?}");
    }
    for line in lines.iter().filter(|line| line.id().starts_with("drv-keepalive-")) {
        let (id, recorded) = (line.id(), line.recorded());
        let framing = Framing::from_name(recorded.framing.expect("a length"));
        let control = id.ends_with("-session");
        assert_ne!(framing.keepalives().contains(&recorded.bytes), control, "{id}");
    }
}

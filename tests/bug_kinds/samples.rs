//! One good message of each preset.

use tollgate::iso8583::{Dialect, Spans, View};

use crate::support::csv::columns;
use crate::support::framing::Framing;
use crate::support::header::Header;
use crate::support::message::{Layout, Message};

const FIXTURES: &str = include_str!("../../fixtures/messages.csv");
/// Rows that are the same network message in one framing each.
const DERIVED: usize = 17;

pub struct Sample {
    pub preset: &'static str,
    pub body: Vec<u8>,
}

/// Of each preset the first message of the fixtures that it reads to its end.
pub fn samples() -> Vec<Sample> {
    let rows = rows();
    let sample = |preset: &&'static str| {
        let of_preset = rows.iter().filter(|row| row.dialect == *preset);
        let mut recorded = of_preset.filter_map(|row| behind(&row.framing, &row.bytes));
        let body = recorded.find(|body| is_good(preset, body));
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

/// The message of a row in the framing and header it was recorded with, if it is a plain one.
fn behind(framing: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let taken_out = |framing: Framing, header: Header| {
        let (frame, whole) = framing.unwrap(bytes).unwrap();
        assert_eq!(whole, bytes.len());
        header.behind(&frame).to_vec()
    };
    Some(match framing {
        "none" => bytes.to_vec(),
        "header:9(EBCDIC 1ROUTENET)" => Header::Fixed(9).behind(bytes).to_vec(),
        "be16" => taken_out(Framing::Be16, Header::None),
        "be16+tpdu5+hdr6" => taken_out(Framing::Be16, Header::TpduAnd(6)),
        "vmlh4+visa22" => taken_out(Framing::Vmlh4, Header::Visa),
        _ => return None,
    })
}

struct Row {
    id: String,
    dialect: String,
    framing: String,
    bytes: Vec<u8>,
}

fn rows() -> Vec<Row> {
    let mut lines = FIXTURES.lines();
    assert_eq!(lines.next(), Some("id,dialect,framing,hex,expected,source,note"));
    let row = |line| {
        let columns = columns(line);
        let [id, dialect, framing, hex, _expected, _source, _note] = &columns[..] else {
            panic!("not seven columns: {columns:?}");
        };
        let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        Row {
            id: id.clone(),
            dialect: dialect.clone(),
            framing: framing.clone(),
            bytes: digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect(),
        }
    };
    lines.map(row).collect()
}

/// The same network message was recorded in these framings; what the tests' own peers write is that.
#[test]
fn peers_of_the_tests_write_every_framing_and_header_as_it_was_recorded() {
    let rows = rows();
    let derived = |row: &&Row| row.id.starts_with("drv-") && row.dialect == "iso87_ascii";
    let derived: Vec<&Row> = rows.iter().filter(derived).collect();
    assert_eq!(derived.len(), DERIVED);
    let message = b"0800823A00000000000004000000000000000420090613900001090613042004200\
                    01";
    let mut framings = Vec::new();
    for row in derived {
        let (framing, header) = row.framing.split_once('+').unwrap_or((&row.framing, "none"));
        let (framing, header) = match (framing, header) {
            ("be16", "etx") => ("be16_etx", Header::None),
            ("ascii6", "none") => ("ascii:6", Header::None),
            (framing, "none") => (framing, Header::None),
            (framing, "tpdu5") => (framing, Header::Tpdu),
            (framing, "base24:ISO+9") => (framing, Header::Base24),
            other => panic!("{other:?} is not known here"),
        };
        let framing = Framing::from_name(framing);
        let (frame, whole) = framing.unwrap(&row.bytes).unwrap();
        assert_eq!(whole, row.bytes.len(), "{}", row.id);
        assert_eq!(header.behind(&frame), message, "{}", row.id);
        assert_eq!(framing.wrap(&frame), row.bytes, "{}", row.id);
        framings.push(framing);
    }
    let unrecorded = [Framing::Le16, Framing::Be32Incl, Framing::Ascii(3)];
    for framing in Framing::ALL {
        assert_ne!(framings.contains(&framing), unrecorded.contains(&framing), "{framing:?}");
    }
    for row in rows.iter().filter(|row| row.id.starts_with("drv-keepalive-")) {
        let framing = Framing::from_name(&row.framing);
        let control = row.id.ends_with("-session");
        assert_ne!(framing.keepalives().contains(&row.bytes), control, "{}", row.id);
    }
}

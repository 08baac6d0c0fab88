//! The real messages of `fixtures/messages.csv`, each taken out of its framing and header by
//! arithmetic of this file alone, with the table of the dialect that its sender wrote it in.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::collections::BTreeMap;

use crate::csv::columns;

const MESSAGES: &str = include_str!("../../fixtures/messages.csv");
const OVERRIDES: &str = include_str!("../../fixtures/overrides.csv");

/// One line of the file.
pub(crate) enum Line {
    Message(Message),
    /// A frame that says that the line is alive, and holds no message.
    Keepalive,
}

/// A message and what its source says that it holds.
pub(crate) struct Message {
    pub(crate) id: String,
    /// The preset that it is filed under.
    pub(crate) dialect: String,
    /// From the MTI to the end of the last field.
    pub(crate) body: Vec<u8>,
    /// Values by field; 0 is the MTI.
    pub(crate) expected: BTreeMap<u8, String>,
    /// The bitmap's words in hexadecimal digits.
    pub(crate) bitmap: String,
    /// The preset's table with the lines in which the sender differs from it in their places.
    pub(crate) table: String,
    /// How many those are.
    pub(crate) overrides: usize,
}

/// Every line of the file, in its order.
pub(crate) fn lines() -> Vec<Line> {
    let mut rows = MESSAGES.lines();
    assert_eq!(rows.next(), Some("id,dialect,framing,hex,expected,source,note"));
    let overrides = overrides();
    let lines: Vec<_> = rows.map(|row| line(&columns(row), &overrides)).collect();
    // A line that belongs to no message would change nothing, and nobody would see it.
    let used: usize = lines.iter().filter_map(Line::message).map(|message| message.overrides).sum();
    assert_eq!(used, overrides.len(), "overrides of messages that are not there");
    lines
}

/// The messages among them.
pub(crate) fn messages() -> Vec<Message> {
    lines().into_iter().filter_map(Line::into_message).collect()
}

impl Line {
    fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Keepalive => None,
        }
    }

    fn into_message(self) -> Option<Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Keepalive => None,
        }
    }
}

/// The lines of a dialect's table that a message's sender has otherwise, by the message.
fn overrides() -> Vec<(String, String)> {
    let mut rows = OVERRIDES.lines();
    assert_eq!(rows.next(), Some("id,row"));
    rows.map(|row| {
        let [id, row] = columns(row).try_into().expect("two columns");
        (id, row)
    })
    .collect()
}

fn line(row: &[String], overrides: &[(String, String)]) -> Line {
    let [id, dialect, framing, hex, expected, _source, _note] = row else {
        panic!("not seven columns: {row:?}");
    };
    let frame = bytes(hex);
    if expected == "KEEPALIVE" {
        assert!(frame.iter().all(|byte| matches!(byte, 0 | 0x20 | b'0')), "{id}");
        return Line::Keepalive;
    }
    let values: BTreeMap<&str, &str> =
        expected.split(';').map(|pair| pair.split_once('=').expect("a value")).collect();
    let field = |name: &str| name.strip_prefix("DE")?.parse().ok();
    let overrides: Vec<&str> =
        overrides.iter().filter(|(of, _)| of == id).map(|(_, row)| row.as_str()).collect();
    Line::Message(Message {
        id: id.clone(),
        dialect: dialect.clone(),
        body: body(id, framing, &frame).to_vec(),
        expected: values
            .iter()
            .filter_map(|(name, value)| Some((field(name)?, (*value).to_owned())))
            .collect(),
        bitmap: values["BITMAP"].to_owned(),
        table: changed(&preset(dialect), &overrides),
        overrides: overrides.len(),
    })
}

/// The text of a preset's table.
pub(crate) fn preset(name: &str) -> String {
    let path = format!("{}/src/iso8583/presets/{name}.csv", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).expect("the preset's table")
}

/// A table with these lines in the places of those of the same field.
pub(crate) fn changed(table: &str, rows: &[&str]) -> String {
    let field = |row: &str| row.split(',').next().unwrap().to_owned();
    let mut lines: Vec<&str> = table.lines().collect();
    for row in rows {
        let place = lines.iter().position(|line| field(line) == field(row));
        lines[place.expect("a line of that field")] = row;
    }
    lines.join("\n")
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits")).collect()
}

/// What is left of a frame without its length, headers and end. Fails unless the length is right.
fn body<'a>(id: &str, framing: &str, frame: &'a [u8]) -> &'a [u8] {
    let (first, after) = framing.split_once('+').unwrap_or((framing, ""));
    let (mut rest, parts) = match length(first, frame) {
        Some((length_bytes, announced)) => {
            assert_eq!(length_bytes + announced, frame.len(), "{id}");
            (&frame[length_bytes..], after)
        }
        None => (frame, framing),
    };
    if framing.ends_with("etx") {
        rest = rest.strip_suffix(&[3]).expect("ETX");
    }
    let mut header = |first: &[u8], bytes: usize| {
        assert!(rest.starts_with(first), "{id}");
        rest = &rest[bytes..];
    };
    for part in parts.split('+') {
        match part {
            "header:9(EBCDIC 1ROUTENET)" => header(&[0xf1, 0xd9], 9),
            "tpdu5" => header(&[0x60], 5),
            "hdr6" => header(&[0x60, 0x31], 6),
            "visa22" => header(&[22], 22),
            "visa26reject" => header(&[26], 26),
            "base24:ISO" => header(b"ISO", 3),
            "9" => header(b"0", 9),
            "" | "none" | "etx" => {}
            _ => panic!("{id} has a header that is not known here: {part}"),
        }
    }
    rest
}

/// How many bytes a length takes, and how many it says that follow it; `None` if it is no length.
fn length(kind: &str, frame: &[u8]) -> Option<(usize, usize)> {
    let number = |base, digits: &[u8]| {
        let digits = std::str::from_utf8(digits).expect("digits");
        usize::from_str_radix(digits, base).expect("digits")
    };
    let binary = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all << 8 | usize::from(*byte));
    Some(match kind {
        "be16" => (2, binary(&frame[..2])),
        "be16_incl" => (2, binary(&frame[..2]) - 2),
        "be24" => (3, binary(&frame[..3])),
        "be32" => (4, binary(&frame[..4])),
        "vmlh4" => (4, binary(&frame[..2])),
        "gicc4" => (4, binary(&frame[2..4])),
        "rbp6" => (6, binary(&frame[2..4])),
        "ascii4" => (4, number(10, &frame[..4])),
        "ascii6" => (6, number(10, &frame[..6])),
        "hex4" => (4, number(16, &frame[..4])),
        "bcd2" => {
            let digits: String = frame[..2].iter().map(|byte| format!("{byte:02x}")).collect();
            (2, number(10, digits.as_bytes()))
        }
        _ => return None,
    })
}

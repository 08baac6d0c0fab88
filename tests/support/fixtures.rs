//! The real messages of `fixtures/messages.csv`, each taken out of its framing and header by
//! arithmetic of this file alone, with the table of the dialect that its sender wrote it in.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

#[path = "hex.rs"]
pub(crate) mod hex;

use std::collections::BTreeMap;
use std::fmt::Write;

use super::csv::columns;
use hex::from_hex;

const MESSAGES: &str = include_str!("../../fixtures/messages.csv");
const OVERRIDES: &str = include_str!("../../fixtures/overrides.csv");

/// One line of the file.
pub(crate) enum Line {
    Message(Message),
    /// A frame that says that the line is alive, and holds no message.
    Keepalive {
        id: String,
        recorded: Recorded,
    },
}

/// A line's bytes, and what stands around its message in the words of the configuration.
pub(crate) struct Recorded {
    /// `None` where it came without a length.
    pub(crate) framing: Option<&'static str>,
    pub(crate) header: &'static str,
    /// The bytes as digits, as they stand in the file.
    pub(crate) hex: String,
    pub(crate) bytes: Vec<u8>,
    /// Without length and end mark; nothing of a keepalive.
    pub(crate) frame: Vec<u8>,
}

/// A message and what its source says that it holds.
pub(crate) struct Message {
    pub(crate) id: String,
    /// The preset that it is filed under.
    pub(crate) dialect: String,
    pub(crate) recorded: Recorded,
    /// The code, of a message that came back rejected.
    pub(crate) reject: Option<String>,
    /// From the MTI to the end of the last field.
    pub(crate) body: Vec<u8>,
    /// Values by field; 0 is the MTI.
    pub(crate) expected: BTreeMap<u8, String>,
    /// The bitmap's words in hexadecimal digits.
    pub(crate) bitmap: String,
    /// The lines in which the sender differs from the preset's table.
    pub(crate) overrides: Vec<String>,
    /// The preset's table with those lines in their places.
    pub(crate) table: String,
}

/// Every line of the file, in its order.
pub(crate) fn lines() -> Vec<Line> {
    let mut rows = MESSAGES.lines();
    assert_eq!(rows.next(), Some("id,dialect,framing,hex,expected,source,note"));
    let overrides = overrides();
    let lines: Vec<_> = rows.map(|row| line(&columns(row), &overrides)).collect();
    // A line that belongs to no message would change nothing, and nobody would see it.
    let messages = lines.iter().filter_map(Line::message);
    let used: usize = messages.map(|message| message.overrides.len()).sum();
    assert_eq!(used, overrides.len(), "overrides of messages that are not there");
    lines
}

/// The messages among them.
pub(crate) fn messages() -> Vec<Message> {
    lines().into_iter().filter_map(Line::into_message).collect()
}

impl Line {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Message(message) => &message.id,
            Self::Keepalive { id, .. } => id,
        }
    }

    pub(crate) fn recorded(&self) -> &Recorded {
        match self {
            Self::Message(message) => &message.recorded,
            Self::Keepalive { recorded, .. } => recorded,
        }
    }

    pub(crate) fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Keepalive { .. } => None,
        }
    }

    fn into_message(self) -> Option<Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Keepalive { .. } => None,
        }
    }
}

impl Message {
    /// `[dialect.NAME]` on top of the preset, for the lines in which its sender differs from it;
    /// nothing where there are none.
    pub(crate) fn own_dialect(&self, name: &str) -> String {
        if self.overrides.is_empty() {
            return String::new();
        }
        let mut text = format!("[dialect.{name}]\nbase = \"{}\"\n", self.dialect);
        for line in &self.overrides {
            let words: Vec<&str> = line.split(',').collect();
            let [de, content, length, length_encoding, encoding, max, unit, pad, _] = words[..]
            else {
                panic!("{line}");
            };
            let always = length == "fixed";
            // A table may name more than a message can hold, a configuration may not.
            let max = max.parse::<u32>().expect("a number").min(65_535);
            let said = match de {
                "1" => write!(
                    text,
                    "[dialect.{name}.bitmap]\nencoding = \"{encoding}\"\nbytes = {max}\n\
                     always = {always}\n"
                ),
                _ => write!(
                    text,
                    "[dialect.{name}.field.{de}]\ncontent = \"{content}\"\n\
                     length = \"{length}\"\nlength_encoding = \"{length_encoding}\"\n\
                     encoding = \"{encoding}\"\nmax = {max}\nunit = \"{unit}\"\npad = \"{pad}\"\n"
                ),
            };
            said.expect("text");
        }
        text
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
    let [id, dialect, around, hex, expected, _source, _note] = row else {
        panic!("not seven columns: {row:?}");
    };
    let bytes = from_hex(hex);
    let (framing, header) = words(around);
    let keepalive = expected == "KEEPALIVE";
    let frame = if keepalive { &[][..] } else { frame(id, around, &bytes) };
    let recorded =
        Recorded { framing, header, hex: hex.clone(), frame: frame.to_vec(), bytes: bytes.clone() };
    if keepalive {
        assert!(bytes.iter().all(|byte| matches!(byte, 0 | 0x20 | b'0')), "{id}");
        return Line::Keepalive { id: id.clone(), recorded };
    }
    let values: BTreeMap<&str, &str> =
        expected.split(';').map(|pair| pair.split_once('=').expect("a value")).collect();
    let fields = values.iter().filter(|(name, _)| !["BITMAP", "REJECT"].contains(*name));
    let field = |name: &str| name.strip_prefix("DE").expect(id).parse().expect(id);
    let overrides: Vec<String> =
        overrides.iter().filter(|(of, _)| of == id).map(|(_, row)| row.clone()).collect();
    Line::Message(Message {
        id: id.clone(),
        dialect: dialect.clone(),
        body: body(id, around, frame).to_vec(),
        recorded,
        reject: values.get("REJECT").map(|code| (*code).to_owned()),
        expected: fields.map(|(name, value)| (field(name), (*value).to_owned())).collect(),
        bitmap: values["BITMAP"].to_owned(),
        table: changed(&preset(dialect), &overrides),
        overrides,
    })
}

/// The file's words for framing and header in those of the configuration.
fn words(around: &str) -> (Option<&'static str>, &'static str) {
    let (framing, header) = match around {
        "none" => return (None, "none"),
        "header:9(EBCDIC 1ROUTENET)" => return (None, "fixed:9"),
        "base24:ISO+9" => return (None, "base24"),
        "be16" => ("be16", "none"),
        "be16+tpdu5" => ("be16", "tpdu"),
        "be16+tpdu5+hdr6" => ("be16", "tpdu+6"),
        "be16+base24:ISO+9" => ("be16", "base24"),
        "be16_incl" => ("be16_incl", "none"),
        "be16_incl+tpdu5" => ("be16_incl", "tpdu"),
        "be16+etx" => ("be16_etx", "none"),
        "be24" => ("be24", "none"),
        "be32" => ("be32", "none"),
        "vmlh4" => ("vmlh4", "none"),
        "vmlh4+visa22" | "vmlh4+visa26reject+visa22" => ("vmlh4", "visa"),
        "gicc4" => ("gicc4", "none"),
        "rbp6" => ("rbp6", "none"),
        "ascii4" => ("ascii4", "none"),
        "ascii6" => ("ascii:6", "none"),
        "bcd2" => ("bcd2", "none"),
        "bcd2+tpdu5" => ("bcd2", "tpdu"),
        "hex4" => ("hex4", "none"),
        "etx" => ("etx", "none"),
        other => panic!("{other} is not known here"),
    };
    (Some(framing), header)
}

/// The text of a preset's table.
pub(crate) fn preset(name: &str) -> String {
    let path = format!("{}/src/iso8583/presets/{name}.csv", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).expect("the preset's table")
}

/// A table with these lines in the places of those of the same field.
pub(crate) fn changed<T: AsRef<str>>(table: &str, rows: &[T]) -> String {
    let field = |row: &str| row.split(',').next().unwrap().to_owned();
    let mut lines: Vec<&str> = table.lines().collect();
    for row in rows.iter().map(AsRef::as_ref) {
        let place = lines.iter().position(|line| field(line) == field(row));
        lines[place.expect("a line of that field")] = row;
    }
    lines.join("\n")
}

/// A frame without its length and its end. Fails unless the length is right.
fn frame<'a>(id: &str, around: &str, bytes: &'a [u8]) -> &'a [u8] {
    let counted = length(around.split('+').next().unwrap(), bytes);
    let (length_bytes, announced) = counted.unwrap_or((0, bytes.len()));
    assert_eq!(length_bytes + announced, bytes.len(), "{id}");
    let frame = &bytes[length_bytes..];
    if around.ends_with("etx") { frame.strip_suffix(&[3]).expect("ETX") } else { frame }
}

/// What is left of a frame without its headers.
fn body<'a>(id: &str, around: &str, frame: &'a [u8]) -> &'a [u8] {
    let mut rest = frame;
    let mut header = |first: &[u8], bytes: usize| {
        assert!(rest.starts_with(first), "{id}");
        rest = &rest[bytes..];
    };
    for part in around.split('+') {
        match part {
            "header:9(EBCDIC 1ROUTENET)" => header(&[0xf1, 0xd9], 9),
            "tpdu5" => header(&[0x60], 5),
            "hdr6" => header(&[0x60, 0x31], 6),
            "visa22" => header(&[22], 22),
            "visa26reject" => header(&[26], 26),
            "base24:ISO" => header(b"ISO", 3),
            "9" => header(b"0", 9),
            // The framing, of which every word is known above.
            _ => {}
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

//! The real messages of the fixtures, read by decoders of other people: pyiso8583, which is told
//! each dialect's table, and `iso8583_rs`, which is told by hand. Each reads what it can express as
//! tollgate does and as the message's source says; what neither can is listed with its reason.
//!
//! The lists are exact, so that a message that stops being compared shows here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test states its expectations"
)]

#[path = "support/csv.rs"]
mod csv;
#[path = "support/fixtures.rs"]
mod fixtures;

use std::collections::{BTreeMap, HashMap};
use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use fixtures::{Line, Message};
use iso8583_rs::iso8583::bitmap::BmpField;
use iso8583_rs::iso8583::field::{Encoding, Field, FixedField, VarField};
use serde_json::Value;
use tollgate::iso8583::{Dialect, Spans, View};

/// Longer than any field of the fixtures.
const TEXT_MAX: usize = 2_000;

/// Values by field; 0 is the MTI.
type Fields = BTreeMap<u8, String>;

/// Tollgate's reading.
fn tollgate(message: &Message) -> Fields {
    let dialect = Dialect::from_table(&message.table).expect("a table");
    let mut spans = Spans::default();
    let view = View::parse(&dialect, &message.body, &mut spans).expect("an MTI");
    assert_eq!(view.fault(), None, "{}", message.id);
    let text = |de| String::from_utf8_lossy(view.text::<TEXT_MAX>(de).unwrap().as_bytes()).into();
    let fields = view.fields().iter().map(|de| (de, text(de)));
    fields.chain([(0, view.mti().to_string())]).collect()
}

/// What pyiso8583 cannot express, and why.
const NOT_FOR_PYISO8583: [(&str, &str); 6] = [
    ("nao-basei-0100-auth-request", WORDS),
    ("nao-basei-0110-auth-response", WORDS),
    ("nao-basei-0420-reversal-advice", WORDS),
    ("nao-basei-0800-network-echo", WORDS),
    ("nao-basei-0100-auth-request-unknown-tlv", WORDS),
    ("nao-spec87ascii-0800-network-echo", WORDS),
];
const WORDS: &str = "two words of bitmap without a first bit that says so";

/// A line of the fixtures each, as `tests/foreign/decode.py` prints them.
fn pyiso8583() -> Vec<Value> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
    let python = target.join("second-decoder/bin/python3");
    assert!(
        python.exists(),
        "the second decoder is not installed in {}: run `bash tests/run.sh`, which installs it",
        target.display()
    );
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/decode.py");
    let output = Command::new(python).arg(script).output().expect("the second decoder starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the second decoder fails: {errors}");
    let lines = String::from_utf8(output.stdout).expect("text");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn pyiso8583_reads_the_same_fields_in_every_message_that_it_can_express() {
    let lines = fixtures::lines();
    let theirs = pyiso8583();
    assert_eq!(lines.len(), theirs.len(), "it reads the same file");
    let (mut compared, mut keepalives, mut cannot) = (0, 0, Vec::new());
    for (line, theirs) in lines.iter().zip(&theirs) {
        let Line::Message(message) = line else {
            assert_eq!(theirs["keepalive"], true);
            keepalives += 1;
            continue;
        };
        assert_eq!(theirs["id"], message.id.as_str());
        if let Some(reason) = theirs["cannot"].as_str() {
            cannot.push((message.id.as_str(), reason));
            continue;
        }
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let fields = theirs["fields"].as_object().expect("fields").iter();
        let fields = fields.map(|(de, value)| (de.parse().expect("a field's number"), text(value)));
        let theirs: Fields = fields.chain([(0, text(&theirs["mti"]))]).collect();
        assert_eq!(theirs, message.expected, "{}: the source says otherwise", message.id);
        assert_eq!(theirs, tollgate(message), "{}: tollgate reads otherwise", message.id);
        compared += 1;
    }
    assert_eq!(cannot, NOT_FOR_PYISO8583);
    assert_eq!((compared, keepalives), (47, 5));
    assert_eq!(compared + cannot.len() + keepalives, lines.len(), "every line is accounted for");
}

/// What `iso8583_rs` is told of a field: its bytes, or the bytes and encoding of its length.
#[derive(Clone, Copy)]
enum Size {
    Fixed(u32),
    Length(u32, Encoding),
}

/// Encoding of MTI, then each field.
type Layout = (Encoding, &'static [(u32, Size, Encoding)]);

use Encoding::{ASCII, BCD, BINARY, EBCDIC};
use Size::{Fixed, Length};

/// The layouts of the messages that it can express, from its own sample and from what the messages'
/// sources say, not from tollgate's tables.
fn layout(id: &str) -> Option<Layout> {
    Some(match id {
        "rs-1100-req" | "rs-1110-resp" => SAMPLE,
        "jpos-postilion" => POSTILION,
        "shu-mast-moneysend" => MONEYSEND,
        "ralves-0800" => RALVES,
        _ => return None,
    })
}

/// From the sample specification that comes with it.
const SAMPLE: Layout = (
    ASCII,
    &[
        (2, Length(2, ASCII), ASCII),
        (3, Fixed(6), ASCII),
        (4, Fixed(12), ASCII),
        (11, Fixed(6), ASCII),
        (14, Fixed(4), ASCII),
        (19, Fixed(3), EBCDIC),
        (38, Fixed(6), ASCII),
        (39, Fixed(3), ASCII),
        (52, Fixed(8), BINARY),
        (61, Length(2, BCD), ASCII),
        (62, Length(1, BINARY), EBCDIC),
        (63, Length(3, EBCDIC), ASCII),
        (64, Fixed(8), BINARY),
        (96, Fixed(4), ASCII),
        (128, Fixed(8), BINARY),
        (160, Fixed(4), ASCII),
    ],
);

const POSTILION: Layout = (
    ASCII,
    &[
        (3, Fixed(6), ASCII),
        (7, Fixed(10), ASCII),
        (11, Fixed(6), ASCII),
        (12, Fixed(6), ASCII),
        (13, Fixed(4), ASCII),
        (41, Fixed(8), ASCII),
        (127, Length(6, ASCII), BINARY),
    ],
);

const MONEYSEND: Layout = (
    EBCDIC,
    &[
        (2, Length(2, EBCDIC), EBCDIC),
        (3, Fixed(6), EBCDIC),
        (4, Fixed(12), EBCDIC),
        (7, Fixed(10), EBCDIC),
        (11, Fixed(6), EBCDIC),
        (12, Fixed(6), EBCDIC),
        (13, Fixed(4), EBCDIC),
        (18, Fixed(4), EBCDIC),
        (22, Fixed(3), EBCDIC),
        (32, Length(2, EBCDIC), EBCDIC),
        (37, Fixed(12), EBCDIC),
        (41, Fixed(8), EBCDIC),
        (42, Fixed(15), EBCDIC),
        (43, Fixed(40), EBCDIC),
        (48, Length(3, EBCDIC), EBCDIC),
        (49, Fixed(3), EBCDIC),
        (61, Length(3, EBCDIC), EBCDIC),
        (124, Length(3, EBCDIC), EBCDIC),
    ],
);

const RALVES: Layout = (
    BCD,
    &[
        (3, Fixed(3), BCD),
        (11, Fixed(3), BCD),
        (12, Fixed(3), BCD),
        (13, Fixed(2), BCD),
        (43, Fixed(40), ASCII),
        (63, Length(2, BCD), BINARY),
    ],
);

/// Why `iso8583_rs` cannot express a message: it reads bitmaps of bytes only, and lengths that count
/// bytes only.
const HEX: &str = "a bitmap in hexadecimal digits";
const DIGITS: &str = "a length that counts digits";

#[rustfmt::skip]
const NOT_FOR_ISO8583_RS: [(&str, &str); 48] = [
    ("jpos-87a-full", HEX),
    ("jpos-87a-f64", HEX),
    ("jpos-87b-full", DIGITS),
    ("jpos-87b-f64", DIGITS),
    ("jpos-93a-full", HEX),
    ("jpos-93b-full", DIGITS),
    ("jpos-93ebcdic", HEX),
    ("shu-visa-cash-sms-rev", DIGITS),
    ("shu-visa-f55", DIGITS),
    ("shu-visa-f55-unordered", DIGITS),
    ("moov-network-management-message-response", HEX),
    ("py-0200-secondary", HEX),
    ("py-0200-empty", HEX),
    ("py-0200-emv", HEX),
    ("nao-basei-0100-auth-request", HEX),
    ("nao-basei-0110-auth-response", HEX),
    ("nao-basei-0420-reversal-advice", HEX),
    ("nao-basei-0800-network-echo", HEX),
    ("nao-basei-0100-auth-request-unknown-tlv", HEX),
    ("nao-spec87ascii-0800-network-echo", HEX),
    ("imo-0800-odd-left", DIGITS),
    ("imo-0800-even", DIGITS),
    ("imo-0800-hexlen-odd", DIGITS),
    ("pk-0200", HEX),
    ("jm-0800", HEX),
    ("jm-0810", HEX),
    ("b24-0800", HEX),
    ("b24-0810-be16", HEX),
    ("cup-0800-signin", DIGITS),
    ("cup-0200-pay", DIGITS),
    ("drv-be16", HEX),
    ("drv-be16-incl", HEX),
    ("drv-be16-incl-hdr", HEX),
    ("drv-tpdu", HEX),
    ("drv-be24", HEX),
    ("drv-be32", HEX),
    ("drv-be16-0000", HEX),
    ("drv-0000-be16", HEX),
    ("drv-ascii4", HEX),
    ("drv-ascii6", HEX),
    ("drv-bcd2", HEX),
    ("drv-bcd2-tpdu", HEX),
    ("drv-hex4", HEX),
    ("drv-rbp6", HEX),
    ("drv-etx", HEX),
    ("drv-be16-etx", HEX),
    ("drv-b24-be16", HEX),
    ("drv-visa-reject", DIGITS),
];

/// Its reading, each value as the fixtures write it.
fn iso8583_rs(body: &[u8], (encoding, fields): Layout) -> Fields {
    let name = |de: u32| format!("de{de}");
    let children = fields.iter().map(|(de, size, encoding)| -> Box<dyn Field> {
        let (name, id, position, encoding) = (name(*de), *de, *de, *encoding);
        match *size {
            Fixed(len) => Box::new(FixedField { name, id, len, encoding, position }),
            Length(len, len_encoding) => {
                Box::new(VarField { name, id, len, len_encoding, encoding, position })
            }
        }
    });
    let len = if matches!(encoding, BCD) { 2 } else { 4 };
    let mti = FixedField { name: name(0), id: 0, len, encoding, position: 0 };
    let bitmap = BmpField {
        name: "bitmap".to_owned(),
        id: 1,
        encoding: BINARY,
        children: children.collect(),
    };
    let (mut cursor, mut values) = (Cursor::new(body), HashMap::new());
    mti.parse(&mut cursor, &mut values).expect("an MTI");
    bitmap.parse(&mut cursor, &mut values).expect("fields");
    assert_eq!(cursor.position(), body.len() as u64, "it leaves bytes at the end");
    let mut read = Fields::from([(0, mti.to_string(&values[&name(0)]))]);
    for (field, (de, _, encoding)) in bitmap.children.iter().zip(fields) {
        if let Some(value) = values.get(field.name()) {
            let value = field.to_string(value);
            let in_bytes = matches!(encoding, BINARY | BCD);
            let value = if in_bytes { value.to_uppercase() } else { value };
            read.insert(u8::try_from(*de).unwrap(), value);
        }
    }
    assert_eq!(read.len() + 1, values.len(), "every value but the bitmap is compared");
    read
}

#[test]
fn iso8583_rs_reads_the_same_fields_in_every_message_that_it_can_express() {
    let messages = fixtures::messages();
    let (mut compared, mut without) = (Vec::new(), Vec::new());
    for message in &messages {
        let id = message.id.as_str();
        let Some(layout) = layout(id) else {
            without.push(id);
            continue;
        };
        let theirs = iso8583_rs(&message.body, layout);
        assert_eq!(theirs, message.expected, "{id}: the source says otherwise");
        assert_eq!(theirs, tollgate(message), "{id}: tollgate reads otherwise");
        compared.push(id);
    }
    assert_eq!(
        compared,
        ["jpos-postilion", "shu-mast-moneysend", "rs-1100-req", "rs-1110-resp", "ralves-0800"]
    );
    assert_eq!(without, NOT_FOR_ISO8583_RS.map(|(id, _)| id));
    assert_eq!(compared.len() + without.len(), messages.len(), "every message is accounted for");
}

/// The reasons are true of the messages: their tables say so.
#[test]
fn what_iso8583_rs_cannot_express_is_as_the_list_says() {
    let messages = fixtures::messages();
    for (id, reason) in NOT_FOR_ISO8583_RS {
        let message = messages.iter().find(|message| message.id == id).expect(id);
        let rows: Vec<Vec<&str>> =
            message.table.lines().map(|line| line.split(',').collect()).collect();
        let counts_digits = |row: &Vec<&str>| {
            let de = row[0].parse::<u8>().ok().filter(|de| *de > 1);
            de.is_some_and(|de| message.expected.contains_key(&de))
                && row[2] != "fixed"
                && row[6] == "digits"
        };
        let true_of_it = match reason {
            HEX => rows.iter().any(|row| row[0] == "1" && row[4].starts_with("hex")),
            _ => rows.iter().any(counts_digits),
        };
        assert!(true_of_it, "{id} has not {reason}");
    }
}

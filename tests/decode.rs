//! `tollgate decode`: every message of the fixtures as its table has it, what of it is shown, where
//! a broken one breaks, and which reading fits one that was read in a wrong way.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    unreachable_pub,
    reason = "a test states its expectations"
)]

mod support;

#[path = "decode/faults.rs"]
mod faults;
#[path = "decode/fits.rs"]
mod fits;
#[path = "decode/given.rs"]
mod given;
#[path = "decode/leaks.rs"]
mod leaks;
#[path = "decode/rows.rs"]
mod rows;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use leaks::{assert_silent, secrets};
use rows::{Expected, Row, config_of, masked, rows};
use serde_json::{Value, json};
use support::hex::to_hex;
use support::message::{Layout, Message};
use tollgate::iso8583::Dialect;

const SOUND: i32 = 0;
const FAULTY: i32 = 1;
const USAGE: i32 = 64;
const CONFIGURATION: i32 = 78;

/// What a run of `tollgate decode` said.
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it ended by itself"),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// The objects that were printed, one a line.
    #[track_caller]
    fn objects(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

/// Runs the real binary; what it prints may be longer than a pipe takes, so it is read all along.
fn decode(arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    Said::of(command.arg("decode").args(arguments).stdin(Stdio::null()).output().unwrap())
}

/// A file of this test's own.
fn temporary(name: &str, bytes: &[u8]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("decode-{}-{name}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The configuration with the dialects of those rows that no preset reads.
static CONFIG: LazyLock<String> =
    LazyLock::new(|| temporary("dialects.toml", config_of(&rows()).as_bytes()));

/// Decodes a row as it is to be read.
fn decode_row(row: &Row, more: &[&str]) -> Said {
    let dialect = row.reading_dialect();
    let options = ["--dialect", &dialect, "--framing", row.framing, "--header", row.header];
    let config = ["--config", CONFIG.as_str()];
    let config = if row.is_of_preset() { &[] } else { &config[..] };
    decode(&[&options[..], config, more, &[&row.hex]].concat())
}

/// The rows that a preset reads as it is.
fn rows_of_presets() -> Vec<Row> {
    let mut rows = rows();
    rows.retain(Row::is_of_preset);
    rows
}

#[test]
fn every_message_of_the_fixtures_is_told_field_by_field() {
    let mut told = 0;
    for row in rows() {
        told += 1;
        let said = decode_row(&row, &["--json"]);
        assert_eq!((said.code, said.err.as_str()), (SOUND, ""), "{}", row.id);
        let objects = said.objects();
        assert_eq!(objects.len(), 1, "{}", row.id);
        check(&row, &objects[0]);
    }
    assert_eq!(told, 58);
    assert_eq!(rows_of_presets().len(), 47);
}

/// Compares what was printed of a row with what its table says.
fn check(row: &Row, object: &Value) {
    let (id, bytes) = (&row.id, row.bytes);
    let Expected::Message { reject, bitmap, mti, fields } = &row.expected else {
        assert_eq!(object, &json!({ "offset": 0, "keepalive": true, "bytes": bytes }), "{id}");
        return;
    };
    assert_eq!(object["offset"], 0, "{id}");
    assert_eq!(object["framing"], row.framing, "{id}");
    assert_eq!(object["mti"], mti.as_str(), "{id}");
    assert_eq!(object["bitmap"], bitmap.as_str(), "{id}");
    assert_eq!(object["reject"], json!(reject), "{id}");
    assert_eq!(object["fault"], Value::Null, "{id}");
    assert_eq!(object["fits"], json!([]), "{id}");
    let header = object["header"].as_str().expect("a header");
    assert!(row.hex.to_uppercase().contains(header), "{id}");
    let printed = object["fields"].as_array().expect("fields");
    let numbers: Vec<u64> = printed.iter().map(|field| field["de"].as_u64().unwrap()).collect();
    let expected: Vec<u64> = fields.keys().map(|de| u64::from(*de)).collect();
    assert_eq!(numbers, expected, "{id}");
    for ((de, value), field) in fields.iter().zip(printed) {
        let (shown, hidden) = masked(*de, value);
        assert_eq!(field["value"], json!(shown), "field {de} of {id}");
        assert_eq!(field["masked"], hidden, "field {de} of {id}");
    }
    // The fields lie one behind the other, and the last one ends where the message does.
    let whole = object["bytes"].as_u64().unwrap();
    let mut ends: Vec<u64> =
        printed.iter().map(|field| field["offset"].as_u64().unwrap()).collect();
    assert!(ends.is_sorted(), "{id}");
    ends.push(whole);
    for (field, end) in printed.iter().zip(&ends[1..]) {
        let (offset, raw) = (&field["offset"], &field["raw_bytes"]);
        let prefix = end - offset.as_u64().unwrap() - raw.as_u64().unwrap();
        assert!(prefix <= 6, "{prefix} bytes of length before field {} of {id}", field["de"]);
    }
}

#[test]
fn the_text_for_people_has_the_same_lines() {
    let mut told = 0;
    for row in rows() {
        let said = decode_row(&row, &[]);
        assert_eq!((said.code, said.err.as_str()), (SOUND, ""), "{}", row.id);
        let mut lines = said.out.lines();
        let first = lines.next().unwrap();
        let Expected::Message { reject, mti, fields, .. } = &row.expected else {
            assert!(first.starts_with("keepalive at offset 0, "), "{first}");
            continue;
        };
        told += 1;
        assert!(first.starts_with(&format!("message 1 at offset 0: MTI {mti}, ")), "{first}");
        let numbers: Vec<String> = fields.keys().map(u8::to_string).collect();
        let announced = format!(", fields {}", numbers.join(" "));
        assert!(first.ends_with(announced.trim_end()), "{first}");
        if let Some(code) = reject {
            let rejected = format!("  rejected by the network, reject code {code}: ");
            assert!(said.out.contains(&rejected), "{}", said.out);
        }
        let dialect = Dialect::preset(&row.dialect).unwrap();
        let field_lines: Vec<&str> =
            lines.filter(|line| line.starts_with("   ") || line.starts_with("  1")).collect();
        assert_eq!(field_lines.len(), fields.len(), "{}:\n{}", row.id, said.out);
        for ((de, value), line) in fields.iter().zip(field_lines) {
            let shown = masked(*de, value).0.unwrap_or_else(|| "***".to_owned());
            let name = dialect.field_name(*de).unwrap();
            assert!(line.trim_start().starts_with(&format!("{de}  {name}")), "{line}");
            assert!(line.contains(" byte") && line.ends_with(&format!("  {shown}")), "{line}");
        }
    }
    assert_eq!(told, 53);
}

/// A header and a bitmap are hexadecimal digits in which anything may be found by chance. They were
/// compared with the table, so they are taken out before the search.
fn without_header_and_bitmap(row: &Row, said: &str) -> String {
    let objects = decode_row(row, &["--json"]).objects();
    let mut said = said.to_owned();
    for part in ["header", "bitmap"] {
        let part = objects[0][part].as_str().unwrap_or_default();
        if !part.is_empty() {
            said = said.replace(part, "");
        }
    }
    said
}

#[test]
fn nothing_that_is_masked_is_in_what_is_printed() {
    let mut searched = 0;
    for row in rows().iter().filter(|row| row.is_message()) {
        let secrets = secrets(row);
        searched += secrets.len();
        for more in [&[][..], &["--json"]] {
            let said = decode_row(row, more);
            let printed = without_header_and_bitmap(row, &(said.out + &said.err));
            assert_silent(&row.id, &secrets, &printed);
        }
    }
    assert!(searched > 2_000, "{searched} pieces of masked values");
}

/// Whatever is taken for a field, a bitmap or a header by a wrong option may be anything.
#[test]
fn nothing_that_is_masked_is_printed_however_wrongly_it_is_read() {
    let mut runs = 0;
    for row in rows().iter().filter(|row| row.is_message()) {
        let secrets = secrets(row);
        for dialect in Dialect::PRESETS {
            for (framing, header) in [
                (row.framing, row.header),
                (row.framing, "fixed:28"),
                ("none", "none"),
                ("none", "fixed:22"),
                ("ascii:2", "none"),
            ] {
                let options = ["--dialect", dialect, "--framing", framing, "--header", header];
                let said = decode(&[&options[..], &[&row.hex]].concat());
                if said.code == FAULTY {
                    let what = format!("{} as {options:?}", row.id);
                    assert_silent(&what, &secrets, &(said.out + &said.err));
                    runs += 1;
                }
            }
        }
    }
    assert!(runs > 2_500, "{runs} wrong readings");
}

/// A capture of a framing, with a keepalive between two messages.
#[test]
fn a_capture_is_told_frame_by_frame() {
    let sale = Message::sale("4111111111111111", 7);
    let echo = Message::new("0800", &[(11, "000008"), (70, "301")]);
    let mut capture = Vec::new();
    for frame in [sale.encode(), Vec::new(), echo.encode_as(Layout::Hex)] {
        capture.extend(u16::try_from(frame.len()).unwrap().to_be_bytes());
        capture.extend(frame);
    }
    let second = 2 + sale.encode().len();
    let third = second + 2;
    let hex = to_hex(&capture);
    let said = decode(&["--dialect", "iso87_ascii", "--framing", "be16", "--json", &hex]);
    assert_eq!(said.code, SOUND);
    let objects = said.objects();
    let offsets: Vec<_> = objects.iter().map(|object| object["offset"].as_u64().unwrap()).collect();
    assert_eq!(offsets, [0, second as u64, third as u64]);
    assert_eq!(objects[0]["mti"], "0100");
    assert_eq!(objects[1]["keepalive"], true);
    assert_eq!(objects[2]["mti"], "0800");
    let said = decode(&["--dialect", "iso87_ascii", "--framing", "be16", &hex]);
    let heads: Vec<&str> = said.out.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(heads.len(), 3, "{}", said.out);
    assert!(heads[0].starts_with("message 1 at offset 0: MTI 0100"), "{}", heads[0]);
    assert_eq!(heads[1], format!("keepalive at offset {second}, 2 bytes"));
    let last = format!("message 2 at offset {third}: MTI 0800, {} bytes", echo.encode().len());
    assert!(heads[2].starts_with(&last), "{}", heads[2]);
}

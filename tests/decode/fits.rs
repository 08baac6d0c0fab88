//! Which reading fits what was read in a wrong way.

use serde_json::{Value, json};

use super::{FAULTY, decode, rows_of_presets};
use crate::rows::Row;
use crate::support::hex::to_hex;
use crate::support::message::{Layout, Message};
use tollgate::iso8583::Dialect;

/// Wrong readings of a row: every other dialect, and its own behind other framings and headers.
fn wrong_readings(row: &Row) -> Vec<(&str, &str, &str)> {
    let dialects = Dialect::PRESETS.iter().filter(|name| **name != row.dialect);
    let framings = ["none", "be16", "be32", "ascii4", "etx"];
    let framings = framings.iter().filter(|name| **name != row.framing);
    dialects
        .map(|dialect| (*dialect, row.framing, row.header))
        .chain(framings.map(|framing| (row.dialect.as_str(), *framing, row.header)))
        .chain([(row.dialect.as_str(), row.framing, "fixed:3"), ("iso87_bcd", "le16", "visa")])
        .collect()
}

#[test]
fn every_message_of_the_fixtures_is_told_its_right_reading() {
    let (mut searched, mut no_fault) = (0, Vec::new());
    for row in rows_of_presets().iter().filter(|row| row.is_message()) {
        let right = json!({
            "framing": row.framing, "header": row.header, "dialect": row.dialect,
        });
        for (dialect, framing, header) in wrong_readings(row) {
            let options = ["--dialect", dialect, "--framing", framing, "--header", header];
            let said = decode(&[&options[..], &["--json", &row.hex]].concat());
            if said.code != FAULTY {
                no_fault.push(format!("{} as {framing} {dialect}", row.id));
                continue;
            }
            searched += 1;
            let told = said
                .objects()
                .into_iter()
                .find(|object| object["fits"] != json!([]) && object["keepalive"].is_null());
            let fits = told.map_or(json!([]), |object| object["fits"].clone());
            let fits = fits.as_array().cloned().unwrap_or_default();
            assert!(fits.contains(&right), "{} as {options:?}: {fits:?}", row.id);
            assert!(fits.len() <= 3, "{} as {options:?}: {fits:?}", row.id);
        }
    }
    // These are read to their end in another way as well: nothing in their bytes tells.
    assert_eq!(
        no_fault,
        [
            "jpos-87b-full as none iso87_bcd_left",
            "jpos-87b-f64 as none iso87_bcd_left",
            "py-0200-secondary as none iso93_ascii",
            "py-0200-empty as none iso93_ascii",
            "imo-0800-odd-left as none iso87_bcd",
            "imo-0800-odd-left as none iso93_bcd",
            "imo-0800-odd-left as none cup_pos_bcd",
            "imo-0800-even as none iso87_bcd",
            "imo-0800-even as none iso93_bcd",
            "imo-0800-even as none cup_pos_bcd",
            "pk-0200 as none iso93_ascii",
            "jm-0800 as none iso93_ascii",
            "drv-be32 as be16 iso87_ascii",
            "drv-0000-be16 as be16 iso87_ascii",
            "drv-0000-be16 as be32 iso87_ascii",
        ]
    );
    assert!(searched >= 700, "{searched} readings");
}

#[test]
fn the_reading_that_fits_is_said_as_it_is_typed() {
    let frame = Message::sale("4111111111111111", 7).encode_as(Layout::Binary);
    let tpdu = [0x60, 0, 1, 0, 2];
    let length = u16::try_from(5 + frame.len()).unwrap().to_be_bytes();
    let hex = to_hex(&[&length[..], &tpdu, &frame].concat());
    let said = decode(&["--dialect", "iso87_ascii", &hex]);
    let fits: Vec<&str> = said.out.lines().filter(|line| line.starts_with("  fits: ")).collect();
    let fit = "  fits: it reads to its end as --framing be16 --header tpdu --dialect ";
    let equal = ["iso87_ascii_binbitmap", "mastercard_like_ascii"];
    assert_eq!(fits, equal.map(|dialect| format!("{fit}{dialect}")));
    let options = fits[0].split_once(" as ").unwrap().1.split(' ').collect::<Vec<_>>();
    let said = decode(&[&options[..], &[&hex]].concat());
    assert_eq!(said.code, 0, "{}", said.out);
}

/// What another reading has disproved is not repeated.
#[test]
fn values_of_a_reading_that_is_wrong_are_not_shown() {
    let mut frame = Message::sale("4111111111111111", 7).encode();
    frame.push(3);
    let said = decode(&["--dialect", "iso87_ascii", "--json", &to_hex(&frame)]);
    let object = &said.objects()[0];
    let fit = json!({ "framing": "etx", "header": "none", "dialect": "iso87_ascii" });
    assert_eq!(object["fits"], json!([fit]));
    assert_eq!((&object["mti"], &object["bitmap"]), (&Value::Null, &Value::Null));
    let fields = object["fields"].as_array().unwrap();
    assert!(fields.len() > 5);
    assert!(fields.iter().all(|field| field["value"].is_null() && field["masked"] == true));
}

#[test]
fn a_header_of_any_length_is_found_before_a_message_that_proves_itself() {
    let frame = Message::sale("4111111111111111", 7).encode();
    for bytes in [1, 10, 64] {
        let hex = to_hex(&[&vec![b'x'; bytes], &frame[..]].concat());
        let object = &decode(&["--dialect", "iso87_ascii", "--json", &hex]).objects()[0];
        let header = format!("fixed:{bytes}");
        let fit = json!({ "framing": "none", "header": header, "dialect": "iso87_ascii" });
        assert_eq!(object["fits"], json!([fit]));
    }
}

/// The options of a capture are wrong for all of its messages; the first one tells.
#[test]
fn a_capture_in_another_framing_is_recognised_by_its_first_frame() {
    let mut capture = Vec::new();
    for stan in 1..=40 {
        let frame = Message::sale("4111111111111111", stan).encode();
        capture.extend(format!("{:04}", frame.len()).bytes().chain(frame));
    }
    let said = decode(&["--dialect", "iso93_ascii", "--framing", "be16", &to_hex(&capture)]);
    assert_eq!(said.code, FAULTY);
    let fit = "  fits: it reads to its end as --framing ascii4 --header none --dialect iso87_ascii";
    assert!(said.out.lines().any(|line| line == fit), "{}", said.out);
}

#[test]
fn when_nothing_fits_the_reading_that_goes_farthest_is_said() {
    let sale = Message::sale("4111111111111111", 7).encode();
    let whole = sale.len();
    let cut = &sale[..whole - 1];
    let said = decode(&["--dialect", "iso87_bcd", &to_hex(cut)]);
    let expected = format!(
        "  fits: no preset, framing and usual header; farthest goes --framing none --header none \
         --dialect iso87_ascii, to field 49 at offset {} in the input",
        whole - 3
    );
    assert_eq!(said.out.lines().last(), Some(expected.as_str()));
    let object = &decode(&["--dialect", "iso87_bcd", "--json", &to_hex(cut)]).objects()[0];
    assert_eq!(object["fits"], json!([]));
    assert_eq!(
        object["farthest"],
        json!({
            "framing": "none", "header": "none", "dialect": "iso87_ascii",
            "field": 49, "input_offset": whole - 3,
        })
    );
    let said = decode(&["--dialect", "iso87_bcd", "ffff"]);
    assert_eq!(said.out.lines().last(), Some("  fits: no preset, framing and usual header"));
}

//! Where and why a message cannot be read, in exact words, one test a kind of fault.

use serde_json::json;

use super::{FAULTY, Said, decode, temporary};
use crate::support::hex::{from_hex, to_hex};

/// The line of text that says the fault.
#[track_caller]
fn fault(said: &Said) -> String {
    assert_eq!((said.code, said.err.as_str()), (FAULTY, ""), "{}", said.out);
    let line = said.out.lines().find_map(|line| line.strip_prefix("  fault: "));
    line.unwrap_or_else(|| panic!("no fault in:\n{}", said.out)).to_owned()
}

#[track_caller]
fn fault_of(dialect: &str, message: &[u8]) -> String {
    let hex = to_hex(message);
    let said = decode(&["--dialect", dialect, &hex]);
    // The object of the same message has the same words.
    let object = &decode(&["--dialect", dialect, "--json", &hex]).objects()[0];
    let text = fault(&said);
    assert!(text.ends_with(object["fault"]["expected"].as_str().unwrap()), "{text}\n{object}");
    text
}

const ASCII: &str = "iso87_ascii";
const BCD: &str = "iso87_bcd";
const RIGHT: &[u8] = b"0100";

fn ascii(rest: &str) -> Vec<u8> {
    [RIGHT, rest.as_bytes()].concat()
}

#[test]
fn a_message_may_end_inside_its_mti() {
    assert_eq!(
        fault_of(ASCII, b"010"),
        "field 0 (MTI), offset 0 in the message, 0 in the input: \
         expected 4 ASCII digits, 3 bytes are left"
    );
}

#[test]
fn an_mti_may_be_no_digits() {
    let at = "field 0 (MTI), offset 0 in the message, 0 in the input: ";
    for (dialect, message, words) in [
        (ASCII, &b"01O00000"[..], "expected 4 ASCII digits, found ASCII characters"),
        (ASCII, b"\xf0\xf1\xf0\xf0", "expected 4 ASCII digits, found EBCDIC digits"),
        (ASCII, b"\x01\x00\x72\x00", "expected 4 ASCII digits, found digits two a byte"),
        ("iso93_ebcdic", b"0100", "expected 4 EBCDIC digits, found ASCII digits"),
        (BCD, b"\x01\xff\x00", "expected 4 digits two a byte, found other bytes"),
    ] {
        assert_eq!(fault_of(dialect, message), format!("{at}{words}"));
    }
}

#[test]
fn a_message_may_be_longer_than_any_is() {
    let said = decode(&["--dialect", ASCII, &temporary("long", &vec![b'G'; 65_536])]);
    assert_eq!(
        fault(&said),
        "field 0 (MTI), offset 0 in the message, 0 in the input: \
         expected at most 65535 bytes, found 65536"
    );
}

#[test]
fn a_bitmap_may_break_off_or_be_none() {
    for (dialect, message, words) in [
        (
            ASCII,
            &b"0100600000000000"[..],
            "expected 16 ASCII hexadecimal digits for word 1 of the bitmap, 12 bytes are left",
        ),
        (
            ASCII,
            b"0100C0000000000000000",
            "expected 16 ASCII hexadecimal digits for word 2 of the bitmap, 1 byte is left",
        ),
        (
            ASCII,
            b"0100600000000000000G",
            "expected 16 ASCII hexadecimal digits for word 1 of the bitmap, found ASCII characters",
        ),
        (
            "iso93_ebcdic",
            b"\xf0\xf1\xf0\xf0",
            "expected 16 EBCDIC hexadecimal digits for word 1 of the bitmap, nothing is left",
        ),
        (BCD, b"\x01\x00\x70", "expected 8 bytes for word 1 of the bitmap, 1 byte is left"),
    ] {
        let mti_bytes = if dialect == BCD { 2 } else { 4 };
        let at = format!(
            "field 1 (bitmap), offset {mti_bytes} in the message, {mti_bytes} in the input: "
        );
        assert_eq!(fault_of(dialect, message), format!("{at}{words}"));
    }
}

#[test]
fn a_length_may_be_no_number_too_large_or_not_all_there() {
    let at = "field 2 (primary account number), offset 20 in the message, 20 in the input: ";
    for (rest, words) in [
        (
            "6000000000000000+4",
            "expected 2 ASCII digits of length, at most 19, found ASCII characters",
        ),
        (
            "600000000000000099",
            "expected 2 ASCII digits of length, at most 19, found a larger number",
        ),
        ("60000000000000001", "expected 2 ASCII digits of length, at most 19, 1 byte is left"),
        ("6000000000000000", "expected 2 ASCII digits of length, at most 19, nothing is left"),
    ] {
        assert_eq!(fault_of(ASCII, &ascii(rest)), format!("{at}{words}"));
    }
    let field_2 = |dialect, hex| {
        let line = fault_of(dialect, &from_hex(hex));
        line.rsplit_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(
        field_2(BCD, "010040000000000000001a"),
        "expected 2 digits of length two a byte, at most 19, found other bytes"
    );
    assert_eq!(
        field_2("visa_like_base1", "0100400000000000000020"),
        "expected a length in 1 byte of binary, at most 19, found a larger number"
    );
    assert_eq!(
        field_2("iso93_ebcdic", "f0f1f0f0f4f0f0f0f0f0f0f0f0f0f0f0f0f0f0f03136"),
        "expected 2 EBCDIC digits of length, at most 19, found ASCII digits"
    );
}

#[test]
fn a_field_may_be_cut_off() {
    assert_eq!(
        fault_of(ASCII, &ascii("60000000000000001641111111111111")),
        "field 2 (primary account number), offset 20 in the message, 20 in the input: \
         the length says 16, 14 bytes are left"
    );
    assert_eq!(
        fault_of(ASCII, &ascii("1000000000000000000000")),
        "field 4 (amount transaction), offset 20 in the message, 20 in the input: \
         expected 12 ASCII digits, 6 bytes are left"
    );
    assert_eq!(
        fault_of(BCD, &from_hex("01004000000000000000164111")),
        "field 2 (primary account number), offset 10 in the message, 10 in the input: \
         the length says 16, which are 8 bytes, 2 bytes are left"
    );
    assert_eq!(
        fault_of(BCD, &from_hex("01001000000000000000000000")),
        "field 4 (amount transaction), offset 10 in the message, 10 in the input: \
         expected 12 digits two a byte, 3 bytes are left"
    );
}

#[test]
fn digits_may_be_none() {
    assert_eq!(
        fault_of(BCD, &from_hex("01001000000000000000c00000001000")),
        "field 4 (amount transaction), offset 10 in the message, 10 in the input: \
         expected 12 digits two a byte, found other bytes"
    );
    assert_eq!(
        fault_of(ASCII, &ascii("0000000000001000001122334455667g")),
        "field 52 (PIN block), offset 20 in the message, 20 in the input: \
         expected 16 ASCII hexadecimal digits, found ASCII characters"
    );
}

#[test]
fn a_field_may_be_announced_that_the_dialect_does_not_have() {
    assert_eq!(
        fault_of("iso8583_rs_sample", b"1100\x08\0\0\0\0\0\0\x000000"),
        "field 5, offset 12 in the message, 12 in the input: \
         field 5 is announced by the bitmap and the dialect does not define it"
    );
}

#[test]
fn bytes_may_follow_the_last_field() {
    let echo = "0800002000000000000000000\x031";
    assert_eq!(
        fault_of(ASCII, echo.as_bytes()),
        "field 11 (STAN), offset 26 in the message, 26 in the input: 1 byte follows the last field"
            .replace("26", &(4 + 16 + 6).to_string())
    );
    let echo = b"08000020000000000000000001ABCDEFGH";
    assert_eq!(
        fault_of(ASCII, echo),
        "field 11 (STAN), offset 26 in the message, 26 in the input: 8 bytes follow the last field"
    );
}

/// Behind a length and a header the two offsets differ.
#[test]
fn a_fault_is_said_by_its_offset_in_the_message_and_in_the_input() {
    let body = ascii("1000000000000000000000");
    let keepalive = [0, 0];
    let length = u16::try_from(5 + body.len()).unwrap().to_be_bytes();
    let tpdu = [0x60, 0, 1, 0, 2];
    let input = to_hex(&[&keepalive[..], &length, &tpdu, &body].concat());
    let options = ["--dialect", ASCII, "--framing", "be16", "--header", "tpdu", &input];
    let said = decode(&options);
    assert_eq!(
        fault(&said),
        "field 4 (amount transaction), offset 20 in the message, 29 in the input: \
         expected 12 ASCII digits, 6 bytes are left"
    );
    let object = &decode(&[&options[..], &["--json"]].concat()).objects()[1];
    assert_eq!(object["offset"], 2);
    assert_eq!(
        object["fault"],
        json!({
            "field": 4, "name": "amount transaction", "offset": 20, "input_offset": 29,
            "kind": "truncated", "expected": "expected 12 ASCII digits, 6 bytes are left",
        })
    );
}

#[test]
fn a_frame_may_not_begin_with_the_header() {
    let frame = to_hex(b"\x00\x040100");
    let visa = ["--dialect", ASCII, "--framing", "be16", "--header", "visa", &frame];
    let said = decode(&visa);
    assert_eq!(fault(&said), "frame does not begin with such a header (visa)");
    assert!(said.out.starts_with("frame at offset 0: 4 bytes, no message\n"), "{}", said.out);
    let object = &decode(&[&visa[..], &["--json"]].concat()).objects()[0];
    assert_eq!(object["fault"]["kind"], "header_unknown");
    let said = decode(&["--dialect", ASCII, "--framing", "be16", "--header", "tpdu", &frame]);
    assert_eq!(fault(&said), "frame ends inside its header (tpdu)");
}

#[test]
fn what_is_left_over_is_said_with_its_offset() {
    let echo = b"08000020000000000000000001";
    let whole = [&26_u16.to_be_bytes()[..], echo].concat();
    let left_over = |rest: &[u8]| {
        let input = to_hex(&[&whole, rest].concat());
        let options = ["--dialect", ASCII, "--framing", "be16_incl", &input];
        let input = input.replacen("001A", "001C", 1);
        let options = [&options[..4], &[&input]].concat();
        let said = decode(&options);
        assert_eq!((said.code, said.err.as_str()), (FAULTY, ""));
        let object = decode(&[&options[..], &["--json"]].concat()).objects().pop().unwrap();
        assert_eq!((&object["left_over"], &object["offset"]), (&json!(true), &json!(28)));
        let line = said.out.lines().find(|line| line.contains("left over")).unwrap().to_owned();
        (line, object["fault"]["kind"].as_str().unwrap().to_owned())
    };
    assert_eq!(
        left_over(&[0, 40, b'0', b'8']),
        (
            "4 bytes are left over at offset 28: the frame that begins there is not whole".into(),
            "frame_truncated".into()
        )
    );
    assert_eq!(
        left_over(&[0]),
        (
            "1 byte is left over at offset 28: the frame that begins there is not whole".into(),
            "frame_truncated".into()
        )
    );
    let (line, kind) = left_over(&[0, 1]);
    assert!(line.starts_with("2 bytes are left over at offset 28: a length of 1 does"), "{line}");
    assert_eq!(kind, "framing");
}

/// Nothing proves then that a field is what its number says.
#[test]
fn of_a_message_with_a_fault_less_is_shown() {
    let shown = |message: &[u8]| {
        let said = decode(&["--dialect", ASCII, "--json", &to_hex(message)]);
        assert_eq!(said.code, FAULTY);
        let object = &said.objects()[0];
        let fields = object["fields"].as_array().unwrap().clone();
        let values: Vec<_> = fields
            .iter()
            .map(|field| (field["de"].as_u64().unwrap(), field["value"].as_str().map(String::from)))
            .collect();
        (object["mti"].clone(), values)
    };
    let some = |value: &str| Some(value.to_owned());
    // A time of transmission proves the place of the fields around it.
    let (mti, fields) = shown(
        b"0100722000000080000016411111111111111100300000000000100005271920310000424\x02ERM0001",
    );
    assert_eq!(mti, "0100");
    assert_eq!(
        fields,
        [
            (2, some("411111******1111")),
            (3, some("003000")),
            (4, some("000000******")),
            (7, some("052719****")),
            (11, some("000042")),
            // A terminal's name prints.
            (41, None),
        ]
    );
}

/// A capture that was cut off at its front: the last bytes of a bitmap read as an MTI, the length and
/// the head of a card number as a bitmap, and the rest of it as a field that may be shown.
#[test]
fn a_card_number_in_the_place_of_a_bitmap_is_shown_neither_there_nor_in_the_field_behind_it() {
    let behind = "83000000000000001234042009061300000136453917806241";
    for card in ["4539178062415383", "4111111111111111"] {
        let (head, tail) = card.split_at(14);
        let hex = format!("020016{head}{tail}{}", &behind[2..]);
        for dialect in ["iso87_bcd", "iso87_bcd_left", "cup_pos_bcd", "iso93_bcd"] {
            for arguments in
                [&["--dialect", dialect, &hex][..], &["--json", "--dialect", dialect, &hex]]
            {
                let said = decode(arguments);
                assert_eq!(said.code, FAULTY, "{}", said.out);
                assert!(!said.out.contains(&head[..10]), "{}", said.out);
            }
        }
    }
}

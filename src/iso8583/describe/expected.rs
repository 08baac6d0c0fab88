//! What a dialect expected where a message breaks, and what was found there, in words.
//!
//! What was found is named by its kind and how much of it there is. The one number of the message
//! that is repeated is a length that was read and allowed; one that is too large is only said to be.

use crate::iso8583::bitmap::THIRD_BITMAP;
use crate::iso8583::field_set::FIRST_BIT;
use crate::iso8583::reader::Reader;
use crate::iso8583::{
    BitmapEncoding, BitmapLayout, Content, DataEncoding, Dialect, Fault, FaultKind, FieldSpec,
    Length, LengthEncoding, MtiEncoding, Prefix, Unit, Unreadable,
};

/// Of what has no MTI.
pub(super) fn of_mti(encoding: MtiEncoding, body: &[u8], why: Unreadable) -> String {
    let (expected, bytes) = match encoding {
        MtiEncoding::Ascii => ("4 ASCII digits", 4),
        MtiEncoding::Ebcdic => ("4 EBCDIC digits", 4),
        MtiEncoding::Bcd => ("4 digits two a byte", 2),
    };
    match why {
        Unreadable::Truncated => format!("expected {expected}, {}", left(body.len())),
        Unreadable::Digits => {
            format!("expected {expected}, found {}", kind(body.get(..bytes).unwrap_or(body)))
        }
        Unreadable::TooLong => {
            format!("expected at most {} bytes, found {}", u16::MAX, body.len())
        }
    }
}

/// Of a field, or of the bitmap.
pub(super) fn of_field(dialect: &Dialect, body: &[u8], fault: Fault) -> String {
    let rest = body.get(usize::from(fault.at)..).unwrap_or_default();
    let third = dialect.bitmap().third.filter(|_| fault.field == THIRD_BITMAP);
    if let (Some(encoding), false) = (third, fault.kind == FaultKind::Trailing) {
        return of_word(encoding, 3, rest);
    }
    match (fault.kind, dialect.field(fault.field)) {
        (FaultKind::Trailing, _) => match rest.len() {
            1 => "1 byte follows the last field".to_owned(),
            bytes => format!("{bytes} bytes follow the last field"),
        },
        _ if fault.field == super::BITMAP => of_bitmap(dialect.bitmap(), rest),
        (FaultKind::UndefinedField, _) | (_, None) => format!(
            "field {} is announced by the bitmap and the dialect does not define it",
            fault.field
        ),
        (_, Some(spec)) => of_data(spec, rest, fault.kind),
    }
}

/// `rest` begins with the bitmap.
fn of_bitmap(layout: BitmapLayout, rest: &[u8]) -> String {
    let (words, _) = layout.words(&mut Reader::new(rest));
    if let (1, [first]) = (layout.words_max, words.as_slice())
        && *first & FIRST_BIT != 0
    {
        return "the first bit announces a second word, and the dialect has one alone".to_owned();
    }
    let at = words.len().saturating_mul(word_bytes(layout.encoding));
    let place = words.len().saturating_add(1);
    of_word(layout.encoding, place, rest.get(at..).unwrap_or_default())
}

/// `rest` begins with a word of the bitmap that is not all there, or is none.
fn of_word(encoding: BitmapEncoding, place: usize, rest: &[u8]) -> String {
    let expected = match encoding {
        BitmapEncoding::Binary => "8 bytes",
        BitmapEncoding::HexAscii => "16 ASCII hexadecimal digits",
        BitmapEncoding::HexEbcdic => "16 EBCDIC hexadecimal digits",
    };
    let found = match rest.get(..word_bytes(encoding)) {
        Some(word) => format!("found {}", kind(word)),
        None => left(rest.len()),
    };
    format!("expected {expected} for word {place} of the bitmap, {found}")
}

const fn word_bytes(encoding: BitmapEncoding) -> usize {
    match encoding {
        BitmapEncoding::Binary => 8,
        BitmapEncoding::HexAscii | BitmapEncoding::HexEbcdic => 16,
    }
}

/// `rest` begins with the field.
fn of_data(spec: &FieldSpec, rest: &[u8], fault: FaultKind) -> String {
    let mut reader = Reader::new(rest);
    let units = match spec.length {
        Length::Fixed => usize::from(spec.max),
        Length::Prefixed(prefix) => match prefix.read(&mut reader) {
            Ok(units) => units,
            Err(_) => return of_prefix(spec, prefix, rest),
        },
    };
    let data = rest.get(reader.at()..).unwrap_or_default();
    let bytes = spec.bytes(units);
    match (fault, spec.length, bytes) {
        (FaultKind::Length, Length::Prefixed(prefix), bytes) => {
            let found = if units > usize::from(spec.max) {
                "a larger number"
            } else if bytes.is_none() && units == 0 {
                "0"
            } else {
                "an odd number, and no half byte may be filled"
            };
            format!("{}, found {found}", length(spec, prefix))
        }
        (FaultKind::Truncated, Length::Prefixed(_), Some(bytes)) => {
            let in_bytes = match bytes {
                bytes if bytes == units => String::new(),
                1 => ", which is 1 byte".to_owned(),
                bytes => format!(", which are {bytes} bytes"),
            };
            format!("the length says {units}{in_bytes}, {}", left(data.len()))
        }
        (FaultKind::Truncated, ..) => {
            format!("expected {}, {}", content(spec, units), left(data.len()))
        }
        (_, _, bytes) => {
            let found = bytes.and_then(|bytes| data.get(..bytes)).unwrap_or(data);
            format!("expected {}, found {}", content(spec, units), kind(found))
        }
    }
}

/// Of a length that is no number, or not all there.
fn of_prefix(spec: &FieldSpec, prefix: Prefix, rest: &[u8]) -> String {
    let expected = length(spec, prefix);
    match rest.get(..prefix.bytes()) {
        Some(found) => format!("{expected}, found {}", kind(found)),
        None => format!("{expected}, {}", left(rest.len())),
    }
}

/// `expected 2 ASCII digits of length, at most 19`.
fn length(spec: &FieldSpec, prefix: Prefix) -> String {
    let digits = prefix.digits;
    let written = match prefix.encoding {
        LengthEncoding::Ascii => format!("{} of length", counted(digits.into(), "ASCII digit")),
        LengthEncoding::Ebcdic => format!("{} of length", counted(digits.into(), "EBCDIC digit")),
        LengthEncoding::Bcd => {
            format!("{} of length two a byte", counted(digits.into(), "digit"))
        }
        LengthEncoding::Binary => {
            format!("a length in {} of binary", counted(prefix.bytes(), "byte"))
        }
    };
    format!("expected {written}, at most {}", spec.max)
}

/// `12 digits two a byte`.
fn content(spec: &FieldSpec, units: usize) -> String {
    let bytes = spec.bytes(units).unwrap_or(units);
    let one = match spec.content {
        Content::N => "digit",
        _ => "character",
    };
    match spec.data {
        DataEncoding::Ascii => counted(units, &format!("ASCII {one}")),
        DataEncoding::Ebcdic => counted(units, &format!("EBCDIC {one}")),
        DataEncoding::Bcd | DataEncoding::BcdTrack if spec.unit == Unit::Bytes => {
            format!("{} of two digits each", counted(units, "byte"))
        }
        DataEncoding::Bcd => format!("{} two a byte", counted(units, "digit")),
        DataEncoding::BcdTrack => format!("{} of a track two a byte", counted(units, "character")),
        DataEncoding::Binary => counted(bytes, "byte"),
        DataEncoding::HexAscii => counted(bytes, "ASCII hexadecimal digit"),
        DataEncoding::HexEbcdic => counted(bytes, "EBCDIC hexadecimal digit"),
        DataEncoding::SignedBcd => {
            let digits = counted(units.saturating_sub(1), "digit");
            format!("an ASCII sign and {digits} two a byte")
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn left(bytes: usize) -> String {
    match bytes {
        0 => "nothing is left".to_owned(),
        1 => "1 byte is left".to_owned(),
        bytes => format!("{bytes} bytes are left"),
    }
}

/// What bytes are, without what they say.
fn kind(found: &[u8]) -> &'static str {
    let all = |is: fn(&u8) -> bool| found.iter().all(is);
    if all(u8::is_ascii_digit) {
        "ASCII digits"
    } else if all(|byte| matches!(byte, 0xf0..=0xf9)) {
        "EBCDIC digits"
    } else if all(|byte| matches!(byte, b' '..=b'~')) {
        "ASCII characters"
    } else if all(|byte| byte >> 4 <= 9 && byte & 15 <= 9) {
        "digits two a byte"
    } else {
        "other bytes"
    }
}

#[cfg(test)]
mod tests {
    use crate::iso8583::{Description, Dialect, Spans, View};

    /// What is said of a message of one field, number 2 or 65, in a dialect of these lines.
    fn says(bitmap: &str, field: &str, body: &[u8]) -> String {
        let dialect = Dialect::from_table(&format!(
            "de,content,len_kind,len_enc,data_enc,max,unit,pad,name\n\
             0,n,fixed,none,bcd,4,digits,left0,MTI\n1,b,{bitmap},none,bin,{field}\n"
        ));
        let dialect = dialect.unwrap();
        let mut spans = Spans::default();
        let view = View::parse(&dialect, body, &mut spans).unwrap();
        Description::of(&view).fault.unwrap().expected
    }

    fn of_field_2(field: &str, data: &[u8]) -> String {
        let body = [&[1, 0, 0x40, 0, 0, 0, 0, 0, 0, 0], data].concat();
        says("bitmap", &format!("8,bytes,none,bitmap\n2,{field},x"), &body)
    }

    #[test]
    fn every_way_of_writing_a_field_has_its_words() {
        for (field, data, words) in [
            (
                "x+n,fixed,none,x_ascii+bcd,9,chars,left0",
                &b"D\x12\x3f\x00\x00"[..],
                "expected an ASCII sign and 8 digits two a byte, found other bytes",
            ),
            (
                "x+n,LL,ascii,x_ascii+bcd,9,chars,left0",
                b"00",
                "expected 2 ASCII digits of length, at most 9, found 0",
            ),
            (
                "n,LL,ascii,bcd,19,digits,none",
                b"03\x12\x34",
                "expected 2 ASCII digits of length, at most 19, found an odd number, and no half byte \
              may be filled",
            ),
            ("n,L,bcd,bcd,9,digits,left0", b"\x01", "the length says 1, nothing is left"),
            (
                "n,L,bcd,bcd,9,digits,left0",
                b"\x0a",
                "expected 1 digit of length two a byte, at most 9, found other bytes",
            ),
            (
                "n,LLLL,bin,bcd,999,bytes,none",
                b"\x00",
                "expected a length in 2 bytes of binary, at most 999, 1 byte is left",
            ),
            ("n,LL,bcd,bcd,9,bytes,none", b"\x02\x11", "the length says 2, 1 byte is left"),
            (
                "n,LL,bcd,bcd,9,bytes,none",
                b"\x02\x11\x1a",
                "expected 2 bytes of two digits each, found other bytes",
            ),
            (
                "z,fixed,none,bcd_z,4,digits,left0",
                b"\x12",
                "expected 4 characters of a track two a byte, 1 byte is left",
            ),
            (
                "b,fixed,none,hex_ebcdic,1,bytes,none",
                b"\xf0G",
                "expected 2 EBCDIC hexadecimal digits, found other bytes",
            ),
            ("b,fixed,none,bin,1,bytes,none", b"", "expected 1 byte, nothing is left"),
            (
                "an,fixed,none,ebcdic,3,chars,none",
                b"\xf0",
                "expected 3 EBCDIC characters, 1 byte is left",
            ),
        ] {
            assert_eq!(of_field_2(field, data), words, "{field}");
        }
    }

    #[test]
    fn a_bitmap_may_announce_a_word_that_the_dialect_does_not_have() {
        let body = [1, 0, 0x80, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            says("bitmap", "8,bytes,none,bitmap", &body),
            "the first bit announces a second word, and the dialect has one alone"
        );
    }

    #[test]
    fn a_third_bitmap_may_break_off_where_it_stands_in_place_of_a_field() {
        let words = [[0x80, 0, 0, 0, 0, 0, 0, 0], [0x80, 0, 0, 0, 0, 0, 0, 0]].concat();
        let body = [&[1, 0], &words[..], &[0; 5]].concat();
        assert_eq!(
            says("bitmap", "16,bytes,none,bitmap\n65,b,bitmap,none,bin,8,bytes,none,third", &body),
            "expected 8 bytes for word 3 of the bitmap, 5 bytes are left"
        );
    }
}

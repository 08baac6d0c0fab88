//! What a dialect expected where a message breaks, and what was found there, in words.
//!
//! What was found is named by its kind and how much of it there is. The one number of the message
//! that is repeated is a length that was read and allowed; one that is too large is only said to be.

use crate::iso8583::field::{
    Content, DataEncoding, FieldSpec, Length, LengthEncoding, Prefix, Unit,
};
use crate::iso8583::reader::Reader;
use crate::iso8583::{
    BitmapEncoding, BitmapLayout, Dialect, Fault, FaultKind, MtiEncoding, Unreadable,
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
    let mut reader = Reader::new(rest);
    let (words, fault) = layout.words(&mut reader);
    let (bytes, expected) = match layout.encoding {
        BitmapEncoding::Binary => (8, "8 bytes"),
        BitmapEncoding::HexAscii => (16, "16 ASCII hexadecimal digits"),
        BitmapEncoding::HexEbcdic => (16, "16 EBCDIC hexadecimal digits"),
    };
    let place = words.len().saturating_add(1);
    let at = words.len().saturating_mul(bytes);
    let word = rest.get(at..).unwrap_or_default();
    match fault {
        Some(FaultKind::Bitmap) if layout.words_max == 1 && place == 2 => {
            "the first bit announces a second word, and the dialect has one alone".to_owned()
        }
        Some(FaultKind::Truncated) => {
            format!("expected {expected} for word {place} of the bitmap, {}", left(word.len()))
        }
        _ => format!(
            "expected {expected} for word {place} of the bitmap, found {}",
            kind(word.get(..bytes).unwrap_or(word))
        ),
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

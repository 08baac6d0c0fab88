//! What a view promises: fields that lie side by side from the bitmap to the end or to the fault,
//! and nothing of the message in what it prints.

use super::{dialect, offset};
use crate::iso8583::{
    BitmapEncoding, BitmapLayout, BitmapRule, DataEncoding, Dialect, FaultKind, FieldSet, Length,
    MtiEncoding, Spans, Unreadable, View,
};

/// How many bytes choose: the preset.
pub const VIEW_HEAD_BYTES: usize = 1;

/// Longer than a card number and a merchant's name, shorter than many fields.
const TEXT_BYTES_MAX: usize = 64;

/// Reads a message in a preset and calls everything that looks at it. How many fields were read.
///
/// # Panics
/// When a promise of [`View`] is broken.
pub fn view(data: &[u8]) -> usize {
    let Some((choice, body)) = data.split_first() else { return 0 };
    let Some(dialect) = dialect(*choice) else { return 0 };
    let mut spans = Spans::default();
    match View::parse(dialect, body, &mut spans) {
        Ok(view) => {
            lies_side_by_side(&view);
            holds_what_it_has(&view);
            names_who_is_in_it(&view);
            prints_nothing_of_it(&view);
            reads_alike_when_cut(&view);
            view.fields().iter().count()
        }
        Err(unreadable) => {
            let long = body.len() > usize::from(u16::MAX);
            let short = body.len() < mti_bytes(dialect);
            assert!(long == (unreadable == Unreadable::TooLong));
            assert!(short == (unreadable == Unreadable::Truncated));
            0
        }
    }
}

/// The fields follow the bitmap without gap or overlap and end with the message or at the fault.
fn lies_side_by_side(view: &View<'_>) {
    let body = view.body();
    let mti_bytes = mti_bytes(view.dialect());
    let bitmap = bitmap(view.dialect().bitmap(), body.get(mti_bytes..).unwrap_or_default());
    let Some((announced, bitmap_bytes)) = bitmap else {
        let fault = view.fault().map(|fault| (fault.field, usize::from(fault.at), fault.kind));
        let broken = [FaultKind::Bitmap, FaultKind::Truncated]
            .map(|kind| fault == Some((1, mti_bytes, kind)));
        assert!(broken.contains(&true), "no bitmap can be read, and the view says {fault:?}");
        assert!(view.fields().is_empty() && !view.has_mac());
        return;
    };
    assert!(view.has_mac() == (announced.contains(64) || announced.contains(128)));
    let mut end = mti_bytes + bitmap_bytes;
    for de in view.fields().iter() {
        assert!(announced.contains(de), "field {de} was never announced");
        let (whole, raw) = (view.whole(de), view.raw(de));
        let (whole, raw) = (whole.unwrap_or_default(), raw.unwrap_or_default());
        assert!(offset(body, whole) == end, "field {de} does not follow the one before it");
        end += whole.len();
        let prefix_bytes = offset(whole, raw);
        assert!(prefix_bytes + raw.len() == whole.len(), "field {de} ends behind its data");
        let spec = view.dialect().field(de);
        assert!(spec.is_some(), "field {de} is not of the dialect");
        let is_fixed = spec.is_some_and(|spec| spec.length == Length::Fixed);
        assert!(is_fixed == (prefix_bytes == 0), "field {de} has another length prefix");
        // A unit is two bytes at most, and digits may have a sign before them.
        let bytes_max = spec.map_or(0, |spec| 2 * usize::from(spec.max) + 1);
        assert!(raw.len() <= bytes_max, "field {de} is longer than its maximum");
    }
    let Some(fault) = view.fault() else {
        assert!(end == body.len() && view.fields() == announced);
        return;
    };
    assert!(usize::from(fault.at) == end && end <= body.len(), "{fault} lies elsewhere");
    if fault.kind == FaultKind::Trailing {
        assert!(view.fields() == announced && end < body.len());
        assert!(fault.field == announced.iter().last().unwrap_or(1));
        return;
    }
    let before: FieldSet = announced.iter().take_while(|de| *de < fault.field).collect();
    assert!(announced.contains(fault.field) && view.fields() == before);
    let undefined = view.dialect().field(fault.field).is_none();
    assert!(undefined == (fault.kind == FaultKind::UndefinedField));
}

/// All ways of asking for a field agree.
fn holds_what_it_has(view: &View<'_>) {
    for de in 0..=u8::MAX {
        let has = view.has(de);
        assert!(has == view.fields().contains(de));
        assert!(has == view.raw(de).is_some() && has == view.whole(de).is_some());
        let text = view.text::<TEXT_BYTES_MAX>(de);
        assert!(has == text.is_some());
        let (Some(text), Some(raw)) = (text, view.raw(de)) else { continue };
        let text = text.as_bytes();
        assert!(text.len() <= TEXT_BYTES_MAX);
        let plain = match view.dialect().field(de).map(|spec| spec.data) {
            Some(DataEncoding::Ascii) => raw.starts_with(text),
            Some(DataEncoding::Bcd) => text.iter().all(u8::is_ascii_digit),
            Some(DataEncoding::Binary | DataEncoding::HexAscii | DataEncoding::HexEbcdic) => {
                text.iter().all(u8::is_ascii_hexdigit)
            }
            _ => true,
        };
        assert!(plain, "the text of field {de} is none of its encoding");
    }
}

/// What limits are kept by comes from fields that are there.
fn names_who_is_in_it(view: &View<'_>) {
    if let Some(pan) = view.pan() {
        assert!([2, 34, 35, 45].into_iter().any(|de| view.has(de)));
        assert!(pan.bin().is_some() && pan.to_string().contains('*'));
    }
    if let Some(merchant) = view.merchant() {
        assert!(view.has(42) && merchant.name().contains(&b':'));
    }
    let _ = view.operation();
}

/// Only from type, length, field numbers and fault is the text made that a view prints.
fn prints_nothing_of_it(view: &View<'_>) {
    let expected = format!(
        "View {{ mti: {:04}, bytes: {}, fields: {:?}, fault: {:?} }}",
        view.mti().number(),
        view.body().len(),
        view.fields(),
        view.fault(),
    );
    assert!(format!("{view:?}") == expected, "a view prints something else than what it is");
    if let Some(fault) = view.fault() {
        assert!(fault.to_string() == format!("field {}: {}", fault.field, fault.kind.name()));
    }
}

/// What was read before the place where a message is cut is read the same without the rest.
fn reads_alike_when_cut(view: &View<'_>) {
    let (cut, _) = view.body().split_at(view.body().len() / 2);
    let mut spans = Spans::default();
    let Ok(part) = View::parse(view.dialect(), cut, &mut spans) else {
        assert!(cut.len() < mti_bytes(view.dialect()), "its MTI cannot be read any more");
        return;
    };
    assert!(part.mti() == view.mti());
    for de in part.fields().iter() {
        assert!(part.whole(de) == view.whole(de), "field {de} is read differently");
    }
    if part.fault().is_none() {
        let fault = view.fault().map(|fault| (fault.kind, usize::from(fault.at)));
        assert!(fault == Some((FaultKind::Trailing, cut.len())), "it was whole before its end");
    }
}

fn mti_bytes(dialect: &Dialect) -> usize {
    match dialect.mti() {
        MtiEncoding::Ascii | MtiEncoding::Ebcdic => 4,
        MtiEncoding::Bcd => 2,
    }
}

/// The fields that a bitmap announces and how many bytes it takes, read bit by bit and so unlike
/// the codec does it; `None` when it cannot be read.
fn bitmap(layout: BitmapLayout, bytes: &[u8]) -> Option<(FieldSet, usize)> {
    let (bits_each, word_bytes) = match layout.encoding {
        BitmapEncoding::Binary => (8, 8),
        BitmapEncoding::HexAscii | BitmapEncoding::HexEbcdic => (4, 16),
    };
    let mut fields = FieldSet::EMPTY;
    let mut words = bytes.chunks_exact(word_bytes);
    for place in 1..=layout.words_max {
        let mut chained = false;
        for (byte, first) in words.next()?.iter().zip((1u8..).step_by(bits_each)) {
            let value = match layout.encoding {
                BitmapEncoding::Binary => u32::from(*byte),
                BitmapEncoding::HexAscii => char::from(*byte).to_digit(16)?,
                BitmapEncoding::HexEbcdic => ebcdic_digit(*byte)?,
            };
            for (bit, de) in (0..bits_each).rev().zip(first..) {
                let is_set = value >> bit & 1 == 1;
                if de == 1 {
                    chained = is_set;
                }
                // A word's first bit announces the next word where there may be one.
                if is_set && (de > 1 || place == layout.words_max) {
                    fields.insert((place - 1) * 64 + de);
                }
            }
        }
        if place == 1 && layout.words_max == 1 && chained {
            return None;
        }
        if layout.rule == BitmapRule::Chained && !chained {
            return Some((fields, usize::from(place) * word_bytes));
        }
    }
    Some((fields, usize::from(layout.words_max) * word_bytes))
}

/// The value of a hexadecimal digit in EBCDIC.
fn ebcdic_digit(byte: u8) -> Option<u32> {
    let (zone, digit) = (byte >> 4, u32::from(byte & 15));
    match (zone, digit) {
        (0xf, 0..=9) => Some(digit),
        (0x8 | 0xc, 1..=6) => Some(digit + 9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_to_its_last_field_and_one_without_type_not_at_all() {
        assert_eq!(view(b"\x000100600000000000000004123412345"), 1);
        assert_eq!(view(b"\x0001006000000000000000041234123456"), 2);
        assert_eq!(view(b"\x0001X06000000000000000041234123456"), 0);
        assert_eq!(view(b"\x00"), 0);
        assert_eq!(view(b""), 0);
    }
}

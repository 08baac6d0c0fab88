//! What a view promises: fields that lie side by side from the bitmap to the end or to the fault,
//! and nothing of the message in what it prints.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{dialect, offset};
use crate::iso8583::{
    BitmapEncoding, BitmapLayout, BitmapRule, DataEncoding, Dialect, Fault, FaultKind, FieldSet,
    Length, MtiEncoding, Spans, Unreadable, View,
};

/// How many bytes choose: the dialect.
pub const VIEW_HEAD_BYTES: usize = 1;

/// Where a third bitmap may stand.
const THIRD_BITMAP: u8 = 65;

thread_local! {
    /// A scratch for each choice of a dialect, which keeps what earlier messages left in it.
    static SCRATCHES: RefCell<BTreeMap<u8, Spans>> = const { RefCell::new(BTreeMap::new()) };
}

/// Longer than a card number and a merchant's name, shorter than many fields.
const TEXT_BYTES_MAX: usize = 64;

/// Reads a message in a dialect and calls everything that looks at it. How many fields were read.
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
            SCRATCHES.with_borrow_mut(|scratches| {
                // What it is read in first leaves its layout, so that a whole one is read by that.
                let scratch = scratches.entry(*choice).or_default();
                reads_alike_in(scratch, &view);
                reads_alike_in(scratch, &view);
            });
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
    let layout = view.dialect().bitmap();
    let bitmap = bitmap(layout, body.get(mti_bytes..).unwrap_or_default());
    let Some((mut announced, bitmap_bytes)) = bitmap else {
        let fault = view.fault().map(|fault| (fault.field, usize::from(fault.at), fault.kind));
        let broken = [FaultKind::Bitmap, FaultKind::Truncated]
            .map(|kind| fault == Some((1, mti_bytes, kind)));
        assert!(broken.contains(&true), "no bitmap can be read, and the view says {fault:?}");
        assert!(view.fields().is_empty() && !view.has_mac());
        return;
    };
    assert!(view.has_mac() == (announced.contains(64) || announced.contains(128)));
    // What stands in place of field 65 may announce more, and is none itself.
    let mut third = layout.third.filter(|_| announced.contains(THIRD_BITMAP));
    let mut end = mti_bytes + bitmap_bytes;
    for de in view.fields().iter() {
        if let Some(encoding) = third.take_if(|_| de > THIRD_BITMAP) {
            end = past_third(encoding, body, end, &mut announced);
        }
        assert!(announced.contains(de), "field {de} was never announced");
        let whole = view.whole(de).unwrap_or_default();
        assert!(offset(body, whole) == end, "field {de} does not follow the one before it");
        end += whole.len();
        is_as_its_dialect_has_it(view, de, whole);
    }
    let stops_before =
        |fault: Fault| fault.field <= THIRD_BITMAP && fault.kind != FaultKind::Trailing;
    if let Some(encoding) = third.filter(|_| !view.fault().is_some_and(stops_before)) {
        end = past_third(encoding, body, end, &mut announced);
    }
    ends_with_it(view, announced, end);
}

/// Where the third bitmap that begins at `at` ends.
fn past_third(encoding: BitmapEncoding, body: &[u8], at: usize, announced: &mut FieldSet) -> usize {
    let third = word(encoding, body.get(at..).unwrap_or_default());
    assert!(third.is_some(), "a third bitmap that cannot be read is no fault");
    let others = announced.iter().filter(|de| *de != THIRD_BITMAP);
    *announced = others.chain(fields_of(third.unwrap_or(0), 128)).collect();
    at + word_bytes(encoding)
}

/// A prefix where there is one, and data that are no longer than they may be.
fn is_as_its_dialect_has_it(view: &View<'_>, de: u8, whole: &[u8]) {
    let raw = view.raw(de).unwrap_or_default();
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

/// The message ends with its last field, or there is a fault that says where and in which field.
fn ends_with_it(view: &View<'_>, announced: FieldSet, end: usize) {
    let body = view.body();
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
    let is_third = fault.field == THIRD_BITMAP && view.dialect().bitmap().third.is_some();
    let undefined = view.dialect().field(fault.field).is_none() && !is_third;
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

/// A message is read the same in a scratch in which others were read, and whose layouts it remembers.
fn reads_alike_in(scratch: &mut Spans, view: &View<'_>) {
    let again = View::parse(view.dialect(), view.body(), scratch);
    assert!(again.is_ok(), "it can be read, and in a used scratch it cannot");
    let Ok(again) = again else { return };
    let what = |view: &View<'_>| (view.mti(), view.fields(), view.fault(), view.has_mac());
    assert!(what(&again) == what(view), "it is read differently in a used scratch");
    for de in view.fields().iter() {
        let alike = again.whole(de) == view.whole(de) && again.raw(de) == view.raw(de);
        assert!(alike, "field {de} lies elsewhere in a used scratch");
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

/// The fields that a bitmap announces and how many bytes it takes, read digit by digit and so unlike
/// the codec does it; `None` when it cannot be read.
fn bitmap(layout: BitmapLayout, bytes: &[u8]) -> Option<(FieldSet, usize)> {
    let mut fields = FieldSet::EMPTY;
    let mut at = 0;
    for place in 0..layout.words_max {
        let word = word(layout.encoding, bytes.get(at..)?)?;
        at += word_bytes(layout.encoding);
        let is_last = place + 1 == layout.words_max;
        let is_chained = word >> 63 == 1;
        if is_last && place == 0 && is_chained {
            return None;
        }
        // A word's first bit announces the next word where there may be one.
        let first = place * 64 + 1;
        let announced = fields_of(word, place * 64).filter(|de| is_last || *de != first);
        announced.for_each(|de| fields.insert(de));
        if layout.rule == BitmapRule::Chained && !is_chained {
            break;
        }
    }
    Some((fields, at))
}

/// The fields of a word's bits, of which the first is field `before` + 1.
fn fields_of(word: u64, before: u8) -> impl Iterator<Item = u8> {
    (1..=64).filter(move |place| word >> (64 - place) & 1 == 1).map(move |place| before + place)
}

const fn word_bytes(encoding: BitmapEncoding) -> usize {
    match encoding {
        BitmapEncoding::Binary => 8,
        BitmapEncoding::HexAscii | BitmapEncoding::HexEbcdic => 16,
    }
}

/// The word of bits at the head of `bytes`.
fn word(encoding: BitmapEncoding, bytes: &[u8]) -> Option<u64> {
    bytes.get(..word_bytes(encoding))?.iter().try_fold(0, |word, byte| {
        Some(match encoding {
            BitmapEncoding::Binary => word << 8 | u64::from(*byte),
            BitmapEncoding::HexAscii => word << 4 | u64::from(char::from(*byte).to_digit(16)?),
            BitmapEncoding::HexEbcdic => word << 4 | u64::from(ebcdic_digit(*byte)?),
        })
    })
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

//! The one forward walk over a message's fields. It copies nothing and allocates nothing: it leaves
//! three offsets for each field in a scratch that the caller keeps.

use std::ops::Range;

use super::bitmap::{BitmapEncoding, THIRD_BITMAP};
use super::dialect::Dialect;
use super::fault::{Fault, FaultKind};
use super::field_set::{FIRST_BIT, FieldSet};
use super::layout::Layouts;
use super::reader::Reader;
use super::steps::Step;

/// Where one field lies: its length prefix, or its data if it has none; its data; its end. Bodies are
/// at most 65,535 bytes long, so that three offsets fit into one word and move together.
#[derive(Clone, Copy)]
pub(super) struct Span(u64);

impl Span {
    pub(super) const NOWHERE: Self = Self(0);

    #[inline]
    pub(super) const fn new(start: usize, data: usize, end: usize) -> Self {
        // The view refuses bodies that 16 bits do not reach, so none is cut.
        Self(start as u16 as u64 | (data as u16 as u64) << 16 | (end as u16 as u64) << 32)
    }

    /// The same field so many bytes further on.
    #[inline]
    pub(super) const fn moved(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add((bytes as u16 as u64).wrapping_mul(0x0001_0001_0001)))
    }

    const fn start(self) -> usize {
        self.0 as u16 as usize
    }

    const fn data(self) -> usize {
        (self.0 >> 16) as u16 as usize
    }

    const fn end(self) -> usize {
        (self.0 >> 32) as u16 as usize
    }
}

/// Room for the offsets of one message's fields, to be used again for the next one. What an earlier
/// message left in it is not cleared: only fields that the present one has are ever looked up. It
/// also remembers how messages of a few bitmaps were laid out.
pub struct Spans {
    by_field: [Span; 256],
    layouts: Layouts,
}

impl Spans {
    /// Where a field's data lie; meaningful only for a field that was read.
    #[inline]
    pub(super) fn data(&self, de: u8) -> Option<Range<usize>> {
        let span = self.by_field.get(usize::from(de))?;
        Some(span.data()..span.end())
    }

    /// The same with its length prefix.
    #[inline]
    pub(super) fn whole(&self, de: u8) -> Option<Range<usize>> {
        let span = self.by_field.get(usize::from(de))?;
        Some(span.start()..span.end())
    }

    #[inline]
    fn set(&mut self, de: u8, span: Span) {
        if let Some(slot) = self.by_field.get_mut(usize::from(de)) {
            *slot = span;
        }
    }
}

impl Default for Spans {
    fn default() -> Self {
        Self { by_field: [Span::NOWHERE; 256], layouts: Layouts::default() }
    }
}

impl std::fmt::Debug for Spans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Spans(..)")
    }
}

/// Reads bitmap and fields to the exact end of the message: the fields that are announced, those
/// that were read, and the first fault if there is one.
#[inline]
pub(super) fn walk(
    dialect: &Dialect,
    reader: &mut Reader<'_>,
    spans: &mut Spans,
) -> (FieldSet, FieldSet, Option<Fault>) {
    let start = reader.at();
    let Spans { by_field, layouts } = spans;
    if let Some(fields) = layouts.follow(dialect, reader, by_field) {
        return (fields, fields, None);
    }
    reader.go_back(start);
    walk_unknown(dialect, reader, spans)
}

/// The same for a message whose layout is not remembered, or that has a fault.
#[inline(never)]
fn walk_unknown(
    dialect: &Dialect,
    reader: &mut Reader<'_>,
    spans: &mut Spans,
) -> (FieldSet, FieldSet, Option<Fault>) {
    let (start, body) = (reader.at(), reader.rest());
    let announced = match dialect.bitmap().read(reader) {
        Ok(announced) => announced,
        Err(kind) => {
            return (FieldSet::EMPTY, FieldSet::EMPTY, Some(fault(1, start, kind)));
        }
    };
    let bitmap = body.get(..reader.at().saturating_sub(start)).unwrap_or_default();
    let found @ (fields, _, fault) = walk_on(dialect, announced, announced, reader, spans);
    // With a third bitmap among them the fields are others than those that were announced first.
    if fault.is_none() && fields == announced {
        spans.layouts.remember(dialect, bitmap, &fields);
    }
    found
}

/// Reads those of the announced fields that are left. It calls itself by way of a third bitmap,
/// which keeps it from being inlined unasked, at a twentieth of the walk's time.
#[inline(always)]
fn walk_on(
    dialect: &Dialect,
    announced: FieldSet,
    left: FieldSet,
    reader: &mut Reader<'_>,
    spans: &mut Spans,
) -> (FieldSet, FieldSet, Option<Fault>) {
    let mut left = left.words();
    for (word, before) in left.iter_mut().zip([1u8, 65, 129]) {
        while *word != 0 {
            let place = word.leading_zeros();
            let de = before.wrapping_add(place as u8);
            let start = reader.at();
            match read_field(dialect, de, reader) {
                Ok(data) => spans.set(de, Span::new(start, data, reader.at())),
                Err(kind) => {
                    let left = FieldSet::from_words(left);
                    // A third bitmap is no field, so that nothing is asked of others on its account.
                    if let Some(encoding) = dialect.bitmap().third.filter(|_| de == THIRD_BITMAP) {
                        return walk_past_third(dialect, encoding, announced, left, reader, spans);
                    }
                    return (announced, announced.difference(left), Some(fault(de, start, kind)));
                }
            }
            *word &= !FIRST_BIT.wrapping_shr(place);
        }
    }
    let trailing = (!reader.is_at_end())
        .then(|| fault(announced.iter().last().unwrap_or(1), reader.at(), FaultKind::Trailing));
    (announced, announced, trailing)
}

/// Reads the third bitmap where field 65 would be, then what is left with the fields it announces.
#[cold]
#[inline(never)]
fn walk_past_third(
    dialect: &Dialect,
    encoding: BitmapEncoding,
    announced: FieldSet,
    left: FieldSet,
    reader: &mut Reader<'_>,
    spans: &mut Spans,
) -> (FieldSet, FieldSet, Option<Fault>) {
    let start = reader.at();
    let third = match encoding.read_word(reader) {
        Ok(third) => third,
        Err(kind) => {
            let read = announced.difference(left);
            return (announced, read, Some(fault(THIRD_BITMAP, start, kind)));
        }
    };
    let with_third = |fields: FieldSet| {
        let [first, second, _] = fields.words();
        FieldSet::from_words([first, second & !FIRST_BIT, third])
    };
    walk_on(dialect, with_third(announced), with_third(left), reader, spans)
}

const fn fault(field: u8, at: usize, kind: FaultKind) -> Fault {
    // The view refuses bodies that 16 bits do not reach, so none is cut.
    Fault { field, at: at as u16, kind }
}

/// Reads one field: where its data start.
#[inline]
pub(super) fn read_field(
    dialect: &Dialect,
    de: u8,
    reader: &mut Reader<'_>,
) -> Result<usize, FaultKind> {
    let length = match dialect.steps().of(de) {
        Step::Fixed(length) => usize::from(length),
        Step::Ascii2(max) => ascii_length::<2>(reader, max)?,
        Step::Ascii3(max) => ascii_length::<3>(reader, max)?,
        Step::Other => return read_other(dialect, de, reader),
        Step::Undefined => return Err(FaultKind::UndefinedField),
    };
    let start = reader.at();
    reader.take(length).ok_or(FaultKind::Truncated)?;
    Ok(start)
}

#[inline]
fn ascii_length<const DIGITS: usize>(
    reader: &mut Reader<'_>,
    max: u16,
) -> Result<usize, FaultKind> {
    let digits = reader.take_array::<DIGITS>().ok_or(FaultKind::Truncated)?;
    let mut length = 0u16;
    for digit in digits.map(|byte| byte.wrapping_sub(b'0')) {
        if digit > 9 {
            return Err(FaultKind::Length);
        }
        length = length.wrapping_mul(10).wrapping_add(u16::from(digit));
    }
    if length > max { Err(FaultKind::Length) } else { Ok(usize::from(length)) }
}

#[inline(never)]
fn read_other(dialect: &Dialect, de: u8, reader: &mut Reader<'_>) -> Result<usize, FaultKind> {
    let spec = dialect.field(de).ok_or(FaultKind::UndefinedField)?;
    let data = spec.read(reader)?;
    Ok(reader.at().saturating_sub(data.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iso8583::{BitmapLayout, Unreadable, View};

    fn faults(preset: &str, body: &[u8]) -> Option<(u8, &'static str, Vec<u8>)> {
        let dialect = Dialect::preset(preset).unwrap();
        let mut spans = Spans::default();
        let view = View::parse(&dialect, body, &mut spans).unwrap();
        view.fault().map(|fault| (fault.field, fault.kind.name(), view.fields().iter().collect()))
    }

    #[test]
    fn a_fault_names_its_field_and_leaves_what_was_before_it() {
        for (body, field, kind, read) in [
            (&b"0100"[..], 1, "truncated", &[][..]),
            (b"0100600000000000000", 1, "truncated", &[]),
            (b"0100600000000000000G", 1, "bitmap", &[]),
            (b"0100C000000000000000", 1, "truncated", &[]),
            (b"01006000000000000000", 2, "truncated", &[]),
            (b"010060000000000000001", 2, "truncated", &[]),
            (b"0100600000000000000004123", 2, "truncated", &[]),
            (b"01006000000000000000+41234000000", 2, "length", &[]),
            (b"01006000000000000000 41234000000", 2, "length", &[]),
            (b"0100600000000000000020", 2, "length", &[]),
            (b"010060000000000000000412340000", 3, "truncated", &[2]),
            (b"0100600000000000000004123400000000", 3, "trailing", &[2, 3]),
            (b"010000000000000000000", 1, "trailing", &[]),
            (b"01000000000000001000001122334455667g", 52, "digits", &[]),
            (b"080080000000000000008000000000000001 0", 65, "digits", &[]),
        ] {
            let expected = Some((field, kind, read.to_vec()));
            assert_eq!(faults("iso87_ascii", body), expected, "{}", body.escape_ascii());
        }
        assert_eq!(faults("iso87_ascii", b"0100400000000000000000"), None);
    }

    #[test]
    fn an_undefined_field_is_a_fault() {
        let table = include_str!("presets/iso87_ascii.csv");
        let lines: Vec<&str> = table.lines().filter(|line| !line.starts_with("3,")).collect();
        let dialect = Dialect::from_table(&lines.join("\n")).unwrap();
        let mut spans = Spans::default();
        let view = View::parse(&dialect, b"010060000000000000000412341234", &mut spans).unwrap();
        assert_eq!(view.fault(), Some(Fault { field: 3, at: 26, kind: FaultKind::UndefinedField }));
        assert_eq!(view.raw(2), Some(&b"1234"[..]));
        assert_eq!(view.whole(2), Some(&b"041234"[..]));
        assert!(!view.has(3) && view.raw(3).is_none());
    }

    #[test]
    fn only_a_message_without_an_mti_is_unreadable() {
        let dialect = Dialect::preset("iso87_ascii").unwrap();
        let mut spans = Spans::default();
        let mut unreadable = |body: &[u8]| View::parse(&dialect, body, &mut spans).err();
        assert_eq!(unreadable(b""), Some(Unreadable::Truncated));
        assert_eq!(unreadable(b"080"), Some(Unreadable::Truncated));
        assert_eq!(unreadable(b"08O0"), Some(Unreadable::Digits));
        assert_eq!(unreadable(&[b'0'; 65_536]), Some(Unreadable::TooLong));
        assert_eq!(unreadable(&[b'0'; 65_535]), None);
    }

    const THIRD_IN_FIELD: &str = "de,content,len_kind,len_enc,data_enc,max,unit,pad,name\n\
         0,n,fixed,none,ascii,4,chars,none,MTI\n\
         1,b,bitmap,none,hex_ascii,16,bytes,none,bitmap\n\
         11,n,fixed,none,ascii,6,chars,none,x\n\
         64,b,fixed,none,bin,8,bytes,none,x\n\
         65,b,bitmap,none,hex_ascii,8,bytes,none,third bitmap\n\
         66,n,fixed,none,ascii,1,chars,none,x\n\
         128,b,fixed,none,bin,8,bytes,none,x\n\
         129,n,fixed,none,ascii,2,chars,none,x\n\
         160,an,LL,ascii,ascii,9,chars,none,x\n";

    #[test]
    fn a_third_bitmap_in_place_of_field_65_announces_fields_from_129_on() {
        let dialect = Dialect::from_table(THIRD_IN_FIELD).unwrap();
        let mut spans = Spans::default();
        let whole =
            b"08008020000000000001C0000000000000010000426666666680000001000000007MACMACMA2902ZZ";
        let mut look = |body: &[u8]| {
            let view = View::parse(&dialect, body, &mut spans).unwrap();
            let fields: Vec<u8> = view.fields().iter().collect();
            (fields, view.fault().map(|fault| (fault.field, fault.at, fault.kind)), view.has_mac())
        };
        assert_eq!(look(whole), (vec![11, 64, 66, 128, 129, 160], None, true));
        let at_64 = whole.iter().position(|byte| *byte == b'6').unwrap();
        for (end, read, field, at, kind) in [
            (at_64 + 7, &[11][..], 64, at_64, FaultKind::Truncated),
            (at_64 + 8, &[11, 64], 65, at_64 + 8, FaultKind::Truncated),
            (at_64 + 23, &[11, 64], 65, at_64 + 8, FaultKind::Truncated),
            (at_64 + 24, &[11, 64], 66, at_64 + 24, FaultKind::Truncated),
            (whole.len() - 1, &[11, 64, 66, 128, 129], 160, whole.len() - 4, FaultKind::Truncated),
        ] {
            let fault = Some((field, u16::try_from(at).unwrap(), kind));
            assert_eq!(look(&whole[..end]), (read.to_vec(), fault, true), "cut at {end}");
        }
        let mut wrong = whole.to_vec();
        wrong[at_64 + 8] = b'x';
        let fault = Some((65, u16::try_from(at_64 + 8).unwrap(), FaultKind::Bitmap));
        assert_eq!(look(&wrong), (vec![11, 64], fault, true));
        let (fields, fault, _) = look(&[whole, &b"."[..]].concat());
        assert_eq!(fields, [11, 64, 66, 128, 129, 160]);
        let end = u16::try_from(whole.len()).unwrap();
        assert_eq!(fault, Some((160, end, FaultKind::Trailing)));
        assert_eq!(look(b"08000020000000000000000042"), (vec![11], None, false));
    }

    /// In a used scratch lie the offsets of the message before.
    #[test]
    fn nothing_of_an_earlier_message_shows_through_the_scratch() {
        let dialect = Dialect::preset("iso87_ascii").unwrap();
        let mut spans = Spans::default();
        let earlier = b"010060000000000000000412341234567";
        assert!(View::parse(&dialect, earlier, &mut spans).unwrap().has(2));
        let view = View::parse(&dialect, b"08000020000000000000000042", &mut spans).unwrap();
        assert_eq!(view.fault(), None);
        assert!((0..=255).all(|de| (view.raw(de).is_some()) == (de == 11)));
    }

    #[test]
    fn a_scratch_that_knows_a_layout_of_one_dialect_walks_another_by_its_own() {
        let body = b"01006000000000000000041234000000";
        let mut used = Spans::default();
        let mut look = |dialect: &Dialect| {
            let what = |spans: &mut Spans| {
                let view = View::parse(dialect, body, spans).unwrap();
                (view.fault(), view.fields(), view.range(2), view.range(3))
            };
            let fresh = what(&mut Spans::default());
            assert_eq!([what(&mut used), what(&mut used)], [fresh.clone(), fresh.clone()]);
            fresh
        };
        let mut dialect = Dialect::preset("iso87_ascii").unwrap();
        let whole = look(&dialect);
        assert_eq!((whole.0, whole.3.clone()), (None, Some(26..32)));
        let mut spec = *dialect.field(3).unwrap();
        spec.max = 5;
        dialect.define(3, spec, "").unwrap();
        assert_eq!(look(&dialect).3, Some(26..31));
        assert_eq!(look(&Dialect::preset("iso87_ascii").unwrap()), whole);
        let binary = BitmapLayout { encoding: BitmapEncoding::Binary, ..dialect.bitmap() };
        dialect.set_bitmap(binary).unwrap();
        assert_ne!(look(&dialect).1, whole.1);
    }

    #[test]
    fn more_kinds_of_messages_than_are_remembered_are_read_as_before() {
        let dialect = Dialect::preset("iso87_ascii").unwrap();
        let mut spans = Spans::default();
        let body = |kind: u8| {
            let (fields, mut body) = ([3, 4, 7, 11, 12, 13], b"0800".to_vec());
            let present = fields.iter().zip(0..).filter(|(_, bit)| kind >> bit & 1 == 1);
            let present: FieldSet = present.map(|(de, _)| *de).collect();
            dialect.bitmap().write(&present, &mut body);
            for de in present.iter() {
                let bytes = dialect.field(de).unwrap().max;
                body.extend(std::iter::repeat_n(b'0' + de % 10, usize::from(bytes)));
            }
            (present, body)
        };
        for kind in (0..64).chain(0..64).chain((0..64).rev()) {
            let (present, body) = body(kind);
            let view = View::parse(&dialect, &body, &mut spans).unwrap();
            assert_eq!((view.fault(), view.fields()), (None, present));
            for de in present.iter() {
                assert!(view.raw(de).unwrap().iter().all(|byte| *byte == b'0' + de % 10), "{de}");
            }
        }
    }

    #[test]
    fn digits_two_a_byte_are_digits_and_their_padding_is_not_looked_at() {
        let dialect = Dialect::from_table(
            "de,content,len_kind,len_enc,data_enc,max,unit,pad,name\n\
             0,n,fixed,none,bcd,4,digits,left0,MTI\n\
             1,b,bitmap,none,bin,8,bytes,none,bitmap\n\
             2,n,LL,bcd,bcd,19,digits,left0,x\n\
             3,n,fixed,none,bcd,3,digits,rightF,x\n\
             4,x+n,fixed,none,x_ascii+bcd,9,chars,none,x\n\
             5,z,LL,bcd,bcd_z,37,digits,right0,x\n",
        )
        .unwrap();
        let mut spans = Spans::default();
        let mut look = |field: u8, data: &[u8]| {
            let body = [&[1, 0, 0x80 >> (field - 1), 0, 0, 0, 0, 0, 0, 0], data].concat();
            let view = View::parse(&dialect, &body, &mut spans).unwrap();
            view.fault().map_or_else(
                || String::from_utf8_lossy(view.text::<40>(field).unwrap().as_bytes()).into_owned(),
                |fault| fault.kind.name().to_owned(),
            )
        };
        assert_eq!(look(2, &[0x05, 0x01, 0x23, 0x45]), "12345");
        assert_eq!(look(2, &[0x05, 0xf1, 0x23, 0x45]), "12345");
        assert_eq!(look(2, &[0x05, 0x01, 0x2a, 0x45]), "digits");
        assert_eq!(look(2, &[0x0a, 0x01, 0x23, 0x45]), "length");
        assert_eq!(look(2, &[0x20, 0x01, 0x23, 0x45]), "length");
        assert_eq!(look(3, &[0x12, 0x3f]), "123");
        assert_eq!(look(3, &[0x12, 0xf3]), "digits");
        assert_eq!(look(4, &[b'D', 0x12, 0x34, 0x56, 0x78]), "D12345678");
        assert_eq!(look(4, &[b'D', 0x12, 0x34, 0x56, 0x7e]), "digits");
        assert_eq!(look(5, &[0x09, 0x12, 0x34, 0xd2, 0x91, 0x2f]), "1234=2912");
    }
}

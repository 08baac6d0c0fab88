//! Messages that are walked, sound ones and damaged ones.

use std::collections::BTreeSet;

use fastrand::Rng;
use tollgate::iso8583::{Dialect, FaultKind, Spans, View};

use crate::encoder::{Fields, Row, Table};
use crate::luhn::{card_number, passes};
use crate::{Preset, fixtures};

/// More characters than any field here but those that fill a message.
const TEXT_MAX: usize = 20_000;

/// The longest message that there is.
const BODY_MAX: usize = 65_535;

/// Random messages of each preset.
const RANDOM: usize = 300;

/// Fails unless the walk ends where the message does and finds these fields in it, their values,
/// and their bytes.
#[track_caller]
fn assert_walks<const N: usize>(dialect: &Dialect, table: &Table, fields: &Fields, what: &str) {
    let body = table.encode(fields);
    assert!(body.len() <= BODY_MAX, "{what}: {} bytes", body.len());
    let mut spans = Spans::default();
    let view = View::parse(dialect, &body, &mut spans).expect(what);
    assert_eq!(view.fault(), None, "{what}");
    assert_eq!(view.mti().to_string(), fields[&0], "{what}");
    assert_eq!(view.fields(), fields.keys().copied().filter(|de| *de != 0).collect(), "{what}");
    let mut pieces = table.head(fields);
    for (de, value) in fields.range(1..) {
        let text = view.text::<N>(*de).unwrap();
        assert_eq!(text.as_bytes(), value.as_bytes(), "{what}: field {de}");
        let whole = view.whole(*de).unwrap();
        assert_eq!(whole, table.whole(*de, value), "{what}: field {de}");
        assert!(whole.ends_with(view.raw(*de).unwrap()), "{what}: field {de}");
        pieces.extend(whole);
    }
    assert_eq!(pieces, body, "{what}: the pieces are the message");
}

/// Numbers of units near both ends and in the middle, odd and even.
fn lengths(row: &Row) -> BTreeSet<usize> {
    let max = row.units_max();
    if row.is_fixed() {
        return BTreeSet::from([max]);
    }
    let low = [0, 1, 2, 3, 7, 8];
    let high = [3, 2, 1, 0].map(|short| max.saturating_sub(short));
    let middle = [max / 2, max / 2 + 1];
    low.into_iter().chain(high).chain(middle).filter(|units| *units <= max).collect()
}

#[test]
fn the_encoder_builds_real_messages_byte_for_byte() {
    let messages = fixtures::messages();
    let mut built = 0;
    for message in &messages {
        let body = Table::read(&message.table).encode(&message.expected);
        assert_eq!(body, message.body, "{}", message.id);
        built += 1;
    }
    assert_eq!(built, 53);
}

#[test]
fn every_field_alone_round_trips_at_its_shortest_its_longest_and_odd_lengths() {
    let mut rng = Rng::with_seed(1);
    let mut messages = 0;
    for preset in Preset::all() {
        for de in preset.table.fields() {
            for units in lengths(preset.table.field(de)) {
                let fields = preset.fields("0100", &[de], &mut rng, |_, _| units);
                let what = format!("{} field {de} of {units}", preset.name);
                assert_walks::<TEXT_MAX>(&preset.dialect, &preset.table, &fields, &what);
                messages += 1;
            }
        }
    }
    println!("{messages} messages of one field");
    assert!(messages > 7_000, "only {messages} messages");
}

#[test]
fn all_fields_at_once_round_trip_at_their_shortest_and_longest() {
    let mut rng = Rng::with_seed(2);
    for preset in Preset::all() {
        let all = preset.table.fields();
        for (what, longest) in [("shortest", false), ("longest", true)] {
            let units = |row: &Row, _: &mut Rng| if longest { row.units_max() } else { 0 };
            let fields = preset.fields("0200", &all, &mut rng, units);
            assert_eq!(fields.len(), all.len() + 1);
            let what = format!("{} at its {what}", preset.name);
            assert_walks::<TEXT_MAX>(&preset.dialect, &preset.table, &fields, &what);
        }
    }
}

#[test]
fn random_messages_of_every_preset_round_trip() {
    let mut rng = Rng::with_seed(3);
    let mut seen = 0;
    for preset in Preset::all() {
        let all = preset.table.fields();
        let mut fields_seen = BTreeSet::new();
        for number in 0..RANDOM {
            let share = rng.usize(1..=all.len());
            let some = rng.choose_multiple(all.iter().copied(), share);
            let mti = format!("{:04}", rng.u16(..3_000));
            let fields =
                preset.fields(&mti, &some, &mut rng, |row, rng| rng.usize(..=row.units_max()));
            let what = format!("{} message {number}", preset.name);
            assert_walks::<TEXT_MAX>(&preset.dialect, &preset.table, &fields, &what);
            fields_seen.extend(some);
            seen += 1;
        }
        assert_eq!(fields_seen, all.into_iter().collect(), "{}: fields never tried", preset.name);
    }
    assert_eq!(seen, RANDOM * 12);
}

/// The first fault of a body, if an MTI can be read in it.
fn fault(dialect: &Dialect, body: &[u8]) -> Option<(u8, FaultKind)> {
    let mut spans = Spans::default();
    let view = View::parse(dialect, body, &mut spans).expect("an MTI");
    view.fault().map(|fault| (fault.field, fault.kind))
}

#[test]
fn a_message_cut_short_or_too_long_anywhere_is_a_fault_in_every_preset() {
    let mut rng = Rng::with_seed(8);
    let (mut cut, mut too_long) = (0, 0);
    for preset in Preset::all() {
        let mti = preset.table.head(&Fields::from([(0, "0100".to_owned())])).len()
            - preset.table.bitmap(&Fields::new()).len();
        for de in preset.table.fields() {
            let what = format!("{} field {de}", preset.name);
            let fields = preset.fields("0100", &[de], &mut rng, |row, _| row.units_max().min(9));
            let mut body = preset.table.encode(&fields);
            let head = preset.table.head(&fields).len();
            for end in mti..body.len() {
                let at = if end < head { 1 } else { de };
                let found = fault(&preset.dialect, &body[..end]);
                assert_eq!(found, Some((at, FaultKind::Truncated)), "{what} cut to {end}");
                cut += 1;
            }
            body.push(b'0');
            assert_eq!(fault(&preset.dialect, &body), Some((de, FaultKind::Trailing)), "{what}");
            if let Some(whole) = preset.table.whole_too_long(de, &mut rng) {
                body.truncate(head);
                body.extend(whole);
                assert_eq!(fault(&preset.dialect, &body), Some((de, FaultKind::Length)), "{what}");
                too_long += 1;
            }
        }
    }
    println!("{cut} cuts, {too_long} lengths beyond the maximum");
    assert!(cut > 30_000 && too_long > 190, "only {cut} cuts and {too_long} lengths");
}

#[test]
fn a_half_byte_that_is_no_digit_is_a_fault_wherever_a_digit_is_expected() {
    let mut rng = Rng::with_seed(9);
    let mut tried = 0;
    for preset in Preset::all() {
        for de in preset.table.fields() {
            let row = preset.table.field(de);
            for units in lengths(row).into_iter().filter(|units| *units > 0) {
                let fields = preset.fields("0100", &[de], &mut rng, |_, _| units);
                let body = preset.table.encode(&fields);
                let data = body.len() - row.bytes(units);
                for half in row.decimal_halves(units) {
                    let mut damaged = body.clone();
                    let letter = rng.u8(10..16);
                    let byte = &mut damaged[data + half / 2];
                    *byte = if half % 2 == 0 {
                        *byte & 15 | letter << 4
                    } else {
                        *byte & 0xf0 | letter
                    };
                    let found = fault(&preset.dialect, &damaged);
                    let what = format!("{} field {de} of {units}, half byte {half}", preset.name);
                    assert_eq!(found, Some((de, FaultKind::Digits)), "{what}");
                    tried += 1;
                }
            }
        }
    }
    println!("{tried} half bytes");
    assert!(tried > 9_000, "only {tried} half bytes");
}

/// A maximum beyond what a message holds leaves the message as the bound.
#[test]
fn a_field_of_six_length_digits_may_fill_the_longest_message() {
    let row = "127,b,LLLLLL,ascii,bin,999999,bytes,none,nested message";
    let text = fixtures::changed(&fixtures::preset("iso87_ascii_binbitmap"), &[row]);
    let (table, dialect) = (Table::read(&text), Dialect::from_table(&text).unwrap());
    let mut rng = Rng::with_seed(4);
    let before = 4 + 16 + 6;
    for units in [BODY_MAX - before - 1, BODY_MAX - before] {
        let value = table.field(127).value(units, &mut rng);
        let fields = Fields::from([(0, "0620".to_owned()), (127, value)]);
        assert_eq!(table.encode(&fields).len(), before + units);
        assert_walks::<{ 2 * BODY_MAX }>(&dialect, &table, &fields, "a message that is full");
    }
}

/// Field 2 written along one table and read along another: its text, or what is wrong with it.
fn across(written: &Table, read: &Dialect, pan: &str) -> Result<String, FaultKind> {
    let body = written.encode(&Fields::from([(0, "0100".to_owned()), (2, pan.to_owned())]));
    let mut spans = Spans::default();
    let view = View::parse(read, &body, &mut spans).expect("an MTI");
    match view.fault() {
        Some(fault) => {
            assert_eq!((fault.field, view.has(2)), (2, false));
            Err(fault.kind)
        }
        None => {
            let text = view.text::<32>(2).unwrap();
            Ok(String::from_utf8(text.as_bytes().to_vec()).unwrap())
        }
    }
}

/// An odd number of digits whose padding is taken to be on the other side is as long as before, so
/// that nothing in the message tells: the number is another one, and nine times of ten its check
/// digit is wrong. Padding with F is no digit, and does tell where a digit is expected.
#[test]
fn digits_padded_on_the_other_side_are_other_digits_and_no_fault() {
    let (right, left) = (Preset::of("iso87_bcd"), Preset::of("iso87_bcd_left"));
    let row = "2,n,LL,bcd,bcd,19,digits,rightF,primary account number";
    let text = fixtures::changed(&fixtures::preset("iso87_bcd"), &[row]);
    let (filled, filled_dialect) = (Table::read(&text), Dialect::from_table(&text).unwrap());
    let mut rng = Rng::with_seed(7);
    let (mut wrong, mut tried) = (0, 0);
    for _ in 0..1_000 {
        for digits in [13, 15, 17, 19] {
            let pan = card_number(digits, &mut rng);
            assert!(passes(pan.as_bytes()));
            let to_the_left = across(&right.table, &left.dialect, &pan).unwrap();
            assert_eq!(to_the_left, format!("{}0", &pan[1..]));
            let to_the_right = across(&left.table, &right.dialect, &pan).unwrap();
            assert_eq!(to_the_right, format!("0{}", &pan[..digits - 1]));
            for other in [to_the_left, to_the_right] {
                assert_ne!(other, pan);
                wrong += u32::from(!passes(other.as_bytes()));
                tried += 1;
            }
            assert_eq!(across(&filled, &left.dialect, &pan), Err(FaultKind::Digits));
            // Padding is not looked at where it is expected, whatever it is.
            assert_eq!(across(&filled, &right.dialect, &pan).as_ref(), Ok(&pan));
            assert_eq!(across(&right.table, &filled_dialect, &pan).as_ref(), Ok(&pan));
        }
        let even = card_number(16, &mut rng);
        assert_eq!(across(&right.table, &left.dialect, &even).as_ref(), Ok(&even));
    }
    println!("{wrong} of {tried} have a wrong check digit");
    assert_eq!(tried, 8_000);
    assert!((7_000..7_400).contains(&wrong), "{wrong} of {tried} have a wrong check digit");
}

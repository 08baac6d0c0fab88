//! For every preset, messages of every field at every kind of length come from an encoder of the
//! tests' own and are walked to their exact end; and what tollgate answers to them is, byte for
//! byte, what that encoder would have built.

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
#[path = "support/encoder.rs"]
mod encoder;
#[path = "support/fixtures.rs"]
mod fixtures;

use std::collections::BTreeSet;

use encoder::{Fields, Row, Table};
use fastrand::Rng;
use tollgate::gate::Settings;
use tollgate::iso8583::{
    Dialect, FaultKind, FieldSet, LocalCode, NEVER_ECHOED, NoReply, Spans, View, compose,
};

/// More characters than any field here but those that fill a message.
const TEXT_MAX: usize = 20_000;

/// The longest message that there is.
const BODY_MAX: usize = 65_535;

/// Random messages of each preset.
const RANDOM: usize = 300;

/// What Field 39 of each preset holds: the code of this MTI version and of no other.
const FIELD_39: [(&str, u8); 12] = [
    ("iso87_ascii", 0),
    ("iso87_ascii_binbitmap", 0),
    ("iso87_bcd", 0),
    ("iso87_bcd_left", 0),
    ("iso93_ascii", 1),
    ("iso93_bcd", 1),
    ("iso93_ebcdic", 1),
    ("mastercard_like_ascii", 0),
    ("mastercard_like_ebcdic", 0),
    ("visa_like_base1", 0),
    ("cup_pos_bcd", 0),
    ("iso8583_rs_sample", 1),
];

/// "Issuer or switch inoperative" by MTI version.
const INOPERATIVE: [&str; 3] = ["91", "907", "9107"];

struct Preset {
    name: &'static str,
    table: Table,
    dialect: Dialect,
}

impl Preset {
    fn all() -> Vec<Self> {
        let presets: Vec<_> = Dialect::PRESETS.iter().map(|name| Self::of(name)).collect();
        assert_eq!(presets.len(), 12);
        presets
    }

    fn of(name: &'static str) -> Self {
        let table = Table::read(&fixtures::preset(name));
        Self { name, table, dialect: Dialect::preset(name).expect("a preset") }
    }

    /// Values for these fields, of these many units each.
    fn fields(
        &self,
        mti: &str,
        fields: &[u8],
        rng: &mut Rng,
        units: impl Fn(&Row, &mut Rng) -> usize,
    ) -> Fields {
        let values = fields.iter().map(|de| {
            let row = self.table.field(*de);
            let units = if row.is_fixed() { row.units_max() } else { units(row, rng) };
            (*de, row.value(units, rng))
        });
        values.chain([(0, mti.to_owned())]).collect()
    }
}

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

/// The type of an answer, as the standard has it.
fn answer_type(mti: &str) -> String {
    let digits: Vec<u8> = mti.bytes().map(|digit| digit - b'0').collect();
    let [version, class, function, origin] = digits[..] else { panic!("{mti}") };
    format!("{version}{class}{}{}", function + 1, origin / 2 * 2)
}

/// Composes an answer with "issuer or switch inoperative" and holds it to the encoder's. `None`
/// if Field 39 cannot say it.
fn answered(preset: &Preset, request: &Fields, echo: &FieldSet) -> Option<Vec<u8>> {
    let body = preset.table.encode(request);
    let mut spans = Spans::default();
    let view = View::parse(&preset.dialect, &body, &mut spans).expect("an MTI");
    assert_eq!(view.fault(), None);
    let mut answer = Vec::new();
    let slot = match compose(&view, echo, &mut answer) {
        Ok(slot) => slot,
        Err(refusal) => {
            assert_eq!(refusal, NoReply::ResponseCode);
            assert!(answer.is_empty());
            return None;
        }
    };
    assert!(slot.write(&mut answer, LocalCode::IssuerInoperative));
    let what = format!("{} {}", preset.name, request[&0]);

    let mut spans = Spans::default();
    let reply = View::parse(&preset.dialect, &answer, &mut spans).expect("an MTI");
    assert_eq!(reply.fault(), None, "{what}");
    let echoed = |de: &u8| *de != 0 && echo.contains(*de) && !NEVER_ECHOED.contains(*de);
    let mut expected: Fields = request.clone().into_iter().filter(|(de, _)| echoed(de)).collect();
    let present: FieldSet = expected.keys().copied().chain([39]).collect();
    assert_eq!(reply.fields(), present, "{what}");
    for de in expected.keys() {
        assert_eq!(reply.whole(*de), view.whole(*de), "{what}: field {de} is as it came");
    }
    expected.insert(0, answer_type(&request[&0]));
    expected.insert(39, INOPERATIVE[usize::from(view.mti().version())].to_owned());
    assert_eq!(reply.mti().to_string(), expected[&0], "{what}");
    assert_eq!(reply.whole(39), Some(&*preset.table.whole(39, &expected[&39])), "{what}");
    assert_eq!(answer, preset.table.encode(&expected), "{what}");
    Some(answer)
}

#[test]
fn an_answer_in_every_preset_is_the_one_that_the_encoder_builds() {
    let mut rng = Rng::with_seed(5);
    let default = FieldSet::of(&Settings::ECHO);
    let everything: FieldSet = (0..=255).collect();
    let mut answers = 0;
    for (preset, (name, version)) in Preset::all().iter().zip(FIELD_39) {
        assert_eq!(preset.name, name);
        let all = preset.table.fields();
        let echoed: Vec<u8> =
            all.iter().copied().filter(|de| Settings::ECHO.contains(de)).collect();
        assert!(echoed.len() >= 5, "{name} has {echoed:?} of the default list");
        for kind in ["100", "101", "120", "121", "200", "201", "202", "220", "420", "800"] {
            let mti = format!("{version}{kind}");
            for round in 0..20 {
                let share = rng.usize(..=all.len());
                let fields = match round {
                    0 => echoed.clone(),
                    1 => all.clone(),
                    _ => rng.choose_multiple(all.iter().copied(), share),
                };
                let request = preset
                    .fields(&mti, &fields, &mut rng, |row, rng| rng.usize(..=row.units_max()));
                for echo in [&default, &everything, &FieldSet::EMPTY] {
                    assert!(answered(preset, &request, echo).is_some(), "{name} {mti}");
                    answers += 1;
                }
            }
        }
    }
    assert_eq!(answers, 12 * 10 * 20 * 3);
}

#[test]
fn field_39_of_every_preset_holds_the_code_of_one_version() {
    let mut rng = Rng::with_seed(6);
    for (preset, (name, fitting)) in Preset::all().iter().zip(FIELD_39) {
        assert_eq!(preset.name, name);
        let fits: Vec<u8> = (0..=9)
            .filter(|version| {
                let mti = format!("{version}100");
                let request =
                    preset.fields(&mti, &[2, 3, 4, 11], &mut rng, |row, _| row.units_max());
                answered(preset, &request, &FieldSet::of(&Settings::ECHO)).is_some()
            })
            .collect();
        assert_eq!(fits, [fitting], "{name}");
        assert_eq!(preset.table.field(39).units_max(), INOPERATIVE[usize::from(fitting)].len());
    }
}

/// Whether the last digit is the check digit of those before it.
fn luhn(digits: &str) -> bool {
    let doubled = |(place, digit): (usize, u8)| match u32::from(digit - b'0') << (place % 2) {
        two @ 10.. => two - 9,
        one => one,
    };
    digits.bytes().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
}

/// A made-up card number with its check digit.
fn card_number(digits: usize, rng: &mut Rng) -> String {
    let head: String = "4".chars().chain((2..digits).map(|_| rng.digit(10))).collect();
    let numbers = (0..10).map(|check| format!("{head}{check}"));
    numbers.into_iter().find(|number| luhn(number)).expect("a check digit")
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
            assert!(luhn(&pan));
            let to_the_left = across(&right.table, &left.dialect, &pan).unwrap();
            assert_eq!(to_the_left, format!("{}0", &pan[1..]));
            let to_the_right = across(&left.table, &right.dialect, &pan).unwrap();
            assert_eq!(to_the_right, format!("0{}", &pan[..digits - 1]));
            for other in [to_the_left, to_the_right] {
                assert_ne!(other, pan);
                wrong += u32::from(!luhn(&other));
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

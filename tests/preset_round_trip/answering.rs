//! Messages that are answered.

use fastrand::Rng;
use tollgate::gate::Settings;
use tollgate::iso8583::{FieldSet, LocalCode, NEVER_ECHOED, NoReply, Spans, View, compose};

use crate::Preset;
use crate::encoder::Fields;

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

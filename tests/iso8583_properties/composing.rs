//! Answers that a composer remembers the shape of, held to a plain composition that remembers nothing
//! and shares no code with it.

use std::sync::Arc;

use proptest::prelude::*;
use tollgate::iso8583::{
    Composer, DataEncoding, Dialect, FieldSet, FieldSpec, Length, LocalCode, MtiEncoding,
    NEVER_ECHOED, NoReply, Padding, Spans, Unit, View, compose,
};

use crate::{Draft, bitmap, build, dialects, drafts, ebcdic_hex, length};

/// Classes, functions and origins that are answered, and some that are not.
const KINDS: [[u8; 3]; 9] = [
    [1, 0, 0],
    [1, 0, 1],
    [2, 0, 0],
    [2, 2, 1],
    [4, 2, 0],
    [8, 0, 5],
    [1, 4, 3],
    [1, 1, 0],
    [2, 8, 0],
];

/// A message to be, and what is done to it.
#[derive(Clone, Debug)]
struct Case {
    drafts: Vec<Draft>,
    kind: [u8; 3],
    /// Beside the version that the dialect's Field 39 holds a code of.
    version: Option<u8>,
    damage: Option<(u16, u8)>,
    cut: Option<u16>,
}

fn cases() -> impl Strategy<Value = Vec<Case>> {
    let kind = prop::sample::select(KINDS.to_vec());
    let version = prop::option::weighted(0.1, 0..10u8);
    let damage = prop::option::weighted(0.3, any::<(u16, u8)>());
    let cut = prop::option::weighted(0.3, any::<u16>());
    let case =
        (drafts(), kind, version, damage, cut).prop_map(|(drafts, kind, version, damage, cut)| {
            Case { drafts, kind, version, damage, cut }
        });
    prop::collection::vec(case, 1..14)
}

fn message(dialect: &Dialect, fitting: u8, case: &Case) -> Vec<u8> {
    let [class, function, origin] = case.kind;
    let mti = [case.version.unwrap_or(fitting), class, function, origin];
    let (mut body, _) = build(dialect, mti, &case.drafts);
    if let Some((at, with)) = case.damage {
        let at = usize::from(at) % body.len();
        body[at] ^= with;
    }
    if let Some(cut) = case.cut {
        body.truncate(usize::from(cut) % body.len());
    }
    body
}

/// Field 39 with a code of digits; `None` when it does not fit exactly.
fn code(spec: &FieldSpec, text: &str) -> Option<Vec<u8>> {
    let in_bytes = spec.unit == Unit::Bytes;
    let hexadecimal = matches!(spec.data, DataEncoding::HexAscii | DataEncoding::HexEbcdic);
    if (in_bytes || hexadecimal) && text.len() % 2 == 1 {
        return None;
    }
    let units = if in_bytes { text.len() / 2 } else { text.len() };
    let max = usize::from(spec.max);
    if if spec.length == Length::Fixed { units != max } else { units > max } {
        return None;
    }
    let pairs = |digits: Vec<u8>| -> Vec<u8> {
        digits.chunks(2).map(|pair| (pair[0] & 15) << 4 | pair[1] & 15).collect()
    };
    let data = match (spec.data, spec.padding) {
        (DataEncoding::Ascii | DataEncoding::HexAscii, _) => text.bytes().collect(),
        (DataEncoding::Ebcdic | DataEncoding::HexEbcdic, _) => {
            text.bytes().map(ebcdic_hex).collect()
        }
        _ if text.len().is_multiple_of(2) => pairs(text.bytes().collect()),
        (_, Padding::RightZero) => pairs(format!("{text}0").into_bytes()),
        (_, Padding::RightF) => pairs(format!("{text}?").into_bytes()),
        _ => pairs(format!("0{text}").into_bytes()),
    };
    let prefix = match spec.length {
        Length::Fixed => Vec::new(),
        Length::Prefixed(prefix) => length(prefix, units),
    };
    Some([prefix, data].concat())
}

/// The answer field by field.
fn plain(view: &View<'_>, echo: &FieldSet, said: LocalCode) -> Result<Vec<u8>, NoReply> {
    let (dialect, mti) = (view.dialect(), view.mti());
    if ![0, 2, 4, 6].contains(&mti.function()) {
        return Err(NoReply::MessageType);
    }
    let text = said.in_version(mti.version()).ok_or(NoReply::ResponseCode)?;
    let code = code(dialect.field(39).unwrap(), text).ok_or(NoReply::ResponseCode)?;
    let digits = [mti.version(), mti.class(), mti.function() + 1, mti.origin() / 2 * 2];
    let mut answer = match dialect.mti() {
        MtiEncoding::Ascii => digits.map(|digit| digit + b'0').to_vec(),
        MtiEncoding::Ebcdic => digits.map(|digit| digit + 0xf0).to_vec(),
        MtiEncoding::Bcd => vec![digits[0] << 4 | digits[1], digits[2] << 4 | digits[3]],
    };
    let echoed = |de: &u8| view.has(*de) && echo.contains(*de) && !NEVER_ECHOED.contains(*de);
    let mut fields: Vec<(u8, Vec<u8>)> =
        (2..=192).filter(echoed).map(|de| (de, view.whole(de).unwrap().to_vec())).collect();
    fields.push((39, code));
    fields.sort();
    let (head, third) = bitmap(dialect, &fields);
    answer.extend(head);
    let (before, after) = fields.split_at(fields.partition_point(|(de, _)| *de < 65));
    before.iter().for_each(|(_, bytes)| answer.extend(bytes));
    answer.extend(third);
    after.iter().for_each(|(_, bytes)| answer.extend(bytes));
    Ok(answer)
}

proptest! {
    #[test]
    fn an_answer_of_a_remembered_shape_is_the_one_that_is_put_together_field_by_field(
        cases in cases(),
        echo in prop::collection::vec(any::<u8>(), 0..192),
        order in prop::collection::vec(any::<u8>(), 1..30),
    ) {
        let echo: FieldSet = echo.into_iter().collect();
        for (dialect, version) in dialects() {
            let dialect = Arc::new(dialect);
            let other = dialect.as_ref().clone();
            let mut composer = Composer::new(Arc::clone(&dialect), echo);
            let bodies: Vec<_> = cases.iter().map(|case| message(&dialect, version, case)).collect();
            // Each of them at first, then some of them again, from among the others.
            let again = order.iter().map(|pick| &bodies[usize::from(*pick) % bodies.len()]);
            for body in bodies.iter().chain(again) {
                let mut spans = Spans::default();
                let Ok(view) = View::parse(&dialect, body, &mut spans) else { continue };
                let (mut out, mut once) = (b"header".to_vec(), b"header".to_vec());
                let slot = composer.compose(&view, &mut out);
                prop_assert_eq!(slot, compose(&view, &echo, &mut once));
                prop_assert_eq!(&out, &once);
                let expected = plain(&view, &echo, LocalCode::SystemMalfunction);
                prop_assert_eq!(slot.err(), expected.clone().err());
                prop_assert_eq!(&out[6..], expected.unwrap_or_default());
                if let Ok(slot) = slot {
                    prop_assert!(slot.write(&mut out, LocalCode::IssuerInoperative));
                    let expected = plain(&view, &echo, LocalCode::IssuerInoperative);
                    prop_assert_eq!(&out[6..], expected.unwrap());
                }
                let mut spans = Spans::default();
                let view = View::parse(&other, body, &mut spans).unwrap();
                let mut elsewhere = b"header".to_vec();
                prop_assert_eq!(composer.compose(&view, &mut elsewhere), slot);
                prop_assert_eq!(&elsewhere, &once);
            }
        }
    }
}

//! Real messages from public sources walk to their exact end and hold what their sources say.

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
#[path = "support/fixtures.rs"]
mod fixtures;

use fixtures::{Line, Message};
use tollgate::iso8583::{Dialect, Spans, View};

/// Longer than any field of the fixtures.
const TEXT_MAX: usize = 2_000;

/// The fields of a bitmap in hexadecimal digits, without the bits that announce further words.
fn announced(bitmap: &str) -> Vec<u8> {
    let bit = |de: u8| {
        let digit = bitmap.as_bytes().get(usize::from(de - 1) / 4);
        let digit = digit.and_then(|digit| char::from(*digit).to_digit(16)).unwrap_or(0);
        digit << ((de - 1) % 4) & 8 != 0
    };
    (2..=192).filter(|de| bit(*de) && !(*de == 65 && bitmap.len() == 48)).collect()
}

fn check(message: &Message, dialect: &Dialect) {
    let id = &message.id;
    let mut spans = Spans::default();
    let view = View::parse(dialect, &message.body, &mut spans).expect("an MTI");
    assert_eq!(view.fault(), None, "{id}");
    assert_eq!(view.mti().to_string(), message.expected[&0], "{id}");
    let numbers: Vec<u8> = message.expected.keys().copied().filter(|de| *de != 0).collect();
    assert_eq!(view.fields().iter().collect::<Vec<_>>(), numbers, "{id}");
    assert_eq!(numbers, announced(&message.bitmap), "{id}");
    let mut end = message.body.len();
    for de in numbers.iter().rev() {
        let text = view.text::<TEXT_MAX>(*de).unwrap();
        let text = String::from_utf8_lossy(text.as_bytes());
        assert_eq!(text, message.expected[de], "field {de} of {id}");
        let whole = view.whole(*de).unwrap();
        assert!(message.body[..end].ends_with(whole), "field {de} of {id} ends elsewhere");
        assert!(whole.ends_with(view.raw(*de).unwrap()));
        end -= whole.len();
    }
}

/// Peers that send both words of the bitmap whatever its first bit says, chip data as bytes, or
/// lengths of another kind have lines of their own in `fixtures/overrides.csv`.
#[test]
fn every_message_walks_to_its_exact_end_and_holds_what_its_source_says() {
    let (mut as_the_preset, mut with_other_lines, mut keepalives) = (0, 0, 0);
    let lines = fixtures::lines();
    for line in &lines {
        let Line::Message(message) = line else {
            keepalives += 1;
            continue;
        };
        if message.overrides.is_empty() {
            check(message, &Dialect::preset(&message.dialect).expect("a preset"));
            as_the_preset += 1;
        } else {
            check(message, &Dialect::from_table(&message.table).unwrap());
            with_other_lines += 1;
        }
    }
    assert_eq!((as_the_preset, with_other_lines, keepalives), (42, 11, 5));
    assert_eq!(lines.len(), 58, "the lines of fixtures/messages.csv");
}

/// What a message needs another line for, it needs: the preset alone reads something else.
#[test]
fn a_message_of_a_sender_with_lines_of_its_own_is_another_in_the_preset_alone() {
    let mut checked = 0;
    for message in fixtures::messages() {
        if message.overrides.is_empty() {
            continue;
        }
        let dialect = Dialect::preset(&message.dialect).expect("a preset");
        let mut spans = Spans::default();
        let view = View::parse(&dialect, &message.body, &mut spans).expect("an MTI");
        let differs = view.fault().is_some()
            || message.expected.iter().filter(|(de, _)| **de != 0).any(|(de, value)| {
                view.text::<TEXT_MAX>(*de).is_none_or(|text| text.as_bytes() != value.as_bytes())
            });
        assert!(differs, "{} needs no line of its own", message.id);
        checked += 1;
    }
    assert_eq!(checked, 11);
}

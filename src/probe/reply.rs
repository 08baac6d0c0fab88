//! What an answer promises: a valid message of the answer's type that echoes byte for byte what it
//! may echo and nothing else, and says in Field 39 what it was told to say.

use super::dialect;
use crate::iso8583::{
    Dialect, FieldSet, LocalCode, NEVER_ECHOED, NoReply, Slot, Spans, View, approves, compose,
};

/// How many bytes choose: the preset, and in eight bytes the fields to echo: one bit a field as a
/// bitmap has them, the same for each of its words.
pub const REPLY_HEAD_BYTES: usize = 9;

/// The most that an answer is longer than its request: by Field 39 with its length.
const LONGER_BYTES_MAX: usize = 16;

const RESPONSE_CODE: u8 = 39;

/// Composes the answer to a message and writes every code into it. Whether it has an answer.
///
/// # Panics
/// When a promise of [`compose`] or [`Slot::write`] is broken.
pub fn reply(data: &[u8]) -> bool {
    let Some((head, body)) = data.split_first_chunk::<REPLY_HEAD_BYTES>() else { return false };
    let [choice, echo @ ..] = *head;
    let Some(dialect) = dialect(choice) else { return false };
    let mut spans = Spans::default();
    let Ok(request) = View::parse(dialect, body, &mut spans) else { return false };
    let echo = chosen(u64::from_be_bytes(echo));

    let mut out = Vec::new();
    let slot = match compose(&request, &echo, &mut out) {
        Ok(slot) => slot,
        Err(refusal) => {
            assert!(out.is_empty(), "a failure appends nothing");
            let no_type = request.mti().response().is_none();
            assert!(no_type == (refusal == NoReply::MessageType));
            return false;
        }
    };
    assert!(out.len() <= request.body().len() + LONGER_BYTES_MAX);
    says_nothing_else(&request, &echo, dialect, &out);
    says_what_it_is_told(&request, slot, dialect, &mut out);
    true
}

/// The fields of a word of bits, and those of the other words of a bitmap in the same places.
fn chosen(bits: u64) -> FieldSet {
    let is_set = |de: &u8| bits.rotate_left(u32::from(*de)) & 1 == 1;
    (1..=FieldSet::MAX).filter(is_set).collect()
}

/// The answer reads without a fault, and each field but 39 is one that was asked for, with the
/// request's own bytes.
fn says_nothing_else(request: &View<'_>, echo: &FieldSet, dialect: &Dialect, out: &[u8]) {
    let mut spans = Spans::default();
    let answer = View::parse(dialect, out, &mut spans);
    assert!(answer.is_ok(), "an answer without a type");
    let Ok(answer) = answer else { return };
    assert!(answer.fault().is_none(), "{:?}", answer.fault());
    assert!(Some(answer.mti()) == request.mti().response() && answer.mti().is_answer());
    for de in 0..=u8::MAX {
        let echoed = echo.contains(de) && request.has(de) && !NEVER_ECHOED.contains(de);
        assert!(answer.has(de) == (echoed || de == RESPONSE_CODE), "field {de}");
        if echoed {
            assert!(answer.whole(de) == request.whole(de), "field {de} is not the request's");
        }
    }
    assert!(!answer.has_mac());
}

/// Each code is written so that it is read again and nothing else changes, or nothing changes.
fn says_what_it_is_told(request: &View<'_>, slot: Slot, dialect: &Dialect, out: &mut [u8]) {
    let version = request.mti().version();
    let mut said = LocalCode::SystemMalfunction.in_version(version);
    let mut spans = Spans::default();
    for code in LocalCode::ALL {
        let before = out.to_vec();
        let written = slot.write(out, code);
        if written {
            said = code.in_version(version);
        } else {
            assert!(out == before, "a code that cannot be said changes nothing");
        }
        let answer = View::parse(dialect, out, &mut spans);
        let text = answer.ok().and_then(|view| view.text::<9>(RESPONSE_CODE));
        let text = text.as_ref().map(|text| text.as_bytes());
        assert!(text.is_some() && text == said.map(str::as_bytes), "another code is read");
        assert!(!text.is_some_and(|text| approves(version, text)), "an answer approves");
    }
}

//! What an answer promises: a valid message of the answer's type that echoes byte for byte what it
//! may echo and nothing else, and says in Field 39 what it was told to say. And what its header
//! promises: to be one, and to lead back to where the request came from.

use super::{dialect, header, offset};
use crate::iso8583::{
    Dialect, FieldSet, LocalCode, NEVER_ECHOED, NoReply, Slot, Spans, View, approves, compose,
};
use crate::wire::{Header, Opened};

/// How many bytes choose: the dialect, the header, and in eight bytes the fields to echo: one bit a
/// field as a bitmap has them, the same for each of its words.
pub const REPLY_HEAD_BYTES: usize = 10;

/// The most that an answer is longer than its request: by Field 39 with its length, and by the
/// bitmap (three words in hexadecimal digits) when the request ends before its own.
const LONGER_BYTES_MAX: usize = 16 + 48;

const RESPONSE_CODE: u8 = 39;

/// Opens a frame, composes the answer to its message and writes every code into it. Whether it has
/// an answer.
///
/// # Panics
/// When a promise of [`Header`], [`compose`] or [`Slot::write`] is broken.
pub fn reply(data: &[u8]) -> bool {
    let Some((head, frame)) = data.split_first_chunk::<REPLY_HEAD_BYTES>() else { return false };
    let [choice, kind, echo @ ..] = *head;
    let (Some(dialect), Some(header)) = (dialect(choice), header(kind)) else { return false };
    let mut out = Vec::new();
    header.answer(frame, &mut out);
    let Ok(opened) = header.open(frame) else {
        assert!(out.is_empty(), "a header was made up");
        return false;
    };
    is_told_apart(&opened, frame, &out);
    let mut spans = Spans::default();
    let Ok(request) = View::parse(dialect, opened.body, &mut spans) else { return false };
    let echo = chosen(u64::from_be_bytes(echo));

    let slot = match compose(&request, &echo, &mut out) {
        Ok(slot) => slot,
        Err(refusal) => {
            assert!(out.len() == opened.header.len(), "a failure appends nothing");
            let no_type = request.mti().response().is_none();
            assert!(no_type == (refusal == NoReply::MessageType));
            return false;
        }
    };
    assert!(out.len() <= frame.len() + LONGER_BYTES_MAX);
    header.seal(&mut out);
    if opened.rejected.is_none() {
        leads_back(header, frame, &out);
    }
    let (_, answer) = out.split_at_mut(opened.header.len());
    says_nothing_else(&request, &echo, dialect, answer);
    says_what_it_is_told(&request, slot, dialect, opened.header.len(), &mut out);
    true
}

/// Header and message are the frame, and the header of an answer is as long as the request's.
fn is_told_apart(opened: &Opened<'_>, frame: &[u8], answer: &[u8]) {
    assert!([opened.header, opened.body].concat() == frame);
    assert!(opened.header.len() == answer.len());
    let (header, body) = (opened.header.len(), opened.body.len());
    assert!(
        format!("{opened:?}") == format!("Opened({header} + {body} bytes, {:?})", opened.rejected)
    );
}

/// An answer is a frame with such a header, and whoever answers it reaches who sent the request.
fn leads_back(header: Header, frame: &[u8], out: &[u8]) {
    let opened = header.open(out).ok();
    let header_bytes = header.open(frame).map_or(0, |opened| opened.header.len());
    let reopened = opened.map(|opened| (opened.header.len(), opened.rejected));
    assert!(reopened == Some((header_bytes, None)), "an answer's header is none");
    let mut there = Vec::new();
    header.answer(out, &mut there);
    if let (Header::Visa, Some([high, low])) = (header, out.get(3..5)) {
        assert!(usize::from(u16::from_be_bytes([*high, *low])) == out.len());
        // The length is each message's own.
        let lengths = there.iter_mut().zip(frame).skip(3).take(2);
        lengths.for_each(|(own, theirs)| *own = *theirs);
    }
    assert!(frame.starts_with(&there), "twice turned round it leads elsewhere");
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
fn says_what_it_is_told(
    request: &View<'_>,
    slot: Slot,
    dialect: &Dialect,
    header_bytes: usize,
    out: &mut [u8],
) {
    let version = request.mti().version();
    let unwritten = out.to_vec();
    let at = code_at(dialect, unwritten.get(header_bytes..).unwrap_or_default());
    let mut said = LocalCode::SystemMalfunction.in_version(version);
    let mut spans = Spans::default();
    for code in LocalCode::ALL {
        let before = out.to_vec();
        if slot.write(out, code) {
            said = code.in_version(version);
        } else {
            assert!(out == before, "a code that cannot be said changes nothing");
        }
        for (place, (now, then)) in out.iter().zip(&unwritten).enumerate() {
            assert!(now == then || at.contains(&(place - header_bytes)), "another field changes");
        }
        let answer = View::parse(dialect, out.get(header_bytes..).unwrap_or_default(), &mut spans);
        let text = answer.ok().and_then(|view| view.text::<9>(RESPONSE_CODE));
        let text = text.as_ref().map(|text| text.as_bytes());
        assert!(text.is_some() && text == said.map(str::as_bytes), "another code is read");
        assert!(!text.is_some_and(|text| approves(version, text)), "an answer approves");
    }
}

/// Where the data of Field 39 lie in an answer.
fn code_at(dialect: &Dialect, answer: &[u8]) -> std::ops::Range<usize> {
    let mut spans = Spans::default();
    let view = View::parse(dialect, answer, &mut spans);
    let code = view.ok().and_then(|view| view.raw(RESPONSE_CODE)).unwrap_or_default();
    let at = offset(answer, code);
    at..at + code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [u8; 8] = [0xff; 8];

    #[test]
    fn a_request_has_an_answer_and_what_is_none_or_has_no_header_has_not() {
        let reply = |header: u8, frame: &[u8]| reply(&[&[0, header], &ALL[..], frame].concat());
        assert!(reply(0, b"010060000000000000000412341234"));
        assert!(reply(1, b"\x60\x00\x01\x00\x020100400000000000000004123"));
        assert!(!reply(0, b"011060000000000000000412341234"));
        assert!(!reply(2, b"010060000000000000000412341234"));
        assert!(!reply(0, b""));
    }

    #[test]
    fn a_word_of_bits_chooses_fields_of_every_word() {
        let chosen = |bits| chosen(bits).iter().collect::<Vec<_>>();
        assert_eq!(chosen(1 << 63 | 1 << 62 | 1), [1, 2, 64, 65, 66, 128, 129, 130, 192]);
        assert_eq!(chosen(u64::MAX).len(), 192);
    }
}

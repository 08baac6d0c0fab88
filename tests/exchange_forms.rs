//! What a link's conversation makes of messages that are not as they should be, or not written in
//! ASCII: faults, rejects, message types that the standard does not give, padding.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

#[path = "support/conversation.rs"]
mod conversation;
#[path = "support/from_dialect.rs"]
mod message;

use conversation::{CONNECTION, FIRST, Link, SECOND};
use message::message;
use tollgate::exchange::{Flow, Outcome, Pass, Room, Side, Stray, Unread};
use tollgate::gate::Malformed;
use tollgate::iso8583::{FaultKind, MtiPart};
use tollgate::reason::Reason;
use tollgate::wire::{Header, RejectCode};

const FIELDS: [(u8, &str); 4] =
    [(2, "4111111111111111"), (11, "000007"), (41, "TERM0001"), (43, "A SHOP")];

fn link(malformed: Malformed) -> Link {
    Link::formed("iso87_ascii", Header::None, malformed)
}

impl Link {
    fn send(&mut self, frame: &[u8]) -> Flow {
        self.exchange.request(FIRST, frame, self.now, &mut self.port)
    }
}

/// A message of which the last field, 43, is a byte short.
fn short(mti: &str) -> Vec<u8> {
    let mut frame = message(mti, &FIELDS);
    frame.pop();
    frame
}

fn faults(link: &Link) -> Vec<(Side, u8, FaultKind)> {
    let fault = |said: &Outcome| match said {
        Outcome::Malformed(side, fault) => Some((*side, fault.field, fault.kind)),
        _ => None,
    };
    link.port.said.iter().filter_map(fault).collect()
}

const ADVICES_AND_THE_LIKE: [&str; 9] =
    ["0120", "0220", "0400", "0420", "0421", "0500", "0620", "0800", "0110"];

#[test]
fn by_default_a_malformed_request_is_forwarded_and_counted() {
    let mut link = link(Malformed::Forward);
    let frame = short("0100");
    assert_eq!(link.send(&frame), Flow::Taken);
    assert_eq!(link.port.forwarded, [frame]);
    assert_eq!(link.passes(), [Pass::Admitted]);
    assert_eq!(faults(&link), [(Side::Network, 43, FaultKind::Truncated)]);
}

#[test]
fn a_malformed_request_is_answered_where_the_link_answers_them() {
    let mut link = link(Malformed::Answer);
    assert_eq!(link.send(&short("0100")), Flow::Taken);
    assert!(link.port.forwarded.is_empty());
    assert_eq!(link.reasons(), [Reason::Format]);
    let expected = message("0110", &[FIELDS[0], FIELDS[1], FIELDS[2], (39, "30")]);
    assert_eq!(link.port.delivered, [(FIRST, expected)]);
    assert_eq!(link.send(&message("0100", &FIELDS)), Flow::Taken);
    assert_eq!(link.port.forwarded.len(), 1, "a sound one goes its way");
}

#[test]
fn without_a_host_a_malformed_request_is_still_answered_for_its_form() {
    let mut link = link(Malformed::Answer);
    link.port.room = Room::Down;
    assert_eq!(link.send(&short("0100")), Flow::Taken);
    assert_eq!(link.reasons(), [Reason::Format]);
}

#[test]
fn a_request_whose_stan_was_not_read_is_forwarded_even_where_malformed_ones_are_answered() {
    let mut link = link(Malformed::Answer);
    let mut frame = message("0100", &FIELDS);
    // The first digit of the card number's length.
    let length = frame.iter().rposition(|byte| *byte == b'6').unwrap();
    assert_eq!(frame[length - 1], b'1');
    frame[length - 1] = b'-';
    assert_eq!(link.send(&frame), Flow::Taken);
    assert_eq!(link.port.forwarded, [frame]);
    assert_eq!(faults(&link), [(Side::Network, 2, FaultKind::Length)]);
}

#[test]
fn a_malformed_request_closes_its_session_where_the_link_wants_it() {
    let mut link = link(Malformed::Close);
    assert_eq!(link.send(&message("0100", &FIELDS)), Flow::Taken);
    assert_eq!(link.send(&short("0100")), Flow::Close);
    assert_eq!(link.port.forwarded.len(), 1);
    assert!(link.port.delivered.is_empty());
    assert_eq!(faults(&link).len(), 1);
}

#[test]
fn what_may_not_be_answered_is_forwarded_whatever_becomes_of_malformed_requests() {
    for malformed in Malformed::ALL {
        for mti in ADVICES_AND_THE_LIKE {
            let mut link = link(malformed);
            let frame = short(mti);
            assert_eq!(link.send(&frame), Flow::Taken, "{mti}");
            assert_eq!(link.port.forwarded, [frame], "{mti}");
            assert!(link.port.delivered.is_empty(), "{mti}");
            assert_eq!(faults(&link), [(Side::Network, 43, FaultKind::Truncated)], "{mti}");
        }
        let mut link = link(malformed);
        assert_eq!(link.send(b"01x0"), Flow::Taken);
        assert_eq!(link.port.forwarded, [b"01x0"]);
        assert!(link.port.said.contains(&Outcome::Unreadable(Side::Network, Unread::Mti)));
    }
}

#[test]
fn with_no_room_a_malformed_advice_waits_and_leaves_no_trace() {
    let mut link = link(Malformed::Close);
    link.port.room = Room::Full;
    assert_eq!(link.send(&short("0420")), Flow::Wait);
    assert_eq!(link.send(b"01x0"), Flow::Wait);
    assert_eq!(link.send(&short("0110")), Flow::Wait);
    assert!(link.port.said.is_empty());
}

#[test]
fn a_hosts_answer_that_cannot_be_read_to_its_end_is_delivered_all_the_same() {
    for malformed in Malformed::ALL {
        let mut link = link(malformed);
        link.ask(FIRST, "0100", &FIELDS);
        let frame = short("0110");
        link.exchange.answer(CONNECTION, &frame, link.now, &mut link.port);
        assert_eq!(link.port.delivered, [(FIRST, frame)]);
        assert_eq!(faults(&link), [(Side::Host, 43, FaultKind::Truncated)]);
    }
}

#[test]
fn a_request_whose_answer_the_link_cannot_carry_is_not_refused() {
    let answer = message("0110", &[FIELDS[0], FIELDS[1], FIELDS[2], (39, "91")]);
    for (less, refused) in [(0, 3), (1, 0)] {
        let mut link = Link::of_header_with_few_tokens(Header::None);
        link.port.carries_max = answer.len() - less;
        for _ in 0..4 {
            assert_eq!(link.send(&message("0100", &FIELDS)), Flow::Taken);
        }
        assert_eq!(link.reasons(), [Reason::Limit; 3][..refused]);
        assert_eq!(link.port.forwarded.len(), 4 - refused);
        let unheard = |said: &&Outcome| matches!(said, Outcome::Unheard { .. });
        assert_eq!(link.port.said.iter().filter(unheard).count(), 0);
    }
}

#[test]
fn an_answer_of_the_hosts_that_the_link_cannot_carry_leaves_its_request_waiting() {
    let mut link = link(Malformed::Forward);
    link.ask(FIRST, "0100", &FIELDS);
    link.port.carries_max = 20;
    link.exchange.answer(CONNECTION, &message("0110", &FIELDS), link.now, &mut link.port);
    assert_eq!(link.last_stray().map(|(stray, _)| stray), Some(Stray::Undeliverable));
    assert_eq!(link.exchange.in_flight(), (1, 0));
}

/// An answer of which nothing but the card number can be read, and that only if it is `whole`.
fn illegible(mti: &str, whole: bool) -> Vec<u8> {
    let mut frame = message(mti, &[FIELDS[0], (4, "000000000100"), FIELDS[1], (39, "00")]);
    frame.truncate(4 + 16 + if whole { 2 + 16 + 4 } else { 2 + 10 });
    frame
}

#[test]
fn an_answer_of_which_little_can_be_read_goes_to_the_only_request_that_waits_for_its_kind() {
    let mut link = link(Malformed::Forward);
    link.ask(FIRST, "0100", &FIELDS);
    link.ask(SECOND, "0420", &[(11, "000008")]);
    for nothing in [&b"0110 and no bitmap"[..], &illegible("0110", false)] {
        link.exchange.answer(CONNECTION, nothing, link.now, &mut link.port);
        assert!(link.port.delivered.is_empty());
    }
    let frame = illegible("0110", true);
    link.exchange.answer(CONNECTION, &frame, link.now, &mut link.port);
    assert_eq!(link.port.delivered, [(FIRST, frame)]);
    assert_eq!(link.exchange.in_flight(), (0, 1));
}

#[test]
fn an_answer_of_which_little_can_be_read_goes_to_nobody_where_two_wait_and_may_be_an_approval() {
    let mut link = link(Malformed::Forward);
    link.ask(FIRST, "0100", &FIELDS);
    link.ask(SECOND, "0100", &[(11, "000008")]);
    link.exchange.answer(CONNECTION, &illegible("0110", true), link.now, &mut link.port);
    assert!(link.port.delivered.is_empty());
    assert_eq!(link.last_stray(), Some((Stray::Unmatched, true)));
    link.exchange.answer(CONNECTION, &illegible("0430", true), link.now, &mut link.port);
    assert_eq!(link.last_stray(), Some((Stray::Unmatched, false)));
}

#[test]
fn a_message_type_that_the_standard_does_not_give_is_forwarded_and_counted() {
    for (mti, part) in [
        ("3100", MtiPart::Version),
        ("8800", MtiPart::Version),
        ("0000", MtiPart::Class),
        ("0900", MtiPart::Class),
        ("0180", MtiPart::Function),
        ("0290", MtiPart::Function),
        ("0107", MtiPart::Origin),
    ] {
        let mut link = link(Malformed::default());
        assert_eq!(link.send(&message(mti, &FIELDS)), Flow::Taken);
        assert_eq!(link.passes(), [Pass::Protected], "{mti}");
        let unknown = Outcome::UnknownType(Side::Network, part);
        assert_eq!(link.port.said.iter().filter(|said| **said == unknown).count(), 1, "{mti}");
    }
}

/// A message in BCD: STAN, and terminal in characters, at the end of what is given.
fn bcd(mti: [u8; 2], bitmap: u64, data: &[&[u8]]) -> Vec<u8> {
    [&mti[..], &bitmap.to_be_bytes(), &data.concat()].concat()
}

const fn bit(field: u32) -> u64 {
    1 << (64 - field)
}

#[test]
fn stans_that_end_in_bytes_of_blanks_are_told_apart() {
    let stans = [[0x00, 0x00, 0x20], [0x00, 0x00, 0x09], [0x00, 0x20, 0x20], [0x00, 0x00, 0x00]];
    let mut link = Link::formed("iso87_bcd", Header::None, Malformed::default());
    for stan in &stans {
        assert_eq!(link.send(&bcd([0x01, 0x00], bit(11), &[stan])), Flow::Taken);
    }
    for stan in stans.iter().rev() {
        let answer = bcd([0x01, 0x10], bit(11) | bit(39), &[stan, b"00"]);
        link.exchange.answer(CONNECTION, &answer, link.now, &mut link.port);
    }
    assert_eq!(link.port.delivered.len(), stans.len());
    assert_eq!(link.last_stray(), None);
}

#[test]
fn an_answer_that_fills_odd_digits_otherwise_is_its_requests() {
    let mut link = Link::formed("iso87_bcd", Header::None, Malformed::default());
    let stan = &[0x00, 0x00, 0x42][..];
    // Eleven and five digits of an acquirer, their last half byte filled with 0, and with F.
    let request = bcd([0x01, 0x00], bit(11) | bit(32), &[stan, &[0x05, 0x12, 0x34, 0x50]]);
    assert_eq!(link.send(&request), Flow::Taken);
    let fields = bit(11) | bit(32) | bit(39);
    let answer = bcd([0x01, 0x10], fields, &[stan, &[0x05, 0x12, 0x34, 0x5f], b"00"]);
    link.exchange.answer(CONNECTION, &answer, link.now, &mut link.port);
    assert_eq!(link.port.delivered.len(), 1);
}

const VISA: [u8; 22] =
    [22, 1, 2, 0, 0, 0x65, 0x43, 0x21, 0x12, 0x34, 0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const REJECT: [u8; 26] =
    [26, 0x81, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0x00, 0x14];
const CODE: RejectCode = RejectCode(Some(14));

fn was_rejected(link: &Link, by: Side) -> bool {
    let by_side = |said: &&Outcome| matches!(said, Outcome::Rejected(side, CODE, _) if *side == by);
    link.port.said.iter().any(|said| by_side(&said))
}

fn visa_link() -> Link {
    Link::formed("iso87_ascii", Header::Visa, Malformed::default())
}

fn visa(mti: &str, fields: &[(u8, &str)]) -> Vec<u8> {
    [&VISA[..], &message(mti, fields)].concat()
}

fn rejected(frame: &[u8]) -> Vec<u8> {
    [&REJECT[..], frame].concat()
}

#[test]
fn a_request_that_the_host_rejects_is_answered_at_once_and_only_once() {
    let mut link = visa_link();
    let request = visa("0100", &FIELDS);
    assert_eq!(link.send(&request), Flow::Taken);
    link.exchange.answer(CONNECTION, &rejected(&request), link.now, &mut link.port);
    assert_eq!(link.reasons(), [Reason::Format]);
    assert!(was_rejected(&link, Side::Host));
    assert_eq!(link.exchange.in_flight(), (0, 0));
    assert_eq!(link.exchange.owed(FIRST), 0);
    let (to, answer) = &link.port.delivered[0];
    let body = message("0110", &[FIELDS[0], FIELDS[1], FIELDS[2], (39, "30")]);
    assert_eq!((*to, &answer[22..]), (FIRST, &body[..]));
    assert_eq!(answer[5..11], [0x12, 0x34, 0x56, 0x65, 0x43, 0x21]);
    assert_eq!(usize::from(u16::from_be_bytes([answer[3], answer[4]])), answer.len());
    link.exchange.answer(CONNECTION, &rejected(&request), link.now, &mut link.port);
    assert_eq!(link.port.delivered.len(), 1);
    assert_eq!(link.last_stray(), None, "the request is known as late");
    link.exchange.answer(CONNECTION, &rejected(&request), link.now, &mut link.port);
    assert_eq!(link.port.delivered.len(), 1);
    assert_eq!(link.last_stray(), Some((Stray::Unmatched, false)));
}

#[test]
fn an_answer_after_the_reject_is_late() {
    let mut link = visa_link();
    let request = visa("0100", &FIELDS);
    assert_eq!(link.send(&request), Flow::Taken);
    link.exchange.answer(CONNECTION, &rejected(&request), link.now, &mut link.port);
    let answer = visa("0110", &[FIELDS[1], FIELDS[2], (39, "00")]);
    link.exchange.answer(CONNECTION, &answer, link.now, &mut link.port);
    assert_eq!(link.port.delivered.len(), 1);
    assert_eq!(link.last_stray(), Some((Stray::Late, true)));
}

#[test]
fn an_advice_that_the_host_rejects_has_the_reject_for_its_answer() {
    let mut link = visa_link();
    let advice = visa("0420", &FIELDS);
    assert_eq!(link.exchange.request(SECOND, &advice, link.now, &mut link.port), Flow::Taken);
    let reject = rejected(&advice);
    link.exchange.answer(CONNECTION, &reject, link.now, &mut link.port);
    assert_eq!(link.port.delivered, [(SECOND, reject)]);
    assert_eq!(link.exchange.in_flight(), (0, 0));
    assert_eq!(link.exchange.owed(SECOND), 0);
}

#[test]
fn a_reject_from_the_network_goes_to_the_host_and_is_never_limited_or_answered() {
    let mut link = Link::of_header_with_few_tokens(Header::Visa);
    let answer = rejected(&visa("0110", &FIELDS));
    let request = rejected(&visa("0100", &FIELDS));
    for _ in 0..10 {
        assert_eq!(link.send(&answer), Flow::Taken);
        assert_eq!(link.send(&request), Flow::Taken);
    }
    assert_eq!(link.port.forwarded.len(), 20);
    assert!(link.port.delivered.is_empty());
    assert_eq!(link.passes(), [Pass::Protected; 20]);
    assert_eq!(link.exchange.in_flight(), (0, 0));
}

#[test]
fn a_message_of_the_hosts_own_that_the_network_rejects_returns_to_its_connection() {
    let mut link = visa_link();
    let own = visa("0800", &FIELDS);
    link.exchange.answer(CONNECTION, &own, link.now, &mut link.port);
    assert_eq!(link.send(&rejected(&own)), Flow::Taken);
    assert_eq!(link.port.given_back, [CONNECTION]);
    assert!(was_rejected(&link, Side::Network));
    assert_eq!(link.send(&rejected(&own)), Flow::Taken);
    assert_eq!(link.port.forwarded.len(), 1, "nobody waits for it any more");
}

#[test]
fn a_frame_without_its_links_header_is_forwarded_and_counted() {
    let mut link = visa_link();
    let bare = message("0100", &FIELDS);
    assert_eq!(link.send(&bare), Flow::Taken);
    assert_eq!(link.port.forwarded, std::slice::from_ref(&bare));
    assert!(link.port.said.contains(&Outcome::Unreadable(Side::Network, Unread::Header)));
    link.exchange.answer(CONNECTION, &bare, link.now, &mut link.port);
    assert!(link.port.said.contains(&Outcome::Unreadable(Side::Host, Unread::Header)));
}

//! The rules of one link's conversation, one by one: whose answer is whose, who is answered by
//! tollgate and why, and what is kept in mind for how long.
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

use std::time::Duration;

use conversation::{ANSWER_TIMEOUT, CONNECTION, DEADLINE, FIRST, Link, SECOND, STANDBY};
use message::message;
use tollgate::exchange::{Flow, Outcome, Pass, Room, Sequence, SessionId, Stray};
use tollgate::reason::Reason;
use tollgate::traffic::Class;

const STAN: (u8, &str) = (11, "000007");
const CARD: (u8, &str) = (2, "4111111111111111");
const OTHER_CARD: (u8, &str) = (2, "4222222222222222");
const APPROVED: (u8, &str) = (39, "00");
const DECLINED: (u8, &str) = (39, "05");

// Whose answer is whose.

#[test]
fn an_answer_needs_the_first_three_digits_of_its_requests_type() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN]);
    assert_eq!(link.host("0210", &[STAN, APPROVED]), []);
    assert_eq!(link.host("0120", &[STAN, APPROVED]), [FIRST], "a message of the host's own");
    assert_eq!(link.host("0111", &[STAN, APPROVED]), [FIRST]);
}

#[test]
fn an_answer_with_another_stan_is_unmatched() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN]);
    assert_eq!(link.host("0110", &[(11, "000008"), APPROVED]), []);
    assert_eq!(link.last_stray(), Some((Stray::Unmatched, true)));
    assert_eq!(link.host("0110", &[STAN, DECLINED]), [FIRST]);
}

#[test]
fn a_match_field_contradicts_only_when_both_carry_it() {
    for field in [(7, "1201120000"), (32, "123456"), (41, "TERM0001"), (42, "SHOP0001")] {
        let other = (field.0, "0909090909".get(..field.1.len()).unwrap());
        let mut link = Link::new();
        link.ask(FIRST, "0100", &[STAN, field]);
        assert_eq!(link.host("0110", &[STAN, other, APPROVED]), [], "{field:?}");
        assert_eq!(link.host("0110", &[STAN, APPROVED]), [FIRST], "{field:?}");
        link.ask(FIRST, "0100", &[STAN]);
        assert_eq!(link.host("0110", &[STAN, other, APPROVED]), [FIRST], "{field:?}");
    }
}

#[test]
fn equal_stans_of_two_terminals_are_told_apart() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN, (41, "TERM0001")]);
    link.ask(SECOND, "0100", &[STAN, (41, "TERM0002")]);
    assert_eq!(link.host("0110", &[STAN, (41, "TERM0002"), APPROVED]), [SECOND]);
    assert_eq!(link.host("0110", &[STAN, (41, "TERM0001"), APPROVED]), [FIRST]);
}

#[test]
fn among_several_the_card_outweighs_the_reference_the_amount_and_the_time() {
    let ties = [CARD, (37, "000000000001"), (4, "000000000100"), (12, "120000")];
    let others = [OTHER_CARD, (37, "000000000002"), (4, "000000000200"), (12, "130000")];
    for strongest in 0..ties.len() {
        // The first request agrees in one field, the second in all the weaker ones.
        let pick = |from: usize, ours: &[(u8, &'static str)], theirs: &[(u8, &'static str)]| {
            let mut fields = vec![STAN];
            fields.extend_from_slice(&ours[..from]);
            fields.extend_from_slice(&theirs[from..]);
            fields
        };
        let mut one = pick(strongest, &others, &others);
        one[strongest + 1] = ties[strongest];
        let other = pick(strongest + 1, &others, &ties);
        let mut link = Link::new();
        link.ask(FIRST, "0100", &one);
        link.ask(SECOND, "0100", &other);
        let mut answer = pick(0, &[], &ties);
        answer.push(APPROVED);
        assert_eq!(link.host("0110", &answer), [FIRST], "{:?}", ties[strongest]);
    }
}

#[test]
fn an_answer_to_one_of_two_copies_goes_to_the_older_and_the_next_to_the_other() {
    let mut link = Link::new();
    let fields = [STAN, CARD, (3, "000000"), (4, "000000000100"), (41, "TERM0001")];
    link.ask(FIRST, "0100", &fields);
    link.ask(SECOND, "0101", &fields);
    assert_eq!(link.host("0110", &[STAN, APPROVED]), [FIRST]);
    assert_eq!(link.host("0110", &[STAN, APPROVED]), [SECOND]);
    assert_eq!(link.host("0110", &[STAN, APPROVED]), []);
}

#[test]
fn an_answer_that_fits_two_requests_equally_is_given_to_neither() {
    for (one, other) in [
        ((3, "000000"), (3, "200000")),
        ((49, "978"), (49, "840")),
        (CARD, OTHER_CARD),
        // The same card and amount at two terminals are two transactions.
        ((41, "TERM0001"), (41, "TERM0002")),
    ] {
        let mut link = Link::new();
        link.ask(FIRST, "0100", &[STAN, one]);
        link.ask(SECOND, "0100", &[STAN, other]);
        assert_eq!(link.host("0110", &[STAN, APPROVED]), [], "{one:?}");
        assert_eq!(link.last_stray(), Some((Stray::Ambiguous, true)));
        link.wait(DEADLINE);
        assert_eq!(link.reasons(), [Reason::Deadline; 2]);
    }
}

#[test]
fn a_repeat_that_was_stamped_anew_is_a_copy_all_the_same() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN, CARD, (7, "1201120000")]);
    link.ask(FIRST, "0101", &[STAN, CARD, (7, "1201120003")]);
    assert_eq!(link.host("0110", &[STAN, APPROVED]), [FIRST]);
    assert_eq!(link.exchange.in_flight(), (1, 0));
}

#[test]
fn an_answer_without_stan_goes_by_the_fields_it_shares() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN, (41, "TERM0001")]);
    link.ask(SECOND, "0100", &[(11, "000008"), (41, "TERM0002")]);
    assert_eq!(link.host("0110", &[APPROVED]), [], "it shares nothing with anybody");
    assert_eq!(link.host("0110", &[(41, "TERM0002"), APPROVED]), [SECOND]);
    assert_eq!(link.host("0110", &[(41, "TERM0002"), APPROVED]), []);
    assert_eq!(link.host("0110", &[(41, "TERM0001"), APPROVED]), [FIRST]);
}

#[test]
fn a_request_without_stan_has_no_first_claim_on_an_answer_without_one() {
    let mut link = Link::new();
    let place = (41, "TERM0001");
    link.ask(FIRST, "0100", &[place, CARD]);
    link.ask(FIRST, "0100", &[]);
    link.ask(SECOND, "0100", &[STAN, place, OTHER_CARD]);
    assert_eq!(link.host("0110", &[place, OTHER_CARD, APPROVED]), [SECOND]);
    assert_eq!(link.host("0110", &[place, CARD, APPROVED]), [FIRST]);
    assert_eq!(link.host("0110", &[place, APPROVED]), []);
}

#[test]
fn an_answer_that_carries_nothing_goes_to_the_request_that_carries_nothing() {
    let mut link = Link::new();
    link.ask(FIRST, "0200", &[STAN, (41, "TERM0001")]);
    link.ask(SECOND, "0200", &[]);
    assert_eq!(link.host("0210", &[(41, "TERM0002"), APPROVED]), [], "it is somebody's");
    assert_eq!(link.host("0210", &[APPROVED]), [SECOND]);
    assert_eq!(link.host("0210", &[APPROVED]), []);
}

#[test]
fn an_answer_without_stan_does_not_go_to_another_card() {
    let mut link = Link::new();
    let place = (41, "TERM0001");
    link.ask(FIRST, "0100", &[STAN, place, CARD]);
    assert_eq!(link.host("0110", &[place, OTHER_CARD, APPROVED]), []);
    assert_eq!(link.host("0110", &[place, CARD, APPROVED]), [FIRST]);
}

#[test]
fn a_late_answer_does_not_go_to_a_request_that_looks_like_its_own() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN, CARD, (41, "TERM0001")]);
    link.wait(DEADLINE);
    link.ask(SECOND, "0100", &[STAN, OTHER_CARD, (41, "TERM0002")]);
    assert_eq!(link.host("0110", &[STAN, CARD, APPROVED]), []);
    assert_eq!(link.last_stray(), Some((Stray::Late, true)));
    assert_eq!(link.host("0110", &[STAN, OTHER_CARD, APPROVED]), [SECOND]);
}

// Deadlines and what comes after them.

#[test]
fn a_request_is_answered_at_its_deadline_and_its_answer_is_then_late_once() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN, CARD]);
    link.wait(DEADLINE - Duration::from_nanos(1));
    assert_eq!(link.reasons(), []);
    link.wait(Duration::from_nanos(1));
    assert_eq!(link.reasons(), [Reason::Deadline]);
    let answer = message("0110", &[STAN, CARD, (39, "91")]);
    assert_eq!(link.port.delivered, [(FIRST, answer)]);
    assert_eq!(link.host("0110", &[STAN, DECLINED]), []);
    assert_eq!(link.last_stray(), Some((Stray::Late, false)));
    assert_eq!(link.host("0110", &[STAN, APPROVED]), []);
    assert_eq!(link.last_stray(), Some((Stray::Unmatched, true)));
}

#[test]
fn only_the_answer_to_a_request_puts_money_on_hold() {
    let mut link = Link::new();
    for (mti, approves) in [
        ("0110", true),
        ("0210", true),
        ("0130", false),
        ("0230", false),
        ("0430", false),
        ("0410", false),
        ("0810", false),
    ] {
        link.host(mti, &[STAN, APPROVED]);
        assert_eq!(link.last_stray(), Some((Stray::Unmatched, approves)), "{mti}");
    }
}

#[test]
fn a_late_answer_is_known_as_late_for_the_answer_timeout() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN]);
    link.wait(DEADLINE);
    link.wait(ANSWER_TIMEOUT);
    assert_eq!(link.host("0110", &[STAN, APPROVED]), []);
    assert_eq!(link.last_stray(), Some((Stray::Unmatched, true)));
}

#[test]
fn the_reason_at_the_deadline_is_lost_when_the_connection_was() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN]);
    link.ask(FIRST, "0100", &[(11, "000008")]);
    link.exchange.lost(Sequence(1)..=Sequence(1));
    link.wait(DEADLINE);
    assert_eq!(link.reasons(), [Reason::Lost, Reason::Deadline]);
}

#[test]
fn a_request_on_a_lost_connection_may_still_be_answered_on_another() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN]);
    link.exchange.lost(Sequence(1)..=Sequence(1));
    assert_eq!(link.host("0110", &[STAN, APPROVED]), [FIRST]);
    link.wait(DEADLINE);
    assert_eq!(link.reasons(), []);
}

#[test]
fn a_request_that_was_still_queued_at_its_deadline_was_an_overload() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN]);
    link.port.begun = 0;
    link.wait(DEADLINE);
    assert_eq!(link.reasons(), [Reason::Overload]);
    assert_eq!(link.host("0110", &[STAN, APPROVED]), []);
    assert_eq!(link.last_stray(), Some((Stray::Unmatched, true)));
}

#[test]
fn with_no_connection_left_what_was_not_begun_is_answered_at_once() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN]);
    link.ask(SECOND, "0100", &[(11, "000008")]);
    link.ask(SECOND, "0420", &[(11, "000009")]);
    link.port.begun = 1;
    link.exchange.stranded(link.now, &mut link.port);
    assert_eq!(link.reasons(), [Reason::Unavailable]);
    assert_eq!(link.port.delivered[0].0, SECOND);
    assert_eq!(link.exchange.in_flight(), (1, 1));
}

#[test]
fn with_no_connection_left_a_request_that_may_not_be_answered_is_taken_back_in_silence() {
    let mut link = Link::new();
    for stan in ["000007", "000008"] {
        link.ask(FIRST, "0100", &[(11, stan), (64, "0123456789ABCDEF")]);
    }
    link.ask(FIRST, "0420", &[(11, "000009"), (64, "0123456789ABCDEF")]);
    link.port.begun = 1;
    link.exchange.stranded(link.now, &mut link.port);
    // What was begun may be with the host, and a reversal waits for the next connection.
    assert_eq!(link.exchange.in_flight(), (0, 2));
    assert_eq!(link.exchange.owed(FIRST), 2);
    let last = link.port.said.last();
    assert!(matches!(last, Some(Outcome::Unsent { class: Class::Standard })), "{last:?}");
    assert_eq!(link.port.delivered, []);
}

// Who is refused, and who never is.

#[test]
fn beyond_inflight_max_requests_are_answered_and_advices_go_on() {
    let mut link = Link::with(1, 1e6);
    link.ask(FIRST, "0100", &[STAN]);
    link.ask(FIRST, "0100", &[(11, "000008")]);
    link.ask(FIRST, "0420", &[(11, "000009")]);
    assert_eq!(link.reasons(), [Reason::Overload]);
    assert_eq!(link.passes(), [Pass::Admitted, Pass::Protected]);
}

#[test]
fn beyond_its_bound_the_oldest_protected_message_is_forgotten_and_the_new_one_goes() {
    let mut link = Link::with(1, 1e6);
    link.ask(FIRST, "0420", &[STAN]);
    link.ask(SECOND, "0420", &[(11, "000008")]);
    assert!(link.port.said.contains(&Outcome::Forgotten));
    assert_eq!(link.port.forwarded.len(), 2);
    assert_eq!(link.exchange.owed(FIRST), 0);
    assert_eq!(link.host("0430", &[STAN, APPROVED]), []);
    assert_eq!(link.host("0430", &[(11, "000008"), APPROVED]), [SECOND]);
}

#[test]
fn nothing_but_a_request_is_ever_refused_or_answered_here() {
    let mut link = Link::with(1_000, 1.0);
    link.ask(FIRST, "0100", &[STAN]);
    let protected =
        ["0120", "0121", "0220", "0400", "0420", "0421", "0140", "0500", "0800", "0302", "0110"];
    for mti in protected {
        link.ask(FIRST, mti, &[STAN]);
    }
    assert_eq!(link.port.forwarded.len(), 1 + protected.len());
    link.port.room = Room::Down;
    for mti in protected {
        link.ask(FIRST, mti, &[STAN]);
    }
    let silence = Outcome::Unsent { class: Class::Protected };
    let met_silence = link.port.said.iter().filter(|said| **said == silence).count();
    assert_eq!(met_silence, protected.len());
    link.host("0110", &[STAN, APPROVED]);
    link.wait(ANSWER_TIMEOUT);
    assert_eq!(link.reasons(), []);
}

#[test]
fn a_request_with_a_mac_is_charged_and_let_through_where_another_is_refused() {
    for mac in [64, 128] {
        let mut link = Link::with(1_000, 1.0);
        link.ask(FIRST, "0100", &[STAN]);
        link.ask(FIRST, "0100", &[(11, "000008")]);
        link.ask(FIRST, "0100", &[(11, "000009"), (mac, "0123456789ABCDEF")]);
        assert_eq!(link.reasons(), [Reason::Limit]);
        assert_eq!(link.passes(), [Pass::Admitted, Pass::Unenforceable]);
        link.port.room = Room::Tight;
        link.ask(FIRST, "0100", &[(11, "000010"), (mac, "0123456789ABCDEF")]);
        assert_eq!(link.passes().last(), Some(&Pass::Unenforceable));
        link.port.room = Room::Down;
        link.ask(FIRST, "0100", &[(11, "000011"), (mac, "0123456789ABCDEF")]);
        assert_eq!(link.reasons(), [Reason::Limit]);
    }
}

#[test]
fn with_the_way_nearly_full_requests_are_answered_and_advices_go_on() {
    let mut link = Link::new();
    link.port.room = Room::Tight;
    link.ask(FIRST, "0100", &[STAN]);
    link.ask(FIRST, "0420", &[STAN]);
    assert_eq!((link.reasons(), link.passes()), (vec![Reason::Overload], vec![Pass::Protected]));
}

#[test]
fn with_the_way_full_an_advice_waits_and_leaves_no_trace() {
    let mut link = Link::new();
    link.port.room = Room::Full;
    for mti in ["0420", "0810"] {
        let frame = message(mti, &[STAN]);
        let flow = link.exchange.request(FIRST, &frame, link.now, &mut link.port);
        assert_eq!(flow, Flow::Wait);
    }
    assert!(link.port.said.is_empty() && link.port.forwarded.is_empty());
    assert_eq!(link.exchange.in_flight(), (0, 0));
    link.ask(FIRST, "0100", &[STAN]);
    assert_eq!(link.reasons(), [Reason::Overload]);
}

#[test]
fn a_refused_request_takes_no_token() {
    let mut link = Link::with(1_000, 1.0);
    link.port.room = Room::Down;
    for _ in 0..5 {
        link.ask(FIRST, "0100", &[STAN]);
    }
    assert_eq!(link.reasons(), [Reason::Unavailable; 5]);
    link.port.room = Room::Open;
    link.ask(FIRST, "0100", &[STAN]);
    assert_eq!(link.passes(), [Pass::Admitted]);
}

// Sessions.

#[test]
fn a_session_is_owed_what_it_asked_until_it_is_answered_or_forgotten() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN]);
    link.ask(FIRST, "0420", &[(11, "000008")]);
    link.ask(FIRST, "0420", &[(11, "000009")]);
    link.exchange.half_closed(FIRST);
    assert_eq!(link.exchange.owed(FIRST), 3);
    assert_eq!(link.host("0430", &[(11, "000008"), APPROVED]), [FIRST]);
    assert_eq!(link.exchange.owed(FIRST), 2);
    link.wait(DEADLINE);
    assert_eq!(link.exchange.owed(FIRST), 1);
    link.wait(ANSWER_TIMEOUT);
    assert_eq!((link.exchange.owed(FIRST), link.exchange.in_flight()), (0, (0, 0)));
    assert!(link.port.said.contains(&Outcome::Unanswered { class: Class::Protected }));
}

#[test]
fn what_a_closed_session_asked_is_owed_to_nobody_who_takes_its_place() {
    let mut link = Link::new();
    link.ask(FIRST, "0100", &[STAN]);
    link.exchange.closed(FIRST);
    let successor = SessionId { generation: 2, ..FIRST };
    link.exchange.opened(successor);
    assert_eq!((link.exchange.owed(successor), link.exchange.in_flight()), (0, (1, 0)));
    link.ask(successor, "0100", &[(11, "000008")]);
    assert_eq!(link.host("0110", &[STAN, APPROVED]), [FIRST], "the port knows that it is gone");
    assert_eq!(link.exchange.owed(successor), 1);
}

// The host's own messages.

#[test]
fn the_hosts_own_message_goes_to_the_session_that_spoke_last_and_still_listens() {
    let mut link = Link::new();
    assert_eq!(link.host("0800", &[STAN]), [SECOND], "the youngest, when none has spoken");
    link.ask(FIRST, "0800", &[STAN]);
    assert_eq!(link.host("0800", &[STAN]), [FIRST]);
    link.exchange.half_closed(FIRST);
    assert_eq!(link.host("0620", &[STAN]), [SECOND]);
    link.exchange.closed(SECOND);
    assert_eq!(link.host("0302", &[STAN]), []);
    assert_eq!(link.last_stray(), Some((Stray::NoSession, false)));
}

#[test]
fn an_answer_to_the_host_returns_to_the_connection_that_asked() {
    let mut link = Link::new();
    link.host("0800", &[STAN]);
    link.ask(FIRST, "0810", &[STAN, APPROVED]);
    assert_eq!(link.port.given_back, [CONNECTION]);
    assert!(link.port.said.contains(&Outcome::Returned) && link.port.forwarded.is_empty());
    // Once more: nobody asked, so it goes the way of everything.
    link.ask(FIRST, "0810", &[STAN, APPROVED]);
    assert_eq!((link.port.given_back.len(), link.port.forwarded.len()), (1, 1));
}

#[test]
fn an_answer_to_a_connection_that_is_gone_goes_to_the_one_that_is_up() {
    let mut link = Link::new();
    link.exchange.answer(STANDBY, &message("0800", &[STAN]), link.now, &mut link.port);
    link.ask(FIRST, "0810", &[STAN, APPROVED]);
    assert_eq!(link.port.given_back, [STANDBY]);
    assert_eq!(link.passes(), [Pass::Protected]);
}

#[test]
fn both_sides_may_use_one_stan_at_once() {
    let mut link = Link::new();
    link.ask(FIRST, "0800", &[STAN]);
    assert_eq!(link.host("0800", &[STAN]), [FIRST]);
    link.ask(FIRST, "0810", &[STAN, APPROVED]);
    assert_eq!(link.port.given_back, [CONNECTION]);
    assert_eq!(link.host("0810", &[STAN, APPROVED]), [FIRST]);
    assert_eq!(link.exchange.in_flight(), (0, 0));
}

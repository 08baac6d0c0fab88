//! Reports about frames that one side can write and the other cannot.

use crate::support::house::Plan;
use crate::support::message::Message;
use crate::support::peer::{Framing, Peer};

const CARD: &str = "4111111111111111";

#[track_caller]
fn is_served(terminal: &mut Peer, at_host: &mut Peer, stan: u32) {
    let sale = Message::sale(CARD, stan);
    terminal.send(&sale.encode());
    assert_eq!(at_host.receive_message(), sale);
    at_host.send(&sale.answer("00").encode());
    assert_eq!(terminal.receive_message(), sale.answer("00"));
}

/// An answer to this sale that is so many bytes long.
fn answer_of(sale: &Message, bytes: usize) -> Vec<u8> {
    let mut answer = sale.answer("00").encode();
    answer.resize(bytes, b'0');
    answer
}

#[track_caller]
fn is_answered_91(terminal: &mut Peer, stan: u32) {
    let answer = terminal.receive_message();
    let sale = Message::sale(CARD, stan);
    assert_eq!((answer.get(0), answer.get(11)), (Some("0110"), sale.get(11)));
    assert_eq!(answer.get(39), Some("91"));
}

/// A length of 65,536 is 0 in two bytes. The host's is of four, and says it.
#[test]
fn an_answer_that_is_longer_than_any_length_of_the_link_is_not_cut() {
    let plan = Plan {
        host_framing: Framing::Be32,
        deadline: "700ms",
        link: "frame_bytes_max = 65535".to_owned(),
        ..Plan::default()
    };
    let mut house = plan.start();
    let mut terminal = house.terminal();
    for (round, bytes) in (1..).zip([65_536, 70_000, 65_535 + 65_537]) {
        let sale = Message::sale(CARD, round);
        terminal.send(&sale.encode());
        assert_eq!(house.at_host.receive_message(), sale);
        house.at_host.send(&answer_of(&sale, bytes));
        is_answered_91(&mut terminal, round);
        // Where the host's next message begins is known to nobody who did not read all of this one.
        house.proxy.wait_for_log(&format!("a frame of {bytes} bytes was announced"));
        house.at_host = house.host.accept();
        is_served(&mut terminal, &mut house.at_host, 100 + round);
    }
    let overdue = house.proxy.metric_sum("tollgate_deadline_answers_total", &["link=\"visa\""]);
    assert_eq!(overdue, 3.0);
}

/// Where an end mark ends a frame, none can hold one.
#[test]
fn an_answer_that_the_link_cannot_carry_is_as_good_as_none() {
    let plan = Plan { link_framing: Framing::Etx, deadline: "200ms", ..Plan::default() };
    let mut house = plan.start();
    let mut terminal = house.terminal();
    let sale = Message::sale(CARD, 1);
    terminal.send(&sale.encode());
    assert_eq!(house.at_host.receive_message(), sale);
    house.at_host.send(&sale.answer("00").with(48, "end\u{3}mark").encode());
    is_answered_91(&mut terminal, 1);
    // The host may have put money on hold.
    house.proxy.wait_for_log("approval reached nobody");
    let undeliverable = ["kind=\"undeliverable\"", "approves=\"true\""];
    assert_eq!(house.proxy.metric_sum("tollgate_stray_messages_total", &undeliverable), 1.0);
    is_served(&mut terminal, &mut house.at_host, 2);
}

#[test]
fn a_request_that_the_host_cannot_be_sent_is_answered_at_once() {
    let plan = Plan { host_framing: Framing::Etx, ..Plan::default() };
    let mut house = plan.start();
    let mut terminal = house.terminal();
    let sale = Message::sale(CARD, 1);
    terminal.send(&sale.clone().with(48, "end\u{3}mark").encode());
    assert_eq!(terminal.receive_message().get(39), Some("96"));
    is_served(&mut terminal, &mut house.at_host, 2);
}

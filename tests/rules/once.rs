//! R3: each request gets exactly one final response.

use std::collections::BTreeMap;
use std::io::Write;

use crate::CARD;
use crate::support::house::{Plan, limit};
use crate::support::message::Message;
use crate::support::peer::Framing;

const STRAYS: &str = "tollgate_stray_messages_total";
const LATE: &str = "tollgate_late_responses_total";

#[test]
fn r03_a_second_answer_of_the_host_reaches_nobody() {
    let mut house = Plan::default().start();
    let mut terminal = house.terminal();
    let (first, second) = (Message::sale(CARD, 1), Message::sale(CARD, 2));
    terminal.send(&first.encode());
    terminal.send(&second.encode());
    house.at_host.receive();
    house.at_host.receive();
    for code in ["00", "00", "05"] {
        house.at_host.send(&first.answer(code).encode());
    }
    house.at_host.send(&second.answer("00").encode());
    assert_eq!(terminal.receive(), first.answer("00").encode());
    assert_eq!(terminal.receive(), second.answer("00").encode());
    assert_eq!(house.proxy.metric_sum(STRAYS, &["kind=\"unmatched\""]), 2.0);
}

#[test]
fn r03_the_hosts_answer_to_a_refused_request_reaches_nobody() {
    let mut house = Plan::limits(&[limit("merchant", "merchant", 1)]).start();
    let mut terminal = house.terminal();
    let (first, refused) = (Message::sale(CARD, 1), Message::sale(CARD, 2));
    terminal.send(&first.encode());
    terminal.send(&refused.encode());
    assert_eq!(Message::decode(&terminal.receive()).get(11), Some("000002"));
    house.at_host.receive();
    house.at_host.send(&refused.answer("00").encode());
    house.at_host.send(&first.answer("00").encode());
    assert_eq!(terminal.receive(), first.answer("00").encode());
    let approving = ["kind=\"unmatched\"", "approves=\"true\""];
    assert_eq!(house.proxy.metric_sum(STRAYS, &approving), 1.0);
}

#[test]
fn r03_an_answer_after_the_deadline_answer_reaches_nobody_and_is_counted_by_what_it_says() {
    let mut house = Plan { deadline: "50ms", ..Plan::default() }.start();
    let mut terminal = house.terminal();
    for (code, stan) in [("00", 1), ("05", 2)] {
        let sale = Message::sale(CARD, stan);
        terminal.send(&sale.encode());
        house.at_host.receive();
        let answer = Message::decode(&terminal.receive());
        assert_eq!((answer.get(11), answer.get(39)), (sale.get(11), Some("91")));
        house.at_host.send(&sale.answer(code).encode());
    }
    // What needs no deadline comes behind the late answers on both ways.
    let advice = Message::sale(CARD, 3).mti("0120");
    terminal.send(&advice.encode());
    assert_eq!(house.at_host.receive(), advice.encode());
    house.at_host.send(&advice.answer("00").encode());
    assert_eq!(terminal.receive(), advice.answer("00").encode());
    assert_eq!(house.proxy.metric_sum(LATE, &["kind=\"approval\""]), 1.0);
    assert_eq!(house.proxy.metric_sum(LATE, &["kind=\"decline\""]), 1.0);
}

/// The host answers in heaps, so that some answers meet their deadline on the way.
#[test]
fn r03_every_request_is_answered_once_when_answers_and_deadlines_race() {
    const REQUESTS: u32 = 3_000;
    const HEAP: usize = 150;
    let house = Plan { deadline: "5ms", ..Plan::default() }.start();
    let mut terminal = house.terminal();
    let mut writer = terminal.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        for stan in 1..=REQUESTS {
            let frame = Message::sale(CARD, stan).encode();
            let wrapped = Framing::Be16.wrap(&frame);
            writer.write_all(&wrapped).unwrap();
        }
    });
    let mut at_host = house.at_host;
    let host = std::thread::spawn(move || {
        let mut heap = Vec::new();
        while let Some(Some(frame)) = at_host.receive_within(std::time::Duration::from_secs(60)) {
            heap.push(Message::decode(&frame).answer("00").encode());
            if heap.len() == HEAP {
                for answer in heap.drain(..) {
                    // When all is answered, the proxy may be gone.
                    let _ = at_host.stream.write_all(&Framing::Be16.wrap(&answer));
                }
            }
        }
    });
    let mut heard: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut hear = |frame: &[u8]| {
        let answer = Message::decode(frame);
        let stan = answer.get(11).unwrap().to_owned();
        heard.entry(stan).or_default().push(answer.get(39).unwrap().to_owned());
    };
    for _ in 0..REQUESTS {
        hear(&terminal.receive());
    }
    sender.join().unwrap();
    // The session ends when it has what it is owed, and not with a frame more.
    terminal.half_close();
    terminal.expect_end();
    assert_eq!(heard.len(), REQUESTS as usize, "somebody was answered twice and somebody never");
    let delivered = heard.values().flatten().filter(|code| *code == "00").count();
    let timed_out = REQUESTS as usize - delivered;
    let labels = ["direction=\"answer\"", "class=\"standard\""];
    assert_eq!(house.proxy.metric_sum("tollgate_messages_total", &labels), f64::from(REQUESTS));
    let at_deadline = house.proxy.metric_sum("tollgate_deadline_answers_total", &["visa"])
        + house.proxy.metric_sum("tollgate_rejects_total", &["reason=\"overload\""]);
    assert_eq!(at_deadline, timed_out as f64);
    drop(house.proxy);
    host.join().unwrap();
}

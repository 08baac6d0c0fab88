//! Reports about messages that look alike: the same STAN on two links, on two sessions, twice on one
//! session and again when the counter has gone round, and an answer under another STAN.

use crate::support::host::Host;
use crate::support::house::{House, Plan};
use crate::support::message::Message;
use crate::support::peer::{Framing, Peer};
use crate::support::proxy::Proxy;
use crate::support::{config, wait_for};

const CARD: &str = "4111111111111111";
const OTHER_CARD: &str = "5555555555554444";

/// Two sales under one STAN from terminals of one name: all else is their own.
fn twins() -> [Message; 2] {
    let first = Message::sale(CARD, 123).with(37, "633318000123");
    let second = Message::sale(OTHER_CARD, 123).with(37, "633318009999").with(4, "000000002500");
    [first, second]
}

#[track_caller]
fn is_served(house: &mut House, terminal: &mut Peer, stan: u32) {
    let sale = Message::sale(CARD, stan);
    terminal.send(&sale.encode());
    assert_eq!(house.at_host.receive_message(), sale);
    house.at_host.send(&sale.answer("00").encode());
    assert_eq!(terminal.receive_message(), sale.answer("00"));
}

/// BR042, on two links before one host.
#[test]
fn the_same_stan_on_two_links_is_two_requests() {
    let host = Host::listen(Framing::Be16);
    let keys = "deadline = \"50s\"";
    let links: String = ["first", "second"]
        .map(|link| config::link(link, host.address(), keys, "connections = 1"))
        .concat();
    let proxy = Proxy::start(&format!("{}{links}", config::node("0s")));
    let mut at_host = [host.accept(), host.accept()];
    for link in ["first", "second"] {
        let up = format!("tollgate_upstream_up{{link=\"{link}\",upstream=\"{link}-host\"}}");
        proxy.wait_for_gauge(&up, 1.0);
    }
    let mut sessions = ["first", "second"].map(|link| proxy.connect(link, Framing::Be16));
    for (session, sale) in sessions.iter_mut().zip(twins()) {
        session.send(&sale.encode());
    }
    // Either connection may be the first link's.
    let arrived = at_host.each_mut().map(Peer::receive_message);
    let [first, second] = twins();
    assert!(arrived == [first.clone(), second.clone()] || arrived == [second.clone(), first]);
    // The second is answered first.
    let mut in_turn: Vec<_> = at_host.iter_mut().zip(&arrived).collect();
    in_turn.sort_by_key(|(_, sale)| **sale != second);
    for (connection, sale) in in_turn {
        connection.send(&sale.answer("00").encode());
    }
    for (session, sale) in sessions.iter_mut().zip(twins()) {
        assert_eq!(session.receive_message(), sale.answer("00"));
    }
}

/// BR042 on two sessions of one link, and BR044 on one session; answered in either order.
#[test]
fn the_same_stan_twice_at_a_time_is_two_requests_and_each_gets_its_own_answer() {
    let mut house = Plan::default().start();
    let mut terminals = [house.terminal(), house.terminal()];
    for (second_at, reversed) in [(0, false), (0, true), (1, false), (1, true)] {
        let sales = twins();
        let places = [0, second_at];
        for (sale, at) in sales.iter().zip(places) {
            terminals[at].send(&sale.encode());
            assert_eq!(house.at_host.receive_message(), *sale);
        }
        let mut in_turn: Vec<_> = sales.iter().zip(places).collect();
        if reversed {
            in_turn.reverse();
        }
        for (sale, at) in in_turn {
            house.at_host.send(&sale.answer("00").encode());
            assert_eq!(terminals[at].receive_message(), sale.answer("00"));
        }
        let [mut terminal, other] = terminals;
        is_served(&mut house, &mut terminal, 7);
        terminals = [terminal, other];
    }
    assert_eq!(house.proxy.metric_sum("tollgate_stray_messages_total", &[]), 0.0);
}

/// BR046, when the counter of STANs has gone round: the late answer is not the new request's.
#[test]
fn a_late_answer_is_not_given_to_a_later_request_under_the_same_stan() {
    let mut house = Plan { deadline: "500ms", ..Plan::default() }.start();
    let mut terminal = house.terminal();
    let late = |house: &House| house.proxy.metric_sum("tollgate_late_responses_total", &[]);
    // The second request may meet its own deadline on a busy machine; then it is tried again.
    let answered_in_time = (1..=20).find(|round| {
        let [first, second] = twins();
        let [first, second] =
            [first.with(37, &format!("{round:012}")), second.with(37, &format!("9{round:011}"))];
        terminal.send(&first.encode());
        assert_eq!(house.at_host.receive_message(), first);
        let at_deadline = terminal.receive_message();
        assert_eq!((at_deadline.get(37), at_deadline.get(39)), (first.get(37), Some("91")));
        terminal.send(&second.encode());
        assert_eq!(house.at_host.receive_message(), second);
        let before = late(&house);
        let answers = [&first, &second].map(|sale| Framing::Be16.wrap(&sale.answer("00").encode()));
        house.at_host.send_raw(&answers.concat());
        let heard = terminal.receive_message();
        assert_eq!((heard.get(2), heard.get(4)), (second.get(2), second.get(4)));
        assert_eq!(heard.get(37), second.get(37));
        wait_for("the late answer is counted", || (late(&house) > before).then_some(()));
        heard.get(39) == Some("00")
    });
    assert!(answered_in_time.is_some(), "never in time");
    let session = "tollgate_link_sockets{link=\"visa\"}";
    assert_eq!(house.proxy.metric(session), 1.0);
}

/// BR053. What may not be answered here meets silence, and is not waited for without end.
#[test]
fn an_echo_that_is_answered_under_another_stan_reaches_nobody_and_is_not_waited_for_for_ever() {
    let link = "answer_timeout = \"1s\"".to_owned();
    let mut house = Plan { deadline: "500ms", link, ..Plan::default() }.start();
    let mut terminal = house.terminal();
    let echo = Message::new("0800", &[(7, "1130045900"), (11, "000123"), (70, "301")]);
    terminal.send(&echo.encode());
    assert_eq!(house.at_host.receive_message(), echo);
    house.at_host.send(&echo.clone().with(11, "000124").answer("00").encode());
    let unmatched =
        || house.proxy.metric_sum("tollgate_stray_messages_total", &["kind=\"unmatched\""]);
    wait_for("the stray is counted", || (unmatched() == 1.0).then_some(()));
    let advices = || house.proxy.metric_sum("tollgate_advices_unanswered_total", &[]);
    wait_for("it is not waited for any more", || (advices() == 1.0).then_some(()));
    let inflight = || house.proxy.metric_sum("tollgate_inflight", &["link=\"visa\""]);
    wait_for("nothing is in flight", || (inflight() == 0.0).then_some(()));
    // The next frame of the session is the next echo's answer.
    terminal.send(&echo.encode());
    assert_eq!(house.at_host.receive_message(), echo);
    house.at_host.send(&echo.answer("00").encode());
    assert_eq!(terminal.receive_message(), echo.answer("00"));
}

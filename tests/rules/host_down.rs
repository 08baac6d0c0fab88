//! R7: what each message meets while no connection to the host is up.

use std::net::{SocketAddr, TcpStream};

use crate::CARD;
use crate::support::host::Host;
use crate::support::house::{House, Plan, SOCKETS};
use crate::support::message::Message;
use crate::support::peer::{Framing, Peer};
use crate::support::wait_for;

const UP: &str = "tollgate_upstream_up{link=\"visa\",upstream=\"host\"}";

/// Takes the host away; returns where it was.
fn take_down(house: House) -> (crate::support::proxy::Proxy, SocketAddr) {
    let House { proxy, host, at_host, standby, .. } = house;
    let address = host.address();
    drop((host, at_host, standby));
    wait_for("host down", || (proxy.metric(UP) == 0.0).then_some(()));
    (proxy, address)
}

/// Sends what is never answered here, then requests: only these are heard of, in their order.
fn expect_answers_to_requests_alone(terminal: &mut Peer, code: &str) {
    let silent = ["0800", "0801", "0820", "0120", "0121", "0220", "0140", "0400", "0401", "0420"];
    let silent = silent.into_iter().chain(["0421", "0500", "0600", "0302", "0102", "0110", "1100"]);
    for (mti, stan) in silent.zip(1..) {
        let message = Message::sale(CARD, stan).mti(mti).with(70, "301");
        terminal.send(&message.encode());
    }
    for (mti, stan) in ["0100", "0101", "0200", "0201"].into_iter().zip(50..) {
        let request = Message::sale(CARD, stan).mti(mti);
        terminal.send(&request.encode());
        let answer = Message::decode(&terminal.receive());
        assert_eq!(answer.get(11), request.get(11), "{mti}");
        assert_eq!(answer.get(39), Some(code), "{mti}");
    }
}

#[test]
fn r07_with_the_host_down_requests_are_answered_and_nothing_else_is() {
    let plan = Plan { codes: "unavailable = \"92\"".to_owned(), ..Plan::default() };
    let house = plan.start();
    let mut terminal = house.terminal();
    let (proxy, address) = take_down(house);
    expect_answers_to_requests_alone(&mut terminal, "92");
    let rejects = |labels: &[&str]| proxy.metric_sum("tollgate_rejects_total", labels);
    assert_eq!(rejects(&["reason=\"unavailable\"", "class=\"standard\""]), 4.0);
    assert_eq!(rejects(&["class=\"protected\""]), 0.0);
    assert_eq!(proxy.metric_sum("tollgate_unsent_total", &["visa"]), 17.0);

    // Nothing of all that is sent to the host when it is back: their senders repeat it.
    let host = Host::listen_on(address, Framing::Be16);
    let mut at_host = host.accept();
    proxy.wait_for_metric(UP, 1.0);
    let sale = Message::sale(CARD, 70);
    terminal.send(&sale.encode());
    assert_eq!(at_host.receive(), sale.encode());
    at_host.send(&sale.answer("00").encode());
    assert_eq!(terminal.receive(), sale.answer("00").encode());
}

#[test]
fn r07_a_host_that_was_never_up_is_a_host_that_is_down() {
    let address = Host::listen(Framing::Be16).address();
    let proxy = crate::support::proxy::Proxy::start(&Plan::default().config(address));
    let mut terminal = proxy.connect("visa", Framing::Be16);
    expect_answers_to_requests_alone(&mut terminal, "91");
    assert_eq!(proxy.metric(UP), 0.0);
}

/// No token is spent on what cannot be sent.
#[test]
fn r07_requests_that_met_no_host_cost_no_token() {
    let sections = crate::support::house::limit("all", "", 1);
    let house = Plan { sections, ..Plan::default() }.start();
    let mut terminal = house.terminal();
    let (proxy, address) = take_down(house);
    expect_answers_to_requests_alone(&mut terminal, "91");
    let host = Host::listen_on(address, Framing::Be16);
    let mut at_host = host.accept();
    proxy.wait_for_metric(UP, 1.0);
    let sale = Message::sale(CARD, 70);
    terminal.send(&sale.encode());
    assert_eq!(at_host.receive(), sale.encode());
}

#[test]
fn r07_what_was_written_when_the_host_went_is_answered_at_its_deadline_and_advices_never() {
    let codes = "lost = \"68\"\nunavailable = \"92\"".to_owned();
    let mut house = Plan { deadline: "1500ms", codes, ..Plan::default() }.start();
    let mut terminal = house.terminal();
    for (mti, stan) in [("0420", 1), ("0800", 2), ("0120", 3), ("0100", 4), ("0200", 5)] {
        terminal.send(&Message::sale(CARD, stan).mti(mti).encode());
        house.at_host.receive();
    }
    let (proxy, _) = take_down(house);
    for stan in ["000004", "000005"] {
        let answer = Message::decode(&terminal.receive());
        assert_eq!((answer.get(11), answer.get(39)), (Some(stan), Some("68")));
    }
    terminal.send(&Message::sale(CARD, 6).encode());
    let answer = Message::decode(&terminal.receive());
    assert_eq!((answer.get(11), answer.get(39)), (Some("000006"), Some("92")));
    assert_eq!(proxy.metric_sum("tollgate_deadline_answers_total", &["reason=\"lost\""]), 2.0);
}

/// A session of a link whose listener opens when its host is up.
fn connect_when_open(address: SocketAddr) -> Peer {
    let stream = wait_for("the listener is open", || TcpStream::connect(address).ok());
    Peer::new(stream, Framing::Be16)
}

#[test]
fn r07_host_down_close_closes_sessions_and_listener_and_opens_again_when_the_host_is_back() {
    let link = "host_down = \"close\"".to_owned();
    let mut house = Plan { link, ..Plan::default() }.start();
    let address = house.proxy.address("visa");
    // The link opens a moment after its first connection to the host is up.
    let mut terminals: Vec<_> = (0..3).map(|_| connect_when_open(address)).collect();
    for (terminal, stan) in terminals.iter_mut().zip(1..) {
        let sale = Message::sale(CARD, stan);
        terminal.send(&sale.encode());
        assert_eq!(house.at_host.receive(), sale.encode());
        house.at_host.send(&sale.answer("00").encode());
        assert_eq!(terminal.receive(), sale.answer("00").encode());
    }
    let (proxy, host_address) = take_down(house);
    terminals.iter_mut().for_each(Peer::expect_end);
    wait_for("the listener is closed", || TcpStream::connect(address).err());
    let closed = ["cause=\"host_down\""];
    assert_eq!(proxy.metric_sum("tollgate_sessions_closed_total", &closed), 3.0);

    let host = Host::listen_on(host_address, Framing::Be16);
    let mut at_host = host.accept();
    let mut terminal = connect_when_open(address);
    let sale = Message::sale(CARD, 9);
    terminal.send(&sale.encode());
    assert_eq!(at_host.receive(), sale.encode());
    at_host.send(&sale.answer("00").encode());
    assert_eq!(terminal.receive(), sale.answer("00").encode());
    assert_eq!(proxy.metric(SOCKETS), 1.0);
}

#[test]
fn r07_with_host_down_close_a_link_is_closed_until_its_host_was_there() {
    let first = Host::listen(Framing::Be16);
    let address = first.address();
    drop(first);
    let link = "host_down = \"close\"".to_owned();
    let config = Plan { link, ..Plan::default() }.config(address);
    let proxy = crate::support::proxy::Proxy::start(&config);
    let link = proxy.address("visa");
    wait_for("the listener is closed", || TcpStream::connect(link).err());
    let host = Host::listen_on(address, Framing::Be16);
    let mut at_host = host.accept();
    let mut terminal = connect_when_open(link);
    terminal.send(&Message::sale(CARD, 1).encode());
    assert_eq!(at_host.receive(), Message::sale(CARD, 1).encode());
}

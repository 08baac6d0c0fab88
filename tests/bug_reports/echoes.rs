//! Reports about answers that carried fields of another request.

use crate::support::config;
use crate::support::host::Host;
use crate::support::house::limit;
use crate::support::message::Message;
use crate::support::peer::{Framing, Peer};
use crate::support::proxy::Proxy;

const LINKS: [&str; 2] = ["first", "second"];
const SESSIONS: u32 = 40;
const ROUNDS: u32 = 25;
/// What an answer takes from its request.
const ECHOED: [u8; 13] = [2, 3, 4, 7, 11, 12, 13, 25, 32, 37, 41, 42, 49];

/// A request of which every field is its own: each is a number from `number` and the field.
fn request(number: u32) -> Message {
    let digits = |field: u32, width: usize| {
        let mixed = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(field);
        format!("{:0width$}", mixed % 10_u64.pow(u32::try_from(width).unwrap()))
    };
    let of_fields = [(3, 6), (4, 12), (7, 10), (12, 6), (13, 4), (25, 2), (32, 9), (37, 12)];
    let sale = Message::sale(&format!("4{}", digits(2, 15)), number)
        .with(41, &format!("T{}", digits(41, 7)))
        .with(42, &format!("M{}", digits(42, 14)))
        .with(49, &digits(49, 3));
    of_fields
        .into_iter()
        .fold(sale, |sale, (field, width)| sale.with(field, &digits(u32::from(field), width)))
}

#[test]
fn each_of_many_refusals_at_once_echoes_its_own_request() {
    let hosts = LINKS.map(|_| Host::listen(Framing::Be16));
    let links = LINKS.iter().zip(&hosts);
    let links = links.map(|(link, host)| config::link(link, host.address(), "", "connections = 1"));
    let links: String = links.collect();
    let proxy = Proxy::start(&format!("{}{links}{}", config::node("0s"), limit("all", "", 1)));
    let mut at_hosts: Vec<Peer> = hosts.iter().map(Host::accept).collect();
    for link in LINKS {
        let labels = format!("link=\"{link}\",upstream=\"{link}-host\"");
        proxy.wait_for_metric(&format!("tollgate_upstream_up{{{labels}}}"), 1.0);
    }
    // The only token.
    let first = Message::sale("4111111111111111", 999_999);
    proxy.connect("first", Framing::Be16).send(&first.encode());
    assert_eq!(at_hosts[0].receive_message(), first);

    let mut sessions: Vec<Peer> = LINKS
        .into_iter()
        .flat_map(|link| (0..SESSIONS).map(move |_| link))
        .map(|link| proxy.connect(link, Framing::Be16))
        .collect();
    let number =
        |round: u32, session: usize| round * 2 * SESSIONS + u32::try_from(session).unwrap();
    for round in 0..ROUNDS {
        for (session, peer) in sessions.iter_mut().enumerate() {
            peer.send(&request(number(round, session)).encode());
        }
    }
    let mut answers = 0;
    for round in 0..ROUNDS {
        for (session, peer) in sessions.iter_mut().enumerate() {
            let request = request(number(round, session));
            let expected = ECHOED.into_iter().fold(Message::new("0110", &[]), |answer, field| {
                answer.with(field, request.get(field).unwrap())
            });
            assert_eq!(peer.receive_message(), expected.with(39, "91"));
            answers += 1;
        }
    }
    assert_eq!(answers, 2_000);
}

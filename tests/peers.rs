//! The simulated peers against each other, with nothing between them: what the proxy's own tests
//! and the demo rest on.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use support::wait_for;
use tollgate::iso8583::Dialect;
use tollgate::peers::{
    Behaviour, Choice, Echo, Flow, Host, HostSettings, Kind, Latency, Message, Mix, Network,
    NetworkSettings, Script, Shop,
};
use tollgate::wire::{Framing, Header};

const ALL: fn(Kind) -> bool = |_| true;

fn host(preset: &str, script: Script) -> (Host, Arc<Dialect>) {
    let dialect = Arc::new(Dialect::preset(preset).unwrap());
    let settings = HostSettings::loopback(Framing::Be16, Arc::clone(&dialect));
    (Host::start(HostSettings { script, ..settings }).unwrap(), dialect)
}

fn network(host: &Host, dialect: Arc<Dialect>, mix: Mix) -> NetworkSettings {
    let shop = Shop { acceptor: "SHOP0001".to_owned(), category: "5411".to_owned() };
    let flow = Flow {
        acquirer: "123456".to_owned(),
        cards: Choice::evenly(vec!["411111".to_owned()]),
        shops: Choice::evenly(vec![shop]),
        rate: 1_000.0,
        mix,
    };
    NetworkSettings {
        connections: 3,
        duration: Duration::from_millis(500),
        at_once: Duration::from_secs(1),
        seed: 42,
        ..NetworkSettings::new(host.address(), Framing::Be16, dialect, vec![flow])
    }
}

#[test]
fn every_message_is_answered_and_matched_in_either_bitmap() {
    for preset in ["iso87_ascii", "iso87_ascii_binbitmap"] {
        let latency = Latency::Between(Duration::ZERO, Duration::from_millis(20));
        let script = Script::Issuer(Behaviour { latency, ..Behaviour::PROMPT });
        let (host, dialect) = host(preset, script);
        // However busy the machine is, nothing is late enough to be repeated.
        let settings = NetworkSettings {
            repeat_after: Duration::from_secs(60),
            patience: Duration::from_secs(60),
            ..network(&host, dialect, Mix::ORDINARY)
        };
        let tally = Network::start(settings).unwrap().finish();
        let sum = tally.sum(ALL);
        assert!(sum.sent > 300, "{sum:?}");
        assert_eq!((sum.approved, sum.unanswered()), (sum.sent, 0));
        assert_eq!((tally.unmatched, tally.unsent, tally.closed, tally.repeats), (0, 0, 0, 0));
        assert_eq!(host.received(), sum.sent);
        let reversals = tally.sum(|kind| kind == Kind::Reversal);
        assert!(reversals.sent > 0 && host.received_of(420) == reversals.sent);
        assert_eq!(tally.host.count(), sum.sent);
        let slowest = tally.host.quantile(1.0).unwrap();
        assert!(slowest >= Duration::from_millis(15), "{slowest:?}");
    }
}

#[test]
fn a_decline_is_not_an_approval_and_a_dropped_request_stays_unanswered() {
    let behaviour = Behaviour { declined_share: 0.5, dropped_share: 0.2, ..Behaviour::PROMPT };
    let (host, dialect) = host("iso87_ascii", Script::Issuer(behaviour));
    let settings = NetworkSettings {
        patience: Duration::from_secs(1),
        ..network(&host, dialect, Mix::only(Kind::Sale))
    };
    let tally = Network::start(settings).unwrap().finish();
    let sum = tally.sum(ALL);
    wait_for("the host has read all", || (host.received_of(200) == sum.sent).then_some(()));
    assert!(sum.approved > 0 && sum.declined > 0 && sum.unanswered() > 0, "{sum:?}");
    assert_eq!(sum.refused + sum.overdue + tally.unmatched + tally.repeats, 0);
}

#[test]
fn an_advice_is_repeated_until_it_is_answered() {
    let behaviour = Behaviour { dropped_share: 0.5, ..Behaviour::PROMPT };
    let (host, dialect) = host("iso87_ascii", Script::Issuer(behaviour));
    let mut settings = NetworkSettings {
        repeat_after: Duration::from_millis(50),
        ..network(&host, dialect, Mix::only(Kind::Advice))
    };
    settings.flows[0].rate = 200.0;
    let tally = Network::start(settings).unwrap().finish();
    let sum = tally.sum(ALL);
    assert_eq!((sum.approved, sum.unanswered()), (sum.sent, 0));
    // The last repeat may cross the answer to what it repeats, and be read by nobody.
    let repeats = host.received_of(121);
    assert!(repeats > 0 && repeats <= tally.repeats, "{repeats} of {}", tally.repeats);
    assert_eq!(host.received_of(120), sum.sent);
}

/// A host that is slow and not gone answers the message and its repeats, each for itself.
#[test]
fn an_answer_to_each_repeat_fits_the_message_that_was_repeated() {
    let slow = Duration::from_millis(150);
    let behaviour = Behaviour { latency: Latency::Exactly(slow), ..Behaviour::PROMPT };
    let (host, dialect) = host("iso87_ascii", Script::Issuer(behaviour));
    let mut settings = NetworkSettings {
        repeat_after: Duration::from_millis(50),
        ..network(&host, dialect, Mix::only(Kind::Advice))
    };
    settings.flows[0].rate = 200.0;
    let tally = Network::start(settings).unwrap().finish();
    let sum = tally.sum(ALL);
    assert_eq!((sum.approved, sum.unanswered()), (sum.sent, 0));
    assert!(tally.repeats > 0);
    assert_eq!(tally.unmatched, 0);
}

#[test]
fn a_prompt_host_answers_everything_at_once_and_a_cut_closes_one_connection() {
    let (host, dialect) = host("iso87_ascii", Script::Issuer(Behaviour::PROMPT));
    let settings = network(&host, dialect, Mix::ORDINARY);
    let settings = NetworkSettings { patience: Duration::from_millis(200), ..settings };
    let network = Network::start(settings).unwrap();
    wait_for("an answer", || (network.tally().sum(ALL).answered() > 0).then_some(()));
    host.cut();
    let tally = network.finish();
    let sum = tally.sum(ALL);
    assert_eq!(tally.closed, 1);
    assert!(tally.unsent > 0, "a third of what follows has no connection");
    assert!(sum.approved > 100, "{sum:?}");
    assert_eq!(tally.unmatched, 0);
}

#[test]
fn a_network_that_is_dropped_ends_at_once() {
    let (host, dialect) = host("iso87_ascii", Script::Issuer(Behaviour::PROMPT));
    let settings = network(&host, dialect, Mix::ORDINARY);
    let network =
        Network::start(NetworkSettings { duration: Duration::from_secs(3_600), ..settings });
    drop(network.unwrap());
}

#[test]
fn a_network_without_anybody_to_connect_to_says_so() {
    let (host, dialect) = host("iso87_ascii", Script::Issuer(Behaviour::PROMPT));
    let settings = network(&host, dialect, Mix::ORDINARY);
    drop(host);
    assert!(Network::start(settings).is_err());
}

#[test]
fn the_cheapest_echo_answers_what_is_answered_in_any_pieces_and_drops_the_rest() {
    let dialect = Dialect::preset("iso87_ascii").unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    let tpdu = Header::Tpdu { application_bytes: 0 };
    let echo = Echo::start(listen, Framing::Be16, tpdu, &dialect).unwrap();
    let message = |mti: &str, stan: &str, addresses: [u8; 4]| {
        let [d1, d2, o1, o2] = addresses;
        let mut frame = vec![0x60, d1, d2, o1, o2];
        Message::new(mti).field(11, stan).encode(&dialect, &mut frame).unwrap();
        let mut whole = Vec::new();
        Framing::Be16.join(&frame, &mut whole).unwrap();
        whole
    };
    let (there, back) = ([0, 1, 0, 2], [0, 2, 0, 1]);
    let sent = [
        message("0100", "1", there),
        // A keepalive, an answer and no message at all.
        vec![0, 0],
        message("0110", "2", there),
        vec![0, 6, 0x60, 0, 1, 0, 2, b'0'],
        message("0421", "3", there),
        message("0800", "4", there),
    ];
    let expected =
        [message("0110", "1", back), message("0430", "3", back), message("0810", "4", back)];
    let (sent, expected) = (sent.concat(), expected.concat());
    for pieces in [1, 3, 50, sent.len()] {
        let mut stream = TcpStream::connect(echo.address()).unwrap();
        stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
        for piece in sent.chunks(pieces) {
            stream.write_all(piece).unwrap();
        }
        let mut answers = vec![0; expected.len()];
        stream.read_exact(&mut answers).unwrap();
        assert!(answers == expected, "in pieces of {pieces}");
    }
    // An answer is counted after it was sent.
    wait_for("all are counted", || (echo.answered() == 4 * 3).then_some(()));
}

#[test]
fn an_echo_waits_for_whoever_does_not_take_its_answers_and_serves_the_others() {
    let (dialect, listen) = (Dialect::preset("iso87_ascii").unwrap(), "127.0.0.1:0");
    let listen = listen.parse().unwrap();
    let echo = Echo::start(listen, Framing::Be16, Header::None, &dialect).unwrap();
    let mut frame = Vec::new();
    Message::new("0800")
        .field(11, "1")
        .field(48, vec![b'x'; 900])
        .encode(&dialect, &mut frame)
        .unwrap();
    let mut whole = Vec::new();
    Framing::Be16.join(&frame, &mut whole).unwrap();
    let mut glutton = TcpStream::connect(echo.address()).unwrap();
    glutton.set_nonblocking(true).unwrap();
    // Until neither of the two takes anything any more.
    let (mut given, mut at, mut answered) = (0_u64, 0, 0);
    let stalls = || {
        let before = (given, at);
        while let Ok(bytes) = glutton.write(&whole[at..]) {
            at += bytes;
            if at == whole.len() {
                (given, at) = (given + 1, 0);
            }
        }
        let rests = before == (given, at) && answered == echo.answered();
        answered = echo.answered();
        (rests && answered > 0).then_some(())
    };
    wait_for("everything is full", stalls);
    let mut other = TcpStream::connect(echo.address()).unwrap();
    other.set_read_timeout(Some(support::PATIENCE)).unwrap();
    other.write_all(&whole).unwrap();
    let mut answer = vec![0; whole.len()];
    other.read_exact(&mut answer).unwrap();
    assert!(answer[2..6] == *b"0810");
    // The one that waited gets every answer once it takes them.
    glutton.set_nonblocking(false).unwrap();
    glutton.set_read_timeout(Some(support::PATIENCE)).unwrap();
    for _ in 0..given {
        glutton.read_exact(&mut answer).unwrap();
        assert!(answer[2..6] == *b"0810");
    }
}

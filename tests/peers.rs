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

use std::sync::Arc;
use std::time::Duration;

use support::wait_for;
use tollgate::iso8583::Dialect;
use tollgate::peers::{
    Behaviour, Choice, Flow, Host, HostSettings, Kind, Latency, Mix, Network, NetworkSettings,
    Script, Shop,
};
use tollgate::wire::Framing;

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
        let tally = Network::start(network(&host, dialect, Mix::ORDINARY)).unwrap().finish();
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
    assert_eq!(sum.sent, host.received_of(200));
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

#[test]
fn an_echo_answers_everything_at_once_and_a_cut_closes_one_connection() {
    let (host, dialect) = host("iso87_ascii", Script::Echo);
    let settings = network(&host, dialect, Mix::ORDINARY);
    let settings = NetworkSettings { patience: Duration::from_millis(200), ..settings };
    let network = Network::start(settings).unwrap();
    wait_for("an answer", || (network.tally().sum(ALL).answered() > 0).then_some(()));
    host.cut();
    let tally = network.finish();
    let sum = tally.sum(ALL);
    assert_eq!(tally.closed, 1);
    assert!(tally.unsent > 0, "a third of what follows has no connection");
    assert!(sum.other > 100, "an echo has no response code: {sum:?}");
    assert_eq!(tally.unmatched, 0);
}

#[test]
fn a_network_that_is_dropped_ends_at_once() {
    let (host, dialect) = host("iso87_ascii", Script::Echo);
    let settings = network(&host, dialect, Mix::ORDINARY);
    let network =
        Network::start(NetworkSettings { duration: Duration::from_secs(3_600), ..settings });
    drop(network.unwrap());
}

#[test]
fn a_network_without_anybody_to_connect_to_says_so() {
    let (host, dialect) = host("iso87_ascii", Script::Echo);
    let settings = network(&host, dialect, Mix::ORDINARY);
    drop(host);
    assert!(Network::start(settings).is_err());
}

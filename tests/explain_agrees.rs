//! `explain` agrees with what the proxy does: for ten thousand messages under configurations of all
//! kinds, what it says of a message is what becomes of that message when it comes next. And it
//! spends nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    reason = "a test states its expectations"
)]

#[path = "support/csv.rs"]
mod csv;
#[path = "support/encoder.rs"]
#[allow(dead_code, reason = "each test binary uses its own part of this")]
mod encoder;
#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "support/header.rs"]
#[allow(dead_code, missing_docs, unreachable_pub, reason = "each test binary uses its own part")]
mod header;

#[path = "explain_agrees/scene.rs"]
mod scene;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use scene::{Scene, one_of};
use tollgate::clock::Moment;
use tollgate::config::{Config, Link};
use tollgate::exchange::{
    ConnectionId, Exchange, Explained, Fate, Flow, Outcome, Pass, Request, Room, Sequence,
    SessionId, Side, Sink,
};
use tollgate::gate::Gate;
use tollgate::iso8583::{Spans, View};
use tollgate::limits::grant::ONE;
use tollgate::limits::{Holder, LimitSet, Policy, Standing};
use tollgate::traffic::Class;
use tollgate::wire::Framing;

const CONFIGS: u64 = 250;
const MESSAGES: u32 = 40;
const SESSION: SessionId = SessionId { slot: 0, generation: 1 };

/// A way to a host that takes everything, and remembers what became of one message.
struct Port {
    framing: Framing,
    queued: u64,
    forwarded: Vec<Vec<u8>>,
    delivered: Vec<Vec<u8>>,
    said: Vec<Outcome>,
}

impl Port {
    const fn new(framing: Framing) -> Self {
        Self { framing, queued: 0, forwarded: Vec::new(), delivered: Vec::new(), said: Vec::new() }
    }

    fn forget(&mut self) {
        self.forwarded.clear();
        self.delivered.clear();
        self.said.clear();
    }

    fn found<T>(&self, wanted: impl Fn(&Outcome) -> Option<T>) -> Option<T> {
        self.said.iter().find_map(wanted)
    }

    fn shadowed(&self) -> LimitSet {
        let limits = |said: &Outcome| match said {
            Outcome::Shadowed(limits) => Some(*limits),
            _ => None,
        };
        self.found(limits).unwrap_or_default()
    }

    fn forgiven(&self) -> LimitSet {
        let limits = |said: &Outcome| match said {
            Outcome::Forgiven(limits) => Some(*limits),
            _ => None,
        };
        self.found(limits).unwrap_or_default()
    }
}

impl Sink for Port {
    fn room(&self, _frame_bytes: usize) -> Room {
        Room::Open
    }

    fn forward(&mut self, frame: &[u8]) -> Option<Sequence> {
        self.forwarded.push(frame.to_vec());
        self.queued += 1;
        Some(Sequence(self.queued))
    }

    fn withdraw(&mut self, _sequence: Sequence) -> bool {
        false
    }

    fn carries(&self, frame: &[u8]) -> bool {
        self.framing.carries(frame)
    }

    fn deliver(&mut self, _session: SessionId, frame: &[u8]) -> bool {
        self.delivered.push(frame.to_vec());
        true
    }

    fn give_back(&mut self, _connection: ConnectionId, _frame: &[u8]) -> bool {
        false
    }

    fn record(&mut self, outcome: Outcome) {
        self.said.push(outcome);
    }
}

/// One link at work.
struct Station {
    link: Link,
    exchange: Exchange,
    port: Port,
}

impl Station {
    fn new(link: &Link, policy: &Arc<Policy>) -> Self {
        let gate = Gate::new(link.id, link.gate.clone(), Arc::clone(policy));
        let dialect = Arc::clone(&link.dialect);
        let mut exchange = Exchange::new(&link.exchange, dialect, link.header, gate, 1);
        exchange.opened(SESSION);
        Self { link: link.clone(), exchange, port: Port::new(link.session.framing) }
    }

    fn explain(&self, frame: &[u8], now: Moment) -> Explained {
        let framing = self.port.framing;
        self.exchange.explain(frame, now, |answer| framing.carries(answer), |_, _| {})
    }
}

/// How often each thing was said, so that no branch goes untested unnoticed.
type Tally = BTreeMap<&'static str, usize>;

/// What is said of a frame is what becomes of it.
fn check(explained: &Explained, frame: &[u8], flow: Flow, station: &Station) -> &'static str {
    let port = &station.port;
    let forwarded = port.found(|said| match said {
        Outcome::Forwarded { class, pass } => Some((*class, *pass)),
        _ => None,
    });
    let passes = match explained {
        Explained::Request(request) => return check_request(request, frame, flow, station),
        Explained::Unreadable(unread) => {
            let said = Outcome::Unreadable(Side::Network, *unread);
            assert!(port.said.contains(&said));
            Pass::Unread
        }
        Explained::Rejected(mti, code) => {
            let said = |said: &Outcome| match said {
                Outcome::Rejected(Side::Network, code, trace) => Some((trace.mti, *code)),
                _ => None,
            };
            assert_eq!(port.found(said), Some((*mti, *code)));
            Pass::Protected
        }
        Explained::Answer(_) => Pass::Protected,
    };
    assert_eq!((flow, forwarded), (Flow::Taken, Some((Class::Protected, passes))));
    assert_eq!((port.forwarded.as_slice(), port.delivered.len()), (&[frame.to_vec()][..], 0));
    assert!(port.shadowed().is_empty() && port.forgiven().is_empty());
    match explained {
        Explained::Unreadable(_) => "unreadable",
        Explained::Rejected(..) => "rejected",
        _ => "answer",
    }
}

fn check_request(request: &Request, frame: &[u8], flow: Flow, station: &Station) -> &'static str {
    let port = &station.port;
    let class = request.gate.classified.traffic.class;
    let asked = |port: &Port| {
        let verdict = &request.gate.verdict;
        assert_eq!((port.shadowed(), port.forgiven()), (verdict.shadowed, verdict.forgiven));
    };
    match request.fate {
        Fate::Forwarded(pass) => {
            assert_eq!(flow, Flow::Taken);
            assert!(port.said.contains(&Outcome::Forwarded { class, pass }));
            assert_eq!(port.forwarded, [frame]);
            assert!(port.delivered.is_empty());
            asked(port);
            pass.name()
        }
        Fate::Answered { reason, limit, code } => {
            assert_eq!(flow, Flow::Taken);
            let waited = Duration::ZERO;
            assert!(port.said.contains(&Outcome::Answered { class, reason, limit, waited }));
            assert!(port.forwarded.is_empty());
            assert_eq!(field_39(&port.delivered, station), code.in_version(version(request)));
            if limit.is_some() {
                asked(port);
                return "refused";
            }
            "format"
        }
        Fate::Closed => {
            assert_eq!(flow, Flow::Close);
            assert!(port.forwarded.is_empty() && port.delivered.is_empty());
            "closed"
        }
    }
}

fn version(request: &Request) -> u8 {
    request.mti.version()
}

/// Field 39 of the one answer.
fn field_39<'a>(delivered: &[Vec<u8>], station: &Station) -> Option<&'a str> {
    let [answer] = delivered else { panic!("{} answers", delivered.len()) };
    let body = station.link.header.open(answer).unwrap().body;
    let mut spans = Spans::default();
    let view = View::parse(&station.link.dialect, body, &mut spans).unwrap();
    let code = view.text::<4>(39)?;
    let known = tollgate::iso8583::LocalCode::ALL;
    let known = known.iter().filter_map(|known| known.in_version(view.mti().version()));
    known.into_iter().find(|known| known.as_bytes() == code.as_bytes())
}

#[test]
fn what_is_explained_of_ten_thousand_messages_is_what_becomes_of_them() {
    let mut tally = Tally::new();
    for seed in 0..CONFIGS {
        let mut rng = Rng::with_seed(seed);
        let scene = Scene::of(&mut rng);
        let config = Config::parse(&scene.config)
            .unwrap_or_else(|faults| panic!("seed {seed}: {faults}\n{}", scene.config));
        let names = config.link_names();
        let policy = Policy::new(&config.limits, &names, 1, rng.u64(..), Moment::START);
        let policy = Arc::new(policy.unwrap());
        let mut stations: Vec<_> =
            config.links.iter().map(|link| Station::new(link, &policy)).collect();
        let mut now = Moment::START;
        for stan in 0..MESSAGES {
            now = now.after(Duration::from_millis(one_of(&mut rng, &[0, 0, 0, 50, 1_000])));
            let at = rng.usize(..stations.len());
            let frame = scene.message(&mut rng, at, stan);
            let station = &mut stations[at];
            let explained = station.explain(&frame, now);
            assert_eq!(station.explain(&frame, now), explained, "asking spends: seed {seed}");
            station.port.forget();
            let turn = policy.turn(0);
            let flow = station.exchange.request(SESSION, &frame, now, &mut station.port);
            drop(turn);
            let case = Case { seed, stan, explained: &explained, said: &station.port.said };
            let kind = check(&explained, &frame, flow, station);
            drop(case);
            *tally.entry(kind).or_default() += 1;
            count_holders(&mut tally, &explained);
        }
    }
    // Every branch, and every one often enough to be wrong in.
    for kind in [
        "forward",
        "pass_protected",
        "unenforceable",
        "refused",
        "format",
        "closed",
        "unreadable",
        "rejected",
        "answer",
        "everything",
        "named",
        "automatic",
        "new",
        "shared",
        "shadowed",
        "forgiven",
        "conforms",
        "peak_empty",
        "reserved",
    ] {
        assert!(tally.get(kind).is_some_and(|count| *count >= 10), "{kind}: {tally:?}");
    }
}

fn count_holders(tally: &mut Tally, explained: &Explained) {
    let Explained::Request(request) = explained else { return };
    for (_, standing) in &request.gate.standings {
        if let Standing::Applies(bucket) = standing {
            *tally.entry(Holder::name(bucket.holder)).or_default() += 1;
            let (has_token, passes) = (bucket.level >= ONE, bucket.has_token());
            let peak_empty = bucket.peak.is_some_and(|peak| peak.level < ONE);
            *tally.entry("conforms").or_default() += usize::from(bucket.conforms() && !passes);
            *tally.entry("peak_empty").or_default() += usize::from(has_token && peak_empty);
            *tally.entry("reserved").or_default() +=
                usize::from(has_token && !peak_empty && !passes);
        }
    }
    *tally.entry("shadowed").or_default() += request.gate.verdict.shadowed.len();
    *tally.entry("forgiven").or_default() += request.gate.verdict.forgiven.len();
}

/// Says which case it was when an assertion fails in it.
struct Case<'a> {
    seed: u64,
    stan: u32,
    explained: &'a Explained,
    said: &'a [Outcome],
}

impl Drop for Case<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, stan, explained, said } = self;
            eprintln!("seed {seed}, message {stan}: {explained:#?}\nwas {said:#?}");
        }
    }
}

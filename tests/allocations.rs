//! A message that passes allocates nothing once the buffers have grown: neither forwarded and
//! answered, nor refused, nor answered at its deadline.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

#[path = "support/from_dialect.rs"]
mod message;

use std::sync::Arc;
use std::time::Duration;

use allocation_counter::measure;
use message::message;
use tollgate::clock::Moment;
use tollgate::exchange::{
    ConnectionId, Exchange, Flow, Outcome, Room, Sequence, SessionId, Settings, Sink,
};
use tollgate::gate::{self, Gate};
use tollgate::iso8583::Dialect;
use tollgate::limits::{Burst, Per, Policy, Rate, Rule};
use tollgate::net::buffer::WriteBuffer;
use tollgate::net::host_queue::{Fill, HostQueue};
use tollgate::reason::Reason;
use tollgate::traffic::LinkId;
use tollgate::wire::{Framing, Header};

const SESSION: SessionId = SessionId { slot: 0, generation: 1 };
const CONNECTION: ConnectionId = ConnectionId { slot: 0, generation: 1 };

/// The buffers of a link with one session and one connection, and what was counted.
struct Port {
    queue: HostQueue,
    session: WriteBuffer,
    up: bool,
    delivered: usize,
    answered: [usize; Reason::ALL.len()],
}

impl Port {
    /// Both peers take everything.
    fn flush(&mut self) {
        self.queue.advance(self.queue.pending().len());
        self.session.advance(self.session.pending().len());
    }
}

impl Sink for Port {
    fn room(&self, frame_bytes: usize) -> Room {
        match self.queue.fill(frame_bytes) {
            _ if !self.up => Room::Down,
            Fill::Open => Room::Open,
            Fill::Tight => Room::Tight,
            Fill::Full => Room::Full,
        }
    }

    fn forward(&mut self, frame: &[u8]) -> Option<Sequence> {
        self.queue.push(frame).ok().map(Sequence)
    }

    fn withdraw(&mut self, sequence: Sequence) -> bool {
        self.queue.withdraw(sequence.0)
    }

    fn deliver(&mut self, _session: SessionId, frame: &[u8]) -> bool {
        self.session.push(frame).is_ok()
    }

    fn give_back(&mut self, _connection: ConnectionId, frame: &[u8]) -> bool {
        self.queue.push(frame).is_ok()
    }

    fn record(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Delivered { .. } => self.delivered += 1,
            Outcome::Answered { reason, .. } => self.answered[reason as usize] += 1,
            _ => {}
        }
    }
}

/// A link under way, and a few thousand messages to send on it.
struct Road {
    exchange: Exchange,
    policy: Arc<Policy>,
    port: Port,
    now: Moment,
    requests: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
}

const MESSAGES: usize = 4_000;
/// Messages between two writes, and between two ticks.
const BATCH: usize = 50;

impl Road {
    fn new(tokens: f64) -> Self {
        let rule = |name: &str, per, tokens: f64| {
            let burst = Burst::tokens(tokens).unwrap();
            Rule {
                keys_max: 1_000,
                ..Rule::new(name, per, Rate::per_second(tokens).unwrap(), burst)
            }
        };
        let rules = [
            rule("merchant", Per::MERCHANT, 1e7),
            rule("bin", Per::BIN, 1e7),
            rule("all", Per::NOTHING, tokens),
        ];
        let policy = Arc::new(Policy::new(&rules, &[], 1, 42, Moment::START).unwrap());
        let answering = gate::Settings::default();
        let gate = Gate::new(LinkId(0), answering, Arc::clone(&policy));
        let settings = Settings {
            deadline: Settings::DEADLINE,
            answer_timeout: Settings::ANSWER_TIMEOUT,
            match_fields: Settings::MATCH_FIELDS.to_vec(),
            inflight_max: Settings::INFLIGHT_MAX,
        };
        let dialect = Arc::new(Dialect::preset("iso87_ascii").unwrap());
        let mut exchange = Exchange::new(&settings, dialect, Header::None, gate, 42);
        exchange.opened(SESSION);
        let port = Port {
            queue: HostQueue::new(Framing::Be16, 1 << 20),
            session: WriteBuffer::new(Framing::Be16, 1 << 20),
            up: true,
            delivered: 0,
            answered: [0; Reason::ALL.len()],
        };
        let requests = (0..MESSAGES).map(|n| authorization("0100", n, None)).collect();
        let answers = (0..MESSAGES).map(|n| authorization("0110", n, Some("00"))).collect();
        Self { exchange, policy, port, now: Moment::START, requests, answers }
    }

    /// All messages, some in each millisecond, each batch answered one batch later.
    fn drive(&mut self, answered: bool) {
        let Self { exchange, policy, port, requests, answers, .. } = self;
        let answers = answers.chunks(BATCH).map(Some);
        let mut answers = std::iter::once(None).chain(answers).map(|some| some.unwrap_or(&[]));
        for batch in requests.chunks(BATCH) {
            self.now = self.now.after(Duration::from_millis(1));
            let turn = policy.turn(0);
            for request in batch {
                assert_eq!(exchange.request(SESSION, request, self.now, port), Flow::Taken);
            }
            drop(turn);
            for answer in answers.next().filter(|_| answered).unwrap_or(&[]) {
                exchange.answer(CONNECTION, answer, self.now, port);
            }
            port.flush();
            exchange.tick(self.now, port);
            policy.sweep(self.now, 8);
        }
        for answer in answers.next().filter(|_| answered).unwrap_or(&[]) {
            exchange.answer(CONNECTION, answer, self.now, port);
        }
        port.flush();
    }

    /// Time passes until everything is due.
    fn wait(&mut self) {
        for _ in 0..20_000 {
            self.now = self.now.after(Duration::from_millis(5));
            self.exchange.tick(self.now, &mut self.port);
            self.port.flush();
        }
    }
}

fn authorization(mti: &str, number: usize, code: Option<&str>) -> Vec<u8> {
    let stan = format!("{number:06}");
    let (terminal, merchant) = (format!("TERM{:04}", number % 50), format!("SHOP{}", number % 200));
    let mut fields = vec![
        (2, "4111111111111111"),
        (3, "000000"),
        (4, "000000001000"),
        (7, "1201120000"),
        (11, &stan),
        (32, "123456"),
        (37, "000000000001"),
        (41, &terminal),
        (42, &merchant),
        (49, "978"),
    ];
    if let Some(code) = code {
        fields.push((39, code));
    }
    message(mti, &fields)
}

#[test]
fn a_request_that_the_host_answers_allocates_nothing() {
    let mut road = Road::new(1e7);
    // Until the buffers have grown, something is counted: the counter counts.
    assert!(measure(|| road.drive(true)).count_total > 0);
    road.drive(true);
    let before = road.port.delivered;
    let allocations = measure(|| road.drive(true)).count_total;
    assert_eq!(road.port.delivered - before, MESSAGES);
    assert_eq!(allocations, 0);
}

#[test]
fn a_request_that_a_limit_refuses_allocates_nothing() {
    let mut road = Road::new(1.0);
    road.drive(false);
    let refused = |road: &Road| road.port.answered[Reason::Limit as usize];
    let before = refused(&road);
    let allocations = measure(|| road.drive(false)).count_total;
    assert!(refused(&road) - before >= MESSAGES - 2);
    assert_eq!(allocations, 0);
}

#[test]
fn a_request_that_meets_no_connection_allocates_nothing() {
    let mut road = Road::new(1e7);
    road.port.up = false;
    road.drive(false);
    let allocations = measure(|| road.drive(false)).count_total;
    assert_eq!(road.port.answered[Reason::Unavailable as usize], 2 * MESSAGES);
    assert_eq!(allocations, 0);
}

#[test]
fn an_answer_at_the_deadline_allocates_nothing() {
    let mut road = Road::new(1e7);
    let drive = |road: &mut Road| {
        road.drive(false);
        road.wait();
    };
    drive(&mut road);
    drive(&mut road);
    let allocations = measure(|| drive(&mut road)).count_total;
    assert_eq!(road.port.answered[Reason::Deadline as usize], 3 * MESSAGES);
    assert_eq!(allocations, 0);
}

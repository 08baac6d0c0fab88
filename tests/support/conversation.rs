//! One link's conversation without a socket: an exchange, and a way to the host that keeps
//! everything.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::sync::Arc;
use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::exchange::{
    ConnectionId, Exchange, Flow, Outcome, Pass, Room, Sequence, SessionId, Settings, Sink, Stray,
};
use tollgate::gate::{self, Gate, Malformed};
use tollgate::iso8583::Dialect;
use tollgate::limits::{Burst, Per, Policy, Rate, Rule};
use tollgate::reason::Reason;
use tollgate::traffic::LinkId;
use tollgate::wire::Header;

use super::message::message;

pub(crate) const FIRST: SessionId = SessionId { slot: 0, generation: 1 };
pub(crate) const SECOND: SessionId = SessionId { slot: 1, generation: 1 };
pub(crate) const CONNECTION: ConnectionId = ConnectionId { slot: 0, generation: 1 };
pub(crate) const STANDBY: ConnectionId = ConnectionId { slot: 1, generation: 1 };
pub(crate) const DEADLINE: Duration = Duration::from_millis(100);
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// A way to the host that keeps everything, and says what it is told to say.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) room: Room,
    /// Sessions are sent no longer frames.
    pub(crate) carries_max: usize,
    pub(crate) forwarded: Vec<Vec<u8>>,
    /// Frames up to this one were begun and cannot be taken back.
    pub(crate) begun: u64,
    pub(crate) delivered: Vec<(SessionId, Vec<u8>)>,
    pub(crate) given_back: Vec<ConnectionId>,
    pub(crate) said: Vec<Outcome>,
}

impl Sink for Port {
    fn room(&self, _frame_bytes: usize) -> Room {
        self.room
    }

    fn forward(&mut self, frame: &[u8]) -> Option<Sequence> {
        self.forwarded.push(frame.to_vec());
        self.begun = self.forwarded.len() as u64;
        Some(Sequence(self.begun))
    }

    fn withdraw(&mut self, sequence: Sequence) -> bool {
        sequence.0 > self.begun
    }

    fn carries(&self, frame: &[u8]) -> bool {
        frame.len() <= self.carries_max
    }

    fn deliver(&mut self, session: SessionId, frame: &[u8]) -> bool {
        self.delivered.push((session, frame.to_vec()));
        true
    }

    fn give_back(&mut self, connection: ConnectionId, _frame: &[u8]) -> bool {
        self.given_back.push(connection);
        connection != STANDBY
    }

    fn record(&mut self, outcome: Outcome) {
        self.said.push(outcome);
    }
}

pub(crate) struct Link {
    pub(crate) exchange: Exchange,
    pub(crate) port: Port,
    pub(crate) now: Moment,
}

impl Link {
    pub(crate) fn new() -> Self {
        Self::with(1_000, 1e6)
    }

    pub(crate) fn with(inflight_max: usize, tokens: f64) -> Self {
        Self::of("iso87_ascii", Header::None, Malformed::default(), inflight_max, tokens)
    }

    /// A link with this header and one token.
    pub(crate) fn of_header_with_few_tokens(header: Header) -> Self {
        Self::of("iso87_ascii", header, Malformed::default(), 1_000, 1.0)
    }

    /// A link of another form, with no bound that shows.
    pub(crate) fn formed(dialect: &str, header: Header, malformed: Malformed) -> Self {
        Self::of(dialect, header, malformed, 1_000, 1e6)
    }

    fn of(
        dialect: &str,
        header: Header,
        malformed: Malformed,
        inflight_max: usize,
        tokens: f64,
    ) -> Self {
        let (rate, burst) = (Rate::per_second(tokens).unwrap(), Burst::tokens(tokens).unwrap());
        let rule = Rule::new("all", Per::NOTHING, rate, burst);
        let policy = Arc::new(Policy::new(&[rule], &[], 1, 1, Moment::START).unwrap());
        let answering = gate::Settings { malformed, ..gate::Settings::default() };
        let settings = Settings {
            deadline: DEADLINE,
            answer_timeout: ANSWER_TIMEOUT,
            match_fields: Settings::MATCH_FIELDS.to_vec(),
            inflight_max,
        };
        let dialect = Arc::new(Dialect::preset(dialect).unwrap());
        let gate = Gate::new(LinkId(0), answering, policy);
        let mut exchange = Exchange::new(&settings, dialect, header, gate, 1);
        exchange.opened(FIRST);
        exchange.opened(SECOND);
        let port = Port {
            room: Room::Open,
            carries_max: usize::MAX,
            forwarded: Vec::new(),
            begun: 0,
            delivered: Vec::new(),
            given_back: Vec::new(),
            said: Vec::new(),
        };
        Self { exchange, port, now: Moment::START }
    }

    pub(crate) fn ask(&mut self, session: SessionId, mti: &str, fields: &[(u8, &str)]) {
        let frame = message(mti, fields);
        let flow = self.exchange.request(session, &frame, self.now, &mut self.port);
        assert_eq!(flow, Flow::Taken);
    }

    /// The host sends this; returns which sessions were given something for it.
    pub(crate) fn host(&mut self, mti: &str, fields: &[(u8, &str)]) -> Vec<SessionId> {
        let before = self.port.delivered.len();
        let frame = message(mti, fields);
        self.exchange.answer(CONNECTION, &frame, self.now, &mut self.port);
        let delivered = &self.port.delivered[before..];
        assert!(delivered.iter().all(|(_, given)| *given == frame), "an answer was changed");
        delivered.iter().map(|(session, _)| *session).collect()
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now = self.now.after(time);
        self.exchange.tick(self.now, &mut self.port);
    }

    pub(crate) fn last_stray(&self) -> Option<(Stray, bool)> {
        self.port.said.iter().rev().find_map(|said| match said {
            Outcome::Stray(stray, trace) => Some((*stray, trace.approves)),
            _ => None,
        })
    }

    pub(crate) fn reasons(&self) -> Vec<Reason> {
        let reason = |said: &Outcome| match said {
            Outcome::Answered { reason, .. } => Some(*reason),
            _ => None,
        };
        self.port.said.iter().filter_map(reason).collect()
    }

    pub(crate) fn passes(&self) -> Vec<Pass> {
        let pass = |said: &Outcome| match said {
            Outcome::Forwarded { pass, .. } => Some(*pass),
            _ => None,
        };
        self.port.said.iter().filter_map(pass).collect()
    }
}

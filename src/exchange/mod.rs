//! One link's conversation with its host, as a state machine: what is in flight, by when it must be
//! answered, whose answer is whose, and what came too late.
//!
//! Bytes and moments go in; what is to be sent goes out through a [`Sink`], and what happened is
//! told to it as an [`Outcome`]. There is no socket here, no clock, no log and no randomness, so a
//! simulation can play any network against it. Of a request in flight it keeps the prepared answer
//! and hashes of the fields by which the host's answer is recognised, never the message.
//!
//! ```text
//!  network --request--> [gate] --refused--------------------------> local answer
//!                          |
//!                       forwarded, entry made
//!                          |-- host answers -----> entry removed --> host's answer, unchanged
//!                          |-- deadline ---------> entry removed --> prepared answer
//!                          |                            '--> late:   host's answer, to nobody
//!                          '-- (may not be answered) answer_timeout, forgotten
//! ```

mod conversation;
mod correlate;
mod explain;
mod hash;
mod identity;
mod inflight;
mod outcome;
mod sessions;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

pub use explain::{Explained, Fate, Request};
pub use outcome::{Outcome, Pass, Side, Stray, Trace, Unread};
pub use sessions::SessionId;

use crate::clock::Moment;
use crate::gate::{Gate, Looked, Verdict};
use crate::iso8583::Dialect;
use crate::iso8583::{Spans, View};
use crate::traffic::Traffic;
use crate::wire::Header;
use conversation::{Conversation, Message};

/// How long a link waits, and how much it keeps in mind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// An answerable request is answered by then, by tollgate if the host is too slow.
    pub deadline: Duration,
    /// Everything else that expects an answer is forgotten by then, and so is a late answer.
    pub answer_timeout: Duration,
    /// Fields in which a request and its answer must agree when both carry them; at most
    /// [`Settings::MATCH_FIELDS_MAX`].
    pub match_fields: Vec<u8>,
    /// Answerable requests in flight; as many protected ones beside them.
    pub inflight_max: usize,
}

impl Settings {
    /// Default of `deadline`: 2 s of a network less two ways over the link and a margin.
    pub const DEADLINE: Duration = Duration::from_millis(1_600);
    /// Default of `answer_timeout`.
    pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
    /// Default of `match`. Not DE37: hosts mint their own.
    pub const MATCH_FIELDS: [u8; 4] = [7, 32, 41, 42];
    /// How many fields `match` may name.
    pub const MATCH_FIELDS_MAX: usize = 8;
    /// Default of `inflight_max`.
    pub const INFLIGHT_MAX: usize = 4_096;
}

/// A connection to the host. Its slot is used again after it, under another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ConnectionId {
    /// Its place among the link's connections.
    pub slot: u32,
    /// How many connections held the slot before it.
    pub generation: u32,
}

/// The place of a frame in all that a link ever queued for its host, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sequence(pub u64);

/// What the way to the host can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// No connection is up.
    Down,
    /// Not even a protected message fits now.
    Full,
    /// What is left is for protected messages.
    Tight,
    /// Anything fits.
    Open,
}

/// Where an exchange sends to, and whom it tells.
pub trait Sink {
    /// Whether the way to the host has room for a frame of `frame_bytes`.
    fn room(&self, frame_bytes: usize) -> Room;

    /// Queues a frame for the host. `None` when it cannot be carried.
    fn forward(&mut self, frame: &[u8]) -> Option<Sequence>;

    /// Takes a queued frame back if not one byte of it was written; says whether it did.
    fn withdraw(&mut self, sequence: Sequence) -> bool;

    /// Whether a frame can be written to a session at all. Most can.
    fn carries(&self, _frame: &[u8]) -> bool {
        true
    }

    /// Queues a frame for a session; false when the session is gone or takes no more.
    fn deliver(&mut self, session: SessionId, frame: &[u8]) -> bool;

    /// Queues the answer to a message of the host's own for the connection that the message came
    /// from; false when that connection is gone.
    fn give_back(&mut self, connection: ConnectionId, frame: &[u8]) -> bool;

    /// The limits were asked about a message that was read to its end: what it is and what they said.
    /// Most have no use for it.
    fn decided(&mut self, _traffic: &Traffic, _verdict: &Verdict) {}

    /// Something happened.
    fn record(&mut self, outcome: Outcome);
}

/// What became of a frame that a session sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// It was dealt with.
    Taken,
    /// It was dropped; its session must be closed.
    Close,
    /// It was not: the way to the host is full. Offer it again when there is room, and read nothing
    /// behind it meanwhile.
    Wait,
}

/// One link's conversation.
#[derive(Debug)]
pub struct Exchange {
    dialect: Arc<Dialect>,
    header: Header,
    spans: Spans,
    conversation: Conversation,
}

impl Exchange {
    /// A conversation in which nothing has been said. `seed` keys the hashes of this process.
    pub fn new(
        settings: &Settings,
        dialect: Arc<Dialect>,
        header: Header,
        gate: Gate,
        seed: u64,
    ) -> Self {
        let conversation = Conversation::new(settings, Arc::clone(&dialect), header, gate, seed);
        Self { dialect, header, spans: Spans::default(), conversation }
    }

    /// A session was accepted.
    pub fn opened(&mut self, session: SessionId) {
        self.conversation.sessions.open(session);
    }

    /// A session will send nothing more, but still takes what it is owed.
    pub fn half_closed(&mut self, session: SessionId) {
        self.conversation.sessions.stop_listening(session);
    }

    /// A session is gone. What it asked stays in flight: the host may still act on it, and an
    /// answer that approves must be seen.
    pub fn closed(&mut self, session: SessionId) {
        self.conversation.sessions.close(session);
    }

    /// How many answers a session still waits for.
    pub fn owed(&self, session: SessionId) -> u32 {
        self.conversation.sessions.owed(session)
    }

    /// Messages in flight: answerable ones, and all others that expect an answer.
    pub const fn in_flight(&self) -> (usize, usize) {
        self.conversation.in_flight()
    }

    /// Looks at a frame that a session sent together with others, so that what its decision needs
    /// is near when its turn comes: give it to [`request_looked_at`](Self::request_looked_at) with
    /// the same frame. `None` for what no limit is asked about.
    pub fn look_ahead(&mut self, frame: &[u8]) -> Option<Looked> {
        let opened = self.header.open(frame).ok()?;
        let view = View::parse(&self.dialect, opened.body, &mut self.spans).ok()?;
        let is_asked_about = opened.rejected.is_none() && !view.mti().is_answer();
        is_asked_about.then(|| self.conversation.gate.look(&view))
    }

    /// The second look at frames, when all that came together had their first.
    pub fn fetch(&self, looked: &Looked) {
        self.conversation.gate.fetch(looked);
    }

    /// A session sent `frame`.
    pub fn request(
        &mut self,
        session: SessionId,
        frame: &[u8],
        now: Moment,
        sink: &mut impl Sink,
    ) -> Flow {
        self.request_looked_at(session, frame, None, now, sink)
    }

    /// A session sent `frame`, which was looked at ahead or not.
    pub fn request_looked_at(
        &mut self,
        session: SessionId,
        frame: &[u8],
        looked: Option<Looked>,
        now: Moment,
        sink: &mut impl Sink,
    ) -> Flow {
        let talk = &mut self.conversation;
        let Ok(opened) = self.header.open(frame) else {
            return talk.unreadable(session, frame, Unread::Header, sink);
        };
        let Ok(view) = View::parse(&self.dialect, opened.body, &mut self.spans) else {
            return talk.unreadable(session, frame, Unread::Mti, sink);
        };
        let message = Message { session, frame, view: &view, now };
        match opened.rejected {
            Some(code) => talk.rejected_by_network(&message, code, sink),
            None if view.mti().is_answer() => talk.answer_to_host(&message, sink),
            None => talk.request(&message, looked, sink),
        }
    }

    /// The host sent `frame`.
    pub fn answer(
        &mut self,
        connection: ConnectionId,
        frame: &[u8],
        now: Moment,
        sink: &mut impl Sink,
    ) {
        let talk = &mut self.conversation;
        let Ok(opened) = self.header.open(frame) else {
            return sink.record(Outcome::Unreadable(Side::Host, Unread::Header));
        };
        let Ok(view) = View::parse(&self.dialect, opened.body, &mut self.spans) else {
            return sink.record(Outcome::Unreadable(Side::Host, Unread::Mti));
        };
        record_form(Side::Host, &view, sink);
        match opened.rejected {
            Some(code) => talk.rejected_by_host(frame, &view, code, now, sink),
            None if view.mti().is_answer() => talk.answer(frame, &view, now, sink),
            None => talk.host_originated(connection, frame, &view, now, sink),
        }
    }

    /// A connection was lost on which these frames were written whole. They are never sent again;
    /// whichever the host does not answer on another connection is answered at its deadline.
    pub fn lost(&mut self, written: RangeInclusive<Sequence>) {
        self.conversation.lost(&written);
    }

    /// No connection is left: requests of which not one byte was written are answered at once, or
    /// taken back unanswered where they may not be. Protected messages wait for the next connection.
    pub fn stranded(&mut self, now: Moment, sink: &mut impl Sink) {
        self.conversation.stranded(now, sink);
    }

    /// Answers and forgets what is due. Call it every 5 ms.
    pub fn tick(&mut self, now: Moment, sink: &mut impl Sink) {
        self.conversation.tick(now, sink);
    }
}

/// Tells what is unusual about the form of a message.
fn record_form(side: Side, view: &View<'_>, sink: &mut impl Sink) {
    if let Some(fault) = view.fault() {
        sink.record(Outcome::Malformed(side, fault));
    }
    if let Some(part) = view.mti().unknown_part() {
        sink.record(Outcome::UnknownType(side, part));
    }
}

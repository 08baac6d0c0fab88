//! The state of one link, and every transition of it.

mod host;
mod loss;
mod reject;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::correlate::{Choice, Search};
use super::identity::Identifier;
use super::inflight::{Inflight, Place};
use super::sessions::Sessions;
use super::{
    ConnectionId, Flow, Outcome, Pass, Room, Sequence, SessionId, Settings, Side, Sink, Unread,
    record_form,
};
use crate::clock::Moment;
use crate::gate::{Gate, Looked, Malformed, Verdict};
use crate::iso8583::{Composer, Dialect, NoReply, Slot, View, compose};
use crate::limits::LimitIx;
use crate::reason::Reason;
use crate::traffic::Class;
use crate::wire::Header;

/// A message at hand, from a session.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) session: SessionId,
    pub(super) frame: &'a [u8],
    pub(super) view: &'a View<'a>,
    pub(super) now: Moment,
}

/// What was decided on a message that goes to the host.
#[derive(Clone, Copy)]
struct Admission {
    class: Class,
    pass: Pass,
    /// The draft is its local answer.
    may_answer: bool,
}

/// A forwarded message whose answer is awaited. The host's answer needs nothing of it behind
/// `expected`, which keeps the rest out of its way.
#[derive(Debug, Default)]
#[repr(C)]
struct Waiting {
    session: SessionId,
    received: Moment,
    sequence: Sequence,
    class: Class,
    /// The connection that it was written to is gone.
    lost: bool,
    /// Somebody expects the answer; a notification is only acknowledged, if at all.
    expected: bool,
    prepared: Prepared,
}

/// With what is before it in its entry it fills four cache lines, all of which a message touches.
const _: () = assert!(size_of::<Waiting>() <= 72, "one more would begin a fifth");

/// A local answer, whole but for Field 39. Only answerable requests have one.
#[derive(Default)]
struct Prepared {
    frame: Vec<u8>,
    slot: Option<Slot>,
}

/// Its length: what it echoes may be a card number.
impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({} bytes)", self.frame.len())
    }
}

#[derive(Debug)]
pub(super) struct Conversation {
    deadline: Duration,
    answer_timeout: Duration,
    header: Header,
    composer: Composer,
    pub(super) gate: Gate,
    identifier: Identifier,
    pub(super) sessions: Sessions,
    /// Answerable requests in flight.
    requests: Inflight<Waiting>,
    /// Everything else in flight.
    others: Inflight<Waiting>,
    /// Requests that were answered at their deadline.
    late: Inflight<()>,
    /// Messages that the host originated.
    from_host: Inflight<ConnectionId>,
    /// The local answer to the request at hand; swapped into its entry when it is forwarded.
    draft: Prepared,
}

impl Conversation {
    pub(super) fn new(
        settings: &Settings,
        dialect: Arc<Dialect>,
        header: Header,
        gate: Gate,
        seed: u64,
    ) -> Self {
        let entries_max = settings.inflight_max;
        Self {
            deadline: settings.deadline,
            answer_timeout: settings.answer_timeout,
            header,
            identifier: Identifier::new(&settings.match_fields, &dialect, seed),
            composer: Composer::new(dialect, gate.settings().echo),
            gate,
            sessions: Sessions::default(),
            requests: Inflight::new(entries_max),
            others: Inflight::new(entries_max),
            late: Inflight::new(entries_max),
            from_host: Inflight::new(entries_max),
            draft: Prepared::default(),
        }
    }

    pub(super) const fn in_flight(&self) -> (usize, usize) {
        (self.requests.len(), self.others.len())
    }

    /// A message without an MTI: nothing is known of it, so nothing may be decided about it.
    pub(super) fn unreadable(
        &mut self,
        session: SessionId,
        frame: &[u8],
        unread: Unread,
        sink: &mut impl Sink,
    ) -> Flow {
        let flow = self.pass_on(session, frame, Pass::Unread, sink);
        if flow == Flow::Taken {
            sink.record(Outcome::Unreadable(Side::Network, unread));
        }
        flow
    }

    /// The network answers a message of the host's own.
    pub(super) fn answer_to_host(&mut self, message: &Message<'_>, sink: &mut impl Sink) -> Flow {
        let Message { session, frame, view, .. } = *message;
        if sink.room(frame.len()) == Room::Full {
            return Flow::Wait;
        }
        record_form(Side::Network, view, sink);
        let answer = self.identifier.of_answer(view);
        if let Choice::One(_, place) = Search::of(&answer).among(0, &self.from_host).choice()
            && let Some(connection) = self.from_host.remove(place)
            && sink.give_back(*connection, frame)
        {
            self.sessions.spoke(session);
            sink.record(Outcome::Returned);
            return Flow::Taken;
        }
        self.pass_on(session, frame, Pass::Protected, sink)
    }

    /// Queues what is neither limited nor answered.
    fn pass_on(
        &mut self,
        session: SessionId,
        frame: &[u8],
        pass: Pass,
        sink: &mut impl Sink,
    ) -> Flow {
        let class = Class::Protected;
        match sink.room(frame.len()) {
            Room::Full => return Flow::Wait,
            Room::Down => sink.record(Outcome::Unsent { class }),
            Room::Tight | Room::Open => match sink.forward(frame) {
                Some(_) => sink.record(Outcome::Forwarded { class, pass }),
                None => sink.record(Outcome::Uncarried { class }),
            },
        }
        self.sessions.spoke(session);
        Flow::Taken
    }

    /// A request, an advice, or whatever else the network originates.
    pub(super) fn request(
        &mut self,
        message: &Message<'_>,
        looked: Option<Looked>,
        sink: &mut impl Sink,
    ) -> Flow {
        let Message { session, frame, view, .. } = *message;
        let is_first_look = looked.is_none();
        let mut looked = looked.unwrap_or_else(|| self.gate.look(view));
        let may_answer = self.gate.may_answer(view)
            && self.prepare(frame, view)
            && sink.carries(&self.draft.frame);
        if is_first_look {
            self.gate.fetch(&looked);
        }
        let room = sink.room(frame.len());
        if room == Room::Full && !may_answer {
            return Flow::Wait;
        }
        self.sessions.spoke(session);
        record_form(Side::Network, view, sink);
        if let Some(card) = looked.classified.card {
            sink.record(Outcome::CardRead(card));
        }
        let class = looked.classified.traffic.class;
        if view.fault().is_none() {
            self.decide(message, &mut looked, room, may_answer, sink);
            return Flow::Taken;
        }
        match self.gate.settings().malformed {
            Malformed::Answer if may_answer => {
                self.refuse(session, class, Reason::Format, None, sink);
            }
            // Of what may not be answered a session that is closed would lose the host's answer.
            Malformed::Close if view.mti().answerable() => return Flow::Close,
            _ => self.decide(message, &mut looked, room, may_answer, sink),
        }
        Flow::Taken
    }

    /// Whether a message goes to the host, or what its sender hears instead.
    fn decide(
        &mut self,
        message: &Message<'_>,
        looked: &mut Looked,
        room: Room,
        may_answer: bool,
        sink: &mut impl Sink,
    ) {
        let (session, class) = (message.session, looked.classified.traffic.class);
        let crowded = room != Room::Open || self.requests.is_full();
        match (room, may_answer) {
            (Room::Down, false) => sink.record(Outcome::Unsent { class }),
            (Room::Down, true) => self.refuse(session, class, Reason::Unavailable, None, sink),
            (_, true) if crowded => self.refuse(session, class, Reason::Overload, None, sink),
            _ => {
                let verdict = self.gate.admit(looked, may_answer, message.now);
                let traffic = &looked.classified.traffic;
                // Behind a wrong length the place of a merchant may hold digits of a card, and
                // whoever is told remembers and shows them.
                if message.view.fault().is_none() {
                    sink.decided(traffic, &verdict);
                }
                record_verdict(&verdict, sink);
                match verdict.refused_by {
                    limit @ Some(_) if may_answer => {
                        self.refuse(session, class, Reason::Limit, limit, sink);
                    }
                    refused_by => {
                        let enforceable = refused_by.is_none() && room == Room::Open;
                        let pass = Pass::of(traffic, enforceable);
                        self.forward(message, Admission { class, pass, may_answer }, sink);
                    }
                }
            }
        }
    }

    /// Builds the local answer of the request at hand; false when this dialect cannot express it.
    fn prepare(&mut self, frame: &[u8], view: &View<'_>) -> bool {
        let Self { draft, composer, header, .. } = self;
        let spliced = |answer: &mut Vec<u8>| composer.compose(view, answer);
        draft.slot = answer_behind(*header, frame, &mut draft.frame, spliced);
        draft.slot.is_some()
    }

    /// Writes the local answer to a request into `answer`, Field 39 left open; `None` when this
    /// dialect cannot express it.
    pub(super) fn compose(
        &self,
        frame: &[u8],
        view: &View<'_>,
        answer: &mut Vec<u8>,
    ) -> Option<Slot> {
        let echo = &self.gate.settings().echo;
        answer_behind(self.header, frame, answer, |answer| compose(view, echo, answer))
    }

    /// Answers the request at hand with the prepared answer. The host never sees it.
    fn refuse(
        &mut self,
        session: SessionId,
        class: Class,
        reason: Reason,
        limit: Option<LimitIx>,
        sink: &mut impl Sink,
    ) {
        let waited = Duration::ZERO;
        if speak(&mut self.draft, session, reason, &self.gate, sink) {
            sink.record(Outcome::Answered { class, reason, limit, waited });
        } else {
            sink.record(Outcome::Unheard { class, reason });
        }
    }

    /// Queues a message for the host and keeps in mind who asked.
    fn forward(&mut self, message: &Message<'_>, admission: Admission, sink: &mut impl Sink) {
        let Message { session, frame, view, now } = *message;
        let Admission { class, pass, may_answer } = admission;
        let Some(sequence) = sink.forward(frame) else {
            return if may_answer {
                self.refuse(session, class, Reason::Malfunction, None, sink);
            } else {
                sink.record(Outcome::Uncarried { class });
            };
        };
        sink.record(Outcome::Forwarded { class, pass });
        let Some(identity) = self.identifier.of_request(view) else { return };
        let waiting = if may_answer {
            let waiting = self.requests.insert(identity, now.after(self.deadline));
            std::mem::swap(&mut waiting.prepared, &mut self.draft);
            waiting
        } else {
            make_room(&mut self.others, &mut self.sessions, sink);
            self.others.insert(identity, now.after(self.answer_timeout))
        };
        waiting.session = session;
        waiting.sequence = sequence;
        waiting.received = now;
        waiting.class = class;
        waiting.lost = false;
        waiting.expected = view.mti().expects_answer();
        if waiting.expected {
            self.sessions.owe(session);
        }
    }

    pub(super) fn tick(&mut self, now: Moment, sink: &mut impl Sink) {
        while let Some(place) = self.requests.due(now) {
            self.answer_at_deadline(place, now, sink);
        }
        while let Some(place) = self.others.due(now) {
            let Some(waiting) = self.others.remove(place) else { return };
            if waiting.expected {
                self.sessions.settle(waiting.session);
                sink.record(Outcome::Unanswered { class: waiting.class });
            }
        }
        while let Some(place) = self.late.due(now) {
            self.late.remove(place);
        }
        while let Some(place) = self.from_host.due(now) {
            self.from_host.remove(place);
        }
    }

    fn answer_at_deadline(&mut self, place: Place, now: Moment, sink: &mut impl Sink) {
        let identity = self.requests.identity(place).unwrap_or_default();
        let Some(waiting) = self.requests.remove(place) else { return };
        self.sessions.settle(waiting.session);
        // A request that was still queued must not reach the host after it was answered: the host
        // would put a hold on money for a sale that was declined.
        let reason = match (sink.withdraw(waiting.sequence), waiting.lost) {
            (true, _) => Reason::Overload,
            (false, true) => Reason::Lost,
            (false, false) => Reason::Deadline,
        };
        answer_waiting(waiting, reason, &self.gate, now, sink);
        if reason.forwarded() {
            forget_oldest_if_full(&mut self.late);
            self.late.insert(identity, now.after(self.answer_timeout));
        }
    }
}

/// An answer behind the header that leads it back to where the frame came from.
#[inline]
fn answer_behind(
    header: Header,
    frame: &[u8],
    answer: &mut Vec<u8>,
    compose: impl FnOnce(&mut Vec<u8>) -> Result<Slot, NoReply>,
) -> Option<Slot> {
    answer.clear();
    header.answer(frame, answer);
    let slot = compose(answer);
    header.seal(answer);
    slot.ok()
}

/// Sends the prepared answer of an entry that was just removed.
fn answer_waiting(
    waiting: &mut Waiting,
    reason: Reason,
    gate: &Gate,
    now: Moment,
    sink: &mut impl Sink,
) {
    let class = waiting.class;
    if speak(&mut waiting.prepared, waiting.session, reason, gate, sink) {
        let waited = now.since(waiting.received);
        sink.record(Outcome::Answered { class, reason, limit: None, waited });
    } else {
        sink.record(Outcome::Unheard { class, reason });
    }
}

/// Writes the code for `reason` into a prepared answer and sends it.
fn speak(
    prepared: &mut Prepared,
    session: SessionId,
    reason: Reason,
    gate: &Gate,
    sink: &mut impl Sink,
) -> bool {
    let code = gate.settings().codes.get(reason);
    let written = prepared.slot.is_some_and(|slot| slot.write(&mut prepared.frame, code));
    written && sink.deliver(session, &prepared.frame)
}

fn record_verdict(verdict: &Verdict, sink: &mut impl Sink) {
    if !verdict.shadowed.is_empty() {
        sink.record(Outcome::Shadowed(verdict.shadowed));
    }
    if !verdict.forgiven.is_empty() {
        sink.record(Outcome::Forgiven(verdict.forgiven));
    }
}

/// Protected messages always go; what a full register forgets is only where an answer belongs.
fn make_room(others: &mut Inflight<Waiting>, sessions: &mut Sessions, sink: &mut impl Sink) {
    if others.is_full()
        && let Some(oldest) = others.oldest()
        && let Some(waiting) = others.remove(oldest)
    {
        if waiting.expected {
            sessions.settle(waiting.session);
        }
        sink.record(Outcome::Forgotten);
    }
}

fn forget_oldest_if_full<T: Default>(register: &mut Inflight<T>) {
    if register.is_full()
        && let Some(oldest) = register.oldest()
    {
        register.remove(oldest);
    }
}

//! What the host says: answers, and messages of its own.

use super::{Choice, Conversation, candidates, choose, forget_oldest_if_full};
use crate::clock::Moment;
use crate::exchange::{ConnectionId, Outcome, Sink, Stray, Trace};
use crate::iso8583::View;

impl Conversation {
    /// The host answers.
    pub(in crate::exchange) fn answer(
        &mut self,
        frame: &[u8],
        view: &View<'_>,
        now: Moment,
        sink: &mut impl Sink,
    ) {
        if !sink.carries(frame) {
            // As good as none: who asked still waits, and hears at the deadline.
            return sink.record(Outcome::Stray(Stray::Undeliverable, Trace::of(view)));
        }
        let answer = self.identifier.of_answer(view);
        // Those that were answered at their deadline are candidates like the others: what is meant
        // for one of them must not go to a request that merely looks like it.
        let all = candidates(0, &self.requests, &answer)
            .chain(candidates(1, &self.others, &answer))
            .chain(candidates(2, &self.late, &answer));
        let found = match choose(&answer, all) {
            Choice::One(0, place) => self.requests.remove(place).ok_or(Stray::Unmatched),
            Choice::One(1, place) => self.others.remove(place).ok_or(Stray::Unmatched),
            Choice::One(_, place) => {
                self.late.remove(place);
                Err(Stray::Late)
            }
            Choice::Ambiguous => Err(Stray::Ambiguous),
            Choice::None => Err(Stray::Unmatched),
        };
        let waiting = match found {
            Ok(waiting) => waiting,
            // It is never delivered.
            Err(stray) => return sink.record(Outcome::Stray(stray, Trace::of(view))),
        };
        let session = waiting.session;
        if sink.deliver(session, frame) {
            let waited = now.since(waiting.received);
            sink.record(Outcome::Delivered { class: waiting.class, waited });
        } else {
            sink.record(Outcome::Stray(Stray::Undeliverable, Trace::of(view)));
        }
        if waiting.expected {
            self.sessions.settle(session);
        }
    }

    /// The host has something to say of its own: the session that spoke last is to hear it.
    pub(in crate::exchange) fn host_originated(
        &mut self,
        connection: ConnectionId,
        frame: &[u8],
        view: &View<'_>,
        now: Moment,
        sink: &mut impl Sink,
    ) {
        let Some(session) = self.sessions.most_recent() else {
            return sink.record(Outcome::Stray(Stray::NoSession, Trace::of(view)));
        };
        if !sink.deliver(session, frame) {
            return sink.record(Outcome::Stray(Stray::Undeliverable, Trace::of(view)));
        }
        sink.record(Outcome::HostOriginated);
        if let Some(identity) = self.identifier.of_request(view) {
            forget_oldest_if_full(&mut self.from_host);
            *self.from_host.insert(identity, now.after(self.answer_timeout)) = connection;
        }
    }
}

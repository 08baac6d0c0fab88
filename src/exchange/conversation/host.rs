//! What the host says: answers, and messages of its own.

use super::{Choice, Conversation, Search, forget_oldest_if_full};
use crate::clock::Moment;
use crate::exchange::correlate::{of_kind, only_one_of_kind};
use crate::exchange::identity::Answer;
use crate::exchange::{ConnectionId, Outcome, Sink, Stray, Trace};
use crate::iso8583::View;

/// The field that an answer is found by, first of all.
const STAN: u8 = 11;

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
        let search = Search::of(&answer).among(0, &self.requests).among(1, &self.others);
        let choice = match search.among(2, &self.late).choice() {
            Choice::None if ends_before_its_stan(view) => self.only_one_of_kind(&answer),
            choice => choice,
        };
        let found = match choice {
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

    fn only_one_of_kind(&self, answer: &Answer<'_>) -> Choice {
        let all = of_kind(0, &self.requests, answer)
            .chain(of_kind(1, &self.others, answer))
            .chain(of_kind(2, &self.late, answer));
        only_one_of_kind(answer, all)
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

/// Whether something of an answer could be read, and a fault lies before what would tell whose it is.
fn ends_before_its_stan(view: &View<'_>) -> bool {
    !view.fields().is_empty() && view.fault().is_some_and(|fault| fault.field <= STAN)
}

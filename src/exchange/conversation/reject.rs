//! Messages that come back rejected for their form: whoever receives one has sent the message in it.
//!
//! A reject is neither a request nor an answer. It ends the wait for the message that it names, so
//! that nobody waits out a deadline for an answer that cannot come, and no limit sees it.

use super::{Choice, Conversation, Message, Search, answer_waiting, forget_oldest_if_full};
use crate::clock::Moment;
use crate::exchange::{Flow, Outcome, Pass, Room, Side, Sink, Stray, Trace, record_form};
use crate::iso8583::View;
use crate::reason::Reason;
use crate::wire::RejectCode;

impl Conversation {
    /// The host's side rejects a message of the network's. A request is answered here; what tollgate
    /// may not answer has the reject itself for its answer.
    pub(in crate::exchange) fn rejected_by_host(
        &mut self,
        frame: &[u8],
        view: &View<'_>,
        code: RejectCode,
        now: Moment,
        sink: &mut impl Sink,
    ) {
        sink.record(Outcome::Rejected(Side::Host, code, Trace::of(view)));
        let choice = self.identifier.of_returned(view).map_or(Choice::None, |sent| {
            let search = Search::of(&sent).among(0, &self.requests).among(1, &self.others);
            search.among(2, &self.late).choice()
        });
        match choice {
            Choice::One(0, place) => {
                let identity = self.requests.identity(place).unwrap_or_default();
                let Some(waiting) = self.requests.remove(place) else { return };
                self.sessions.settle(waiting.session);
                answer_waiting(waiting, Reason::Format, &self.gate, now, sink);
                // Should the host answer it after all, that is too late.
                forget_oldest_if_full(&mut self.late);
                self.late.insert(identity, now.after(self.answer_timeout));
            }
            Choice::One(1, place) => {
                let Some(waiting) = self.others.remove(place) else { return };
                if !sink.deliver(waiting.session, frame) {
                    sink.record(Outcome::Stray(Stray::Undeliverable, Trace::of(view)));
                }
                if waiting.expected {
                    self.sessions.settle(waiting.session);
                }
            }
            Choice::One(_, place) => {
                self.late.remove(place);
            }
            Choice::Ambiguous => sink.record(Outcome::Stray(Stray::Ambiguous, Trace::of(view))),
            Choice::None => sink.record(Outcome::Stray(Stray::Unmatched, Trace::of(view))),
        }
    }

    /// The network rejects a message of the host's: an answer that it gave, or something of its own,
    /// which then waits no longer.
    pub(in crate::exchange) fn rejected_by_network(
        &mut self,
        message: &Message<'_>,
        code: RejectCode,
        sink: &mut impl Sink,
    ) -> Flow {
        let Message { session, frame, view, .. } = *message;
        if sink.room(frame.len()) == Room::Full {
            return Flow::Wait;
        }
        record_form(Side::Network, view, sink);
        sink.record(Outcome::Rejected(Side::Network, code, Trace::of(view)));
        if let Some(sent) = self.identifier.of_returned(view)
            && let Choice::One(_, place) = Search::of(&sent).among(0, &self.from_host).choice()
            && let Some(connection) = self.from_host.remove(place)
            && sink.give_back(*connection, frame)
        {
            self.sessions.spoke(session);
            sink.record(Outcome::Returned);
            return Flow::Taken;
        }
        self.pass_on(session, frame, Pass::Protected, sink)
    }
}

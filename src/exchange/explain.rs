//! What would become of one message, and why, for an operator. Nothing is sent or spent, and nothing
//! of the message is kept.

use super::conversation::Conversation;
use super::{Exchange, Pass, Unread};
use crate::clock::Moment;
use crate::gate::{Explanation, Malformed};
use crate::iso8583::{Fault, LocalCode, Mti, Spans, View};
use crate::limits::{LimitIx, Standing};
use crate::reason::Reason;
use crate::traffic::Traffic;
use crate::wire::RejectCode;

/// A frame from a session, explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Explained {
    /// It has no header or no MTI: it is forwarded unchanged, and no limit applies.
    Unreadable(Unread),
    /// A message of this side came back with a reject header: it is never limited.
    Rejected(Mti, RejectCode),
    /// An answer to a message that the host originated: it is never limited.
    Answer(Mti),
    /// A message of the network's own.
    Request(Box<Request>),
}

/// A message of the network's own, explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its type.
    pub mti: Mti,
    /// Where it breaks, if it does.
    pub fault: Option<Fault>,
    /// Its dialect, or the link's framing, can hold the answer to it.
    pub can_be_answered: bool,
    /// What the gate makes of it.
    pub gate: Explanation,
    /// What becomes of it while the host takes messages.
    pub fate: Fate,
}

/// What becomes of a message while the host takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes to the host, unchanged.
    Forwarded(Pass),
    /// It is answered here, and the host never sees it.
    Answered {
        /// Why.
        reason: Reason,
        /// The limit, when that is the reason.
        limit: Option<LimitIx>,
        /// What Field 39 says.
        code: LocalCode,
    },
    /// It is dropped, and its session closed.
    Closed,
}

impl Exchange {
    /// What would become of a frame from a session now, with a host that takes messages.
    /// `carries` says whether the answer can be written in the link's framing; `correct` may put
    /// what it knows better into the standings before they are judged.
    pub fn explain(
        &self,
        frame: &[u8],
        now: Moment,
        carries: impl Fn(&[u8]) -> bool,
        correct: impl FnOnce(&Traffic, &mut [(LimitIx, Standing)]),
    ) -> Explained {
        let Ok(opened) = self.header.open(frame) else {
            return Explained::Unreadable(Unread::Header);
        };
        let mut spans = Spans::default();
        let Ok(view) = View::parse(&self.dialect, opened.body, &mut spans) else {
            return Explained::Unreadable(Unread::Mti);
        };
        let mti = view.mti();
        match opened.rejected {
            Some(code) => Explained::Rejected(mti, code),
            None if mti.is_answer() => Explained::Answer(mti),
            None => {
                let request = self.conversation.explain(frame, &view, now, carries, correct);
                Explained::Request(Box::new(request))
            }
        }
    }
}

impl Conversation {
    fn explain(
        &self,
        frame: &[u8],
        view: &View<'_>,
        now: Moment,
        carries: impl Fn(&[u8]) -> bool,
        correct: impl FnOnce(&Traffic, &mut [(LimitIx, Standing)]),
    ) -> Request {
        let mut answer = Vec::new();
        let can_be_answered = self.compose(frame, view, &mut answer).is_some() && carries(&answer);
        let gate = self.gate.explain(view, can_be_answered, now, correct);
        let may_answer = gate.silence.is_none() && can_be_answered;
        let answered = |reason, limit| {
            let code = self.gate.settings().codes.get(reason);
            Fate::Answered { reason, limit, code }
        };
        let fate = match (view.fault(), self.gate.settings().malformed) {
            (Some(_), Malformed::Answer) if may_answer => answered(Reason::Format, None),
            (Some(_), Malformed::Close) if view.mti().answerable() => Fate::Closed,
            _ => match gate.verdict.refused_by {
                limit @ Some(_) if may_answer => answered(Reason::Limit, limit),
                refused_by => {
                    Fate::Forwarded(Pass::of(&gate.classified.traffic, refused_by.is_none()))
                }
            },
        };
        Request { mti: view.mti(), fault: view.fault(), can_be_answered, gate, fate }
    }
}

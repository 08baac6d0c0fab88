//! What a network counts of its messages.

use std::time::Duration;

use super::{Kind, Usage};
use crate::peers::Latencies;

/// What became of all messages so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By flow, in the order of the settings.
    pub flows: Vec<FlowTally>,
    /// How long the host's answers took, from the moment at which the message was to be sent.
    /// Messages that had to be repeated are left out.
    pub host: Latencies,
    /// The same of refusals that came at once.
    pub refused: Latencies,
    /// The same of refusals that came after a wait.
    pub overdue: Latencies,
    /// Messages that were sent again under their own number, since nobody answered.
    pub repeats: u64,
    /// Messages that tried again, under a number of their own, what had got a 91.
    pub retries: u64,
    /// Answers to nothing that was waiting: one more than a message was sent, or somebody else's.
    pub unmatched: u64,
    /// Messages for which no connection was left.
    pub unsent: u64,
    /// Connections that the other side closed.
    pub closed: u64,
    /// What sending and counting cost, of the time that is counted.
    pub usage: Usage,
}

/// What became of one flow's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTally {
    kinds: [KindTally; Kind::ALL.len()],
}

/// What became of the messages of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindTally {
    /// Sent, repeats not counted.
    pub sent: u64,
    /// Answered with an approval.
    pub approved: u64,
    /// Answered with another code than an approval or 91.
    pub declined: u64,
    /// Answered without a code.
    pub other: u64,
    /// Answered 91 at once.
    pub refused: u64,
    /// Answered 91 after a wait.
    pub overdue: u64,
}

impl KindTally {
    /// Answered, by whomever.
    pub const fn answered(&self) -> u64 {
        self.approved + self.declined + self.other + self.refused + self.overdue
    }

    /// Not answered, or not yet.
    pub const fn unanswered(&self) -> u64 {
        self.sent.saturating_sub(self.answered())
    }

    fn add(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            approved: self.approved + other.approved,
            declined: self.declined + other.declined,
            other: self.other + other.other,
            refused: self.refused + other.refused,
            overdue: self.overdue + other.overdue,
        }
    }
}

impl FlowTally {
    /// Of one kind.
    pub fn of(&self, kind: Kind) -> KindTally {
        self.kinds.get(kind as usize).copied().unwrap_or_default()
    }

    /// Of all kinds that `included` picks.
    pub fn sum(&self, included: impl Fn(Kind) -> bool) -> KindTally {
        let picked = Kind::ALL.into_iter().filter(|kind| included(*kind));
        picked.fold(KindTally::default(), |sum, kind| sum.add(self.of(kind)))
    }
}

impl Tally {
    pub(super) fn new(flows: usize) -> Self {
        Self { flows: vec![FlowTally::default(); flows], ..Self::default() }
    }

    /// Over all flows, of all kinds that `included` picks.
    pub fn sum(&self, included: impl Fn(Kind) -> bool) -> KindTally {
        let flows = self.flows.iter().map(|flow| flow.sum(&included));
        flows.fold(KindTally::default(), KindTally::add)
    }

    fn kind(&mut self, flow: usize, kind: Kind) -> Option<&mut KindTally> {
        self.flows.get_mut(flow)?.kinds.get_mut(kind as usize)
    }

    pub(super) fn sent(&mut self, flow: usize, kind: Kind) {
        if let Some(tally) = self.kind(flow, kind) {
            tally.sent += 1;
        }
    }

    pub(super) fn answered(&mut self, flow: usize, kind: Kind, answer: Answer, took: Took) {
        if let Some(tally) = self.kind(flow, kind) {
            let count = match answer {
                Answer::Approved => &mut tally.approved,
                Answer::Declined => &mut tally.declined,
                Answer::Other => &mut tally.other,
                Answer::Refused => &mut tally.refused,
                Answer::Overdue => &mut tally.overdue,
            };
            *count += 1;
        }
        let Took::Latency(latency) = took else { return };
        match answer {
            Answer::Approved | Answer::Declined | Answer::Other => self.host.record(latency),
            Answer::Refused => self.refused.record(latency),
            Answer::Overdue => self.overdue.record(latency),
        }
    }
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Approved,
    Declined,
    Other,
    Refused,
    Overdue,
}

/// How long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Took {
    Latency(Duration),
    /// The message had to be repeated: the time says how patient its sender is, and nothing else.
    Repeated,
}

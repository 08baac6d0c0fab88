//! What a link counts: plain atomic words, written by its worker alone and read by whoever scrapes.
//!
//! A labelled lookup costs 40 to 70 ns and a library's histogram piles samples up until it is read,
//! so the path touches neither: each series is a word at a place known at compile time. What the
//! words are called outside is in `metrics`.

use std::time::Duration;

use super::cards::Cards;
use super::lookout::Handout;
use crate::count::{Histogram, Word};
use crate::exchange::{Pass, Stray, Unread};
use crate::iso8583::{FaultKind, MtiPart};
use crate::limits::LIMITS_MAX;
use crate::reason::Reason;
use crate::traffic::Class;

const fn micros<const N: usize>(bounds: [u64; N]) -> [Duration; N] {
    let mut durations = [Duration::ZERO; N];
    let mut at = 0;
    while at < N {
        #[expect(clippy::indexing_slicing, reason = "both arrays have N entries")]
        {
            durations[at] = Duration::from_micros(bounds[at]);
        }
        at += 1;
    }
    durations
}

/// From a message's arrival to its answer: from a local answer to the longest deadline.
pub const RESPONSE_BOUNDS: [Duration; 20] = micros([
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 1_500_000, 1_700_000, 2_000_000, 5_000_000, 10_000_000, 60_000_000,
]);

/// Parse, decision and queueing of one message.
pub const DECISION_BOUNDS: [Duration; 20] = {
    const NANOS: [u64; 20] = [
        50, 100, 150, 200, 300, 400, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 7_500,
        10_000, 20_000, 100_000, 1_000_000, 5_000_000,
    ];
    let mut durations = [Duration::ZERO; 20];
    let mut at = 0;
    while at < NANOS.len() {
        #[expect(clippy::indexing_slicing, reason = "both arrays have 20 entries")]
        {
            durations[at] = Duration::from_nanos(NANOS[at]);
        }
        at += 1;
    }
    durations
};

/// Shares of a full bucket.
pub const BUDGET_BOUNDS: [f64; 9] = [0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0];

/// How much of its buckets the messages of one limit found left.
#[derive(Debug, Default)]
pub struct Budget {
    counts: [Word; BUDGET_BOUNDS.len()],
    sum_millionths: Word,
}

impl Budget {
    /// Counts a bucket of which this share was left, 0 to 1.
    pub(super) fn record(&self, share: f64) {
        let at = BUDGET_BOUNDS.partition_point(|bound| *bound < share);
        if let Some(count) = self.counts.get(at) {
            count.count();
            self.sum_millionths.add((share * 1e6) as u64);
        }
    }

    /// How many shares lay at or below each bound, not cumulative, and all of them added up.
    pub fn read(&self) -> ([u64; BUDGET_BOUNDS.len()], f64) {
        (self.counts.each_ref().map(Word::get), self.sum_millionths.get() as f64 / 1e6)
    }
}

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The host.
    Host,
    /// tollgate itself.
    Proxy,
}

const CLASSES: usize = Class::ALL.len();

/// One link's counts.
#[derive(Debug)]
pub struct LinkCounters {
    /// Messages of the network that were queued for the host, by class and by why.
    pub forwarded: [[Word; Pass::ALL.len()]; CLASSES],
    /// Local answers, by class and reason.
    pub answered: [[Word; Reason::ALL.len()]; CLASSES],
    /// Local answers that reached nobody, by reason.
    pub unheard: [Word; Reason::ALL.len()],
    /// Requests that a limit refused, by limit.
    pub refused_by: [Word; LIMITS_MAX],
    /// Requests that a limit in shadow mode would have refused, by limit.
    pub shadowed_by: [Word; LIMITS_MAX],
    /// Charges of protected messages that were forgiven, by limit.
    pub forgiven_by: [Word; LIMITS_MAX],
    /// What was left of the buckets that messages met, by limit; one message in sixteen is looked at.
    pub budgets: [Budget; LIMITS_MAX],
    /// By whom the limits were met most.
    pub met: Handout,
    /// The host's answers that reached the session that asked, by class.
    pub delivered: [Word; CLASSES],
    /// Messages of the host's own that reached a session, and the network's answers to them.
    pub host_originated: Word,
    /// The network's answers to such messages.
    pub returned: Word,
    /// Faults in messages of the network, by kind.
    pub faults: [Word; FaultKind::ALL.len()],
    /// Faults in messages of the host, by kind.
    pub host_faults: [Word; FaultKind::ALL.len()],
    /// Messages without a header or an MTI, of the network and of the host.
    pub unreadable: [[Word; Unread::ALL.len()]; 2],
    /// Messages with a digit in their MTI that the standard does not give, of the network and of the
    /// host.
    pub unknown_types: [[Word; MtiPart::ALL.len()]; 2],
    /// Messages that came back rejected for their form, from the network and from the host.
    pub rejected: [Word; 2],
    /// Card numbers in messages of the network.
    pub cards: Cards,
    /// Protected messages that met no connection to the host: silence.
    pub unsent: [Word; CLASSES],
    /// Protected messages that cannot be written in the framing of the host.
    pub uncarried: [Word; CLASSES],
    /// Protected messages that the host did not answer within `answer_timeout`.
    pub unanswered: [Word; CLASSES],
    /// Protected messages in flight that were forgotten for newer ones.
    pub forgotten: Word,
    /// Answers that reached nobody, by why; those that approve, and the others.
    pub strays: [[Word; 2]; Stray::ALL.len()],
    /// Keepalives, of the network and of the host.
    pub keepalives: [Word; 2],
    /// Sessions closed for a framing fault, slowness, or silence.
    pub sessions_closed: [Word; Closed::ALL.len()],
    /// Connections that were refused: source not allowed, or too many.
    pub refused_connections: [Word; 2],
    /// Connections to the host that were opened after the first.
    pub reconnects: Word,
    /// Sessions that are open.
    pub sessions: Word,
    /// Connections to the host that are up.
    pub connections_up: Word,
    /// Answerable messages in flight, and all others.
    pub in_flight: [Word; 2],
    /// Bytes queued for the host.
    pub queued_bytes: Word,
    /// From arrival to answer, by who answered.
    pub responses: [Histogram<20>; 2],
    /// Parse, decision and queueing of one message; one batch in sixteen is timed.
    pub decisions: Histogram<20>,
}

impl Default for LinkCounters {
    fn default() -> Self {
        Self {
            forwarded: Default::default(),
            answered: Default::default(),
            unheard: Default::default(),
            refused_by: Default::default(),
            shadowed_by: Default::default(),
            forgiven_by: Default::default(),
            budgets: Default::default(),
            met: Handout::default(),
            delivered: Default::default(),
            host_originated: Word::default(),
            returned: Word::default(),
            faults: Default::default(),
            host_faults: Default::default(),
            unreadable: Default::default(),
            unknown_types: Default::default(),
            rejected: Default::default(),
            cards: Cards::default(),
            unsent: Default::default(),
            uncarried: Default::default(),
            unanswered: Default::default(),
            forgotten: Word::default(),
            strays: Default::default(),
            keepalives: Default::default(),
            sessions_closed: Default::default(),
            refused_connections: Default::default(),
            reconnects: Word::default(),
            sessions: Word::default(),
            connections_up: Word::default(),
            in_flight: Default::default(),
            queued_bytes: Word::default(),
            responses: std::array::from_fn(|_| Histogram::new(&RESPONSE_BOUNDS)),
            decisions: Histogram::new(&DECISION_BOUNDS),
        }
    }
}

/// Why tollgate closed a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Its lengths cannot be believed.
    Framing,
    /// A message of its cannot be read to its end, where the link wants no such session.
    Malformed,
    /// A frame begun was not whole in time.
    FrameTimeout,
    /// It did not take its answers in time, or its system acknowledges nothing any more.
    WriteStall,
    /// It sent nothing for `idle_timeout`.
    Idle,
    /// No connection to the host is up, and the link is to show it.
    HostDown,
}

impl Closed {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Framing,
        Self::Malformed,
        Self::FrameTimeout,
        Self::WriteStall,
        Self::Idle,
        Self::HostDown,
    ];

    /// What a time that is up says to an operator.
    pub(super) const fn time_is_up(self) -> &'static str {
        match self {
            Self::FrameTimeout => {
                "a frame was begun and not finished within frame_timeout: is the framing right?"
            }
            Self::WriteStall => "it took no bytes within frame_timeout",
            Self::Idle => "it sent nothing within idle_timeout",
            Self::Framing | Self::Malformed | Self::HostDown => "its time is up",
        }
    }

    /// The name in logs and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Framing => "framing",
            Self::Malformed => "malformed",
            Self::FrameTimeout => "frame_timeout",
            Self::WriteStall => "write_stall",
            Self::Idle => "idle",
            Self::HostDown => "host_down",
        }
    }
}

//! One process: a node, its own clock, and the time in which it is stopped.

use tollgate::clock::Moment;

use crate::cluster::node::{Node, PushOf, ReplyOf};

/// A process among all that ever ran: the how-manieth of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) place: usize,
    pub(crate) number: u32,
}

/// What a process is given to do.
#[derive(Debug)]
pub(crate) enum Deed<N: Node> {
    Decide(Request),
    /// The timer that was set for this moment rings.
    Turn(Moment),
    Answer(u64, ReplyOf<N>),
    Fail(u64),
    Hear(PushOf<N>),
}

/// One request that a node has to decide on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// By its place among the sources.
    pub(crate) source: usize,
    pub(crate) arrived: Moment,
    /// Whether the ideal admits it.
    pub(crate) ideal: bool,
}

/// A process at work.
#[derive(Debug)]
pub(crate) struct Process<N: Node> {
    pub(crate) node: N,
    pub(crate) number: u32,
    pub(crate) clock: OwnClock,
    /// It takes requests.
    pub(crate) is_open: bool,
    /// It has said its last words.
    pub(crate) has_left: bool,
    pub(crate) is_cut_off: bool,
    /// When its timer rings.
    pub(crate) armed: Option<Moment>,
    /// While it is stopped: what waits for it.
    pub(crate) backlog: Option<Vec<Deed<N>>>,
    /// Tokens that it took from each bucket of each limit, and when the last.
    pub(crate) taken: Vec<Vec<(u64, Moment)>>,
}

/// A monotonic clock that starts somewhere near the start of its process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnClock {
    started: Moment,
    /// What it showed then.
    showed: Moment,
}

impl OwnClock {
    pub(crate) const fn new(started: Moment, showed: Moment) -> Self {
        Self { started, showed }
    }

    pub(crate) fn shows(self, now: Moment) -> Moment {
        self.showed.after(now.since(self.started))
    }

    /// When it shows this.
    pub(crate) fn when(self, shown: Moment) -> Moment {
        self.started.after(shown.since(self.showed))
    }
}

impl<N: Node> Process<N> {
    pub(crate) const fn new(node: N, number: u32, clock: OwnClock) -> Self {
        Self {
            node,
            number,
            clock,
            is_open: false,
            has_left: false,
            is_cut_off: false,
            armed: None,
            backlog: None,
            taken: Vec::new(),
        }
    }
}

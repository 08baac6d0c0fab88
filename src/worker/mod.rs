//! A worker: one thread with its links, and nothing shared on the path of a message.
//!
//! It owns the turn and the order of writing, and it is the sink of each link's exchange. It
//! accepts no connection (the control thread hands it sockets) and serves no scrape (it publishes
//! words that others read).
//!
//! ```text
//!   readable ──> turn: split, decide, queue ──┐
//!   readable ──> turn ────────────────────────┤  all that are ready, then
//!   5 ms ──────> deadlines ───────────────────┴─> flush: one write per buffer
//! ```

mod cards;
mod counters;
mod link;
mod lookout;
mod port;
mod ranking;
mod record;
mod task;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot, watch};

pub use cards::{Cards, Numbers};
pub use counters::{
    BUDGET_BOUNDS, Budget, Closed, DECISION_BOUNDS, LinkCounters, RESPONSE_BOUNDS, Source,
};
pub use lookout::{Handout, MESSAGES_PER_LOOK, Met, SPAN};
pub use ranking::{PLACES, Ranked, Ranking};
pub use record::Throttle;

use crate::clock::Clock;
use crate::exchange::Exchange;
use crate::limits::Policy;
use crate::net::stream::Socket;
use crate::net::{session, upstream};

/// At the end of a drain peers have so long to end their side; it comes after what the drain was
/// given.
pub const PARTING: Duration = Duration::from_millis(300);

/// What a worker needs to know of a link.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// The link's name.
    pub name: String,
    /// How its sessions are read.
    pub session: session::Settings,
    /// How its host is reached.
    pub upstream: upstream::Settings,
    /// While no connection to the host is up, its sessions are closed instead of answered.
    pub close_when_down: bool,
}

/// A link on its way to its worker.
#[derive(Debug)]
pub struct LinkStart {
    /// What the worker needs to know of it.
    pub settings: LinkSettings,
    /// Its conversation.
    pub exchange: Exchange,
    /// Where it counts.
    pub counters: Arc<LinkCounters>,
    /// Where it says whether its host is up.
    pub host_up: watch::Sender<bool>,
}

/// What the control thread tells a worker.
#[derive(Debug)]
pub enum Command {
    /// A session of this link (by its place among the worker's links) was accepted.
    Accept {
        /// The link.
        link: usize,
        /// The connection.
        socket: Socket,
        /// Where it comes from.
        peer: SocketAddr,
        /// Held while the session is open: the listener counts by it.
        seat: tokio::sync::OwnedSemaphorePermit,
    },
    /// Take nothing more, answer what is in flight, write everything, and say what was left.
    Drain {
        /// Not longer than so.
        within: Duration,
        /// What was left then.
        done: oneshot::Sender<Left>,
    },
}

/// What was left when a drain ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Requests without any answer.
    pub requests: usize,
    /// Protected messages that the host has not answered; their senders repeat them.
    pub others: usize,
    /// Links with answers that no peer took.
    pub unwritten: usize,
}

/// A worker on its way to its thread.
#[derive(Debug)]
pub struct Worker {
    /// Its number, from 0.
    pub number: usize,
    /// The process's clock.
    pub clock: Clock,
    /// The limits, shared with the other workers.
    pub policy: Arc<Policy>,
    /// Rung when a key cannot wait for the lease sync's next tick; `None` when nothing is leased.
    pub sync_bell: Option<Arc<Notify>>,
    /// Its links.
    pub links: Vec<LinkStart>,
    /// What the control thread tells it.
    pub commands: mpsc::Receiver<Command>,
}

impl Worker {
    /// Serves its links on this thread until the control thread is gone.
    ///
    /// # Errors
    /// When the thread can have no runtime.
    pub fn run(self) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        tokio::task::LocalSet::new().block_on(&runtime, task::serve(self));
        Ok(())
    }
}

//! A simulated card network: connections to a proxy or a host, a mix of messages at a rate or as
//! fast as they are answered, and what became of each.
//!
//! It sends for a fixed time, waits a while for the answers that are still owed, and ends. What may
//! not be refused and is not answered in time it repeats, as networks do; of what got a 91 it tries
//! a share again, as cardholders do. One thread serves all connections and asks epoll itself, so
//! that a message costs it about what it costs an [`Echo`](super::Echo): what is measured is to be
//! what it sends to. It says what it used, for whoever doubts that.

mod answers;
mod awaited;
mod deck;
mod draw;
mod engine;
mod floor;
mod kind;
mod pace;
mod place;
mod session;
mod tally;
mod template;
mod usage;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use thiserror::Error;

pub use kind::{Kind, Mix, MixError, Shop};
pub use tally::{FlowTally, KindTally, Tally};
pub use template::NoTemplate;
pub use usage::Usage;

use super::poll::{self, Poll};
use crate::clock::Clock;
use crate::iso8583::Dialect;
use crate::wire::{Framing, Header};
use deck::Deck;
use engine::{Engine, locked, order};
use floor::Floor;
use session::Session;
use template::Line;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Things of which one is drawn for each message, by zipf's law: the `n`th is as likely as the first
/// divided by `n` to the power of `skew`.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<T> {
    /// The things, at least one.
    pub of: Vec<T>,
    /// 0 or more; with 0 all are equally likely.
    pub skew: f64,
}

impl<T> Choice<T> {
    /// Each as often as the others.
    pub const fn evenly(of: Vec<T>) -> Self {
        Self { of, skew: 0.0 }
    }
}

/// Messages of one sort: which cards, where, how many.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Whose shops these are, as field 32 has it.
    pub acquirer: String,
    /// The leading digits of its cards, such as `411111`.
    pub cards: Choice<String>,
    /// Where they are used.
    pub shops: Choice<Shop>,
    /// Messages per second; at a window, its weight among the flows.
    pub rate: f64,
    /// Of which kinds they are.
    pub mix: Mix,
}

/// When messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At the rates of the flows, at random moments, whatever becomes of the answers. Latencies
    /// count from the moment at which a message was to be sent.
    Rate,
    /// As soon as less than so many answers are awaited on a connection.
    Window(usize),
}

/// What becomes of requests that got a 91.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// The share that is tried again, 0 to 1, each time.
    pub share: f64,
    /// How long after the answer.
    pub after: Duration,
    /// How often one is tried again at most.
    pub times: u8,
}

impl Retry {
    /// Nobody tries again.
    pub const NEVER: Self = Self { share: 0.0, after: Duration::from_secs(2), times: 3 };
}

/// How a network is set up.
#[derive(Clone, Debug)]
pub struct NetworkSettings {
    /// Where it connects to.
    pub target: SocketAddr,
    /// How frames are cut.
    pub framing: Framing,
    /// What stands before the MTI.
    pub header: Header,
    /// How messages are laid out.
    pub dialect: Arc<Dialect>,
    /// How many connections it opens, 1 or more; each message goes to any of them.
    pub connections: usize,
    /// When messages are sent.
    pub pace: Pace,
    /// What it sends.
    pub flows: Vec<Flow>,
    /// How long it sends before anything is counted.
    pub warmup: Duration,
    /// How long it sends after that.
    pub duration: Duration,
    /// How long it waits for an answer.
    pub patience: Duration,
    /// What may not be refused is sent again after so long without an answer.
    pub repeat_after: Duration,
    /// What becomes of requests that got a 91.
    pub retry: Retry,
    /// A 91 that took less than this was decided on the spot, and one that took longer came in
    /// place of an answer that the host did not give. Half the proxy's deadline tells them apart.
    pub at_once: Duration,
    /// Its luck: equal seeds send equal messages.
    pub seed: u64,
    /// The processor that it keeps to, if any.
    pub cpu: Option<usize>,
}

impl NetworkSettings {
    /// Default of `patience`.
    pub const PATIENCE: Duration = Duration::from_secs(5);
    /// Default of `repeat_after`.
    pub const REPEAT_AFTER: Duration = Duration::from_secs(1);
    /// Default of `at_once`: half the deadline that a proxy has by default.
    pub const AT_ONCE: Duration = Duration::from_millis(800);

    /// One connection without a header, that sends these flows at their rates for ten seconds.
    pub fn new(
        target: SocketAddr,
        framing: Framing,
        dialect: Arc<Dialect>,
        flows: Vec<Flow>,
    ) -> Self {
        Self {
            target,
            framing,
            header: Header::None,
            dialect,
            connections: 1,
            pace: Pace::Rate,
            flows,
            warmup: Duration::ZERO,
            duration: Duration::from_secs(10),
            patience: Self::PATIENCE,
            repeat_after: Self::REPEAT_AFTER,
            retry: Retry::NEVER,
            at_once: Self::AT_ONCE,
            seed: 1,
            cpu: None,
        }
    }
}

/// Why a network cannot start.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// It has no words for what it is to say.
    #[error(transparent)]
    Template(#[from] NoTemplate),
    /// Nobody takes its connections.
    #[error("cannot connect to {target}: {why}")]
    Connect {
        /// Where to.
        target: SocketAddr,
        /// Why not.
        why: io::Error,
    },
    /// The system does not give it what it needs.
    #[error("no {what}: {why}")]
    System {
        /// What.
        what: &'static str,
        /// Why not.
        why: io::Error,
    },
}

/// A network at work. Dropping it ends it before its time.
#[derive(Debug)]
pub struct Network {
    tally: Arc<Mutex<Tally>>,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

/// Ends a network before its time, from any thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<AtomicU8>);

impl Stopper {
    /// It sends nothing new, waits for what is owed and ends; told again, it ends at once.
    pub fn stop(&self) {
        let higher = |order: u8| (order < order::QUIT).then_some(order + 1);
        // It was told to end at once before.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, higher);
    }
}

impl Network {
    /// Opens all connections and begins to send.
    ///
    /// # Errors
    /// When the messages cannot be written, or a connection or a thread cannot be had.
    pub fn start(settings: NetworkSettings) -> Result<Self, NetworkError> {
        let NetworkSettings { ref dialect, framing, header, cpu, .. } = settings;
        let deck = Deck::new(&settings.flows, Line { dialect, framing, header })?;
        let tally = Arc::new(Mutex::new(Tally::new(settings.flows.len())));
        let order = Arc::new(AtomicU8::new(order::RUN));
        let poll = Poll::new().map_err(|why| NetworkError::System { what: "epoll", why })?;
        let streams = connect(&settings)?;
        let floor = Floor::new(settings, deck);
        let sessions = streams.into_iter().enumerate();
        let sessions: Vec<Session> =
            sessions.map(|(number, stream)| Session::new(number, stream, &floor.desk)).collect();
        let watched = sessions.iter().try_for_each(|session| session.watch(&poll));
        watched.map_err(|why| NetworkError::System { what: "epoll", why })?;
        let engine = Engine {
            poll,
            sessions,
            floor,
            clock: Clock::start(),
            tally: Arc::clone(&tally),
            order: Arc::clone(&order),
        };
        let (started, starts) = mpsc::channel();
        let thread = std::thread::Builder::new().name("network".to_owned());
        let thread = thread.spawn(move || {
            let ready = cpu.map_or(Ok(()), poll::pin);
            let is_ready = ready.is_ok();
            // Whoever started this waits for it.
            let _ = started.send(ready);
            if is_ready {
                // Coarser waits only make messages late, and that is counted.
                let _ = poll::wake_promptly();
                engine.run();
            }
        });
        let thread = thread.map_err(|why| NetworkError::System { what: "thread", why })?;
        let network = Self { tally, stopper: Stopper(order), thread: Some(thread) };
        let died = |_| Err(io::Error::other("the network's thread died"));
        let ready = starts.recv().unwrap_or_else(died);
        ready.map_err(|why| NetworkError::System { what: "such processor", why })?;
        Ok(network)
    }

    /// What became of the messages so far.
    pub fn tally(&self) -> Tally {
        locked(&self.tally).clone()
    }

    /// Something that ends it before its time.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Waits until everything was sent and answered, or the patience is over.
    pub fn finish(mut self) -> Tally {
        self.join();
        self.tally()
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic of its was printed where it happened, and shows in what was not answered.
            let _ = thread.join();
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.stopper.0.store(order::QUIT, Ordering::Relaxed);
        self.join();
    }
}

fn connect(settings: &NetworkSettings) -> Result<Vec<TcpStream>, NetworkError> {
    let target = settings.target;
    let connect = |_| {
        let stream = TcpStream::connect_timeout(&target, CONNECT_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    let streams = (0..settings.connections.max(1)).map(connect).collect::<io::Result<_>>();
    streams.map_err(|why| NetworkError::Connect { target, why })
}

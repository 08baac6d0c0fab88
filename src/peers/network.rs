//! A simulated card network: connections to a proxy or a host, a mix of messages at a rate, and
//! what became of each.
//!
//! It sends for a fixed time, waits a while for the answers that are still owed, and ends. What may
//! not be refused and is not answered in time it repeats, as networks do. It has threads of its
//! own, so that a test may use it whatever its own runtime is.

mod kind;
mod pacer;
mod session;
mod tally;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc as std_mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{JoinSet, LocalSet};

pub use kind::{Kind, Mix, Shop};
pub use tally::{FlowTally, KindTally, Tally};

use crate::clock::Clock;
use crate::iso8583::Dialect;
use crate::net::stream::{Reader, Socket, Writer};
use crate::wire::Framing;
use pacer::Pacer;
use session::Session;

/// Arrivals on their way to one connection; more make the pacer wait.
const ARRIVALS_MAX: usize = 4_096;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Messages of one sort: which cards, where, how many.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The leading digits of its cards, such as `411111`.
    pub range: String,
    /// Where they are used, each as often as the others; at least one.
    pub shops: Vec<Shop>,
    /// Messages per second.
    pub rate: f64,
    /// Of which kinds they are.
    pub mix: Mix,
}

/// How a network is set up.
#[derive(Clone, Debug)]
pub struct NetworkSettings {
    /// Where it connects to.
    pub target: SocketAddr,
    /// How frames are cut.
    pub framing: Framing,
    /// How messages are laid out.
    pub dialect: Arc<Dialect>,
    /// How many connections it opens, 1 or more; each message goes to any of them.
    pub connections: usize,
    /// What it sends.
    pub flows: Vec<Flow>,
    /// How long it sends.
    pub duration: Duration,
    /// How long it waits after that for answers that are still owed.
    pub patience: Duration,
    /// What may not be refused is sent again after so long without an answer.
    pub repeat_after: Duration,
    /// A 91 that took less than this was decided on the spot, and one that took longer came in
    /// place of an answer that the host did not give. Half the proxy's deadline tells them apart.
    pub at_once: Duration,
    /// Its luck: equal seeds send equal messages.
    pub seed: u64,
}

impl NetworkSettings {
    /// Default of `patience`.
    pub const PATIENCE: Duration = Duration::from_secs(5);
    /// Default of `repeat_after`.
    pub const REPEAT_AFTER: Duration = Duration::from_secs(1);
}

/// A network at work. Dropping it ends it before its time.
#[derive(Debug)]
pub struct Network {
    tally: Arc<Mutex<Tally>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Network {
    /// Opens all connections and begins to send.
    ///
    /// # Errors
    /// When a connection or a thread cannot be had.
    pub fn start(settings: NetworkSettings) -> io::Result<Self> {
        let tally = Arc::new(Mutex::new(Tally::new(settings.flows.len())));
        let stop = Arc::new(AtomicBool::new(false));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (connected, connects) = std_mpsc::channel();
        let crew = Crew {
            settings: Arc::new(settings),
            tally: Arc::clone(&tally),
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::Builder::new().name("network".to_owned());
        let thread = thread.spawn(move || {
            LocalSet::new().block_on(&runtime, crew.work(&connected));
        })?;
        let network = Self { tally, stop, thread: Some(thread) };
        // A thread that died before it could say anything has printed why.
        connects.recv().unwrap_or_else(|_| Err(io::Error::other("the network's thread died")))?;
        Ok(network)
    }

    /// What became of the messages so far.
    pub fn tally(&self) -> Tally {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        self.stop.store(true, Ordering::Relaxed);
        self.join();
    }
}

/// What works on the network's thread.
struct Crew {
    settings: Arc<NetworkSettings>,
    tally: Arc<Mutex<Tally>>,
    stop: Arc<AtomicBool>,
}

impl Crew {
    async fn work(self, connected: &std_mpsc::Sender<io::Result<()>>) {
        let connections = match connect(&self.settings).await {
            Ok(connections) => connections,
            // Whoever started this waits for it.
            Err(error) => return drop(connected.send(Err(error))),
        };
        let clock = Clock::start();
        let NetworkSettings { duration, patience, seed, ref flows, .. } = *self.settings;
        let end = clock.now().after(duration);
        let mut senders = Vec::new();
        let mut sessions = JoinSet::new();
        for (number, (reader, writer)) in connections.into_iter().enumerate() {
            let (sender, arrivals) = mpsc::channel(ARRIVALS_MAX);
            senders.push(sender);
            let session = Session {
                number,
                settings: Arc::clone(&self.settings),
                tally: Arc::clone(&self.tally),
                clock,
                arrivals,
                rng: fastrand::Rng::with_seed(seed.wrapping_add(1 + number as u64)),
                end: end.after(patience),
            };
            sessions.spawn_local(session.run(reader, writer));
        }
        let rates = flows.iter().map(|flow| flow.rate.max(0.0)).collect();
        let rng = fastrand::Rng::with_seed(seed);
        let pacer = Pacer { clock, end, rates, connections: senders, rng };
        let stop = Arc::clone(&self.stop);
        let paced = tokio::task::spawn_blocking(move || pacer.run(&stop));
        // Nobody but the owner of this network listens, and may have left.
        let _ = connected.send(Ok(()));
        let everything = async { while sessions.join_next().await.is_some() {} };
        tokio::select! {
            () = everything => {}
            () = self.stopped() => sessions.shutdown().await,
        }
        let unsent = paced.await.unwrap_or_default();
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).unsent += unsent;
    }

    /// Waits until the owner has dropped the network.
    async fn stopped(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn connect(settings: &NetworkSettings) -> io::Result<Vec<(Reader, Writer)>> {
    let mut connections = Vec::new();
    for _ in 0..settings.connections.max(1) {
        let socket = Socket::dial(settings.target, CONNECT_TIMEOUT).await?;
        connections.push(socket.open()?);
    }
    Ok(connections)
}

//! A simulated authorization host: it answers what it is asked, by a script that may be changed
//! while it runs.
//!
//! It has a thread of its own, so that a test may use it whatever its own runtime is, and stops
//! when it is dropped. Connections are served side by side; within one, answers leave in the order
//! of their latencies, not of their requests, as those of a real host do.
//!
//! ```text
//!  Course: which Behaviour holds ──> Floor: port, connections ──> Connection: frames in, due out
//!                                                                   Issuer: what, and when
//! ```

mod behaviour;
mod connection;
mod course;
mod floor;
mod issuer;
mod tally;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tokio::sync::mpsc;
use tokio::task::LocalSet;

pub use behaviour::{
    AtTheEnd, Behaviour, Closing, Exception, Latency, Match, Phase, Phases, Script,
};
pub use tally::HostTally;

use crate::clock;
use crate::iso8583::Dialect;
use crate::net::listener::Bound;
use crate::wire::{Framing, Header};
use tally::{Counts, locked};

/// How a host is set up.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// How frames are cut.
    pub framing: Framing,
    /// What stands before the MTI; answers carry it turned round.
    pub header: Header,
    /// How messages are laid out.
    pub dialect: Arc<Dialect>,
    /// What it does at first.
    pub script: Script,
    /// Its luck: equal seeds draw equal latencies for equal messages.
    pub seed: u64,
}

impl HostSettings {
    /// A prompt issuer on a free port of loopback, for messages without a header.
    pub fn loopback(framing: Framing, dialect: Arc<Dialect>) -> Self {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let script = Script::Issuer(Behaviour::PROMPT);
        Self { listen, framing, header: Header::None, dialect, script, seed: 1 }
    }
}

/// A host that runs until it is dropped.
#[derive(Debug)]
pub struct Host {
    address: SocketAddr,
    counts: Arc<Mutex<Counts>>,
    commands: Option<mpsc::UnboundedSender<Command>>,
    thread: Option<JoinHandle<()>>,
}

/// What the host's thread is told.
#[derive(Debug)]
enum Command {
    /// Close the connection that was spoken on last.
    Cut,
    /// Go on by another script.
    Follow(Script),
}

impl Host {
    /// Starts to listen.
    ///
    /// # Errors
    /// When the address or a thread cannot be had.
    pub fn start(settings: HostSettings) -> io::Result<Self> {
        let bound = Bound::take(settings.listen)?;
        let address = bound.address()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let counts = Arc::new(Mutex::new(Counts::default()));
        let (commands, orders) = mpsc::unbounded_channel();
        let of_thread = Arc::clone(&counts);
        let thread = std::thread::Builder::new().name("host".to_owned());
        let thread = thread.spawn(move || {
            let counts = Arc::clone(&of_thread);
            LocalSet::new()
                .block_on(&runtime, floor::serve(bound, address, settings, counts, orders));
            locked(&of_thread).tally().cpu = clock::thread_cpu();
        })?;
        Ok(Self { address, counts, commands: Some(commands), thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Follows another script as soon as its thread hears of it; answers that are on their way stay
    /// as they are.
    pub fn follow(&self, script: Script) {
        self.order(Command::Follow(script));
    }

    /// Closes the connection on which a message came last, with every answer that it still owes
    /// there.
    pub fn cut(&self) {
        self.order(Command::Cut);
    }

    fn order(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // A host that is gone has nothing that could change.
            let _ = commands.send(command);
        }
    }

    /// How many messages it has received.
    pub fn received(&self) -> u64 {
        locked(&self.counts).messages()
    }

    /// How many messages of one type, such as 420, it has received.
    pub fn received_of(&self, mti: u16) -> u64 {
        locked(&self.counts).messages_of(mti)
    }

    /// What it has counted so far.
    pub fn tally(&self) -> HostTally {
        locked(&self.counts).read()
    }

    /// Ends it, and says what it has counted.
    pub fn finish(mut self) -> HostTally {
        self.end();
        self.tally()
    }

    fn end(&mut self) {
        // Its thread ends when nobody can tell it anything more.
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            // A panic of its was printed where it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.end();
    }
}

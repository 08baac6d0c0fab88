//! A simulated authorization host: it answers what it is asked, by a script that may be changed
//! while it runs.
//!
//! It has a thread of its own, so that a test may use it whatever its own runtime is, and stops
//! when it is dropped. Connections are served side by side; within one, answers leave in the order
//! of their latencies, not of their requests, as those of a real host do.

mod issuer;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

pub use issuer::{Behaviour, Latency, Script};

use crate::clock::{Clock, Moment};
use crate::iso8583::Dialect;
use crate::net::buffer::{ReadBuffer, WriteBuffer};
use crate::net::listener::{Bound, Listener};
use crate::net::stream::{Reader, Socket, Writer};
use crate::wire::{Framing, Splitter};
use issuer::{Issuer, Reply};

/// More than any message of any network.
const FRAME_BYTES_MAX: usize = 65_535;
/// Answers that wait to be written on one connection.
const OUT_BYTES_MAX: usize = 4 << 20;
/// A peer that does not take its answers is not read from.
const OUT_BYTES_READING: usize = OUT_BYTES_MAX / 4;
/// After a failed accept: what is missing (a file descriptor) is not back at once.
const RETRY: Duration = Duration::from_millis(10);

/// How a host is set up.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// How frames are cut.
    pub framing: Framing,
    /// How messages are laid out.
    pub dialect: Arc<Dialect>,
    /// What it does at first.
    pub script: Script,
    /// Its luck: equal seeds draw equal latencies for equal messages.
    pub seed: u64,
}

impl HostSettings {
    /// A prompt issuer on a free port of loopback.
    pub fn loopback(framing: Framing, dialect: Arc<Dialect>) -> Self {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { listen, framing, dialect, script: Script::Issuer(Behaviour::PROMPT), seed: 1 }
    }
}

/// A host that runs until it is dropped.
#[derive(Debug)]
pub struct Host {
    address: SocketAddr,
    shared: Arc<Shared>,
    commands: Option<mpsc::UnboundedSender<Command>>,
    thread: Option<JoinHandle<()>>,
}

/// What the host's thread is told.
#[derive(Debug)]
enum Command {
    /// Close the connection that was spoken on last.
    Cut,
}

/// What the host's thread shares with its owner.
#[derive(Debug)]
struct Shared {
    script: Mutex<Script>,
    /// Messages by MTI number.
    received: Mutex<BTreeMap<u16, u64>>,
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
        let shared =
            Arc::new(Shared { script: Mutex::new(settings.script), received: Mutex::default() });
        let (commands, orders) = mpsc::unbounded_channel();
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("host".to_owned());
        let thread = thread.spawn(move || {
            let floor = Rc::new(Floor::new(settings, of_thread));
            LocalSet::new().block_on(&runtime, serve(bound, floor, orders));
        })?;
        Ok(Self { address, shared, commands: Some(commands), thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Follows another script from now on; answers that are on their way stay as they are.
    pub fn follow(&self, script: Script) {
        *locked(&self.shared.script) = script;
    }

    /// Closes the connection on which a message came last, with every answer that it still owes
    /// there.
    pub fn cut(&self) {
        if let Some(commands) = &self.commands {
            // A host that is gone has no connections.
            let _ = commands.send(Command::Cut);
        }
    }

    /// How many messages it has received.
    pub fn received(&self) -> u64 {
        locked(&self.shared.received).values().sum()
    }

    /// How many messages of one type, such as 420, it has received.
    pub fn received_of(&self, mti: u16) -> u64 {
        locked(&self.shared.received).get(&mti).copied().unwrap_or_default()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Its thread ends when nobody can tell it anything more.
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            // A panic of its was printed where it happened.
            let _ = thread.join();
        }
    }
}

/// What these locks guard is whole between any two statements, whoever panicked.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the connections of a host share on its thread.
struct Floor {
    settings: HostSettings,
    shared: Arc<Shared>,
    clock: Clock,
    seats: RefCell<Vec<Rc<Seat>>>,
    seated: Cell<u64>,
}

/// One connection, for whoever wants to cut it.
#[derive(Default)]
struct Seat {
    heard: Cell<Moment>,
    cut: Notify,
}

impl Floor {
    fn new(settings: HostSettings, shared: Arc<Shared>) -> Self {
        let clock = Clock::start();
        Self { settings, shared, clock, seats: RefCell::default(), seated: Cell::new(0) }
    }

    fn cut(&self) {
        let seats = self.seats.borrow();
        if let Some(seat) = seats.iter().max_by_key(|seat| seat.heard.get()) {
            seat.cut.notify_one();
        }
    }
}

async fn serve(bound: Bound, floor: Rc<Floor>, mut orders: mpsc::UnboundedReceiver<Command>) {
    // A socket that was just bound can be watched, or nothing can.
    let Ok(listener) = bound.listen() else { return };
    loop {
        tokio::select! {
            socket = accept(&listener) => {
                let floor = Rc::clone(&floor);
                spawn_local(async move {
                    let seat = Rc::new(Seat::default());
                    floor.seats.borrow_mut().push(Rc::clone(&seat));
                    tokio::select! {
                        () = converse(&floor, &seat, socket) => {}
                        () = seat.cut.notified() => {}
                    }
                    floor.seats.borrow_mut().retain(|other| !Rc::ptr_eq(other, &seat));
                });
            }
            order = orders.recv() => match order {
                Some(Command::Cut) => floor.cut(),
                None => return,
            },
        }
    }
}

async fn accept(listener: &Listener) -> Socket {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => return socket,
            Err(_) => sleep(RETRY).await,
        }
    }
}

/// Serves one connection to its end.
async fn converse(floor: &Floor, seat: &Seat, socket: Socket) {
    let Ok((mut reader, writer)) = socket.open() else { return };
    let HostSettings { framing, seed, .. } = floor.settings;
    floor.seated.set(floor.seated.get() + 1);
    let luck = fastrand::Rng::with_seed(seed.wrapping_add(floor.seated.get()));
    let splitter = Splitter::new(framing, FRAME_BYTES_MAX);
    let mut unread = ReadBuffer::new(&splitter);
    let mut desk = Desk {
        splitter,
        issuer: Issuer::new(Arc::clone(&floor.settings.dialect), luck),
        due: BinaryHeap::new(),
        taken: 0,
        out: WriteBuffer::new(framing, OUT_BYTES_MAX),
    };
    while turn(floor, seat, &mut reader, &writer, &mut unread, &mut desk).await.is_some() {}
}

/// One connection's answers: those that wait for their time, and those that wait to be written.
struct Desk {
    splitter: Splitter,
    issuer: Issuer,
    /// Soonest first; of those of one moment, the one that came first.
    due: BinaryHeap<Reverse<(Moment, u64, Vec<u8>)>>,
    /// Messages that were given an answer.
    taken: u64,
    out: WriteBuffer,
}

/// Waits for something to do and does it; `None` when the connection is of no more use.
async fn turn(
    floor: &Floor,
    seat: &Seat,
    reader: &mut Reader,
    writer: &Writer,
    unread: &mut ReadBuffer,
    desk: &mut Desk,
) -> Option<()> {
    let soonest = desk.due.peek().map(|Reverse((due, ..))| due.since(floor.clock.now()));
    let unwritten = desk.out.pending().len();
    tokio::select! {
        read = reader.fill(unread), if unwritten < OUT_BYTES_READING => {
            if read.ok()? == 0 {
                return None;
            }
            let now = floor.clock.now();
            seat.heard.set(now);
            desk.take(floor, unread, now)?;
        }
        () = sleep(soonest.unwrap_or_default()), if soonest.is_some() => {}
        () = writer.writable(), if unwritten > 0 => {}
    }
    desk.release(floor.clock.now());
    let written = writer.try_write(desk.out.pending()).ok()?;
    desk.out.advance(written);
    Some(())
}

impl Desk {
    /// Takes every whole frame; `None` when a length cannot be believed.
    fn take(&mut self, floor: &Floor, unread: &mut ReadBuffer, now: Moment) -> Option<()> {
        let script = *locked(&floor.shared.script);
        let mut received = locked(&floor.shared.received);
        while let Some(split) = self.splitter.split(unread.unread()).ok()? {
            let bytes = split.whole.len();
            let Reply { mti, answer } = self.issuer.reply(split.frame, script);
            unread.consume(bytes);
            if let Some(mti) = mti {
                *received.entry(mti.number()).or_default() += 1;
            }
            if let Some((latency, answer)) = answer {
                self.taken += 1;
                self.due.push(Reverse((now.after(latency), self.taken, answer)));
            }
        }
        Some(())
    }

    /// Moves what is due to the connection.
    fn release(&mut self, now: Moment) {
        while let Some(Reverse((due, ..))) = self.due.peek()
            && *due <= now
            && let Some(Reverse((.., answer))) = self.due.pop()
        {
            // Reading stops long before there is no room; an answer too long to be framed is lost.
            let _ = self.out.push(&answer);
        }
    }
}

//! The cheapest host there can be: it gives every message back at once as its own answer, changed
//! in place where the type stands, and writes once for each time that it reads.
//!
//! It is what a generator and a proxy are measured against. It reads no further than the message
//! type, answers what a host answers and drops the rest; the answers have no Field 39. One thread
//! serves all connections; whoever does not take its answers is not read from.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::inbox::{Inbox, is_passing};
use super::poll::{Events, Poll, Ready, Wish};
use crate::iso8583::{Dialect, Mti, MtiEncoding};
use crate::wire::{Framing, Header, Splitter};

/// More than any message of any network.
const FRAME_BYTES_MAX: usize = 65_535;
/// It looks so often whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);
/// After a failed accept: what is missing (a file descriptor) is not back at once.
const RETRY: Duration = Duration::from_millis(10);
/// The token of the listener; connections have their place.
const LISTENER: u64 = u64::MAX;

/// An echo that runs until it is dropped.
#[derive(Debug)]
pub struct Echo {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    answered: AtomicU64,
}

impl Echo {
    /// Starts to listen; port 0 takes a free one.
    ///
    /// # Errors
    /// When the address or a thread cannot be had.
    pub fn start(
        listen: SocketAddr,
        framing: Framing,
        header: Header,
        dialect: &Dialect,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let poll = Poll::new()?;
        poll.watch(&listener, LISTENER, Wish::Read)?;
        let shared = Arc::new(Shared::default());
        let splitter = Splitter::new(framing, FRAME_BYTES_MAX);
        let inbox = Inbox::new(&splitter);
        let turn = Turn { framing, header, mti: dialect.mti(), scratch: Vec::new() };
        let of_thread = Arc::clone(&shared);
        let room = Room {
            poll,
            listener,
            connections: Vec::new(),
            splitter,
            inbox,
            turn,
            shared: of_thread,
        };
        let thread = std::thread::Builder::new().name("echo".to_owned());
        let thread = thread.spawn(move || room.serve())?;
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many messages it has answered.
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of its was printed where it happened.
            let _ = thread.join();
        }
    }
}

/// What its thread works on.
struct Room {
    poll: Poll,
    listener: TcpListener,
    /// By token; a closed one leaves a gap that the next one takes.
    connections: Vec<Option<Connection>>,
    splitter: Splitter,
    inbox: Inbox,
    turn: Turn,
    shared: Arc<Shared>,
}

struct Connection {
    stream: TcpStream,
    /// The beginning of a frame.
    left: Vec<u8>,
    /// Answers that its peer does not take; nothing is read until it has.
    unwritten: Vec<u8>,
}

impl Room {
    fn serve(mut self) {
        let mut events = Events::new();
        while !self.shared.stop.load(Ordering::Relaxed) && self.poll.wait(LOOK, &mut events).is_ok()
        {
            for Ready { token, .. } in events.iter() {
                if token == LISTENER {
                    self.accept();
                } else if self.speak(token).is_none()
                    && let Some(seat) = self.connections.get_mut(token as usize)
                {
                    *seat = None;
                }
            }
        }
    }

    fn accept(&mut self) {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if is_passing(&error) => return,
                Err(_) => return std::thread::sleep(RETRY),
            };
            if stream.set_nonblocking(true).is_err() || stream.set_nodelay(true).is_err() {
                continue;
            }
            let free = self.connections.iter().position(Option::is_none);
            let token = free.unwrap_or(self.connections.len());
            if self.poll.watch(&stream, token as u64, Wish::Read).is_err() {
                continue;
            }
            let connection = Connection { stream, left: Vec::new(), unwritten: Vec::new() };
            match self.connections.get_mut(token) {
                Some(seat) => *seat = Some(connection),
                None => self.connections.push(Some(connection)),
            }
        }
    }

    /// Serves a connection once; `None` when it is of no more use.
    fn speak(&mut self, token: u64) -> Option<()> {
        let Self { poll, connections, splitter, inbox, turn, shared, .. } = self;
        let Connection { stream, left, unwritten } =
            connections.get_mut(token as usize)?.as_mut()?;
        if !unwritten.is_empty() {
            let written = write(stream, unwritten)?;
            unwritten.drain(..written);
            if unwritten.is_empty() {
                poll.change(&*stream, token, Wish::Read).ok()?;
            }
            return Some(());
        }
        if !inbox.fill(stream, left) {
            return None;
        }
        let bytes = inbox.bytes();
        let (mut used, mut kept, mut answered) = (0, 0, 0);
        while let Some(split) = splitter.split(bytes.get(used..)?).ok()? {
            let (whole, is_message) = (split.whole.len(), !split.frame.is_empty());
            if is_message && turn.round(bytes.get_mut(used..used + whole)?) {
                if kept < used {
                    bytes.copy_within(used..used + whole, kept);
                }
                kept += whole;
                answered += 1;
            }
            used += whole;
        }
        let answers = bytes.get(..kept)?;
        if !answers.is_empty() {
            let written = write(stream, answers)?;
            if written < answers.len() {
                unwritten.extend_from_slice(answers.get(written..)?);
                poll.change(&*stream, token, Wish::Write).ok()?;
            }
            shared.answered.fetch_add(answered, Ordering::Relaxed);
        }
        inbox.put_by(used, left);
        Some(())
    }
}

/// How many bytes were written; `None` when nobody will take any.
fn write(mut stream: &TcpStream, bytes: &[u8]) -> Option<usize> {
    match stream.write(bytes) {
        Ok(written) => Some(written),
        Err(error) if is_passing(&error) => Some(0),
        Err(_) => None,
    }
}

/// Turning a message round.
struct Turn {
    framing: Framing,
    header: Header,
    mti: MtiEncoding,
    scratch: Vec<u8>,
}

impl Turn {
    /// Makes a message, its length before it, its own answer; false when nobody answers it.
    fn round(&mut self, whole: &mut [u8]) -> bool {
        let Some(frame) = whole.get_mut(self.framing.prefix_bytes()..) else { return false };
        if self.header == Header::None {
            return self.answer(frame);
        }
        let Ok(opened) = self.header.open(frame) else { return false };
        let header_bytes = opened.header.len();
        self.scratch.clear();
        self.header.answer(frame, &mut self.scratch);
        let Some((header, message)) = frame.split_at_mut_checked(header_bytes) else {
            return false;
        };
        if !self.answer(message) {
            return false;
        }
        header.copy_from_slice(&self.scratch);
        true
    }

    fn answer(&self, message: &mut [u8]) -> bool {
        match (self.mti, message) {
            (MtiEncoding::Bcd, [first, second, ..]) => {
                let digits = [*first >> 4, *first & 15, *second >> 4, *second & 15];
                let Some(answer) = response(digits) else { return false };
                *second = answer.function() << 4 | answer.origin();
                true
            }
            (MtiEncoding::Ascii | MtiEncoding::Ebcdic, [first, second, third, fourth, ..]) => {
                let zero = *first & 0xf0;
                let digits = [*first, *second, *third, *fourth].map(|digit| digit ^ zero);
                let Some(answer) = response(digits) else { return false };
                (*third, *fourth) = (zero | answer.function(), zero | answer.origin());
                true
            }
            _ => false,
        }
    }
}

fn response(digits: [u8; 4]) -> Option<Mti> {
    Mti::from_digits(digits)?.response()
}

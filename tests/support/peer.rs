//! One end of a connection, spoken to in frames or in raw bytes. Its framing is its own, so that a
//! fault in tollgate's cannot hide behind the same fault here.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

pub use super::framing::Framing;
use super::message::Message;
use super::{PATIENCE, wait_for};

/// One end of a connection.
pub struct Peer {
    pub stream: TcpStream,
    framing: Framing,
    unread: Vec<u8>,
}

impl Peer {
    #[track_caller]
    pub fn connect(address: SocketAddr, framing: Framing) -> Self {
        Self::new(TcpStream::connect(address).unwrap(), framing)
    }

    pub fn new(stream: TcpStream, framing: Framing) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream, framing, unread: Vec::new() }
    }

    #[track_caller]
    pub fn send(&mut self, frame: &[u8]) {
        let bytes = self.framing.wrap(frame);
        self.send_raw(&bytes);
    }

    #[track_caller]
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next frame; fails when none comes.
    #[track_caller]
    pub fn receive(&mut self) -> Vec<u8> {
        self.receive_within(PATIENCE).expect("a frame, not silence").expect("a frame, not the end")
    }

    /// The next frame as a message.
    #[track_caller]
    pub fn receive_message(&mut self) -> Message {
        Message::decode(&self.receive())
    }

    /// Another handle of this connection, to be written to while this one is read.
    pub fn writing_half(&self) -> Self {
        Self::new(self.stream.try_clone().unwrap(), self.framing)
    }

    /// Bytes that the system holds of what the other side wrote and this one has not read: those on
    /// their way, which may be counted twice for a moment, and those that have come.
    ///
    /// The system lists one socket after the other: what moves from one to the other in between is
    /// missed. So the reading that counts is one that the next reading repeats.
    #[track_caller]
    pub fn bytes_under_way(&self) -> (usize, usize) {
        let mut last = self.queued_bytes();
        wait_for("two readings of the queues agree", || {
            let before = std::mem::replace(&mut last, self.queued_bytes());
            (before == last).then_some(last)
        })
    }

    #[track_caller]
    fn queued_bytes(&self) -> (usize, usize) {
        let here = self.stream.local_addr().unwrap().port();
        let there = self.stream.peer_addr().unwrap().port();
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let queues = |local: u16, remote: u16| {
            let (local, remote) = (format!(":{local:04X}"), format!(":{remote:04X}"));
            let found = table.lines().find_map(|line| {
                let columns: Vec<&str> = line.split_whitespace().collect();
                let ours = columns[1].ends_with(&local) && columns[2].ends_with(&remote);
                ours.then(|| columns[4].to_owned())
            });
            let found = found.expect("the connection in /proc/net/tcp");
            let (sending, received) = found.split_once(':').unwrap();
            [sending, received].map(|hex| usize::from_str_radix(hex, 16).unwrap())
        };
        (queues(there, here)[0], queues(here, there)[1])
    }

    /// The next frame, `Some(None)` at the end of the connection, `None` when nothing comes in time.
    pub fn receive_within(&mut self, patience: Duration) -> Option<Option<Vec<u8>>> {
        self.stream.set_read_timeout(Some(patience)).unwrap();
        loop {
            if let Some(frame) = self.take_frame() {
                return Some(Some(frame));
            }
            let mut bytes = [0; 65_536];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Some(None),
                Ok(read) => self.unread.extend_from_slice(&bytes[..read]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return None,
                    // A signal on a busy machine is not the end of a connection.
                    ErrorKind::Interrupted => {}
                    _ => return Some(None),
                },
            }
        }
    }

    fn take_frame(&mut self) -> Option<Vec<u8>> {
        let (frame, bytes) = self.framing.unwrap(&self.unread)?;
        self.unread.drain(..bytes);
        Some(frame)
    }

    /// Fails unless the other side ends the connection without another frame.
    #[track_caller]
    pub fn expect_end(&mut self) {
        match self.receive_within(PATIENCE) {
            Some(None) => {}
            Some(Some(frame)) => panic!("a frame instead of the end: {} bytes", frame.len()),
            None => panic!("neither frame nor end"),
        }
    }

    /// Whether something has come. A harness reads whole frames, so nothing of one is left behind.
    pub fn has_bytes(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let read = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        matches!(read, Ok(1))
    }

    /// Fails when a frame comes within a moment. For proof that nothing comes, first wait for what
    /// would come after it; this only catches what is already there.
    #[track_caller]
    pub fn expect_nothing_yet(&mut self) {
        if let Some(Some(frame)) = self.receive_within(Duration::from_millis(20)) {
            panic!("an unexpected frame: MTI {}", String::from_utf8_lossy(&frame[..4]));
        }
    }

    /// Breaks the connection off, so that the other side cannot take it for a half-close.
    pub fn reset(self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Sends nothing more, and still reads.
    pub fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }
}

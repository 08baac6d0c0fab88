//! Reading many connections through one buffer: what is read stays in the nearest cache, however
//! many connections there are, and a connection at rest keeps nothing but the beginning of a frame.

use std::fmt;
use std::io::{self, Read};
use std::net::TcpStream;

use crate::wire::Splitter;

/// What is read at once at most. One turn of one connection stays short that way.
const READ_BYTES: usize = 64 * 1024;

/// What was read of the connection that is served right now.
pub(super) struct Inbox {
    bytes: Box<[u8]>,
    end: usize,
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inbox({} bytes)", self.end)
    }
}

impl Inbox {
    /// Every frame that `splitter` cuts becomes whole in it.
    pub(super) fn new(splitter: &Splitter) -> Self {
        Self { bytes: vec![0; READ_BYTES + splitter.buffer_bytes()].into(), end: 0 }
    }

    /// Reads once, behind what was `left` of the connection before. False when its peer has closed
    /// it, or there is nothing to be read of it ever again.
    pub(super) fn fill(&mut self, mut stream: &TcpStream, left: &mut Vec<u8>) -> bool {
        let start = left.len();
        let Some((head, room)) = self.bytes.split_at_mut_checked(start) else { return false };
        head.copy_from_slice(left);
        left.clear();
        self.end = start;
        match stream.read(room) {
            Ok(0) => false,
            Ok(bytes) => {
                self.end += bytes;
                true
            }
            Err(error) => is_passing(&error),
        }
    }

    /// All of it.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.end).unwrap_or_default()
    }

    /// Puts what lies behind the first `used` bytes by, until more is read.
    pub(super) fn put_by(&mut self, used: usize, left: &mut Vec<u8>) {
        left.extend_from_slice(self.bytes.get(used..self.end).unwrap_or_default());
    }
}

/// Whether it may go better the next time.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

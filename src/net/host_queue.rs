//! What a link has queued for its host, whichever connection it leaves on.
//!
//! There is one queue per link and not one per connection, and a frame stays in it until its last
//! byte was written. So when the active connection is lost, the next one goes on with the first
//! frame that was not written whole: nothing is lost, sent twice or overtaken. A frame of which no
//! byte was written can still be taken back.

use std::collections::VecDeque;
use std::fmt;

use crate::wire::{FrameError, Framing};

/// A frame in the queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    number: u64,
    bytes: usize,
    withdrawn: bool,
    /// It was to be taken back when it had been begun: it ends where it is, and never begins anew.
    once: bool,
}

/// Frames for one host, in the order in which they are sent.
pub struct HostQueue {
    framing: Framing,
    bytes: Vec<u8>,
    frames: VecDeque<Queued>,
    /// Where the first frame begins in `bytes`.
    first: usize,
    /// How much of the first frame was written.
    begun: usize,
    /// Number of the newest frame; frames are counted from 1.
    newest: u64,
    /// Number of the newest frame that was written whole.
    written: u64,
    withdrawn: usize,
    bytes_max: usize,
}

/// How much is in it, and nothing of that: a card number may be among it.
impl fmt::Debug for HostQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (frames, bytes) = (self.frames.len(), self.queued_bytes());
        write!(f, "HostQueue({frames} frames of {bytes} bytes)")
    }
}

/// How full the queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The frame fits with at least a quarter of the queue left.
    Open,
    /// It fits.
    Tight,
    /// It does not fit.
    Full,
}

impl HostQueue {
    /// An empty queue for at most `bytes_max` bytes.
    pub const fn new(framing: Framing, bytes_max: usize) -> Self {
        Self {
            framing,
            bytes: Vec::new(),
            frames: VecDeque::new(),
            first: 0,
            begun: 0,
            newest: 0,
            written: 0,
            withdrawn: 0,
            bytes_max,
        }
    }

    /// How full the queue would be with a frame of `frame_bytes` more.
    pub fn fill(&self, frame_bytes: usize) -> Fill {
        let with_it = self.queued_bytes() + self.framing.overhead_bytes() + frame_bytes;
        if with_it > self.bytes_max {
            Fill::Full
        } else if with_it > self.bytes_max / 4 * 3 {
            Fill::Tight
        } else {
            Fill::Open
        }
    }

    /// Bytes in the queue.
    pub const fn queued_bytes(&self) -> usize {
        self.bytes.len() - self.first
    }

    /// Appends a frame and returns its number.
    ///
    /// # Errors
    /// When the framing cannot carry it.
    pub fn push(&mut self, frame: &[u8]) -> Result<u64, FrameError> {
        let before = self.bytes.len();
        self.framing.join(frame, &mut self.bytes)?;
        Ok(self.queued_since(before))
    }

    /// Appends bytes that carry no message, as they are; leaves them out when there is no room.
    pub fn push_keepalive(&mut self, bytes: &[u8]) {
        if self.queued_bytes() + bytes.len() <= self.bytes_max {
            let before = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            self.queued_since(before);
        }
    }

    fn queued_since(&mut self, before: usize) -> u64 {
        self.newest += 1;
        let bytes = self.bytes.len() - before;
        self.frames.push_back(Queued { number: self.newest, bytes, withdrawn: false, once: false });
        self.newest
    }

    /// Takes a frame back, unless a byte of it was written; says whether it did. A frame begun goes
    /// on, but if its connection is lost it is not sent again.
    pub fn withdraw(&mut self, number: u64) -> bool {
        let Ok(at) = self.frames.binary_search_by_key(&number, |frame| frame.number) else {
            return false;
        };
        match self.frames.get_mut(at) {
            Some(frame) if !frame.withdrawn && (at > 0 || self.begun == 0) => {
                frame.withdrawn = true;
                self.withdrawn += 1;
                self.skip_withdrawn();
                true
            }
            Some(begun) => {
                begun.once = true;
                false
            }
            None => false,
        }
    }

    /// The next bytes to write: up to the end, or to a frame that was taken back.
    pub fn pending(&self) -> &[u8] {
        let end = if self.withdrawn == 0 {
            self.bytes.len()
        } else {
            let standing = self.frames.iter().take_while(|frame| !frame.withdrawn);
            self.first + standing.map(|frame| frame.bytes).sum::<usize>()
        };
        self.bytes.get(self.first + self.begun..end).unwrap_or_default()
    }

    /// `bytes` of the pending ones were written.
    pub fn advance(&mut self, bytes: usize) {
        self.begun += bytes;
        while let Some(frame) = self.frames.front().filter(|frame| self.begun >= frame.bytes) {
            self.begun -= frame.bytes;
            self.first += frame.bytes;
            self.written = frame.number;
            self.frames.pop_front();
        }
        self.skip_withdrawn();
    }

    /// The connection is gone: the frame begun on it has to be sent from its start, unless it was to
    /// be taken back since. Returns the number of the newest frame that was written whole.
    pub fn rewind(&mut self) -> u64 {
        self.begun = 0;
        if let Some(first) = self.frames.front_mut().filter(|first| first.once) {
            first.withdrawn = true;
            self.withdrawn += 1;
            self.skip_withdrawn();
        }
        self.written
    }

    /// Number of the newest frame that was written whole.
    pub const fn written(&self) -> u64 {
        self.written
    }

    fn skip_withdrawn(&mut self) {
        while self.begun == 0
            && let Some(frame) = self.frames.front().filter(|frame| frame.withdrawn)
        {
            self.first += frame.bytes;
            self.withdrawn -= 1;
            self.frames.pop_front();
        }
        if self.frames.is_empty() {
            self.bytes.clear();
            self.first = 0;
        } else if self.first > self.bytes_max / 2 {
            self.bytes.drain(..self.first);
            self.first = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue_of(frames: &[&[u8]]) -> HostQueue {
        let mut queue = HostQueue::new(Framing::Be16, 1_000);
        for frame in frames {
            queue.push(frame).unwrap();
        }
        queue
    }

    #[test]
    fn a_frame_begun_is_sent_again_from_its_start_on_the_next_connection() {
        let mut queue = queue_of(&[b"one", b"two"]);
        queue.advance(5 + 3);
        assert_eq!(queue.pending(), b"wo");
        assert_eq!(queue.rewind(), 1);
        assert_eq!(queue.pending(), b"\0\x03two");
    }

    #[test]
    fn a_frame_can_be_taken_back_until_its_first_byte_is_written() {
        let mut queue = queue_of(&[b"one", b"two", b"six"]);
        queue.advance(1);
        assert!(!queue.withdraw(1));
        assert!(queue.withdraw(2));
        assert!(!queue.withdraw(2));
        assert_eq!(queue.pending(), b"\x03one");
        queue.advance(4);
        assert_eq!(queue.pending(), b"\0\x03six");
        queue.advance(5);
        assert!(!queue.withdraw(3));
        assert_eq!((queue.pending().len(), queue.queued_bytes()), (0, 0));
    }

    #[test]
    fn a_frame_that_came_to_be_unwanted_when_it_was_begun_is_not_begun_again() {
        let mut queue = queue_of(&[b"one", b"two"]);
        queue.advance(3);
        assert!(!queue.withdraw(1));
        assert_eq!(queue.pending(), b"ne\0\x03two");
        assert_eq!(queue.rewind(), 0);
        assert_eq!(queue.pending(), b"\0\x03two");
        assert_eq!(queue.push(b"six"), Ok(3));
        assert_eq!(queue.pending(), b"\0\x03two\0\x03six");
    }

    #[test]
    fn a_queue_that_was_emptied_by_withdrawal_takes_frames_again() {
        let mut queue = queue_of(&[b"one", b"two"]);
        assert!(queue.withdraw(2) && queue.withdraw(1));
        assert_eq!(queue.pending(), b"");
        assert_eq!(queue.push(b"six"), Ok(3));
        assert_eq!(queue.pending(), b"\0\x03six");
    }

    #[test]
    fn the_last_quarter_is_told_apart_from_full() {
        let mut queue = HostQueue::new(Framing::Be16, 100);
        assert_eq!(queue.fill(73), Fill::Open);
        assert_eq!(queue.fill(74), Fill::Tight);
        assert_eq!(queue.fill(98), Fill::Tight);
        assert_eq!(queue.fill(99), Fill::Full);
        queue.push(&[0; 73]).unwrap();
        assert_eq!(queue.fill(24), Fill::Full);
    }
}

//! Bytes on their way in and out of one connection. When printed, a buffer says how many it has, as
//! a card number may be among them.

use std::cell::RefCell;
use std::fmt;

use crate::wire::{FrameError, Framing, Splitter};

/// What is read at once at most. One turn of one peer stays short that way.
const READ_BYTES: usize = 64 * 1024;

/// Bytes that were read and not yet dealt with.
pub struct ReadBuffer {
    bytes: Box<[u8]>,
    head: usize,
    tail: usize,
}

impl fmt::Debug for ReadBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadBuffer({} bytes)", self.unread().len())
    }
}

impl ReadBuffer {
    /// A buffer in which every frame that `splitter` cuts becomes whole, and more.
    pub fn new(splitter: &Splitter) -> Self {
        let bytes = READ_BYTES.max(splitter.buffer_bytes());
        Self { bytes: vec![0; bytes].into(), head: 0, tail: 0 }
    }

    /// Begins anew with what a peer has left unfinished.
    pub(super) fn begin(&mut self, rest: &[u8]) {
        self.head = 0;
        self.tail = 0;
        if let Some(front) = self.bytes.get_mut(..rest.len()) {
            front.copy_from_slice(rest);
            self.tail = rest.len();
        }
    }

    /// The bytes, in the order in which they came.
    pub fn unread(&self) -> &[u8] {
        self.bytes.get(self.head..self.tail).unwrap_or_default()
    }

    /// Whether the last read took all that there was room for, so that there is most likely more.
    pub fn is_full(&self) -> bool {
        self.tail == self.bytes.len()
    }

    /// The first `bytes` of them are dealt with.
    pub fn consume(&mut self, bytes: usize) {
        self.head = self.head.saturating_add(bytes).min(self.tail);
        if self.head == self.tail {
            self.head = 0;
            self.tail = 0;
        }
    }

    /// Where the next bytes are to be read to; never empty while less than a frame is unread. What
    /// is left is moved to the front when half of the buffer is used up: it is then most often the
    /// beginning of one frame.
    pub(super) fn free(&mut self) -> &mut [u8] {
        if self.head > 0 && self.tail > self.bytes.len() / 2 {
            self.bytes.copy_within(self.head..self.tail, 0);
            self.tail -= self.head;
            self.head = 0;
        }
        self.bytes.get_mut(self.tail..).unwrap_or_default()
    }

    /// `bytes` were read there.
    pub(super) fn filled(&mut self, bytes: usize) {
        self.tail = self.tail.saturating_add(bytes).min(self.bytes.len());
    }
}

/// The buffer that many peers are read into, one after the other, and what each of them left
/// unfinished. What is read lies where the last peer's bytes lay, near the processor, and a peer that
/// is silent keeps nothing.
#[derive(Debug)]
pub struct Inbox(RefCell<ReadBuffer>);

impl Inbox {
    /// An inbox of one such buffer.
    pub const fn new(buffer: ReadBuffer) -> Self {
        Self(RefCell::new(buffer))
    }

    /// Lends a peer the buffer, with `rest` in it, for as long as `turn` takes; what is then unread
    /// is the new rest.
    pub fn lend<T>(&self, rest: &mut Rest, turn: impl FnOnce(&mut ReadBuffer) -> T) -> T {
        let mut buffer = self.0.borrow_mut();
        buffer.begin(&rest.0);
        let result = turn(&mut buffer);
        rest.keep(buffer.unread());
        result
    }
}

/// What one peer has sent and nobody has dealt with yet: most often nothing, or the beginning of a
/// frame.
#[derive(Default)]
pub struct Rest(Vec<u8>);

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rest({} bytes)", self.bytes())
    }
}

/// A rest that was longer does not stay allocated: it was a turn that had to wait.
const REST_BYTES: usize = 4096;

impl Rest {
    fn keep(&mut self, unread: &[u8]) {
        self.0.clear();
        if self.0.capacity() > REST_BYTES && unread.len() <= REST_BYTES {
            self.0.shrink_to(REST_BYTES);
        }
        self.0.extend_from_slice(unread);
    }

    /// How many bytes it has.
    pub const fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// Frames that wait to be written to one connection, up to a bound.
pub struct WriteBuffer {
    framing: Framing,
    bytes: Vec<u8>,
    written: usize,
    bytes_max: usize,
}

impl fmt::Debug for WriteBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteBuffer({} bytes)", self.pending().len())
    }
}

impl WriteBuffer {
    /// An empty buffer for at most `bytes_max` bytes.
    pub const fn new(framing: Framing, bytes_max: usize) -> Self {
        Self { framing, bytes: Vec::new(), written: 0, bytes_max }
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// When there is no room for it, or the framing cannot carry it; then nothing was appended.
    pub fn push(&mut self, frame: &[u8]) -> Result<(), PushError> {
        if !self.has_room(frame.len()) {
            return Err(PushError::Full);
        }
        Ok(self.framing.join(frame, &mut self.bytes)?)
    }

    /// Appends bytes that carry no message, as they are; leaves them out when there is no room.
    pub fn push_keepalive(&mut self, bytes: &[u8]) {
        if self.has_room(bytes.len()) {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.pending().len().saturating_add(bytes) <= self.bytes_max
    }

    /// Forgets what was not written: nobody is left to take it.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
    }

    /// What is still to be written.
    pub fn pending(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }

    /// `bytes` of it were written.
    pub fn advance(&mut self, bytes: usize) {
        self.written = self.written.saturating_add(bytes);
        if self.written >= self.bytes.len() {
            self.clear();
        } else if self.written > self.bytes_max / 2 {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }
}

/// Why a frame was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The peer does not take its bytes.
    #[error("no room")]
    Full,
    /// The framing has no length for it.
    #[error(transparent)]
    Framing(#[from] FrameError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_into(buffer: &mut ReadBuffer, bytes: &[u8]) {
        buffer.free()[..bytes.len()].copy_from_slice(bytes);
        buffer.filled(bytes.len());
    }

    #[test]
    fn bytes_come_out_in_order_over_any_number_of_refills() {
        let mut buffer = ReadBuffer::new(&Splitter::new(Framing::Be16, 4_096));
        let (mut next_in, mut next_out) = (0_u8, 0_u8);
        for round in 1..3_000_usize {
            let bytes: Vec<u8> = (0..round % 97)
                .map(|_| {
                    next_in = next_in.wrapping_add(1);
                    next_in
                })
                .collect();
            read_into(&mut buffer, &bytes);
            for _ in 0..buffer.unread().len().min(round % 89) {
                next_out = next_out.wrapping_add(1);
                assert_eq!(buffer.unread()[0], next_out);
                buffer.consume(1);
            }
        }
    }

    #[test]
    fn what_a_peer_left_unread_is_lent_to_it_again_whoever_was_read_meanwhile() {
        let inbox = Inbox::new(ReadBuffer::new(&Splitter::new(Framing::Be16, 4_096)));
        let mut peers: Vec<_> = (0..3).map(|_| Rest::default()).collect();
        for round in 0_u8..100 {
            for (peer, rest) in (0_u8..).zip(&mut peers) {
                let left = rest.bytes();
                inbox.lend(rest, |buffer| {
                    assert_eq!(buffer.unread().len(), left);
                    assert!(buffer.unread().iter().all(|byte| *byte == peer), "another's bytes");
                    read_into(buffer, &[peer; 9]);
                    buffer.consume(usize::from(round % 16));
                });
            }
        }
        assert!(peers.iter().any(|rest| rest.bytes() > 0));
    }

    #[test]
    fn a_long_rest_does_not_stay_allocated() {
        let inbox = Inbox::new(ReadBuffer::new(&Splitter::new(Framing::Be16, 4_096)));
        let mut rest = Rest::default();
        inbox.lend(&mut rest, |buffer| read_into(buffer, &[1; 60_000]));
        assert_eq!(rest.bytes(), 60_000);
        inbox.lend(&mut rest, |buffer| buffer.consume(59_999));
        assert_eq!(rest.bytes(), 1);
        assert!(rest.0.capacity() <= REST_BYTES);
    }

    #[test]
    fn a_buffer_that_holds_part_of_the_longest_frame_has_room_for_the_rest() {
        let mut buffer = ReadBuffer::new(&Splitter::new(Framing::Be16, 65_535));
        read_into(&mut buffer, &vec![7; 65_537]);
        buffer.consume(65_530);
        assert!(buffer.free().len() >= 65_530);
    }

    #[test]
    fn a_full_write_buffer_takes_nothing_and_takes_again_once_written() {
        let mut buffer = WriteBuffer::new(Framing::Be16, 10);
        assert_eq!(buffer.push(&[1; 8]), Ok(()));
        assert_eq!(buffer.push(&[2; 8]), Err(PushError::Full));
        assert_eq!(buffer.pending().len(), 10);
        buffer.advance(10);
        assert_eq!(buffer.push(&[2; 8]), Ok(()));
        assert_eq!(buffer.pending(), [0, 8, 2, 2, 2, 2, 2, 2, 2, 2]);
    }
}

//! What cutting promises: the same frames however a stream comes in pieces, none longer than
//! allowed, each of which can be sent on, and a fault that no later byte would mend.

use std::mem::{Discriminant, discriminant};

use super::framing;
use crate::wire::{FrameError, Framing, Splitter};

/// How many bytes choose: the framing, two of `frame_bytes_max` (big-endian), and one more than the
/// last says is the size of the pieces that the stream comes in.
pub const SPLIT_HEAD_BYTES: usize = 4;

/// A frame without a length is looked for anew with each piece, so that pieces of one byte of a long
/// stream are many looks at much.
const PIECES_MAX: usize = 256;

/// What a stream may go on with after a fault: nothing, the end of a frame, digits, noise.
const LATER: [&[u8]; 3] = [&[0x00; 8], &[0x03; 8], b"00000000"];

/// Cuts a stream into frames, as one piece and in many. How many frames came out.
///
/// # Panics
/// When a promise of [`Splitter`] or [`Framing::join`] is broken.
pub fn split(data: &[u8]) -> usize {
    let Some((head, stream)) = data.split_first_chunk::<SPLIT_HEAD_BYTES>() else { return 0 };
    let [choice, high, low, piece] = *head;
    let Some(framing) = framing(choice) else { return 0 };
    let frame_bytes_max = usize::from(u16::from_be_bytes([high, low]));

    let cut = Cut::of(framing, frame_bytes_max, stream, stream.len());
    let piece_bytes = (usize::from(piece) + 1).max(stream.len() / PIECES_MAX);
    let in_pieces = Cut::of(framing, frame_bytes_max, stream, piece_bytes);
    assert!(cut == in_pieces, "{}: pieces change what is cut", framing.name());
    if cut.fault.is_some() {
        let rest = stream.get(cut.taken..).unwrap_or_default();
        is_seen_at_once(framing, frame_bytes_max, rest);
        is_final(framing, frame_bytes_max, rest);
    }
    can_be_sent_on(framing, frame_bytes_max, &cut);
    prints_nothing_of_it(framing, frame_bytes_max, stream);
    cut.ends.len()
}

/// What became of a stream.
#[derive(PartialEq, Eq)]
struct Cut {
    /// The frames, one behind the other, and where each ends.
    frames: Vec<u8>,
    ends: Vec<usize>,
    /// How many bytes of the stream they took.
    taken: usize,
    /// Of what kind; what its cause most likely is may change with what else is there to look at.
    fault: Option<Discriminant<FrameError>>,
}

impl Cut {
    /// Reads the stream as a session does: a piece is added to what is left over, and all frames
    /// that are whole are cut off. Every turn of either loop takes a byte at least.
    fn of(framing: Framing, frame_bytes_max: usize, stream: &[u8], piece_bytes: usize) -> Self {
        let mut splitter = Splitter::new(framing, frame_bytes_max);
        let buffer_bytes = splitter.buffer_bytes();
        let mut cut = Self { frames: Vec::new(), ends: Vec::new(), taken: 0, fault: None };
        let mut come = 0;
        while come < stream.len() {
            come = stream.len().min(come + piece_bytes);
            loop {
                let buffer = stream.get(cut.taken..come).unwrap_or_default();
                match splitter.split(buffer) {
                    Ok(Some(split)) => {
                        let (frame, whole) = (split.frame, split.whole);
                        assert!(!whole.is_empty() && buffer.starts_with(whole));
                        assert!(frame.len() <= frame_bytes_max && frame.len() <= whole.len());
                        cut.frames.extend_from_slice(frame);
                        cut.ends.push(cut.frames.len());
                        cut.taken += whole.len();
                    }
                    Ok(None) => {
                        assert!(buffer.len() < buffer_bytes, "a full buffer without a frame");
                        break;
                    }
                    Err(fault) => {
                        cut.fault = Some(discriminant(&fault));
                        return cut;
                    }
                }
            }
        }
        cut
    }

    fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(start, end)| self.frames.get(start..*end))
    }
}

/// Whether bytes are no beginning of a frame, and why.
fn fault(framing: Framing, frame_bytes_max: usize, bytes: &[u8]) -> Option<FrameError> {
    Splitter::new(framing, frame_bytes_max).split(bytes).err()
}

/// A fault is seen with the last byte of the length that is at fault, or where the end should be.
fn is_seen_at_once(framing: Framing, frame_bytes_max: usize, rest: &[u8]) {
    let fault = |bytes: Option<&[u8]>| fault(framing, frame_bytes_max, bytes.unwrap_or_default());
    let frame_bytes_max = frame_bytes_max.min(framing.frame_bytes_ceiling());
    let needed = match fault(Some(rest)) {
        Some(FrameError::Endless { .. }) => frame_bytes_max + 1,
        Some(FrameError::NoEtx) => return,
        // The part at fault may be any.
        _ if framing == Framing::Rbp6 => return,
        _ => framing.prefix_bytes(),
    };
    assert!(fault(rest.get(..needed)).is_some(), "{} waits in vain", framing.name());
    let before = rest.get(..needed.saturating_sub(1));
    assert!(fault(before).is_none(), "{} does not wait", framing.name());
}

/// Whatever comes later, a fault stays one of its kind.
fn is_final(framing: Framing, frame_bytes_max: usize, rest: &[u8]) {
    let kind = fault(framing, frame_bytes_max, rest).map(|fault| discriminant(&fault));
    for later in LATER {
        let longer = [rest, later].concat();
        let later = fault(framing, frame_bytes_max, &longer).map(|fault| discriminant(&fault));
        assert!(later == kind, "{}: a fault is mended", framing.name());
    }
}

/// Each frame that came out can go in again, and comes out as it was.
fn can_be_sent_on(framing: Framing, frame_bytes_max: usize, cut: &Cut) {
    let mut stream = Vec::new();
    for frame in cut.frames() {
        let before = stream.len();
        assert!(framing.join(frame, &mut stream).is_ok(), "{}", framing.name());
        assert!(stream.len() - before == frame.len() + framing.overhead_bytes());
    }
    let again = Cut::of(framing, frame_bytes_max, &stream, stream.len());
    assert!(again.frames == cut.frames && again.ends == cut.ends, "{}", framing.name());
    assert!(again.taken == stream.len() && again.fault.is_none());
}

/// A frame that is printed is its lengths, and a fault is about lengths.
fn prints_nothing_of_it(framing: Framing, frame_bytes_max: usize, stream: &[u8]) {
    let mut splitter = Splitter::new(framing, frame_bytes_max);
    match splitter.split(stream) {
        Ok(Some(split)) => {
            let (frame, whole) = (split.frame.len(), split.whole.len());
            assert!(format!("{split:?}") == format!("Split({frame} of {whole} bytes)"));
        }
        Ok(None) => {}
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::framings;

    #[test]
    fn frames_come_out_until_the_first_fault() {
        assert_eq!(split(b"\x00\x10\x00\x00\x00\x02ab\x00\x00\x00\x01c\x00"), 3);
        assert_eq!(split(b"\x00\x00\x02\x00\x00\x02ab\x00\x03abc\x00\x01c"), 1);
        assert_eq!(split(b"\x00\x00\x02"), 0);
    }

    #[test]
    fn every_framing_carries_frames_here() {
        for (choice, framing) in (0_u8..).zip(framings()) {
            let mut data = vec![choice, 0, 64, 6];
            for frame in [&b"0100 and more"[..], b"", b"0"] {
                framing.join(frame, &mut data).unwrap();
            }
            assert_eq!(split(&data), 3, "{}", framing.name());
        }
    }
}

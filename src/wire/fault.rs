//! What makes a byte stream uncuttable, and what most likely caused it.
//!
//! A framing fault is final. Once a length cannot be believed nobody knows where the next message
//! begins, so the session is closed; the error says what the operator should look for.

use std::fmt;

use thiserror::Error;

use super::framing::Framing;

/// Why a byte stream cannot be cut, or a frame not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The announced frame is longer than the link allows.
    #[error("a frame of {announced} bytes was announced, {frame_bytes_max} are allowed{likely}")]
    TooLong {
        /// Announced length of the frame, in bytes.
        announced: usize,
        /// The link's `frame_bytes_max`.
        frame_bytes_max: usize,
        /// What the bytes look like.
        likely: LikelyCause,
    },
    /// A length that includes itself and is shorter than itself.
    #[error(
        "a length of {announced} does not even count its own bytes: \
         this looks like a framing whose length does not, or the stream is out of step"
    )]
    LengthBelowItself {
        /// The length as it was read.
        announced: usize,
    },
    /// A length that should be written in digits and is not: a sign or a blank is none.
    #[error("the length is not written in digits{likely}")]
    NotDigits {
        /// What the bytes look like.
        likely: LikelyCause,
    },
    /// Constant bytes around the length are others.
    #[error("the bytes around the length are not those of this framing{likely}")]
    NotConstant {
        /// What the bytes look like.
        likely: LikelyCause,
    },
    /// Another byte stands where the frame should end in ETX.
    #[error(
        "the frame does not end in ETX (0x03) where its length says: the stream is out of step"
    )]
    NoEtx,
    /// No end came within the longest frame that the link allows.
    #[error("no ETX (0x03) came within {frame_bytes_max} bytes")]
    Endless {
        /// The link's `frame_bytes_max`.
        frame_bytes_max: usize,
    },
    /// A frame in more parts than anybody sends.
    #[error("a frame in more than {parts_max} parts")]
    TooManyParts {
        /// How many are taken.
        parts_max: usize,
    },
    /// A frame too long for the framing it should leave in.
    #[error("a frame of {frame_bytes} bytes does not fit this framing, which ends at {ceiling}")]
    Unsendable {
        /// The frame's length, in bytes.
        frame_bytes: usize,
        /// The framing's ceiling, in bytes.
        ceiling: usize,
    },
    /// A frame that holds the byte which ends a frame.
    #[error(
        "a frame that holds the byte 0x03 cannot be sent in this framing, which would end there"
    )]
    EtxInside,
}

/// What an unbelievable length most likely is, from the look of the bytes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikelyCause {
    /// Nothing can be said.
    Unknown,
    /// The length bytes are ASCII digits.
    AsciiLength,
    /// The first four bytes are an MTI of ASCII digits.
    NoLength,
    /// In this framing the bytes would be a frame that begins like a message.
    Framing(Framing),
    /// What follows the length begins like a message: the frame may be as long as it says.
    LongMessage,
}

impl LikelyCause {
    /// Of bytes that are no frame in `framing`.
    pub(super) fn of(buffer: &[u8], framing: Framing, frame_bytes_max: usize) -> Self {
        let first = buffer.get(..4).is_some_and(looks_like_an_mti);
        let second = buffer.get(4..8).is_some_and(|next| !looks_like_an_mti(next));
        match buffer {
            _ if first && second => Self::NoLength,
            [high, low, ..]
                if high.is_ascii_digit() && low.is_ascii_digit() && !framing.has_digits() =>
            {
                Self::AsciiLength
            }
            _ if framing.is_prefix(buffer) && begins_like_a_message(framing.behind(buffer)) => {
                Self::LongMessage
            }
            _ => Self::of_another(buffer, framing, frame_bytes_max),
        }
    }

    fn of_another(buffer: &[u8], framing: Framing, frame_bytes_max: usize) -> Self {
        let begins_well = |other: &Framing| {
            let frame = other.announced_frame(buffer).filter(|bytes| *bytes <= frame_bytes_max);
            *other != framing
                && other.is_prefix(buffer)
                && frame.is_some_and(|bytes| bytes > 4)
                && begins_like_a_message(other.behind(buffer))
        };
        Framing::ALL.into_iter().find(begins_well).map_or(Self::Unknown, Self::Framing)
    }
}

/// Four ASCII digits of which the first two are a version and a class that exist.
fn looks_like_an_mti(bytes: &[u8]) -> bool {
    matches!(bytes, [b'0'..=b'2', b'1'..=b'8', b'0'..=b'9', b'0'..=b'9'])
}

/// An MTI in ASCII or EBCDIC, or the constant byte at the head of a TPDU.
fn begins_like_a_message(body: &[u8]) -> bool {
    let Some(mti) = body.first_chunk::<4>() else { return false };
    let from_ebcdic = mti.map(|byte| byte ^ 0xc0);
    looks_like_an_mti(mti) || looks_like_an_mti(&from_ebcdic) || body.first() == Some(&0x60)
}

/// Written behind the error, with its own punctuation.
impl fmt::Display for LikelyCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => Ok(()),
            Self::AsciiLength => {
                f.write_str(": its length bytes are ASCII digits, this looks like ascii4 framing")
            }
            Self::NoLength => f.write_str(
                ": its length bytes are ASCII digits, this looks like ascii4 framing, or like \
                 messages sent without any length",
            ),
            Self::Framing(framing) => write!(f, ": this looks like {} framing", framing.name()),
            Self::LongMessage => f.write_str(
                ": a message seems to follow, raise frame_bytes_max if the peer sends such long ones",
            ),
        }
    }
}

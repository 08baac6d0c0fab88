//! Framings: what a length says, and how long a frame may be.
//!
//! A framing fault is final. Once a length cannot be believed nobody knows where the next message
//! begins, so the session is closed; the error says what the operator should look for.

use std::fmt;

use thiserror::Error;

/// How the length of a frame is written before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Two bytes, big-endian, that count the frame.
    Be16,
    /// Two bytes, big-endian, that count the frame and themselves.
    Be16Incl,
}

/// One frame at the head of a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Split<'a> {
    /// The frame without its length. Empty: a keepalive, which is no message.
    pub frame: &'a [u8],
    /// The frame with its length, as it came.
    pub whole: &'a [u8],
}

impl fmt::Debug for Split<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Split({} of {} bytes)", self.frame.len(), self.whole.len())
    }
}

impl Framing {
    /// Every framing.
    pub const ALL: [Self; 2] = [Self::Be16, Self::Be16Incl];

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Be16 => "be16",
            Self::Be16Incl => "be16_incl",
        }
    }

    /// The framing of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|framing| framing.name() == name)
    }

    /// The longest frame that this framing can announce, in bytes.
    pub const fn frame_bytes_ceiling(self) -> usize {
        match self {
            Self::Be16 => 65_535,
            Self::Be16Incl => 65_533,
        }
    }

    /// How many bytes stand before the frame.
    pub const fn prefix_bytes(self) -> usize {
        2
    }

    /// Cuts the first frame off `buffer`: `None` while it is not whole.
    ///
    /// # Errors
    /// When the announced length is above `frame_bytes_max` or cannot be: at once, without waiting
    /// for bytes that will not come.
    pub fn split(
        self,
        buffer: &[u8],
        frame_bytes_max: usize,
    ) -> Result<Option<Split<'_>>, FrameError> {
        let Some((prefix, rest)) = buffer.split_first_chunk::<2>() else { return Ok(None) };
        let announced = usize::from(u16::from_be_bytes(*prefix));
        let Some(frame_bytes) = self.frame_bytes(announced) else {
            return Err(FrameError::LengthBelowItself { announced });
        };
        if frame_bytes > frame_bytes_max {
            let likely = LikelyCause::of(buffer);
            return Err(FrameError::TooLong { announced: frame_bytes, frame_bytes_max, likely });
        }
        let whole_bytes = self.prefix_bytes().saturating_add(frame_bytes);
        let (Some(frame), Some(whole)) = (rest.get(..frame_bytes), buffer.get(..whole_bytes))
        else {
            return Ok(None);
        };
        Ok(Some(Split { frame, whole }))
    }

    /// What a length of `announced` says of the frame behind it.
    const fn frame_bytes(self, announced: usize) -> Option<usize> {
        match self {
            Self::Be16 => Some(announced),
            // Zero counts not even itself; peers that use it mean a keepalive.
            Self::Be16Incl if announced == 0 => Some(0),
            Self::Be16Incl => announced.checked_sub(2),
        }
    }

    /// Appends `frame` with its length to `out`.
    ///
    /// # Errors
    /// When this framing cannot announce such a length; then nothing is appended.
    pub fn join(self, frame: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
        let ceiling = self.frame_bytes_ceiling();
        let counted = match self {
            Self::Be16 => frame.len(),
            Self::Be16Incl => frame.len().saturating_add(2),
        };
        let Ok(announced) = u16::try_from(counted) else {
            return Err(FrameError::Unsendable { frame_bytes: frame.len(), ceiling });
        };
        out.extend_from_slice(&announced.to_be_bytes());
        out.extend_from_slice(frame);
        Ok(())
    }
}

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
        /// What the length bytes look like.
        likely: LikelyCause,
    },
    /// An inclusive length that is shorter than itself.
    #[error(
        "a length of {announced} does not even count its own two bytes: \
         this looks like be16 framing, or the stream is out of step"
    )]
    LengthBelowItself {
        /// The length as it was read.
        announced: usize,
    },
    /// A frame too long for the framing it should leave in.
    #[error("a frame of {frame_bytes} bytes does not fit this framing, which ends at {ceiling}")]
    Unsendable {
        /// The frame's length, in bytes.
        frame_bytes: usize,
        /// The framing's ceiling, in bytes.
        ceiling: usize,
    },
}

/// What an unbelievable length most likely is, from the look of its bytes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikelyCause {
    /// Nothing can be said.
    Unknown,
    /// The length bytes are ASCII digits.
    AsciiLength,
    /// The first four bytes are an MTI of ASCII digits.
    NoLength,
}

impl LikelyCause {
    fn of(buffer: &[u8]) -> Self {
        let first = buffer.get(..4).is_some_and(looks_like_an_mti);
        let second = buffer.get(4..8).is_some_and(|next| !looks_like_an_mti(next));
        match buffer {
            _ if first && second => Self::NoLength,
            [high, low, ..] if high.is_ascii_digit() && low.is_ascii_digit() => Self::AsciiLength,
            _ => Self::Unknown,
        }
    }
}

/// Four ASCII digits of which the first two are a version and a class that exist.
fn looks_like_an_mti(bytes: &[u8]) -> bool {
    matches!(bytes, [b'0'..=b'2', b'1'..=b'8', b'0'..=b'9', b'0'..=b'9'])
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(framing: Framing, bytes: &[u8]) -> Result<Option<&[u8]>, FrameError> {
        Ok(framing.split(bytes, 4_096)?.map(|split| split.frame))
    }

    #[test]
    fn a_frame_is_cut_only_when_it_is_whole() {
        assert_eq!(split(Framing::Be16, &[]), Ok(None));
        assert_eq!(split(Framing::Be16, &[0]), Ok(None));
        assert_eq!(split(Framing::Be16, &[0, 2, 7]), Ok(None));
        assert_eq!(split(Framing::Be16, &[0, 2, 7, 8, 9]), Ok(Some(&[7, 8][..])));
        assert_eq!(split(Framing::Be16Incl, &[0, 4, 7, 8, 9]), Ok(Some(&[7, 8][..])));
    }

    #[test]
    fn a_length_of_nothing_is_a_keepalive() {
        assert_eq!(split(Framing::Be16, &[0, 0, 1]), Ok(Some(&[][..])));
        assert_eq!(split(Framing::Be16Incl, &[0, 0, 1]), Ok(Some(&[][..])));
        assert_eq!(split(Framing::Be16Incl, &[0, 2, 1]), Ok(Some(&[][..])));
    }

    #[test]
    fn an_inclusive_length_of_one_is_broken() {
        let error = split(Framing::Be16Incl, &[0, 1, 9]).unwrap_err();
        assert_eq!(error, FrameError::LengthBelowItself { announced: 1 });
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_its_bytes_come() {
        let error = split(Framing::Be16, &[0x10, 0x01]).unwrap_err();
        assert_eq!(error.to_string(), "a frame of 4097 bytes was announced, 4096 are allowed");
        assert!(split(Framing::Be16, &[0x10, 0x00]).unwrap().is_none());
    }

    #[test]
    fn the_likely_cause_of_an_unbelievable_length_is_named() {
        let says = |bytes: &[u8]| split(Framing::Be16, bytes).unwrap_err().to_string();
        for bytes in [&b"0069"[..], b"00690800", b"01100100", b"08000800"] {
            assert!(says(bytes).ends_with("this looks like ascii4 framing"), "{}", says(bytes));
        }
        for bytes in [&b"08008220"[..], b"0100723C"] {
            assert!(says(bytes).contains("without any length"), "{}", says(bytes));
        }
        assert!(!says(&[0xFF, 0xFF, b'0', b'1']).contains("looks like"));
    }

    #[test]
    fn nothing_is_appended_when_a_frame_does_not_fit() {
        let mut out = vec![1];
        assert!(Framing::Be16Incl.join(&vec![0; 65_534], &mut out).is_err());
        assert_eq!(out, [1]);
        assert!(Framing::Be16Incl.join(&vec![0; 65_533], &mut out).is_ok());
        assert_eq!(out[1..3], [0xFF, 0xFF]);
    }

    #[test]
    fn every_framing_is_found_by_its_name() {
        for framing in Framing::ALL {
            assert_eq!(Framing::from_name(framing.name()), Some(framing));
        }
        assert_eq!(Framing::from_name("gzip"), None);
    }
}

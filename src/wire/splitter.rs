//! Cutting a byte stream into frames.

use std::fmt;

use super::fault::{FrameError, LikelyCause};
use super::framing::{ETX, Framing, RBP_PROTOCOL};

/// Parts that one frame may come in (`rbp6`): enough for the longest frame, few enough that headers
/// of empty parts do not fill a buffer.
const PARTS_MAX: usize = 32;

/// One frame at the head of a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Split<'a> {
    /// The frame without its length. Empty: a keepalive or session control, which is no message.
    pub frame: &'a [u8],
    /// The frame with all that belongs to it, as it came.
    pub whole: &'a [u8],
}

impl fmt::Debug for Split<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Split({} of {} bytes)", self.frame.len(), self.whole.len())
    }
}

/// Cuts what comes in one framing.
#[derive(Clone)]
pub struct Splitter {
    framing: Framing,
    frame_bytes_max: usize,
    /// A frame that came in parts, put together.
    assembled: Vec<u8>,
}

impl fmt::Debug for Splitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Splitter({}, at most {} bytes)", self.framing.name(), self.frame_bytes_max)
    }
}

impl Splitter {
    /// For frames of at most `frame_bytes_max` bytes, or of what the framing can carry if that is
    /// less.
    pub fn new(framing: Framing, frame_bytes_max: usize) -> Self {
        let frame_bytes_max = frame_bytes_max.min(framing.frame_bytes_ceiling());
        Self { framing, frame_bytes_max, assembled: Vec::new() }
    }

    /// Bytes that a buffer must hold, so that every frame becomes whole in it.
    pub fn buffer_bytes(&self) -> usize {
        let parts = if self.framing == Framing::Rbp6 { PARTS_MAX } else { 1 };
        let around = self.framing.overhead_bytes().saturating_mul(parts);
        self.frame_bytes_max.saturating_add(around)
    }

    /// Cuts the first frame off `buffer`: `None` while it is not whole.
    ///
    /// # Errors
    /// When it cannot be a frame of this framing, or is longer than allowed: at once, without
    /// waiting for bytes that will not come.
    pub fn split<'a>(&'a mut self, buffer: &'a [u8]) -> Result<Option<Split<'a>>, FrameError> {
        match self.framing {
            Framing::Etx => self.split_at_etx(buffer),
            Framing::Rbp6 => self.split_parts(buffer),
            _ => self.split_counted(buffer),
        }
    }

    fn split_counted<'a>(&self, buffer: &'a [u8]) -> Result<Option<Split<'a>>, FrameError> {
        let framing = self.framing;
        let Some((prefix, rest)) = buffer.split_at_checked(framing.prefix_bytes()) else {
            return Ok(None);
        };
        let Some(announced) = framing.announced(prefix) else {
            return Err(FrameError::NotDigits { likely: self.likely(buffer) });
        };
        let control = match (framing, prefix) {
            (Framing::Vmlh4, [_, _, 0, mark]) if *mark == 0 || mark >> 4 == 2 => *mark != 0,
            (Framing::Vmlh4, _) => {
                return Err(FrameError::NotConstant { likely: self.likely(buffer) });
            }
            _ => false,
        };
        // Zero counts not even itself, or the ETX; peers that send it mean a keepalive.
        if announced == 0 {
            return Ok(Some(Split { frame: &[], whole: prefix }));
        }
        let Some(frame_bytes) = announced.checked_sub(framing.counted_beside()) else {
            return Err(FrameError::LengthBelowItself { announced });
        };
        self.check(frame_bytes, buffer)?;
        let whole_bytes = framing.overhead_bytes().saturating_add(frame_bytes);
        let (Some(frame), Some(whole)) = (rest.get(..frame_bytes), buffer.get(..whole_bytes))
        else {
            return Ok(None);
        };
        if framing.trailer_bytes() > 0 && whole.last() != Some(&ETX) {
            return Err(FrameError::NoEtx);
        }
        Ok(Some(Split { frame: if control { &[] } else { frame }, whole }))
    }

    fn split_at_etx<'a>(&self, buffer: &'a [u8]) -> Result<Option<Split<'a>>, FrameError> {
        let frame_bytes_max = self.frame_bytes_max;
        let within = buffer.get(..=frame_bytes_max).unwrap_or(buffer);
        match within.iter().position(|byte| *byte == ETX) {
            Some(end) => Ok(buffer
                .get(..end)
                .zip(buffer.get(..=end))
                .map(|(frame, whole)| Split { frame, whole })),
            None if buffer.len() > frame_bytes_max => Err(FrameError::Endless { frame_bytes_max }),
            None => Ok(None),
        }
    }

    /// A frame in parts is put together once the last of them is there, so that a peer that sends
    /// many small ones has each byte copied once.
    fn split_parts<'a>(&'a mut self, buffer: &'a [u8]) -> Result<Option<Split<'a>>, FrameError> {
        let (mut at, mut frame_bytes) = (0_usize, 0_usize);
        for _ in 0..PARTS_MAX {
            let rest = buffer.get(at..).unwrap_or_default();
            let Some((part, more)) = self.part(rest, buffer)? else { return Ok(None) };
            frame_bytes = frame_bytes.saturating_add(part);
            self.check(frame_bytes, buffer)?;
            at = at.saturating_add(Framing::Rbp6.prefix_bytes()).saturating_add(part);
            let Some(whole) = buffer.get(..at) else { return Ok(None) };
            if !more {
                return Ok(Some(self.assemble(whole)));
            }
        }
        Err(FrameError::TooManyParts { parts_max: PARTS_MAX })
    }

    /// How long the part at the head of `rest` is, and whether another follows.
    fn part(&self, rest: &[u8], buffer: &[u8]) -> Result<Option<(usize, bool)>, FrameError> {
        let Some(prefix) = rest.get(..Framing::Rbp6.prefix_bytes()) else { return Ok(None) };
        let more = match prefix {
            [first, second, _, _, more @ (0 | 1), 0] if [*first, *second] == RBP_PROTOCOL => *more,
            _ => return Err(FrameError::NotConstant { likely: self.likely(buffer) }),
        };
        Ok(Framing::Rbp6.announced(prefix).map(|part| (part, more == 1)))
    }

    fn assemble<'a>(&'a mut self, whole: &'a [u8]) -> Split<'a> {
        let prefix_bytes = Framing::Rbp6.prefix_bytes();
        let part_of = |rest: &'a [u8]| {
            let (prefix, behind) = rest.split_at_checked(prefix_bytes)?;
            behind.split_at_checked(Framing::Rbp6.announced(prefix)?)
        };
        if let Some((frame, [])) = part_of(whole) {
            return Split { frame, whole };
        }
        self.assembled.clear();
        // Once for all frames of a session: growing as they come would take up to twice as much.
        self.assembled.reserve_exact(self.frame_bytes_max);
        let mut rest = whole;
        while let Some((part, behind)) = part_of(rest) {
            self.assembled.extend_from_slice(part);
            rest = behind;
        }
        Split { frame: &self.assembled, whole }
    }

    fn check(&self, announced: usize, buffer: &[u8]) -> Result<(), FrameError> {
        let frame_bytes_max = self.frame_bytes_max;
        if announced <= frame_bytes_max {
            return Ok(());
        }
        Err(FrameError::TooLong { announced, frame_bytes_max, likely: self.likely(buffer) })
    }

    fn likely(&self, buffer: &[u8]) -> LikelyCause {
        LikelyCause::of(buffer, self.framing, self.frame_bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(framing: Framing, bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, FrameError> {
        let mut splitter = Splitter::new(framing, 4_096);
        Ok(splitter.split(bytes)?.map(|split| (split.frame.to_vec(), split.whole.len())))
    }

    fn is(frame: &[u8], whole: usize) -> Result<Option<(Vec<u8>, usize)>, FrameError> {
        Ok(Some((frame.to_vec(), whole)))
    }

    #[test]
    fn a_frame_is_cut_only_when_it_is_whole() {
        for framing in Framing::ALL {
            let mut stream = Vec::new();
            framing.join(b"message", &mut stream).unwrap();
            for end in 0..stream.len() {
                assert_eq!(split(framing, &stream[..end]), Ok(None), "{}", framing.name());
            }
            let whole = stream.len();
            stream.push(9);
            assert_eq!(split(framing, &stream), is(b"message", whole), "{}", framing.name());
        }
    }

    #[test]
    fn what_carries_no_message_is_an_empty_frame() {
        for (framing, keepalive) in [
            (Framing::Be16, &[0, 0][..]),
            (Framing::Be16Incl, &[0, 0]),
            (Framing::Be16Incl, &[0, 2]),
            (Framing::Le16, &[0, 0]),
            (Framing::Be24, &[0, 0, 0]),
            (Framing::Be32, &[0, 0, 0, 0]),
            (Framing::Be32Incl, &[0, 0, 0, 0]),
            (Framing::Be32Incl, &[0, 0, 0, 4]),
            (Framing::Vmlh4, &[0, 0, 0, 0]),
            (Framing::Vmlh4, &[0, 0, 0, 0x20]),
            (Framing::Vmlh4, &[0, 3, 0, 0x2f, 1, 2, 3]),
            (Framing::Gicc4, &[0, 0, 0, 0]),
            (Framing::Rbp6, &[0xd0, 0x4a, 0, 0, 0, 0]),
            (Framing::Ascii { digits: 4 }, b"0000"),
            (Framing::Bcd2, &[0, 0]),
            (Framing::Hex4, b"0000"),
            (Framing::Be16Etx, &[0, 0]),
            (Framing::Be16Etx, &[0, 1, 3]),
            (Framing::Etx, &[3]),
        ] {
            let stream = [keepalive, &[9]].concat();
            assert_eq!(split(framing, &stream), is(&[], keepalive.len()), "{}", framing.name());
        }
    }

    #[test]
    fn a_length_that_includes_itself_and_does_not_is_broken() {
        let below = |announced| Err(FrameError::LengthBelowItself { announced });
        assert_eq!(split(Framing::Be16Incl, &[0, 1, 9]), below(1));
        for announced in 1..4 {
            assert_eq!(split(Framing::Be32Incl, &[0, 0, 0, announced]), below(announced.into()));
        }
    }

    #[test]
    fn a_sign_a_blank_or_a_letter_is_no_digit_of_a_length() {
        let framings = [Framing::Ascii { digits: 4 }, Framing::Ascii { digits: 6 }, Framing::Hex4];
        for framing in framings {
            for place in 0..framing.prefix_bytes() {
                for wrong in *b"-+ .gGxX\0\xf1" {
                    let mut stream = vec![b'0'; framing.prefix_bytes()];
                    stream[place] = wrong;
                    let refused = split(framing, &stream);
                    assert!(matches!(refused, Err(FrameError::NotDigits { .. })), "{refused:?}");
                }
            }
        }
        for bytes in [[0x0a, 0x00], [0xa0, 0x00], [0x00, 0x0f], [0x00, 0xf0]] {
            let refused = split(Framing::Bcd2, &bytes);
            assert!(matches!(refused, Err(FrameError::NotDigits { .. })), "{refused:?}");
        }
        assert_eq!(split(Framing::Hex4, b"000a123456789"), Ok(None));
        assert_eq!(split(Framing::Hex4, b"000a1234567890"), is(b"1234567890", 14));
    }

    #[test]
    fn constant_bytes_around_a_length_are_believed_only_if_they_are_right() {
        for (framing, bytes) in [
            (Framing::Vmlh4, &[0, 5, 0, 1][..]),
            (Framing::Vmlh4, &[0, 5, 1, 0]),
            (Framing::Vmlh4, &[0, 5, 0, 0x30]),
            (Framing::Rbp6, &[0xd0, 0x4b, 0, 1, 0, 0]),
            (Framing::Rbp6, &[0xd0, 0x4a, 0, 1, 2, 0]),
            (Framing::Rbp6, &[0xd0, 0x4a, 0, 1, 0, 1]),
        ] {
            let refused = split(framing, bytes);
            assert!(matches!(refused, Err(FrameError::NotConstant { .. })), "{refused:?}");
        }
        assert_eq!(split(Framing::Be16Etx, &[0, 3, b'a', b'b', b'c']), Err(FrameError::NoEtx));
    }

    #[test]
    fn a_frame_in_parts_is_put_together() {
        let stream = b"\xd0\x4a\0\x02\x01\0ab\xd0\x4a\0\0\x01\0\xd0\x4a\0\x03\0\0cde";
        for end in 0..stream.len() {
            assert_eq!(split(Framing::Rbp6, &stream[..end]), Ok(None));
        }
        assert_eq!(split(Framing::Rbp6, stream), is(b"abcde", stream.len()));
        let endless = b"\xd0\x4a\0\0\x01\0".repeat(PARTS_MAX);
        let parts_max = PARTS_MAX;
        assert_eq!(split(Framing::Rbp6, &endless), Err(FrameError::TooManyParts { parts_max }));
        let mut long = b"\xd0\x4a\x10\0\x01\0".to_vec();
        long.extend([7; 4_096]);
        assert_eq!(split(Framing::Rbp6, &long), Ok(None));
        long.extend(b"\xd0\x4a\0\x01\0\0");
        let refused = split(Framing::Rbp6, &long);
        assert!(matches!(refused, Err(FrameError::TooLong { announced: 4_097, .. })));
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_its_bytes_come() {
        let error = split(Framing::Be16, &[0x10, 0x01]).unwrap_err();
        assert_eq!(error.to_string(), "a frame of 4097 bytes was announced, 4096 are allowed");
        assert_eq!(split(Framing::Be16, &[0x10, 0x00]), Ok(None));
        let frame_bytes_max = 4_096;
        let endless = vec![7; 4_097];
        assert_eq!(split(Framing::Etx, &endless), Err(FrameError::Endless { frame_bytes_max }));
        assert_eq!(split(Framing::Etx, &endless[1..]), Ok(None));
        // The ceiling of a framing holds whatever the link allows.
        let mut splitter = Splitter::new(Framing::Be16Incl, 100_000);
        assert_eq!(splitter.split(&[0xff, 0xff]).map(|split| split.is_none()), Ok(true));
        assert_eq!(splitter.buffer_bytes(), 65_535);
    }

    #[test]
    fn the_likely_cause_of_an_unbelievable_length_is_named() {
        let says = |framing, bytes: &[u8]| split(framing, bytes).unwrap_err().to_string();
        for bytes in [&b"0069"[..], b"00690800", b"01100100", b"08000800"] {
            let said = says(Framing::Be16, bytes);
            assert!(said.ends_with("this looks like ascii4 framing"), "{said}");
        }
        for bytes in [&b"08008220"[..], b"0100723C"] {
            let said = says(Framing::Be16, bytes);
            assert!(said.contains("without any length"), "{said}");
        }
        let plain = b"\0\x450800823A";
        for framing in [Framing::Hex4, Framing::Ascii { digits: 4 }, Framing::Be32, Framing::Vmlh4]
        {
            let said = says(framing, plain);
            assert!(said.ends_with("this looks like be16 framing"), "{said}");
        }
        assert!(!says(Framing::Be16, &[0xFF, 0xFF, b'0', b'1']).contains("looks like"));
        let long = says(Framing::Be16, b"\x10\x010100723A");
        assert!(long.contains("raise frame_bytes_max"), "{long}");
        // In none of the framings would these constant bytes be right.
        let other = says(Framing::Be24, b"\x01\x00\x00\xff\xff\xff\x600100");
        assert!(!other.contains("looks like"), "{other}");
    }
}

//! Headers: the bytes between the length and the MTI.
//!
//! A header is never built here but from the request's own: an answer goes back the way that the
//! request came, so addresses change places and all else stays. What passes through keeps its
//! header byte for byte.

use std::fmt;

use thiserror::Error;

const TPDU_BYTES: usize = 5;
const VISA_BYTES: u8 = 22;
const VISA_REJECT_BYTES: u8 = 26;
/// Set in the second byte of a reject header.
const VISA_REJECTED: u8 = 0x80;
/// Text formats above it are no ISO 8583 messages.
const VISA_TEXT_FORMAT_MAX: u8 = 2;
const BASE24_BYTES: usize = 12;
const BASE24_MARK: &[u8] = b"ISO";
/// Longest header of bytes that mean nothing here.
const OPAQUE_BYTES_MAX: u8 = 64;

/// What stands in a frame before the MTI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Nothing: the frame is the message.
    None,
    /// Five bytes: an identifier, two of destination, two of origin; then an application's header,
    /// as in POS messages of UnionPay, where it has six bytes.
    Tpdu {
        /// Bytes of the application's header, 0 to 64.
        application_bytes: u8,
    },
    /// Visa's 22 bytes, before which a reject header of 26 may stand.
    Visa,
    /// BASE24's 12 characters, of which the first three are `ISO`.
    Base24,
    /// So many bytes that mean nothing here.
    Fixed {
        /// How many, 1 to 64.
        bytes: u8,
    },
}

/// A frame, its header told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Opened<'a> {
    /// What stands before the MTI.
    pub header: &'a [u8],
    /// The message.
    pub body: &'a [u8],
    /// The network's refusal of this very message, which whoever receives it has sent.
    pub rejected: Option<RejectCode>,
}

impl fmt::Debug for Opened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (header, body) = (self.header.len(), self.body.len());
        write!(f, "Opened({header} + {body} bytes, {:?})", self.rejected)
    }
}

/// Why a message was rejected: four digits, if the header gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectCode(pub Option<u16>);

/// The four digits; `none` where there are none.
impl fmt::Display for RejectCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(code) => write!(f, "{code:04}"),
            None => f.write_str("none"),
        }
    }
}

/// Why a frame has no such header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeaderFault {
    /// The frame ends inside it.
    #[error("frame ends inside its header")]
    Truncated,
    /// The bytes by which such a header is known are others.
    #[error("frame does not begin with such a header")]
    Unknown,
}

impl Header {
    /// The kinds of header as they are written in the configuration.
    pub const NAMES: [&str; 6] = ["none", "tpdu", "tpdu+N", "visa", "base24", "fixed:N"];

    /// The header of that name, `N` in it a number from 1 to 64.
    pub fn from_name(name: &str) -> Option<Self> {
        let number = |digits: &str| {
            let number: u8 = digits.parse().ok()?;
            let plain = number.to_string() == digits;
            (plain && (1..=OPAQUE_BYTES_MAX).contains(&number)).then_some(number)
        };
        match name {
            "none" => Some(Self::None),
            "tpdu" => Some(Self::Tpdu { application_bytes: 0 }),
            "visa" => Some(Self::Visa),
            "base24" => Some(Self::Base24),
            _ => {
                let tpdu = name.strip_prefix("tpdu+").and_then(number);
                let fixed = name.strip_prefix("fixed:").and_then(number);
                tpdu.map(|application_bytes| Self::Tpdu { application_bytes })
                    .or(fixed.map(|bytes| Self::Fixed { bytes }))
            }
        }
    }

    /// How many bytes it has; a Visa header has more where it is a reject.
    pub fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Tpdu { application_bytes } => {
                TPDU_BYTES.saturating_add(usize::from(application_bytes))
            }
            Self::Visa => usize::from(VISA_BYTES),
            Self::Base24 => BASE24_BYTES,
            Self::Fixed { bytes } => usize::from(bytes),
        }
    }

    /// Whether it is made of characters, as far as is known here.
    pub const fn is_text(self) -> bool {
        !matches!(self, Self::Tpdu { .. } | Self::Visa)
    }

    /// Tells header and message apart.
    ///
    /// # Errors
    /// When the frame does not begin with such a header; then nothing can be said of the message.
    pub fn open(self, frame: &[u8]) -> Result<Opened<'_>, HeaderFault> {
        if self == Self::Visa {
            return open_visa(frame);
        }
        if self == Self::Base24 && !BASE24_MARK.starts_with(frame.get(..3).unwrap_or(frame)) {
            return Err(HeaderFault::Unknown);
        }
        let (header, body) = frame.split_at_checked(self.bytes()).ok_or(HeaderFault::Truncated)?;
        Ok(Opened { header, body, rejected: None })
    }

    /// Appends to an empty `out` the header that an answer to `frame` carries: the same, with
    /// destination and origin changed round. [`Header::seal`] finishes it when the answer is whole.
    #[inline]
    pub fn answer(self, frame: &[u8], out: &mut Vec<u8>) {
        if self != Self::None {
            self.turn_round(frame, out);
        }
    }

    fn turn_round(self, frame: &[u8], out: &mut Vec<u8>) {
        let Ok(opened) = self.open(frame) else { return };
        out.extend_from_slice(opened.header);
        match (self, out.as_mut_slice()) {
            (Self::Tpdu { .. }, [_, d1, d2, o1, o2, ..]) => {
                std::mem::swap(d1, o1);
                std::mem::swap(d2, o2);
            }
            (Self::Visa, [_, _, _, _, _, d1, d2, d3, s1, s2, s3, ..]) => {
                std::mem::swap(d1, s1);
                std::mem::swap(d2, s2);
                std::mem::swap(d3, s3);
            }
            _ => {}
        }
    }

    /// Writes the length of a whole answer into its header, where a header has one.
    pub fn seal(self, answer: &mut [u8]) {
        // An answer holds a part of a frame that was not longer than 65,535 bytes, and a code.
        let bytes = u16::try_from(answer.len()).unwrap_or(u16::MAX);
        if let (Self::Visa, [_, _, _, high, low, ..]) = (self, answer) {
            [*high, *low] = bytes.to_be_bytes();
        }
    }
}

/// A reject header is followed by the rejected message with its own.
fn open_visa(frame: &[u8]) -> Result<Opened<'_>, HeaderFault> {
    let (reject, original) = match frame {
        [VISA_REJECT_BYTES, flags, ..] if flags & VISA_REJECTED != 0 => {
            let (reject, original) = frame
                .split_at_checked(usize::from(VISA_REJECT_BYTES))
                .ok_or(HeaderFault::Truncated)?;
            (Some(reject), original)
        }
        _ => (None, frame),
    };
    let bytes = match original {
        [VISA_BYTES, _, text_format, ..] if *text_format <= VISA_TEXT_FORMAT_MAX => {
            usize::from(VISA_BYTES)
        }
        [] | [VISA_BYTES] | [VISA_BYTES, _] => return Err(HeaderFault::Truncated),
        _ => return Err(HeaderFault::Unknown),
    };
    let (_, body) = original.split_at_checked(bytes).ok_or(HeaderFault::Truncated)?;
    let header = frame.get(..frame.len().saturating_sub(body.len())).unwrap_or_default();
    Ok(Opened { header, body, rejected: reject.map(reject_code) })
}

/// Byte 22 says whether bytes 24 and 25 hold the code.
fn reject_code(header: &[u8]) -> RejectCode {
    let code = match header {
        [.., present, _, high, low] if present & 0x80 != 0 => {
            let digits = [high >> 4, high & 15, low >> 4, low & 15];
            let decimal = digits.iter().all(|digit| *digit <= 9);
            let number = digits
                .iter()
                .fold(0_u16, |number, digit| number.wrapping_mul(10).wrapping_add((*digit).into()));
            decimal.then_some(number)
        }
        _ => None,
    };
    RejectCode(code)
}

/// The name in the configuration.
impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Tpdu { application_bytes: 0 } => f.write_str("tpdu"),
            Self::Tpdu { application_bytes } => write!(f, "tpdu+{application_bytes}"),
            Self::Visa => f.write_str("visa"),
            Self::Base24 => f.write_str("base24"),
            Self::Fixed { bytes } => write!(f, "fixed:{bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VISA: [u8; 22] = [
        22, 1, 2, 0, 30, 0x65, 0x43, 0x21, 0x12, 0x34, 0x56, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
        17,
    ];

    fn answered(header: Header, frame: &[u8]) -> Vec<u8> {
        let mut answer = Vec::new();
        header.answer(frame, &mut answer);
        answer.extend(b"0110...");
        header.seal(&mut answer);
        answer
    }

    #[test]
    fn every_header_is_found_by_its_name() {
        for name in ["none", "tpdu", "tpdu+6", "tpdu+64", "visa", "base24", "fixed:1", "fixed:64"] {
            assert_eq!(Header::from_name(name).map(|header| header.to_string()), Some(name.into()));
        }
        for name in ["", "tpdu+", "tpdu+0", "tpdu+65", "tpdu+06", "fixed", "fixed:0", "fixed:+1"] {
            assert_eq!(Header::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_tpdu_is_turned_round_and_what_follows_it_stays() {
        let tpdu = Header::Tpdu { application_bytes: 0 };
        let frame = b"\x60\x00\x15\xab\xcd0100";
        assert_eq!(tpdu.open(frame).unwrap().body, b"0100");
        assert_eq!(answered(tpdu, frame), b"\x60\xab\xcd\x00\x150110...");
        let pos = Header::Tpdu { application_bytes: 6 };
        let frame = b"\x60\x00\x03\x00\x00\x60\x31\x00\x31\x01\x00\x02\x00";
        assert_eq!(pos.open(frame).unwrap().body, b"\x02\x00");
        assert_eq!(answered(pos, frame), b"\x60\0\0\0\x03\x60\x31\x00\x31\x01\x000110...");
        assert_eq!(tpdu.open(b"\x60\0\0\0"), Err(HeaderFault::Truncated));
    }

    #[test]
    fn a_visa_answer_has_its_stations_swapped_and_its_own_length() {
        let frame = [&VISA[..], b"0100"].concat();
        assert_eq!(Header::Visa.open(&frame).unwrap().body, b"0100");
        let answer = answered(Header::Visa, &frame);
        assert_eq!(answer[..3], VISA[..3]);
        assert_eq!(answer[3..5], [0, 29]);
        assert_eq!(answer[5..11], [0x12, 0x34, 0x56, 0x65, 0x43, 0x21]);
        assert_eq!(answer[11..22], VISA[11..]);
    }

    #[test]
    fn a_visa_reject_is_known_as_one_with_its_code() {
        let mut reject = [0u8; 26];
        reject[..2].copy_from_slice(&[26, 0x81]);
        reject[22..].copy_from_slice(&[0x80, 0, 0x00, 0x14]);
        let frame = [&reject[..], &VISA, b"0100"].concat();
        let opened = Header::Visa.open(&frame).unwrap();
        assert_eq!((opened.body, opened.rejected), (&b"0100"[..], Some(RejectCode(Some(14)))));
        assert_eq!(opened.rejected.unwrap().to_string(), "0014");
        assert_eq!(opened.header.len(), 48);
        let mut without = frame.clone();
        without[22] = 0;
        assert_eq!(Header::Visa.open(&without).unwrap().rejected, Some(RejectCode(None)));
        for end in 0..48 {
            assert!(Header::Visa.open(&frame[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn what_is_no_such_header_is_not_taken_for_one() {
        let mut visa = VISA;
        visa[2] = 3;
        assert_eq!(Header::Visa.open(&visa), Err(HeaderFault::Unknown));
        assert_eq!(Header::Visa.open(b"0100"), Err(HeaderFault::Unknown));
        assert_eq!(Header::Base24.open(b"0100723A0000"), Err(HeaderFault::Unknown));
        assert_eq!(Header::Base24.open(b"ISO02340007"), Err(HeaderFault::Truncated));
        assert_eq!(Header::Base24.open(b"ISO0234000700800").unwrap().body, b"0800");
    }

    #[test]
    fn headers_that_mean_nothing_here_come_back_as_they_are() {
        let frame = b"ISO0234000700800";
        assert_eq!(answered(Header::Base24, frame), b"ISO0234000700110...");
        assert_eq!(answered(Header::Fixed { bytes: 3 }, b"abc0100"), b"abc0110...");
        assert_eq!(answered(Header::None, b"0100"), b"0110...");
    }
}

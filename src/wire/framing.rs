//! Framings: how the length of a frame is written, and how long a frame may be.
//!
//! What each length counts is what payment switches in the field agree on (the channels of jPOS and
//! of moov-io). What is sent never says another length than it has: a frame that does not fit is
//! refused.

use super::fault::FrameError;

/// Marks the end of a frame.
pub(super) const ETX: u8 = 0x03;
/// The first two bytes of every part in `rbp6`.
pub(super) const RBP_PROTOCOL: [u8; 2] = [0xd0, 0x4a];

/// How frames are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Two bytes, big-endian, that count the frame.
    Be16,
    /// Two bytes, big-endian, that count the frame and themselves.
    Be16Incl,
    /// Two bytes, little-endian, that count the frame.
    Le16,
    /// Three bytes, big-endian, that count the frame.
    Be24,
    /// Four bytes, big-endian, that count the frame.
    Be32,
    /// Four bytes, big-endian, that count the frame and themselves.
    Be32Incl,
    /// Visa's message length header: two bytes, big-endian, that count the frame, then two of zero.
    /// A fourth byte of 0x20 to 0x2f marks session control, which is no message.
    Vmlh4,
    /// Two bytes of zero, then two, big-endian, that count the frame.
    Gicc4,
    /// D0 4A, two bytes, big-endian, that count this part of the frame, 01 if another part follows
    /// or else 00, and 00.
    Rbp6,
    /// So many ASCII digits that count the frame.
    Ascii {
        /// How many, 2 to 8.
        digits: u8,
    },
    /// Four decimal digits in two bytes that count the frame.
    Bcd2,
    /// Four ASCII hexadecimal digits that count the frame.
    Hex4,
    /// Two bytes, big-endian, that count the frame and the ETX (0x03) behind it.
    Be16Etx,
    /// No length: the frame ends before the first ETX (0x03).
    Etx,
}

/// How a length is written, for all framings that have one.
#[derive(Clone, Copy)]
enum Written {
    BigEndian,
    LittleEndian,
    AsciiDecimal,
    AsciiHexadecimal,
    Bcd,
}

impl Framing {
    /// Every framing; of those with ASCII digits the one with four.
    pub const ALL: [Self; 14] = [
        Self::Be16,
        Self::Be16Incl,
        Self::Le16,
        Self::Be24,
        Self::Be32,
        Self::Be32Incl,
        Self::Vmlh4,
        Self::Gicc4,
        Self::Rbp6,
        Self::Ascii { digits: 4 },
        Self::Bcd2,
        Self::Hex4,
        Self::Be16Etx,
        Self::Etx,
    ];

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Be16 => "be16",
            Self::Be16Incl => "be16_incl",
            Self::Le16 => "le16",
            Self::Be24 => "be24",
            Self::Be32 => "be32",
            Self::Be32Incl => "be32_incl",
            Self::Vmlh4 => "vmlh4",
            Self::Gicc4 => "gicc4",
            Self::Rbp6 => "rbp6",
            Self::Ascii { digits: 0..=2 } => "ascii:2",
            Self::Ascii { digits: 3 } => "ascii:3",
            Self::Ascii { digits: 4 } => "ascii4",
            Self::Ascii { digits: 5 } => "ascii:5",
            Self::Ascii { digits: 6 } => "ascii:6",
            Self::Ascii { digits: 7 } => "ascii:7",
            Self::Ascii { digits: 8.. } => "ascii:8",
            Self::Bcd2 => "bcd2",
            Self::Hex4 => "hex4",
            Self::Be16Etx => "be16_etx",
            Self::Etx => "etx",
        }
    }

    /// The framing of that name; `ascii:4` is another name of `ascii4`.
    pub fn from_name(name: &str) -> Option<Self> {
        let ascii = (2..=8).map(|digits| Self::Ascii { digits });
        let mut known = Self::ALL.into_iter().chain(ascii);
        let name = if name == "ascii:4" { "ascii4" } else { name };
        known.find(|framing| framing.name() == name)
    }

    /// The longest frame that this framing can carry, in bytes.
    pub fn frame_bytes_ceiling(self) -> usize {
        self.length_ceiling().saturating_sub(self.counted_beside())
    }

    /// How many bytes stand before the frame.
    pub fn prefix_bytes(self) -> usize {
        match self {
            Self::Be16 | Self::Be16Incl | Self::Le16 | Self::Bcd2 | Self::Be16Etx => 2,
            Self::Be24 => 3,
            Self::Be32 | Self::Be32Incl | Self::Vmlh4 | Self::Gicc4 | Self::Hex4 => 4,
            Self::Rbp6 => 6,
            Self::Ascii { digits } => usize::from(digits),
            Self::Etx => 0,
        }
    }

    /// How many bytes stand before and behind the frame.
    pub fn overhead_bytes(self) -> usize {
        self.prefix_bytes().saturating_add(self.trailer_bytes())
    }

    /// How many bytes stand behind the frame.
    pub(super) const fn trailer_bytes(self) -> usize {
        match self {
            Self::Be16Etx | Self::Etx => 1,
            _ => 0,
        }
    }

    /// Appends `frame` with its length to `out`.
    ///
    /// # Errors
    /// When this framing cannot carry it; then nothing is appended.
    pub fn join(self, frame: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
        self.check(frame)?;
        self.write_prefix(frame.len().saturating_add(self.counted_beside()), out);
        out.extend_from_slice(frame);
        if self.trailer_bytes() > 0 {
            out.push(ETX);
        }
        Ok(())
    }

    /// Whether [`Framing::join`] takes this frame.
    pub fn carries(self, frame: &[u8]) -> bool {
        self.check(frame).is_ok()
    }

    fn check(self, frame: &[u8]) -> Result<(), FrameError> {
        let ceiling = self.frame_bytes_ceiling();
        if frame.len() > ceiling {
            return Err(FrameError::Unsendable { frame_bytes: frame.len(), ceiling });
        }
        if self == Self::Etx && frame.contains(&ETX) {
            return Err(FrameError::EtxInside);
        }
        Ok(())
    }

    /// Whether its length is written in ASCII digits.
    pub(super) const fn has_digits(self) -> bool {
        matches!(self, Self::Ascii { .. } | Self::Hex4)
    }

    /// What the length counts beside the frame, in bytes.
    pub(super) const fn counted_beside(self) -> usize {
        match self {
            Self::Be16Incl => 2,
            Self::Be32Incl => 4,
            Self::Be16Etx => 1,
            _ => 0,
        }
    }

    /// The highest length that can be written, or that is in use.
    fn length_ceiling(self) -> usize {
        match self {
            Self::Be24 => 0xff_ffff,
            // Peers read it as a signed number.
            Self::Be32 | Self::Be32Incl => 0x7fff_ffff,
            Self::Ascii { digits } => 10_usize.saturating_pow(u32::from(digits)).saturating_sub(1),
            Self::Bcd2 => 9_999,
            Self::Etx => 4_096,
            _ => 0xffff,
        }
    }

    /// The length at the head of `buffer`, as it is written: `None` when it is not whole, or is not
    /// one. Constant bytes around it are not looked at.
    pub(super) fn announced(self, buffer: &[u8]) -> Option<usize> {
        let (digits, written) = match (self, buffer.get(..self.prefix_bytes())?) {
            (Self::Etx, _) => return None,
            (Self::Le16, digits) => (digits, Written::LittleEndian),
            (Self::Ascii { .. }, digits) => (digits, Written::AsciiDecimal),
            (Self::Hex4, digits) => (digits, Written::AsciiHexadecimal),
            (Self::Bcd2, digits) => (digits, Written::Bcd),
            (Self::Vmlh4, [digits @ .., _, _]) | (Self::Rbp6, [_, _, digits @ .., _, _]) => {
                (digits, Written::BigEndian)
            }
            (_, digits) => (digits, Written::BigEndian),
        };
        written.read(digits)
    }

    /// Whether the length at the head of `buffer` is whole, and the constant bytes around it are
    /// right.
    pub(super) fn is_prefix(self, buffer: &[u8]) -> bool {
        match (self, buffer.get(..self.prefix_bytes())) {
            (Self::Etx, _) | (_, None) => false,
            (Self::Vmlh4, Some(prefix)) => prefix.ends_with(&[0, 0]),
            (Self::Gicc4, Some(prefix)) => prefix.starts_with(&[0, 0]),
            (Self::Rbp6, Some(prefix)) => prefix.starts_with(&RBP_PROTOCOL),
            _ => true,
        }
    }

    /// What follows the length at the head of `buffer`.
    pub(super) fn behind(self, buffer: &[u8]) -> &[u8] {
        buffer.get(self.prefix_bytes()..).unwrap_or_default()
    }

    /// How long the frame at the head of `buffer` is said to be.
    pub(super) fn announced_frame(self, buffer: &[u8]) -> Option<usize> {
        self.announced(buffer)?.checked_sub(self.counted_beside())
    }

    fn write_prefix(self, length: usize, out: &mut Vec<u8>) {
        // The ceiling was looked at: the number has no more digits than are written.
        let decimal = |place: u32| {
            let shifted = length.checked_div(10_usize.saturating_pow(place)).unwrap_or(0);
            (shifted % 10) as u8
        };
        let byte = |place: u32| (length >> place.saturating_mul(8) & 0xff) as u8;
        match self {
            Self::Be16 | Self::Be16Incl | Self::Be16Etx => out.extend([byte(1), byte(0)]),
            Self::Le16 => out.extend([byte(0), byte(1)]),
            Self::Be24 => out.extend([byte(2), byte(1), byte(0)]),
            Self::Be32 | Self::Be32Incl | Self::Gicc4 => {
                out.extend([byte(3), byte(2), byte(1), byte(0)]);
            }
            Self::Vmlh4 => out.extend([byte(1), byte(0), 0, 0]),
            Self::Rbp6 => {
                out.extend(RBP_PROTOCOL);
                out.extend([byte(1), byte(0), 0, 0]);
            }
            Self::Ascii { digits } => {
                out.extend((0..u32::from(digits)).rev().map(|place| decimal(place) | b'0'));
            }
            Self::Bcd2 => {
                out.extend([decimal(3) << 4 | decimal(2), decimal(1) << 4 | decimal(0)]);
            }
            Self::Hex4 => {
                let digits = [byte(1) >> 4, byte(1) & 15, byte(0) >> 4, byte(0) & 15];
                out.extend(digits.iter().flat_map(|digit| {
                    char::from_digit(u32::from(*digit), 16)
                        .map(|digit| digit.to_ascii_uppercase() as u8)
                }));
            }
            Self::Etx => {}
        }
    }
}

impl Written {
    /// Digits only: a sign or a blank is no length.
    fn read(self, digits: &[u8]) -> Option<usize> {
        let bytes = digits.iter().map(|byte| usize::from(*byte));
        let characters = digits.iter().map(|digit| char::from(*digit).to_digit(16));
        let hexadecimal = characters.map(|digit| digit.map_or(usize::MAX, |digit| digit as usize));
        match self {
            Self::BigEndian => number(256, bytes),
            Self::LittleEndian => number(256, bytes.rev()),
            Self::AsciiDecimal => number(10, hexadecimal),
            Self::AsciiHexadecimal => number(16, hexadecimal),
            Self::Bcd => number(10, bytes.flat_map(|byte| [byte >> 4, byte & 15])),
        }
    }
}

/// The number of these digits; `None` when one of them is not a digit of that base.
fn number(base: usize, mut digits: impl Iterator<Item = usize>) -> Option<usize> {
    digits.try_fold(0_usize, |number, digit| {
        let digit = Some(digit).filter(|digit| *digit < base)?;
        number.checked_mul(base)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_framing_is_found_by_its_name() {
        for framing in Framing::ALL {
            assert_eq!(Framing::from_name(framing.name()), Some(framing));
        }
        for digits in 2..=8 {
            let framing = Framing::Ascii { digits };
            assert_eq!(Framing::from_name(&format!("ascii:{digits}")), Some(framing));
            assert_eq!(Framing::from_name(framing.name()), Some(framing));
        }
        for name in ["gzip", "none", "ascii:1", "ascii:9", "ascii:04", "ascii", "BE16", ""] {
            assert_eq!(Framing::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn ceilings_are_those_of_the_length_less_what_it_counts_beside_the_frame() {
        let ceilings = Framing::ALL.map(|framing| (framing.name(), framing.frame_bytes_ceiling()));
        assert_eq!(
            ceilings,
            [
                ("be16", 65_535),
                ("be16_incl", 65_533),
                ("le16", 65_535),
                ("be24", 16_777_215),
                ("be32", 2_147_483_647),
                ("be32_incl", 2_147_483_643),
                ("vmlh4", 65_535),
                ("gicc4", 65_535),
                ("rbp6", 65_535),
                ("ascii4", 9_999),
                ("bcd2", 9_999),
                ("hex4", 65_535),
                ("be16_etx", 65_534),
                ("etx", 4_096),
            ]
        );
        assert_eq!(Framing::Ascii { digits: 6 }.frame_bytes_ceiling(), 999_999);
    }

    #[test]
    fn a_frame_is_written_as_its_framing_has_it() {
        let joined = |framing: Framing| {
            let mut out = Vec::new();
            framing.join(&[b'x'; 26], &mut out).unwrap();
            let frame = out.windows(26).position(|window| window == [b'x'; 26]).unwrap();
            (out[..frame].to_vec(), out[frame + 26..].to_vec())
        };
        for (framing, prefix, trailer) in [
            (Framing::Be16, &[0, 26][..], &[][..]),
            (Framing::Be16Incl, &[0, 28], &[]),
            (Framing::Le16, &[26, 0], &[]),
            (Framing::Be24, &[0, 0, 26], &[]),
            (Framing::Be32, &[0, 0, 0, 26], &[]),
            (Framing::Be32Incl, &[0, 0, 0, 30], &[]),
            (Framing::Vmlh4, &[0, 26, 0, 0], &[]),
            (Framing::Gicc4, &[0, 0, 0, 26], &[]),
            (Framing::Rbp6, &[0xd0, 0x4a, 0, 26, 0, 0], &[]),
            (Framing::Ascii { digits: 4 }, b"0026", &[]),
            (Framing::Ascii { digits: 6 }, b"000026", &[]),
            (Framing::Bcd2, &[0x00, 0x26], &[]),
            (Framing::Hex4, b"001A", &[]),
            (Framing::Be16Etx, &[0, 27], &[3]),
            (Framing::Etx, &[], &[3]),
        ] {
            assert_eq!(joined(framing), (prefix.to_vec(), trailer.to_vec()), "{}", framing.name());
        }
    }

    #[test]
    fn what_a_framing_carries_is_what_it_joins() {
        for framing in Framing::ALL {
            let ceiling = framing.frame_bytes_ceiling().min(70_000);
            for frame in [vec![7; ceiling], vec![7; ceiling + 1], b"end\x03mark".to_vec(), vec![]] {
                let joined = framing.join(&frame, &mut Vec::new()).is_ok();
                assert_eq!(framing.carries(&frame), joined, "{} {}", framing.name(), frame.len());
            }
        }
    }

    #[test]
    fn nothing_is_appended_when_a_frame_does_not_fit() {
        for framing in Framing::ALL {
            let ceiling = framing.frame_bytes_ceiling();
            if ceiling > 0xff_ffff {
                continue;
            }
            let mut out = vec![1];
            let refused = framing.join(&vec![0; ceiling + 1], &mut out);
            let frame_bytes = ceiling + 1;
            assert_eq!(refused, Err(FrameError::Unsendable { frame_bytes, ceiling }));
            assert_eq!(out, [1]);
            assert!(framing.join(&vec![0; ceiling], &mut out).is_ok());
            assert_eq!(out.len(), 1 + ceiling + framing.overhead_bytes());
        }
        let mut out = vec![1];
        assert_eq!(Framing::Etx.join(&[0x30, 0x03], &mut out), Err(FrameError::EtxInside));
        assert_eq!(out, [1]);
    }
}

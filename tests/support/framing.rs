//! How peers of ours write lengths, written from the table of framings and not from tollgate's code,
//! so that a fault in it cannot hide behind the same fault here.

/// How the length of a frame is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Two bytes, the first counts 256s.
    Be16,
    /// The same, counting itself.
    Be16Incl,
    /// Two bytes, the second counts 256s.
    Le16,
    /// Three bytes.
    Be24,
    /// Four bytes.
    Be32,
    /// Four bytes that count themselves.
    Be32Incl,
    /// Two bytes, then two of nothing.
    Vmlh4,
    /// Two bytes of nothing, then two.
    Gicc4,
    /// `D0 4A`, two bytes, then two of nothing.
    Rbp6,
    /// So many decimal digits.
    Ascii(usize),
    /// Four decimal digits in two bytes.
    Bcd2,
    /// Four hexadecimal digits.
    Hex4,
    /// Two bytes that count the frame and the end mark behind it.
    Be16Etx,
    /// An end mark alone.
    Etx,
}

/// The mark behind a frame.
const ETX: u8 = 3;

impl Framing {
    /// Every framing; of those in decimal digits some.
    pub const ALL: [Self; 16] = [
        Self::Be16,
        Self::Be16Incl,
        Self::Le16,
        Self::Be24,
        Self::Be32,
        Self::Be32Incl,
        Self::Vmlh4,
        Self::Gicc4,
        Self::Rbp6,
        Self::Ascii(3),
        Self::Ascii(4),
        Self::Ascii(6),
        Self::Bcd2,
        Self::Hex4,
        Self::Be16Etx,
        Self::Etx,
    ];

    /// The word of the configuration.
    pub fn name(self) -> String {
        let name = match self {
            Self::Be16 => "be16",
            Self::Be16Incl => "be16_incl",
            Self::Le16 => "le16",
            Self::Be24 => "be24",
            Self::Be32 => "be32",
            Self::Be32Incl => "be32_incl",
            Self::Vmlh4 => "vmlh4",
            Self::Gicc4 => "gicc4",
            Self::Rbp6 => "rbp6",
            Self::Ascii(4) => "ascii4",
            Self::Ascii(digits) => return format!("ascii:{digits}"),
            Self::Bcd2 => "bcd2",
            Self::Hex4 => "hex4",
            Self::Be16Etx => "be16_etx",
            Self::Etx => "etx",
        };
        name.to_owned()
    }

    #[track_caller]
    pub fn from_name(name: &str) -> Self {
        let found = Self::ALL.into_iter().find(|framing| framing.name() == name);
        found.unwrap_or_else(|| panic!("no framing {name}"))
    }

    /// The length that announces `counted` bytes, and the bytes around it; `None` for a framing
    /// without one. It fails where the framing ends.
    #[track_caller]
    pub fn length(self, counted: usize) -> Option<Vec<u8>> {
        let two = || u16::try_from(counted).unwrap().to_be_bytes();
        let four = || u32::try_from(counted).unwrap().to_be_bytes();
        let digits = |digits: String, width| {
            assert_eq!(digits.len(), width, "{counted} is too long");
            digits.into_bytes()
        };
        Some(match self {
            Self::Be16 | Self::Be16Incl | Self::Be16Etx => two().to_vec(),
            Self::Le16 => two().into_iter().rev().collect(),
            Self::Be24 => {
                let [highest, rest @ ..] = four();
                assert_eq!(highest, 0);
                rest.to_vec()
            }
            Self::Be32 | Self::Be32Incl => four().to_vec(),
            Self::Vmlh4 => [two(), [0, 0]].concat(),
            Self::Gicc4 => [[0, 0], two()].concat(),
            Self::Rbp6 => [[0xD0, 0x4A], two(), [0, 0]].concat(),
            Self::Ascii(width) => digits(format!("{counted:0width$}"), width),
            Self::Bcd2 => {
                let digits = digits(format!("{counted:04}"), 4);
                digits.chunks(2).map(|pair| (pair[0] - b'0') << 4 | (pair[1] - b'0')).collect()
            }
            Self::Hex4 => digits(format!("{counted:04X}"), 4),
            Self::Etx => return None,
        })
    }

    /// How much more than a frame its length counts.
    pub fn counted_besides(self) -> usize {
        match self {
            Self::Be16Incl => 2,
            Self::Be32Incl => 4,
            Self::Be16Etx => 1,
            _ => 0,
        }
    }

    /// The longest frame that a length can announce; `None` without a length.
    pub fn frame_bytes_ceiling(self) -> Option<usize> {
        let counted = match self {
            Self::Be24 => 0xFF_FFFF,
            Self::Be32 | Self::Be32Incl => 0x7FFF_FFFF,
            Self::Ascii(width) => 10_usize.pow(u32::try_from(width).unwrap()) - 1,
            Self::Bcd2 => 9_999,
            Self::Etx => return None,
            _ => 0xFFFF,
        };
        Some(counted - self.counted_besides())
    }

    /// What a peer sends instead of a message to see whether the other one is still there, in each
    /// of the forms that are met; none where there is no length.
    pub fn keepalives(self) -> Vec<Vec<u8>> {
        let counts_nothing = self.length(0);
        let counts_itself = match self {
            Self::Be16Incl | Self::Be32Incl => self.length(self.counted_besides()),
            _ => None,
        };
        counts_nothing.into_iter().chain(counts_itself).collect()
    }

    /// A frame with its length.
    #[track_caller]
    pub fn wrap(self, frame: &[u8]) -> Vec<u8> {
        let mut bytes = self.length(frame.len() + self.counted_besides()).unwrap_or_default();
        bytes.extend_from_slice(frame);
        if matches!(self, Self::Be16Etx | Self::Etx) {
            assert!(self == Self::Be16Etx || !frame.contains(&ETX), "an end mark in the frame");
            bytes.push(ETX);
        }
        bytes
    }

    /// The first frame of these bytes and how many it took with its length; `None` while it is not
    /// whole. Fails where the length cannot be one.
    #[track_caller]
    pub fn unwrap(self, bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
        if self == Self::Etx {
            let end = bytes.iter().position(|byte| *byte == ETX)?;
            return Some((bytes[..end].to_vec(), end + 1));
        }
        let prefix = self.length(0).unwrap().len();
        let head = bytes.get(..prefix)?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let digits = |radix| {
            let text = std::str::from_utf8(head).unwrap();
            assert!(text.chars().all(|digit| digit.is_digit(radix)), "no digits");
            usize::from_str_radix(text, radix).unwrap()
        };
        let counted = match self {
            Self::Le16 => number(&[head[1], head[0]]),
            Self::Vmlh4 => {
                assert_eq!(head[2..], [0, 0]);
                number(&head[..2])
            }
            Self::Gicc4 => {
                assert_eq!(head[..2], [0, 0]);
                number(&head[2..])
            }
            Self::Rbp6 => {
                assert_eq!((&head[..2], &head[4..]), (&[0xD0, 0x4A][..], &[0, 0][..]));
                number(&head[2..4])
            }
            Self::Ascii(_) => digits(10),
            Self::Hex4 => digits(16),
            Self::Bcd2 => {
                let digits = head.iter().flat_map(|byte| [byte >> 4, byte & 15]);
                digits.fold(0, |sum, digit| {
                    assert!(digit < 10, "no digit");
                    sum * 10 + usize::from(digit)
                })
            }
            _ => number(head),
        };
        if counted == 0 {
            return Some((Vec::new(), prefix));
        }
        let end = prefix + counted - if self == Self::Be16Etx { 0 } else { self.counted_besides() };
        let mut frame = bytes.get(prefix..end)?.to_vec();
        if self == Self::Be16Etx {
            assert_eq!(frame.pop(), Some(ETX), "the end mark");
        }
        Some((frame, end))
    }
}

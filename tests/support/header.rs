//! What stands between length and MTI, as peers of ours write it: written from the descriptions of
//! the headers, not from tollgate's code.

/// A kind of header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    None,
    Tpdu,
    /// A TPDU and so many bytes of an application's own.
    TpduAnd(usize),
    Visa,
    Base24,
    /// So many bytes that mean nothing to anybody here.
    Fixed(usize),
}

impl Header {
    /// Every header; of those with a number some.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Tpdu, Self::TpduAnd(6), Self::Visa, Self::Base24, Self::Fixed(9)];

    /// The word of the configuration.
    pub fn name(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Tpdu => "tpdu".to_owned(),
            Self::TpduAnd(more) => format!("tpdu+{more}"),
            Self::Visa => "visa".to_owned(),
            Self::Base24 => "base24".to_owned(),
            Self::Fixed(bytes) => format!("fixed:{bytes}"),
        }
    }

    #[track_caller]
    pub fn from_name(name: &str) -> Self {
        let found = Self::ALL.into_iter().find(|header| header.name() == name);
        found.unwrap_or_else(|| panic!("no header {name}"))
    }

    pub fn bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Tpdu => 5,
            Self::TpduAnd(more) => 5 + more,
            Self::Visa => 22,
            Self::Base24 => 12,
            Self::Fixed(bytes) => bytes,
        }
    }

    /// A request's frame: a header with two different addresses, and the message.
    pub fn before(self, message: &[u8]) -> Vec<u8> {
        let mut header = match self {
            Self::None => Vec::new(),
            Self::Tpdu => vec![0x60, 0x00, 0x15, 0x28, 0x47],
            Self::TpduAnd(more) => {
                let application = [0x60, 0x31, 0x00, 0x31, 0x01, 0x00].into_iter().cycle();
                [0x60, 0x00, 0x15, 0x28, 0x47].into_iter().chain(application.take(more)).collect()
            }
            Self::Visa => vec![
                22, 1, 2, 0, 0, 0x65, 0x43, 0x21, 0x12, 0x34, 0x56, 7, 8, 9, 10, 11, 12, 13, 14,
                15, 16, 17,
            ],
            Self::Base24 => b"ISO023400070".to_vec(),
            Self::Fixed(bytes) => (1..=u8::MAX).take(bytes).map(|byte| byte ^ 0xA5).collect(),
        };
        self.say_length(&mut header, message);
        header.extend_from_slice(message);
        header
    }

    /// The frame of an answer: the request's header with its addresses changed round.
    #[track_caller]
    pub fn answer_before(self, request: &[u8], message: &[u8]) -> Vec<u8> {
        let mut header = request[..self.bytes()].to_vec();
        match self {
            Self::Tpdu | Self::TpduAnd(_) => header[1..5].rotate_left(2),
            Self::Visa => header[5..11].rotate_left(3),
            Self::None | Self::Base24 | Self::Fixed(_) => {}
        }
        self.say_length(&mut header, message);
        header.extend_from_slice(message);
        header
    }

    /// A frame's message.
    #[track_caller]
    pub fn behind(self, frame: &[u8]) -> &[u8] {
        &frame[self.bytes()..]
    }

    fn say_length(self, header: &mut [u8], message: &[u8]) {
        if self == Self::Visa {
            let whole = u16::try_from(header.len() + message.len()).unwrap();
            header[3..5].copy_from_slice(&whole.to_be_bytes());
        }
    }
}

/// A frame with a Visa header as it comes back: behind a reject header of 26 bytes with the code 0143.
pub fn rejected(frame: &[u8]) -> Vec<u8> {
    let mut header = [0; 26];
    header[..2].copy_from_slice(&[26, 0x81]);
    header[3..5].copy_from_slice(&u16::try_from(26 + frame.len()).unwrap().to_be_bytes());
    header[22..].copy_from_slice(&[0x80, 0x00, 0x01, 0x43]);
    [&header, frame].concat()
}

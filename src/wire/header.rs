//! Headers: the bytes between the length and the MTI.

/// What stands in a frame before the MTI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Nothing: the frame is the message.
    None,
}

impl Header {
    /// Every header.
    pub const ALL: [Self; 1] = [Self::None];

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
        }
    }

    /// The header of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|header| header.name() == name)
    }

    /// The message behind the header; `None` when the frame ends before it.
    pub const fn body(self, frame: &[u8]) -> Option<&[u8]> {
        match self {
            Self::None => Some(frame),
        }
    }

    /// Appends to `out` the header that an answer to `frame` carries: the same, turned round.
    pub fn answer(self, _frame: &[u8], _out: &mut Vec<u8>) {
        match self {
            Self::None => {}
        }
    }
}

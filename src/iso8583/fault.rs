//! What can be wrong with a message. None of it holds a byte of the message.

use std::fmt;

/// The first fault of a message, and the field it lies in. Fields before it were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Fault {
    /// The field that could not be read; 1 for the bitmap, 65 for a third one in its place; the
    /// last field before trailing bytes.
    pub field: u8,
    /// Where it begins, in bytes from the MTI; for trailing bytes, where they begin.
    pub at: u16,
    /// What is wrong with it.
    pub kind: FaultKind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "field {}: {}", self.field, self.kind.name())
    }
}

/// What is wrong with a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum FaultKind {
    /// The message ends inside the field.
    Truncated,
    /// Its length prefix is not a number, exceeds the dialect's maximum, or does not fit its kind.
    Length,
    /// The bitmap is not hexadecimal, or announces a further one that the dialect does not have.
    Bitmap,
    /// The bitmap announces a field that the dialect does not define.
    UndefinedField,
    /// Bytes follow the last announced field.
    Trailing,
    /// Its data hold something else than the decimal or hexadecimal digits that they are made of.
    Digits,
}

impl FaultKind {
    /// Every kind, for whoever registers a counter for each.
    pub const ALL: [Self; 6] = [
        Self::Truncated,
        Self::Length,
        Self::Bitmap,
        Self::UndefinedField,
        Self::Trailing,
        Self::Digits,
    ];

    /// The name in logs and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Length => "length",
            Self::Bitmap => "bitmap",
            Self::UndefinedField => "undefined_field",
            Self::Trailing => "trailing",
            Self::Digits => "digits",
        }
    }
}

/// Why nothing at all can be said of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, thiserror::Error)]
pub enum Unreadable {
    /// It ends inside its MTI.
    #[error("message ends inside its MTI")]
    Truncated,
    /// Its MTI is not four digits in the dialect's encoding.
    #[error("MTI is not four digits")]
    Digits,
    /// It is longer than an offset of 16 bits reaches.
    #[error("message is longer than 65,535 bytes")]
    TooLong,
}

impl Unreadable {
    /// The name in logs and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "mti_truncated",
            Self::Digits => "mti_digits",
            Self::TooLong => "too_long",
        }
    }
}

//! How one accepted connection is read: its framing, and what is too long or too slow.

use std::time::Duration;

use crate::wire::Framing;

/// How a session is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How frames are cut.
    pub framing: Framing,
    /// What becomes of a frame that carries no message.
    pub keepalive: Keepalive,
    /// Longest frame, in bytes; a longer one closes the session.
    pub frame_bytes_max: usize,
    /// A frame begun must be whole by then, and an answer begun must be taken by then.
    pub frame_timeout: Duration,
    /// A session that sends nothing for so long is closed; `None` never.
    pub idle_timeout: Option<Duration>,
}

/// What becomes of a frame that carries no message: never forwarded, and always counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Keepalive {
    /// Nothing: two peers that both answer would do nothing else.
    #[default]
    Ignore,
    /// It is sent back as it came, at most once in [`Keepalive::INTERVAL`] and connection.
    Answer,
}

impl Keepalive {
    /// No two answers on one connection are closer.
    pub const INTERVAL: Duration = Duration::from_secs(1);

    /// Every choice.
    pub const ALL: [Self; 2] = [Self::Ignore, Self::Answer];

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Answer => "answer",
        }
    }
}

impl Settings {
    /// Default of `frame_bytes_max`.
    pub const FRAME_BYTES_MAX: usize = 4_096;
    /// Highest `frame_bytes_max`: offsets in a message have 16 bits.
    pub const FRAME_BYTES_CEILING: usize = 65_535;
    /// Default of `frame_timeout`.
    pub const FRAME_TIMEOUT: Duration = Duration::from_secs(5);
}

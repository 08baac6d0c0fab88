//! One way of reading an input: a framing, a header and a dialect, and what it makes of a frame.

use std::fmt;
use std::sync::Arc;

use crate::iso8583::{Description, Dialect, Spans, View};
use crate::pan::holds_card_number;
use crate::wire::{FrameError, Framing, Header, HeaderFault, RejectCode, Splitter};

/// The longest message that a view takes, so that a longer frame is not waited for.
const FRAME_BYTES_MAX: usize = 65_535;

/// Where a message begins and how it is laid out.
#[derive(Clone)]
pub(super) struct Reading {
    /// `None`: the input is one message without a length.
    pub(super) framing: Option<Framing>,
    pub(super) header: Header,
    pub(super) dialect: NamedDialect,
}

/// A dialect, and what it is called on the command line.
#[derive(Clone)]
pub(super) struct NamedDialect {
    pub(super) name: Arc<str>,
    pub(super) layout: Arc<Dialect>,
}

/// As it is typed.
impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let framing = framing_name(self.framing);
        write!(f, "--framing {framing} --header {} --dialect {}", self.header, self.dialect.name)
    }
}

pub(super) fn framing_name(framing: Option<Framing>) -> &'static str {
    framing.map_or("none", Framing::name)
}

/// A part of an input.
#[derive(Clone, Copy)]
pub(super) enum Piece<'a> {
    /// A frame without a message.
    Keepalive { at: usize, bytes: usize },
    /// A frame with one. `frame_at` is where it begins in the input behind its length; `None` when
    /// it came in parts.
    Frame { at: usize, frame_at: Option<usize>, frame: &'a [u8] },
    /// What cannot be cut: all from there to the end.
    Rest { at: usize, bytes: usize, why: Uncut },
}

/// Why the rest of an input is not a frame.
#[derive(Clone, Copy)]
pub(super) enum Uncut {
    NotWhole,
    Broken(FrameError),
}

impl Uncut {
    /// The name of the kind.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::NotWhole => "frame_truncated",
            Self::Broken(_) => "framing",
        }
    }
}

impl fmt::Display for Uncut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWhole => f.write_str("the frame that begins there is not whole"),
            Self::Broken(error) => error.fmt(f),
        }
    }
}

/// Cuts `input` and hands over each piece, until `each` says that it has seen enough.
pub(super) fn cut<E>(
    input: &[u8],
    framing: Option<Framing>,
    mut each: impl FnMut(Piece<'_>) -> Result<bool, E>,
) -> Result<(), E> {
    let Some(framing) = framing else {
        each(Piece::Frame { at: 0, frame_at: Some(0), frame: input })?;
        return Ok(());
    };
    let mut splitter = Splitter::new(framing, FRAME_BYTES_MAX);
    let mut at = 0;
    while let Some(left) = input.get(at..).filter(|left| !left.is_empty()) {
        let rest = |why| Piece::Rest { at, bytes: left.len(), why };
        let (piece, whole) = match splitter.split(left) {
            Ok(Some(split)) => {
                let bytes = split.whole.len();
                let in_one = split.frame.len() + framing.overhead_bytes() == bytes;
                let frame_at = in_one.then(|| at + framing.prefix_bytes());
                let piece = if split.frame.is_empty() {
                    Piece::Keepalive { at, bytes }
                } else {
                    Piece::Frame { at, frame_at, frame: split.frame }
                };
                (piece, bytes)
            }
            Ok(None) => (rest(Uncut::NotWhole), left.len()),
            Err(error) => (rest(Uncut::Broken(error)), left.len()),
        };
        if !each(piece)? {
            return Ok(());
        }
        at += whole;
    }
    Ok(())
}

/// A message of a frame, as it was read.
pub(super) struct Message {
    /// The header in hexadecimal digits, of which there may be none; `None` when it must not be
    /// shown.
    pub(super) header: Option<String>,
    /// The network's refusal, if the header is one.
    pub(super) rejected: Option<RejectCode>,
    /// How many bytes stand in the frame before the MTI.
    pub(super) header_bytes: usize,
    pub(super) description: Description,
}

impl Message {
    /// Reads a frame.
    ///
    /// # Errors
    /// When it does not begin with the header that is expected.
    pub(super) fn read(reading: &Reading, frame: &[u8]) -> Result<Self, HeaderFault> {
        let opened = reading.header.open(frame)?;
        let layout = &reading.dialect.layout;
        let mut spans = Spans::default();
        let description = match View::parse(layout, opened.body, &mut spans) {
            Ok(view) => Description::of(&view),
            Err(why) => Description::unreadable(layout, opened.body, why),
        };
        let proven = description.fault.is_none();
        let shown = shows(reading.header, opened.header, frame.len(), proven);
        Ok(Self {
            header: shown.then(|| hex(opened.header)),
            rejected: opened.rejected,
            header_bytes: opened.header.len(),
            description,
        })
    }
}

/// Whether a header may be shown: a network's holds no card data, but behind a wrong framing or
/// with a wrong length what is taken for one may be a piece of the message.
fn shows(header: Header, bytes: &[u8], frame_bytes: usize, proven: bool) -> bool {
    match header {
        Header::None => true,
        Header::Tpdu { application_bytes: 0 } => proven || bytes.first() == Some(&TPDU_MARK),
        Header::Tpdu { .. } => {
            let tpdu = Header::Tpdu { application_bytes: 0 }.bytes();
            let application = bytes.get(tpdu..).unwrap_or_default();
            proven && !holds_digits_of_a_card(application)
        }
        // It says how long the frame is, which no piece of a message does.
        Header::Visa => {
            proven
                && matches!(bytes, [_, _, _, high, low, ..]
            if usize::from(u16::from_be_bytes([*high, *low])) == frame_bytes)
        }
        // Twelve characters have no room for a card number.
        Header::Base24 => proven && bytes.is_ascii(),
        Header::Fixed { .. } => proven && !holds_digits_of_a_card(bytes),
    }
}

/// The first byte of nearly every TPDU.
pub(super) const TPDU_MARK: u8 = 0x60;

fn holds_digits_of_a_card(bytes: &[u8]) -> bool {
    let characters = bytes.iter().map(|byte| match byte {
        b'0'..=b'9' | 0xf0..=0xf9 => byte & 15 | b'0',
        _ => b' ',
    });
    let characters: Vec<u8> = characters.collect();
    holds_card_number(&characters) || holds_card_number(hex(bytes).as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

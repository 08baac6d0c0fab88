//! A message that is built once and filled in for each time that it is sent.
//!
//! Building one along the dialect's table costs more than sending it. So each kind of each flow is
//! built once, with its length and header, and what differs is written over it in place: no field
//! changes its length, and the message stays as sound as it was built.

use std::ops::Range;

use thiserror::Error;

use super::kind::{Kind, Shop};
use super::place::Place;
use crate::iso8583::{Dialect, Fault, Spans, View};
use crate::peers::EncodeError;
use crate::peers::card::Digits;
use crate::wire::{FrameError, Framing, Header};

/// Why a kind of message cannot be sent in a dialect, a framing and a header.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoTemplate {
    /// The dialect cannot express it.
    #[error("{kind} messages cannot be written in this dialect: {why}")]
    Encode {
        /// Of which kind.
        kind: &'static str,
        /// What of it.
        why: EncodeError,
    },
    /// The dialect does not read what was written in it.
    #[error("{kind} messages do not read back in this dialect: {why}")]
    Fault {
        /// Of which kind.
        kind: &'static str,
        /// Where.
        why: Fault,
    },
    /// A field that is filled in cannot be where it is.
    #[error(
        "{kind} messages cannot be filled in: field {de} is not written in whole digits or bytes"
    )]
    Place {
        /// Of which kind.
        kind: &'static str,
        /// The field.
        de: u8,
    },
    /// Shops' numbers or categories take different numbers of bytes.
    #[error("all shops of a flow must have numbers and categories of one length in this dialect")]
    Shops,
    /// The framing cannot carry it, or something that may be filled in.
    #[error("{kind} messages cannot be framed: {why}")]
    Frame {
        /// Of which kind.
        kind: &'static str,
        /// Why not.
        why: FrameError,
    },
}

/// How messages look on this line.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) dialect: &'a Dialect,
    pub(super) framing: Framing,
    pub(super) header: Header,
}

/// What is filled in.
pub(super) struct Filling<'a> {
    pub(super) stan: [u8; 6],
    /// Of the connection and of the shop.
    pub(super) terminal: [u8; 7],
    pub(super) card: Digits,
    pub(super) amount: [u8; 6],
    pub(super) category: &'a [u8],
    pub(super) acceptor: &'a [u8],
    /// STAN and time of what is taken back.
    pub(super) original: Option<[u8; 16]>,
}

/// The message, and where what is filled in.
pub(super) struct Template {
    frame: Box<[u8]>,
    stan: Place,
    rest: Option<Rest>,
    /// What of the time, in digits of MMDDhhmmss, stands where.
    times: Vec<(Place, Range<usize>)>,
    /// The last digits of its message type, and what they are when it is sent again.
    repeat: (Place, [u8; 2]),
}

/// What messages have that are about a card.
struct Rest {
    retrieval: Place,
    terminal: Place,
    amount: Place,
    card: Place,
    category: usize,
    acceptor: usize,
    original: Option<Place>,
}

impl Template {
    /// Builds it for an acquirer; `shop` is an example of those that will be filled in.
    pub(super) fn new(
        kind: Kind,
        acquirer: &str,
        shop: &Shop,
        line: Line<'_>,
    ) -> Result<Self, NoTemplate> {
        let message = kind.message(acquirer, shop);
        let Line { dialect, framing, header } = line;
        let kind_name = kind.name();
        let mut body = Vec::new();
        message
            .encode(dialect, &mut body)
            .map_err(|why| NoTemplate::Encode { kind: kind_name, why })?;
        let mut frame = Vec::new();
        let before = write_header(header, body.len());
        framing
            .join(&[&before[..], &body].concat(), &mut frame)
            .map_err(|why| NoTemplate::Frame { kind: kind_name, why })?;
        if framing == Framing::Etx && !(dialect.is_text() && header.is_text()) {
            return Err(NoTemplate::Frame { kind: kind_name, why: FrameError::EtxInside });
        }
        let before = framing.prefix_bytes() + before.len();
        let mut spans = Spans::default();
        let view = read(dialect, &body, &mut spans, kind_name)?;
        let placed = |de, skipped| {
            let place = Place::of(&view, de, skipped).map(|place| place.behind(before));
            place.ok_or(NoTemplate::Place { kind: kind_name, de })
        };
        let mut times = vec![(placed(7, 0)?, 0..10)];
        let mut rest = None;
        if kind != Kind::EchoTest {
            times.extend([(placed(12, 0)?, 4..10), (placed(13, 0)?, 0..4), (placed(37, 0)?, 0..6)]);
            let card = if view.has(2) { 2 } else { 35 };
            let original = if kind == Kind::Reversal { Some(placed(90, 4)?) } else { None };
            let start = |de| {
                let end = view.range(de).zip(view.raw(de));
                let at = end.map(|(range, raw)| before + range.end - raw.len());
                at.ok_or(NoTemplate::Place { kind: kind_name, de })
            };
            rest = Some(Rest {
                retrieval: placed(37, 6)?,
                terminal: placed(41, 1)?,
                amount: placed(4, 6)?,
                card: placed(card, 0)?,
                category: start(18)?,
                acceptor: start(42)?,
                original,
            });
        }
        let stan = placed(11, 0)?;
        let function = Place::of_function(dialect.mti()).behind(before);
        let repeat = (function, [view.mti().function(), view.mti().origin() | 1]);
        Ok(Self { frame: frame.into(), stan, rest, times, repeat })
    }

    /// From now on it is so late, as MMDDhhmmss.
    pub(super) fn set_time(&mut self, time: &[u8; 10]) {
        put_time(&self.times, time, &mut self.frame);
    }

    /// Appends a message to `out`.
    #[inline]
    pub(super) fn write(&self, filling: &Filling<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.frame);
        let Some(frame) = out.get_mut(start..) else { return };
        self.stan.put(&filling.stan, frame);
        let Some(rest) = &self.rest else { return };
        rest.retrieval.put(&filling.stan, frame);
        rest.terminal.put(&filling.terminal, frame);
        rest.amount.put(&filling.amount, frame);
        rest.card.put(&filling.card, frame);
        put_bytes(rest.category, filling.category, frame);
        put_bytes(rest.acceptor, filling.acceptor, frame);
        if let (Some(place), Some(original)) = (rest.original, &filling.original) {
            place.put(original, frame);
        }
    }

    /// Appends a message that was sent before, when it was so late, and says so.
    pub(super) fn write_again(&self, filling: &Filling<'_>, time: &[u8; 10], out: &mut Vec<u8>) {
        let start = out.len();
        self.write(filling, out);
        let Some(frame) = out.get_mut(start..) else { return };
        put_time(&self.times, time, frame);
        let (place, digits) = self.repeat;
        place.put(&digits, frame);
    }
}

fn put_time(times: &[(Place, Range<usize>)], time: &[u8; 10], frame: &mut [u8]) {
    for (place, part) in times {
        place.put(time.get(part.clone()).unwrap_or_default(), frame);
    }
}

#[inline]
fn put_bytes(at: usize, bytes: &[u8], frame: &mut [u8]) {
    if let Some(there) = frame.get_mut(at..at + bytes.len()) {
        there.copy_from_slice(bytes);
    }
}

fn read<'a>(
    dialect: &'a Dialect,
    body: &'a [u8],
    spans: &'a mut Spans,
    kind: &'static str,
) -> Result<View<'a>, NoTemplate> {
    // What has just been written as an MTI is one.
    let view = View::parse(dialect, body, spans)
        .map_err(|_| NoTemplate::Encode { kind, why: EncodeError::Mti })?;
    match view.fault() {
        None => Ok(view),
        Some(why) => Err(NoTemplate::Fault { kind, why }),
    }
}

/// A header as a network writes it, before so many bytes of message.
fn write_header(header: Header, message_bytes: usize) -> Vec<u8> {
    let mut written = match header {
        Header::None => Vec::new(),
        Header::Tpdu { .. } => vec![0x60, 0x00, 0x01, 0x00, 0x02],
        Header::Visa => {
            vec![22, 1, 2, 0, 0, 0x12, 0x34, 0x56, 0x65, 0x43, 0x21]
        }
        Header::Base24 => b"ISO026000070".to_vec(),
        Header::Fixed { .. } => Vec::new(),
    };
    let filler = if header.is_text() { b'0' } else { 0 };
    written.resize(header.bytes(), filler);
    let whole = u16::try_from(written.len() + message_bytes).unwrap_or(u16::MAX);
    if let (Header::Visa, [_, _, _, high, low, ..]) = (header, written.as_mut_slice()) {
        [*high, *low] = whole.to_be_bytes();
    }
    written
}

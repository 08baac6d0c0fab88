//! Which reading fits a message that the given one does not read to its end: all framings, usual
//! headers and presets are tried, and what fits equally well is all said.
//!
//! A reading fits when every frame is cut, every message of them has an MTI that is defined, and is
//! read to its end without a fault. Among those that fit the most sensible wins: values that are
//! what their fields hold, a card number whose check digit is right.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::sync::Arc;

use super::reading::{NamedDialect, Piece, Reading, TPDU_MARK, cut};
use crate::iso8583::{
    Content, DataEncoding, Description, Dialect, Padding, Spans, Unreadable, View,
};
use crate::pan::is_card_number;
use crate::wire::{Framing, Header, HeaderFault, Opened};

/// Headers that are in use under some name.
const USUAL_HEADERS: [&str; 6] = ["none", "tpdu", "tpdu+6", "visa", "base24", "fixed:9"];
/// A header of so many bytes that mean nothing is tried when no usual one fits.
const FIXED_BYTES_MAX: u8 = 64;

/// How many frames of a capture are looked at: enough to tell one framing from another.
const FRAMES_MAX: usize = 32;
/// How many readings that are equally good are said.
pub(super) const FITS_MAX: usize = 5;

/// Longest value that is looked at for what it holds.
const TEXT_MAX: usize = 1_000;
const CARD_NUMBER: u8 = 2;
const SENT_AT: u8 = 7;
const RESPONSE_CODE: u8 = 39;

/// What a search has found.
#[derive(Default)]
pub(super) struct Search {
    /// The best readings, all of them equally good.
    pub(super) fits: Vec<Reading>,
    /// How many more are as good.
    pub(super) more: usize,
    /// When nothing fits: the reading that goes farthest.
    pub(super) farthest: Option<Farthest>,
}

/// A reading that breaks later than all others.
pub(super) struct Farthest {
    pub(super) reading: Reading,
    /// Where it breaks, in bytes of the input.
    pub(super) at: usize,
    pub(super) field: u8,
}

/// How sensible a reading that fits is; the order of the parts is their weight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    header_is_usual: bool,
    wrong_values: Reverse<usize>,
    card: Card,
    version: bool,
    sent_at: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Card {
    Wrong,
    None,
    Right,
}

/// What is searched: a frame that the given framing has cut, and, if nothing before it speaks for
/// that framing, the whole input.
pub(super) struct Subject<'a> {
    pub(super) frame: Option<&'a [u8]>,
    /// How many bytes of the input stand before the frame.
    pub(super) frame_at: usize,
    pub(super) all: Option<&'a [u8]>,
}

/// Searches; `given` is the reading that did not fit.
pub(super) fn search(subject: &Subject<'_>, given: &Reading, presets: &[NamedDialect]) -> Search {
    let usual: Vec<Header> = USUAL_HEADERS.iter().filter_map(|n| Header::from_name(n)).collect();
    let fixed: Vec<Header> = (1..=FIXED_BYTES_MAX).map(|bytes| Header::Fixed { bytes }).collect();
    let own = (!presets.iter().any(|preset| preset.name == given.dialect.name))
        .then(|| given.dialect.clone());
    let dialects: Vec<NamedDialect> = own.into_iter().chain(presets.iter().cloned()).collect();
    let framed = framings(subject, given);
    let mut found = Found::default();
    // That so many bytes mean nothing is believed only of messages that prove themselves.
    for (headers, to_be_proven) in [(with(&usual, given.header), false), (fixed, true)] {
        for (framing, frames) in &framed {
            for header in &headers {
                for dialect in &dialects {
                    let reading =
                        Reading { framing: *framing, header: *header, dialect: dialect.clone() };
                    found.consider(reading, frames, to_be_proven);
                }
            }
        }
        if !found.fits.is_empty() {
            break;
        }
    }
    found.conclude()
}

fn with(usual: &[Header], given: Header) -> Vec<Header> {
    let mut headers = usual.to_vec();
    if !headers.contains(&given) {
        headers.insert(0, given);
    }
    headers
}

/// A frame with a message, and where it begins.
struct Cut {
    at: usize,
    frame: Vec<u8>,
}

/// The framings that cut all there is, each with the frames that it cuts.
fn framings(subject: &Subject<'_>, given: &Reading) -> Vec<(Option<Framing>, Vec<Cut>)> {
    let mut framed = Vec::new();
    if let Some(frame) = subject.frame {
        framed.push((given.framing, vec![Cut { at: subject.frame_at, frame: frame.to_vec() }]));
    }
    let Some(all) = subject.all else { return framed };
    let ascii = (2..=8).map(|digits| Framing::Ascii { digits });
    let mut framings: Vec<Option<Framing>> = vec![None];
    framings.extend(Framing::ALL.into_iter().map(Some));
    for other in ascii.map(Some) {
        if !framings.contains(&other) {
            framings.push(other);
        }
    }
    for framing in framings.into_iter().filter(|framing| *framing != given.framing) {
        if let Some(frames) = frames(all, framing) {
            framed.push((framing, frames));
        }
    }
    framed
}

/// The first messages of an input, if this framing cuts it to its end.
fn frames(input: &[u8], framing: Option<Framing>) -> Option<Vec<Cut>> {
    let (mut frames, mut whole, mut seen) = (Vec::new(), true, 0);
    let cut: Result<(), Infallible> = cut(input, framing, |piece| {
        match piece {
            Piece::Keepalive { .. } => {}
            Piece::Frame { at, frame_at, frame } => {
                frames.push(Cut { at: frame_at.unwrap_or(at), frame: frame.to_vec() });
            }
            Piece::Rest { .. } => whole = false,
        }
        seen += 1;
        Ok(seen < FRAMES_MAX)
    });
    (cut.is_ok() && whole && !frames.is_empty()).then_some(frames)
}

#[derive(Default)]
struct Found {
    fits: Vec<(Rank, Reading)>,
    farthest: Option<(Sense, Farthest)>,
}

impl Found {
    fn consider(&mut self, reading: Reading, frames: &[Cut], to_be_proven: bool) {
        let mut rank: Option<Rank> = None;
        for frame in frames {
            match rank_of(&reading, &frame.frame) {
                Ok(this) => rank = Some(rank.map_or(this, |rank| rank.with(this))),
                Err(Some(broken)) if !to_be_proven => {
                    return self.broke(reading, frame.at, broken);
                }
                Err(_) => return,
            }
        }
        if let Some(rank) = rank.filter(|rank| !to_be_proven || rank.is_proven()) {
            self.fits.push((rank, reading));
        }
    }

    /// A message that makes more sense goes farther, whatever its length.
    fn broke(&mut self, reading: Reading, frame_at: usize, broken: Broken) {
        let Broken { at, field, sense } = broken;
        let at = frame_at.saturating_add(at);
        let best = self.farthest.as_ref().map(|(sense, best)| (*sense, best.at));
        if best.is_none_or(|best| (sense, at) > best) {
            self.farthest = Some((sense, Farthest { reading, at, field }));
        }
    }

    fn conclude(self) -> Search {
        let Some(best) = self.fits.iter().map(|(rank, _)| *rank).max() else {
            return Search {
                farthest: self.farthest.map(|(_, farthest)| farthest),
                ..Search::default()
            };
        };
        let mut fits: Vec<Reading> = self
            .fits
            .into_iter()
            .filter_map(|(rank, reading)| (rank == best).then_some(reading))
            .collect();
        let more = fits.len().saturating_sub(FITS_MAX);
        fits.truncate(FITS_MAX);
        Search { fits, more, farthest: None }
    }
}

/// Where a message breaks.
struct Broken {
    /// In bytes from the beginning of the frame.
    at: usize,
    field: u8,
    sense: Sense,
}

/// Whether the version is the dialect's, whether the values are sound, and what of the card number.
type Sense = (bool, bool, Card);

/// How sensible a message is, or where it breaks; that is `None` when it does not even begin like
/// one.
fn rank_of(reading: &Reading, frame: &[u8]) -> Result<Rank, Option<Broken>> {
    let opened = reading.header.open(frame).map_err(|_: HeaderFault| None)?;
    let layout: &Dialect = &reading.dialect.layout;
    let mut spans = Spans::default();
    let view = View::parse(layout, opened.body, &mut spans).map_err(|_: Unreadable| None)?;
    if view.mti().unknown_part().is_some() {
        return Err(None);
    }
    if let Some(fault) = view.fault() {
        let at = opened.header.len().saturating_add(usize::from(fault.at));
        let sense = (is_of_version(&view), wrong_values(&view) == 0, card(&view));
        return Err(Some(Broken { at, field: fault.field, sense }));
    }
    Ok(Rank {
        header_is_usual: is_usual(reading.header, &opened),
        wrong_values: Reverse(wrong_values(&view)),
        card: card(&view),
        version: is_of_version(&view),
        sent_at: view.has(SENT_AT),
    })
}

impl Rank {
    /// Whether what can be checked was there and right.
    fn is_proven(self) -> bool {
        self.wrong_values.0 == 0 && (self.card == Card::Right || self.sent_at)
    }

    /// Of two messages together.
    fn with(self, other: Self) -> Self {
        Self {
            header_is_usual: self.header_is_usual && other.header_is_usual,
            wrong_values: Reverse(self.wrong_values.0.saturating_add(other.wrong_values.0)),
            card: self.card.min(other.card),
            version: self.version && other.version,
            sent_at: self.sent_at && other.sent_at,
        }
    }
}

/// Whether a header that has no mark of its own looks like one.
fn is_usual(header: Header, opened: &Opened<'_>) -> bool {
    match header {
        Header::Tpdu { .. } => opened.header.first() == Some(&TPDU_MARK),
        _ => true,
    }
}

fn card(view: &View<'_>) -> Card {
    let Some(number) = view.text::<TEXT_MAX>(CARD_NUMBER) else {
        return match view.pan() {
            Some(pan) if pan.passes_luhn() => Card::Right,
            _ => Card::None,
        };
    };
    if is_card_number(number.as_bytes()) { Card::Right } else { Card::Wrong }
}

/// Field 39 has two characters in 1987, three in 1993 and four in 2003: a dialect's width of it says
/// which of them it is for.
fn is_of_version(view: &View<'_>) -> bool {
    let width = view.dialect().field(RESPONSE_CODE).map(|spec| spec.max);
    width.is_none_or(|width| width == u16::from(view.mti().version()).saturating_add(2))
}

/// How many fields hold what their kind cannot: a walk to the end says nothing of that.
fn wrong_values(view: &View<'_>) -> usize {
    view.fields().iter().filter(|de| !is_sound(view, *de)).count()
}

fn is_sound(view: &View<'_>, de: u8) -> bool {
    let Some((spec, text)) = view.dialect().field(de).zip(view.text::<TEXT_MAX>(de)) else {
        return false;
    };
    let text = text.as_bytes();
    let all = |is: fn(&u8) -> bool| text.iter().all(is);
    let of_its_kind = match spec.content {
        Content::N => all(u8::is_ascii_digit),
        Content::Xn => {
            all(|byte| byte.is_ascii_digit() || matches!(byte, b'C' | b'D' | b'+' | b'-'))
        }
        Content::B => true,
        _ if spec.data == DataEncoding::Binary => true,
        _ => all(|byte| matches!(byte, b' '..=b'~')),
    };
    let is_filler = |half: u8| half == 0 || half == 15;
    let raw = view.raw(de).unwrap_or_default();
    let first = raw.first().is_none_or(|byte| is_filler(byte >> 4));
    let last = raw.last().is_none_or(|byte| is_filler(byte & 15));
    let is_filled = text.len() & 1 == 0
        || match (spec.data, spec.padding) {
            (DataEncoding::Bcd, Padding::LeftZero) => first,
            (DataEncoding::Bcd, _) => last,
            // Of a track the side is found out.
            (DataEncoding::BcdTrack, _) => first || last,
            _ => true,
        };
    of_its_kind && is_filled && (de != SENT_AT || Description::is_time(text))
}

/// The presets by their names.
pub(super) fn presets() -> Vec<NamedDialect> {
    let named = Dialect::PRESETS.iter().filter_map(|name| {
        Some(NamedDialect { name: Arc::from(*name), layout: Arc::new(Dialect::preset(name)?) })
    });
    named.collect()
}

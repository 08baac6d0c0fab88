//! A message that is built once and filled in for each time that it is sent.
//!
//! Building one along the dialect's table costs more than sending it. So each kind of each flow is
//! built once, with its length and header, and what differs is written over it in place: no field
//! changes its length, and the message stays as sound as it was built.

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
    /// The dialect has fields of another version of the standard.
    #[error("messages are of ISO 8583:1987, and field 12 of this dialect is of another version")]
    Version,
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
    /// MMDDhhmmss.
    sent: Place,
    /// The last digits of its message type, and what they are when it is sent again.
    repeat: (Place, [u8; 2]),
}

/// What messages have that are about a card.
struct Rest {
    /// hhmmss.
    time: Place,
    /// MMDD.
    date: Place,
    /// MMDDhh, and the STAN.
    retrieval: [Place; 2],
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
        // hhmmss; later versions have the date before it.
        if dialect.field(12).is_some_and(|time| time.max != 6) {
            return Err(NoTemplate::Version);
        }
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
        let mut rest = None;
        if kind != Kind::EchoTest {
            let card = if view.has(2) { 2 } else { 35 };
            let original = if kind == Kind::Reversal { Some(placed(90, 4)?) } else { None };
            let start = |de| {
                let end = view.range(de).zip(view.raw(de));
                let at = end.map(|(range, raw)| before + range.end - raw.len());
                at.ok_or(NoTemplate::Place { kind: kind_name, de })
            };
            rest = Some(Rest {
                time: placed(12, 0)?,
                date: placed(13, 0)?,
                retrieval: [placed(37, 0)?, placed(37, 6)?],
                terminal: placed(41, 1)?,
                amount: placed(4, 6)?,
                card: placed(card, 0)?,
                category: start(18)?,
                acceptor: start(42)?,
                original,
            });
        }
        let (stan, sent) = (placed(11, 0)?, placed(7, 0)?);
        let function = Place::of_function(dialect.mti()).behind(before);
        let repeat = (function, [view.mti().function(), view.mti().origin() | 1]);
        Ok(Self { frame: frame.into(), stan, sent, rest, repeat })
    }

    /// From now on it is so late, as MMDDhhmmss.
    pub(super) fn set_time(&mut self, time: &[u8; 10]) {
        let Self { frame, sent, rest, .. } = self;
        put_time(*sent, rest.as_ref(), time, frame);
    }

    /// Appends a message to `out`.
    #[inline]
    pub(super) fn write(&self, filling: &Filling<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.frame);
        let Some(frame) = out.get_mut(start..) else { return };
        self.stan.put(&filling.stan, frame);
        let Some(rest) = &self.rest else { return };
        let [_, number] = rest.retrieval;
        number.put(&filling.stan, frame);
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
        put_time(self.sent, self.rest.as_ref(), time, frame);
        let (place, digits) = self.repeat;
        place.put(&digits, frame);
    }
}

fn put_time(sent: Place, rest: Option<&Rest>, time: &[u8; 10], frame: &mut [u8]) {
    sent.put(time, frame);
    let Some(rest) = rest else { return };
    let [month, day @ .., _, _, _, _, _, _] = time;
    let [a, b, c] = *day;
    let [.., d, e, f, g, h, i] = *time;
    rest.date.put(&[*month, a, b, c], frame);
    rest.time.put(&[d, e, f, g, h, i], frame);
    let [moment, _] = rest.retrieval;
    moment.put(&[*month, a, b, c, d, e], frame);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::card::CardRange;
    use crate::traffic::Operation;
    use crate::wire::Splitter;

    /// Dialects of 1987 that are not some network's part of it.
    const WHOLE: [&str; 8] = [
        "iso87_ascii",
        "iso87_ascii_binbitmap",
        "iso87_bcd",
        "iso87_bcd_left",
        "mastercard_like_ascii",
        "mastercard_like_ebcdic",
        "visa_like_base1",
        "cup_pos_bcd",
    ];

    fn shop() -> Shop {
        Shop { acceptor: "SHOP00000000001".to_owned(), category: "5411".to_owned() }
    }

    fn line(dialect: &Dialect, header: Header) -> Line<'_> {
        Line { dialect, framing: Framing::Be16, header }
    }

    fn body(frame: &[u8], header: Header) -> Vec<u8> {
        let mut splitter = Splitter::new(Framing::Be16, 65_535);
        let split = splitter.split(frame).unwrap().unwrap();
        assert_eq!(split.whole, frame);
        header.open(split.frame).unwrap().body.to_vec()
    }

    fn digits_of(text: &str) -> Vec<u8> {
        text.bytes().map(|digit| digit & 15).collect()
    }

    /// What a message says in a field, which it has to have.
    #[track_caller]
    fn text(view: &View<'_>, de: u8) -> String {
        view.text::<48>(de).unwrap().to_string()
    }

    /// Looks at the fields that were filled in.
    #[track_caller]
    fn assert_filled_in(view: &View<'_>, kind: Kind, stan: u32, card: &Digits) {
        assert_eq!((view.fault(), view.mti().answerable()), (None, kind.is_request()));
        assert_eq!(text(view, 11), format!("{stan:06}"));
        assert_eq!(text(view, 7), "1224183059");
        assert_eq!(view.merchant().is_some(), kind != Kind::EchoTest);
        assert_eq!(view.operation() == Operation::Refund, kind == Kind::Refund);
        assert_eq!(view.operation() == Operation::Inquiry, kind == Kind::Inquiry);
        if kind == Kind::EchoTest {
            return assert!(view.pan().is_none());
        }
        assert_eq!((text(view, 12), text(view, 13)), ("183059".to_owned(), "1224".to_owned()));
        assert_eq!(text(view, 37), format!("122418{stan:06}"));
        assert_eq!((text(view, 41), text(view, 42)), ("T0120034".into(), "SHOP00000000042".into()));
        assert_eq!((text(view, 4), text(view, 18)), ("000000004711".into(), "5812".into()));
        let number = text(view, if view.has(2) { 2 } else { 35 });
        assert_eq!(&digits_of(&number)[..16], card);
        if kind == Kind::Reversal {
            assert!(text(view, 90).starts_with("01000000411224183000"), "{}", text(view, 90));
        }
    }

    #[test]
    fn every_kind_is_a_sound_message_however_it_is_filled_in() {
        let mut rng = fastrand::Rng::with_seed(3);
        let example = shop();
        let mut sent = 0;
        for (name, kind) in WHOLE.into_iter().flat_map(|name| Kind::ALL.map(|kind| (name, kind))) {
            let dialect = Dialect::preset(name).unwrap();
            for header in ["none", "tpdu+6", "visa", "base24", "fixed:9"] {
                let header = Header::from_name(header).unwrap();
                let template = Template::new(kind, "123456", &example, line(&dialect, header));
                let mut template = match template {
                    Ok(template) => template,
                    Err(NoTemplate::Encode { why: EncodeError::Unknown { de }, .. }) => {
                        assert!(name == "cup_pos_bcd" && matches!(de, 70 | 90), "{name} {de}");
                        continue;
                    }
                    Err(error) => panic!("{name}: {error}"),
                };
                template.set_time(&[1, 2, 2, 4, 1, 8, 3, 0, 5, 9]);
                let other = Shop { acceptor: "SHOP00000000042".into(), category: "5812".into() };
                let shelf = kind.message("123456", &other);
                let (mut encoded, mut spans) = (Vec::new(), Spans::default());
                shelf.encode(&dialect, &mut encoded).unwrap();
                let shelf = View::parse(&dialect, &encoded, &mut spans).unwrap();
                let card = CardRange::new("411111").draw(&mut rng);
                let stan = rng.u32(1..1_000_000);
                let filling = Filling {
                    stan: super::super::place::six(stan),
                    terminal: [0, 1, 2, 0, 0, 3, 4],
                    card,
                    amount: [0, 0, 4, 7, 1, 1],
                    category: shelf.raw(18).unwrap_or_default(),
                    acceptor: shelf.raw(42).unwrap_or_default(),
                    original: Some([0, 0, 0, 0, 4, 1, 1, 2, 2, 4, 1, 8, 3, 0, 0, 0]),
                };
                let (mut first, mut again) = (Vec::new(), Vec::new());
                template.write(&filling, &mut first);
                template.write_again(&filling, &[1, 2, 2, 4, 1, 8, 3, 0, 5, 9], &mut again);
                let mut spans = Spans::default();
                let first = body(&first, header);
                let view = View::parse(&dialect, &first, &mut spans).unwrap();
                assert_filled_in(&view, kind, stan, &card);
                let was = view.mti();
                let again = body(&again, header);
                let view = View::parse(&dialect, &again, &mut spans).unwrap();
                assert_filled_in(&view, kind, stan, &card);
                assert!(view.mti().is_repeat() && view.mti().response() == was.response());
                sent += 1;
            }
        }
        assert_eq!(sent, (WHOLE.len() * Kind::ALL.len() - 2) * 5);
    }

    #[test]
    fn what_cannot_be_carried_is_said_before_anything_is_sent() {
        let (shop, ascii) = (shop(), Dialect::preset("iso87_ascii").unwrap());
        let refused = |dialect: &Dialect, framing, header, shop: &Shop| {
            let line = Line { dialect, framing, header };
            Template::new(Kind::Reversal, "123456", shop, line).err().unwrap()
        };
        let (be16, none) = (Framing::Be16, Header::None);
        for name in ["iso93_ascii", "iso93_bcd", "iso93_ebcdic"] {
            let dialect = Dialect::preset(name).unwrap();
            assert_eq!(refused(&dialect, be16, none, &shop), NoTemplate::Version);
        }
        let sample = Dialect::preset("iso8583_rs_sample").unwrap();
        let error = refused(&sample, be16, none, &shop).to_string();
        let said =
            "reversal messages cannot be written in this dialect: field 7 is not in the dialect";
        assert_eq!(error, said);
        let packed = Dialect::preset("iso87_bcd").unwrap();
        let error = refused(&packed, Framing::Etx, none, &shop);
        assert!(matches!(error, NoTemplate::Frame { why: FrameError::EtxInside, .. }), "{error}");
        let long = Shop { acceptor: "A SHOP WITH A LONG NAME".to_owned(), ..shop };
        let error = refused(&ascii, be16, none, &long);
        assert!(matches!(error, NoTemplate::Encode { .. }), "{error}");
    }
}

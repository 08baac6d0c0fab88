//! What is done to a message between its sender and here.

use std::ops::Range;

use fastrand::Rng;
use tollgate::iso8583::{BitmapEncoding, Dialect, Length, MtiEncoding, Spans, View};
use tollgate::probe::dialects;
use tollgate::wire::{Framing, Header};

use crate::fixtures;
use crate::seeds::{before, purchases};

/// A sound message, and where in it the places are that decide how the rest is read.
pub(crate) struct Message {
    pub(crate) body: Vec<u8>,
    bitmap: Range<usize>,
    /// The length prefixes of its fields.
    lengths: Vec<Range<usize>>,
    encoding: BitmapEncoding,
}

impl Message {
    fn new(dialect: &Dialect, body: Vec<u8>) -> Self {
        let mut spans = Spans::default();
        let view = View::parse(dialect, &body, &mut spans).expect("an MTI");
        let mti_bytes = if dialect.mti() == MtiEncoding::Bcd { 2 } else { 4 };
        let offset = |part: &[u8]| part.as_ptr().addr() - body.as_ptr().addr();
        let fields: Vec<u8> = view.fields().iter().collect();
        let first = fields.first().map_or(body.len(), |de| offset(view.whole(*de).unwrap()));
        let is_prefixed = |de: &&u8| dialect.field(**de).unwrap().length != Length::Fixed;
        let lengths = fields
            .iter()
            .filter(is_prefixed)
            .map(|de| offset(view.whole(*de).unwrap())..offset(view.raw(*de).unwrap()))
            .collect();
        let encoding = dialect.bitmap().encoding;
        Self { bitmap: mti_bytes..first, lengths, encoding, body }
    }
}

/// For each dialect of the probe its messages among the fixtures, and a purchase.
pub(crate) fn messages() -> Vec<Vec<Message>> {
    let fixtures = fixtures::messages();
    let of = |(dialect, (name, purchase)): (&Dialect, (String, Vec<u8>))| {
        let ours = fixtures.iter().filter(|message| message.dialect == name);
        let bodies = ours.map(|message| message.body.clone()).chain([purchase]);
        bodies.map(|body| Message::new(dialect, body)).collect()
    };
    let messages: Vec<Vec<Message>> = dialects().zip(purchases()).map(of).collect();
    assert_eq!(messages.len(), dialects().count());
    assert!(messages.iter().map(Vec::len).sum::<usize>() >= 60);
    messages
}

/// A header as a peer writes it: mostly sound, sometimes a reject before it.
pub(crate) fn header(header: Header, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = before(header);
    if header == Header::Visa && rng.u8(..8) == 0 {
        let mut reject = [0; 26];
        reject[..2].copy_from_slice(&[26, 0x80]);
        reject[22..].fill_with(|| rng.u8(..));
        bytes.splice(..0, reject);
    }
    bytes
}

/// Appends a frame, in `rbp6` sometimes in parts. What a framing cannot carry goes in all the same.
pub(crate) fn join(framing: Framing, frame: &[u8], rng: &mut Rng, stream: &mut Vec<u8>) {
    if framing == Framing::Rbp6 && rng.bool() {
        let parts = frame.chunks(rng.usize(1..=frame.len().max(1)).max(frame.len() / 40 + 1));
        let last = parts.len().saturating_sub(1);
        for (at, part) in parts.enumerate() {
            let [high, low] = u16::try_from(part.len()).unwrap().to_be_bytes();
            stream.extend([0xd0, 0x4a, high, low, u8::from(at < last), 0]);
            stream.extend(part);
        }
    } else if framing.join(frame, stream).is_err() {
        stream.extend(frame);
        stream.push(3);
    }
}

/// What can be done to one message.
pub(crate) struct Damage<'a> {
    message: &'a Message,
    /// Another one, for splices.
    other: &'a Message,
}

impl<'a> Damage<'a> {
    pub(crate) const fn new(message: &'a Message, other: &'a Message) -> Self {
        Self { message, other }
    }

    /// One to three kinds of damage to a message's body, of the kinds that know their places too.
    pub(crate) fn inflict(&self, body: &mut Vec<u8>, rng: &mut Rng) {
        for _ in 0..rng.u8(1..4) {
            match rng.u8(..10) {
                0 | 1 => self.bitmap(body, rng),
                2 | 3 => self.length(body, rng),
                _ => self.inflict_anywhere(body, rng),
            }
        }
    }

    /// One kind of damage that needs to know nothing of what it damages.
    pub(crate) fn inflict_anywhere(&self, bytes: &mut Vec<u8>, rng: &mut Rng) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.usize(..bytes.len());
        match rng.u8(..9) {
            0 => bytes.truncate(at),
            1 | 2 => bytes[at] ^= 1 << rng.u8(..8),
            3 | 4 => bytes[at.min(23)] = rng.u8(..),
            5 if bytes.len() < 4_000 => bytes.insert(at, rng.u8(..)),
            5 | 6 => drop(bytes.remove(at)),
            7 => {
                let end = bytes.len().min(at + rng.usize(1..9));
                let fills = [0, 0xff, b'0', b'9', 0xf9, rng.u8(..)];
                let fill = fills[rng.usize(..fills.len())];
                bytes[at..end].fill(fill);
            }
            _ => {
                let theirs = &self.other.body[rng.usize(..self.other.body.len())..];
                bytes.truncate(at);
                bytes.extend(theirs);
            }
        }
    }

    /// Another field is announced, or one that is there is not.
    fn bitmap(&self, body: &mut [u8], rng: &mut Rng) {
        let Message { bitmap, encoding, .. } = self.message;
        let Some(byte) = body.get_mut(rng.usize(bitmap.clone())) else { return };
        *byte = match encoding {
            BitmapEncoding::Binary => *byte ^ 0x80 >> rng.u8(..8),
            BitmapEncoding::HexAscii => *rng.choice(b"0123456789ABCDEFabcdef").unwrap(),
            BitmapEncoding::HexEbcdic => {
                if rng.bool() {
                    rng.u8(0xf0..0xfa)
                } else {
                    rng.u8(0xc1..0xc7)
                }
            }
        };
    }

    /// A field says that it is longer or shorter than it is, by a little or by much.
    fn length(&self, body: &mut [u8], rng: &mut Rng) {
        let Some(place) = rng.choice(&self.message.lengths) else { return };
        let whole = rng.bool();
        for byte in body.get_mut(place.clone()).unwrap_or_default().iter_mut().rev() {
            *byte = match *byte {
                0xf0..=0xf9 => rng.u8(0xf0..=0xf9),
                b'0'..=b'9' if rng.u8(..4) > 0 => rng.u8(b'0'..=b'9'),
                _ if rng.u8(..8) == 0 => 0xff,
                _ => rng.u8(0..10) << 4 | rng.u8(0..10),
            };
            if !whole {
                break;
            }
        }
    }

    /// Damage to a stream, mostly where lengths of frames are written.
    pub(crate) fn inflict_in_length(&self, stream: &mut Vec<u8>, framing: Framing, rng: &mut Rng) {
        let prefix_bytes = framing.prefix_bytes();
        if prefix_bytes == 0 || rng.u8(..4) == 0 {
            return self.inflict_anywhere(stream, rng);
        }
        let at = rng.usize(..prefix_bytes);
        match rng.u8(..5) {
            0 => stream[at] ^= 1 << rng.u8(..8),
            1 => stream[at] = rng.u8(..),
            2 => stream[..prefix_bytes].fill(*rng.choice(b"\x00\x7f\xff9F").unwrap()),
            3 => stream[at] = rng.u8(b'0'..=b'9'),
            _ => stream.truncate(rng.usize(..stream.len())),
        }
    }
}

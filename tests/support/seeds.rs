//! Where made-up bytes begin: the real messages in the framing, header and dialect that they came
//! in, one message in every framing and behind every header, and one purchase in every dialect.

use std::collections::BTreeMap;

use tollgate::iso8583::{BitmapEncoding, Dialect, MtiEncoding, Spans, View};
use tollgate::probe::{
    HEADERS, REPLY_HEAD_BYTES, SPLIT_HEAD_BYTES, VIEW_HEAD_BYTES, WITH_THIRD_BITMAP, dialects,
    framings,
};
use tollgate::wire::{Framing, Header};

use crate::csv::columns;
use crate::fixtures::{Line, lines};
use crate::purchase::purchase;

const MESSAGES: &str = include_str!("../../fixtures/messages.csv");

/// As most links have it; and seven bytes are no length's.
const FRAME_BYTES_MAX: u16 = 4_096;
const PIECE_BYTES: u8 = 7;

/// By target and name.
#[derive(Default)]
pub(crate) struct Seeds {
    pub(crate) split: BTreeMap<String, Vec<u8>>,
    pub(crate) view: BTreeMap<String, Vec<u8>>,
    pub(crate) reply: BTreeMap<String, Vec<u8>>,
}

pub(crate) fn seeds() -> Seeds {
    let mut seeds = Seeds::default();
    let rows = MESSAGES.lines().skip(1).map(columns);
    for (row, line) in rows.zip(lines()) {
        let (name, framing, stream) = (&row[0], &row[2], bytes(&row[3]));
        let (framing, header) = wire(framing);
        let joined = |framing: Framing| {
            let mut joined = Vec::new();
            framing.join(&stream, &mut joined).map(|()| joined).expect("a frame")
        };
        let stream = framing.map_or_else(|| joined(Framing::Be16), |_| stream.clone());
        let framing = framing.unwrap_or(Framing::Be16);
        seeds.split.insert(name.clone(), split(framing, &stream));
        if let Line::Message(message) = line {
            let frame = &stream[framing.prefix_bytes()..];
            let frame = &frame[..stream.len() - framing.overhead_bytes()];
            let choice = preset(&message.dialect);
            seeds.view.insert(name.clone(), view(choice, &message.body));
            seeds.reply.insert(name.clone(), reply(choice, header, frame));
        }
    }
    let ascii = purchase("iso87_ascii");
    for framing in framings() {
        let mut stream = Vec::new();
        // Longer than two digits can say.
        let frame = if framing.frame_bytes_ceiling() < ascii.len() { &ascii[..20] } else { &ascii };
        for frame in [frame, b"", frame] {
            framing.join(frame, &mut stream).expect("a frame");
        }
        seeds.split.insert(format!("in-{}", file_name(framing.name())), split(framing, &stream));
    }
    for header in HEADERS {
        let frame = [before(header), ascii.clone()].concat();
        let name = format!("behind-{}", file_name(&header.to_string()));
        seeds.reply.insert(name, reply(preset("iso87_ascii"), header, &frame));
    }
    for (choice, (name, body)) in (0..).zip(purchases()) {
        let name = format!("purchase-{name}");
        seeds.view.insert(name.clone(), view(choice, &body));
        seeds.reply.insert(name, reply(choice, Header::None, &body));
    }
    seeds
}

/// A header of that kind as a peer writes it.
pub(crate) fn before(header: Header) -> Vec<u8> {
    let padded = |head: &[u8], bytes: usize| [head, &vec![b'0'; bytes - head.len()]].concat();
    match header {
        Header::None => Vec::new(),
        Header::Tpdu { application_bytes } => {
            padded(&[0x60, 0x00, 0x03, 0x12, 0x34], 5 + usize::from(application_bytes))
        }
        Header::Visa => {
            padded(&[22, 1, 2, 0, 195, 0x65, 0x43, 0x21, 0x12, 0x34, 0x56, 0, 0, 0], 22)
        }
        Header::Base24 => b"ISO023400070".to_vec(),
        Header::Fixed { bytes } => padded(b"", bytes.into()),
    }
}

/// A purchase in each of the probe's dialects, by a name.
pub(crate) fn purchases() -> Vec<(String, Vec<u8>)> {
    let presets = Dialect::PRESETS.iter().map(|preset| ((*preset).to_owned(), purchase(preset)));
    let others = dialects().skip(Dialect::PRESETS.len()).zip(WITH_THIRD_BITMAP);
    let others = others.map(|(dialect, (preset, _))| {
        (format!("third-{preset}"), with_third_bitmap(dialect, &purchase(preset)))
    });
    presets.chain(others).collect()
}

/// The same fields, and field 130 like field 2, which is the first.
fn with_third_bitmap(dialect: &Dialect, body: &[u8]) -> Vec<u8> {
    let mti_bytes = if dialect.mti() == MtiEncoding::Bcd { 2 } else { 4 };
    let (first_bit, second_bit): (&[u8], &[u8]) = match dialect.bitmap().encoding {
        BitmapEncoding::Binary => (&[0x80, 0, 0, 0, 0, 0, 0, 0], &[0x40, 0, 0, 0, 0, 0, 0, 0]),
        BitmapEncoding::HexAscii => (b"8000000000000000", b"4000000000000000"),
        BitmapEncoding::HexEbcdic => (
            b"\xf8\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0",
            b"\xf4\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0",
        ),
    };
    let (head, fields) = body.split_at(mti_bytes + first_bit.len());
    let mut head = head.to_vec();
    head[mti_bytes] = match head[mti_bytes] {
        // Seven, of fields 2 to 4, and fifteen.
        b'7' => b'F',
        0xf7 => 0xc6,
        byte => byte | 0x80,
    };
    let mut spans = Spans::default();
    let view = View::parse(dialect, body, &mut spans).expect("an MTI");
    let again = view.whole(2).expect("field 2");
    [&head, first_bit, fields, second_bit, again].concat()
}

pub(crate) fn split(framing: Framing, stream: &[u8]) -> Vec<u8> {
    let choice = place(framings(), &framing);
    let [high, low] = FRAME_BYTES_MAX.to_be_bytes();
    let head: [u8; SPLIT_HEAD_BYTES] = [choice, high, low, PIECE_BYTES - 1];
    [&head, stream].concat()
}

pub(crate) fn view(choice: u8, body: &[u8]) -> Vec<u8> {
    let head: [u8; VIEW_HEAD_BYTES] = [choice];
    [&head, body].concat()
}

/// With every field to be echoed.
pub(crate) fn reply(choice: u8, header: Header, frame: &[u8]) -> Vec<u8> {
    let mut head = [0xff; REPLY_HEAD_BYTES];
    head[0] = choice;
    head[1] = place(HEADERS.into_iter(), &header);
    [&head, frame].concat()
}

fn preset(name: &str) -> u8 {
    place(Dialect::PRESETS.iter().copied(), &name)
}

fn place<T: PartialEq>(mut all: impl Iterator<Item = T>, one: &T) -> u8 {
    let place = all.position(|other| other == *one).expect("one of them");
    place.try_into().expect("few")
}

/// The framing and header of a line of the fixtures; no framing where the message came without.
fn wire(text: &str) -> (Option<Framing>, Header) {
    let mut framing = None;
    let mut header = Header::None;
    for part in text.split('+') {
        match part {
            "none" | "9" => {}
            "etx" if framing.is_some() => framing = Some(Framing::Be16Etx),
            "header:9(EBCDIC 1ROUTENET)" => header = Header::Fixed { bytes: 9 },
            "tpdu5" => header = Header::Tpdu { application_bytes: 0 },
            "hdr6" => header = Header::Tpdu { application_bytes: 6 },
            "visa22" | "visa26reject" => header = Header::Visa,
            "base24:ISO" => header = Header::Base24,
            "ascii6" => framing = Some(Framing::Ascii { digits: 6 }),
            name => framing = Some(Framing::from_name(name).expect("a framing")),
        }
    }
    (framing, header)
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits")).collect()
}

/// Without the characters that some file systems do not take.
fn file_name(name: &str) -> String {
    name.replace([':', '+'], "_")
}

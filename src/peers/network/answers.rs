//! Reading answers cheaply: what one is for, and what it says.
//!
//! An answer is walked along the dialect's table once for each layout; another of the same message
//! type, bitmap and lengths has the same fields in the same places, and is read there.

use super::place::{Place, number};
use crate::iso8583::{DataEncoding, Dialect, LocalCode, Spans, View, approves};

/// Layouts that are kept, each in a place of its own that another may take from it.
const LAYOUTS: usize = 256;
/// The longest code: four digits in 2003.
const CODE_BYTES: usize = 4;

const STAN: u8 = 11;
const RESPONSE_CODE: u8 = 39;
const TERMINAL: u8 = 41;

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Approved,
    Declined,
    /// Issuer or switch inoperative: 91, 907 or 9107.
    Inoperative,
    /// It has no code.
    None,
}

/// What is read of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) stan: u32,
    /// The digits of its terminal, where it has one.
    pub(super) terminal: Option<[u8; 7]>,
    pub(super) verdict: Verdict,
}

/// Reads the answers of one dialect.
pub(super) struct Answers {
    spans: Spans,
    layouts: Box<[Option<Layout>]>,
}

/// Where things are in answers that begin alike and are equally long.
struct Layout {
    bytes: usize,
    /// Message type, bitmap and length prefixes.
    marks: Vec<Mark>,
    stan: Place,
    terminal: Option<Place>,
    code: Option<Code>,
}

/// Some bytes that have to be what they were.
#[derive(Clone, Copy)]
struct Mark {
    at: usize,
    /// All bits of those of the eight bytes from there on that are meant.
    mask: u64,
    bytes: u64,
}

/// Where the response code is.
struct Code {
    version: u8,
    at: usize,
    bytes: usize,
    data: DataEncoding,
}

impl Answers {
    pub(super) fn new() -> Self {
        let layouts = std::iter::repeat_with(|| None).take(LAYOUTS).collect();
        Self { spans: Spans::default(), layouts }
    }

    /// `None` for what is no answer, or cannot be read.
    pub(super) fn read(&mut self, dialect: &Dialect, body: &[u8]) -> Option<Answer> {
        let place = place_of(body);
        if let Some(Some(layout)) = self.layouts.get(place)
            && layout.fits(body)
        {
            return layout.read(body);
        }
        let view = View::parse(dialect, body, &mut self.spans).ok()?;
        if !view.mti().is_answer() {
            return None;
        }
        let layout = Layout::of(&view)?;
        let answer = layout.read(body);
        // A bitmap among the fields is not marked, and so nothing is known of the next.
        if view.fault().is_none()
            && dialect.bitmap().third.is_none()
            && layout.fits(body)
            && let Some(kept) = self.layouts.get_mut(place)
        {
            *kept = Some(layout);
        }
        answer
    }
}

/// Where the layout of a message is kept: by its length, its type and most of its bitmap.
#[inline]
fn place_of(body: &[u8]) -> usize {
    let head = body.first_chunk::<16>().copied().unwrap_or_default();
    let mixed = (u128::from_le_bytes(head) ^ body.len() as u128)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    (mixed >> 120) as usize
}

impl Layout {
    fn of(view: &View<'_>) -> Option<Self> {
        let body = view.body();
        let (mut first, mut marks) = (body.len(), Vec::new());
        for de in view.fields().iter() {
            let (whole, data) = (view.range(de)?, view.raw(de)?.len());
            first = first.min(whole.start);
            mark(body, whole.start..whole.end - data, &mut marks);
        }
        mark(body, 0..first, &mut marks);
        let code = view.raw(RESPONSE_CODE).and_then(|raw| {
            Some(Code {
                version: view.mti().version(),
                at: view.range(RESPONSE_CODE)?.end - raw.len(),
                bytes: raw.len(),
                data: view.dialect().field(RESPONSE_CODE)?.data,
            })
        });
        Some(Self {
            bytes: body.len(),
            marks,
            stan: Place::of(view, STAN, 0)?,
            terminal: Place::of(view, TERMINAL, 1),
            code,
        })
    }

    #[inline]
    fn fits(&self, body: &[u8]) -> bool {
        self.bytes == body.len() && self.marks.iter().all(|mark| mark.is_in(body))
    }

    #[inline]
    fn read(&self, body: &[u8]) -> Option<Answer> {
        let stan = number(self.stan.get(body))?;
        let terminal = self.terminal.map(|terminal| terminal.get(body));
        let verdict = self.code.as_ref().map_or(Verdict::None, |code| code.read(body));
        Some(Answer { stan, terminal, verdict })
    }
}

/// Marks what stands there, eight bytes at a time. What stands in the last eight bytes of a message
/// cannot be marked, and then its layout fits no message: it is walked each time.
fn mark(body: &[u8], range: std::ops::Range<usize>, marks: &mut Vec<Mark>) {
    for at in range.clone().step_by(8) {
        let bytes = (range.end - at).min(8);
        let mask = u64::MAX >> (64 - 8 * bytes as u32);
        let there = body.get(at..).and_then(|there| there.first_chunk());
        // Nothing is all of these bits and none of them.
        let bytes = there.map_or(!0, |there| u64::from_le_bytes(*there) & mask);
        marks.push(Mark { at, mask, bytes });
    }
}

impl Mark {
    #[inline]
    fn is_in(self, body: &[u8]) -> bool {
        let there = body.get(self.at..).and_then(|there| there.first_chunk());
        there.is_some_and(|there| u64::from_le_bytes(*there) & self.mask == self.bytes)
    }
}

impl Code {
    #[inline]
    fn read(&self, body: &[u8]) -> Verdict {
        let raw = body.get(self.at..self.at + self.bytes).unwrap_or_default();
        let mut text = [0; CODE_BYTES];
        let written = match self.data {
            DataEncoding::Bcd => {
                let halves = raw.iter().flat_map(|byte| [byte >> 4, byte & 15]);
                // An odd number of digits has its padding first.
                let skipped = usize::from(self.version == 1);
                text.iter_mut()
                    .zip(halves.skip(skipped))
                    .map(|(to, half)| *to = half | b'0')
                    .count()
            }
            // Digits lie in the same order in ASCII and EBCDIC; no letters approve.
            _ => text.iter_mut().zip(raw).map(|(to, byte)| *to = byte & 15 | b'0').count(),
        };
        let code = text.get(..written).unwrap_or_default();
        let inoperative = LocalCode::IssuerInoperative.in_version(self.version);
        let is_digits = self.data != DataEncoding::Ascii || raw.iter().all(u8::is_ascii_digit);
        if !is_digits {
            Verdict::Declined
        } else if inoperative.is_some_and(|inoperative| inoperative.as_bytes() == code) {
            Verdict::Inoperative
        } else if approves(self.version, code) {
            Verdict::Approved
        } else {
            Verdict::Declined
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Message;

    fn answer(message: &Message, dialect: &Dialect) -> Vec<u8> {
        let mut body = Vec::new();
        message.encode(dialect, &mut body).unwrap();
        body
    }

    #[test]
    fn an_answer_is_read_the_same_whether_its_layout_is_known_or_not() {
        let dialect = Dialect::preset("iso87_ascii").unwrap();
        let mut answers = Answers::new();
        let message = |stan: &str, card: &str, terminal: &str, code: &str| {
            let message = Message::new("0110").field(2, card).field(11, stan).field(39, code);
            answer(&message.field(41, terminal), &dialect)
        };
        for round in 0..3 {
            for (stan, card, terminal, code, verdict) in [
                ("7", "4111111111111111", "T0010002", "00", Verdict::Approved),
                ("8", "4111111111111111", "T0010003", "91", Verdict::Inoperative),
                // As long, with the lengths of two fields changed round.
                ("9", "411111111111111", "T0010004", "05", Verdict::Declined),
                ("10", "4111111111111111", "T0010004", "N0", Verdict::Declined),
            ] {
                let body = message(stan, card, terminal, code);
                let read = answers.read(&dialect, &body).unwrap();
                assert_eq!(Some(read.stan), stan.parse().ok(), "{round}");
                assert_eq!(read.verdict, verdict, "{round} {code}");
                let digits: Vec<u8> = terminal.bytes().skip(1).map(|byte| byte & 15).collect();
                assert_eq!(read.terminal.unwrap(), *digits);
            }
        }
        let bare = answer(&Message::new("0810").field(11, "3"), &dialect);
        let bare = answers.read(&dialect, &bare).unwrap();
        assert_eq!((bare.terminal, bare.verdict), (None, Verdict::None));
        let request = answer(&Message::new("0100").field(11, "3"), &dialect);
        assert_eq!(answers.read(&dialect, &request), None);
        assert_eq!(answers.read(&dialect, b"0110"), None);
        assert_eq!(answers.read(&dialect, b""), None);
    }
}

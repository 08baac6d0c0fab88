//! An answer spliced from its request: response MTI, fresh bitmap, echoed fields byte for byte, and
//! Field 39.
//!
//! An answer is composed before it is known whether and why it is needed, so Field 39 is left open:
//! a [`Slot`] remembers where it lies. Until it is written it says "system malfunction", so that an
//! answer that escapes unwritten approves nothing. No field is ever made up.

use super::code::{self, LocalCode};
use super::composer::Shape;
use super::dialect::Dialect;
use super::ebcdic;
use super::field::{DataEncoding, FieldSpec, Padding, Unit};
use super::field_set::FieldSet;
use super::length::Length;
use super::view::View;

pub(super) const RESPONSE_CODE: u8 = 39;

/// Fields that no answer of tollgate's carries, whatever the echo list says: bitmap indicators;
/// expiry, extended card number, tracks, PIN, security and chip data, original data elements, which
/// an answer has no use for; codes over the request (64, 128), which would be wrong over the
/// answer; and an authorization code (38), which only the host may give.
pub const NEVER_ECHOED: FieldSet =
    FieldSet::of(&[1, 14, 34, 35, 36, 38, 39, 45, 52, 53, 55, 64, 65, 90, 128]);

/// Why a message gets no answer from tollgate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, thiserror::Error)]
pub enum NoReply {
    /// It is an answer itself, or of a function that nobody answers.
    #[error("no answer is defined for this message type")]
    MessageType,
    /// The dialect has no Field 39, or none that holds a code of the MTI's version.
    #[error("field 39 of the dialect does not hold a code of this version")]
    ResponseCode,
}

/// Where Field 39 of a composed answer lies, and how it is written there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    pub(super) at: usize,
    size: u8,
    data: DataEncoding,
    padding: Padding,
    version: u8,
}

impl Slot {
    /// A slot that no code fits.
    pub(super) const NOWHERE: Self =
        Self { at: 0, size: 0, data: DataEncoding::Ascii, padding: Padding::None, version: 0 };

    pub(super) const fn new(at: usize, spec: &FieldSpec, room: &Room, version: u8) -> Self {
        Self { at, size: room.size, data: spec.data, padding: spec.padding, version }
    }

    /// Writes the code into the answer it was composed with (the whole vector, whatever it held
    /// before). `false` when the code cannot be said there, such as N0 in a field of digits; the
    /// answer is then as it was.
    pub fn write(&self, answer: &mut [u8], code: LocalCode) -> bool {
        let Some(text) = code.in_version(self.version) else { return false };
        let end = self.at.saturating_add(usize::from(self.size));
        answer.get_mut(self.at..end).is_some_and(|data| self.encode(text.as_bytes(), data))
    }

    fn encode(&self, text: &[u8], data: &mut [u8]) -> bool {
        let in_characters = matches!(self.data, DataEncoding::Ascii | DataEncoding::Ebcdic);
        if !in_characters && !text.iter().all(u8::is_ascii_digit) {
            return false;
        }
        match self.data {
            DataEncoding::Ascii | DataEncoding::HexAscii => put(data, text.iter().copied()),
            DataEncoding::Ebcdic | DataEncoding::HexEbcdic => {
                put(data, text.iter().map(|character| ebcdic::from_ascii(*character)))
            }
            DataEncoding::Bcd
            | DataEncoding::BcdTrack
            | DataEncoding::Binary
            | DataEncoding::SignedBcd => {
                let odd = text.len() & 1 == 1;
                let (before, after) = match self.padding {
                    _ if !odd => (None, None),
                    Padding::None | Padding::LeftZero => (Some(0), None),
                    Padding::RightZero => (None, Some(0)),
                    Padding::RightF => (None, Some(15)),
                };
                let digits = text.iter().map(|digit| digit & 15);
                let mut halves = before.into_iter().chain(digits).chain(after);
                put(data, std::iter::from_fn(move || Some(halves.next()? << 4 | halves.next()?)))
            }
        }
    }
}

/// Fills `data`; whether `bytes` were exactly as many.
fn put(data: &mut [u8], bytes: impl Iterator<Item = u8> + Clone) -> bool {
    if bytes.clone().count() != data.len() {
        return false;
    }
    data.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = byte);
    true
}

/// Appends the answer to `view`'s message: those of the `echo` fields that were read (with their
/// length prefixes, byte for byte) and an open Field 39, in field order. Appends nothing on failure.
/// Whoever composes many has a [`Composer`](super::Composer) do it.
pub fn compose(view: &View<'_>, echo: &FieldSet, out: &mut Vec<u8>) -> Result<Slot, NoReply> {
    let mut shape = Shape::empty();
    shape.shape(view.dialect(), echo, view.mti(), view.fields())?;
    Ok(shape.splice(view, out))
}

/// Whether an answer in this dialect to a message of a version can say `code` in its Field 39; `None`
/// when no code of that version fits there.
pub fn can_say(dialect: &Dialect, version: u8, code: LocalCode) -> Option<bool> {
    let spec = dialect.field(RESPONSE_CODE)?;
    let room = Room::of(spec, version)?;
    let slot = Slot::new(0, spec, &room, version);
    Some(slot.write(&mut vec![0; usize::from(room.size)], code))
}

/// What Field 39 takes with a code of one version in it.
pub(super) struct Room {
    /// What its length prefix says.
    pub(super) units: usize,
    /// How many bytes its data take.
    pub(super) size: u8,
}

impl Room {
    /// `None` when a code of this version does not fit the field exactly.
    pub(super) fn of(spec: &FieldSpec, version: u8) -> Option<Self> {
        let width = code::width(version)?;
        let in_pairs = match spec.data {
            DataEncoding::Ascii | DataEncoding::Ebcdic => false,
            DataEncoding::Bcd | DataEncoding::BcdTrack => spec.unit == Unit::Bytes,
            DataEncoding::Binary => true,
            DataEncoding::HexAscii | DataEncoding::HexEbcdic => spec.unit == Unit::Bytes,
            DataEncoding::SignedBcd => return None,
        };
        if in_pairs && width & 1 == 1 {
            return None;
        }
        let units = if in_pairs { width >> 1 } else { width };
        let max = usize::from(spec.max);
        let fits = match spec.length {
            Length::Fixed => units == max,
            Length::Prefixed(_) => units <= max,
        };
        let size = spec.bytes(units).filter(|_| fits)?;
        Some(Self { units, size: u8::try_from(size).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iso8583::{Dialect, Spans};

    const FIELDS: [(u8, &str); 12] = [
        (2, "164111111111111111"),
        (3, "000000"),
        (11, "000042"),
        (14, "2912"),
        (35, "214111111111111111D2912"),
        (38, "A1B2C3"),
        (41, "TERMID01"),
        (52, "0011223344556677"),
        (55, "0045F2A"),
        (90, "010000004206041234560000000000000000000000"),
        (102, "04ACCT"),
        (128, "8899AABBCCDDEEFF"),
    ];

    fn request(dialect: &Dialect, mti: &str) -> Vec<u8> {
        let mut body = mti.as_bytes().to_vec();
        dialect.bitmap().write(&FIELDS.iter().map(|(de, _)| *de).collect(), &mut body);
        FIELDS.iter().for_each(|(_, text)| body.extend(text.as_bytes()));
        body
    }

    fn composed(dialect: &Dialect, mti: &str) -> Result<(Slot, Vec<u8>), NoReply> {
        let body = request(dialect, mti);
        let mut spans = Spans::default();
        let view = View::parse(dialect, &body, &mut spans).unwrap();
        assert_eq!(view.fault(), None);
        let mut out = Vec::new();
        let slot = compose(&view, &(0..=255).collect(), &mut out);
        assert!(slot.is_ok() || out.is_empty(), "nothing is appended on failure");
        slot.map(|slot| (slot, out))
    }

    #[test]
    fn an_answer_is_the_echoed_fields_in_order_with_field_39_among_them_and_no_secrets() {
        let dialect = Dialect::preset("iso87_ascii").unwrap();
        let (slot, mut answer) = composed(&dialect, "0201").unwrap();
        let text = "0210E0200000028000000000000004000000\
                    16411111111111111100000000004296TERMID0104ACCT";
        assert_eq!(String::from_utf8_lossy(&answer), text, "unwritten, it is a malfunction");
        assert!(slot.write(&mut answer, LocalCode::ForceStandIn));
        assert_eq!(String::from_utf8_lossy(&answer), text.replace("96TERM", "N0TERM"));
        assert!(slot.write(&mut answer, LocalCode::IssuerInoperative));
        assert_eq!(String::from_utf8_lossy(&answer), text.replace("96TERM", "91TERM"));
        assert!(!slot.write(&mut [], LocalCode::IssuerInoperative));
    }

    #[test]
    fn what_has_no_answer_or_no_room_for_a_code_gets_none() {
        let dialect = Dialect::preset("iso87_ascii").unwrap();
        let refusal = |mti| composed(&dialect, mti).map(|_| ()).unwrap_err();
        assert_eq!(refusal("0210"), NoReply::MessageType);
        assert_eq!(refusal("0180"), NoReply::MessageType);
        assert_eq!(refusal("1100"), NoReply::ResponseCode, "three characters in a field of two");
        assert_eq!(refusal("2100"), NoReply::ResponseCode);
        assert_eq!(refusal("3100"), NoReply::ResponseCode);
        let table = include_str!("presets/iso87_ascii.csv");
        let without: Vec<&str> = table.lines().filter(|line| !line.starts_with("39,")).collect();
        let dialect = Dialect::from_table(&without.join("\n")).unwrap();
        assert_eq!(composed(&dialect, "0100").unwrap_err(), NoReply::ResponseCode);
    }

    #[test]
    fn letters_are_not_written_into_a_field_of_digits() {
        for line in
            ["39,n,fixed,none,bcd,2,digits,none,x", "39,b,fixed,none,hex_ascii,1,bytes,none,x"]
        {
            let table = include_str!("presets/iso87_ascii.csv");
            let lines = table.lines().map(|old| if old.starts_with("39,") { line } else { old });
            let table: Vec<&str> = lines.collect();
            let dialect = Dialect::from_table(&table.join("\n")).unwrap();
            let (slot, mut answer) = composed(&dialect, "0100").unwrap();
            let before = answer.clone();
            assert!(!slot.write(&mut answer, LocalCode::ForceStandIn));
            assert_eq!(answer, before);
            assert!(slot.write(&mut answer, LocalCode::IssuerInoperative));
            assert_ne!(answer, before);
        }
    }
}

//! Building a message from field values, as a network or an issuer builds one.
//!
//! Values are characters, as [`View::text`] gives them back: digits, text, and two hexadecimal
//! digits for each byte of a binary field. Amounts with a sign before packed digits are not built.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

use crate::iso8583::{
    Content, DataEncoding, Dialect, FieldSet, FieldSpec, Length, Mti, Padding, Unit, View,
    to_ebcdic,
};

/// A message that is being built.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    mti: Option<Mti>,
    fields: BTreeMap<u8, Value>,
}

#[derive(Clone, PartialEq, Eq)]
enum Value {
    /// Characters, still to be encoded.
    Text(Vec<u8>),
    /// Bytes as they are on the wire, with their length prefix.
    Encoded(Vec<u8>),
}

/// Why a message cannot be written in a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The MTI is not four digits.
    #[error("the MTI is not four digits")]
    Mti,
    /// The dialect has no such field.
    #[error("field {de} is not in the dialect")]
    Unknown {
        /// The field.
        de: u8,
    },
    /// A field does not take its value.
    #[error("field {de}: {why}")]
    Field {
        /// The field.
        de: u8,
        /// Why not.
        why: FieldError,
    },
}

/// Why a field does not take a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    /// Longer than the field may be.
    #[error("the value is too long")]
    TooLong,
    /// A binary field of a fixed length, which nothing may be added to.
    #[error("the value is too short")]
    TooShort,
    /// A character that the field cannot hold.
    #[error("the value has a character that the field cannot hold")]
    Character,
    /// An odd number of digits, two a byte, in a field that is not padded.
    #[error("an odd number of digits does not fit into bytes")]
    Odd,
    /// A sign and packed digits.
    #[error("fields of this encoding are not built here")]
    Encoding,
}

impl Message {
    /// A message of this type, such as `0100`, without fields.
    pub fn new(mti: &str) -> Self {
        let digits: Option<[u8; 4]> = mti.as_bytes().try_into().ok();
        let digits = digits.map(|digits| digits.map(|digit| digit.wrapping_sub(b'0')));
        Self { mti: digits.and_then(Mti::from_digits), fields: BTreeMap::new() }
    }

    /// The answer to a message: the type that the standard gives it, and of the `echo` fields those
    /// that the message has, byte for byte. `None` when nobody answers such a message.
    pub fn answer_to(view: &View<'_>, echo: &FieldSet) -> Option<Self> {
        let mti = view.mti().response()?;
        let echoed = echo.intersection(view.fields());
        let fields = echoed.iter().filter_map(|de| Some((de, view.whole(de)?)));
        let fields = fields.map(|(de, whole)| (de, Value::Encoded(whole.to_vec()))).collect();
        Some(Self { mti: Some(mti), fields })
    }

    /// With a field, in place of what it held before. In a field of fixed length, digits are filled
    /// up with zeros on the left and text with blanks on the right.
    #[must_use]
    pub fn field(mut self, de: u8, value: impl Into<Vec<u8>>) -> Self {
        self.fields.insert(de, Value::Text(value.into()));
        self
    }

    /// Without a field.
    #[must_use]
    pub fn without(mut self, de: u8) -> Self {
        self.fields.remove(&de);
        self
    }

    /// The same message sent again: its type says so, nothing else changes.
    #[must_use]
    pub fn repeated(mut self) -> Self {
        self.mti = self.mti.map(|mti| {
            let digits = [mti.version(), mti.class(), mti.function(), mti.origin() | 1];
            Mti::from_digits(digits).unwrap_or(mti)
        });
        self
    }

    /// Appends the message to `out`; on failure nothing is appended.
    ///
    /// # Errors
    /// When the dialect cannot express it.
    pub fn encode(&self, dialect: &Dialect, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let before = out.len();
        let written = self.write(dialect, out);
        if written.is_err() {
            out.truncate(before);
        }
        written
    }

    fn write(&self, dialect: &Dialect, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        dialect.mti().write(self.mti.ok_or(EncodeError::Mti)?, out);
        dialect.bitmap().write(&self.fields.keys().copied().collect(), out);
        for (&de, value) in &self.fields {
            let spec = dialect.field(de).ok_or(EncodeError::Unknown { de })?;
            match value {
                Value::Encoded(bytes) => out.extend_from_slice(bytes),
                Value::Text(text) => {
                    write_field(spec, text, out).map_err(|why| EncodeError::Field { de, why })?;
                }
            }
        }
        Ok(())
    }
}

/// What it is and has, and nothing of what it says.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mti = self.mti.map(|mti| mti.to_string());
        let fields: FieldSet = self.fields.keys().copied().collect();
        f.debug_struct("Message").field("mti", &mti).field("fields", &fields).finish()
    }
}

fn write_field(spec: &FieldSpec, text: &[u8], out: &mut Vec<u8>) -> Result<(), FieldError> {
    let sound = match spec.data {
        DataEncoding::Ascii | DataEncoding::Ebcdic => text.is_ascii(),
        DataEncoding::Bcd => text.iter().all(u8::is_ascii_digit),
        DataEncoding::BcdTrack => text.iter().all(|c| c.is_ascii_digit() || *c == b'='),
        DataEncoding::HexAscii | DataEncoding::HexEbcdic | DataEncoding::Binary => is_bytes(text),
        DataEncoding::SignedBcd => return Err(FieldError::Encoding),
    };
    let digits = spec.content == Content::N;
    if !sound || digits && !text.iter().all(u8::is_ascii_digit) {
        return Err(FieldError::Character);
    }
    let of_bytes = matches!(
        spec.data,
        DataEncoding::Binary | DataEncoding::HexAscii | DataEncoding::HexEbcdic
    );
    // How many characters of the value make a unit.
    let packed = matches!(spec.data, DataEncoding::Bcd | DataEncoding::BcdTrack);
    let per_unit = if (of_bytes || packed) && spec.unit == Unit::Bytes { 2 } else { 1 };
    let (units, max) = (text.len().div_ceil(per_unit), usize::from(spec.max));
    if units > max {
        return Err(FieldError::TooLong);
    }
    let mut value = text.to_vec();
    match spec.length {
        Length::Prefixed(prefix) => prefix.write(units, out),
        Length::Fixed if units == max => {}
        Length::Fixed if of_bytes => return Err(FieldError::TooShort),
        Length::Fixed if digits => {
            value.splice(..0, std::iter::repeat_n(b'0', max * per_unit - text.len()));
        }
        Length::Fixed => value.resize(max, b' '),
    }
    match spec.data {
        DataEncoding::Ascii => out.extend_from_slice(&value),
        DataEncoding::Ebcdic => out.extend(value.iter().map(|character| to_ebcdic(*character))),
        DataEncoding::HexAscii => out.extend(value.to_ascii_uppercase()),
        DataEncoding::HexEbcdic => {
            let upper = value.to_ascii_uppercase();
            out.extend(upper.iter().map(|character| to_ebcdic(*character)));
        }
        DataEncoding::Binary => out.extend(bytes_of(&value)),
        _ => out.extend(packed_digits(spec, value)?),
    }
    Ok(())
}

/// Two digits a byte, the odd one padded as the field says; D is the separator of a track.
fn packed_digits(spec: &FieldSpec, mut digits: Vec<u8>) -> Result<Vec<u8>, FieldError> {
    if !digits.len().is_multiple_of(2) {
        match spec.padding {
            Padding::None => return Err(FieldError::Odd),
            Padding::LeftZero => digits.insert(0, b'0'),
            Padding::RightZero => digits.push(b'0'),
            Padding::RightF => digits.push(b'F'),
        }
    }
    digits.iter_mut().filter(|digit| **digit == b'=').for_each(|digit| *digit = b'D');
    Ok(bytes_of(&digits))
}

/// Whole bytes, in hexadecimal digits.
fn is_bytes(text: &[u8]) -> bool {
    text.len().is_multiple_of(2) && text.iter().all(u8::is_ascii_hexdigit)
}

fn bytes_of(text: &[u8]) -> Vec<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
    let (pairs, _) = text.as_chunks::<2>();
    pairs.iter().map(|[high, low]| value(*high) << 4 | value(*low)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iso8583::Spans;

    fn sample() -> Message {
        Message::new("0100")
            .field(2, "4111111111111111")
            .field(3, "310000")
            .field(4, "100")
            .field(11, "42")
            .field(35, "4111111111111111=3912201")
            .field(41, "TERM1")
            .field(52, "0011223344aabbcc")
            .field(102, "ACCOUNT")
    }

    #[test]
    fn what_is_built_reads_back_as_it_was_given() {
        for name in [
            "iso87_ascii",
            "iso87_ascii_binbitmap",
            "iso87_bcd",
            "iso87_bcd_left",
            "mastercard_like_ebcdic",
            "visa_like_base1",
        ] {
            let dialect = Dialect::preset(name).unwrap();
            let mut body = Vec::new();
            sample().encode(&dialect, &mut body).unwrap();
            let mut spans = Spans::default();
            let view = View::parse(&dialect, &body, &mut spans).unwrap();
            assert_eq!((view.mti().number(), view.fault()), (100, None), "{name}");
            for (de, text) in [
                (2, "4111111111111111"),
                (3, "310000"),
                (4, "000000000100"),
                (11, "000042"),
                (35, "4111111111111111=3912201"),
                (41, "TERM1   "),
                (52, "0011223344AABBCC"),
                (102, "ACCOUNT"),
            ] {
                let read = view.text::<32>(de).unwrap();
                assert_eq!(read.as_bytes(), text.as_bytes(), "{name} {de}");
            }
            assert_eq!(view.fields().iter().count(), 8);
        }
    }

    #[test]
    fn what_is_built_in_the_presets_of_networks_reads_back_as_it_was_given() {
        for name in ["iso87_bcd", "iso87_bcd_left", "iso93_bcd", "iso93_ebcdic", "visa_like_base1"]
        {
            let dialect = Dialect::preset(name).unwrap();
            let code = if name.starts_with("iso93") { "116" } else { "51" };
            let message = Message::new("0100").field(2, "411111111111111").field(4, "100");
            let message = message.field(11, "42").field(39, code).field(41, "Term-1");
            let mut body = Vec::new();
            message.encode(&dialect, &mut body).unwrap();
            let mut spans = Spans::default();
            let view = View::parse(&dialect, &body, &mut spans).unwrap();
            assert_eq!((view.mti().number(), view.fault()), (100, None), "{name}");
            for (de, text) in [
                (2, "411111111111111"),
                (4, "000000000100"),
                (11, "000042"),
                (39, code),
                (41, "Term-1  "),
            ] {
                let read = view.text::<32>(de).unwrap();
                assert_eq!(read.as_bytes(), text.as_bytes(), "{name} {de}");
            }
        }
    }

    #[test]
    fn an_answer_echoes_what_the_request_has_byte_for_byte() {
        let dialect = Dialect::preset("iso87_ascii_binbitmap").unwrap();
        let (mut request, mut answer) = (Vec::new(), Vec::new());
        sample().repeated().encode(&dialect, &mut request).unwrap();
        let (mut spans, mut answer_spans) = (Spans::default(), Spans::default());
        let request = View::parse(&dialect, &request, &mut spans).unwrap();
        assert_eq!(request.mti().number(), 101);
        let built = Message::answer_to(&request, &FieldSet::of(&[2, 11, 37, 41])).unwrap();
        built.field(39, "00").encode(&dialect, &mut answer).unwrap();
        let answer = View::parse(&dialect, &answer, &mut answer_spans).unwrap();
        assert_eq!((answer.mti().number(), answer.fault()), (110, None));
        assert!(answer.fields().iter().eq([2, 11, 39, 41]));
        assert!([2, 11, 41].into_iter().all(|de| answer.whole(de) == request.whole(de)));
        assert_eq!(Message::answer_to(&answer, &FieldSet::EMPTY), None);
    }

    #[test]
    fn what_a_dialect_cannot_express_is_an_error_and_writes_nothing() {
        let dialect = Dialect::preset("iso87_ascii").unwrap();
        let field = |de, why| EncodeError::Field { de, why };
        for (message, error) in [
            (Message::new("100"), EncodeError::Mti),
            (Message::new("01X0"), EncodeError::Mti),
            (sample().field(129, "1"), EncodeError::Unknown { de: 129 }),
            (sample().field(1, "1"), EncodeError::Unknown { de: 1 }),
            (sample().field(3, "0000000"), field(3, FieldError::TooLong)),
            (sample().field(32, "123456789012"), field(32, FieldError::TooLong)),
            (sample().field(4, "1.00"), field(4, FieldError::Character)),
            (sample().field(43, "Caf\u{e9}"), field(43, FieldError::Character)),
            (sample().field(52, "0011"), field(52, FieldError::TooShort)),
            (sample().field(52, "001"), field(52, FieldError::Character)),
        ] {
            let mut out = vec![7];
            assert_eq!(message.encode(&dialect, &mut out), Err(error), "{message:?}");
            assert_eq!(out, [7]);
        }
    }

    #[test]
    fn a_message_prints_no_value() {
        assert_eq!(
            format!("{:?}", sample()),
            "Message { mti: Some(\"0100\"), fields: {2, 3, 4, 11, 35, 41, 52, 102} }"
        );
    }
}

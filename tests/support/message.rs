//! Messages in ASCII 1987 with a hexadecimal bitmap, built and read without tollgate's codec, so
//! that a fault in it cannot hide behind the same fault here.

use std::collections::BTreeMap;

/// How a message is written: the two presets differ in the bitmap and in fields of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `iso87_ascii`: hexadecimal digits.
    Hex,
    /// `iso87_ascii_binbitmap`: bytes.
    Binary,
}

impl Layout {
    pub fn preset(self) -> &'static str {
        match self {
            Self::Hex => "iso87_ascii",
            Self::Binary => "iso87_ascii_binbitmap",
        }
    }
}

/// Fields that `Layout::Binary` has as eight bytes; here they are always hexadecimal digits.
const BYTES: [u8; 4] = [52, 64, 96, 128];

/// A message by its fields; 0 is the MTI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message(pub BTreeMap<u8, String>);

/// Length digits of the variable fields that tests use; all others are fixed.
fn prefix_digits(field: u8) -> usize {
    match field {
        2 | 32 | 33 | 34 | 35 | 44 | 45 | 99..=103 => 2,
        36 | 46..=48 | 54..=63 | 104..=127 => 3,
        _ => 0,
    }
}

/// Characters of the fixed fields that tests use.
fn fixed_chars(field: u8) -> usize {
    match field {
        3 | 11 | 12 | 38 | 73 => 6,
        4..=6 | 37 => 12,
        7 => 10,
        8 => 8,
        13..=18 => 4,
        19..=24 | 40 | 49..=51 | 70 => 3,
        25 | 26 | 39 => 2,
        41 => 8,
        42 => 15,
        43 => 40,
        52 | 53 | 64 | 96 | 128 => 16,
        90 => 42,
        _ => panic!("field {field} is not known here"),
    }
}

impl Message {
    pub fn new(mti: &str, fields: &[(u8, &str)]) -> Self {
        let fields = fields.iter().map(|(field, value)| (*field, (*value).to_owned()));
        Self(fields.chain([(0, mti.to_owned())]).collect())
    }

    /// An authorization request: card, STAN, terminal, merchant, acquirer.
    pub fn sale(pan: &str, stan: u32) -> Self {
        Self::new(
            "0100",
            &[
                (2, pan),
                (3, "000000"),
                (4, "000000001000"),
                (7, "1130045900"),
                (11, &format!("{stan:06}")),
                (12, "045900"),
                (13, "1130"),
                (25, "00"),
                (32, "123456"),
                (37, &format!("{:012}", 900_000 + stan)),
                (41, "TERM0001"),
                (42, "SHOP0001       "),
                (49, "840"),
            ],
        )
    }

    pub fn mti(mut self, mti: &str) -> Self {
        self.0.insert(0, mti.to_owned());
        self
    }

    pub fn with(mut self, field: u8, value: &str) -> Self {
        self.0.insert(field, value.to_owned());
        self
    }

    pub fn without(mut self, field: u8) -> Self {
        self.0.remove(&field);
        self
    }

    pub fn get(&self, field: u8) -> Option<&str> {
        self.0.get(&field).map(String::as_str)
    }

    /// What a host answers: its MTI, the fields that are echoed, and Field 39.
    pub fn answer(&self, code: &str) -> Self {
        let mti = self.get(0).unwrap();
        let function = mti.as_bytes()[2] - b'0' + 1;
        let origin = (mti.as_bytes()[3] - b'0') / 2 * 2;
        let mut answer = Self::new(&format!("{}{function}{origin}", &mti[..2]), &[]);
        for field in [2, 3, 4, 7, 11, 12, 13, 32, 37, 41, 42, 49, 70] {
            if let Some(value) = self.get(field) {
                answer = answer.with(field, value);
            }
        }
        answer.with(39, code)
    }

    /// The text of one field of a message, without a look at what stands behind it; `None` when it
    /// is not there.
    #[track_caller]
    pub fn peek(bytes: &[u8], wanted: u8) -> Option<&str> {
        let text = |bytes| std::str::from_utf8(bytes).expect("ASCII");
        let word = |at: usize| u64::from_str_radix(text(&bytes[at..at + 16]), 16).unwrap();
        let first = word(4);
        let (second, mut at) = if first >> 63 == 1 { (word(20), 36) } else { (0, 20) };
        let bitmap = u128::from(first) << 64 | u128::from(second);
        let has = |field: u8| bitmap >> (128 - u32::from(field)) & 1 == 1;
        for field in (2..=wanted).filter(|field| has(*field)) {
            let length = match prefix_digits(field) {
                0 => fixed_chars(field),
                digits => {
                    at += digits;
                    text(&bytes[at - digits..at]).parse().unwrap()
                }
            };
            if field == wanted {
                return Some(text(&bytes[at..at + length]));
            }
            at += length;
        }
        None
    }

    pub fn encode(&self) -> Vec<u8> {
        self.encode_as(Layout::Hex)
    }

    pub fn encode_as(&self, layout: Layout) -> Vec<u8> {
        let secondary = self.0.keys().any(|field| *field > 64);
        let mut bitmap = if secondary { 1_u128 << 127 } else { 0 };
        for field in self.0.keys().filter(|field| **field > 1) {
            bitmap |= 1 << (128 - u32::from(*field));
        }
        let bytes = if secondary { 16 } else { 8 };
        let mut out = self.0[&0].as_bytes().to_vec();
        match layout {
            Layout::Hex => out.extend(&format!("{bitmap:032X}").as_bytes()[..2 * bytes]),
            Layout::Binary => out.extend(&bitmap.to_be_bytes()[..bytes]),
        }
        for (field, value) in self.0.iter().filter(|(field, _)| **field > 1) {
            match prefix_digits(*field) {
                0 => assert_eq!(value.len(), fixed_chars(*field), "field {field}"),
                digits => out.extend(format!("{:0digits$}", value.len()).as_bytes()),
            }
            match layout {
                Layout::Binary if BYTES.contains(field) => {
                    out.extend(u64::from_str_radix(value, 16).unwrap().to_be_bytes());
                }
                _ => out.extend(value.as_bytes()),
            }
        }
        out
    }

    /// Reads a message to its exact end.
    #[track_caller]
    pub fn decode(bytes: &[u8]) -> Self {
        Self::decode_as(Layout::Hex, bytes)
    }

    #[track_caller]
    pub fn decode_as(layout: Layout, bytes: &[u8]) -> Self {
        let mut rest = bytes;
        let mut take = |count: usize| {
            let (taken, left) = rest.split_at(count);
            rest = left;
            taken
        };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("ASCII");
        let mut message = Self::new(&text(take(4)), &[]);
        let mut word = || match layout {
            Layout::Hex => u64::from_str_radix(&text(take(16)), 16).unwrap(),
            Layout::Binary => u64::from_be_bytes(take(8).try_into().unwrap()),
        };
        let first = word();
        let second = if first >> 63 == 1 { word() } else { 0 };
        let bitmap = u128::from(first) << 64 | u128::from(second);
        for field in 2..=128_u8 {
            if bitmap >> (128 - u32::from(field)) & 1 == 0 {
                continue;
            }
            let value = match prefix_digits(field) {
                0 if layout == Layout::Binary && BYTES.contains(&field) => {
                    format!("{:016X}", u64::from_be_bytes(take(8).try_into().unwrap()))
                }
                0 => text(take(fixed_chars(field))),
                digits => {
                    let length = text(take(digits)).parse().unwrap();
                    text(take(length))
                }
            };
            message = message.with(field, &value);
        }
        assert!(rest.is_empty(), "bytes after the last field");
        message
    }
}

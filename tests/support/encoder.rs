//! Builds messages from values along a dialect's table, which it reads itself: it knows nothing of
//! tollgate's codec, so that an error there cannot hide behind the same one here.
//!
//! Values are what people write: digits without padding, characters, and bytes as upper-case
//! hexadecimal digits.

use std::collections::BTreeMap;

use fastrand::Rng;

/// Values by field; 0 is the MTI.
pub(crate) type Fields = BTreeMap<u8, String>;

/// A field's line of the table, as it stands there.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    content: String,
    len_kind: String,
    len_enc: String,
    data_enc: String,
    max: usize,
    unit: String,
    pad: String,
}

/// A dialect's table by field; 0 is the MTI, 1 the bitmap.
pub(crate) struct Table(BTreeMap<u8, Row>);

impl Table {
    pub(crate) fn read(text: &str) -> Self {
        let rows = text.lines().skip(1).map(|line| {
            let columns: Vec<&str> = line.split(',').collect();
            let row = Row {
                content: columns[1].to_owned(),
                len_kind: columns[2].to_owned(),
                len_enc: columns[3].to_owned(),
                data_enc: columns[4].to_owned(),
                max: columns[5].parse().expect("a number"),
                unit: columns[6].to_owned(),
                pad: columns[7].to_owned(),
            };
            (columns[0].parse().expect("a field's number"), row)
        });
        let table = Self(rows.collect());
        assert!(table.0.len() > 10, "a table of {} lines", table.0.len());
        table
    }

    /// The fields that a message can have. Where a third word may follow the second, bit 65 says
    /// that it does, and is none.
    pub(crate) fn fields(&self) -> Vec<u8> {
        let third = self.0[&1].max == 24;
        self.0.keys().copied().filter(|de| *de > 1 && !(*de == 65 && third)).collect()
    }

    pub(crate) fn field(&self, de: u8) -> &Row {
        &self.0[&de]
    }

    /// MTI and bitmap of a message of these fields.
    pub(crate) fn head(&self, fields: &Fields) -> Vec<u8> {
        let mut head = data(&self.0[&0], &fields[&0]);
        head.extend(self.bitmap(fields));
        head
    }

    /// The bytes of one field, with its length prefix.
    pub(crate) fn whole(&self, de: u8, value: &str) -> Vec<u8> {
        let row = self.field(de);
        let units = row.units(value);
        let mut whole = if row.len_kind == "fixed" {
            assert_eq!(units, row.max, "field {de} is of one length");
            Vec::new()
        } else {
            assert!(units <= row.max, "field {de} is too long");
            prefix(row, units)
        };
        whole.extend(data(row, value));
        whole
    }

    /// A field of one unit more than its maximum, if its prefix can say so.
    pub(crate) fn whole_too_long(&self, de: u8, rng: &mut Rng) -> Option<Vec<u8>> {
        let row = Row { max: usize::MAX, ..self.field(de).clone() };
        let units = self.field(de).max + 1;
        (!row.is_fixed() && units <= row.units_max())
            .then(|| [prefix(&row, units), data(&row, &row.value(units, rng))].concat())
    }

    pub(crate) fn encode(&self, fields: &Fields) -> Vec<u8> {
        let mut message = self.head(fields);
        for (de, value) in fields.range(1..) {
            message.extend(self.whole(*de, value));
        }
        message
    }

    pub(crate) fn bitmap(&self, fields: &Fields) -> Vec<u8> {
        let row = &self.0[&1];
        let mut bits = vec![false; 1 + 8 * row.max];
        fields.range(1..).for_each(|(de, _)| bits[usize::from(*de)] = true);
        let words = if row.len_kind == "fixed" {
            // Its senders leave the first bit off even with fields behind it.
            row.max / 8
        } else {
            let last = fields.keys().last().map_or(0, |de| usize::from(*de));
            let words = last.div_ceil(64).max(1);
            (1..words).for_each(|word| bits[1 + 64 * (word - 1)] = true);
            words
        };
        let bytes: Vec<u8> = bits[1..=64 * words]
            .chunks(8)
            .map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit)))
            .collect();
        match row.data_enc.as_str() {
            "bin" => bytes,
            "hex_ascii" => hex(&bytes).into_bytes(),
            "hex_ebcdic" => hex(&bytes).bytes().map(ebcdic).collect(),
            other => panic!("a bitmap in {other}"),
        }
    }
}

impl Row {
    pub(crate) fn is_fixed(&self) -> bool {
        self.len_kind == "fixed"
    }

    /// The most units that the table and the prefix allow.
    pub(crate) fn units_max(&self) -> usize {
        let letters = u32::try_from(self.len_kind.len()).unwrap();
        match self.len_enc.as_str() {
            "none" => self.max,
            "bin" => self.max.min(256_usize.pow(letters.div_ceil(2)) - 1),
            _ => self.max.min(10_usize.pow(letters) - 1),
        }
    }

    /// How many bytes the decimal digits of a value of so many units take, sign included; 0 where
    /// there are none.
    pub(crate) fn bytes(&self, units: usize) -> usize {
        self.decimal_halves(units).end.div_ceil(2)
    }

    /// Where in the bytes of a value of so many units its decimal digits lie: each half byte's place,
    /// padding left out.
    pub(crate) fn decimal_halves(&self, units: usize) -> std::ops::Range<usize> {
        let (first, digits) = match self.data_enc.as_str() {
            "bcd" => (0, units),
            "x_ascii+bcd" => (2, units - 1),
            _ => return 0..0,
        };
        assert_ne!(self.unit, "bytes", "digits are counted in digits here");
        let first = first + usize::from(digits % 2 == 1 && self.pad == "left0");
        first..first + digits
    }

    /// How many of what the prefix counts a value is.
    fn units(&self, value: &str) -> usize {
        match (self.unit.as_str(), self.data_enc.as_str()) {
            ("bytes", "bin" | "hex_ascii" | "hex_ebcdic" | "bcd" | "bcd_z") => {
                assert_eq!(value.len() % 2, 0, "half a byte");
                value.len() / 2
            }
            _ => value.len(),
        }
    }

    /// A value of so many units: of what the field may hold where the encoding judges it, and of
    /// all kinds of characters where it does not.
    pub(crate) fn value(&self, units: usize, rng: &mut Rng) -> String {
        let mut digits = |count: usize| -> String { (0..count).map(|_| rng.digit(10)).collect() };
        match self.data_enc.as_str() {
            "bin" | "hex_ascii" | "hex_ebcdic" => {
                let count = if self.unit == "bytes" { 2 * units } else { units };
                (0..count).map(|_| rng.digit(16).to_ascii_uppercase()).collect()
            }
            _ if self.content == "x+n" => {
                let amount = digits(units - 1);
                format!("{}{amount}", if rng.bool() { 'C' } else { 'D' })
            }
            "ascii" | "ebcdic" if matches!(self.content.as_str(), "a" | "an" | "ns" | "ans") => {
                (0..units).map(|_| char::from(*rng.choice(CHARACTERS).unwrap())).collect()
            }
            _ if self.content == "z" => {
                let mut track = digits(units);
                if units > 2 {
                    let at = rng.usize(1..units);
                    track.replace_range(at..=at, "=");
                }
                track
            }
            _ => digits(units),
        }
    }
}

fn prefix(row: &Row, units: usize) -> Vec<u8> {
    let letters = row.len_kind.len();
    assert!((1..=6).contains(&letters) && row.len_kind.bytes().all(|letter| letter == b'L'));
    match row.len_enc.as_str() {
        "ascii" => format!("{units:0letters$}").into_bytes(),
        "ebcdic" => format!("{units:0letters$}").bytes().map(ebcdic).collect(),
        "bcd" => pairs(&format!("{units:0width$}", width = letters.next_multiple_of(2))),
        "bin" => pairs(&format!("{units:0width$x}", width = letters.next_multiple_of(2))),
        other => panic!("a length in {other}"),
    }
}

fn data(row: &Row, value: &str) -> Vec<u8> {
    match row.data_enc.as_str() {
        "ascii" | "hex_ascii" => value.as_bytes().to_vec(),
        "ebcdic" | "hex_ebcdic" => value.bytes().map(ebcdic).collect(),
        "bin" => pairs(value),
        "bcd" => pairs(&padded(row, value)),
        "bcd_z" => pairs(&padded(row, &value.replace('=', "d"))),
        "x_ascii+bcd" => {
            let (sign, amount) = value.split_at(1);
            [sign.as_bytes(), &pairs(&padded(row, amount))].concat()
        }
        other => panic!("data in {other}"),
    }
}

/// Digits, even in number.
fn padded(row: &Row, digits: &str) -> String {
    if digits.len().is_multiple_of(2) {
        return digits.to_owned();
    }
    match row.pad.as_str() {
        "left0" => format!("0{digits}"),
        "right0" => format!("{digits}0"),
        "rightF" => format!("{digits}f"),
        other => panic!("an odd number of digits, and padding {other}"),
    }
}

/// Two hexadecimal digits a byte.
fn pairs(digits: &str) -> Vec<u8> {
    assert_eq!(digits.len() % 2, 0, "half a byte");
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits")).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// What fields of characters are filled with.
const CHARACTERS: &[u8] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz .<(+!&]$*);^-/,%_>?:#@'=\"|[";

/// The runs of code page 500 that hold them.
const EBCDIC: [(u8, &[u8]); 16] = [
    (0xf0, b"0123456789"),
    (0xc1, b"ABCDEFGHI"),
    (0xd1, b"JKLMNOPQR"),
    (0xe2, b"STUVWXYZ"),
    (0x81, b"abcdefghi"),
    (0x91, b"jklmnopqr"),
    (0xa2, b"stuvwxyz"),
    (0x40, b" "),
    (0x4a, b"[.<(+!"),
    (0x50, b"&"),
    (0x5a, b"]$*);^"),
    (0x60, b"-/"),
    (0x6b, b",%_>?"),
    (0x7a, b":#@'=\""),
    (0xbb, b"|"),
    (0x79, b"`"),
];

fn ebcdic(character: u8) -> u8 {
    for (first, run) in EBCDIC {
        if let Some(at) = run.iter().position(|other| *other == character) {
            return first + u8::try_from(at).unwrap();
        }
    }
    panic!("{character:?} is no character of this table");
}

//! The rows of `fixtures/messages.csv`, and what is expected to be shown of them: masked here anew,
//! so that a fault in the masking of tollgate cannot hide behind itself.

use std::collections::BTreeMap;

use crate::support::csv::columns;

const MESSAGES: &str = include_str!("../../fixtures/messages.csv");

/// The fields whose values may be shown.
pub(crate) const SHOWN: [u8; 13] = [3, 4, 7, 11, 12, 18, 32, 37, 39, 41, 42, 49, 70];

pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) dialect: String,
    pub(crate) framing: &'static str,
    pub(crate) header: &'static str,
    pub(crate) hex: String,
    pub(crate) expected: Expected,
    pub(crate) note: String,
}

pub(crate) enum Expected {
    Keepalive,
    Message { reject: Option<String>, bitmap: String, mti: String, fields: BTreeMap<u8, String> },
}

/// All rows; every one is here.
pub(crate) fn rows() -> Vec<Row> {
    let mut lines = MESSAGES.lines();
    assert_eq!(lines.next(), Some("id,dialect,framing,hex,expected,source,note"));
    let rows: Vec<Row> = lines.map(|line| row(&columns(line))).collect();
    assert_eq!(rows.len(), 58);
    rows
}

fn row(columns: &[String]) -> Row {
    let [id, dialect, framing, hex, expected, _source, note] = columns else {
        panic!("not seven columns: {columns:?}");
    };
    let (framing, header) = options(framing);
    Row {
        id: id.clone(),
        dialect: dialect.clone(),
        framing,
        header,
        hex: hex.clone(),
        expected: expectation(expected),
        note: note.clone(),
    }
}

/// The table's words for framing and header in tollgate's.
fn options(framing: &str) -> (&'static str, &'static str) {
    match framing {
        "none" => ("none", "none"),
        "be16" => ("be16", "none"),
        "be16+tpdu5" => ("be16", "tpdu"),
        "be16+tpdu5+hdr6" => ("be16", "tpdu+6"),
        "be16+base24:ISO+9" => ("be16", "base24"),
        "be16_incl" => ("be16_incl", "none"),
        "be16_incl+tpdu5" => ("be16_incl", "tpdu"),
        "be16+etx" => ("be16_etx", "none"),
        "be24" => ("be24", "none"),
        "be32" => ("be32", "none"),
        "vmlh4" => ("vmlh4", "none"),
        "vmlh4+visa22" | "vmlh4+visa26reject+visa22" => ("vmlh4", "visa"),
        "gicc4" => ("gicc4", "none"),
        "ascii4" => ("ascii4", "none"),
        "ascii6" => ("ascii:6", "none"),
        "bcd2" => ("bcd2", "none"),
        "bcd2+tpdu5" => ("bcd2", "tpdu"),
        "hex4" => ("hex4", "none"),
        "rbp6" => ("rbp6", "none"),
        "etx" => ("etx", "none"),
        "base24:ISO+9" => ("none", "base24"),
        "header:9(EBCDIC 1ROUTENET)" => ("none", "fixed:9"),
        other => panic!("{other}"),
    }
}

fn expectation(expected: &str) -> Expected {
    if expected == "KEEPALIVE" {
        return Expected::Keepalive;
    }
    let (mut reject, mut bitmap, mut fields) = (None, None, BTreeMap::new());
    for pair in expected.split(';') {
        let (name, value) = pair.split_once('=').expect(pair);
        match name {
            "REJECT" => reject = Some(value.to_owned()),
            "BITMAP" => bitmap = Some(value.to_owned()),
            _ => {
                let de: u8 = name.strip_prefix("DE").expect(name).parse().unwrap();
                fields.insert(de, value.to_owned());
            }
        }
    }
    let mti = fields.remove(&0).expect("an MTI");
    Expected::Message { reject, bitmap: bitmap.expect("a bitmap"), mti, fields }
}

impl Row {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        from_hex(&self.hex)
    }

    /// The values of its fields; none of a keepalive.
    pub(crate) fn fields(&self) -> BTreeMap<u8, String> {
        match &self.expected {
            Expected::Keepalive => BTreeMap::new(),
            Expected::Message { fields, .. } => fields.clone(),
        }
    }

    pub(crate) fn is_message(&self) -> bool {
        matches!(self.expected, Expected::Message { .. })
    }

    /// The lines by which its sender differs from the preset that it is filed under.
    pub(crate) fn changes(&self) -> Vec<&'static str> {
        [
            ("override DE1:", "1,b,fixed,none,hex_ascii,16,bytes,none,both bitmaps always"),
            ("override DE55:", "55,b,LLL,ascii,bin,999,bytes,none,ICC data"),
            ("override DE2:", "2,n,LL,bin,bcd,19,digits,left0,card number"),
            ("override DE63 b", "63,b,LLL,bcd,bin,999,bytes,none,private"),
            ("override DE62,DE63", "63,b,LLL,bcd,bin,999,bytes,none,private"),
            ("override DE62,DE63", "62,b,LLL,bcd,bin,999,bytes,none,private"),
            ("DE127 has a 6-digit", "127,b,LLLLLL,ascii,bin,999999,bytes,none,nested message"),
        ]
        .into_iter()
        .filter_map(|(mark, line)| self.note.contains(mark).then_some(line))
        .collect()
    }
}

/// What is shown of a value, and whether something of it is left out.
pub(crate) fn masked(de: u8, value: &str) -> (Option<String>, bool) {
    if de == 2 {
        return (Some(stars(value)), true);
    }
    if !SHOWN.contains(&de) {
        return (None, true);
    }
    let mut shown = String::new();
    let mut rest = value;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits >= 13 {
            shown.push_str(&stars(&rest[..digits]));
        } else {
            shown.push_str(&rest[..digits]);
        }
        rest = &rest[digits..];
        let others = rest.bytes().take_while(|byte| !byte.is_ascii_digit()).count();
        shown.push_str(&rest[..others]);
        rest = &rest[others..];
    }
    let masked = shown != value;
    (Some(shown), masked)
}

/// First six and last four of 13 digits and more.
fn stars(digits: &str) -> String {
    assert!(digits.len() >= 13, "no card number");
    let hidden = digits.len() - 10;
    format!("{}{}{}", &digits[..6], "*".repeat(hidden), &digits[6 + hidden..])
}

pub(crate) fn from_hex(hex: &str) -> Vec<u8> {
    let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16));
    bytes.collect::<Result<_, _>>().expect("hexadecimal digits")
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

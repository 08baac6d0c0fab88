//! The rows of `fixtures/messages.csv`, and what is expected to be shown of them: masked here anew,
//! so that a fault in the masking of tollgate cannot hide behind itself.

use std::collections::BTreeMap;

use crate::support::fixtures::{Line, lines};

/// The fields whose values may be shown.
pub(crate) const SHOWN: [u8; 13] = [3, 4, 7, 11, 12, 18, 32, 37, 39, 41, 42, 49, 70];

pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) dialect: String,
    /// As the command line calls it.
    pub(crate) framing: &'static str,
    pub(crate) header: &'static str,
    pub(crate) hex: String,
    pub(crate) bytes: usize,
    pub(crate) expected: Expected,
    /// `[dialect.NAME]` of a row that no preset reads, or nothing.
    pub(crate) own_dialect: String,
}

pub(crate) enum Expected {
    Keepalive,
    Message { reject: Option<String>, bitmap: String, mti: String, fields: BTreeMap<u8, String> },
}

/// All rows; every one is here.
pub(crate) fn rows() -> Vec<Row> {
    let rows: Vec<Row> = lines().into_iter().map(row).collect();
    assert_eq!(rows.len(), 58);
    rows
}

fn row(line: Line) -> Row {
    let (id, recorded) = (line.id().to_owned(), line.recorded());
    let framing = recorded.framing.unwrap_or("none");
    let (header, hex, bytes) = (recorded.header, recorded.hex.clone(), recorded.bytes.len());
    let (dialect, expected, own_dialect) = match line {
        Line::Keepalive { .. } => ("iso87_ascii".to_owned(), Expected::Keepalive, String::new()),
        Line::Message(message) => {
            let own_dialect = message.own_dialect(&name_of(&id));
            let (reject, bitmap, mut fields) = (message.reject, message.bitmap, message.expected);
            let mti = fields.remove(&0).expect("an MTI");
            let expected = Expected::Message { reject, bitmap, mti, fields };
            (message.dialect, expected, own_dialect)
        }
    };
    Row { id, dialect, framing, header, hex, bytes, expected, own_dialect }
}

/// What the dialect of a row's own is called in the configuration.
fn name_of(id: &str) -> String {
    id.replace('-', "_")
}

impl Row {
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

    /// The name of the dialect that reads it.
    pub(crate) fn reading_dialect(&self) -> String {
        if self.is_of_preset() { self.dialect.clone() } else { name_of(&self.id) }
    }

    /// Whether its preset reads it as it is.
    pub(crate) fn is_of_preset(&self) -> bool {
        self.own_dialect.is_empty()
    }
}

/// A configuration with a dialect for every row that no preset reads.
pub(crate) fn config_of(rows: &[Row]) -> String {
    let mut config = String::from(
        "[[link]]\nname = \"a\"\nlisten = \"127.0.0.1:0\"\ndialect = \"iso87_ascii\"\n\
         framing = \"be16\"\n[[upstream]]\nname = \"host\"\nconnect = \"127.0.0.1:9\"\n",
    );
    rows.iter().for_each(|row| config += &row.own_dialect);
    config
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

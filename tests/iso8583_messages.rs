//! Real messages from public sources walk to their exact end and hold what their sources say.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test states its expectations"
)]

#[path = "support/csv.rs"]
mod csv;

use csv::columns;
use tollgate::iso8583::{Dialect, Spans, View};

const MESSAGES: &str = include_str!("../fixtures/messages.csv");

/// Longer than any field of the fixtures.
const TEXT_MAX: usize = 2_000;

struct Row {
    id: String,
    dialect: String,
    body: Vec<u8>,
    expected: Vec<(u8, String)>,
    note: String,
}

/// The messages of which tollgate knows the framing and header; keepalives are none.
fn rows() -> Vec<Row> {
    let mut lines = MESSAGES.lines();
    assert_eq!(lines.next(), Some("id,dialect,framing,hex,expected,source,note"));
    lines.filter_map(|line| row(&columns(line))).collect()
}

fn row(columns: &[String]) -> Option<Row> {
    let [id, dialect, framing, hex, expected, _source, note] = columns else {
        panic!("not seven columns: {columns:?}");
    };
    let before_mti = match framing.as_str() {
        "none" => 0,
        "be16" | "be16_incl" => 2,
        "header:9(EBCDIC 1ROUTENET)" => 9,
        "be16+tpdu5+hdr6" => 13,
        "vmlh4+visa22" => 26,
        _ => return None,
    };
    let expected: Vec<_> = expected
        .split(';')
        .filter_map(|pair| pair.split_once('='))
        .filter_map(|(name, value)| Some((name.strip_prefix("DE")?.parse().ok()?, value.into())))
        .collect();
    if expected.is_empty() {
        return None;
    }
    let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16));
    let frame: Vec<u8> = bytes.collect::<Result<_, _>>().expect("hexadecimal digits");
    Some(Row {
        id: id.clone(),
        dialect: dialect.clone(),
        body: frame[before_mti..].to_vec(),
        expected,
        note: note.clone(),
    })
}

fn check(row: &Row, dialect: &Dialect) {
    let mut spans = Spans::default();
    let view = View::parse(dialect, &row.body, &mut spans).expect("an MTI");
    assert_eq!(view.fault(), None, "{}", row.id);
    let (mti, fields) = row.expected.split_first().unwrap();
    assert_eq!(mti, &(0, view.mti().to_string()), "{}", row.id);
    let numbers: Vec<u8> = fields.iter().map(|(de, _)| *de).collect();
    assert_eq!(view.fields().iter().collect::<Vec<_>>(), numbers, "{}", row.id);
    let mut end = row.body.len();
    for (de, value) in fields.iter().rev() {
        let text = view.text::<TEXT_MAX>(*de).unwrap();
        let text = String::from_utf8_lossy(text.as_bytes());
        assert_eq!(&text, value, "field {de} of {}", row.id);
        let whole = view.whole(*de).unwrap();
        assert!(row.body[..end].ends_with(whole), "field {de} of {} ends elsewhere", row.id);
        assert!(whole.ends_with(view.raw(*de).unwrap()));
        end -= whole.len();
    }
}

#[test]
fn messages_of_the_presets_walk_to_their_exact_end() {
    let mut checked = 0;
    for row in rows() {
        if let Some(dialect) = Dialect::preset(&row.dialect)
            && changes(&row.note).is_empty()
        {
            check(&row, &dialect);
            checked += 1;
        }
    }
    assert!(checked >= 24, "only {checked} messages checked");
}

/// Peers that send both words of the bitmap whatever its first bit says, chip data as bytes, or
/// lengths of another kind.
#[test]
fn messages_of_a_preset_with_some_lines_changed_walk_to_their_exact_end() {
    let mut checked = 0;
    for row in rows() {
        let changes = changes(&row.note);
        if changes.is_empty() {
            continue;
        }
        let preset = format!("src/iso8583/presets/{}.csv", row.dialect);
        let preset = std::fs::read_to_string(preset).expect("the preset's table");
        let field = |line: &str| line.split(',').next().unwrap().to_owned();
        let changed = preset.lines().map(|line| {
            changes.iter().find(|change| field(change) == field(line)).copied().unwrap_or(line)
        });
        let table: Vec<&str> = changed.collect();
        check(&row, &Dialect::from_table(&table.join("\n")).unwrap());
        checked += 1;
    }
    assert!(checked >= 10, "only {checked} messages checked");
}

/// The lines by which a message's sender differs from the dialect that it is filed under.
fn changes(note: &str) -> Vec<&'static str> {
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
    .filter_map(|(mark, line)| note.contains(mark).then_some(line))
    .collect()
}

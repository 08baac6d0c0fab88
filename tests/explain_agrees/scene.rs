//! Configurations and messages of all kinds, from a seed.

use std::fmt::Write;

use fastrand::Rng;

use crate::encoder::{Fields, Table};
use crate::header::{Header, rejected};

/// A link as it is written in the configuration.
pub(crate) struct LinkText {
    pub(crate) dialect: &'static str,
    pub(crate) header: Header,
    table: Table,
}

impl LinkText {
    fn new(dialect: &'static str, header: Header) -> Self {
        Self { dialect, header, table: Table::read(&crate::fixtures::preset(dialect)) }
    }
}

pub(crate) struct Scene {
    pub(crate) config: String,
    pub(crate) links: Vec<LinkText>,
}

const DIALECTS: [&str; 9] = [
    "iso87_ascii",
    "iso87_ascii",
    "iso87_ascii_binbitmap",
    "iso87_bcd",
    "iso93_ascii",
    "iso93_ebcdic",
    "mastercard_like_ebcdic",
    "visa_like_base1",
    "cup_pos_bcd",
];
/// `ascii:2` cannot hold most answers, `etx` none with a byte of 3 in it.
const FRAMINGS: [&str; 6] = ["be16", "be16", "be32_incl", "ascii4", "ascii:2", "etx"];
const CODES: [&str; 5] = ["91", "96", "61", "68", "N0"];
const OPERATIONS: [&str; 5] = ["purchase", "refund", "inquiry", "payment", "other"];
const DIMENSIONS: [&str; 6] = ["terminal", "merchant", "bin", "mcc", "operation", "link"];
const PANS: [&str; 5] =
    ["4111111111111111", "4111119999999999999", "5555555555554444", "30569309025904", "1234567"];
const PROCESSING_CODES: [&str; 6] = ["000000", "200000", "310000", "280000", "990000", "500000"];
const MCCS: [&str; 3] = ["5411", "5999", "0000"];
const ACQUIRERS: [&str; 2] = ["123456", "654321"];
const TERMINALS: [&str; 2] = ["TERM0001", "TERM0002"];
const MERCHANTS: [&str; 2] = ["MERCHANT0000001", "MERCHANT0000002"];

pub(crate) fn one_of<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

fn quoted<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| format!("\"{value}\"")).collect();
    values.join(", ")
}

fn some_of<'a>(rng: &mut Rng, of: &[&'a str]) -> Vec<&'a str> {
    of.iter().copied().filter(|_| rng.u8(..3) == 0).collect()
}

/// At least one of them.
fn few_of(rng: &mut Rng, of: &[&str]) -> String {
    let mut few = some_of(rng, of);
    if few.is_empty() {
        few.push(one_of(rng, of));
    }
    quoted(few)
}

impl Scene {
    pub(crate) fn of(rng: &mut Rng) -> Self {
        let links: Vec<LinkText> = (0..rng.usize(1..=3))
            .map(|_| LinkText::new(one_of(rng, &DIALECTS), one_of(rng, &Header::ALL)))
            .collect();
        let mut config = String::new();
        if rng.bool() {
            config += "[classes]\n";
            for operation in some_of(rng, &OPERATIONS) {
                let class = one_of(rng, &["critical", "standard", "sheddable"]);
                let _ = writeln!(config, "{operation} = \"{class}\"");
            }
        }
        for (at, link) in links.iter().enumerate() {
            config += &link_text(rng, at, link);
        }
        config += "[[upstream]]\nname = \"host\"\nconnect = \"127.0.0.1:9\"\n";
        for at in 0..rng.usize(1..=5) {
            config += &limit_text(rng, at, links.len());
        }
        Self { config, links }
    }

    /// A frame for one of the links; a few are cut, damaged, too long, or come back rejected.
    pub(crate) fn message(&self, rng: &mut Rng, link: usize, stan: u32) -> Vec<u8> {
        let link = &self.links[link];
        let mut frame = link.header.before(&body(rng, &link.table, stan));
        match rng.u8(..14) {
            0 => frame.truncate(rng.usize(..=frame.len())),
            1 => {
                let at = rng.usize(..frame.len());
                frame[at] = rng.u8(..);
            }
            2 => frame.extend([0x31; 3]),
            3 if link.header == Header::Visa => frame = rejected(&frame),
            _ => {}
        }
        frame
    }
}

fn link_text(rng: &mut Rng, at: usize, link: &LinkText) -> String {
    let malformed = one_of(rng, &["forward", "forward", "answer", "close"]);
    let local_answers = one_of(rng, &["unless-mac", "unless-mac", "always", "never"]);
    let (framing, dialect, header) = (one_of(rng, &FRAMINGS), link.dialect, link.header.name());
    let mut text = format!(
        "[[link]]\nname = \"link-{at}\"\nlisten = \"127.0.0.1:0\"\ndialect = \"{dialect}\"\n\
         framing = \"{framing}\"\nheader = \"{header}\"\nmalformed = \"{malformed}\"\n\
         local_answers = \"{local_answers}\"\n[link.codes]\nlimit = \"{}\"\nformat = \"{}\"\n",
        one_of(rng, &CODES),
        one_of(rng, &CODES),
    );
    if rng.bool() {
        let _ = writeln!(
            text,
            "[link.operations]\n28 = \"{}\"\n99 = \"{}\"",
            one_of(rng, &OPERATIONS),
            one_of(rng, &OPERATIONS)
        );
    }
    text
}

fn limit_text(rng: &mut Rng, at: usize, links: usize) -> String {
    let per = some_of(rng, &DIMENSIONS);
    let mode = one_of(rng, &["enforce", "enforce", "enforce", "shadow", "off"]);
    let burst = rng.u8(1..6);
    let mut text = format!(
        "[[limit]]\nname = \"limit-{at}\"\nper = [{}]\nrate = 0.5\nburst = {burst}\n\
         mode = \"{mode}\"\n",
        quoted(per.iter().copied())
    );
    if per.contains(&"bin") {
        let _ = writeln!(text, "bin_digits = {}", rng.u8(6..=8));
    }
    if !per.is_empty() {
        // Keys without a bucket of their own share one.
        let _ = writeln!(text, "keys_max = {}", one_of(rng, &[1, 2, 1_000]));
    }
    text += &beside(rng, 0.4);
    if rng.bool() {
        let (standard, sheddable) = (rng.u8(..=4), rng.u8(..=4));
        let parts = [standard, sheddable].map(|quarters| f64::from(quarters) / 4.0);
        let [standard, sheddable] = parts;
        let _ = writeln!(
            text,
            "reserve = {{ standard = {standard}, sheddable = {sheddable} }}\nhold = \"burst\""
        );
    }
    if rng.u8(..3) == 0 {
        text += "[limit.when]\n";
        let names: Vec<String> = (0..links).map(|link| format!("link-{link}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let classes = ["protected", "critical", "standard", "sheddable"];
        let filters: [(&str, &[&str]); 4] = [
            ("link", &names),
            ("class", &classes),
            ("operation", &OPERATIONS),
            ("mcc", &["5411", "5000-5999", "0000-4999"]),
        ];
        for (filter, values) in filters {
            if rng.bool() {
                let _ = writeln!(text, "{filter} = [{}]", few_of(rng, values));
            }
        }
    }
    if !per.is_empty() && rng.bool() {
        text += &key_text(rng, &per);
    }
    text
}

/// A peak, a floor that is below the rate, both or neither.
fn beside(rng: &mut Rng, rate: f64) -> String {
    let mut text = String::new();
    if rng.u8(..3) == 0 {
        let _ = writeln!(text, "peak = {{ rate = 1, burst = {} }}", rng.u8(1..5));
    }
    if rng.u8(..4) == 0 {
        let _ = writeln!(text, "floor = {{ rate = {rate}, burst = {} }}", rng.u8(1..4));
    }
    text
}

fn key_text(rng: &mut Rng, per: &[&str]) -> String {
    let mut named = some_of(rng, per);
    if named.is_empty() {
        named.push(one_of(rng, per));
    }
    let mut text = format!("[[limit.key]]\nrate = 1\nburst = {}\n", rng.u8(1..9));
    if named.contains(&"merchant") || named.contains(&"terminal") {
        let _ = writeln!(text, "acquirer = \"{}\"", one_of(rng, &ACQUIRERS));
    }
    for dimension in named {
        let value = match dimension {
            "terminal" => one_of(rng, &TERMINALS),
            "merchant" => one_of(rng, &MERCHANTS),
            "bin" => one_of(rng, &["4", "411111", "400000-499999", "55555555"]),
            "mcc" => one_of(rng, &MCCS),
            "operation" => one_of(rng, &OPERATIONS),
            _ => "link-0",
        };
        let _ = writeln!(text, "{dimension} = \"{value}\"");
    }
    text + &beside(rng, 0.9)
}

/// A message of some type, with a card or without, with a MAC or without.
fn body(rng: &mut Rng, table: &Table, stan: u32) -> Vec<u8> {
    const MTIS: [&str; 22] = [
        "0100", "0100", "0100", "0100", "0200", "0200", "0200", "1100", "1200", "2100", "0101",
        "0120", "0121", "0220", "0400", "0420", "1420", "0800", "0302", "0110", "0600", "3100",
    ];
    let mti = one_of(rng, &MTIS).to_owned();
    let known = table.fields();
    let stan = format!("{stan:06}");
    let values: [(u8, &str); 18] = [
        (2, one_of(rng, &PANS)),
        (3, one_of(rng, &PROCESSING_CODES)),
        (4, "000000012345"),
        (7, "0604123456"),
        (11, &stan),
        (12, "123456"),
        (13, "0604"),
        (18, one_of(rng, &MCCS)),
        (22, "051"),
        (25, "00"),
        (26, one_of(rng, &MCCS)),
        (32, one_of(rng, &ACQUIRERS)),
        (35, "4111111111111111=2912"),
        (37, "060456123456"),
        (41, one_of(rng, &TERMINALS)),
        (42, one_of(rng, &MERCHANTS)),
        (49, "826"),
        (70, "301"),
    ];
    let mut fields = Fields::from([(0, mti)]);
    for (de, value) in values {
        // Now and then one is missing; most have either a card number or a track.
        let left_out = if de == 35 { rng.u8(..4) > 0 } else { rng.u8(..10) == 0 };
        if left_out || !known.contains(&de) {
            continue;
        }
        let row = table.field(de);
        let width = if row.is_fixed() { row.units_max() } else { value.len() };
        let value = if de == 26 && width < value.len() { &value[..width] } else { value };
        fields.insert(de, format!("{value:0>width$}"));
    }
    for mac in [64, 128] {
        if known.contains(&mac) && rng.u8(..8) == 0 {
            let row = table.field(mac);
            fields.insert(mac, row.value(row.units_max(), rng));
        }
    }
    table.encode(&fields)
}

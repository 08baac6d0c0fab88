//! Every real message of the fixtures goes through the running proxy byte for byte, in the framing,
//! under the header and in the dialect that it was recorded in, and is understood on its way.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "a test states its expectations"
)]

#[path = "support/fixtures.rs"]
mod fixtures;
mod support;

use fixtures::Line;
use support::config;
use support::csv;
use support::host::Host;
use support::peer::{Framing, Peer};
use support::proxy::Proxy;

/// Lines of the file: a line more has to be found here too.
const LINES: usize = 58;
const KEEPALIVES: usize = 5;
/// Messages that answer another.
const ANSWERS: usize = 5;
/// Links of one proxy: a good number of rows at once, and fewer than it takes.
const LINKS: usize = 32;

/// Recorded without a length: any framing will do.
const WITHOUT_LENGTH: [&str; 3] = ["none", "header:9(EBCDIC 1ROUTENET)", "base24:ISO+9"];

/// How a row of the fixtures is carried: framing and header by the words of the configuration.
fn carriage(recorded: &str) -> (&'static str, &'static str) {
    match recorded {
        "none" | "be16" => ("be16", "none"),
        "header:9(EBCDIC 1ROUTENET)" => ("be16", "fixed:9"),
        "base24:ISO+9" | "be16+base24:ISO+9" => ("be16", "base24"),
        "be16_incl" => ("be16_incl", "none"),
        "be16_incl+tpdu5" => ("be16_incl", "tpdu"),
        "be16+tpdu5" => ("be16", "tpdu"),
        "be16+tpdu5+hdr6" => ("be16", "tpdu+6"),
        "be16+etx" => ("be16_etx", "none"),
        "be24" => ("be24", "none"),
        "be32" => ("be32", "none"),
        "vmlh4" => ("vmlh4", "none"),
        "vmlh4+visa22" | "vmlh4+visa26reject+visa22" => ("vmlh4", "visa"),
        "gicc4" => ("gicc4", "none"),
        "rbp6" => ("rbp6", "none"),
        "ascii4" => ("ascii4", "none"),
        "ascii6" => ("ascii:6", "none"),
        "bcd2" => ("bcd2", "none"),
        "bcd2+tpdu5" => ("bcd2", "tpdu"),
        "hex4" => ("hex4", "none"),
        "etx" => ("etx", "none"),
        other => panic!("{other} is not known here"),
    }
}

/// A row of the fixtures as its sender wrote it.
struct Row {
    id: String,
    framing: Framing,
    header: &'static str,
    dialect: String,
    /// `[dialect.NAME]` for the lines in which its sender differs from the preset.
    own_dialect: String,
    /// The frame with its length.
    bytes: Vec<u8>,
    /// The frame without it.
    frame: Vec<u8>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Keepalive,
    Rejected,
    Message,
}

impl Row {
    fn link(&self) -> String {
        self.id.replace('_', "-")
    }
}

/// Every line of the file, cut out of the length that it was recorded with.
fn rows() -> Vec<Row> {
    let text = include_str!("../fixtures/messages.csv");
    let recorded = text.lines().skip(1).map(csv::columns);
    let rows: Vec<Row> =
        recorded.zip(fixtures::lines()).map(|(row, line)| read(&row, &line)).collect();
    assert_eq!(rows.len(), LINES, "lines of the file");
    let keepalives = rows.iter().filter(|row| row.kind == Kind::Keepalive).count();
    assert_eq!(keepalives, KEEPALIVES);
    rows
}

fn read(columns: &[String], line: &Line) -> Row {
    let [id, preset, recorded, hex, expected, ..] = columns else { panic!("{columns:?}") };
    let (framing, header) = carriage(recorded);
    let framing = Framing::from_name(framing);
    let kind = match expected.as_str() {
        "KEEPALIVE" => Kind::Keepalive,
        expected if expected.starts_with("REJECT") => Kind::Rejected,
        _ => Kind::Message,
    };
    let pairs = (0..hex.len()).step_by(2);
    let bytes: Vec<u8> =
        pairs.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("digits")).collect();
    let bare = WITHOUT_LENGTH.contains(&recorded.as_str());
    let (frame, bytes) = match kind {
        Kind::Keepalive => (Vec::new(), bytes),
        _ if bare => (bytes.clone(), framing.wrap(&bytes)),
        _ => (framing.unwrap(&bytes).expect("one frame").0, bytes),
    };
    let overrides = match line {
        Line::Message(message) => own_lines(preset, &message.table),
        Line::Keepalive => Vec::new(),
    };
    let dialect = match (overrides.is_empty(), preset.as_str()) {
        (true, "(none)") => "iso87_ascii".to_owned(),
        (true, preset) => preset.to_owned(),
        (false, _) => format!("of-{id}"),
    };
    let own_dialect = match overrides.is_empty() {
        true => String::new(),
        false => own_dialect(&dialect, preset, &overrides),
    };
    Row { id: id.clone(), framing, header, dialect, own_dialect, bytes, frame, kind }
}

/// The lines of a table that the preset has otherwise.
fn own_lines(preset: &str, table: &str) -> Vec<String> {
    let original = fixtures::preset(preset);
    let lines = table.lines().zip(original.lines());
    lines.filter(|(own, preset)| own != preset).map(|(own, _)| own.to_owned()).collect()
}

/// The same lines in the words of the configuration.
fn own_dialect(name: &str, base: &str, lines: &[String]) -> String {
    let mut text = format!("[dialect.{name}]\nbase = \"{base}\"\n");
    for line in lines {
        let words: Vec<&str> = line.split(',').collect();
        let [de, content, length, length_encoding, encoding, max, unit, pad, _] = words[..] else {
            panic!("{line}");
        };
        text += &match de {
            "1" => {
                let always = length == "fixed";
                format!(
                    "[dialect.{name}.bitmap]\nencoding = \"{encoding}\"\nbytes = {max}\n\
                     always = {always}\n"
                )
            }
            _ => {
                let max = max.parse::<u32>().unwrap().min(65_535);
                format!(
                    "[dialect.{name}.field.{de}]\ncontent = \"{content}\"\nlength = \"{length}\"\n\
                     length_encoding = \"{length_encoding}\"\nencoding = \"{encoding}\"\n\
                     max = {max}\nunit = \"{unit}\"\npad = \"{pad}\"\n"
                )
            }
        };
    }
    text
}

/// A proxy with a link for each row.
struct Way {
    proxy: Proxy,
    ends: Vec<(Peer, Peer)>,
}

impl Way {
    fn open(rows: &[Row]) -> Self {
        let hosts: Vec<Host> = rows.iter().map(|row| Host::listen(row.framing)).collect();
        let links = rows.iter().zip(&hosts).map(|(row, host)| {
            let link_keys =
                format!("deadline = \"50s\"\nframe_timeout = \"60s\"\nheader = \"{}\"", row.header);
            config::link(&row.link(), host.address(), &link_keys, "connections = 1")
                .replace(r#"dialect = "iso87_ascii""#, &format!("dialect = \"{}\"", row.dialect))
                .replace(r#"framing = "be16""#, &format!("framing = \"{}\"", row.framing.name()))
        });
        let links: String = links.collect();
        let dialects: String = rows.iter().map(|row| row.own_dialect.as_str()).collect();
        let proxy = Proxy::start(&format!("{}{links}{dialects}", config::node("0s")));
        let ends = rows.iter().zip(&hosts).map(|(row, host)| {
            let (link, at_host) = (row.link(), host.accept());
            let labels = format!(r#"link="{link}",upstream="{link}-host""#);
            proxy.wait_for_metric(&format!("tollgate_upstream_up{{{labels}}}"), 1.0);
            let terminal = proxy.connect(&link, row.framing);
            proxy.wait_for_metric(&format!(r#"tollgate_link_sockets{{link="{link}"}}"#), 1.0);
            (terminal, at_host)
        });
        let ends = ends.collect();
        Self { proxy, ends }
    }
}

/// The frame with this byte of its MTI, the one that holds the function, changed round: what answers
/// it, or what it answers.
fn counterpart(row: &Row) -> Vec<u8> {
    let mut frame = row.frame.clone();
    let (place, bit) = mti_function(row);
    frame[place] ^= bit;
    frame
}

fn is_answer(row: &Row) -> bool {
    let (place, bit) = mti_function(row);
    row.frame[place] & bit != 0
}

/// Where the lowest bit of the third digit of the MTI lies.
fn mti_function(row: &Row) -> (usize, u8) {
    let before = match row.header {
        "none" => 0,
        "tpdu" => 5,
        "fixed:9" => 9,
        "tpdu+6" => 11,
        "base24" => 12,
        "visa" => 22,
        other => panic!("{other}"),
    };
    let table = fixtures::preset(base_of(row));
    let mti = table.lines().nth(1).unwrap();
    if mti.contains(",bcd,") { (before + 1, 0x10) } else { (before + 2, 1) }
}

fn base_of(row: &Row) -> &str {
    match row.own_dialect.split("base = \"").nth(1) {
        Some(rest) => rest.split('"').next().unwrap(),
        None => &row.dialect,
    }
}

#[test]
fn every_real_message_goes_through_in_its_own_framing_header_and_dialect() {
    let rows = rows();
    let mut through = [0; 3];
    for rows in rows.chunks(LINKS) {
        let mut way = Way::open(rows);
        for (row, (terminal, at_host)) in rows.iter().zip(&mut way.ends) {
            let id = &row.id;
            terminal.send_raw(&row.bytes);
            match row.kind {
                Kind::Keepalive => {
                    // What comes behind it is the first that the host sees.
                    let link = row.link();
                    let series =
                        format!(r#"tollgate_keepalives_total{{link="{link}",from="network"}}"#);
                    way.proxy.wait_for_metric(&series, 1.0);
                    at_host.expect_nothing_yet();
                }
                Kind::Rejected => {
                    assert!(at_host.receive() == row.frame, "{id} arrived changed");
                    let link = row.link();
                    let series = format!(
                        r#"tollgate_rejected_messages_total{{link="{link}",from="network"}}"#
                    );
                    way.proxy.wait_for_metric(&series, 1.0);
                }
                // An answer to nothing goes to the host as well.
                Kind::Message => {
                    assert!(at_host.receive() == row.frame, "{id} arrived changed");
                    if !is_answer(row) {
                        let answer = counterpart(row);
                        at_host.send(&answer);
                        assert!(terminal.receive() == answer, "the answer of {id} came changed");
                    }
                }
            }
            through[row.kind as usize] += 1;
        }
        // Each was understood to its end, and nothing was answered here.
        for metric in [
            "tollgate_parse_errors_total",
            "tollgate_rejects_total",
            "tollgate_deadline_answers_total",
            "tollgate_stray_messages_total",
            "tollgate_unsent_total",
        ] {
            assert_eq!(way.proxy.metric_sum(metric, &[]), 0.0, "{metric}");
        }
    }
    assert_eq!(through, [KEEPALIVES, 1, LINES - KEEPALIVES - 1]);
}

#[test]
fn every_real_answer_reaches_who_asked_as_the_host_sent_it() {
    let rows = rows();
    let mut through = 0;
    for rows in rows.chunks(LINKS) {
        let mut way = Way::open(rows);
        for (row, (terminal, at_host)) in rows.iter().zip(&mut way.ends) {
            if row.kind == Kind::Message && is_answer(row) {
                let (id, request) = (&row.id, counterpart(row));
                terminal.send(&request);
                assert!(at_host.receive() == request, "the request of {id} arrived changed");
                at_host.send(&row.frame);
                assert!(terminal.receive() == row.frame, "{id} came changed");
                through += 1;
            }
        }
    }
    assert_eq!(through, ANSWERS);
}

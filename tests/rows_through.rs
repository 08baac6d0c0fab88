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

mod support;

use support::config;
use support::fixtures::{self, Line};
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

/// A row of the fixtures as its sender wrote it.
struct Row {
    id: String,
    framing: Framing,
    header: &'static str,
    /// The preset that it is filed under.
    preset: String,
    /// The preset, or its sender's own dialect.
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

/// Every line of the file.
fn rows() -> Vec<Row> {
    let rows: Vec<Row> = fixtures::lines().iter().map(row).collect();
    assert_eq!(rows.len(), LINES, "lines of the file");
    let keepalives = rows.iter().filter(|row| row.kind == Kind::Keepalive).count();
    assert_eq!(keepalives, KEEPALIVES);
    rows
}

fn row(line: &Line) -> Row {
    let (id, recorded) = (line.id().to_owned(), line.recorded());
    // Any framing will do for what was recorded without a length.
    let framing = Framing::from_name(recorded.framing.unwrap_or("be16"));
    let bytes = match recorded.framing {
        Some(_) => recorded.bytes.clone(),
        None => framing.wrap(&recorded.frame),
    };
    let (preset, own_dialect, kind) = match line {
        Line::Keepalive { .. } => ("iso87_ascii", String::new(), Kind::Keepalive),
        Line::Message(message) => {
            let kind = if message.reject.is_some() { Kind::Rejected } else { Kind::Message };
            (message.dialect.as_str(), message.own_dialect(&format!("of-{id}")), kind)
        }
    };
    let own = !own_dialect.is_empty();
    Row {
        dialect: if own { format!("of-{id}") } else { preset.to_owned() },
        preset: preset.to_owned(),
        own_dialect,
        framing,
        header: recorded.header,
        bytes,
        frame: recorded.frame.clone(),
        kind,
        id,
    }
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
    let table = fixtures::preset(&row.preset);
    let mti = table.lines().nth(1).unwrap();
    if mti.contains(",bcd,") { (before + 1, 0x10) } else { (before + 2, 1) }
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

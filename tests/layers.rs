//! The sources obey section 3 of the design: who may import whom, where sockets, clocks, logs and
//! randomness may appear, and how long a file and a function may be. Every rule is also shown
//! sources that break it, so that a rule that has gone blind fails here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test states its expectations"
)]

#[path = "layers/source.rs"]
mod source;

use std::collections::BTreeSet;
use std::path::Path;

use source::Source;

/// The rows of the design. A module imports from rows above its own.
const ROWS: [&[&str]; 9] = [
    &["clock", "count", "pan", "traffic", "reason"],
    &["wire", "iso8583", "limits"],
    &["gate", "quota"],
    &["exchange"],
    &["net"],
    &["worker", "peers"],
    &["metrics", "admin"],
    &["config"],
    &["server", "cli", "main", "probe"],
];

/// Who may import from its own row: a card number gives its BIN, /metrics is a page of admin, and
/// the last row is put together from itself.
const WITHIN_A_ROW: [(&str, &[&str]); 5] = [
    ("pan", &["traffic"]),
    ("admin", &["metrics"]),
    ("server", &["cli"]),
    ("cli", &["server"]),
    ("main", &["cli"]),
];

/// Who may know even less than the rows above it: buffers and sockets carry any bytes, and what is
/// promised of bytes is asked of those who read them.
const KNOWS_ONLY: [(&str, &[&str]); 2] =
    [("net", &["wire", "clock"]), ("probe", &["wire", "iso8583"])];

/// Bytes and time go in, what happened comes out.
const PURE: [&str; 9] = [
    "wire",
    "iso8583",
    "limits",
    "gate",
    "exchange",
    "quota::protocol",
    "quota::embedded",
    "quota::sync",
    "probe",
];

/// Where there may be an event loop.
const SHELLS: [&str; 8] =
    ["quota::task", "quota::redis", "net", "worker", "admin", "server", "peers", "cli"];

const FILE_LINES_MAX: usize = 450;
const FUNCTION_LINES_MAX: usize = 75;

type Check = fn(&Source) -> Vec<String>;

const CHECKS: [(&str, Check); 11] = [
    ("imports", imports),
    ("tokio", tokio),
    ("streams", streams),
    ("clocks", clocks),
    ("purity", purity),
    ("file length", file_length),
    ("function length", function_length),
    ("module doc", module_doc),
    ("unfinished", unfinished),
    ("names", names),
    ("printing", printing),
];

/// Fields of bytes that are printed with their type, and are none of a message's.
const PRINTED_BYTES: [(&str, &[&str]); 3] = [
    ("src/exchange/mod.rs", &["match_fields"]),
    ("src/iso8583/composer.rs", &["head", "code", "third_bitmap"]),
    ("src/peers/network/answers.rs", &["terminal"]),
];

fn row_of(room: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&room))
}

fn named(table: &[(&str, &'static [&'static str])], room: &str) -> Option<&'static [&'static str]> {
    table.iter().find(|(name, _)| *name == room).map(|(_, names)| *names)
}

/// Whether a file is of one of these modules, or below one.
fn is_in(source: &Source, modules: &[&str]) -> bool {
    let module = source.module.join("::");
    modules.iter().any(|wanted| {
        module.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    })
}

fn imports(source: &Source) -> Vec<String> {
    let room = source.room();
    if room == "lib" {
        return Vec::new();
    }
    let Some(row) = row_of(room) else {
        return vec![format!("{}: {room} is in no row of the design", source.path)];
    };
    let mut wrong = BTreeSet::new();
    for import in source.imports() {
        let to = import.to.first().map_or("the root of the crate", String::as_str);
        if to == room {
            continue;
        }
        let why = match row_of(to) {
            None => "which is in no row of the design",
            Some(to_row) if to_row > row => "which is in a row below it",
            Some(to_row) if to_row == row => {
                if named(&WITHIN_A_ROW, room).is_some_and(|names| names.contains(&to)) {
                    continue;
                }
                "which is in its own row"
            }
            Some(_) if named(&KNOWS_ONLY, room).is_some_and(|names| !names.contains(&to)) => {
                "of which it is to know nothing"
            }
            Some(_) => continue,
        };
        wrong.insert(format!("{}:{}: {room} imports {to}, {why}", source.path, import.line));
    }
    wrong.into_iter().collect()
}

/// Says of each line that it holds what it may not.
fn at_lines(source: &Source, lines: Vec<usize>, what: &str) -> Vec<String> {
    lines.into_iter().map(|line| format!("{}:{line}: {what}", source.path)).collect()
}

fn tokio(source: &Source) -> Vec<String> {
    if is_in(source, &SHELLS) {
        return Vec::new();
    }
    let lines = ["tokio", "tokio_util"].iter().flat_map(|name| source.lines_of(name)).collect();
    at_lines(source, lines, "tokio outside the shells")
}

/// Simulated peers and the demo play the other side of the wire, whose streams are their own.
fn streams(source: &Source) -> Vec<String> {
    if source.path == "src/net/stream.rs" || is_in(source, &["peers", "cli"]) {
        return Vec::new();
    }
    at_lines(source, source.lines_of("TcpStream"), "a TcpStream outside net::stream")
}

fn clocks(source: &Source) -> Vec<String> {
    if source.path == "src/clock.rs" {
        return Vec::new();
    }
    let mut lines = source.lines_of_path(&["Instant", "now"]);
    lines.extend(source.lines_of("SystemTime"));
    at_lines(source, lines, "a clock is read outside clock.rs; take the time as an argument")
}

fn purity(source: &Source) -> Vec<String> {
    if !is_in(source, &PURE) {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    for name in ["tracing", "log", "metrics", "fastrand", "rand"] {
        let lines = source.lines_of_crate(name);
        wrong.extend(at_lines(source, lines, &format!("{name} in the pure core")));
    }
    for name in ["fs", "net", "thread", "env", "process"] {
        let lines = source.lines_of_path(&["std", name]);
        wrong.extend(at_lines(source, lines, &format!("std::{name} in the pure core")));
    }
    wrong
}

fn file_length(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    if lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    vec![format!("{}: {lines} lines, of {FILE_LINES_MAX} at most", source.path)]
}

fn function_length(source: &Source) -> Vec<String> {
    let functions = source.functions().into_iter();
    let long = functions.filter(|function| function.lines > FUNCTION_LINES_MAX);
    long.map(|function| {
        let source::Function { name, line, lines } = function;
        format!("{}:{line}: {name} has {lines} lines, of {FUNCTION_LINES_MAX}", source.path)
    })
    .collect()
}

fn module_doc(source: &Source) -> Vec<String> {
    if source.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![format!("{}: does not begin with what the module owns (//!)", source.path)]
}

fn unfinished(source: &Source) -> Vec<String> {
    let marks = ["TODO", "FIXME", "XXX", "todo!", "unimplemented!"];
    let lines = (1..).zip(source.text.lines());
    let marked = lines.filter(|(_, line)| marks.iter().any(|mark| line.contains(mark)));
    at_lines(source, marked.map(|(line, _)| line).collect(), "unfinished")
}

/// A type that holds bytes and has its `Debug` derived prints them, a card number among them.
fn printing(source: &Source) -> Vec<String> {
    let allowed = named(&PRINTED_BYTES, &source.path).unwrap_or_default();
    let (mut derived, mut wrong) = (false, Vec::new());
    for (number, line) in (1..).zip(source.text.lines()) {
        let line = line.trim();
        if line.starts_with("#[derive(") {
            derived = line.contains("Debug");
        } else if derived && ["Vec<u8>", "[u8]", "[u8; "].iter().any(|bytes| line.contains(bytes)) {
            let field = line.split(':').next().unwrap_or(line).rsplit(' ').next().unwrap_or(line);
            if !allowed.contains(&field) {
                wrong.push(number);
            }
        }
        derived &= !(line.starts_with('}') || line.starts_with("impl ") || line.starts_with("fn "));
        derived &= !line.ends_with(");");
    }
    at_lines(source, wrong, "bytes in a type whose Debug is derived")
}

/// Words that say nothing of what a thing is.
fn names(source: &Source) -> Vec<String> {
    let empty = |name: &str| {
        words(name).iter().any(|word| {
            let word = word.strip_suffix('s').unwrap_or(word);
            ["manager", "helper", "util", "utility", "utilitie", "common"].contains(&word)
        })
    };
    let mut wrong = Vec::new();
    if source.module.iter().any(|part| empty(part)) {
        wrong.push(format!("{}: a file name that says nothing", source.path));
    }
    // What others call their crates is their affair.
    let foreign = ["tokio_util", "hyper_util"];
    let identifiers = source.identifiers().filter(|token| !foreign.contains(&&*token.text));
    let bad = identifiers.filter(|token| empty(&token.text));
    wrong.extend(
        bad.map(|token| format!("{}:{}: {} says nothing", source.path, token.line, token.text)),
    );
    wrong
}

/// `ReadBuffer` and `read_buffer` are `read` and `buffer`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().unwrap().extend(c.to_lowercase());
        }
    }
    words
}

/// Every source of the library and the binary.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut folders, mut sources) = (vec![root.join("src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                sources.push(Source::new(&name, &std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

#[test]
fn the_sources_obey_the_design() {
    let sources = sources();
    let wrong: Vec<_> = CHECKS
        .iter()
        .flat_map(|(name, check)| {
            let found = sources.iter().flat_map(check);
            found.map(move |what| format!("{name}: {what}")).collect::<Vec<_>>()
        })
        .collect();
    assert!(wrong.is_empty(), "{} breaches:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_scan_saw_the_sources() {
    let sources = sources();
    let rooms: BTreeSet<_> = sources.iter().map(Source::room).collect();
    let imports: usize = sources.iter().map(|source| source.imports().len()).sum();
    let functions: usize = sources.iter().map(|source| source.functions().len()).sum();
    assert!(sources.len() >= 65, "{} files", sources.len());
    assert!(imports >= 150, "{imports} imports");
    assert!(functions >= 450, "{functions} functions");
    let lib = sources.iter().find(|source| source.path == "src/lib.rs").expect("the root");
    let declared = lib.text.lines().filter_map(|line| line.strip_prefix("pub mod "));
    let declared: BTreeSet<_> = declared.map(|line| line.trim_end_matches(';')).collect();
    assert!(declared.len() >= 16, "modules {declared:?}");
    let unseen: Vec<_> = declared.difference(&rooms).collect();
    assert!(unseen.is_empty(), "modules without a file: {unseen:?}");
    // What is known to be there, so that a scan that misses a way of writing it shows.
    let import = |from: &str, to: &[&str]| {
        let source = sources.iter().find(|source| source.path == from).expect(from);
        source.imports().iter().any(|import| import.to.iter().zip(to).all(|(a, b)| a == b))
    };
    assert!(import("src/exchange/conversation.rs", &["gate", "Verdict"]));
    assert!(import("src/exchange/conversation.rs", &["exchange", "correlate", "Choice"]));
    assert!(import("src/pan.rs", &["traffic"]));
    assert!(import("src/main.rs", &["cli", "main"]));
}

/// What a check says of one made-up source.
fn verdict(check: Check, path: &str, text: &str) -> Vec<String> {
    check(&Source::new(path, text))
}

#[track_caller]
fn refused(check: Check, path: &str, text: &str) {
    let said = verdict(check, path, text);
    assert_eq!(said.len(), 1, "{path}: {text}\n{said:?}");
}

#[track_caller]
fn accepted(check: Check, path: &str, text: &str) {
    assert_eq!(verdict(check, path, text), [""; 0], "{path}: {text}");
}

#[test]
fn bytes_that_would_be_printed_are_seen() {
    for text in [
        "#[derive(Clone, Debug)]\npub struct Frame {\n    bytes: Vec<u8>,\n}",
        "#[derive(Debug)]\nstruct Rest(Box<[u8]>);",
        "#[derive(Debug)]\nenum Part {\n    Whole,\n    Begun { bytes: [u8; 64] },\n}",
    ] {
        refused(printing, "src/net/buffer.rs", text);
    }
    for text in [
        "#[derive(Clone)]\nstruct Frame {\n    bytes: Vec<u8>,\n}",
        "#[derive(Debug)]\nstruct Count(u64);\n\nstruct Frame {\n    bytes: Vec<u8>,\n}",
        "#[derive(Debug)]\nenum Side {\n    Host,\n}\n\nfn read(bytes: &[u8]) {}",
    ] {
        accepted(printing, "src/net/buffer.rs", text);
    }
}

#[test]
fn an_import_from_a_row_below_is_seen_however_it_is_written() {
    for (path, text) in [
        ("src/wire/framing.rs", "use crate::exchange::Room;"),
        ("src/wire/framing.rs", "use crate::{clock::Moment, exchange::{Room, Sink}};"),
        ("src/wire/framing.rs", "use super::super::exchange::Room;"),
        ("src/wire/mod.rs", "use super::{clock, exchange};"),
        ("src/wire/framing.rs", "fn f(room: crate::exchange::Room) {}"),
        ("src/wire/framing.rs", "mod inner { use super::super::super::exchange; }"),
        ("src/wire/framing.rs", "fn f() { for x in crate::exchange::ALL {} }"),
        ("src/wire/framing.rs", "macro_rules! m { () => { $crate::exchange::f() }; }"),
        ("src/wire.rs", "use super::exchange;"),
        ("src/limits/cell.rs", "use crate::iso8583::View;"),
        ("src/traffic.rs", "use crate::pan::Pan;"),
        ("src/metrics.rs", "use crate::admin::Readiness;"),
        ("src/worker/mod.rs", "use crate::config::Config;"),
        ("src/config/mod.rs", "use crate::server::Server;"),
        ("src/net/buffer.rs", "use crate::iso8583::View;"),
        ("src/net/buffer.rs", "use crate::traffic::Class;"),
        ("src/probe/reply.rs", "use crate::gate::Settings;"),
        ("src/server.rs", "use crate::probe::view;"),
        ("src/gate/mod.rs", "use super::*;"),
        ("src/gate/mod.rs", "use crate::novelty::New;"),
        ("src/novelty.rs", "fn f() {}"),
    ] {
        refused(imports, path, text);
    }
}

#[test]
fn an_import_from_a_row_above_is_no_breach() {
    for (path, text) in [
        ("src/exchange/mod.rs", "use crate::{clock::Moment, gate::{Gate, Verdict as V}, wire::*};"),
        (
            "src/exchange/late.rs",
            "use super::{Outcome, inflight::Inflight}; use super::super::gate;",
        ),
        ("src/pan.rs", "use crate::traffic::Bin;"),
        ("src/admin/mod.rs", "use crate::metrics::Published;"),
        ("src/server.rs", "use crate::cli; use crate::peers::Host;"),
        ("src/net/host_queue.rs", "use crate::wire::Framing; use crate::clock::Moment;"),
        ("src/wire/mod.rs", "// use crate::exchange::Room;\n/* crate::gate /* */ crate::net */"),
        ("src/wire/mod.rs", "const A: &str = \"crate::exchange::Room\"; const Q: char = '\"';"),
        (
            "src/wire/mod.rs",
            "const A: &str = r#\"\" crate::exchange::Room\"#; fn f<'a>(_: &'a u8) {}",
        ),
        ("src/wire/mod.rs", "#[cfg(test)]\nmod tests { use crate::exchange::Room; }"),
        ("src/wire/mod.rs", "mod inner { use super::Framing; pub(in crate::wire) fn f() {} }"),
        ("src/main.rs", "fn main() { tollgate::cli::main() }"),
        ("src/lib.rs", "pub use crate::server::Server;"),
    ] {
        accepted(imports, path, text);
    }
}

#[test]
fn tokio_outside_the_shells_is_seen() {
    refused(tokio, "src/exchange/mod.rs", "use tokio::time::sleep;");
    refused(tokio, "src/config/mod.rs", "async fn f() { tokio_util::sync::x() }");
    refused(tokio, "src/quota/protocol.rs", "use tokio::sync::mpsc;");
    refused(tokio, "src/network.rs", "use tokio::net::lookup_host;");
    accepted(tokio, "src/quota/redis.rs", "use tokio::sync::mpsc;");
    accepted(tokio, "src/net/upstream.rs", "use tokio::net::lookup_host;");
    accepted(tokio, "src/exchange/mod.rs", "// tokio\nconst A: &str = \"tokio\";");
}

#[test]
fn a_stream_outside_its_file_is_seen() {
    refused(streams, "src/net/listener.rs", "use std::net::TcpStream;");
    refused(streams, "src/worker/port.rs", "fn f(_: tokio::net::TcpStream) {}");
    accepted(streams, "src/net/stream.rs", "use tokio::net::TcpStream;");
    accepted(streams, "src/net/listener.rs", "use tokio::net::TcpListener; // TcpStream");
}

#[test]
fn a_clock_outside_its_file_is_seen() {
    refused(clocks, "src/worker/mod.rs", "let now = std::time::Instant::now();");
    refused(clocks, "src/worker/mod.rs", "use tokio::time::Instant; fn f() { Instant :: now () }");
    refused(clocks, "src/admin/mod.rs", "use std::time::SystemTime;");
    accepted(clocks, "src/clock.rs", "fn now() { std::time::Instant::now() }");
    accepted(
        clocks,
        "src/worker/mod.rs",
        "/// `Instant::now` is not for here\nfn f(at: Instant) {}",
    );
}

#[test]
fn logs_metrics_and_randomness_in_the_pure_core_are_seen() {
    refused(purity, "src/gate/mod.rs", "use tracing::info;");
    refused(purity, "src/limits/table.rs", "fn f() { metrics::counter!(\"a\"); }");
    refused(purity, "src/exchange/late.rs", "let seed = fastrand::u64(..);");
    refused(purity, "src/quota/protocol.rs", "use rand::Rng;");
    refused(purity, "src/iso8583/view.rs", "use std::fs::File;");
    accepted(purity, "src/server.rs", "use tracing::info; fn f() { fastrand::u64(..); }");
    accepted(purity, "src/gate/mod.rs", "fn f(metrics: u8) { metrics; } // tracing::info");
}

#[test]
fn what_is_too_long_is_named() {
    let lines = |count: usize| "//! A\n".repeat(count);
    refused(file_length, "src/a.rs", &lines(FILE_LINES_MAX + 1));
    accepted(file_length, "src/a.rs", &lines(FILE_LINES_MAX));
    let function = |lines: usize| {
        format!("trait T {{ fn g(_: [u8; 4]); }}\nfn f() {{\n{}}}\n", "a();\n".repeat(lines - 2))
    };
    refused(function_length, "src/a.rs", &function(FUNCTION_LINES_MAX + 1));
    accepted(function_length, "src/a.rs", &function(FUNCTION_LINES_MAX));
    let named = verdict(function_length, "src/a.rs", &function(90));
    assert_eq!(named, ["src/a.rs:2: f has 90 lines, of 75"]);
}

#[test]
fn a_file_without_its_purpose_and_unfinished_work_are_seen() {
    refused(module_doc, "src/a.rs", "use std::io;\n//! late");
    refused(module_doc, "src/a.rs", "");
    accepted(module_doc, "src/a.rs", "//! Owns a.\n");
    for text in ["// TODO: later", "fn f() { todo!() }", "unimplemented!()", "/* FIXME */"] {
        refused(unfinished, "src/a.rs", text);
    }
    accepted(unfinished, "src/a.rs", "fn to_do() {}");
}

#[test]
fn a_name_that_says_nothing_is_seen() {
    refused(names, "src/a.rs", "struct SessionManager;");
    refused(names, "src/a.rs", "fn parse_helper() {}");
    refused(names, "src/net/utils.rs", "");
    refused(names, "src/common/mod.rs", "");
    accepted(names, "src/a.rs", "use tokio_util::sync::x; struct Utility2; // a manager");
    accepted(names, "src/a.rs", "fn managed() { uncommon() }");
}

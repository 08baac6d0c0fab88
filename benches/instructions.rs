//! Instructions per operation, counted by valgrind's callgrind, beside the time that each takes.
//!
//! Times move with the machine's other work; a count of instructions moves with the code alone, so
//! that a change of a few percent shows on any machine. Counts say nothing of waiting for memory:
//! that is what the times beside them are for.
//!
//! `cargo bench --bench instructions` compares with `benches/instructions.txt` and fails when a
//! count rose by more than `--percent` (2); `-- --write` writes that file anew. Both take names of
//! operations, or how they begin, to count only those.
//!
//! The process calls itself once under valgrind for each operation, and collects inside [`measured`]
//! alone: what an operation prepares is not counted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a bench states its expectations and prints what it found"
)]

#[path = "../tests/support/encoder.rs"]
#[allow(dead_code, reason = "only whole messages are built here")]
mod encoder;
#[path = "support/limits.rs"]
mod limits;
#[path = "support/link.rs"]
mod link;
#[path = "support/operations.rs"]
mod operations;
#[path = "../tests/support/purchase.rs"]
mod purchase;

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use operations::Operation;
use tollgate::clock::Clock;

/// Times are the best of so many.
const ROUNDS: usize = 5;
const HEAD: &str = "\
# Instructions per operation: cargo bench --bench instructions -- --write
# They belong to a compiler: write them anew, in a commit of its own, when that changes.
";
/// A rise by more fails, unless the command line says otherwise.
const PERCENT: f64 = 2.0;

/// Where collecting begins and ends; callgrind knows it by this name.
#[inline(never)]
fn measured(operation: &mut Operation) {
    (operation.run)();
}

/// What the command line asks for.
struct Asked {
    write: bool,
    percent: f64,
    beginnings: Vec<String>,
}

fn main() -> ExitCode {
    let mut asked = Asked { write: false, percent: PERCENT, beginnings: Vec::new() };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            // Cargo says so to every bench.
            "--bench" => {}
            "--write" => asked.write = true,
            "--percent" => asked.percent = words.next().unwrap().parse().unwrap(),
            "--count" => {
                let mut operation = operations::prepare(&words.next().unwrap());
                (operation.run)();
                measured(&mut operation);
                return ExitCode::SUCCESS;
            }
            _ => asked.beginnings.push(word),
        }
    }
    compare(&asked)
}

/// Counts and times what was asked for and prints it beside the baseline.
fn compare(asked: &Asked) -> ExitCode {
    let names = operations::names().into_iter().filter(|name| {
        asked.beginnings.is_empty() || asked.beginnings.iter().any(|with| name.starts_with(with))
    });
    let mut baseline = read_baseline();
    let mut risen = Vec::new();
    println!("{:42} {:>12} {:>12} {:>8} {:>9}", "operation", "instructions", "baseline", "", "ns");
    for name in names {
        let mut operation = operations::prepare(&name);
        (operation.run)();
        let items = f64::from(operation.items);
        let (count, nanos) = (instructions(&name) / items, nanos(&mut operation) / items);
        let before = baseline.insert(name.clone(), count);
        let percent = before.map(|before| (count / before - 1.0) * 100.0);
        let moved = percent.map_or_else(|| "new".to_owned(), |percent| format!("{percent:+.1} %"));
        let shown = before.map_or_else(|| "-".to_owned(), |before| format!("{before:.1}"));
        println!("{name:42} {count:12.1} {shown:>12} {moved:>8} {nanos:9.1}");
        if percent.is_some_and(|percent| percent > asked.percent) {
            risen.push(name);
        }
    }
    if asked.write {
        write_baseline(&baseline);
        return ExitCode::SUCCESS;
    }
    if risen.is_empty() {
        println!("no count rose by more than {} %", asked.percent);
        return ExitCode::SUCCESS;
    }
    println!("rose by more than {} %: {}", asked.percent, risen.join(", "));
    ExitCode::FAILURE
}

/// Instructions of one run of an operation.
fn instructions(name: &str) -> f64 {
    let out = env::temp_dir().join(format!("tollgate-callgrind-{}", std::process::id()));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=instructions::measured*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env::current_exe().unwrap())
        .args(["--count", name])
        .output()
        .expect("valgrind is needed: apt-get install valgrind");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let written = fs::read_to_string(&out).unwrap();
    fs::remove_file(&out).unwrap();
    let total = written.lines().find_map(|line| line.strip_prefix("totals: ")).unwrap();
    let total = total.trim().parse().unwrap();
    assert!(total > 0.0, "{name}: nothing was collected");
    total
}

/// Nanoseconds of one run of an operation, outside valgrind.
fn nanos(operation: &mut Operation) -> f64 {
    let clock = Clock::start();
    let rounds = (0..ROUNDS).map(|_| {
        let before = clock.now();
        measured(operation);
        clock.now().since(before).as_secs_f64() * 1e9
    });
    rounds.fold(f64::INFINITY, f64::min)
}

fn baseline() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt")
}

/// Instructions by operation, as they were committed.
fn read_baseline() -> BTreeMap<String, f64> {
    let text = fs::read_to_string(baseline()).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, count) = line.split_once(' ').expect("name and count");
            (name.to_owned(), count.trim().parse().expect("a count"))
        })
        .collect()
}

fn write_baseline(counts: &BTreeMap<String, f64>) {
    let mut text = HEAD.to_owned();
    for (name, count) in counts {
        writeln!(text, "{name:42} {count:10.1}").unwrap();
    }
    fs::write(baseline(), text).unwrap();
}

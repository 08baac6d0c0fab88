//! `docs/first-limit.md`, as a newcomer follows it: its file is written, its commands are run, and what
//! they print is what stands there, but for the numbers.
//!
//! It runs on an address of its own (all of 127.0.0.0/8 is this machine), so that its ports are free, and
//! the network sends for two seconds and not for twenty.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "a test states its expectations"
)]

mod document;
mod support;

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use document::read;
use rustix::process::{Pid, Signal, kill_process};
use support::proxy::BINARY;
use support::wait_for;

/// What is not run: the tests have built the binary, in another profile.
const BUILD: [&str; 2] =
    ["cargo build --release --locked", "export PATH=\"$PWD/target/release:$PATH\""];

/// Whoever follows the document, and what runs in the other terminals.
struct Newcomer {
    folder: PathBuf,
    address: String,
    host: Option<Child>,
    proxy: Option<Child>,
    /// What the last command printed.
    printed: String,
    commands: usize,
    lines: usize,
}

impl Newcomer {
    fn arrive() -> Self {
        let pid = std::process::id();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("first-limit-{pid}"));
        std::fs::create_dir_all(&folder).unwrap();
        let address =
            format!("127.{}.{}.{}", 64 + (pid >> 14) % 64, (pid >> 7) % 128, pid % 128 + 1);
        let (host, proxy, printed) = (None, None, String::new());
        Self { folder, address, host, proxy, printed, commands: 0, lines: 0 }
    }

    /// As it would be typed here.
    fn here(&self, text: &str) -> String {
        text.replace("127.0.0.1", &self.address).replace("--seconds 20", "--seconds 2")
    }

    fn shell(&self, command: &str) -> Command {
        let folder_of_binary = Path::new(BINARY).parent().unwrap().to_str().unwrap();
        let path = format!("{folder_of_binary}:{}", std::env::var("PATH").unwrap());
        let mut shell = Command::new("bash");
        shell.args(["-c", &self.here(command)]).env("PATH", path).current_dir(&self.folder);
        shell
    }

    /// In a terminal of its own.
    fn start(&self, command: &str, port: u16) -> Option<Child> {
        let mut shell = self.shell(&format!("exec {command}"));
        let child = shell.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        wait_for(command, || TcpStream::connect((self.address.as_str(), port)).ok());
        Some(child)
    }

    fn run(&mut self, command: &str) {
        self.commands += 1;
        if BUILD.contains(&command) {
            return;
        }
        if command.starts_with("tollgate simulate host") {
            self.host = self.start(command, 9_000);
        } else if command.starts_with("tollgate run") {
            end(self.proxy.take());
            self.proxy = self.start(command, 9_580);
            let up = format!(
                "curl -s {}:9580/metrics | grep '^tollgate_upstream_up.* 1$'",
                self.address
            );
            wait_for("the host is up", || {
                self.shell(&up).output().unwrap().status.success().then_some(())
            });
        } else {
            let output = self.shell(command).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            self.printed = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{command}\n{}\n{errors}", self.printed);
        }
    }

    /// Every line of the document is among those that were printed, in this order, whatever the numbers.
    fn compare(&mut self, expected: &str) {
        let expected = self.here(expected);
        for wanted in expected.lines() {
            self.lines += 1;
            let found =
                self.printed.lines().any(|line| without_numbers(line) == without_numbers(wanted));
            assert!(found, "{wanted:?} is not in\n{}", self.printed);
        }
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        end(self.proxy.take());
        end(self.host.take());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// As by Ctrl-C.
fn end(child: Option<Child>) {
    if let Some(mut child) = child {
        let _ = kill_process(Pid::from_child(&child), Signal::INT);
        let _ = child.wait();
    }
}

/// Columns and commas depend on numbers too.
fn without_numbers(line: &str) -> String {
    let mut kept = String::new();
    for c in line.trim_end_matches(',').chars() {
        match c {
            '0'..='9' | '.' | '-' if kept.ends_with('#') => {}
            '0'..='9' | '-' => kept.push('#'),
            ' ' if kept.ends_with(' ') => {}
            _ => kept.push(c),
        }
    }
    kept
}

#[test]
fn a_newcomer_gets_from_nothing_to_an_enforced_limit_on_one_merchant() {
    let page = read("docs/first-limit.md");
    assert!(page.lines().count() <= 200, "two pages");
    let mut newcomer = Newcomer::arrive();
    for block in page.split("\n```").skip(1).step_by(2) {
        let (kind, body) = block.split_once('\n').unwrap();
        match kind {
            "toml" => {
                std::fs::write(newcomer.folder.join("gate.toml"), newcomer.here(body)).unwrap();
            }
            "console" => body.lines().for_each(|command| newcomer.run(command)),
            "text" => newcomer.compare(body),
            other => panic!("what is a block of {other:?}?"),
        }
    }
    assert!(newcomer.commands > 12 && newcomer.lines > 15, "the document was not followed");
}

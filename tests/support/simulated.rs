//! A simulated peer, run as an operator runs it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::peer::{Framing, Peer};
use super::proxy::BINARY;
use super::{PATIENCE, wait_for};

/// A running `tollgate simulate host`. It is killed when this is dropped.
pub struct SimulatedHost {
    child: Child,
    lines: Receiver<String>,
    address: SocketAddr,
}

impl SimulatedHost {
    /// Starts one that speaks JSON, on a free port of loopback, and waits until it listens.
    #[track_caller]
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    /// The same at an address.
    #[track_caller]
    pub fn start_at(address: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(BINARY)
            .args(["simulate", "host", "--json", "--listen", address])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // A test that has ended reads no more.
                let _ = sender.send(line);
            }
        });
        let mut host = Self { child, lines, address: SocketAddr::from(([0, 0, 0, 0], 0)) };
        let first = host.line("listening");
        host.address = first["address"].as_str().unwrap().parse().unwrap();
        host
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new connection, framed be16.
    #[track_caller]
    pub fn connect(&self) -> Peer {
        Peer::connect(self.address, Framing::Be16)
    }

    /// Stops it and gives its report.
    #[track_caller]
    pub fn stop(mut self) -> Value {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.wait()
    }

    /// Waits until it ends by itself and gives its report.
    #[track_caller]
    pub fn wait(&mut self) -> Value {
        let report = self.line("report");
        let child = &mut self.child;
        let status = wait_for("the process ends", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0));
        report
    }

    /// The next line that tells of this event.
    #[track_caller]
    fn line(&mut self, event: &str) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("a line");
            let line: Value = serde_json::from_str(&line).expect("one JSON object a line");
            if line["event"] == event {
                return line;
            }
        }
    }
}

impl Drop for SimulatedHost {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

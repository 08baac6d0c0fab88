//! A redis-server for a bench: on a free port of loopback, in memory alone, ended with its bench.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tollgate::clock::Clock;

pub(crate) struct RedisServer {
    child: Child,
    port: u16,
}

impl RedisServer {
    /// Starts one and waits until it answers.
    pub(crate) fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--loglevel", "warning"])
            .current_dir(std::env::temp_dir())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, port };
        let clock = Clock::start();
        let client = redis::Client::open(server.url()).unwrap();
        while client.get_connection().is_err() {
            assert!(clock.now().nanos() < 10_000_000_000, "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    #[allow(dead_code, reason = "each bench uses its own part")]
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    #[allow(dead_code, reason = "each bench uses its own part")]
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

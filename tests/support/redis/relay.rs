//! A relay between tollgate and a Redis, which can be told to misbehave while both are at work.
//!
//! It never does what no network does: an answer that is lost ends its connection, and one that is
//! late keeps all behind it waiting. Answers of its own come where the server's would have come.

mod connection;
mod resp;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use tollgate::clock::{Clock, Moment};

use super::port::free_port;
use crate::support::wait_for;

/// What it may answer in the place of a server, as Redis 7.0 words it.
pub mod faults {
    pub const READONLY: &str = "-READONLY You can't write against a read only replica.";
    pub const CROSSSLOT: &str = "-CROSSSLOT Keys in request don't hash to the same slot";
    pub const LOADING: &str = "-LOADING Redis is loading the dataset in memory";
    pub const BUSY: &str =
        "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
    pub const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.";
    pub const MISCONF: &str = "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled.";
    pub const NOREPLICAS: &str = "-NOREPLICAS Not enough good replicas to write.";
    pub const CLUSTERDOWN: &str = "-CLUSTERDOWN The cluster is down";
    pub const MASTERDOWN: &str =
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
    pub const TRYAGAIN: &str = "-TRYAGAIN Multiple keys request during rehashing of slot";
    pub const NOSCRIPT: &str = "-NOSCRIPT No matching script. Please use EVAL.";
    pub const NOPERM: &str = "-NOPERM this user has no permissions to run the 'evalsha' command";
    pub const WRONGTYPE: &str =
        "-WRONGTYPE Operation against a key holding the wrong kind of value";
}

/// A relay on a port of its own. Its connections end when it is dropped.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// What all threads of a relay know.
struct Shared {
    clock: Clock,
    target: SocketAddr,
    switches: Mutex<Switches>,
    switched: Condvar,
    seen: Mutex<Seen>,
    streams: Mutex<Vec<TcpStream>>,
    ends: AtomicBool,
}

/// How it misbehaves at present.
#[derive(Clone, Debug, Default)]
struct Switches {
    /// Answers are so late.
    delay: Duration,
    /// So many answers to scripts are lost, each with its connection.
    losses: usize,
    /// The same for those scripts alone that report a key.
    report_losses: usize,
    /// Who connects is turned away.
    refuses: bool,
    /// Nothing passes either way.
    black_hole: bool,
    /// What scripts are answered, and how often.
    fault: Option<(String, usize)>,
}

/// What has come.
#[derive(Default)]
struct Seen {
    connections: Vec<Moment>,
    calls: BTreeMap<String, Vec<Moment>>,
    faults: usize,
    losses: usize,
}

impl Relay {
    /// Before a server, on a port that stays its own.
    #[track_caller]
    pub fn before(target: SocketAddr) -> Self {
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, free_port())).ok();
        let listener = wait_for("a port for the relay", bind);
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            clock: Clock::start(),
            target,
            switches: Mutex::default(),
            switched: Condvar::new(),
            seen: Mutex::default(),
            streams: Mutex::default(),
            ends: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&listener, &accepting));
        Self { address, shared, acceptor: Some(acceptor) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The clock of all moments that it tells.
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// Answers come so much later, those too that are on their way; with zero they come at once.
    pub fn delay_answers(&self, delay: Duration) {
        self.switch(|switches| switches.delay = delay);
    }

    /// The next `count` scripts are run, but instead of their answers the connection ends.
    pub fn lose_answers(&self, count: usize) {
        self.switch(|switches| switches.losses = count);
    }

    /// The same for the next `count` scripts of tollgate that report a key.
    pub fn lose_answers_to_reports(&self, count: usize) {
        self.switch(|switches| switches.report_losses = count);
    }

    /// Whether who connects is turned away at once. Connections that there are stay.
    pub fn refuse(&self, refuses: bool) {
        self.switch(|switches| switches.refuses = refuses);
    }

    /// Whether everything is swallowed: who connects is let in and never answered. When it ends, all
    /// that was held goes on its way, as a network does that comes back.
    pub fn black_hole(&self, black_hole: bool) {
        self.switch(|switches| switches.black_hole = black_hole);
    }

    /// From now on scripts are not run, but answered with this error line.
    pub fn fail_scripts(&self, line: &str) {
        self.fail_next_scripts(usize::MAX, line);
    }

    /// The same for the next `count` of them.
    pub fn fail_next_scripts(&self, count: usize, line: &str) {
        assert!(line.starts_with('-') && !line.contains('\n'), "an error line: {line}");
        self.switch(|switches| switches.fault = Some((line.to_owned(), count)));
    }

    /// From now on scripts are not run, but answered with this, which is no error: the first line of a
    /// value and more.
    pub fn answer_scripts(&self, value: &str) {
        assert!(!value.starts_with('-') && !value.ends_with('\n'), "a value: {value}");
        self.switch(|switches| switches.fault = Some((value.to_owned(), usize::MAX)));
    }

    /// No misbehaviour any more.
    pub fn behave(&self) {
        self.switch(|switches| *switches = Switches::default());
    }

    /// Ends all connections.
    pub fn cut(&self) {
        self.shared.cut();
    }

    /// When each connection came, those too that were turned away.
    pub fn connections(&self) -> Vec<Moment> {
        self.shared.seen().connections.clone()
    }

    /// When each call of a command came, such as `EVALSHA`.
    pub fn calls(&self, command: &str) -> Vec<Moment> {
        self.shared.seen().calls.get(command).cloned().unwrap_or_default()
    }

    /// When each script came, by whatever command.
    pub fn scripts(&self) -> Vec<Moment> {
        let mut calls: Vec<Moment> =
            resp::SCRIPTS.iter().flat_map(|command| self.calls(command)).collect();
        calls.sort_unstable();
        calls
    }

    /// Every command that came, and how often.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let seen = self.shared.seen();
        seen.calls.iter().map(|(command, calls)| (command.clone(), calls.len())).collect()
    }

    /// How many scripts it has answered with an error of its own.
    pub fn faults_given(&self) -> usize {
        self.shared.seen().faults
    }

    /// How many answers it has lost.
    pub fn answers_lost(&self) -> usize {
        self.shared.seen().losses
    }

    fn switch(&self, change: impl FnOnce(&mut Switches)) {
        change(&mut self.shared.switches());
        self.shared.switched.notify_all();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        self.shared.cut();
        // It waits for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn switches(&self) -> MutexGuard<'_, Switches> {
        self.switches.lock().unwrap()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    fn ends(&self) -> bool {
        self.ends.load(Ordering::SeqCst)
    }

    /// Ends all connections, and all waiting for them.
    fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            // The other side may have ended it.
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Under the lock, so that nobody is between looking and waiting.
        drop(self.switches());
        self.switched.notify_all();
    }

    /// Waits as long as `holds` says so of the switches, or until the connection is over.
    fn wait_while(
        &self,
        is_over: impl Fn() -> bool,
        holds: impl Fn(&Switches) -> Option<Duration>,
    ) {
        let mut switches = self.switches();
        while let Some(longest) = holds(&switches).filter(|_| !is_over() && !self.ends()) {
            switches = self.switched.wait_timeout(switches, longest).unwrap().0;
        }
    }

    /// What a script is to be answered in the place of the server, if anything.
    fn fault(&self) -> Option<Vec<u8>> {
        let mut switches = self.switches();
        let (line, left) = switches.fault.as_mut().filter(|(_, left)| *left > 0)?;
        *left -= 1;
        let answer = format!("{line}\r\n").into_bytes();
        self.seen().faults += 1;
        Some(answer)
    }

    /// Whether the answer to a script is to be lost.
    fn loses(&self, reports: bool) -> bool {
        let mut switches = self.switches();
        let Switches { losses, report_losses, .. } = &mut *switches;
        let left = if reports && *report_losses > 0 { report_losses } else { losses };
        if *left == 0 {
            return false;
        }
        *left -= 1;
        self.seen().losses += 1;
        true
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((client, _)) = listener.accept() {
        if shared.ends() {
            return;
        }
        shared.seen().connections.push(shared.clock.now());
        if shared.switches().refuses {
            continue;
        }
        // Without a server the connection ends, as the server's own would.
        if let Ok(server) = TcpStream::connect(shared.target) {
            connection::relay(client, server, shared);
        }
    }
}

//! Peers that take nothing any more: they cost neither time nor files, and what they had said is
//! still heard.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use std::io::{ErrorKind, Write};

use support::host::Host;
use support::message::Message;
use support::peer::{Framing, Peer};
use support::proxy::Proxy;
use support::{config, wait_for};

const CARD: &str = "4111111111111111";

/// The proxy with one link and one connection to its host, which the test holds; nobody listens for
/// another.
#[track_caller]
fn start(link_keys: &str) -> (Proxy, Peer) {
    let host = Host::listen(Framing::Be16);
    let link = config::link("visa", host.address(), link_keys, "connections = 1");
    let proxy = Proxy::start(&format!("{}{link}", config::node("0s")));
    let at_host = host.accept();
    proxy.wait_for_log("host up");
    (proxy, at_host)
}

/// The proxy with one link whose host is down.
#[track_caller]
fn start_without_host(link_keys: &str) -> Proxy {
    let address = Host::listen(Framing::Be16).address();
    let link = config::link("visa", address, link_keys, "connections = 1");
    let proxy = Proxy::start(&format!("{}{link}", config::node("0s")));
    // The worker says so, which is there by then: ready means that the listeners are.
    proxy.wait_for_log("cannot reach host");
    proxy
}

/// A session that writes one message again and again without ever waiting, and reads nothing.
struct Deaf {
    peer: Peer,
    frames: Vec<u8>,
    /// How far into its frames it is.
    at: usize,
}

impl Deaf {
    #[track_caller]
    fn connect(proxy: &Proxy, message: &Message) -> Self {
        let peer = proxy.connect("visa", Framing::Be16);
        peer.stream.set_nonblocking(true).unwrap();
        Self { peer, frames: Framing::Be16.wrap(&message.encode()).repeat(200), at: 0 }
    }

    /// Writes until the system takes no more; true when it took nothing at all.
    fn fill(&mut self) -> bool {
        let mut took_any = false;
        loop {
            match self.peer.stream.write(&self.frames[self.at..]) {
                Ok(taken) => self.at = (self.at + taken) % self.frames.len(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return !took_any,
                // It was closed.
                Err(_) => return false,
            }
            took_any = true;
        }
    }
}

/// The fewest of many counts: now and then there is one more, while the host is tried again.
fn open_files(proxy: &Proxy) -> usize {
    let count = |_| std::fs::read_dir(format!("/proc/{}/fd", proxy.pid())).unwrap().count();
    (0..50).map(count).min().unwrap()
}

/// How often the only worker has gone to sleep because nothing was to be done. One that is kept busy
/// does not, however rarely a busy machine lets it run.
#[track_caller]
fn times_asleep(proxy: &Proxy) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", proxy.pid())).unwrap();
    let statuses = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("status")));
    let mut workers = statuses.filter_map(Result::ok).filter(|status| status.contains("worker-0"));
    let status = workers.next().unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn a_session_that_is_not_read_until_it_takes_its_answers_costs_its_worker_nothing() {
    let proxy = start_without_host("frame_timeout = \"60s\"");
    let mut deaf = Deaf::connect(&proxy, &Message::sale(CARD, 1));
    let mut since = times_asleep(&proxy);
    wait_for("the worker sleeps although the session has more to say", || {
        if !deaf.fill() {
            since = times_asleep(&proxy);
        }
        (times_asleep(&proxy) >= since + 25).then_some(())
    });
}

#[test]
fn a_session_that_is_given_up_leaves_no_open_file_though_its_peer_never_reads() {
    let proxy = start_without_host("frame_timeout = \"200ms\"");
    let before = open_files(&proxy);
    let mut deaf = Deaf::connect(&proxy, &Message::sale(CARD, 1));
    wait_for("the session is given up", || {
        deaf.fill();
        (proxy.log_lines(&["closing session", "write_stall"]) == 1).then_some(())
    });
    wait_for("its file is closed", || (open_files(&proxy) == before).then_some(()));
}

/// What it is owed fits into the proxy's buffer in the system, so that nothing stalls that tollgate
/// sees, and not into its own, however few segments bring it.
#[test]
fn a_session_that_the_system_gives_up_is_counted_and_said_as_one_that_takes_nothing() {
    const SALES: u32 = 400;
    let proxy = start_without_host("frame_timeout = \"200ms\"");
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.connect(&proxy.address("visa").into()).unwrap();
    let mut deaf = Peer::new(socket.into(), Framing::Be16);
    let wrap = |stan| Framing::Be16.wrap(&Message::sale(CARD, stan).encode());
    deaf.send_raw(&(1..=SALES).flat_map(wrap).collect::<Vec<_>>());
    let closed = "tollgate_sessions_closed_total{link=\"visa\",cause=\"write_stall\"}";
    proxy.wait_for_metric(closed, 1.0);
    proxy.wait_for_log("its system acknowledged nothing");
    assert_eq!(proxy.log_lines(&["WARN", "closing session", "write_stall"]), 1);
    assert_eq!(proxy.metric_sum("tollgate_rejects_total", &[]), f64::from(SALES));
}

#[test]
fn a_connection_that_is_given_up_leaves_no_open_file_though_its_host_never_reads() {
    let (proxy, _at_host) = start("frame_timeout = \"200ms\"");
    let before = open_files(&proxy);
    let mut network = Deaf::connect(&proxy, &Message::sale(CARD, 1).mti("0120"));
    wait_for("the connection is given up", || {
        network.fill();
        (proxy.log_lines(&["host disconnected"]) == 1).then_some(())
    });
    network.peer.reset();
    wait_for("its file is closed", || (open_files(&proxy) == before - 1).then_some(()));
}

#[test]
fn what_a_host_had_answered_when_it_broke_off_is_delivered() {
    let (proxy, mut at_host) = start("deadline = \"50s\"");
    let mut terminal = proxy.connect("visa", Framing::Be16);
    // More than one turn deals with, so that the connection is found broken before all of it was
    // read, and less than the system keeps for a process that stands still.
    let sales: Vec<_> = (1..=400).map(|stan| Message::sale(CARD, stan)).collect();
    for sale in &sales {
        terminal.send(&sale.encode());
        assert_eq!(&at_host.receive_message(), sale);
    }
    proxy.signal("STOP");
    // At once: what a reset finds unsent is lost.
    let wrap = |sale: &Message| Framing::Be16.wrap(&sale.answer("00").encode());
    at_host.send_raw(&sales.iter().flat_map(wrap).collect::<Vec<_>>());
    at_host.reset();
    // What is written next finds that nobody takes it.
    terminal.send(&Message::sale(CARD, 401).mti("0120").encode());
    proxy.signal("CONT");
    for sale in &sales {
        assert_eq!(terminal.receive_message(), sale.answer("00"));
    }
}

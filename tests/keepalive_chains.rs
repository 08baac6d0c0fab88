//! A tollgate before another one: both take part in keepalives on one connection, and neither must
//! drive the other.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tollgate::clock::{Clock, Moment};

use support::config;
use support::host::Host;
use support::message::Message;
use support::peer::{Framing, Peer};
use support::proxy::Proxy;

const KEEPALIVE: [u8; 2] = [0, 0];
/// How long the chain is left to itself.
const WINDOW: Duration = Duration::from_secs(5);
/// More than one a second in each direction, and far less than sockets could carry.
const FRAMES_MAX: usize = 20;

/// One direction of the connection between the two: passes everything on and counts keepalives.
struct Lane {
    keepalives: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Lane {
    /// A keepalive that nobody in the chain has sent is the first that passes.
    fn open(mut from: Peer, mut to: Peer) -> Self {
        let (keepalives, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, stopped) = (keepalives.clone(), stop.clone());
        to.send_raw(&KEEPALIVE);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                match from.receive_within(Duration::from_millis(50)) {
                    Some(Some(frame)) => {
                        count.fetch_add(usize::from(frame.is_empty()), Ordering::SeqCst);
                        to.send(&frame);
                    }
                    Some(None) => return,
                    None => {}
                }
            }
        });
        Self { keepalives, stop, thread }
    }

    /// How many keepalives have passed.
    fn close(self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
        self.keepalives.load(Ordering::SeqCst)
    }
}

/// What comes to this peer within `WINDOW`, which must be keepalives.
fn count_keepalives(peer: &mut Peer) -> usize {
    let clock = Clock::start();
    let mut came = 0;
    loop {
        let passed = clock.now().since(Moment::START);
        let Some(left) = WINDOW.checked_sub(passed).filter(|left| !left.is_zero()) else {
            return came;
        };
        if let Some(frame) = peer.receive_within(left) {
            assert_eq!(frame, Some(Vec::new()), "keepalives and nothing else");
            came += 1;
        }
    }
}

fn start(name: &str, host: &Host, keepalive: &str) -> Proxy {
    let keys = format!("deadline = \"50s\"\n{keepalive}");
    let link = config::link(name, host.address(), &keys, "connections = 1");
    Proxy::start(&format!("{}{link}", config::node("0s")))
}

/// Everybody sends one keepalive into the chain, and it is left to itself. Gives the most that
/// passed at one place.
#[track_caller]
fn chain(keepalive: &str) -> usize {
    let (between, host) = (Host::listen(Framing::Be16), Host::listen(Framing::Be16));
    let back = start("back", &host, keepalive);
    let front = start("front", &between, keepalive);
    let mut at_host = host.accept();
    let from_front = between.accept();
    let to_back = back.connect("back", Framing::Be16);
    for (proxy, name) in [(&front, "front"), (&back, "back")] {
        let labels = format!("link=\"{name}\",upstream=\"{name}-host\"");
        proxy.wait_for_metric(&format!("tollgate_upstream_up{{{labels}}}"), 1.0);
    }
    let mut terminal = front.connect("front", Framing::Be16);
    terminal.send_raw(&KEEPALIVE);
    at_host.send_raw(&KEEPALIVE);
    let lanes = [
        Lane::open(to_back.writing_half(), from_front.writing_half()),
        Lane::open(from_front, to_back),
    ];

    let before = [front.cpu(), back.cpu()];
    let at_terminal = std::thread::spawn(move || {
        let came = count_keepalives(&mut terminal);
        (terminal, came)
    });
    let to_host = count_keepalives(&mut at_host);
    let (mut terminal, to_terminal) = at_terminal.join().unwrap();
    for (proxy, before) in [&front, &back].into_iter().zip(before) {
        let used = proxy.cpu() - before;
        assert!(used < WINDOW / 20, "{used:?} of {WINDOW:?}");
    }
    let counted = [&front, &back].map(|proxy| {
        // One from outside and one from between.
        let counted = proxy.metric_sum("tollgate_keepalives_total", &[]);
        assert!((2.0..FRAMES_MAX as f64).contains(&counted), "{counted}");
        counted as usize
    });

    // The chain still carries messages, and nothing else came of all that.
    let sale = Message::sale("4111111111111111", 1);
    terminal.send(&sale.encode());
    let next = |peer: &mut Peer| {
        let mut frames = std::iter::repeat_with(|| peer.receive());
        frames.find(|frame| !frame.is_empty()).unwrap()
    };
    assert_eq!(next(&mut at_host), sale.encode());
    at_host.send(&sale.answer("00").encode());
    assert_eq!(next(&mut terminal), sale.answer("00").encode());
    for proxy in [&front, &back] {
        let messages = proxy.metric_sum("tollgate_decisions_total", &[]);
        assert_eq!(messages, 1.0, "a keepalive is no message");
    }
    let [to_front, to_back] = lanes.map(Lane::close);
    [to_terminal, to_host, to_front, to_back].into_iter().chain(counted).max().unwrap()
}

#[test]
fn two_that_ignore_keepalives_send_none() {
    // The two that each of them was sent.
    assert_eq!(chain(""), 2);
}

#[test]
fn two_that_answer_keepalives_do_not_drive_each_other() {
    let most = chain("keepalive = \"answer\"");
    assert!((2..FRAMES_MAX).contains(&most), "{most}");
}

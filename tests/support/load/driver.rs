//! The threads of a load: one that sends, and one at each node that reads its answers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tollgate::clock::{Clock, Moment};

use super::{Answer, Hop, Outcome, Shop, Template, Verdict};
use crate::support::message::Message;
use crate::support::peer::{Framing, Peer};
use crate::support::wait_for;

/// A node that says nothing for so long is not waited for by its reader.
const SILENCE: Duration = Duration::from_secs(3_600);
const STANS: u32 = 999_999;

/// A load at work. It ends when this is dropped.
pub struct Driver {
    shared: Arc<Shared>,
    sender: Option<JoinHandle<()>>,
}

struct Shared {
    clock: Clock,
    shops: Vec<Shop>,
    nodes: Vec<Node>,
    outcome: Mutex<Outcome>,
    stop: AtomicBool,
}

/// One node's place, whichever process is there.
#[derive(Default)]
struct Node {
    /// `None` while nobody is there.
    peer: Mutex<Option<Peer>>,
    awaited: Mutex<HashMap<u32, Awaited>>,
}

struct Awaited {
    shop: usize,
    due: Moment,
    sent: Moment,
}

impl Driver {
    /// Connects to all nodes and begins.
    #[track_caller]
    pub fn start(nodes: &[SocketAddr], shops: Vec<Shop>) -> Self {
        let sent = vec![0; shops.len()];
        let shared = Arc::new(Shared {
            clock: Clock::start(),
            shops,
            nodes: nodes.iter().map(|_| Node::default()).collect(),
            outcome: Mutex::new(Outcome { sent, ..Outcome::default() }),
            stop: AtomicBool::new(false),
        });
        let mut driver = Self { shared, sender: None };
        nodes.iter().enumerate().for_each(|(node, address)| driver.connect(node, *address));
        let shared = Arc::clone(&driver.shared);
        driver.sender = Some(std::thread::spawn(move || Sender::new(&shared).work()));
        driver
    }

    /// A node is there, or there again.
    #[track_caller]
    pub fn connect(&self, node: usize, address: SocketAddr) {
        let peer = Peer::connect(address, Framing::Be16);
        let reading = peer.writing_half();
        *self.shared.nodes[node].peer.lock().unwrap() = Some(peer);
        let shared = Arc::clone(&self.shared);
        std::thread::spawn(move || shared.read(node, reading));
    }

    /// A node is to be sent nothing more. What it owes may still come.
    pub fn avoid(&self, node: usize) {
        *self.shared.nodes[node].peer.lock().unwrap() = None;
    }

    /// The clock of all its moments.
    pub fn now(&self) -> Moment {
        self.shared.clock.now()
    }

    pub fn so_far(&self) -> Outcome {
        self.shared.outcome.lock().unwrap().clone()
    }

    /// Goes on for so long after its start, if everything is sent by then or not.
    pub fn until(&self, after: Duration) -> Moment {
        let end = Moment::START.after(after);
        while self.now() < end {
            std::thread::park_timeout(end.since(self.now()));
        }
        end
    }

    /// Sends nothing more, waits for what is owed and says what became of all.
    #[track_caller]
    pub fn stop(mut self) -> Outcome {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.finish_sending();
        self.settle()
    }

    /// Waits until all shops have sent what they have, and all is answered.
    #[track_caller]
    pub fn finish(mut self) -> Outcome {
        self.finish_sending();
        self.settle()
    }

    /// The same for a load that goes on for so long.
    #[track_caller]
    pub fn finish_after(self, after: Duration) -> Outcome {
        self.until(after);
        self.stop()
    }

    fn finish_sending(&mut self) {
        if let Some(sender) = self.sender.take() {
            sender.join().unwrap();
        }
    }

    /// A node that is not there owes nothing more.
    #[track_caller]
    fn settle(&self) -> Outcome {
        wait_for("every message is answered", || {
            let there = self.shared.nodes.iter().filter(|node| node.peer.lock().unwrap().is_some());
            let owed = there.map(|node| node.awaited.lock().unwrap().len());
            (owed.sum::<usize>() == 0).then_some(())
        });
        self.so_far()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Some(sender) = self.sender.take() {
            let _ = sender.join();
        }
        for node in &self.shared.nodes {
            if let Some(peer) = node.peer.lock().unwrap().take() {
                // Its reader ends.
                let _ = peer.stream.shutdown(std::net::Shutdown::Both);
            }
        }
    }
}

impl Shared {
    /// Reads a node's answers to their end.
    fn read(&self, node: usize, mut peer: Peer) {
        while let Some(Some(frame)) = peer.receive_within(SILENCE) {
            let came = self.clock.now();
            let stan = Message::peek(&frame, 11).expect("field 11").parse().unwrap();
            let verdict = match Message::peek(&frame, 39) {
                None | Some("00") => Verdict::Admitted,
                Some("91") => Verdict::Refused,
                Some(_) => Verdict::Other,
            };
            let awaited = self.nodes[node].awaited.lock().unwrap().remove(&stan);
            let Awaited { shop, due, sent } = awaited.expect("an answer to what was sent");
            let answer = Answer { shop, node, due, sent, came, verdict };
            self.outcome.lock().unwrap().answers.push(answer);
        }
        // Whoever is there in its place has been put there by now, or nobody is.
        let mut there = self.nodes[node].peer.lock().unwrap();
        let own = |there: &Peer| there.stream.local_addr().ok() == peer.stream.local_addr().ok();
        if there.as_ref().is_some_and(own) {
            *there = None;
        }
    }
}

/// The thread that sends.
struct Sender<'a> {
    shared: &'a Shared,
    templates: Vec<Template>,
    /// What is sent next by each shop: when, which shop, and how many messages it has sent.
    schedule: BinaryHeap<Reverse<(Moment, usize, usize)>>,
    stan: u32,
    /// What is to be written to each node.
    out: Vec<Vec<u8>>,
}

impl<'a> Sender<'a> {
    fn new(shared: &'a Shared) -> Self {
        // Templates are made before time begins to count.
        let templates: Vec<_> = shared.shops.iter().map(Shop::template).collect();
        let start = shared.clock.now();
        let first = shared.shops.iter().enumerate().filter(|(_, shop)| shop.count > 0);
        let first = first.map(|(number, shop)| Reverse((start.after(shop.from), number, 0)));
        let (schedule, out) = (first.collect(), vec![Vec::new(); shared.nodes.len()]);
        Self { shared, templates, schedule, stan: 0, out }
    }

    fn work(mut self) {
        while let Some(Reverse((due, ..))) = self.schedule.peek() {
            let due = *due;
            if self.shared.stop.load(Ordering::SeqCst) {
                return;
            }
            let now = self.shared.clock.now();
            if now < due {
                // It looks whether it is to stop every now and then.
                std::thread::park_timeout(due.since(now).min(Duration::from_millis(20)));
                continue;
            }
            while let Some(Reverse((due, shop, count))) = self.schedule.pop_if_due(now) {
                self.put(now, (due, shop, count));
                self.plan_next(due, shop, count + 1);
            }
            self.write();
        }
    }

    fn plan_next(&mut self, due: Moment, shop: usize, count: usize) {
        let Shop { every, count: all, .. } = self.shared.shops[shop];
        if count < all {
            self.schedule.push(Reverse((due.after(every), shop, count)));
        }
    }

    /// Puts a message to what is written to the node where its shop is.
    fn put(&mut self, now: Moment, (due, shop, count): (Moment, usize, usize)) {
        let mut outcome = self.shared.outcome.lock().unwrap();
        outcome.lateness = outcome.lateness.max(now.since(due));
        let Some(node) = self.place(due, shop, count) else {
            outcome.unsent += 1;
            return;
        };
        outcome.sent[shop] += 1;
        drop(outcome);
        self.stan = self.stan % STANS + 1;
        let awaited = Awaited { shop, due, sent: now };
        self.shared.nodes[node].awaited.lock().unwrap().insert(self.stan, awaited);
        self.templates[shop].write(self.stan, &mut self.out[node]);
    }

    /// The node of a message: where the shop would be, or the next one that is there.
    fn place(&self, due: Moment, shop: usize, count: usize) -> Option<usize> {
        let nodes = &self.shared.nodes;
        let first = match self.shared.shops[shop].hop {
            Hop::At(node) => node,
            Hop::Message => shop + count,
            Hop::Every(stay) => {
                let stays = due.since(Moment::START).as_nanos() / stay.as_nanos();
                shop + usize::try_from(stays).unwrap()
            }
        };
        let places = (first..first + nodes.len()).map(|place| place % nodes.len());
        places.into_iter().find(|place| nodes[*place].peer.lock().unwrap().is_some())
    }

    fn write(&mut self) {
        for (node, out) in self.shared.nodes.iter().zip(&mut self.out) {
            if out.is_empty() {
                continue;
            }
            let mut peer = node.peer.lock().unwrap();
            if peer.as_mut().is_some_and(|peer| peer.stream.write_all(out).is_err()) {
                *peer = None;
            }
            out.clear();
        }
    }
}

/// A queue by time.
trait Due {
    type Item;

    fn pop_if_due(&mut self, now: Moment) -> Option<Self::Item>;
}

impl Due for BinaryHeap<Reverse<(Moment, usize, usize)>> {
    type Item = Reverse<(Moment, usize, usize)>;

    fn pop_if_due(&mut self, now: Moment) -> Option<Self::Item> {
        let is_due = self.peek().is_some_and(|Reverse((due, ..))| *due <= now);
        if is_due { self.pop() } else { None }
    }
}

//! Eight nodes, each the product's own policy and sync, in real time.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fastrand::Rng;
use redis::{Connection, Value};
use tollgate::clock::{Clock, Moment};
use tollgate::limits::{Burst, Per, Policy, Rate, Rule, Terms};
use tollgate::quota::protocol::{Low, NodeId};
use tollgate::quota::redis::script::Script;
use tollgate::quota::sync::{Outgoing, Settings, Sync};
use tollgate::traffic::{Class, LinkId, MerchantId, Operation, Traffic};

use crate::info::Spent;
use crate::server::RedisServer;

const NODES: u64 = 8;
const KEYS: usize = 10_000;
const REQUESTS_PER_SECOND: f64 = 5_000.0;

/// Nodes and keys are known by then.
const WARM_UP: Duration = Duration::from_secs(3);
const LASTING: Duration = Duration::from_secs(10);

/// How much busier the first keys are than the last ones: the n-th has 1 / n^0.6 of the first.
const FALLING: f64 = 0.6;

/// What happened while it was counted.
#[derive(Debug, Default)]
struct Counts {
    requests: u64,
    refused: u64,
    calls: u64,
    keys: u64,
    lows: u64,
    /// Of every call, in microseconds.
    round_trips: Vec<u64>,
}

struct Node {
    policy: Arc<Policy>,
    sync: Sync,
    news: Receiver<Vec<Low>>,
}

pub(crate) fn print_table() {
    let server = RedisServer::start();
    let (clock, mut connection) = (Clock::start(), server.connect());
    let script = Script::new("bench", false);
    let (mut nodes, listeners): (Vec<_>, Vec<_>) =
        (0..NODES).map(|id| node(id, &server, &script, clock.now())).unzip();
    let load = tollgate::quota::redis::script::SOURCE;
    let _sha1: String = redis::cmd("SCRIPT").arg("LOAD").arg(load).query(&mut connection).unwrap();
    let mut world =
        World { clock, script, connection, traffic: traffic(), random: Rng::with_seed(7) };
    world.play(&mut nodes, WARM_UP);
    let before = Spent::of(&mut world.connection);
    let counts = world.play(&mut nodes, LASTING);
    let spent = Spent::of(&mut world.connection).since(before);
    drop(server);
    listeners.into_iter().for_each(|listener| listener.join().unwrap());
    print(counts, spent);
}

fn print(mut counts: Counts, spent: Spent) {
    let Counts { requests, refused, calls, keys, lows, .. } = counts;
    let seconds = LASTING.as_secs_f64();
    counts.round_trips.sort_unstable();
    let round_trip = |part: usize| counts.round_trips[counts.round_trips.len() * part / 100];
    println!("{NODES} nodes, {KEYS} keys, {REQUESTS_PER_SECOND} requests/s for {seconds} s\n");
    println!("| what | |");
    println!("| --- | ---: |");
    println!("| requests/s | {:.0} |", requests as f64 / seconds);
    println!("| refused | {:.2} % |", refused as f64 * 100.0 / requests as f64);
    println!("| key-syncs/s | {:.0} |", keys as f64 / seconds);
    println!("| key-syncs per request | {:.2} |", keys as f64 / requests as f64);
    println!("| calls/s of each node | {:.0} |", calls as f64 / seconds / NODES as f64);
    println!("| keys in a call | {:.1} |", keys as f64 / calls as f64);
    println!("| lows heard/s by each node | {:.0} |", lows as f64 / seconds / NODES as f64);
    println!(
        "| script per call, per key | {:.0} us, {:.1} us |",
        spent.script_us / calls as f64,
        spent.script_us / keys as f64
    );
    println!("| of one core, script | {:.1} % |", spent.script_us / seconds / 1e4);
    println!("| of one core, whole Redis | {:.1} % |", spent.cpu_us / seconds / 1e4);
    println!("| round trip, median and 99 % | {} us, {} us |", round_trip(50), round_trip(99));
}

/// A node and the thread that listens for it.
fn node(id: u64, server: &RedisServer, script: &Script, now: Moment) -> (Node, JoinHandle<()>) {
    let (rate, burst) = (Rate::per_second(25.0).unwrap(), Burst::tokens(50.0).unwrap());
    let rule = Rule { keys_max: 2 * KEYS, ..Rule::new("merchant", Per::MERCHANT, rate, burst) };
    let policy = Policy::leased(&[rule], &[], Terms::default(), 1, id, now).unwrap();
    let policy = Arc::new(policy);
    let sync = Sync::new(Settings::default(), NodeId(id), id, Arc::clone(&policy), now);
    let (told, news) = channel();
    let (mut connection, script) = (server.connect(), script.clone());
    connection.set_read_timeout(None).unwrap();
    let listener = thread::spawn(move || {
        let mut listener = connection.as_pubsub();
        listener.subscribe(script.channel(0)).unwrap();
        while let Ok(message) = listener.get_message() {
            let (from, lows) = script.read_news(message.get_payload_bytes()).unwrap();
            // Who no longer listens has ended.
            if from != NodeId(id) && told.send(lows).is_err() {
                break;
            }
        }
    });
    (Node { policy, sync, news }, listener)
}

/// A request of each key, and how many of a request's chances lie before it.
fn traffic() -> Vec<(f64, Traffic)> {
    let mut before = 0.0;
    let traffic = (1..=KEYS).map(|number| {
        before += (number as f64).powf(-FALLING);
        let merchant = MerchantId::new(b"123456", format!("SHOP{number:08}   ").as_bytes());
        let traffic = Traffic::new(LinkId(0), Class::Standard, Operation::Purchase);
        (before, Traffic { merchant, ..traffic })
    });
    traffic.collect()
}

struct World {
    clock: Clock,
    script: Script,
    connection: Connection,
    traffic: Vec<(f64, Traffic)>,
    random: Rng,
}

impl World {
    fn play(&mut self, nodes: &mut [Node], lasting: Duration) -> Counts {
        let mut counts = Counts::default();
        let end = self.clock.now().after(lasting);
        let mut request_at = self.clock.now();
        loop {
            let now = self.clock.now();
            if now >= end {
                return counts;
            }
            while request_at <= now {
                request_at = request_at.after(self.gap());
                self.request(nodes, now, &mut counts);
            }
            for node in nodes.iter_mut() {
                self.turn(node, &mut counts);
            }
            let dues = nodes.iter().map(|node| node.sync.due());
            let next = dues.fold(request_at, Moment::min);
            thread::sleep(next.since(self.clock.now()));
        }
    }

    fn gap(&mut self) -> Duration {
        Duration::from_secs_f64(-(1.0 - self.random.f64()).ln() / REQUESTS_PER_SECOND)
    }

    fn request(&mut self, nodes: &[Node], now: Moment, counts: &mut Counts) {
        let Node { policy, .. } = self.random.choice(nodes).unwrap();
        let chance = self.random.f64() * self.traffic[KEYS - 1].0;
        let at = self.traffic.partition_point(|(before, _)| *before < chance);
        let _turn = policy.turn(0);
        let decision = policy.decide(&self.traffic[at].1, now);
        counts.requests += 1;
        counts.refused += u64::from(decision.refused_by.is_some());
    }

    fn turn(&mut self, node: &mut Node, counts: &mut Counts) {
        while let Ok(lows) = node.news.try_recv() {
            counts.lows += lows.len() as u64;
            node.sync.hear(self.clock.now(), &lows);
        }
        if node.policy.wants_sync() {
            node.sync.urge(self.clock.now());
        }
        if node.sync.due() > self.clock.now() {
            return;
        }
        let mut out = Vec::new();
        node.sync.turn(self.clock.now(), &mut out);
        for Outgoing { number, shard, call } in out {
            let sent_at = self.clock.now();
            let answer: Value = self.script.call(shard, &call).query(&mut self.connection).unwrap();
            let reply = self.script.read(&answer, call.reports.len()).unwrap();
            let now = self.clock.now();
            node.sync.answer(now, number, &reply);
            counts.calls += 1;
            counts.keys += call.reports.len() as u64;
            counts.round_trips.push(now.since(sent_at).as_micros() as u64);
        }
    }
}

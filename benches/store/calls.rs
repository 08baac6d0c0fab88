//! One call at a time, of four nodes in turn, on ten thousand keys.

use std::thread;

use redis::{Connection, Value};
use tollgate::limits::StoreKey;
use tollgate::quota::protocol::{Call, NodeId, Report, Since};
use tollgate::quota::redis::script::Script;

use crate::info::Spent;
use crate::server::RedisServer;

const TOKEN: i64 = 1_000_000;
const KEYS: u64 = 10_000;
const NODES: u64 = 4;
const CALLS: u64 = 400;

/// Of so many, the one that was disturbed least is printed.
const ROUNDS: usize = 9;

const KEYS_OF_A_CALL: [u64; 5] = [0, 1, 3, 10, 50];

#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    /// Every report leaves its key low.
    is_low: bool,
    push: bool,
    subscribers: usize,
}

const LOADS: [Load; 4] = [
    Load { name: "ample", is_low: false, push: true, subscribers: 0 },
    Load { name: "all low", is_low: true, push: false, subscribers: 0 },
    Load { name: "all low, published", is_low: true, push: true, subscribers: 0 },
    Load { name: "all low, 4 subscribers", is_low: true, push: true, subscribers: 4 },
];

pub(crate) fn print_table() {
    println!("microseconds of Redis: script (whole server), per call and per key\n");
    println!("| keys in the call | {} |", LOADS.map(|load| load.name).join(" | "));
    println!("| ---: |{}", " --- |".repeat(LOADS.len()));
    let columns = LOADS.map(column);
    for (row, keys) in KEYS_OF_A_CALL.into_iter().enumerate() {
        let cells = columns.iter().map(|column| cell(column[row], keys));
        println!("| {keys} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    println!();
}

fn cell(Spent { script_us, cpu_us }: Spent, keys: u64) -> String {
    let per_call = format!("{script_us:.0} ({cpu_us:.0})");
    if keys == 0 {
        return per_call;
    }
    let per_key = |us: f64| us / keys as f64;
    format!("{per_call}; {:.1} ({:.1})", per_key(script_us), per_key(cpu_us))
}

/// What a call costs with each number of keys.
fn column(load: Load) -> [Spent; KEYS_OF_A_CALL.len()] {
    let server = RedisServer::start();
    let channel = Script::new("bench", false).channel(0);
    let listeners: Vec<_> = (0..load.subscribers)
        .map(|_| {
            let (mut connection, channel) = (server.connect(), channel.clone());
            connection.set_read_timeout(None).unwrap();
            thread::spawn(move || {
                let mut listener = connection.as_pubsub();
                listener.subscribe(channel).unwrap();
                while listener.get_message().is_ok() {}
            })
        })
        .collect();
    let mut caller = Caller::new(server.connect(), load);
    let column = KEYS_OF_A_CALL.map(|keys| caller.cost(keys));
    drop(server);
    listeners.into_iter().for_each(|listener| listener.join().unwrap());
    column
}

struct Caller {
    connection: Connection,
    script: Script,
    load: Load,
    since: [Since; NODES as usize],
    /// The key that is reported next, and how often each has been reported.
    next: u64,
    spent: Vec<i64>,
}

impl Caller {
    fn new(mut connection: Connection, load: Load) -> Self {
        let script = Script::new("bench", false);
        let known = script.load_and_call(0, &call(0, Since::default(), load, Vec::new()));
        known.exec(&mut connection).unwrap();
        let (since, spent) = ([Since::default(); NODES as usize], vec![0; KEYS as usize]);
        let mut caller = Self { connection, script, load, since, next: 0, spent };
        // Every node has a row in every key.
        (0..KEYS / 50 * NODES).for_each(|number| caller.call(number / (KEYS / 50), 50));
        caller
    }

    fn cost(&mut self, keys: u64) -> Spent {
        let rounds: Vec<_> = (0..ROUNDS)
            .map(|_| {
                let before = Spent::of(&mut self.connection);
                (0..CALLS).for_each(|number| self.call(number, keys));
                Spent::of(&mut self.connection).since(before)
            })
            .collect();
        let least = |us: fn(&Spent) -> f64| {
            rounds.iter().map(us).fold(f64::INFINITY, f64::min) / CALLS as f64
        };
        Spent { script_us: least(|it| it.script_us), cpu_us: least(|it| it.cpu_us) }
    }

    fn call(&mut self, number: u64, keys: u64) {
        let node = number % NODES;
        let reports = (0..keys).map(|_| self.report()).collect();
        let said = call(node, self.since[node as usize], self.load, reports);
        let answer: Value = self.script.call(0, &said).query(&mut self.connection).unwrap();
        let reply = self.script.read(&answer, said.reports.len()).unwrap();
        assert!(reply.leases.iter().all(Option::is_some));
        self.since[node as usize] = reply.since;
    }

    /// Of one token that was spent since the last report.
    fn report(&mut self) -> Report {
        let number = self.next;
        self.next = (self.next + 1) % KEYS;
        let spent = &mut self.spent[number as usize];
        *spent += TOKEN;
        let (rate, cap) = if self.load.is_low { (1e6, 4 * TOKEN) } else { (1e12, 4_000 * TOKEN) };
        Report {
            key: StoreKey { limit: 1, id: [number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number] },
            rate,
            cap,
            boot: 1,
            spent: *spent,
            charged: *spent - TOKEN,
            level: if self.load.is_low { 0 } else { cap },
            local: false,
        }
    }
}

fn call(node: u64, since: Since, load: Load, reports: Vec<Report>) -> Call {
    Call {
        node: NodeId(node),
        elapsed_us: Some(1_000),
        since,
        push: load.push,
        leave: false,
        reports,
    }
}

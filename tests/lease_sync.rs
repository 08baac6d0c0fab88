//! What the lease sync promises whatever becomes of its messages: seeded runs in which calls are
//! lost, repeated, overtaken and answered late, keys are pushed low, and cells are evicted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tollgate::clock::Moment;
use tollgate::limits::{Burst, LimitIx, Per, Place, Policy, Rate, Rule, StoreKey, Terms};
use tollgate::quota::protocol::{Low, NodeId, Reply, Store};
use tollgate::quota::sync::{Known, Outgoing, Settings, Standing, Sync};
use tollgate::traffic::{Class, LinkId, MerchantId, Operation, Traffic};

const TOKEN: i64 = 1_000_000;
const CAP: i64 = 50 * TOKEN;
const SHOPS: usize = 3;
const LIMIT: LimitIx = LimitIx(0);
const MS: Duration = Duration::from_millis(1);

fn shop(number: usize) -> Traffic {
    Traffic {
        merchant: MerchantId::new(b"123456", format!("SHOP{number}").as_bytes()),
        ..Traffic::new(LinkId(0), Class::Standard, Operation::Purchase)
    }
}

fn rule(rate: f64, burst: f64, keys_max: usize) -> Rule {
    let (rate, burst) = (Rate::per_second(rate).unwrap(), Burst::tokens(burst).unwrap());
    Rule { keys_max, ..Rule::new("merchant", Per::MERCHANT, rate, burst) }
}

/// One node, and what its gates have admitted.
struct Node {
    policy: Arc<Policy>,
    sync: Sync,
    id: NodeId,
    admitted: BTreeMap<usize, i64>,
    /// Charged without asking, which no hold keeps back.
    charged: i64,
    /// The fewest live nodes that the store has counted for it.
    fewest: u32,
    answers: Vec<(u64, Reply)>,
}

impl Node {
    fn new(number: u64, rule: &Rule, now: Moment) -> Self {
        let rules = std::slice::from_ref(rule);
        let policy = Policy::leased(rules, &[], Terms::default(), 1, number, now).unwrap();
        let policy = Arc::new(policy);
        let id = NodeId(number);
        let sync = Sync::new(Settings::default(), id, number, Arc::clone(&policy), now);
        Self {
            policy,
            sync,
            id,
            admitted: BTreeMap::new(),
            charged: 0,
            fewest: u32::MAX,
            answers: Vec::new(),
        }
    }

    fn place(&self, number: usize) -> Option<Place> {
        let _turn = self.policy.turn(0);
        self.policy.leased_place(LIMIT, &shop(number))
    }

    fn known(&self, number: usize, now: Moment) -> Option<Known> {
        self.sync.look(self.place(number)?, now)
    }

    fn spend(&mut self, number: usize, protected: bool, now: Moment) -> bool {
        let turn = self.policy.turn(0);
        let admitted = if protected {
            self.charged += TOKEN;
            self.policy.charge(&shop(number), now).forgiven.is_empty()
        } else {
            self.policy.decide(&shop(number), now).refused_by.is_none()
        };
        drop(turn);
        if admitted {
            *self.admitted.entry(number).or_default() += TOKEN;
        }
        if self.policy.wants_sync() {
            self.sync.urge(now);
        }
        admitted
    }

    fn store_key(&self, number: usize) -> Option<StoreKey> {
        Some(self.policy.leased_cell(self.place(number)?)?.key)
    }
}

/// A few nodes, one store, and calls that are somewhere in between.
struct Cluster {
    rng: Rng,
    now: Moment,
    nodes: Vec<Node>,
    store: Store,
    calls: Vec<(usize, Outgoing)>,
    /// Admissions that were held to their lease's hold.
    held_to: usize,
}

impl Cluster {
    fn new(seed: u64, rule: &Rule) -> Self {
        let now = Moment::from_nanos(1_000_000_000);
        let nodes = (1..=3).map(|number| Node::new(number, rule, now)).collect();
        Self {
            rng: Rng::with_seed(seed),
            now,
            nodes,
            store: Store::new(),
            calls: Vec::new(),
            held_to: 0,
        }
    }

    fn wall_us(&self) -> u64 {
        self.now.nanos() / 1_000
    }

    fn turn(&mut self, at: usize) {
        let mut out = Vec::new();
        self.nodes[at].sync.turn(self.now, &mut out);
        self.calls.extend(out.into_iter().map(|call| (at, call)));
    }

    /// A call reaches the store, and its answer is on its way back.
    fn serve(&mut self, index: usize, keep: bool) {
        let (at, outgoing) =
            if keep { self.calls[index].clone() } else { self.calls.swap_remove(index) };
        let answer = self.store.call(&outgoing.call, self.wall_us());
        self.nodes[at].answers.push((outgoing.number, answer.reply));
        for other in (0..self.nodes.len()).filter(|other| *other != at) {
            if !answer.push.is_empty() && self.rng.bool() {
                self.push(other, &answer.push);
            }
        }
    }

    /// A push raises no level.
    fn push(&mut self, at: usize, lows: &[Low]) {
        let (now, node) = (self.now, &mut self.nodes[at]);
        let before: Vec<_> = (0..SHOPS).map(|shop| node.known(shop, now)).collect();
        node.sync.hear(now, lows);
        for (shop, before) in before.into_iter().enumerate() {
            let after = node.known(shop, now);
            if let (Some(before), Some(after)) = (before, after) {
                assert!(after.level <= before.level, "a push raised {before:?} to {after:?}");
            }
        }
    }

    fn answer(&mut self, at: usize, index: usize) {
        let (number, reply) = self.nodes[at].answers.swap_remove(index);
        self.nodes[at].sync.answer(self.now, number, &reply);
    }

    fn step(&mut self) {
        let at = self.rng.usize(..self.nodes.len());
        match self.rng.u8(..16) {
            0..6 => self.spend(at),
            6..9 => self.now = self.now.after(MS * self.rng.u32(1..20)),
            9..11 => self.turn(at),
            11..13 if !self.calls.is_empty() => {
                let index = self.rng.usize(..self.calls.len());
                // One in eight comes a second time.
                let keep = self.rng.u8(..8) == 0;
                self.serve(index, keep);
            }
            13 if !self.calls.is_empty() => {
                let index = self.rng.usize(..self.calls.len());
                self.calls.swap_remove(index);
            }
            _ if !self.nodes[at].answers.is_empty() => {
                let index = self.rng.usize(..self.nodes[at].answers.len());
                self.answer(at, index);
            }
            _ => self.turn(at),
        }
    }

    /// Every call of the first node is answered at once; notes what each incarnation has reported.
    fn deliver(&mut self, reported: &mut BTreeMap<u64, i64>) {
        while let Some((_, outgoing)) = self.calls.pop() {
            for report in &outgoing.call.reports {
                let most = reported.entry(report.boot).or_insert(0);
                *most = report.spent.max(*most);
            }
            let reply = self.store.call(&outgoing.call, self.wall_us()).reply;
            self.nodes[0].sync.answer(self.now, outgoing.number, &reply);
        }
    }

    /// A gate decides; while the lease is valid it goes no further than its hold.
    fn spend(&mut self, at: usize) {
        let (shop, protected) = (self.rng.usize(..SHOPS), self.rng.u8(..12) == 0);
        let (now, node) = (self.now, &mut self.nodes[at]);
        let admitted = node.spend(shop, protected, now);
        let leases = node.policy.leases();
        node.fewest = node.fewest.min(leases.nodes());
        let known = node.known(shop, now).unwrap();
        if admitted && !protected && leases.is_valid(now) && known.standing != Standing::Local {
            let hold = (CAP / i64::from(node.fewest)).max(8 * TOKEN);
            assert!(known.unreported <= hold + node.charged, "{known:?}");
            self.held_to += 1;
        }
    }

    /// Everything arrives, and nothing is under way any more.
    fn come_to_rest(&mut self) {
        for _ in 0..40 {
            self.now = self.now.after(MS * 30);
            for at in 0..self.nodes.len() {
                self.turn(at);
            }
            while !self.calls.is_empty() {
                self.serve(0, false);
            }
            for at in 0..self.nodes.len() {
                while !self.nodes[at].answers.is_empty() {
                    self.answer(at, 0);
                }
            }
        }
    }
}

#[test]
fn every_admission_is_charged_in_the_end_and_none_twice_and_none_goes_beyond_its_hold() {
    let (mut compared, mut held_to) = (0, 0);
    for seed in 0..400 {
        let mut cluster = Cluster::new(seed, &rule(25.0, 50.0, 100));
        cluster.come_to_rest();
        for _ in 0..600 {
            cluster.step();
            for node in &cluster.nodes {
                for (shop, admitted) in &node.admitted {
                    let Some(key) = node.store_key(*shop) else { continue };
                    let row = cluster.store.rows(key).find(|(of, _)| *of == node.id);
                    assert!(row.is_none_or(|(_, row)| row.spent <= *admitted), "seed {seed}");
                }
            }
        }
        held_to += cluster.held_to;
        cluster.come_to_rest();
        for node in &cluster.nodes {
            for (shop, admitted) in &node.admitted {
                let key = node.store_key(*shop).unwrap();
                let row = cluster.store.rows(key).find(|(of, _)| *of == node.id);
                assert_eq!(row.map_or(0, |(_, row)| row.spent), *admitted, "seed {seed}");
                let known = node.known(*shop, cluster.now).unwrap();
                assert_eq!((known.unreported, known.standing), (0, Standing::Leased));
                compared += 1;
            }
        }
    }
    assert!(compared > 3_000, "{compared} keys were compared");
    assert!(held_to > 10_000, "{held_to} admissions were held to a lease");
}

#[test]
fn an_answer_older_than_the_newest_report_has_no_effect() {
    let mut seen = 0;
    for seed in 0..200 {
        let mut cluster = Cluster::new(seed, &rule(25.0, 50.0, 100));
        let mut old = Vec::new();
        for _ in 0..300 {
            cluster.step();
            for at in 0..cluster.nodes.len() {
                old.extend(cluster.nodes[at].answers.iter().map(|answer| (at, answer.clone())));
            }
            // Whatever was answered or given up is out of date.
            let Some((at, (number, reply))) = old.pop() else { continue };
            let (now, node) = (cluster.now, &mut cluster.nodes[at]);
            if node.answers.iter().any(|(waiting, _)| *waiting == number) {
                continue;
            }
            let picture = |node: &Node| {
                let keys = (0..SHOPS).map(|shop| node.known(shop, now)).collect::<Vec<_>>();
                (keys, node.policy.leases().valid_until(), node.policy.leases().nodes())
            };
            let before = picture(node);
            node.sync.answer(now, number, &reply);
            assert_eq!(picture(node), before, "seed {seed}");
            seen += 1;
        }
    }
    assert!(seen > 5_000, "{seen} old answers were seen");
}

#[test]
fn a_key_that_comes_back_after_its_eviction_is_charged_from_its_first_token() {
    let rule = rule(1_000.0, 2.0, 1);
    let mut cluster = Cluster::new(1, &rule);
    let mut shops = [0; 2];
    for round in 0..200 {
        let number = round % 2;
        if cluster.nodes[0].spend(number, false, cluster.now) {
            shops[number] += 1;
        }
        // Longer than an idle key is kept while the table is full.
        for _ in 0..40 {
            cluster.now = cluster.now.after(MS * 100);
            cluster.turn(0);
            while !cluster.calls.is_empty() {
                cluster.serve(0, false);
            }
            while !cluster.nodes[0].answers.is_empty() {
                cluster.answer(0, 0);
            }
        }
    }
    assert_eq!(shops, [100, 100]);
    let tally = cluster.nodes[0].sync.tally();
    // Each was reported at least once in each of its lives, and none shared a bucket.
    assert!(tally.reported >= 200, "{tally:?}");
    assert_eq!(cluster.nodes[0].policy.overflowed(LIMIT), 0);
}

/// New keys come faster than resting ones may go, for ever.
#[test]
fn a_spray_of_keys_that_never_stops_loses_no_spending() {
    let mut cluster = Cluster::new(1, &rule(1_000_000.0, 1_000_000.0, 1_000));
    let (mut admitted, mut reported) = (0, BTreeMap::new());
    for number in 0..100_000 {
        let node = &mut cluster.nodes[0];
        // Every third comes back while it may still have its cell.
        let number = if number % 3 == 0 { number / 2 } else { number };
        admitted += i64::from(node.spend(number, false, cluster.now));
        if cluster.rng.u8(..50) == 0 {
            cluster.now = cluster.now.after(MS * cluster.rng.u32(1..120));
            cluster.turn(0);
        }
        cluster.deliver(&mut reported);
        assert!(cluster.nodes[0].policy.keys_in_use(LIMIT) <= 1_000);
    }
    for _ in 0..20 {
        cluster.now = cluster.now.after(MS * 60);
        cluster.turn(0);
        cluster.deliver(&mut reported);
    }
    // Keys without a cell share the buckets of a full table, which are this node's own.
    let shared = cluster.nodes[0].policy.overflowed(LIMIT) as i64;
    assert_eq!(reported.values().sum::<i64>() / TOKEN + shared, admitted);
    assert!(shared > 1_000 && reported.len() > 10_000, "{shared} {}", reported.len());
}

#[test]
fn while_the_store_is_lost_a_full_table_gives_back_keys_that_rest() {
    let mut cluster = Cluster::new(1, &rule(1_000.0, 5.0, 100));
    cluster.come_to_rest();
    // A new key every 50 ms: ten times as many as there is room for.
    for number in 0..1_000 {
        assert!(cluster.nodes[0].spend(number, false, cluster.now));
        cluster.now = cluster.now.after(MS * 50);
        cluster.turn(0);
        cluster.calls.clear();
    }
    assert_eq!(cluster.nodes[0].policy.overflowed(LIMIT), 0);
    assert!(!cluster.nodes[0].policy.leases().is_valid(cluster.now));
}

#[test]
fn a_lost_store_is_noticed_by_the_end_of_the_lease_and_its_return_by_the_next_answer() {
    let mut cluster = Cluster::new(7, &rule(25.0, 50.0, 100));
    cluster.come_to_rest();
    assert!(cluster.nodes[0].spend(0, false, cluster.now));
    cluster.come_to_rest();
    let heard = cluster.nodes[0].policy.leases().valid_until();
    // Calls go nowhere.
    for _ in 0..20 {
        cluster.now = cluster.now.after(MS * 50);
        cluster.nodes[0].spend(0, false, cluster.now);
        cluster.turn(0);
        cluster.calls.clear();
    }
    let node = &cluster.nodes[0];
    assert_eq!(node.policy.leases().valid_until(), heard);
    assert_eq!(node.known(0, cluster.now).unwrap().standing, Standing::Local);
    assert!(node.sync.tally().answered_locally > 0 && node.sync.tally().failed > 0);
    cluster.come_to_rest();
    let known = cluster.nodes[0].known(0, cluster.now).unwrap();
    assert_eq!((known.standing, known.unreported), (Standing::Leased, 0));
}

#[test]
fn a_node_that_leaves_says_all_and_is_counted_no_more() {
    let mut cluster = Cluster::new(3, &rule(25.0, 50.0, 100));
    cluster.come_to_rest();
    assert!(cluster.nodes[0].spend(1, false, cluster.now));
    let mut out = Vec::new();
    cluster.nodes[0].sync.leave(cluster.now, &mut out);
    assert_eq!(out.iter().map(|outgoing| outgoing.call.reports.len()).sum::<usize>(), 1);
    assert!(out.last().unwrap().call.leave);
    let mut nodes = 0;
    for outgoing in &out {
        nodes = cluster.store.call(&outgoing.call, cluster.wall_us()).reply.nodes;
    }
    assert_eq!(nodes, 2);
    let key = cluster.nodes[0].store_key(1).unwrap();
    assert_eq!(cluster.store.rows(key).next().unwrap().1.spent, TOKEN);
}

//! What the lease sync promises whatever becomes of its messages: seeded runs in which calls are
//! lost, repeated, overtaken and answered late, keys are pushed low, and cells are evicted. And what
//! becomes of the others while a shard of the store is lost, or cannot keep a key.
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
use tollgate::quota::protocol::{Answer, Low, NodeId, Reply, Row, Store};
use tollgate::quota::sync::{Known, Outgoing, Settings, Standing, Sync};
use tollgate::traffic::{Class, LinkId, MerchantId, Operation, Traffic};

const TOKEN: i64 = 1_000_000;
const CAP: i64 = 50 * TOKEN;
const SHOPS: usize = 4;
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

/// Every other seed has a store in several shards.
const fn shards_of(seed: u64) -> u16 {
    if seed.is_multiple_of(2) { 1 } else { 3 }
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
    fn new(number: u64, rule: &Rule, shards: u16, now: Moment) -> Self {
        let rules = std::slice::from_ref(rule);
        let policy = Policy::leased(rules, &[], Terms::default(), 1, number, now).unwrap();
        let policy = Arc::new(policy);
        let id = NodeId(number);
        let settings = Settings { shards, ..Settings::default() };
        let sync = Sync::new(settings, id, number, Arc::clone(&policy), now);
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

    /// The shard that keeps a shop's key.
    fn shard(&self, number: usize) -> u16 {
        let key = self.policy.store_key(LIMIT, &shop(number)).unwrap();
        key.shard(self.policy.leases().shards())
    }

    fn is_leased(&self, number: usize, now: Moment) -> bool {
        self.policy.leases().is_shard_valid(self.shard(number), now)
    }

    fn answer(&mut self, now: Moment, number: u64, reply: &Reply) {
        self.sync.answer(now, number, reply);
        self.fewest = self.fewest.min(self.policy.leases().nodes());
    }

    fn store_key(&self, number: usize) -> Option<StoreKey> {
        Some(self.policy.leased_cell(self.place(number)?)?.key)
    }
}

/// A few nodes, one store in one shard or several, and calls that are somewhere in between.
struct Cluster {
    rng: Rng,
    now: Moment,
    nodes: Vec<Node>,
    shards: Vec<Store>,
    calls: Vec<(usize, Outgoing)>,
    /// Admissions that were held to their lease's hold.
    held_to: usize,
}

impl Cluster {
    fn new(seed: u64, rule: &Rule, shards: u16) -> Self {
        let now = Moment::from_nanos(1_000_000_000);
        let nodes = (1..=3).map(|number| Node::new(number, rule, shards, now)).collect();
        Self {
            rng: Rng::with_seed(seed),
            now,
            nodes,
            shards: vec![Store::new(); usize::from(shards)],
            calls: Vec::new(),
            held_to: 0,
        }
    }

    fn wall_us(&self) -> u64 {
        self.now.nanos() / 1_000
    }

    /// A call reaches its shard, which keeps every key that it is told of.
    fn call(&mut self, outgoing: &Outgoing) -> Answer {
        let shards = u16::try_from(self.shards.len()).unwrap();
        for report in &outgoing.call.reports {
            assert_eq!(report.key.shard(shards), outgoing.shard);
        }
        let wall_us = self.wall_us();
        self.shards[usize::from(outgoing.shard)].call(&outgoing.call, wall_us)
    }

    /// What the store holds of a key of a node.
    fn row(&self, node: &Node, key: StoreKey) -> Option<Row> {
        let shards = u16::try_from(self.shards.len()).unwrap();
        let mut rows = self.shards[usize::from(key.shard(shards))].rows(key);
        rows.find(|(of, _)| *of == node.id).map(|(_, row)| row)
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
        let answer = self.call(&outgoing);
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
        self.nodes[at].answer(self.now, number, &reply);
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
            let reply = self.call(&outgoing).reply;
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
        let is_leased = node.is_leased(shop, now) && known.standing != Standing::Local;
        if admitted && !protected && is_leased {
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
        let mut cluster = Cluster::new(seed, &rule(25.0, 50.0, 100), shards_of(seed));
        cluster.come_to_rest();
        for _ in 0..600 {
            cluster.step();
            for node in &cluster.nodes {
                for (shop, admitted) in &node.admitted {
                    let Some(key) = node.store_key(*shop) else { continue };
                    let row = cluster.row(node, key);
                    assert!(row.is_none_or(|row| row.spent <= *admitted), "seed {seed}");
                }
            }
        }
        held_to += cluster.held_to;
        cluster.come_to_rest();
        for node in &cluster.nodes {
            for (shop, admitted) in &node.admitted {
                let key = node.store_key(*shop).unwrap();
                let row = cluster.row(node, key);
                assert_eq!(row.map_or(0, |row| row.spent), *admitted, "seed {seed}");
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
        let mut cluster = Cluster::new(seed, &rule(25.0, 50.0, 100), shards_of(seed));
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
                let leases = node.policy.leases();
                let until = (0..3).map(|shard| leases.shard_valid_until(shard)).collect::<Vec<_>>();
                (keys, until, leases.valid_until(), leases.nodes())
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
    let mut cluster = Cluster::new(1, &rule, 1);
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
    let mut cluster = Cluster::new(1, &rule(1_000_000.0, 1_000_000.0, 1_000), 1);
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
    let mut cluster = Cluster::new(1, &rule(1_000.0, 5.0, 100), 1);
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
    let mut cluster = Cluster::new(7, &rule(25.0, 50.0, 100), 1);
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
    let mut cluster = Cluster::new(3, &rule(25.0, 50.0, 100), 1);
    cluster.come_to_rest();
    assert!(cluster.nodes[0].spend(1, false, cluster.now));
    let mut out = Vec::new();
    cluster.nodes[0].sync.leave(cluster.now, &mut out);
    assert_eq!(out.iter().map(|outgoing| outgoing.call.reports.len()).sum::<usize>(), 1);
    assert!(out.last().unwrap().call.leave);
    let mut nodes = 0;
    for outgoing in &out {
        nodes = cluster.call(outgoing).reply.nodes;
    }
    assert_eq!(nodes, 2);
    let key = cluster.nodes[0].store_key(1).unwrap();
    assert_eq!(cluster.row(&cluster.nodes[0], key).unwrap().spent, TOKEN);
}

/// A cluster whose store has eight shards, all of them heard.
fn in_eight_shards() -> Cluster {
    let mut cluster = Cluster::new(5, &rule(25.0, 50.0, 100), 8);
    cluster.come_to_rest();
    cluster
}

/// A shop of each shard.
fn one_of_each(node: &Node) -> Vec<usize> {
    let of = |shard| (0..).find(|number| node.shard(*number) == shard).unwrap();
    (0..node.policy.leases().shards()).map(of).collect()
}

impl Cluster {
    /// For so many steps of 50 ms every shop spends at the first node, and all calls are answered but
    /// those of a shard that is lost.
    fn go_on_without(&mut self, lost: Option<u16>, shops: &[usize], steps: usize) {
        for _ in 0..steps {
            self.now = self.now.after(MS * 50);
            for number in shops {
                assert!(self.nodes[0].spend(*number, false, self.now), "{number}");
            }
            for at in 0..self.nodes.len() {
                self.turn(at);
            }
            self.calls.retain(|(_, outgoing)| Some(outgoing.shard) != lost);
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
fn every_shard_is_called_with_each_tick_and_the_store_has_answered_when_all_of_them_have() {
    let mut cluster = Cluster::new(1, &rule(25.0, 50.0, 100), 8);
    cluster.turn(0);
    let shards: Vec<_> = cluster.calls.iter().map(|(_, outgoing)| outgoing.shard).collect();
    assert_eq!(shards, [0, 1, 2, 3, 4, 5, 6, 7]);
    for answered in 0..8 {
        assert!(!cluster.nodes[0].sync.has_answer());
        assert_eq!(cluster.nodes[0].policy.leases().shards_lost(cluster.now), 8 - answered);
        cluster.serve(0, false);
        cluster.answer(0, 0);
    }
    assert!(cluster.nodes[0].sync.has_answer());
    assert!(cluster.nodes[0].policy.leases().is_valid(cluster.now));
}

#[test]
fn the_keys_of_a_lost_shard_are_answered_here_and_all_others_leased_as_ever() {
    let mut cluster = in_eight_shards();
    let shops = one_of_each(&cluster.nodes[0]);
    cluster.go_on_without(None, &shops, 4);
    assert_eq!(cluster.nodes[0].sync.tally().answered_locally, 0);
    cluster.go_on_without(Some(3), &shops, 40);
    let (now, node) = (cluster.now, &cluster.nodes[0]);
    for (shard, number) in (0..).zip(&shops) {
        let known = node.known(*number, now).unwrap();
        let standing = if shard == 3 { Standing::Local } else { Standing::Leased };
        assert_eq!((known.standing, node.is_leased(*number, now)), (standing, shard != 3));
        // One token and a tick at most, where the store answers.
        assert_eq!(known.unreported > 4 * TOKEN, shard == 3, "{known:?}");
    }
    let leases = node.policy.leases();
    assert_eq!((leases.shards_lost(now), leases.is_valid(now), leases.nodes()), (1, false, 3));
    assert_eq!(node.sync.tally().local_keys, 1);
    cluster.come_to_rest();
    let known = cluster.nodes[0].known(shops[3], cluster.now).unwrap();
    assert_eq!((known.standing, known.unreported), (Standing::Leased, 0));
    assert!(cluster.nodes[0].policy.leases().is_valid(cluster.now));
}

#[test]
fn shards_that_are_lost_together_come_back_each_by_itself_within_a_tick() {
    let mut cluster = in_eight_shards();
    let node = &cluster.nodes[0];
    let of = |shard| (0..).filter(move |number| node.shard(*number) == shard).take(30);
    let shops: Vec<usize> = of(2).chain(of(5)).collect();
    for _ in 0..20 {
        cluster.now = cluster.now.after(MS * 50);
        shops.iter().for_each(|shop| assert!(cluster.nodes[0].spend(*shop, false, cluster.now)));
        cluster.turn(0);
        cluster.calls.clear();
    }
    let local = |cluster: &Cluster, shop: &usize| {
        cluster.nodes[0].known(*shop, cluster.now).unwrap().standing == Standing::Local
    };
    assert!(shops.iter().all(|shop| local(&cluster, shop)));
    for (back, lost) in [(5, 2), (2, 9)] {
        // The next tick, and what it takes to return.
        cluster.go_on_without(Some(lost), &[], 6);
        for shop in &shops {
            let shard = cluster.nodes[0].shard(*shop);
            assert_eq!(local(&cluster, shop), shard == lost, "{shard} {back}");
        }
    }
}

#[test]
fn a_shard_that_has_just_come_back_does_not_make_the_node_believe_that_it_is_alone() {
    let mut cluster = in_eight_shards();
    assert_eq!(cluster.nodes[0].policy.leases().nodes(), 3);
    // Its memory is gone, and the first node is the first that it hears.
    cluster.shards[6] = Store::new();
    cluster.go_on_without(None, &[], 1);
    cluster.now = cluster.now.after(MS * 110);
    cluster.turn(0);
    cluster.shards[6] = Store::new();
    while !cluster.calls.is_empty() {
        let told = cluster.calls[0].1.shard == 6;
        cluster.serve(0, false);
        let nodes = cluster.nodes[0].answers[0].1.nodes;
        assert_eq!(nodes, if told { 1 } else { 3 });
        cluster.answer(0, 0);
        assert_eq!(cluster.nodes[0].policy.leases().nodes(), 3);
    }
    // What a lost shard has counted is nobody's business once its leases are over.
    for shard in (0..8).filter(|shard| *shard != 6) {
        cluster.shards[shard] = Store::new();
    }
    for _ in 0..6 {
        cluster.now = cluster.now.after(MS * 60);
        cluster.turn(0);
        cluster.calls.retain(|(_, outgoing)| outgoing.shard != 6);
        while !cluster.calls.is_empty() {
            cluster.serve(0, false);
            cluster.answer(0, 0);
        }
    }
    assert_eq!(cluster.nodes[0].policy.leases().nodes(), 1);
}

#[test]
fn a_node_that_leaves_says_farewell_to_every_shard_that_it_has_heard() {
    let mut cluster = Cluster::new(1, &rule(25.0, 50.0, 100), 8);
    let shops = one_of_each(&cluster.nodes[0]);
    cluster.go_on_without(Some(4), &[shops[1], shops[4]], 4);
    assert!(cluster.nodes[0].spend(shops[1], false, cluster.now));
    let mut out = Vec::new();
    cluster.nodes[0].sync.leave(cluster.now, &mut out);
    let told: Vec<_> = out.iter().map(|one| (one.shard, one.call.reports.len())).collect();
    // One that was never heard is told all the same what it is owed.
    assert_eq!(told, [(0, 0), (1, 1), (2, 0), (3, 0), (4, 1), (5, 0), (6, 0), (7, 0)]);
    assert!(out.iter().all(|one| one.call.leave));
    let mut unheard = Cluster::new(1, &rule(25.0, 50.0, 100), 8);
    unheard.go_on_without(Some(4), &[], 4);
    out.clear();
    unheard.nodes[0].sync.leave(unheard.now, &mut out);
    assert!(out.iter().all(|one| one.shard != 4 && one.call.leave) && out.len() == 7);
}

#[test]
fn a_key_that_the_store_cannot_keep_is_answered_here_until_it_can() {
    let mut cluster = Cluster::new(3, &rule(25.0, 50.0, 100), 1);
    cluster.come_to_rest();
    let foreign = cluster.nodes[0].policy.store_key(LIMIT, &shop(0)).unwrap();
    let mut asked = 0;
    for can_keep in [false, true] {
        for _ in 0..10 {
            cluster.now = cluster.now.after(MS * 110);
            assert!((0..2).all(|number| cluster.nodes[0].spend(number, false, cluster.now)));
            cluster.turn(0);
            while let Some((_, outgoing)) = cluster.calls.pop() {
                let mut reply = cluster.call(&outgoing).reply;
                for (report, lease) in outgoing.call.reports.iter().zip(&mut reply.leases) {
                    if report.key == foreign && !can_keep {
                        (*lease, asked) = (None, asked + 1);
                    }
                }
                cluster.nodes[0].sync.answer(cluster.now, outgoing.number, &reply);
            }
            let (now, node) = (cluster.now, &cluster.nodes[0]);
            let standing = |number| node.known(number, now).unwrap().standing;
            let of_foreign = if can_keep { Standing::Leased } else { Standing::Local };
            assert_eq!([standing(0), standing(1)], [of_foreign, Standing::Leased]);
            assert!(node.policy.leases().is_valid(now));
        }
        assert_eq!(cluster.nodes[0].sync.tally().unkept, 10);
    }
    // With each report, since it was spent of each time.
    assert_eq!(asked, 10);
    assert_eq!(cluster.nodes[0].known(0, cluster.now).unwrap().unreported, 0);
}

#[test]
fn a_key_that_the_store_cannot_keep_has_its_nodes_share_of_the_rate_and_no_more() {
    let mut cluster = Cluster::new(3, &rule(25.0, 50.0, 100), 1);
    cluster.come_to_rest();
    let mut admitted = 0;
    for _ in 0..1_000 {
        cluster.now = cluster.now.after(MS * 10);
        admitted += usize::from(cluster.nodes[0].spend(0, false, cluster.now));
        cluster.turn(0);
        while let Some((_, outgoing)) = cluster.calls.pop() {
            let mut reply = cluster.call(&outgoing).reply;
            reply.leases.fill(None);
            cluster.nodes[0].sync.answer(cluster.now, outgoing.number, &reply);
        }
    }
    // A burst, and ten seconds of a third of the rate with what a client that moves has more.
    let share = 50.0 + 10.0 * 25.0 * 1.25 / 3.0;
    assert!((share - 10.0..=share + 1.0).contains(&(admitted as f64)), "{admitted} of {share}");
}

//! Properties of the quota store: what any loss, repetition and reordering of calls, any life of the
//! nodes' cells and any setting of the wall clock leave true.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq, proptest};
use tollgate::limits::StoreKey;
use tollgate::quota::protocol::{Call, DIGEST_MAX, Lease, Low, NodeId, Report, Since, Store};

const TOKEN: i64 = 1_000_000;
const KEY: StoreKey = StoreKey { limit: 1, id: [2, 3] };
const START_US: u64 = 1_800_000_000_000_000;
const HOUR_US: u64 = 3_600_000_000;
const NODES: usize = 4;

/// Rate in micro-tokens per second, and capacity, of a bucket.
#[derive(Clone, Copy, Debug)]
struct Grant {
    rate: f64,
    cap: i64,
}

/// A bucket like those of merchants.
const USUAL: Grant = Grant { rate: 25e6, cap: 50 * TOKEN };

/// A bucket that never fills nor empties here, so that its level is the sum of what was charged.
const ENDLESS: Grant = Grant { rate: 1.0, cap: 1_000_000_000 * TOKEN };

#[derive(Clone, Debug)]
enum Step {
    /// The node spends so many tokens.
    Spend(usize, i64),
    /// The node takes a token back, as for a message that another limit refused.
    Undo(usize),
    /// The node reports; the call is under way.
    Send { node: usize, local: bool },
    /// One of the calls under way, the newest or any other, arrives; it may arrive again, and its
    /// answer may be lost.
    Arrive { pick: usize, again: bool, answered: bool },
    /// One of the calls under way is lost.
    Lose(usize),
    /// The node's cell is evicted and made again.
    Renew(usize),
    /// Time goes by, in microseconds.
    Wait(u64),
}

fn steps(local: bool) -> impl Strategy<Value = Vec<Step>> {
    let node = || 0..NODES;
    let step = prop_oneof![
        4 => (node(), 0..20i64).prop_map(|(node, tokens)| Step::Spend(node, tokens)),
        1 => node().prop_map(Step::Undo),
        4 => (node(), any::<bool>())
            .prop_map(move |(node, alone)| Step::Send { node, local: local && alone }),
        5 => (any::<usize>(), any::<bool>(), any::<bool>())
            .prop_map(|(pick, again, answered)| Step::Arrive { pick, again, answered }),
        1 => any::<usize>().prop_map(Step::Lose),
        1 => node().prop_map(Step::Renew),
        2 => (0..100_000u64).prop_map(Step::Wait),
    ];
    vec(step, 1..80)
}

/// A node, as far as its reports go.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    boot: u64,
    spent: i64,
    charged: i64,
    answered_us: Option<u64>,
    since: Since,
}

impl Node {
    fn report(&self, grant: Grant, local: bool) -> Report {
        let Grant { rate, cap } = grant;
        let Self { boot, spent, charged, .. } = *self;
        // A cell that is emptier than the bucket by what it has not told yet.
        let level = if local { cap / 3 } else { cap };
        Report { key: KEY, rate, cap, boot, spent, charged, level, local }
    }

    fn call(&self, node: usize, reports: Vec<Report>, now_us: u64) -> Call {
        Call {
            node: id(node),
            elapsed_us: self.answered_us.map(|answered_us| now_us - answered_us),
            since: self.since,
            push: true,
            leave: false,
            reports,
        }
    }
}

fn id(node: usize) -> NodeId {
    NodeId(node as u64)
}

/// The nodes, the calls between them and the store, and what was ever reported.
struct Cluster {
    store: Store,
    grant: Grant,
    nodes: [Node; NODES],
    under_way: Vec<(usize, Call)>,
    now_us: u64,
    /// The most that each incarnation ever reported.
    reported: BTreeMap<(usize, u64), i64>,
    /// The most that each incarnation reported in a call that arrived before any of a later one.
    arrived: BTreeMap<(usize, u64), i64>,
}

impl Cluster {
    fn new(grant: Grant) -> Self {
        Self {
            store: Store::new(),
            grant,
            nodes: [Node::default(); NODES],
            under_way: Vec::new(),
            now_us: START_US,
            reported: BTreeMap::new(),
            arrived: BTreeMap::new(),
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Spend(node, tokens) => self.nodes[node].spent += tokens * TOKEN,
            Step::Undo(node) => {
                let spent = &mut self.nodes[node].spent;
                *spent = (*spent - TOKEN).max(0);
            }
            Step::Send { node, local } => self.send(node, local),
            Step::Arrive { pick, again, answered } if !self.under_way.is_empty() => {
                let at = pick % self.under_way.len();
                let (node, call) = self.under_way[at].clone();
                if !again {
                    self.under_way.remove(at);
                }
                self.arrive(node, &call, answered)?;
            }
            Step::Lose(pick) if !self.under_way.is_empty() => {
                self.under_way.remove(pick % self.under_way.len());
            }
            Step::Renew(node) => {
                let Node { boot, answered_us, since, .. } = self.nodes[node];
                self.nodes[node] = Node { boot: boot + 1, answered_us, since, ..Node::default() };
            }
            Step::Wait(us) => self.now_us += us,
            Step::Arrive { .. } | Step::Lose(_) => {}
        }
        Ok(())
    }

    fn send(&mut self, at: usize, local: bool) {
        let node = self.nodes[at];
        let most = self.reported.entry((at, node.boot)).or_default();
        *most = (*most).max(node.spent);
        let call = node.call(at, vec![node.report(self.grant, local)], self.now_us);
        self.under_way.push((at, call));
    }

    fn arrive(&mut self, at: usize, call: &Call, answered: bool) -> Result<(), TestCaseError> {
        let report = call.reports[0];
        let newer = self.arrived.range((at, report.boot + 1)..=(at, u64::MAX)).next().is_some();
        if !newer {
            let most = self.arrived.entry((at, report.boot)).or_default();
            *most = (*most).max(report.spent);
        }
        let (before, before_us) = (self.store.level(KEY), self.store.now_us());
        let reply = self.store.call(call, self.now_us).reply;
        let refill =
            if before.is_some() { self.refill(self.store.now_us() - before_us) } else { 0 };
        let (before, after) = (before.unwrap_or(self.grant.cap), self.store.level(KEY));
        // Either level is rounded down.
        prop_assert!(after.unwrap_or(self.grant.cap) <= before + refill + 1);

        let repeated = self.store.call(call, self.now_us).reply;
        prop_assert_eq!(self.store.level(KEY), after, "a repeated call moved the level");
        let known = |lease: &Lease| (lease.level, lease.charged);
        prop_assert_eq!(known(&repeated.leases[0].unwrap()), known(&reply.leases[0].unwrap()));

        let node = &mut self.nodes[at];
        if answered {
            node.answered_us = Some(self.now_us);
            node.since = reply.since;
            if node.boot == report.boot {
                node.charged = reply.leases[0].unwrap().charged;
            }
        }
        Ok(())
    }

    /// In micro-tokens, what so much time refills at most.
    fn refill(&self, us: u64) -> i64 {
        (self.grant.rate * us as f64 / 1e6).ceil() as i64
    }

    fn check_rows(&self) -> Result<(), TestCaseError> {
        for (NodeId(node), row) in self.store.rows(KEY) {
            let most = self.reported.get(&(usize::try_from(node).unwrap(), row.boot));
            prop_assert!(most.is_some_and(|most| row.spent <= *most), "{node} {row:?} {most:?}");
        }
        Ok(())
    }

    /// What the shares of all rows add up to at the store's time; `None` when nobody spends.
    fn shares(&self) -> Option<f64> {
        let rates: f64 = self.store.rows(KEY).map(|(_, row)| row.rate).sum();
        (rates > 0.0).then(|| rates / self.store.rate_sum(KEY))
    }
}

proptest! {
    #[test]
    fn no_row_passes_what_was_reported_and_no_call_raises_a_level(steps in steps(true)) {
        let mut cluster = Cluster::new(USUAL);
        for step in &steps {
            cluster.take(step)?;
            cluster.check_rows()?;
            let level = cluster.store.level(KEY).unwrap_or(USUAL.cap);
            prop_assert!((-USUAL.cap..=USUAL.cap).contains(&level), "{}", level);
        }
    }

    #[test]
    fn each_spent_token_that_arrives_is_charged_once_in_its_incarnation(steps in steps(false)) {
        let mut cluster = Cluster::new(ENDLESS);
        for step in &steps {
            cluster.take(step)?;
            let charged = ENDLESS.cap - cluster.store.level(KEY).unwrap_or(ENDLESS.cap);
            let arrived: i64 = cluster.arrived.values().sum();
            // Less at most what refills in ten seconds, and the rounding.
            prop_assert!((arrived - 10..=arrived + 1).contains(&charged), "{charged} {arrived}");
        }
        // Once nothing is lost any more, all is charged that the last cells have spent.
        for node in 0..NODES {
            cluster.send(node, false);
            let (_, call) = cluster.under_way.pop().unwrap();
            cluster.arrive(node, &call, true)?;
            let row = cluster.store.rows(KEY).find(|(of, _)| *of == id(node)).unwrap().1;
            prop_assert!(row.spent >= cluster.nodes[node].spent);
        }
    }

    #[test]
    fn shares_add_up_to_one(steps in steps(true)) {
        let mut cluster = Cluster::new(USUAL);
        for step in &steps {
            cluster.take(step)?;
            let shares = cluster.shares().unwrap_or(1.0);
            prop_assert!((shares - 1.0).abs() < 1e-9, "{}", shares);
        }
    }

    /// The same calls at the same true times, to a store whose wall clock is set and to one whose is
    /// not.
    #[test]
    fn setting_the_wall_clock_moves_no_level(
        calls in vec((0..NODES, 1..100_000u64, 0..20i64, -6..=6i64), 1..60),
    ) {
        let (mut set, mut unset) = (Store::new(), Store::new());
        let mut nodes = [Node::default(); NODES];
        let mut offset = 0i64;
        // Every node has had an answer before any clock is set.
        for (at, node) in nodes.iter_mut().enumerate() {
            for store in [&mut set, &mut unset] {
                store.call(&node.call(at, vec![], START_US), START_US);
            }
            node.answered_us = Some(START_US);
            node.since = Since { time_us: START_US, after: None };
        }
        let mut now_us = START_US;
        for (at, wait_us, tokens, hours) in calls {
            now_us += wait_us;
            let node = &mut nodes[at];
            node.spent += tokens * TOKEN;
            // Half of the calls meet a clock that was set since the last one, by an hour or more.
            if hours % 2 == 0 && hours != 0 {
                offset += hours / 2 * i64::try_from(HOUR_US).unwrap();
            }
            let call = node.call(at, vec![node.report(USUAL, false)], now_us);
            set.call(&call, now_us.saturating_add_signed(offset));
            node.since = unset.call(&call, now_us).reply.since;
            node.answered_us = Some(now_us);
            prop_assert_eq!(set.now_us(), unset.now_us());
            prop_assert_eq!(set.level(KEY), unset.level(KEY));
        }
    }

    #[test]
    fn every_noted_key_is_told_and_the_pages_end(
        rounds in vec((0..700u64, 0..600u64, 0..2u64, any::<bool>()), 1..8),
    ) {
        let mut store = Store::new();
        let (mut since, mut now_us) = (Since::default(), START_US);
        let reader = Node { answered_us: Some(START_US), ..Node::default() };
        // The level that each key was last noted at, and that it was last told at.
        let (mut noted, mut told) = (BTreeMap::new(), BTreeMap::new());
        let read = |store: &mut Store, since: Since, now_us: u64| {
            let reply = store.call(&Call { since, ..reader.call(0, vec![], now_us) }, now_us).reply;
            (reply.digest, reply.since)
        };
        for (round, (first, many, wait_us, page_between)) in (1..).zip(rounds) {
            now_us += wait_us;
            let reports: Vec<_> = (first..first + many).map(|number| low_report(number, round)).collect();
            let writer = Node::default().call(1, reports.clone(), now_us);
            let leases = store.call(&writer, now_us).reply.leases;
            noted.extend(reports.iter().zip(leases).map(|(report, lease)| (report.key, lease.unwrap().level)));
            if page_between {
                let (digest, next) = read(&mut store, since, now_us);
                since = next;
                told.extend(digest.into_iter().map(|Low { key, level }| (key, level)));
            }
        }
        let mut pages = 0;
        loop {
            let (digest, next) = read(&mut store, since, now_us);
            let full = digest.len() == DIGEST_MAX;
            let keys: BTreeSet<_> = digest.iter().map(|low| low.key).collect();
            prop_assert_eq!(keys.len(), digest.len());
            told.extend(digest.into_iter().map(|Low { key, level }| (key, level)));
            since = next;
            pages += 1;
            prop_assert!(pages < 10, "the pages do not end");
            if !full {
                break;
            }
        }
        prop_assert_eq!(told, noted);
    }

    #[test]
    fn no_call_at_all_makes_the_store_panic(
        calls in vec((arbitrary_call(), any::<u64>()), 1..20),
    ) {
        let mut store = Store::new();
        for (call, wall_us) in calls {
            let reply = store.call(&call, wall_us).reply;
            prop_assert_eq!(reply.leases.len(), call.reports.len());
            for lease in reply.leases.into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&lease.share), "{:?}", lease);
            }
        }
    }
}

/// A report that leaves its key low, at a level of its own in each round.
fn low_report(number: u64, round: i64) -> Report {
    let node = Node { spent: 40 * TOKEN + round * TOKEN, ..Node::default() };
    let key = StoreKey { limit: 1, id: [number, 0] };
    Report { key, ..node.report(USUAL, false) }
}

fn arbitrary_call() -> impl Strategy<Value = Call> {
    let report = (
        (0..3u64, any::<f64>(), any::<i64>(), any::<u64>()),
        (any::<i64>(), any::<i64>(), any::<i64>(), any::<bool>()),
    );
    let report = report.prop_map(|((id, rate, cap, boot), (spent, charged, level, local))| {
        let key = StoreKey { id: [id, 0], ..KEY };
        Report { key, rate, cap, boot: boot % (1 << 54), spent, charged, level, local }
    });
    let since = (any::<u64>(), proptest::option::of(0..3u64)).prop_map(|(time_us, after)| Since {
        time_us,
        after: after.map(|id| StoreKey { id: [id, 0], ..KEY }),
    });
    let caller = (0..4u64, proptest::option::of(any::<u64>()), any::<bool>(), any::<bool>());
    (caller, since, vec(report, 0..5)).prop_map(
        |((node, elapsed_us, push, leave), since, reports)| Call {
            node: NodeId(node),
            elapsed_us,
            since,
            push,
            leave,
            reports,
        },
    )
}

/// The old master is spent from and answers for seconds while the replica is the master already.
#[test]
fn a_replica_that_is_behind_by_seconds_goes_on_from_what_nodes_were_told() {
    let mut store = Store::new();
    let mut node = Node { spent: 10 * TOKEN, ..Node::default() };
    let report = |node: &Node, level| Report { level, ..node.report(USUAL, false) };
    let call = node.call(0, vec![report(&node, USUAL.cap)], START_US);
    let mut level = store.call(&call, START_US).reply.leases[0].unwrap().level;
    let mut replica = store.clone();
    (node.charged, node.answered_us) = (node.spent, Some(START_US));
    node.since = Since { time_us: START_US, after: None };
    let mut now_us = START_US;
    for _ in 0..30 {
        now_us += 100_000;
        node.spent += 2 * TOKEN;
        let call = node.call(0, vec![report(&node, level - 2 * TOKEN)], now_us);
        let reply = store.call(&call, now_us).reply;
        let lease = reply.leases[0].unwrap();
        level = lease.level;
        (node.charged, node.since, node.answered_us) = (lease.charged, reply.since, Some(now_us));
    }
    now_us += 100_000;
    let next = node.call(0, vec![report(&node, level)], now_us);
    let kept = store.call(&next, now_us).reply.leases[0].unwrap();
    // Whatever the replica's own clock says.
    let taken_over = replica.call(&next, now_us + HOUR_US).reply.leases[0].unwrap();
    // Less by the refill since the last lease, which the node has not seen.
    let less = kept.level - taken_over.level;
    assert!((0..=3 * TOKEN).contains(&less), "{kept:?} {taken_over:?}");
    assert_eq!((taken_over.charged, replica.now_us()), (node.spent, now_us));
}

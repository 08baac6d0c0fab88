//! A random sequence of calls: nodes that spend, report, restart and fall silent, a network that loses,
//! repeats and delays what they say, a wall clock that is set, and a store that forgets.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use redis::{Cmd, cmd};
use tollgate::limits::StoreKey;
use tollgate::quota::protocol::{Answer, Call, Lease, Low, NodeId, Reply, Report, Since, Store};
use tollgate::quota::redis::script::Names;

pub(crate) const TOKEN: i64 = 1_000_000;
const START_US: u64 = 1_800_000_000_000_000;
const SECOND_US: u64 = 1_000_000;
const HOUR_US: u64 = 3_600 * SECOND_US;

/// Rates in micro-tokens per second and capacities, of which some are no whole number of tokens.
const GRANTS: [(f64, i64); 9] = [
    (25e6, 50 * TOKEN),
    (25e6, 50 * TOKEN),
    (33_333_333.333, 7 * TOKEN + 1),
    (0.2e6, TOKEN),
    (1e6, 5 * TOKEN),
    (1e12, 4_000 * TOKEN),
    (1e3, TOKEN / 3),
    (1.0, 1_000_000_000 * TOKEN),
    (1e6, 1_000 * TOKEN),
];

/// One in so many calls is of each kind.
const LOST: u32 = 8;
const DELAYED: u32 = 5;
const SET_CLOCK: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// A few nodes and keys.
    Usual,
    /// Six hundred keys, low at once.
    Wide,
    /// Hardly a node calls twice, on a key that outlives them.
    Crowd,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    boot: u64,
    spent: i64,
    charged: i64,
}

#[derive(Clone, Debug)]
struct Node {
    id: NodeId,
    answered_us: Option<u64>,
    since: Since,
    last_boot: u64,
    cells: BTreeMap<usize, Cell>,
}

/// The next call, and what the store in process has said to it.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) call: Call,
    pub(crate) wall_us: u64,
    answer: Answer,
    is_answered: bool,
}

#[derive(Debug)]
pub(crate) struct Sequence {
    kind: Kind,
    random: Rng,
    store: Store,
    names: Names,
    /// The true time, and the wall clock's difference to it.
    now_us: u64,
    offset_us: i64,
    nodes: Vec<Node>,
    keys: Vec<(StoreKey, (f64, i64))>,
    /// Keys under whose name something else stands.
    foreign: BTreeSet<usize>,
    under_way: Vec<Call>,
    pub(crate) turns: usize,
}

impl Sequence {
    pub(crate) fn new(seed: u64, names: Names) -> Self {
        let mut random = Rng::with_seed(seed);
        let kind = match random.u32(..200) {
            0 => Kind::Wide,
            1..=2 => Kind::Crowd,
            _ => Kind::Usual,
        };
        let (keys, turns) = match kind {
            Kind::Wide => (600, 5..15),
            Kind::Crowd => (1, 120..160),
            Kind::Usual if random.u32(..20) == 0 => (50, 5..20),
            Kind::Usual if random.u32(..4) == 0 => (random.usize(1..14), 20..41),
            Kind::Usual => (random.usize(1..14), 5..25),
        };
        let keys = (0..keys).map(|_| {
            let grant = match kind {
                Kind::Crowd => (1e6, 1_000 * TOKEN),
                _ => random.choice(GRANTS).unwrap(),
            };
            (StoreKey { limit: random.u64(..3), id: [random.u64(..), random.u64(..)] }, grant)
        });
        let keys: Vec<_> = keys.collect();
        let foreign = (0..keys.len()).filter(|_| random.u32(..60) == 0).collect();
        let nodes = (0..random.usize(1..=6)).map(|_| Node::new(&mut random)).collect();
        let turns = random.usize(turns);
        Self {
            kind,
            now_us: START_US + random.u64(..HOUR_US),
            random,
            store: Store::new(),
            names,
            offset_us: 0,
            nodes,
            keys,
            foreign,
            under_way: Vec::new(),
            turns,
        }
    }

    /// Puts what is foreign where a bucket would be.
    pub(crate) fn prepare(&self) -> Vec<Cmd> {
        let commands = self.foreign.iter().map(|&at| {
            let words: &[&str] = match at % 5 {
                0 => &["SET", "", "bucket"],
                1 => &["RPUSH", "", "b"],
                2 => &["ZADD", "", "1", "b"],
                3 => &["HSET", "", "field", "value"],
                _ => &["HSET", "", "b", "of another length"],
            };
            let mut command = cmd(words[0]);
            command.arg(self.names.bucket(self.keys[at].0)).arg(&words[2..]);
            command
        });
        commands.collect()
    }

    /// Everything is forgotten, also what was foreign; the commands that see to it in Redis.
    pub(crate) fn wipe(&mut self) -> Cmd {
        self.store.wipe();
        self.foreign.clear();
        let mut command = cmd("DEL");
        command.arg(self.names.shard()).arg(self.names.low()).arg(self.names.lows());
        for (key, _) in &self.keys {
            command.arg(self.names.bucket(*key));
        }
        command
    }

    /// What befalls Redis before the next call.
    pub(crate) fn befall(&mut self) -> Option<Cmd> {
        if self.random.u32(..60) == 0 {
            return Some(self.wipe());
        }
        if self.random.u32(..10) == 0
            && let Some(healed) = self.foreign.pop_first()
        {
            return Some(cmd("DEL").arg(self.names.bucket(self.keys[healed].0)).to_owned());
        }
        None
    }

    /// The next call that arrives.
    pub(crate) fn turn(&mut self) -> Turn {
        self.pass();
        let call = loop {
            if !self.under_way.is_empty() && self.random.u32(..4) == 0 {
                let at = self.random.usize(..self.under_way.len());
                let again = self.random.u32(..3) == 0;
                break if again {
                    self.under_way[at].clone()
                } else {
                    self.under_way.swap_remove(at)
                };
            }
            let call = self.say();
            match self.random.u32(..DELAYED) {
                0 => self.under_way.push(call),
                1 => {
                    self.under_way.push(call.clone());
                    break call;
                }
                _ => break call,
            }
        };
        self.take(call)
    }

    /// The last call is of a node that nobody has heard, and reads from the beginning.
    pub(crate) fn last_turn(&mut self) -> Turn {
        let call = Call {
            node: NodeId(self.random.u64(..)),
            elapsed_us: None,
            since: Since::default(),
            push: true,
            leave: false,
            reports: Vec::new(),
        };
        self.take(call)
    }

    fn take(&mut self, call: Call) -> Turn {
        let wall_us = self.now_us.saturating_add_signed(self.offset_us);
        // To the store in process, which has no foreign keys, they are not told.
        let kept = call.reports.iter().filter(|report| !self.is_foreign(report)).copied();
        let kept = Call { reports: kept.collect(), ..call.clone() };
        let mut answer = self.store.call(&kept, wall_us);
        let mut leases = answer.reply.leases.into_iter();
        let all = call.reports.iter();
        answer.reply.leases =
            all.map(|it| if self.is_foreign(it) { None } else { leases.next().unwrap() }).collect();
        let is_answered = self.random.u32(..LOST) != 0;
        Turn { call, wall_us, answer, is_answered }
    }

    /// Whether the report cannot be kept. One that is unsound asks for nothing to be kept.
    fn is_foreign(&self, report: &Report) -> bool {
        let Report { rate, cap, charged, boot, .. } = *report;
        let is_sound = rate > 0.0 && cap > 0 && charged >= 0 && boot < 1 << 53;
        is_sound && self.foreign.iter().any(|at| self.keys[*at].0 == report.key)
    }

    /// Redis has answered the call as well.
    pub(crate) fn check(&mut self, turn: &Turn, reply: &Reply) {
        assert_same(&turn.answer.reply, reply, turn);
        let node = self.nodes.iter_mut().find(|node| node.id == turn.call.node);
        let Some(node) = node.filter(|_| turn.is_answered) else { return };
        node.answered_us = Some(self.now_us);
        node.since = reply.since;
        for (report, lease) in turn.call.reports.iter().zip(&reply.leases) {
            let at = self.keys.iter().position(|(key, _)| *key == report.key).unwrap();
            let cell = node.cells.get_mut(&at).filter(|cell| cell.boot == report.boot);
            if let (Some(cell), Some(lease)) = (cell, lease) {
                cell.charged = lease.charged;
            }
        }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Those that are not foreign.
    pub(crate) fn keys(&self) -> impl Iterator<Item = StoreKey> {
        let is_ours = |at: &usize| !self.foreign.contains(at);
        (0..self.keys.len()).filter(is_ours).map(|at| self.keys[at].0)
    }

    /// Time goes by, and the clock may be set.
    fn pass(&mut self) {
        let random = &mut self.random;
        self.now_us += match random.u32(..100) {
            0..20 => 0,
            20..30 => random.u64(1..4),
            30..50 => random.u64(..1_000),
            50..75 => random.u64(..100_000),
            75..85 => random.u64(..500_000),
            85..90 => random.u64(499_998..500_003),
            90..95 => random.u64(..3 * SECOND_US),
            95..97 => random.u64(9 * SECOND_US..20 * SECOND_US),
            97..99 => random.u64(599 * SECOND_US..602 * SECOND_US),
            _ => random.u64(..HOUR_US),
        };
        if random.u32(..SET_CLOCK) == 0 {
            let most =
                random.choice([2, 1_000, 700_000, HOUR_US as i64, 40 * HOUR_US as i64]).unwrap();
            self.offset_us += random.i64(-most..=most);
        }
    }

    /// A node says what it has to say.
    fn say(&mut self) -> Call {
        let fresh = if self.kind == Kind::Crowd { 3 } else { 40 };
        let at = self.random.usize(..self.nodes.len());
        if self.random.u32(..fresh) < 2 {
            self.nodes[at] = Node::new(&mut self.random);
        }
        let most = self.keys.len();
        let count = match self.random.u32(..100) {
            _ if self.kind == Kind::Wide => self.random.usize(..=300),
            0..10 => 0,
            10..45 => 1,
            45..80 => self.random.usize(2..6).min(most),
            _ => self.random.usize(..=50).min(most),
        };
        let mut chosen: Vec<_> = (0..most).collect();
        self.random.shuffle(&mut chosen);
        chosen.truncate(count);
        let Self { nodes, random, keys, now_us, .. } = self;
        let node = &mut nodes[at];
        let reports = chosen.into_iter().map(|at| node.report(random, (at, keys[at]))).collect();
        Call {
            node: node.id,
            elapsed_us: node.answered_us.map(|answered_us| *now_us - answered_us),
            since: node.since(random, keys),
            push: random.u32(..3) != 0,
            leave: random.u32(..40) == 0,
            reports,
        }
    }
}

impl Node {
    fn new(random: &mut Rng) -> Self {
        let id = NodeId(random.u64(..));
        let (since, cells) = (Since::default(), BTreeMap::new());
        Self { id, answered_us: None, since, last_boot: random.u64(..1_000), cells }
    }

    /// Where its last digest ended; now and then nonsense.
    fn since(&self, random: &mut Rng, keys: &[(StoreKey, (f64, i64))]) -> Since {
        match random.u32(..40) {
            0 => Since::default(),
            1 => Since { time_us: random.u64(..), after: None },
            2 => Since { after: Some(random.choice(keys).unwrap().0), ..self.since },
            3 => Since { after: None, ..self.since },
            _ => self.since,
        }
    }

    fn report(
        &mut self,
        random: &mut Rng,
        (at, (key, grant)): (usize, (StoreKey, (f64, i64))),
    ) -> Report {
        let cell = self.cells.entry(at).or_default();
        if cell.boot == 0 || random.u32(..25) == 0 {
            self.last_boot += random.u64(1..5);
            // Some have nearly come to the end of their counter.
            let spent = if random.u32(..10) == 0 { (1 << 58) / TOKEN * TOKEN } else { 0 };
            *cell = Cell { boot: self.last_boot, spent, charged: spent };
        }
        let (rate, cap) =
            if random.u32(..30) == 0 { random.choice(GRANTS).unwrap() } else { grant };
        let burst = (cap / TOKEN).clamp(1, 100);
        cell.spent += match random.u32(..10) {
            0..2 => 0,
            2..7 => random.i64(0..=3),
            7..9 => random.i64(0..=burst),
            _ => burst * 2,
        } * TOKEN;
        if random.u32(..10) == 0 {
            cell.spent = (cell.spent - TOKEN).max(0);
        }
        let Cell { boot, spent, charged } = *cell;
        let level = if random.bool() { cap } else { random.i64(-cap..=cap) };
        let local = random.u32(..6) == 0;
        let sound = Report { key, rate, cap, boot, spent, charged, level, local };
        match random.u32(..250) {
            0 => Report { rate: 0.0, ..sound },
            1 => Report { rate: f64::NAN, ..sound },
            2 => Report { cap: 0, ..sound },
            3 => Report { charged: -1, ..sound },
            4 => Report { boot: 1 << 53, ..sound },
            5 => Report { boot: boot - 1, ..sound },
            _ => sound,
        }
    }
}

impl Turn {
    /// What the other nodes are to hear.
    pub(crate) fn news(&self) -> Option<(NodeId, Vec<Low>)> {
        let push = &self.answer.push;
        (!push.is_empty()).then(|| (self.call.node, push.clone()))
    }
}

/// Everything is the same but what is told of rates, which is so nearly.
fn assert_same(expected: &Reply, told: &Reply, turn: &Turn) {
    let Reply { nodes, leases, digest, since } = expected;
    assert_eq!((nodes, since), (&told.nodes, &told.since), "{turn:?}");
    assert_eq!(digest, &told.digest, "{turn:?}");
    assert_eq!(leases.len(), told.leases.len());
    for (at, pair) in leases.iter().zip(&told.leases).enumerate() {
        match pair {
            (Some(lease), Some(told)) => {
                let exact = |lease: &Lease| (lease.level, lease.charged);
                assert_eq!(exact(lease), exact(told), "report {at} of {turn:?}");
                assert!(is_near(lease.share, told.share), "report {at} of {turn:?}: {told:?}");
            }
            (lease, told) => assert_eq!(lease, told, "report {at} of {turn:?}"),
        }
    }
}

/// Within a millionth.
pub(crate) fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= one.abs().max(other.abs()) * 1e-6
}

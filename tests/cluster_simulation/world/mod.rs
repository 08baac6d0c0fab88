//! The world of one seed: sources, processes, a network and a store in virtual time, and the ideal
//! beside them.

mod messages;
mod requests;
mod trouble;

use std::collections::VecDeque;
use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::limits::Rule;

use crate::cluster::agenda::Agenda;
use crate::cluster::ideal::Ideal;
use crate::cluster::limit::{Limit, at};
use crate::cluster::network::Network;
use crate::cluster::node::{Asked, CallOf, Node, Outgoing, Start, Store, Taken};
use crate::cluster::outcome::Outcome;
use crate::cluster::process::{Deed, Life, OwnClock, Process};
use crate::cluster::score::Score;
use crate::cluster::source::Sender;
use crate::cluster::store_side::StoreSide;
use crate::cluster::workload::Workload;

/// A process takes requests once it has heard from the store, or after so long.
const OPENS_ANYWAY_AFTER: Duration = Duration::from_secs(1);
/// After the last request everything comes to rest in this time.
const REST: Duration = Duration::from_secs(2);
/// No workload ends so soon after its last fault.
const REMEMBERED: Duration = Duration::from_secs(5);

/// What can happen.
#[derive(Debug)]
pub(crate) enum Event<N: Node> {
    /// A source sends a request.
    Asks(usize),
    Does(Life, Deed<N>),
    /// A call reaches the store.
    Called(Life, u64, CallOf<N>),
    /// A process has waited long enough for the store.
    Opens(Life),
    /// The fault of this place in the workload begins.
    Begins(usize),
    /// It ends. Some end for one process only.
    Ends(usize, Option<Life>),
    /// The replica hears no more of what the store does before this fault.
    ReplicaFallsBehind,
}

/// One seed at work.
#[derive(Debug)]
pub(crate) struct World<'a, N: Node> {
    workload: &'a Workload,
    limits: Vec<Limit>,
    rules: Vec<Rule>,
    random: fastrand::Rng,
    now: Moment,
    agenda: Agenda<Event<N>>,
    senders: Vec<Sender>,
    asked: Vec<Asked>,
    places: Vec<Option<Process<N>>>,
    /// Places that take requests.
    open: Vec<usize>,
    lives: u32,
    network: Network,
    store: StoreSide<N::Store>,
    /// Calls that a stalled store has not taken yet.
    stalled: VecDeque<(Life, u64, CallOf<N>)>,
    ideal: Ideal,
    score: Score,
    outcome: Outcome,
    /// Messages of the process that is at work.
    out: Vec<Outgoing<CallOf<N>>>,
}

/// Plays one seed of a workload with nodes of one design.
pub(crate) fn play<N: Node>(workload: &Workload, seed: u64) -> Outcome {
    let mut world = World::<N>::new(workload, seed);
    let end = Moment::START.after(workload.lasting + REST);
    while let Some((at, event)) = world.agenda.next_before(end) {
        world.now = at;
        world.happens(event);
    }
    world.close()
}

impl<'a, N: Node> World<'a, N> {
    fn new(workload: &'a Workload, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let sources = workload.sources(&mut random);
        let limits = workload.limits.clone();
        // Room for all keys twice, so that none has to go or to share.
        let keys_max = (sources.len() * 2).max(64);
        let mut world = Self {
            workload,
            rules: limits.iter().map(|limit| limit.rule(keys_max)).collect(),
            now: Moment::START,
            agenda: Agenda::new(),
            asked: sources.iter().map(|source| requests::asked(&limits, source)).collect(),
            senders: sources.into_iter().map(|one| Sender::new(one, random.u64(..))).collect(),
            places: Vec::new(),
            open: Vec::new(),
            lives: 0,
            network: Network::new(workload.weather, random.fork()),
            store: StoreSide::new(N::Store::new(&limits)),
            stalled: VecDeque::new(),
            ideal: Ideal::new(&limits),
            score: Score::new(&limits),
            outcome: Outcome::default(),
            out: Vec::new(),
            limits,
            random,
        };
        for place in 0..workload.nodes {
            world.starts(place);
        }
        for source in 0..world.senders.len() {
            world.asks_next(source);
        }
        world.plan_faults();
        world
    }

    fn happens(&mut self, event: Event<N>) {
        match event {
            Event::Asks(source) => self.asks(source),
            Event::Does(who, deed) => self.does(who, deed),
            Event::Called(by, number, call) => self.called(by, number, call),
            Event::Opens(who) => self.opens(who),
            Event::Begins(fault) => self.begins(fault),
            Event::Ends(fault, who) => self.ends(fault, who),
            Event::ReplicaFallsBehind => self.store.replica = Some(self.store.store.clone()),
        }
    }

    /// A process begins at this place.
    fn starts(&mut self, place: usize) {
        let who = Life { place, number: self.lives };
        self.lives += 1;
        let showed = Moment::from_nanos(self.random.u64(..2_000) * 1_000);
        let clock = OwnClock::new(self.now, showed);
        let start = Start {
            limits: &self.limits,
            rules: &self.rules,
            nodes: self.workload.nodes,
            shards: self.workload.shards,
            seed: self.random.u64(..),
        };
        let node = N::start(&start, showed);
        at(&mut self.places, place, |_| None);
        self.places[place] = Some(Process::new(node, who.number, clock));
        self.agenda.put(self.now.after(OPENS_ANYWAY_AFTER), Event::Opens(who));
        self.sends_and_sets_its_timer(who);
    }

    fn process(&mut self, who: Life) -> Option<&mut Process<N>> {
        self.places.get_mut(who.place)?.as_mut().filter(|process| process.number == who.number)
    }

    /// Everybody who runs.
    fn lives(&self) -> Vec<Life> {
        let life = |(place, process): (usize, &Option<Process<N>>)| {
            process.as_ref().map(|process| Life { place, number: process.number })
        };
        self.places.iter().enumerate().filter_map(life).collect()
    }

    fn opens(&mut self, who: Life) {
        if let Some(process) = self.process(who).filter(|process| !process.has_left) {
            process.is_open = true;
            self.note_who_is_open();
        }
    }

    fn note_who_is_open(&mut self) {
        let is_open = |process: &Option<Process<N>>| process.as_ref().is_some_and(|it| it.is_open);
        self.open = (0..self.places.len()).filter(|place| is_open(&self.places[*place])).collect();
    }

    fn does(&mut self, who: Life, deed: Deed<N>) {
        let Some(process) = self.process(who) else {
            self.outcome.count("came too late for a process");
            return;
        };
        if let Some(backlog) = &mut process.backlog {
            backlog.push(deed);
            return;
        }
        match deed {
            Deed::Decide(request) => self.decides(who, request),
            Deed::Turn(at) => self.turns(who, at),
            Deed::Answer(number, reply) => self.hears_an_answer(who, number, &reply),
            Deed::Fail(number) => self.hears_of_a_failure(who, number),
            Deed::Hear(push) => self.hears_a_push(who, &push),
        }
        self.sends_and_sets_its_timer(who);
    }

    /// Closes the books.
    fn close(mut self) -> Outcome {
        self.score.close(&mut self.outcome);
        for who in self.lives() {
            self.audits(who);
        }
        self.outcome.seconds = self.workload.lasting.as_secs_f64();
        self.outcome
    }

    /// Looks into the books of a process, as far as the store is sure to remember.
    fn audits(&mut self, who: Life) {
        let Some(process) = &self.places[who.place] else { return };
        let mut lately = Vec::new();
        for (sender, asked) in self.senders.iter().zip(&self.asked) {
            for (number, limit) in self.limits.iter().enumerate() {
                let taken = process.taken.get(number);
                let taken = taken.and_then(|keys| keys.get(limit.key(&sender.source)));
                let taken = taken.filter(|(_, last)| self.now.since(*last) < REMEMBERED);
                if let Some((tokens @ 1.., _)) = taken.copied() {
                    lately.push(Taken { asked: *asked, limit: number, tokens });
                }
            }
        }
        let shown = process.clock.shows(self.now);
        let wrong = process.node.audit(&self.store.store, shown, &lately);
        self.outcome.broken.extend(wrong);
    }
}

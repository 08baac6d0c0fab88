//! The product: a policy that decides on leases and the sync that renews them, with the store that
//! all nodes share.

use std::sync::Arc;

use tollgate::clock::Moment;
use tollgate::limits::{Policy, Terms};
use tollgate::quota::protocol::{Answer, Call, Low, NodeId, Reply, Store as LeaseStore};
use tollgate::quota::sync::{self, Settings, Sync};
use tollgate::traffic::Class;

use crate::cluster::books::Books;
use crate::cluster::limit::Limit;
use crate::cluster::node::{Asked, Node, Outgoing, Start, Store, Taken};

/// One node. The only node of a cluster has nothing to sync.
#[derive(Debug)]
pub(crate) struct Leased {
    id: NodeId,
    policy: Arc<Policy>,
    sync: Option<Sync>,
    books: Books,
    out: Vec<sync::Outgoing>,
}

impl Leased {
    fn say(&mut self, out: &mut Vec<Outgoing<Call>>) {
        let told =
            self.out.drain(..).map(|sync::Outgoing { number, call, .. }| Outgoing { number, call });
        out.extend(told);
    }

    /// Looks whether the request that was just admitted might be.
    pub(crate) fn note(&mut self, asked: &Asked, now: Moment) {
        if let Some(sync) = &self.sync {
            self.books.note(&self.policy, sync, asked, now);
        }
    }

    /// Tells the sync what gates want of it.
    pub(crate) fn urge(&mut self, now: Moment) {
        if let Some(sync) = &mut self.sync
            && self.policy.wants_sync()
        {
            sync.urge(now);
        }
    }

    /// What a gate does with a message, without telling the sync.
    pub(crate) fn decide_alone(&self, asked: &Asked, now: Moment) -> bool {
        let _turn = self.policy.turn(0);
        if asked.traffic.class == Class::Protected {
            self.policy.charge(&asked.traffic, now);
            return true;
        }
        self.policy.decide(&asked.traffic, now).refused_by.is_none()
    }
}

impl Node for Leased {
    type Store = LeaseStore;

    fn start(start: &Start<'_>, now: Moment) -> Self {
        let Start { rules, seed, .. } = *start;
        let is_alone = start.nodes == 1;
        let policy = if is_alone {
            Policy::new(rules, &[], 1, seed, now)
        } else {
            Policy::leased(rules, &[], Terms::default(), 1, seed, now)
        };
        let (id, policy) = (NodeId(seed), Arc::new(policy.unwrap()));
        let sync = || Sync::new(Settings::default(), id, seed, Arc::clone(&policy), now);
        let (sync, books) = ((!is_alone).then(sync), Books::new(rules, start.nodes));
        Self { id, policy, sync, books, out: Vec::new() }
    }

    fn decide(&mut self, asked: &Asked, now: Moment) -> bool {
        let is_admitted = self.decide_alone(asked, now);
        if is_admitted {
            self.note(asked, now);
        }
        self.urge(now);
        is_admitted
    }

    fn due(&self) -> Option<Moment> {
        self.sync.as_ref().map(Sync::due)
    }

    fn turn(&mut self, now: Moment, out: &mut Vec<Outgoing<Call>>) {
        if let Some(sync) = &mut self.sync {
            sync.turn(now, &mut self.out);
            self.say(out);
        }
    }

    fn answer(&mut self, now: Moment, number: u64, reply: &Reply) {
        if let Some(sync) = &mut self.sync {
            sync.answer(now, number, reply);
        }
    }

    fn fail(&mut self, _now: Moment, number: u64) {
        if let Some(sync) = &mut self.sync {
            sync.fail(number);
        }
    }

    fn hear(&mut self, now: Moment, push: &Vec<Low>) {
        if let Some(sync) = &mut self.sync {
            sync.hear(now, push);
        }
    }

    fn leave(&mut self, now: Moment, out: &mut Vec<Outgoing<Call>>) {
        if let Some(sync) = &mut self.sync {
            sync.leave(now, &mut self.out);
            self.say(out);
        }
    }

    fn audit(&self, store: &LeaseStore, now: Moment, taken: &[Taken]) -> Vec<String> {
        if self.sync.is_none() {
            return Vec::new();
        }
        self.books.audit((self.id, &self.policy), store, now, taken)
    }
}

impl Store for LeaseStore {
    type Call = Call;
    type Reply = Reply;
    type Push = Vec<Low>;

    fn new(_limits: &[Limit]) -> Self {
        Self::new()
    }

    fn call(&mut self, call: &Call, wall_us: u64) -> (Reply, Option<Vec<Low>>) {
        let Answer { reply, push } = self.call(call, wall_us);
        (reply, (!push.is_empty()).then_some(push))
    }

    fn keys(call: &Call) -> usize {
        call.reports.len()
    }

    fn wipe(&mut self) {
        self.wipe();
    }
}

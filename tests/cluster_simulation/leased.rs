//! The product: a policy that decides on leases and the sync that renews them, with the store that
//! all nodes share.

use std::sync::Arc;

use tollgate::clock::Moment;
use tollgate::limits::{LimitIx, Policy, StoreKey, Terms};
use tollgate::quota::protocol::{self, Answer, Low, NodeId, Reply, Row};
use tollgate::quota::sync::{self, Settings, Standing, Sync};
use tollgate::traffic::Class;

use crate::cluster::books::Books;
use crate::cluster::limit::{Limit, at};
use crate::cluster::node::{Asked, Node, Outgoing, Start, Store, Taken};

/// The limit that a workload is about.
const FIRST: LimitIx = LimitIx(0);

/// The store, in one shard or several, each of which knows its own keys and nothing of the others.
#[derive(Clone, Debug)]
pub(crate) struct LeaseStore {
    shards: Vec<protocol::Store>,
}

impl LeaseStore {
    /// What it holds of a key of a node.
    pub(crate) fn row(&self, key: StoreKey, shards: u16, node: NodeId) -> Option<Row> {
        let shard = self.shards.get(usize::from(key.shard(shards)))?;
        shard.rows(key).find(|(of, _)| *of == node).map(|(_, row)| row)
    }
}

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
    fn say(&mut self, out: &mut Vec<Outgoing<sync::Outgoing>>) {
        let told = self.out.drain(..);
        out.extend(told.map(|call| Outgoing { number: call.number, call }));
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
        let Start { rules, seed, shards, .. } = *start;
        let is_alone = start.nodes == 1;
        let policy = if is_alone {
            Policy::new(rules, &[], 1, seed, now)
        } else {
            Policy::leased(rules, &[], Terms::default(), 1, seed, now)
        };
        let (id, policy) = (NodeId(seed), Arc::new(policy.unwrap()));
        let settings = Settings { shards, ..Settings::default() };
        let sync = || Sync::new(settings, id, seed, Arc::clone(&policy), now);
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

    fn turn(&mut self, now: Moment, out: &mut Vec<Outgoing<sync::Outgoing>>) {
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

    fn leave(&mut self, now: Moment, out: &mut Vec<Outgoing<sync::Outgoing>>) {
        if let Some(sync) = &mut self.sync {
            sync.leave(now, &mut self.out);
            self.say(out);
        }
    }

    fn has_heard(&self) -> bool {
        self.sync.as_ref().is_none_or(Sync::has_answer)
    }

    fn shard(&self, asked: &Asked) -> u16 {
        let key = self.policy.store_key(FIRST, &asked.traffic).unwrap();
        key.shard(self.policy.leases().shards())
    }

    fn is_leased(&self, asked: &Asked, now: Moment) -> bool {
        let place = self.policy.leased_place(FIRST, &asked.traffic);
        let known = place.and_then(|place| self.sync.as_ref()?.look(place, now));
        self.policy.leases().is_shard_valid(self.shard(asked), now)
            && known.is_none_or(|known| known.standing != Standing::Local)
    }

    fn audit(&self, store: &LeaseStore, now: Moment, taken: &[Taken]) -> Vec<String> {
        if self.sync.is_none() {
            return Vec::new();
        }
        self.books.audit((self.id, &self.policy), store, now, taken)
    }
}

impl Store for LeaseStore {
    type Call = sync::Outgoing;
    type Reply = Reply;
    type Push = Vec<Low>;

    fn new(_limits: &[Limit]) -> Self {
        Self { shards: Vec::new() }
    }

    fn call(
        &mut self,
        sync::Outgoing { shard, call, .. }: &sync::Outgoing,
        wall_us: u64,
    ) -> (Reply, Option<Vec<Low>>) {
        let shard = at(&mut self.shards, usize::from(*shard), |_| protocol::Store::new());
        let Answer { reply, push } = shard.call(call, wall_us);
        (reply, (!push.is_empty()).then_some(push))
    }

    fn shard(call: &sync::Outgoing) -> u16 {
        call.shard
    }

    fn keys(call: &sync::Outgoing) -> usize {
        call.call.reports.len()
    }

    fn wipe(&mut self) {
        self.shards.iter_mut().for_each(protocol::Store::wipe);
    }
}

//! What a design of sharing a bucket has to be: nodes that decide, and a store that they talk to.

use std::fmt::Debug;

use tollgate::clock::Moment;
use tollgate::limits::Rule;
use tollgate::traffic::Traffic;

use crate::cluster::limit::Limit;

/// What a process begins with.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) limits: &'a [Limit],
    pub(crate) rules: &'a [Rule],
    /// Of the cluster when it was planned.
    pub(crate) nodes: usize,
    /// Of the store.
    pub(crate) shards: u16,
    /// Drawn for this process alone.
    pub(crate) seed: u64,
}

/// One request, as a node sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) traffic: Traffic,
    /// The bucket of the first limit, for designs that have but one.
    pub(crate) key: usize,
}

/// Tokens that a process took from one bucket since it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// A request that draws from it.
    pub(crate) asked: Asked,
    pub(crate) limit: usize,
    pub(crate) tokens: u64,
}

/// A message to the store, and the number by which its answer is known.
#[derive(Debug)]
pub(crate) struct Outgoing<C> {
    pub(crate) number: u64,
    pub(crate) call: C,
}

pub(crate) type CallOf<N> = <<N as Node>::Store as Store>::Call;
pub(crate) type ReplyOf<N> = <<N as Node>::Store as Store>::Reply;
pub(crate) type PushOf<N> = <<N as Node>::Store as Store>::Push;

/// One process. Its moments are those of its own clock.
pub(crate) trait Node: Sized {
    type Store: Store;

    fn start(start: &Start<'_>, now: Moment) -> Self;

    /// Whether a request is admitted.
    fn decide(&mut self, asked: &Asked, now: Moment) -> bool;

    /// When it has to be given a turn next, if ever.
    fn due(&self) -> Option<Moment>;

    fn turn(&mut self, now: Moment, out: &mut Vec<Outgoing<CallOf<Self>>>);

    fn answer(&mut self, now: Moment, number: u64, reply: &ReplyOf<Self>);

    /// The store cannot be reached.
    fn fail(&mut self, now: Moment, number: u64);

    /// The store tells it something that it did not ask.
    fn hear(&mut self, now: Moment, push: &PushOf<Self>);

    /// It says its last words.
    fn leave(&mut self, now: Moment, out: &mut Vec<Outgoing<CallOf<Self>>>);

    /// Whether the store has answered as far as a process has to hear before it takes requests.
    fn has_heard(&self) -> bool {
        true
    }

    /// Which shard of the store keeps the bucket of a request in the first limit.
    fn shard(&self, _asked: &Asked) -> u16 {
        0
    }

    /// Whether that bucket goes by what the store has said.
    fn is_leased(&self, _asked: &Asked, _now: Moment) -> bool {
        true
    }

    /// What is wrong in the books of a process at rest, given what it took lately.
    fn audit(&self, _store: &Self::Store, _now: Moment, _taken: &[Taken]) -> Vec<String> {
        Vec::new()
    }
}

/// What all nodes share.
pub(crate) trait Store: Clone {
    type Call: Clone + Debug;
    type Reply: Clone + Debug;
    type Push: Clone + Debug;

    fn new(limits: &[Limit]) -> Self;

    /// The answer to a call, and what the other nodes are told.
    fn call(&mut self, call: &Self::Call, wall_us: u64) -> (Self::Reply, Option<Self::Push>);

    /// Which shard a call is for.
    fn shard(_call: &Self::Call) -> u16 {
        0
    }

    /// How many keys a call is about.
    fn keys(call: &Self::Call) -> usize;

    /// Everything is forgotten.
    fn wipe(&mut self);
}

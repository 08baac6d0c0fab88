//! Rejected: every node enforces its part of the rate and of the burst, and asks nobody.

use tollgate::clock::Moment;
use tollgate::limits::{Burst, Rate};

use crate::cluster::bucket::Bucket;
use crate::cluster::limit::{Limit, at};
use crate::cluster::node::{Asked, Node, Outgoing, Start, Store};

/// A node with a part of each bucket.
#[derive(Debug)]
pub(crate) struct StaticShare {
    rate: Rate,
    burst: Burst,
    buckets: Vec<Bucket>,
}

/// There is none.
#[derive(Clone, Debug)]
pub(crate) struct NoStore;

impl Node for StaticShare {
    type Store = NoStore;

    fn start(start: &Start<'_>, _now: Moment) -> Self {
        let (limit, nodes) = (&start.limits[0], start.nodes as f64);
        Self {
            rate: Rate::per_second(limit.rate / nodes).unwrap(),
            burst: Burst::tokens((limit.burst / nodes).max(1.0)).unwrap(),
            buckets: Vec::new(),
        }
    }

    fn decide(&mut self, asked: &Asked, now: Moment) -> bool {
        at(&mut self.buckets, asked.key, |_| Bucket::new(self.rate, self.burst)).take(now)
    }

    fn due(&self) -> Option<Moment> {
        None
    }

    fn turn(&mut self, _now: Moment, _out: &mut Vec<Outgoing<()>>) {}

    fn answer(&mut self, _now: Moment, _number: u64, _reply: &()) {}

    fn fail(&mut self, _now: Moment, _number: u64) {}

    fn hear(&mut self, _now: Moment, _push: &()) {}

    fn leave(&mut self, _now: Moment, _out: &mut Vec<Outgoing<()>>) {}
}

impl Store for NoStore {
    type Call = ();
    type Reply = ();
    type Push = ();

    fn new(_limits: &[Limit]) -> Self {
        Self
    }

    fn call(&mut self, _call: &(), _wall_us: u64) -> ((), Option<()>) {
        ((), None)
    }

    fn keys(_call: &()) -> usize {
        0
    }

    fn wipe(&mut self) {}
}

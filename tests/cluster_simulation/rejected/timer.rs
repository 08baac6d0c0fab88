//! Rejected: leases that are renewed by a timer alone. No report is urgent, and no node hears of a
//! bucket that another node has emptied before it asks.

use tollgate::clock::Moment;
use tollgate::quota::protocol::{Call, Low, Reply, Store};

use crate::cluster::leased::Leased;
use crate::cluster::node::{Asked, Node, Outgoing, Start};

/// A node of the product that hears half of what it is told.
#[derive(Debug)]
pub(crate) struct TimerOnly(Leased);

impl Node for TimerOnly {
    type Store = Store;

    fn start(start: &Start<'_>, now: Moment) -> Self {
        Self(Leased::start(start, now))
    }

    fn decide(&mut self, asked: &Asked, now: Moment) -> bool {
        self.0.decide_alone(asked, now)
    }

    fn due(&self) -> Option<Moment> {
        self.0.due()
    }

    fn turn(&mut self, now: Moment, out: &mut Vec<Outgoing<Call>>) {
        self.0.turn(now, out);
    }

    fn answer(&mut self, now: Moment, number: u64, reply: &Reply) {
        self.0.answer(now, number, &Reply { digest: Vec::new(), ..reply.clone() });
    }

    fn fail(&mut self, now: Moment, number: u64) {
        self.0.fail(now, number);
    }

    fn hear(&mut self, _now: Moment, _push: &Vec<Low>) {}

    fn leave(&mut self, now: Moment, out: &mut Vec<Outgoing<Call>>) {
        self.0.leave(now, out);
    }
}

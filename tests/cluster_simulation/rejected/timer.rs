//! Rejected: leases that are renewed by a timer alone. No report is urgent, and no node hears of a
//! bucket that another node has emptied before it asks.

use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::quota::protocol::{Low, Reply};
use tollgate::quota::sync;

use crate::cluster::leased::{LeaseStore, Leased};
use crate::cluster::node::{Asked, Node, Outgoing, Start};

/// How often it reports.
const EACH: Duration = Duration::from_millis(100);

/// A node of the product that hears half of what it is told.
#[derive(Debug)]
pub(crate) struct TimerOnly {
    node: Leased,
    reported: Moment,
}

impl Node for TimerOnly {
    type Store = LeaseStore;

    fn start(start: &Start<'_>, now: Moment) -> Self {
        Self { node: Leased::start(start, now), reported: now }
    }

    fn decide(&mut self, asked: &Asked, now: Moment) -> bool {
        self.node.decide_alone(asked, now)
    }

    fn due(&self) -> Option<Moment> {
        self.node.due()
    }

    fn turn(&mut self, now: Moment, out: &mut Vec<Outgoing<sync::Outgoing>>) {
        // What is urgent waits for the timer like everything else.
        if now.since(self.reported) >= EACH {
            self.reported = now;
            self.node.urge(now);
        }
        self.node.turn(now, out);
    }

    fn answer(&mut self, now: Moment, number: u64, reply: &Reply) {
        self.node.answer(now, number, &Reply { digest: Vec::new(), ..reply.clone() });
    }

    fn fail(&mut self, now: Moment, number: u64) {
        self.node.fail(now, number);
    }

    fn hear(&mut self, _now: Moment, _push: &Vec<Low>) {}

    fn leave(&mut self, now: Moment, out: &mut Vec<Outgoing<sync::Outgoing>>) {
        self.node.leave(now, out);
    }
}

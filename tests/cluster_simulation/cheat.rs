//! Nodes that break a rule, so that who keeps the books has something to notice.

use tollgate::clock::Moment;
use tollgate::quota::protocol::{Low, Reply};
use tollgate::quota::sync;
use tollgate::traffic::Class;

use crate::cluster::leased::{LeaseStore, Leased};
use crate::cluster::node::{Asked, Node, Outgoing, Start, Taken};

/// A node that admits whatever comes.
pub(crate) const OVERSPENDS: bool = true;
/// A node that reports a token less than it has spent.
pub(crate) const UNDERREPORTS: bool = false;

/// A node of the product that does the one or the other.
#[derive(Debug)]
pub(crate) struct Cheat<const HOW: bool>(Leased);

impl<const HOW: bool> Node for Cheat<HOW> {
    type Store = LeaseStore;

    fn start(start: &Start<'_>, now: Moment) -> Self {
        Self(Leased::start(start, now))
    }

    fn decide(&mut self, asked: &Asked, now: Moment) -> bool {
        if HOW != OVERSPENDS {
            return self.0.decide(asked, now);
        }
        let mut protected = *asked;
        protected.traffic.class = Class::Protected;
        let is_admitted = self.0.decide(&protected, now);
        self.0.note(asked, now);
        is_admitted
    }

    fn due(&self) -> Option<Moment> {
        self.0.due()
    }

    fn turn(&mut self, now: Moment, out: &mut Vec<Outgoing<sync::Outgoing>>) {
        self.0.turn(now, out);
        for report in out.iter_mut().flat_map(|outgoing| &mut outgoing.call.call.reports) {
            if HOW == UNDERREPORTS {
                report.spent -= 1_000_000;
            }
        }
    }

    fn answer(&mut self, now: Moment, number: u64, reply: &Reply) {
        self.0.answer(now, number, reply);
    }

    fn fail(&mut self, now: Moment, number: u64) {
        self.0.fail(now, number);
    }

    fn hear(&mut self, now: Moment, push: &Vec<Low>) {
        self.0.hear(now, push);
    }

    fn leave(&mut self, now: Moment, out: &mut Vec<Outgoing<sync::Outgoing>>) {
        self.0.leave(now, out);
    }

    fn audit(&self, store: &LeaseStore, now: Moment, taken: &[Taken]) -> Vec<String> {
        self.0.audit(store, now, taken)
    }
}

//! Requests: they arrive, a node decides, and so does the ideal.

use tollgate::traffic::{Bin, Class, LinkId, Operation, Traffic};

use super::{Event, World};
use crate::cluster::limit::{Limit, at, merchant};
use crate::cluster::node::{Asked, Node};
use crate::cluster::outcome::Unleased;
use crate::cluster::process::{Deed, Life, Request};
use crate::cluster::source::Source;

/// The requests of a source as a node sees them.
pub(super) fn asked(limits: &[Limit], source: &Source) -> Asked {
    let bin = format!("4{:05}00", source.bin);
    let digits: Vec<u8> = bin.bytes().map(|digit| digit - b'0').collect();
    let mut traffic = Traffic::new(LinkId(0), source.class, Operation::Purchase);
    traffic.merchant = Some(merchant(source.merchant));
    traffic.bin = Bin::from_digits(&digits);
    Asked { traffic, key: limits[0].key(source) }
}

impl<N: Node> World<'_, N> {
    pub(super) fn asks_next(&mut self, source: usize) {
        if let Some(at) = self.senders[source].next() {
            self.agenda.put(at, Event::Asks(source));
        }
    }

    pub(super) fn asks(&mut self, source: usize) {
        self.asks_next(source);
        let (nodes, sender) = (self.places.len(), &mut self.senders[source]);
        let Some(place) = sender.pick(self.now, nodes, &self.open) else {
            self.outcome.count("request found no node");
            return;
        };
        let Some(process) = &self.places[place] else { return };
        let who = Life { place, number: process.number };
        let ideal = self.ideal.decide(&sender.source, self.now);
        if ideal {
            self.score.ideal(&sender.source, self.now);
        }
        if sender.source.is_good && !ideal {
            let wrong = format!("at {:?} the ideal refuses a good source", self.now);
            self.outcome.broken.push(wrong);
        }
        self.does(who, Deed::Decide(Request { source, arrived: self.now, ideal }));
    }

    pub(super) fn decides(&mut self, who: Life, request: Request) {
        let Request { source, arrived, ideal } = request;
        let (now, asked, lost) = (self.now, self.asked[source], self.workload.lost_shard());
        let Some(process) = self.process(who) else { return };
        let shown = process.clock.shows(now);
        let admitted = process.node.decide(&asked, shown);
        let of_lost = lost.is_some_and(|lost| process.node.shard(&asked) == lost);
        if lost.is_some() && !process.node.is_leased(&asked, shown) {
            let Unleased { lost_good, lost_other, elsewhere } = &mut self.outcome.unleased;
            *match (of_lost, self.senders[source].source.is_good) {
                (true, true) => lost_good,
                (true, false) => lost_other,
                (false, _) => elsewhere,
            } += 1;
        }
        let source = &self.senders[source].source;
        self.outcome.requests += 1;
        self.outcome.disagreements += u64::from(admitted != ideal);
        self.outcome.good += u64::from(source.is_good);
        if admitted {
            self.score.ours(source, arrived, (now, of_lost));
            let process = self.places[who.place].as_mut().unwrap();
            for (place, limit) in self.limits.iter().enumerate() {
                let keys = at(&mut process.taken, place, |_| Vec::new());
                let (tokens, last) = at(keys, limit.key(source), |_| (0, now));
                (*tokens, *last) = (*tokens + 1, now);
            }
        } else {
            if source.is_good {
                self.outcome.refuse_falsely(now, who.place, source);
            }
            self.outcome.protected_refused += u64::from(source.class == Class::Protected);
        }
        self.outcome.stamp(now.nanos() << 1 | u64::from(admitted));
    }
}

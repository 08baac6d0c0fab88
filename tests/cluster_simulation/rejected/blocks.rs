//! Rejected: a node borrows 500 tokens of each key it needs, every 100 ms.

use std::time::Duration;

use tollgate::clock::Moment;

use super::till::{Till, Wish};
use crate::cluster::limit::at;
use crate::cluster::node::{Asked, CallOf, Node, Outgoing, ReplyOf, Start};

const EACH: Duration = Duration::from_millis(100);
const BLOCK: u32 = 500;

/// A node with blocks of tokens.
#[derive(Debug)]
pub(crate) struct FixedBlocks {
    /// By key: tokens at hand.
    at_hand: Vec<u32>,
    /// Keys that were asked for since the last tick.
    wanted: Vec<usize>,
    tick: Moment,
    calls: u64,
}

impl Node for FixedBlocks {
    type Store = Till;

    fn start(start: &Start<'_>, now: Moment) -> Self {
        let phase = EACH.mul_f64(fastrand::Rng::with_seed(start.seed).f64());
        Self { at_hand: Vec::new(), wanted: Vec::new(), tick: now.after(phase), calls: 0 }
    }

    fn decide(&mut self, asked: &Asked, _now: Moment) -> bool {
        if !self.wanted.contains(&asked.key) {
            self.wanted.push(asked.key);
        }
        let at_hand = at(&mut self.at_hand, asked.key, |_| 0);
        let admitted = *at_hand > 0;
        *at_hand -= u32::from(admitted);
        admitted
    }

    fn due(&self) -> Option<Moment> {
        Some(self.tick)
    }

    fn turn(&mut self, now: Moment, out: &mut Vec<Outgoing<CallOf<Self>>>) {
        self.tick = now.after(EACH);
        self.calls += 1;
        let missing = |key| BLOCK - self.at_hand[key];
        let call = self.wanted.iter().map(|key| (*key, Wish::Lend(missing(*key)))).collect();
        self.wanted.clear();
        out.push(Outgoing { number: self.calls, call });
    }

    fn answer(&mut self, _now: Moment, _number: u64, reply: &ReplyOf<Self>) {
        for (key, lent) in reply {
            self.at_hand[*key] = (self.at_hand[*key] + lent).min(BLOCK);
        }
    }

    fn fail(&mut self, _now: Moment, _number: u64) {}

    fn hear(&mut self, _now: Moment, _push: &()) {}

    fn leave(&mut self, _now: Moment, _out: &mut Vec<Outgoing<CallOf<Self>>>) {}
}

//! Rejected: a node borrows what it needed lately, at once when it runs dry, and gives back what it
//! did not use.

use std::cmp::Ordering;
use std::time::Duration;

use tollgate::clock::Moment;

use super::till::{Till, Wish};
use crate::cluster::limit::at;
use crate::cluster::node::{Asked, CallOf, Node, Outgoing, ReplyOf, Start};

const TICK: Duration = Duration::from_millis(100);
/// A node that runs dry asks so soon.
const HURRY: Duration = Duration::from_millis(1);
/// What was not used in so many ticks goes back.
const EXPIRY_TICKS: usize = 3;

/// A node with what it borrowed.
#[derive(Debug)]
pub(crate) struct DemandLease {
    keys: Vec<Key>,
    tick: Moment,
    hurry: Option<Moment>,
    calls: u64,
}

#[derive(Clone, Debug, Default)]
struct Key {
    at_hand: u32,
    /// Requests of this tick and of the last ones.
    demand: [u32; EXPIRY_TICKS],
    /// It ran dry, and the store was not asked since.
    is_dry: bool,
    /// The store was asked and has not answered yet.
    asked_at: Option<Moment>,
}

impl Node for DemandLease {
    type Store = Till;

    fn start(start: &Start<'_>, now: Moment) -> Self {
        let phase = TICK.mul_f64(fastrand::Rng::with_seed(start.seed).f64());
        Self { keys: Vec::new(), tick: now.after(phase), hurry: None, calls: 0 }
    }

    fn decide(&mut self, asked: &Asked, now: Moment) -> bool {
        let key = at(&mut self.keys, asked.key, |_| Key::default());
        key.demand[0] += 1;
        let admitted = key.at_hand > 0;
        key.at_hand -= u32::from(admitted);
        if key.at_hand == 0 && key.asked_at.is_none() {
            key.is_dry = true;
            self.hurry.get_or_insert(now.after(HURRY));
        }
        admitted
    }

    fn due(&self) -> Option<Moment> {
        Some(self.hurry.map_or(self.tick, |hurry| hurry.min(self.tick)))
    }

    fn turn(&mut self, now: Moment, out: &mut Vec<Outgoing<CallOf<Self>>>) {
        let is_tick = self.tick <= now;
        if is_tick {
            self.tick = now.after(TICK);
        }
        self.hurry = None;
        let wish = |(number, key): (usize, &mut Key)| Some((number, key.wish(now, is_tick)?));
        let call: Vec<_> = self.keys.iter_mut().enumerate().filter_map(wish).collect();
        self.say(call, out);
    }

    fn answer(&mut self, _now: Moment, _number: u64, reply: &ReplyOf<Self>) {
        for (key, lent) in reply {
            let key = &mut self.keys[*key];
            key.at_hand += lent;
            key.asked_at = None;
        }
    }

    fn fail(&mut self, _now: Moment, _number: u64) {}

    fn hear(&mut self, _now: Moment, _push: &()) {}

    fn leave(&mut self, _now: Moment, out: &mut Vec<Outgoing<CallOf<Self>>>) {
        let back = |(number, key): (usize, &mut Key)| {
            (key.at_hand > 0).then(|| (number, Wish::TakeBack(std::mem::take(&mut key.at_hand))))
        };
        let call = self.keys.iter_mut().enumerate().filter_map(back).collect();
        self.say(call, out);
    }
}

impl DemandLease {
    fn say(&mut self, call: CallOf<Self>, out: &mut Vec<Outgoing<CallOf<Self>>>) {
        self.calls += 1;
        // A node that has not heard from the store yet is not open, whatever it wants.
        if self.calls == 1 || !call.is_empty() {
            out.push(Outgoing { number: self.calls, call });
        }
    }
}

impl Key {
    fn wish(&mut self, now: Moment, is_tick: bool) -> Option<Wish> {
        let lately = self.demand.into_iter().max().unwrap_or(0);
        if is_tick {
            self.demand.rotate_right(1);
            self.demand[0] = 0;
            // An answer that did not come in a tick is lost.
            self.asked_at = self.asked_at.filter(|at| now.since(*at) < TICK);
        }
        let is_dry = std::mem::take(&mut self.is_dry);
        if self.asked_at.is_some() {
            return None;
        }
        match self.at_hand.cmp(&lately) {
            Ordering::Less if is_dry || is_tick => {
                self.asked_at = Some(now);
                Some(Wish::Lend(lately - self.at_hand))
            }
            Ordering::Greater if is_tick => {
                let back = self.at_hand - lately;
                self.at_hand = lately;
                Some(Wish::TakeBack(back))
            }
            _ => None,
        }
    }
}

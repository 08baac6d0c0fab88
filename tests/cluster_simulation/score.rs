//! The score of a run: every decision of the nodes beside the ideal's.

use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::traffic::Class;

use crate::cluster::bucket::Bucket;
use crate::cluster::limit::{Limit, at};
use crate::cluster::outcome::{Outcome, Over};
use crate::cluster::source::Source;

/// What the ideal admits in so much time, the nodes are to admit in the same time.
const WINDOW: Duration = Duration::from_secs(10);

/// All limits, each with its keys.
#[derive(Debug)]
pub(crate) struct Score {
    limits: Vec<(Limit, Vec<Key>)>,
}

#[derive(Debug)]
struct Key {
    /// Charged with every admission of every node; may owe without end.
    debts: Vec<Bucket>,
    deepest: f64,
    /// Its shard of the store is lost at some time.
    of_lost: bool,
    windows: Vec<Window>,
}

/// Admissions of requests that arrived in one window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    ideal: u64,
    ours: u64,
}

impl Score {
    pub(crate) fn new(limits: &[Limit]) -> Self {
        Self { limits: limits.iter().map(|limit| (limit.clone(), Vec::new())).collect() }
    }

    /// A request that the ideal admits.
    pub(crate) fn ideal(&mut self, source: &Source, arrived: Moment) {
        let counts = u64::from(counts(source));
        self.keys(source).for_each(|key| key.window(arrived).ideal += counts);
    }

    /// A request that arrived earlier or just now and that a node admits.
    pub(crate) fn ours(
        &mut self,
        source: &Source,
        arrived: Moment,
        (now, of_lost): (Moment, bool),
    ) {
        for key in self.keys(source) {
            key.of_lost |= of_lost;
            key.window(arrived).ours += u64::from(counts(source));
            // What may not be refused is no fault of those who decide.
            if source.class != Class::Protected {
                for debt in &mut key.debts {
                    debt.spend(now);
                    key.deepest = key.deepest.min(debt.tokens());
                }
            }
        }
    }

    /// Adds it all up.
    pub(crate) fn close(&self, outcome: &mut Outcome) {
        let (mut deepest, mut deepest_elsewhere) = (0.0f64, 0.0f64);
        for (place, (limit, keys)) in self.limits.iter().enumerate() {
            let sums = outcome.admitted.entry(limit.name()).or_default();
            for key in keys {
                deepest = deepest.min(key.deepest);
                if !key.of_lost {
                    deepest_elsewhere = deepest_elsewhere.min(key.deepest);
                }
                for Window { ideal, ours } in &key.windows {
                    *sums = (sums.0 + ideal, sums.1 + ours);
                    if place == 0 {
                        outcome.lost += ideal.saturating_sub(*ours);
                        outcome.ideal += ideal;
                    }
                }
            }
        }
        outcome.over = Over::of_run(-deepest);
        outcome.over_elsewhere = -deepest_elsewhere;
    }

    fn keys(&mut self, source: &Source) -> impl Iterator<Item = &mut Key> {
        self.limits.iter_mut().map(|(limit, keys)| {
            at(keys, limit.key(source), |_| Key {
                debts: limit.buckets(),
                deepest: 0.0,
                of_lost: false,
                windows: Vec::new(),
            })
        })
    }
}

/// Whether it matters how many requests of a source are admitted: those that anybody may spare do
/// not, where others need what they leave.
fn counts(source: &Source) -> bool {
    source.class != Class::Sheddable
}

impl Key {
    fn window(&mut self, arrived: Moment) -> &mut Window {
        let number = arrived.since(Moment::START).as_nanos() / WINDOW.as_nanos();
        at(&mut self.windows, usize::try_from(number).unwrap(), |_| Window::default())
    }
}

//! What came of one seed, or of several together.

use std::collections::BTreeMap;

use tollgate::clock::Moment;

use crate::cluster::source::Source;

/// So many false rejects are told of one by one.
const FIRST: usize = 20;

/// Counts of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Requests that reached a node.
    pub(crate) requests: u64,
    /// Those of good sources.
    pub(crate) good: u64,
    /// Those of good sources that were refused.
    pub(crate) false_rejects: u64,
    /// Where and when the first of them were.
    pub(crate) first_false: Vec<String>,
    pub(crate) protected_refused: u64,
    /// Decisions that were not the ideal's.
    pub(crate) disagreements: u64,
    /// Admitted by the ideal, key by key and window by window, and what the nodes fell short of it.
    pub(crate) ideal: u64,
    pub(crate) lost: u64,
    /// By limit: admitted by the ideal, and by the nodes.
    pub(crate) admitted: BTreeMap<&'static str, (u64, u64)>,
    pub(crate) over: Over,
    /// The worst of keys whose shard of the store is never lost.
    pub(crate) over_elsewhere: f64,
    pub(crate) unleased: Unleased,
    /// Keys that the store was told of, and in how much time.
    pub(crate) key_syncs: u64,
    pub(crate) seconds: f64,
    /// What happened, and how often.
    pub(crate) events: BTreeMap<&'static str, u64>,
    /// What is wrong whatever a workload demands.
    pub(crate) broken: Vec<String>,
    /// Of every decision in its order.
    pub(crate) fingerprint: u64,
}

/// Decisions on keys that went by themselves, where a shard of the store is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unleased {
    /// Keys of that shard, asked for by good sources and by all others.
    pub(crate) lost_good: u64,
    pub(crate) lost_other: u64,
    /// Keys of another shard.
    pub(crate) elsewhere: u64,
}

/// Tokens admitted beyond burst + rate x time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Over {
    pub(crate) worst: f64,
    sum: f64,
    runs: u32,
}

impl Over {
    pub(crate) const fn of_run(worst: f64) -> Self {
        Self { worst, sum: worst, runs: 1 }
    }

    pub(crate) fn mean(self) -> f64 {
        self.sum / f64::from(self.runs.max(1))
    }
}

impl Outcome {
    /// A good source is refused.
    pub(crate) fn refuse_falsely(&mut self, now: Moment, place: usize, source: &Source) {
        self.false_rejects += 1;
        if self.first_false.len() < FIRST {
            let merchant = source.merchant;
            self.first_false.push(format!("at {now:?} node {place} refuses merchant {merchant}"));
        }
    }

    /// Counts one more event.
    pub(crate) fn count(&mut self, event: &'static str) {
        *self.events.entry(event).or_default() += 1;
    }

    /// Takes down one more decision.
    pub(crate) const fn stamp(&mut self, word: u64) {
        // FNV-1a, a word at a time.
        self.fingerprint = (self.fingerprint ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.good += other.good;
        self.false_rejects += other.false_rejects;
        let room = FIRST.saturating_sub(self.first_false.len());
        self.first_false.extend(other.first_false.iter().take(room).cloned());
        self.protected_refused += other.protected_refused;
        self.disagreements += other.disagreements;
        self.ideal += other.ideal;
        self.lost += other.lost;
        for (limit, (ideal, ours)) in &other.admitted {
            let sum = self.admitted.entry(limit).or_default();
            *sum = (sum.0 + ideal, sum.1 + ours);
        }
        self.over.worst = self.over.worst.max(other.over.worst);
        self.over_elsewhere = self.over_elsewhere.max(other.over_elsewhere);
        self.unleased.lost_good += other.unleased.lost_good;
        self.unleased.lost_other += other.unleased.lost_other;
        self.unleased.elsewhere += other.unleased.elsewhere;
        self.over.sum += other.over.sum;
        self.over.runs += other.over.runs;
        self.key_syncs += other.key_syncs;
        self.seconds += other.seconds;
        for (event, times) in &other.events {
            *self.events.entry(event).or_default() += times;
        }
        self.broken.extend(other.broken.iter().cloned());
        self.stamp(other.fingerprint);
    }

    pub(crate) fn lost_percent(&self) -> f64 {
        percent(self.lost, self.ideal)
    }

    /// What the nodes admit of what the ideal admits, for one limit.
    pub(crate) fn admitted_percent(&self, limit: &str) -> f64 {
        self.admitted.get(limit).map_or(0.0, |(ideal, ours)| percent(*ours, *ideal))
    }

    pub(crate) fn key_syncs_per_second(&self) -> f64 {
        self.key_syncs as f64 / self.seconds
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

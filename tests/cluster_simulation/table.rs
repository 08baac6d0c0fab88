//! The table: every workload over many seeds, and what came of it beside what must.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cluster::must::Must;
use crate::cluster::outcome::Outcome;
use crate::cluster::workload::Workload;

/// Plays one seed with one design.
pub(crate) type Play = fn(&Workload, u64) -> Outcome;

/// One workload over several seeds.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) workload: Workload,
    pub(crate) sum: Outcome,
    by_seed: Vec<(u64, Outcome)>,
}

impl Row {
    /// Plays the seeds, two at a time.
    pub(crate) fn play(workload: Workload, seeds: &[u64], play: Play) -> Self {
        let next = AtomicUsize::new(0);
        let some_seeds = || {
            let mut played = Vec::new();
            while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                played.push((*seed, play(&workload, *seed)));
            }
            played
        };
        let mut by_seed = std::thread::scope(|scope| {
            let other = scope.spawn(some_seeds);
            let mut played = some_seeds();
            played.extend(other.join().unwrap());
            played
        });
        by_seed.sort_by_key(|(seed, _)| *seed);
        let mut sum = Outcome::default();
        by_seed.iter().for_each(|(_, outcome)| sum.add(outcome));
        Self { workload, sum, by_seed }
    }

    /// The demands that are not met.
    fn broken(&self) -> Vec<Must> {
        self.workload.must.iter().copied().filter(|must| !must.is_met_by(&self.sum)).collect()
    }

    /// What is wrong, with the seeds that show it and how to play one again.
    pub(crate) fn fault(&self) -> Option<String> {
        let broken = self.broken();
        if broken.is_empty() && self.sum.broken.is_empty() {
            return None;
        }
        let shows = |outcome: &Outcome| {
            !outcome.broken.is_empty() || broken.iter().any(|must| !must.is_met_by(outcome))
        };
        let seeds: Vec<_> =
            self.by_seed.iter().filter(|(_, one)| shows(one)).map(|(seed, _)| *seed).collect();
        let name = self.workload.name;
        let mut fault = format!("{name}:");
        broken.iter().for_each(|must| write!(fault, " not \"{must}\";").unwrap());
        if let Some(first) = self.sum.broken.first() {
            let others = self.sum.broken.len() - 1;
            write!(fault, " {first} (and {others} more);").unwrap();
        }
        let seed = seeds.first().unwrap_or(&0);
        writeln!(fault, " seeds {seeds:?}; play one again with").unwrap();
        write!(fault, "    cargo run --release --example leases -- seed {name} {seed}").unwrap();
        Some(fault)
    }
}

/// The line above the rows.
pub(crate) const HEAD: &str = "\
workload              requests       good  false    FR %   over worst / mean  syncs/s  verdict  must
";

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sum, over) = (&self.sum, self.sum.over);
        let verdict = if self.fault().is_none() { "pass" } else { "FAIL" };
        let must: Vec<_> = self.workload.must.iter().map(ToString::to_string).collect();
        write!(
            f,
            "{:<20} {:>9} {:>10} {:>6} {:>7.3} {:>10.1} / {:>5.1} {:>8.0}  {verdict:<7}  {}",
            self.workload.name,
            sum.requests,
            sum.good,
            sum.false_rejects,
            sum.lost_percent(),
            over.worst,
            over.mean(),
            sum.key_syncs_per_second(),
            must.join("; ")
        )
    }
}

//! How long answers took: a histogram whose buckets grow with the value.

use std::time::Duration;

/// Buckets to each doubling of the value: no reading is off by more than one in so many.
const PER_DOUBLING: usize = 32;
/// `log2` of it.
const BITS: u32 = 5;
/// The values below [`PER_DOUBLING`] have a bucket each; then come the doublings up to `u64::MAX`.
const BUCKETS: usize = (64 - BITS as usize + 1) * PER_DOUBLING;

/// Latencies, to about 3 %. Two of them can be subtracted, which gives those of a time in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies {
    counts: Box<[u64]>,
    total: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS].into(), total: 0 }
    }
}

impl Latencies {
    /// Counts one.
    pub fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(bucket_of(nanos)) {
            *count += 1;
            self.total += 1;
        }
    }

    /// How many were counted.
    pub const fn count(&self) -> u64 {
        self.total
    }

    /// What at least `share` (0 to 1) of them did not exceed; `None` when there are none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let mut buckets = self.counts.iter();
        let bucket = buckets.position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(Duration::from_nanos(top_of(bucket)))
    }

    /// Those that were counted after `earlier`, which is an older copy of this.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = self.counts.iter().zip(&earlier.counts);
        Self {
            counts: counts.map(|(now, then)| now.saturating_sub(*then)).collect(),
            total: self.total.saturating_sub(earlier.total),
        }
    }
}

fn bucket_of(nanos: u64) -> usize {
    let doublings = (u64::BITS - BITS).saturating_sub(nanos.leading_zeros() + 1);
    // What is left after the shift is below twice PER_DOUBLING.
    doublings as usize * PER_DOUBLING + (nanos >> doublings) as usize
}

/// The highest value of a bucket.
fn top_of(bucket: usize) -> u64 {
    let doublings = (bucket / PER_DOUBLING).saturating_sub(1);
    let next = (bucket - doublings * PER_DOUBLING + 1) as u128;
    u64::try_from((next << doublings) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_not_in_the_one_before() {
        let edges = (0..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + power / 3]
        });
        for nanos in edges.chain([u64::MAX]) {
            let bucket = bucket_of(nanos);
            assert!(bucket < BUCKETS);
            let top = top_of(bucket);
            assert!(top >= nanos && top - nanos <= nanos / 32, "{nanos}: up to {top}");
            assert!(bucket == 0 || top_of(bucket - 1) < nanos);
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), None);
        (1..=1_000).for_each(|micros| latencies.record(Duration::from_micros(micros)));
        for (share, micros) in [(0.0, 1), (0.5, 500), (0.99, 990), (1.0, 1_000)] {
            let exact = Duration::from_micros(micros);
            let read = latencies.quantile(share).unwrap();
            assert!(read >= exact && read <= exact + exact / 32, "{share}: {read:?}");
        }
    }

    #[test]
    fn a_difference_holds_what_came_in_between() {
        let mut latencies = Latencies::default();
        latencies.record(Duration::from_millis(1));
        let earlier = latencies.clone();
        latencies.record(Duration::from_secs(1));
        let between = latencies.since(&earlier);
        assert_eq!(between.count(), 1);
        assert!(between.quantile(0.0).unwrap() >= Duration::from_secs(1));
    }
}

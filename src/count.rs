//! Counts that are read by whoever scrapes while one thread writes them: no word is ever locked, and
//! no sample is kept.
//!
//! What they are called outside is in `metrics`.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A count that only grows, or a gauge that is set. One thread writes, so no word is ever locked.
#[derive(Debug, Default)]
pub struct Word(AtomicU64);

impl Word {
    /// The value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Puts another value in its place.
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Adds one.
    pub fn count(&self) {
        self.set(self.get().wrapping_add(1));
    }

    /// Adds so many.
    pub fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }
}

/// A histogram with fixed bounds.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    bounds: &'static [Duration; N],
    /// As many as there are bounds, and one for what lies above the last.
    counts: [Word; N],
    above: Word,
    sum_nanos: Word,
}

impl<const N: usize> Histogram<N> {
    /// An empty histogram; `bounds` ascend.
    pub fn new(bounds: &'static [Duration; N]) -> Self {
        Self {
            bounds,
            counts: std::array::from_fn(|_| Word::default()),
            above: Word::default(),
            sum_nanos: Word::default(),
        }
    }

    /// Counts a value.
    pub fn record(&self, value: Duration) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        self.counts.get(at).unwrap_or(&self.above).count();
        self.sum_nanos.add(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Upper bounds with the values at or below each, cumulative; then all values.
    pub fn cumulative(&self) -> (Vec<(Duration, u64)>, u64) {
        let mut total = 0;
        let buckets = self.bounds.iter().zip(&self.counts).map(|(bound, count)| {
            total += count.get();
            (*bound, total)
        });
        let buckets = buckets.collect();
        (buckets, total + self.above.get())
    }

    /// All values added up.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos.get())
    }

    /// A bound that at least `share` (0 to 1) of the values do not exceed; `None` when empty.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let (buckets, total) = self.cumulative();
        let wanted = (total as f64 * share).ceil() as u64;
        let found = buckets.iter().find(|(_, up_to)| *up_to >= wanted).map(|(bound, _)| *bound);
        (total > 0).then(|| found.or(self.bounds.last().copied()).unwrap_or_default())
    }
}

//! The keys of one limit that the configuration names: fixed when the policy is made, each with a
//! bucket of its own that never overflows into another and never leaves.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use hashbrown::HashTable;

use super::cell::{Cell, Grant};
use super::id::{KeyId, Namer, Spread};
use super::rule::{KeyMatch, RuleKey};
use crate::clock::Moment;
use crate::traffic::Bin;

/// One named key: its bucket, on a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Named {
    pub(super) grant: Grant,
    pub(super) cell: Cell,
}

/// The named keys of one limit.
#[derive(Debug)]
pub(super) struct NamedKeys {
    keys: Box<[Named]>,
    /// Where each run of BINs with one answer begins, in order; a run ends where the next begins.
    runs: Box<[Run]>,
    /// Named merchants, by their id.
    merchants: HashTable<(KeyId, usize)>,
    spread: Spread,
    settled: AtomicUsize,
}

/// BINs from `first` on belong to this key, or to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u32,
    key: Option<usize>,
}

impl NamedKeys {
    /// The keys of a rule, full at `now`. They were found without fault.
    pub(super) fn new(keys: &[RuleKey], namer: &Namer, spread: Spread, now: Moment) -> Self {
        let mut merchants = HashTable::new();
        let mut ranges = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            match key.matches {
                KeyMatch::BinRange { first, last } => ranges.push((first, last, at)),
                KeyMatch::Merchant(merchant) => {
                    let id = namer.id(merchant.name());
                    merchants.insert_unique(spread.word(id), (id, at), |(id, _)| spread.word(*id));
                }
            }
        }
        let bucket = |key: &RuleKey| {
            let grant = Grant::new(key.rate, key.burst);
            Named { grant, cell: Cell::full(&grant, now) }
        };
        Self {
            keys: keys.iter().map(bucket).collect(),
            runs: runs_of(ranges),
            merchants,
            spread,
            settled: AtomicUsize::new(0),
        }
    }

    /// The key whose range is the narrowest around `bin`.
    #[inline]
    pub(super) fn of_bin(&self, bin: Bin) -> Option<&Named> {
        let after = self.runs.partition_point(|run| run.first <= bin.number());
        self.keys.get(self.runs.get(after.checked_sub(1)?)?.key?)
    }

    /// The key of the merchant with this id.
    #[inline]
    pub(super) fn of_merchant(&self, id: KeyId) -> Option<&Named> {
        if self.merchants.is_empty() {
            return None;
        }
        let (_, at) = self.merchants.find(self.spread.word(id), |(named, _)| *named == id)?;
        self.keys.get(*at)
    }

    /// Settles one cell, in turn.
    pub(super) fn settle(&self, at: Moment) {
        if let Some(turn) = self.settled.fetch_add(1, Relaxed).checked_rem(self.keys.len())
            && let Some(key) = self.keys.get(turn)
        {
            key.cell.settle(&key.grant, at);
        }
    }
}

/// Cuts overlapping ranges (first, last, key) into runs: the widest is laid down first and the
/// narrower ones over it.
fn runs_of(mut ranges: Vec<(u32, u32, usize)>) -> Box<[Run]> {
    ranges.sort_unstable_by_key(|(first, last, _)| std::cmp::Reverse(last.saturating_sub(*first)));
    let mut runs = BTreeMap::from([(0, None)]);
    for (first, last, key) in ranges {
        let after = last.saturating_add(1);
        let resumes = runs.range(..=after).next_back().and_then(|(_, key)| *key);
        let covered: Vec<u32> = runs.range(first..=last).map(|(first, _)| *first).collect();
        for start in covered {
            runs.remove(&start);
        }
        runs.insert(first, Some(key));
        runs.insert(after, resumes);
    }
    runs.into_iter().map(|(first, key)| Run { first, key }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_answer_like_a_search_for_the_narrowest_range() {
        let mut state = 7u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) % bound) as u32
        };
        for _ in 0..200 {
            let ranges: Vec<_> = (0..12)
                .map(|key| {
                    let first = below(1000);
                    // A width of its own for each, so that no two are equally narrow.
                    (first, first + below(20) * 12 + key, key as usize)
                })
                .collect();
            let runs = runs_of(ranges.clone());
            for bin in 0..1300 {
                let after = runs.partition_point(|run| run.first <= bin);
                let narrowest = ranges
                    .iter()
                    .filter(|(first, last, _)| (*first..=*last).contains(&bin))
                    .min_by_key(|(first, last, _)| last - first)
                    .map(|(_, _, key)| *key);
                assert_eq!(runs[after - 1].key, narrowest, "{bin} in {ranges:?}");
            }
        }
    }
}

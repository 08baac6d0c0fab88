//! The keys of one limit that the configuration names: fixed when the policy is made, each with a
//! bucket of its own that never overflows into another and never leaves.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use hashbrown::HashTable;

use super::cell::{Cell, Reach};
use super::grant::Grant;
use super::id::{Digests, KeyId, Namer, Spread};
use super::key_name;
use super::part::nominal;
use super::per::{Dimension, Per};
use super::rule::{Amount, BinRange, KeyMatch, RuleKey};
use crate::clock::Moment;
use crate::traffic::{Bin, Class, LinkId, Operation, Traffic};

/// One named key: its bucket, on a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Named {
    pub(super) grant: Grant,
    pub(super) cell: Cell,
    /// Its place in the configuration of the limit.
    pub(super) place: u32,
    /// It has a bucket in this part of the limit.
    pub(super) has_bucket: bool,
}

/// The named keys of one limit.
#[derive(Debug)]
pub(super) struct NamedKeys {
    keys: Box<[Named]>,
    /// What each is to all nodes.
    ids: Box<[KeyId]>,
    /// And which one an id is of.
    by_id: HashMap<KeyId, u32>,
    /// Keys that name the same dimensions, in the order in which they win.
    groups: Box<[Group]>,
    spread: Spread,
    settled: AtomicUsize,
}

/// Keys that name the same dimensions.
#[derive(Debug)]
struct Group {
    /// What they name beside a BIN.
    rest: Per,
    entries: Entries,
}

#[derive(Debug)]
enum Entries {
    /// They name a BIN and nothing else.
    Bins(Box<[Run]>),
    /// By the id of what else they name: a key, or the runs of its BINs.
    Rest(HashTable<(KeyId, Box<[Run]>)>),
}

/// BINs from `first` on belong to this key, or to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u32,
    key: Option<usize>,
}

/// First and last BIN of a key.
type Range = (u32, u32, usize);

/// Every BIN: where a key names none, it has one run.
const EVERY_BIN: BinRange = BinRange { first: 0, last: u32::MAX };

impl NamedKeys {
    /// The keys of a rule's part, full at `now` and reaching as far as `reach` says. They were found
    /// without fault.
    pub(super) fn new(
        (keys, amounts): (&[RuleKey], &[Option<Amount>]),
        (namer, links): (&Namer, &[String]),
        spread: Spread,
        now: Moment,
        reach: impl Fn(&Grant) -> Reach,
    ) -> Self {
        let bucket = |(place, amount): (u32, &Option<Amount>)| {
            let grant = Grant::of(amount.unwrap_or_else(nominal));
            let cell = Cell::opened(&grant, now, reach(&grant), place);
            Named { grant, cell, place, has_bucket: amount.is_some() }
        };
        let id = |key: &RuleKey| {
            namer.named(&key_name::of_match(&key.matches, links).unwrap_or_default())
        };
        let mut kinds: Vec<Per> = keys.iter().map(|key| key.matches.per()).collect();
        kinds.sort_unstable_by_key(|per| std::cmp::Reverse((per.count(), *per)));
        kinds.dedup();
        let ids: Box<[KeyId]> = keys.iter().map(id).collect();
        Self {
            keys: (0u32..).zip(amounts).map(bucket).collect(),
            by_id: (0..).zip(&ids).map(|(number, id)| (*id, number)).collect(),
            ids,
            groups: kinds.into_iter().map(|per| Group::new(per, keys, namer, spread)).collect(),
            spread,
            settled: AtomicUsize::new(0),
        }
    }

    /// The key that fits a message best.
    #[inline(always)]
    pub(super) fn find(
        &self,
        namer: &Namer,
        traffic: &Traffic,
        digests: &mut Digests,
    ) -> Option<&Named> {
        // Most limits name no key, and need not pay for a call to learn it.
        if self.groups.is_empty() { None } else { self.find_named(namer, traffic, digests) }
    }

    fn find_named(
        &self,
        namer: &Namer,
        traffic: &Traffic,
        digests: &mut Digests,
    ) -> Option<&Named> {
        let found =
            self.groups.iter().find_map(|group| group.find(namer, self.spread, traffic, digests));
        self.keys.get(found?)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The key whose cell has this number, and what it is to all nodes.
    pub(super) fn numbered(&self, number: u32) -> Option<(&Named, KeyId)> {
        let at = number as usize;
        Some((self.keys.get(at)?, *self.ids.get(at)?))
    }

    /// What the key of this place in the configuration is to all nodes.
    pub(super) fn id(&self, place: usize) -> Option<KeyId> {
        self.ids.get(place).copied()
    }

    /// The number of the cell of a key that is named by an id.
    pub(super) fn number_of(&self, id: KeyId) -> Option<u32> {
        self.by_id.get(&id).copied()
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

impl Group {
    /// Those of `keys` that name `per`.
    fn new(per: Per, keys: &[RuleKey], namer: &Namer, spread: Spread) -> Self {
        let rest = per.without(Dimension::Bin);
        let mut by_rest: Vec<(Option<KeyId>, Vec<Range>)> = Vec::new();
        let fitting = keys.iter().enumerate().filter(|(_, key)| key.matches.per() == per);
        for (at, RuleKey { matches, .. }) in fitting {
            let id = namer.id(rest, &example(matches), &mut Digests::none());
            let BinRange { first, last } = matches.bin.unwrap_or(EVERY_BIN);
            by_rest.push((id, vec![(first, last, at)]));
        }
        by_rest.sort_by_key(|(id, _)| id.map(|id| (id.first, id.second)));
        by_rest.dedup_by(|(id, ranges), (kept, kept_ranges)| {
            let same = id == kept;
            if same {
                kept_ranges.append(ranges);
            }
            same
        });
        if rest.is_nothing() {
            let ranges = by_rest.pop().map(|(_, ranges)| ranges).unwrap_or_default();
            return Self { rest, entries: Entries::Bins(runs_of(ranges)) };
        }
        let mut entries = HashTable::new();
        for (id, ranges) in by_rest {
            if let Some(id) = id {
                let entry = (id, runs_of(ranges));
                entries.insert_unique(spread.word(id), entry, |(id, _)| spread.word(*id));
            }
        }
        Self { rest, entries: Entries::Rest(entries) }
    }

    #[inline]
    fn find(
        &self,
        namer: &Namer,
        spread: Spread,
        traffic: &Traffic,
        digests: &mut Digests,
    ) -> Option<usize> {
        let runs = match &self.entries {
            Entries::Bins(runs) => runs,
            Entries::Rest(entries) => {
                let id = namer.id(self.rest, traffic, digests)?;
                let (_, runs) = entries.find(spread.word(id), |(named, _)| *named == id)?;
                runs
            }
        };
        // A message without a BIN comes here only for keys that name none.
        let bin = traffic.bin.map_or(0, Bin::number);
        let after = runs.partition_point(|run| run.first <= bin);
        runs.get(after.checked_sub(1)?)?.key
    }
}

/// A message that has what a key names.
fn example(matches: &KeyMatch) -> Traffic {
    let KeyMatch { terminal, merchant, mcc, operation, link, .. } = *matches;
    let (link, operation) = (link.unwrap_or(LinkId(0)), operation.unwrap_or(Operation::Other));
    Traffic { terminal, merchant, mcc, ..Traffic::new(link, Class::Standard, operation) }
}

/// Cuts overlapping ranges (first, last, key) into runs: the widest is laid down first and the
/// narrower ones over it.
fn runs_of(mut ranges: Vec<Range>) -> Box<[Run]> {
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

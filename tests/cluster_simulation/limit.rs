//! The limits of a workload: what the nodes enforce together, and what the yardstick does alone.

use tollgate::limits::{Burst, Per, Rate, Rule};

use crate::cluster::bucket::Bucket;
use crate::cluster::source::Source;

/// What has a bucket of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Merchant,
    Bin,
    All,
}

/// One limit.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) of: Of,
    pub(crate) rate: f64,
    pub(crate) burst: f64,
}

impl Limit {
    pub(crate) const fn new(of: Of, rate: f64, burst: f64) -> Self {
        Self { of, rate, burst }
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self.of {
            Of::Merchant => "merchant",
            Of::Bin => "bin",
            Of::All => "all",
        }
    }

    pub(crate) fn rate(&self) -> Rate {
        Rate::per_second(self.rate).unwrap()
    }

    pub(crate) fn burst(&self) -> Burst {
        Burst::tokens(self.burst).unwrap()
    }

    /// The limit as an operator would ask for it, with room for so many keys.
    pub(crate) fn rule(&self, keys: usize) -> Rule {
        let per = match self.of {
            Of::Merchant => Per::MERCHANT,
            Of::Bin => Per::BIN,
            Of::All => Per::NOTHING,
        };
        let rule = Rule::new(self.name(), per, self.rate(), self.burst());
        Rule { keys_max: keys, ..rule }
    }

    /// Which of the limit's buckets a source draws from.
    pub(crate) const fn key(&self, source: &Source) -> usize {
        match self.of {
            Of::Merchant => source.merchant,
            Of::Bin => source.bin,
            Of::All => 0,
        }
    }

    pub(crate) fn bucket(&self) -> Bucket {
        Bucket::new(self.rate(), self.burst())
    }
}

/// The place of `key` in `row`, made if it is not there.
pub(crate) fn at<T>(row: &mut Vec<T>, key: usize, make: impl Fn() -> T) -> &mut T {
    while row.len() <= key {
        row.push(make());
    }
    &mut row[key]
}

//! The limits of a workload: what the nodes enforce together, and what the yardstick does alone.

use tollgate::limits::{Amount, Burst, KeyMatch, Per, Rate, Reserve, Rule, RuleKey, Share};
use tollgate::traffic::MerchantId;

use crate::cluster::bucket::Bucket;
use crate::cluster::source::Source;

/// What has a bucket of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Merchant,
    Bin,
    All,
}

/// One limit. Amounts are tokens per second and tokens.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) of: Of,
    pub(crate) rate: f64,
    pub(crate) burst: f64,
    /// A second bucket of each key.
    pub(crate) peak: Option<(f64, f64)>,
    /// So many merchants are named, the first ones, and have a floor of this rate and burst: what
    /// keeps to it is refused by no limit.
    pub(crate) floors: Option<(usize, (f64, f64))>,
    /// The part of a bucket that is not for sheddable requests.
    pub(crate) reserve: f64,
}

impl Limit {
    pub(crate) const fn new(of: Of, rate: f64, burst: f64) -> Self {
        Self { of, rate, burst, peak: None, floors: None, reserve: 0.0 }
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self.of {
            Of::Merchant => "merchant",
            Of::Bin => "bin",
            Of::All => "all",
        }
    }

    /// The limit as an operator would ask for it, with room for so many keys.
    pub(crate) fn rule(&self, keys_max: usize) -> Rule {
        let per = match self.of {
            Of::Merchant => Per::MERCHANT,
            Of::Bin => Per::BIN,
            Of::All => Per::NOTHING,
        };
        let Amount { rate, burst } = amount((self.rate, self.burst));
        let sheddable = Share::of(self.reserve).unwrap();
        Rule {
            keys_max,
            peak: self.peak.map(amount),
            reserve: Reserve { sheddable, ..Reserve::NONE },
            keys: self.named_keys(),
            ..Rule::new(self.name(), per, rate, burst)
        }
    }

    fn named_keys(&self) -> Vec<RuleKey> {
        let Some((named, floor)) = self.floors else { return Vec::new() };
        let Amount { rate, burst } = amount((self.rate, self.burst));
        let key = |number| RuleKey {
            matches: KeyMatch::of_merchant(merchant(number)),
            rate,
            burst,
            peak: None,
            floor: Some(amount(floor)),
        };
        (0..named).map(key).collect()
    }

    /// Which of the limit's buckets a source draws from.
    pub(crate) const fn key(&self, source: &Source) -> usize {
        match self.of {
            Of::Merchant => source.merchant,
            Of::Bin => source.bin,
            Of::All => 0,
        }
    }

    /// The buckets of one key: that of its rate, and its peak.
    pub(crate) fn buckets(&self) -> Vec<Bucket> {
        [Some((self.rate, self.burst)), self.peak].into_iter().flatten().map(bucket).collect()
    }

    /// The floor of a key, if it has one.
    pub(crate) fn floor(&self, key: usize) -> Option<Bucket> {
        self.floors.filter(|(named, _)| key < *named).map(|(_, floor)| bucket(floor))
    }
}

/// The merchant of this number, as messages name it.
pub(crate) fn merchant(number: usize) -> MerchantId {
    MerchantId::new(b"123456", format!("SHOP{number:06}").as_bytes()).unwrap()
}

fn amount((rate, burst): (f64, f64)) -> Amount {
    Amount { rate: Rate::per_second(rate).unwrap(), burst: Burst::tokens(burst).unwrap() }
}

fn bucket(of: (f64, f64)) -> Bucket {
    let Amount { rate, burst } = amount(of);
    Bucket::new(rate, burst)
}

/// The place of `key` in `row`, made if it is not there.
pub(crate) fn at<T>(row: &mut Vec<T>, key: usize, mut make: impl FnMut(usize) -> T) -> &mut T {
    while row.len() <= key {
        row.push(make(row.len()));
    }
    &mut row[key]
}

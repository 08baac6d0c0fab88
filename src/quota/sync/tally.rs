//! What the sync has done, for metrics.

/// Counts since the start, and how the keys stand that were reported with the last tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls that the store answered in time.
    pub answered: u64,
    /// Calls that it did not.
    pub failed: u64,
    /// Keys that were reported.
    pub reported: u64,
    /// Answers of its own, while the store was lost.
    pub answered_locally: u64,
    /// Reports of a key that the store cannot keep, since something else stands under its name.
    pub unkept: u64,
    /// Keys that other nodes made low, as told by pushes and digests.
    pub heard: u64,
    /// Keys told of that have no place here: their limit is unknown, or its table full.
    pub unplaced: u64,
    /// Keys that the node answers itself at this moment.
    pub local_keys: usize,
    /// Keys that wait for the next tick, since there were more than one tick tells.
    pub late_keys: usize,
    /// Keys that have a record.
    pub keys: usize,
    /// By limit, in the order in which limits are asked.
    pub limits: Box<[LimitTally]>,
}

/// The keys of one limit that were reported between the last two ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitTally {
    /// Micro-tokens that the store had not heard of.
    pub unreported: i64,
    /// The lowest level that the store told, in micro-tokens; `None` when it told of none.
    pub lowest: Option<i64>,
}

impl Tally {
    pub(super) fn new(limits: usize) -> Self {
        Self { limits: vec![LimitTally::default(); limits].into(), ..Self::default() }
    }
}

//! What the sync knows of one key: what was reported, what was heard, and what was made of it.
//!
//! Amounts are micro-tokens. `sent` and `charged` are readings of the cell's `spent`, which goes round;
//! what a report says of them counts from `base`, where the incarnation began.

use std::num::NonZeroU64;

use crate::clock::Moment;
use crate::limits::cell::Reach;
use crate::limits::grant::{Grant, ONE};
use crate::limits::{Hold, Leased, Role, Terms};

/// An incarnation ends before so much was spent in it: what a report says has to be whole in the
/// 64-bit floating point numbers that a store keeps. A multiple of a token up to 2^59 is.
const INCARNATION_MAX: i64 = 1 << 58;

/// How the bucket stands to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The store has not been asked yet: the bucket is taken for full.
    New,
    /// By the store's last word.
    Leased,
    /// By itself, since the store is lost.
    Local,
}

impl Standing {
    /// The name in answers to operators.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Leased => "leased",
            Self::Local => "local",
        }
    }
}

/// One key. A million of them take 64 MB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// The incarnation.
    pub(super) boot: NonZeroU64,
    /// Where `spent` was when it began.
    base: i64,
    /// What `spent` was at the newest report, or when the node last answered itself.
    pub(super) sent: i64,
    /// The part of `spent` that the store has acknowledged.
    pub(super) charged: i64,
    /// The level at `at`: the store's word, or the node's own.
    pub(super) level: i64,
    pub(super) at: Moment,
    /// The low half of the call that reports it, 0 for none.
    flight: u32,
    /// The node's part of what all spend: the store's word, or what it goes by without one.
    pub(super) share: f32,
    pub(super) standing: Standing,
    /// The key is on the list of those that are reported when the store is back.
    pub(super) is_listed: bool,
}

impl Record {
    /// A key that nothing was said of yet, on one of so many nodes.
    pub(super) fn first(boot: NonZeroU64, cap: i64, nodes: u32, now: Moment) -> Self {
        Self {
            boot,
            base: 0,
            sent: 0,
            charged: 0,
            level: cap,
            at: now,
            flight: 0,
            share: 1.0 / nodes.max(1) as f32,
            standing: Standing::New,
            is_listed: false,
        }
    }

    pub(super) const fn is_in_flight(&self) -> bool {
        self.flight != 0
    }

    pub(super) const fn is_in(&self, call: u64) -> bool {
        self.flight == call as u32
    }

    /// A report leaves with this call, when the cell had spent so much.
    pub(super) const fn depart(&mut self, call: u64, spent: i64) {
        self.flight = call as u32;
        self.sent = spent;
    }

    /// The report is answered, or will not be.
    pub(super) const fn land(&mut self) {
        self.flight = 0;
    }

    /// Begins a new incarnation if the present one has grown old. Nothing may be under way: what the
    /// store has charged and the node does not know of would be charged again.
    pub(super) fn renew(&mut self, boot: impl FnOnce() -> NonZeroU64) {
        if !self.is_in_flight() && self.charged.wrapping_sub(self.base) >= INCARNATION_MAX {
            self.base = self.charged;
            self.boot = boot();
        }
    }

    /// A reading of `spent` as the store counts it. One token given back after it was reported may
    /// have the counter behind where the incarnation began: it starts from there.
    pub(super) fn counted(&self, spent: i64) -> i64 {
        spent.wrapping_sub(self.base).max(0)
    }

    /// The store's word, for a report that left at `at`.
    pub(super) fn take(&mut self, level: i64, charged: i64, share: f64, at: Moment) {
        self.charged = self.base.wrapping_add(charged);
        self.level = level;
        self.at = at;
        // A store that has lost its memory knows of no spending, and gives nobody a part of it.
        if share > 0.0 {
            self.share = share.min(1.0) as f32;
        }
        self.standing = Standing::Leased;
    }

    /// How far the node may go by what is known.
    pub(super) fn reach(&self, grant: &Grant, role: Role, terms: &Terms, nodes: u32) -> Reach {
        match (self.standing, role) {
            (Standing::Local, _) => Reach { hold: None, budget: Some((self.level / 4).max(ONE)) },
            (_, Role::Limit(hold)) => terms.reach(self.level, grant.cap(), nodes, hold),
            (_, Role::Floor) => terms.reach(self.level, grant.cap(), nodes, Hold::Burst),
        }
    }

    /// From where its reach counts.
    pub(super) const fn reached_from(&self) -> i64 {
        match self.standing {
            Standing::Local => self.sent,
            Standing::New | Standing::Leased => self.charged,
        }
    }

    /// Answers itself for `spent` so far: what the store would say if it saw this node alone, a bucket
    /// of the node's share of the rate.
    pub(super) fn answer_locally(
        &mut self,
        leased: &Leased<'_>,
        (terms, nodes, slack): (&Terms, u32, f64),
        spent: i64,
        now: Moment,
    ) {
        let (cap, grant) = (leased.grant.cap(), leased.grant);
        let spent_from = self.reached_from();
        if self.standing != Standing::Local {
            // A key that was low and has rested since is nobody's to share out.
            let refilled = self.level.saturating_add(grant.refill(now.since(self.at)));
            let contested = terms.is_low(refilled, cap);
            if leased.role == Role::Floor {
                self.share = 1.0;
            } else if contested {
                self.level = part(self.level, self.share);
            } else {
                let least = 1.0 / nodes.max(1) as f32;
                self.share = (slack as f32 * self.share.max(least)).min(1.0);
            }
        }
        // Neither knows when the bucket was full in between and its overflow lost: this by the share
        // of the rate and the cell by all of it. What is more than either was not there.
        let refill = part(grant.refill(now.since(self.at)), self.share);
        let level =
            self.level.saturating_add(refill).saturating_sub(spent.wrapping_sub(spent_from));
        let own = leased.cell.level(grant, now).unwrap_or(cap);
        self.level = level.min(own).clamp(-cap, cap);
        self.at = now;
        self.sent = spent;
        self.standing = Standing::Local;
    }

    /// Another node has made the key low: `level` is what was left at `now`, all that this node has
    /// told counted. It only ever lowers what is known.
    pub(super) fn hear(&mut self, grant: &Grant, level: i64, now: Moment) {
        let known = self.level.saturating_add(grant.refill(now.since(self.at))).min(grant.cap());
        if level < known {
            (self.level, self.at) = (level, now);
        }
        self.standing = Standing::Leased;
    }

    /// Whether the store knows all that a cell has spent by now.
    pub(super) fn is_at_rest(&self, spent: i64) -> bool {
        let known = self.charged.wrapping_sub(spent) >= 0;
        known && !self.is_in_flight() && self.standing != Standing::Local
    }
}

/// A fraction of an amount.
fn part(amount: i64, share: f32) -> i64 {
    (amount as f64 * f64::from(share)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incarnation_ends_before_a_store_could_not_tell_its_tokens_apart() {
        let mut record = Record::first(NonZeroU64::MIN, 50 * ONE, 1, Moment::START);
        // Where `spent` of the cell has gone round, and a rate of ten million a second takes 8 hours.
        record.base = i64::MAX - ONE;
        let mut boots = 1;
        for round in 1..=5 {
            let spent = record.charged.max(record.base).wrapping_add(INCARNATION_MAX);
            record.take(0, record.counted(spent), 1.0, Moment::START);
            record.depart(7, spent);
            record.renew(unreachable_boot);
            record.land();
            record.renew(|| {
                boots += 1;
                NonZeroU64::new(boots).unwrap()
            });
            assert_eq!((record.boot.get(), boots), (round + 1, round + 1));
            let later = record.charged.wrapping_add(3 * ONE);
            assert_eq!((record.counted(record.charged), record.counted(later)), (0, 3 * ONE));
        }
    }

    fn unreachable_boot() -> NonZeroU64 {
        panic!("an incarnation ended while its report was under way")
    }

    #[test]
    fn a_record_takes_no_more_than_a_cache_line() {
        assert_eq!(size_of::<Option<Record>>(), 64);
    }
}

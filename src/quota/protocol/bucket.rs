//! The bucket of one key as all nodes share it: its level, and a row for each node that spends.
//!
//! The arithmetic is that of floating point in this very order, so that a store in another language
//! says the same to the micro-token. What nodes count is whole. What is told of a level is
//! rounded down: a part of a micro-token is nobody's.

use std::collections::BTreeMap;

use super::{LOW_WATER_MIN, LOW_WATER_SHARE, Lease, NodeId, Report, SHARE_TAU_S};

/// Fields of a key, one for the bucket and one for each row, beyond which silent rows are removed.
const FIELDS_MAX: usize = 32;

/// A row or a node that was not heard for longer than this many microseconds is forgotten.
pub(super) const SILENT_US: u64 = 600_000_000;

/// In milliseconds, the shortest time that a key is kept after a report.
const KEPT_MIN_MS: f64 = 10_000.0;

/// What a store holds of one node's spending on one key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The incarnation of the node's cell.
    pub boot: u64,
    /// The most that it is known to have spent, in micro-tokens.
    pub spent: i64,
    /// What it spends lately, in micro-tokens per second.
    pub rate: f64,
    /// The store's logical time of the last report, in microseconds.
    pub at_us: u64,
}

/// One key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bucket {
    /// In micro-tokens, below zero for debt.
    level: f64,
    at_us: u64,
    /// What all nodes spend lately, in micro-tokens per second.
    rate_sum: f64,
    rows: BTreeMap<NodeId, Row>,
    /// The refill in micro-tokens per second and the capacity, as last reported.
    refill: f64,
    cap: f64,
}

/// What came of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) lease: Lease,
    /// The bucket is under its low water.
    pub(super) low: bool,
    /// The report told of spending that the store did not know.
    pub(super) is_new: bool,
}

/// Whether a report can be of a cell at all. No sum of it is taken before this.
pub(super) fn is_sound(report: &Report) -> bool {
    let Report { rate, cap, boot, spent, charged, .. } = *report;
    rate.is_finite() && rate > 0.0 && cap > 0 && spent >= 0 && charged >= 0 && boot < 1 << 53
}

/// The lease that leaves the cell of this report as it was.
pub(super) fn unchanged(report: &Report) -> Lease {
    Lease { level: report.level, charged: report.spent, share: 0.0 }
}

impl Bucket {
    /// A full bucket that nobody has spent of.
    pub(super) fn full(report: &Report, now_us: u64) -> Self {
        let cap = report.cap as f64;
        Self {
            level: cap,
            at_us: now_us,
            rate_sum: 0.0,
            rows: BTreeMap::new(),
            refill: report.rate,
            cap,
        }
    }

    /// Takes a sound report; `None`, and no change, when it is of an incarnation before the one that
    /// was last heard.
    ///
    /// A node that has answered itself has refilled and refused as the store would have: what it
    /// spent meanwhile is settled, and only its level counts. So does that of a node the store does
    /// not know, or of which it has forgotten what it had acknowledged, as a replica has that was behind
    /// its master: what was charged to a bucket that is lost shows in the level that was told then.
    pub(super) fn charge(&mut self, node: NodeId, report: &Report, now_us: u64) -> Option<Outcome> {
        let row = self.rows.get(&node);
        if row.is_some_and(|row| row.boot > report.boot) {
            return None;
        }
        // What the node spends goes on when its cell is made again.
        let mut rate = row.map_or(0.0, |row| row.rate_at(now_us));
        let row = row.filter(|row| row.boot == report.boot);
        let cap = report.cap as f64;
        let mut level = self.refilled(report.rate, cap, now_us);
        let mut rate_sum = self.rate_sum_at(now_us);
        let has_forgotten = row.is_none_or(|row| row.spent < report.charged);
        let known = row.map_or(report.charged, |row| row.spent.max(report.charged));
        let spent = report.spent.saturating_sub(known).max(0) as f64;
        if !report.local {
            level -= spent;
            rate += spent / SHARE_TAU_S;
            rate_sum += spent / SHARE_TAU_S;
        }
        if has_forgotten || (report.local && spent > 0.0) {
            level = level.min(report.level as f64);
        }
        // Debt beyond one burst is forgiven.
        level = level.max(-cap);

        let row = Row { boot: report.boot, spent: known.max(report.spent), rate, at_us: now_us };
        self.level = level;
        self.at_us = now_us;
        self.rate_sum = rate_sum;
        self.refill = report.rate;
        self.cap = cap;
        self.rows.insert(node, row);
        self.drop_silent_rows(now_us);
        let share = if rate_sum > 0.0 { (rate / rate_sum).min(1.0) } else { 0.0 };
        Some(Outcome {
            lease: Lease { level: whole(level), charged: row.spent, share },
            low: level < (cap * LOW_WATER_SHARE).max(LOW_WATER_MIN as f64),
            is_new: spent > 0.0,
        })
    }

    /// In micro-tokens, the level at `now_us`.
    pub(super) fn level_at(&self, now_us: u64) -> i64 {
        whole(self.refilled(self.refill, self.cap, now_us))
    }

    /// In micro-tokens per second, what all nodes spend lately at `now_us`.
    pub(super) fn rate_sum_at(&self, now_us: u64) -> f64 {
        self.rate_sum * (-self.seconds_to(now_us) / SHARE_TAU_S).exp()
    }

    /// The rows, with their rates as of `now_us`.
    pub(super) fn rows_at(&self, now_us: u64) -> impl Iterator<Item = (NodeId, Row)> {
        self.rows.iter().map(move |(node, row)| (*node, Row { rate: row.rate_at(now_us), ..*row }))
    }

    /// Whether the key has seen no report for so long that nothing of it is worth keeping: an empty
    /// bucket is long full, also one in debt.
    pub(super) fn is_expired(&self, now_us: u64) -> bool {
        let kept_ms = (3_000.0 * self.cap / self.refill).floor().max(KEPT_MIN_MS);
        now_us.saturating_sub(self.at_us) > (kept_ms as u64).saturating_mul(1_000)
    }

    fn refilled(&self, rate: f64, cap: f64, now_us: u64) -> f64 {
        cap.min(self.level + rate * self.seconds_to(now_us))
    }

    fn seconds_to(&self, now_us: u64) -> f64 {
        now_us.saturating_sub(self.at_us) as f64 / 1e6
    }

    /// A key that outlives many restarts of the nodes must not keep a row for each of them.
    fn drop_silent_rows(&mut self, now_us: u64) {
        if self.rows.len() >= FIELDS_MAX {
            self.rows.retain(|_, row| now_us.saturating_sub(row.at_us) <= SILENT_US);
        }
    }
}

impl Row {
    fn rate_at(&self, now_us: u64) -> f64 {
        let age_us = now_us.saturating_sub(self.at_us) as f64;
        self.rate * (-age_us / (SHARE_TAU_S * 1e6)).exp()
    }
}

fn whole(level: f64) -> i64 {
    level.floor() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::StoreKey;

    const NODE: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);
    const TOKEN: i64 = 1_000_000;
    const SECOND_US: u64 = 1_000_000;

    /// Of a bucket of 50 tokens that refills by 25 a second; the cell's own level is full.
    fn report(boot: u64, spent: i64, charged: i64) -> Report {
        Report {
            key: StoreKey { limit: 1, id: [2, 3] },
            rate: 25e6,
            cap: 50 * TOKEN,
            boot,
            spent: spent * TOKEN,
            charged: charged * TOKEN,
            level: 50 * TOKEN,
            local: false,
        }
    }

    fn local(report: Report, level: i64) -> Report {
        Report { level: level * TOKEN, local: true, ..report }
    }

    fn bucket() -> Bucket {
        Bucket::full(&report(1, 0, 0), 0)
    }

    fn leased(bucket: &mut Bucket, node: NodeId, report: Report, now_us: u64) -> (i64, i64) {
        let lease = bucket.charge(node, &report, now_us).unwrap().lease;
        (lease.level / TOKEN, lease.charged / TOKEN)
    }

    #[test]
    fn what_is_newly_spent_is_charged_and_time_refills() {
        let mut bucket = bucket();
        assert_eq!(leased(&mut bucket, NODE, report(1, 10, 0), 0), (40, 10));
        assert_eq!(leased(&mut bucket, NODE, report(1, 40, 10), 0), (10, 40));
        assert_eq!(leased(&mut bucket, NODE, report(1, 40, 40), SECOND_US), (35, 40));
        assert_eq!(leased(&mut bucket, NODE, report(1, 40, 40), 9 * SECOND_US), (50, 40));
    }

    #[test]
    fn a_report_that_comes_again_or_late_charges_nothing() {
        let mut bucket = bucket();
        leased(&mut bucket, NODE, report(1, 10, 0), 0);
        assert_eq!(leased(&mut bucket, NODE, report(1, 10, 0), 0), (40, 10));
        assert_eq!(leased(&mut bucket, NODE, report(1, 7, 0), 0), (40, 10));
        assert_eq!(bucket.rows_at(0).next().unwrap().1.spent, 10 * TOKEN);
    }

    #[test]
    fn nodes_are_charged_to_one_bucket_by_their_own_counters() {
        let mut bucket = bucket();
        leased(&mut bucket, NODE, report(1, 10, 0), 0);
        assert_eq!(leased(&mut bucket, OTHER, report(1, 10, 0), 0), (30, 10));
        assert_eq!(leased(&mut bucket, NODE, report(1, 11, 10), 0), (29, 11));
    }

    #[test]
    fn a_cell_that_was_made_again_counts_from_nothing() {
        let mut bucket = bucket();
        leased(&mut bucket, NODE, report(1, 10, 0), 0);
        assert_eq!(leased(&mut bucket, NODE, report(2, 3, 0), 0), (37, 3));
        assert_eq!(bucket.rows_at(0).count(), 1);
    }

    #[test]
    fn a_report_of_the_cell_before_changes_nothing() {
        let mut bucket = bucket();
        leased(&mut bucket, NODE, report(2, 10, 0), 0);
        let before = bucket.clone();
        assert_eq!(bucket.charge(NODE, &report(1, 20, 0), SECOND_US), None);
        assert_eq!(bucket, before);
    }

    #[test]
    fn what_a_node_spent_while_it_answered_itself_is_settled_by_its_level() {
        let mut bucket = bucket();
        leased(&mut bucket, NODE, report(1, 10, 0), 0);
        // Neither charged 1,000 tokens, nor is a fuller cell believed.
        assert_eq!(leased(&mut bucket, NODE, local(report(1, 1_010, 10), 12), 0), (12, 1_010));
        assert_eq!(leased(&mut bucket, NODE, local(report(1, 1_011, 10), 49), 0), (12, 1_011));
        // The next report is an ordinary one.
        assert_eq!(leased(&mut bucket, NODE, report(1, 1_012, 1_011), 0), (11, 1_012));
    }

    #[test]
    fn the_level_of_a_node_that_spent_nothing_by_itself_does_not_count() {
        let mut bucket = bucket();
        leased(&mut bucket, NODE, report(1, 10, 0), 0);
        assert_eq!(leased(&mut bucket, NODE, local(report(1, 10, 10), 3), 0), (40, 10));
    }

    #[test]
    fn a_lost_bucket_comes_back_at_the_level_of_those_who_report() {
        let mut bucket = bucket();
        let at = |report: Report, level: i64| Report { level: level * TOKEN, ..report };
        assert_eq!(leased(&mut bucket, NODE, at(report(1, 500, 498), 7), 0), (7, 500));
        assert_eq!(leased(&mut bucket, OTHER, at(report(1, 300, 299), 5), 0), (5, 300));
        // The one who is charged first already knows the level.
        assert_eq!(leased(&mut bucket, NodeId(3), at(report(1, 9, 8), 50), 0), (4, 9));
    }

    #[test]
    fn an_undo_after_the_report_makes_the_next_spend_free() {
        let mut bucket = bucket();
        leased(&mut bucket, NODE, report(1, 10, 0), 0);
        assert_eq!(leased(&mut bucket, NODE, report(1, 9, 10), 0), (40, 10));
        assert_eq!(leased(&mut bucket, NODE, report(1, 10, 10), 0), (40, 10));
        assert_eq!(leased(&mut bucket, NODE, report(1, 11, 10), 0), (39, 11));
        // In an unknown row too.
        assert_eq!(leased(&mut bucket, OTHER, report(1, 9, 10), 0), (39, 10));
    }

    #[test]
    fn debt_beyond_one_burst_is_forgiven() {
        let mut bucket = bucket();
        assert_eq!(leased(&mut bucket, NODE, report(1, 95, 0), 0), (-45, 95));
        assert_eq!(leased(&mut bucket, NODE, report(1, 900, 95), 0), (-50, 900));
        assert_eq!(leased(&mut bucket, NODE, report(1, 900, 900), 2 * SECOND_US), (0, 900));
    }

    #[test]
    fn a_share_is_what_a_node_spends_lately_of_what_all_spend() {
        let mut bucket = bucket();
        let share = |bucket: &mut Bucket, node, report: Report, now_us| {
            bucket.charge(node, &report, now_us).unwrap().lease.share
        };
        assert_eq!(share(&mut bucket, NODE, report(1, 0, 0), 0), 0.0);
        assert_eq!(share(&mut bucket, NODE, report(1, 30, 0), 0), 1.0);
        assert_eq!(share(&mut bucket, OTHER, report(1, 10, 0), 0), 0.25);
        // After one tau a token of then weighs 1/e of one spent at this time.
        let tau_us = 8 * SECOND_US;
        let now = 10.0 / (10.0 + 40.0 / std::f64::consts::E);
        let then = share(&mut bucket, NodeId(3), report(1, 10, 0), tau_us);
        assert!((then - now).abs() < 1e-9, "{then} {now}");
        // What a node spent by itself counts for nobody's share.
        assert_eq!(share(&mut bucket, NodeId(4), local(report(1, 10, 0), 9), tau_us), 0.0);
    }

    #[test]
    fn a_quarter_of_the_capacity_is_low_and_so_is_the_last_token() {
        for (cap, spent, low) in
            [(100, 75, false), (100, 76, true), (4, 2, false), (4, 3, true), (1, 0, true)]
        {
            let report = Report { cap: cap * TOKEN, ..report(1, spent, 0) };
            let outcome = Bucket::full(&report, 0).charge(NODE, &report, 0).unwrap();
            assert_eq!((outcome.low, outcome.is_new), (low, spent > 0), "{cap} {spent}");
        }
    }

    #[test]
    fn silent_rows_go_once_there_are_many() {
        let mut bucket = bucket();
        let many = u64::try_from(FIELDS_MAX).unwrap() - 2;
        for node in 0..many {
            leased(&mut bucket, NodeId(100 + node), report(1, 1, 0), node);
        }
        let later_us = SILENT_US + 2;
        leased(&mut bucket, NODE, report(1, 1, 0), later_us);
        assert_eq!(bucket.rows.len(), FIELDS_MAX - 1);
        // The next field is one too many; the last rows are of ten minutes ago and not yet silent.
        leased(&mut bucket, OTHER, report(1, 1, 0), later_us);
        let left: Vec<_> = bucket.rows.keys().map(|node| node.0).take(3).collect();
        assert_eq!(left, [1, 2, 102]);
        assert_eq!(bucket.rows.len(), FIELDS_MAX - 2);
    }

    #[test]
    fn a_key_is_kept_ten_seconds_and_three_times_as_long_as_its_bucket_takes_to_fill() {
        let expires = |report: Report, kept_us: u64| {
            let bucket = Bucket::full(&report, 0);
            assert!(!bucket.is_expired(kept_us) && bucket.is_expired(kept_us + 1), "{kept_us}");
        };
        expires(report(1, 0, 0), 10 * SECOND_US);
        expires(Report { rate: 1e6, ..report(1, 0, 0) }, 150 * SECOND_US);
        let endless = Bucket::full(&Report { rate: f64::MIN_POSITIVE, ..report(1, 0, 0) }, 0);
        assert!(!endless.is_expired(u64::MAX));
    }

    #[test]
    fn what_no_cell_can_have_sent_is_unsound() {
        let sound = report(1, 10, 5);
        assert!(is_sound(&sound));
        for unsound in [
            Report { rate: f64::NAN, ..sound },
            Report { rate: f64::INFINITY, ..sound },
            Report { rate: 0.0, ..sound },
            Report { rate: -1.0, ..sound },
            Report { cap: 0, ..sound },
            Report { cap: i64::MIN, ..sound },
            Report { spent: -1, ..sound },
            Report { charged: -1, ..sound },
            Report { boot: 1 << 53, ..sound },
        ] {
            assert!(!is_sound(&unsound), "{unsound:?}");
        }
    }
}

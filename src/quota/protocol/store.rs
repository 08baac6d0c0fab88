//! One call of one node: time goes on, the node is live, its reports are charged, and it is told
//! what the others have made low.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::bucket::{Bucket, Row, SILENT_US, is_sound, unchanged};
use super::logical_clock::LogicalClock;
use super::low::{LowKeys, Page};
use super::{Call, DIGEST_MAX, LIVE_US, Lease, Low, NodeId, Reply, Report};
use crate::limits::StoreKey;

/// Keys that a call without reports looks at for whether they are expired.
const VISITS: usize = 8;

/// The state of one store.
///
/// A key is kept for three times the time that its bucket takes to fill, and for ten seconds at
/// least, since its last report. That time is the store's own logical time. Redis expires its keys by
/// its own clock, which makes a difference only where that clock is set, and then costs no more than
/// the key's rows: a bucket comes back at the level that its nodes report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Store {
    clock: LogicalClock,
    /// When each node was last heard.
    nodes: BTreeMap<NodeId, u64>,
    buckets: BTreeMap<StoreKey, Bucket>,
    low: LowKeys,
    /// The key that was last looked at for whether it is expired.
    cursor: Option<StoreKey>,
}

/// What comes of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// For the caller.
    pub reply: Reply,
    /// For every node that listens: the keys that this call has spent of and left low.
    pub push: Vec<Low>,
}

impl Store {
    /// A store that has heard nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a call that arrives at `wall_us`, in microseconds of a clock that may be set at any
    /// time.
    ///
    /// A report that no cell can have sent changes nothing, and is answered with the lease that
    /// leaves its cell as it was. So is a report of an incarnation that another has followed.
    pub fn call(&mut self, call: &Call, wall_us: u64) -> Answer {
        let own_us = call.elapsed_us.map(|elapsed| call.since.time_us.saturating_add(elapsed));
        let now_us = self.clock.go_on(wall_us, own_us);
        self.nodes.retain(|_, heard_us| now_us.saturating_sub(*heard_us) <= SILENT_US);
        self.nodes.insert(call.node, now_us);
        let mut news = Vec::new();
        let reports = call.reports.iter();
        let leases =
            reports.map(|report| Some(self.charge(call.node, report, &mut news))).collect();
        if call.leave {
            self.nodes.remove(&call.node);
        }
        let Page { digest, since, amid_now } = self.low.page(call.since, now_us);
        if amid_now {
            self.clock.part();
        }
        let reports = call.reports.len();
        self.low.forget(now_us, DIGEST_MAX.max(reports));
        self.expire(reports.saturating_mul(2).saturating_add(VISITS), now_us);
        let push = if call.push { news } else { Vec::new() };
        Answer { reply: Reply { nodes: self.live(now_us), leases, digest, since }, push }
    }

    /// Forgets everything, the time too, as a store that has lost its memory.
    pub fn wipe(&mut self) {
        *self = Self::new();
    }

    /// The store's logical time as of the last call, in microseconds.
    pub fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// The keys that it holds, those that are expired and not yet removed among them.
    pub fn keys(&self) -> impl Iterator<Item = StoreKey> {
        self.buckets.keys().copied()
    }

    /// The level of a key at the store's time, in micro-tokens; `None` for a key that it does not
    /// know, whose bucket is full.
    pub fn level(&self, key: StoreKey) -> Option<i64> {
        self.bucket(key).map(|bucket| bucket.level_at(self.now_us()))
    }

    /// The rows of a key, with their rates at the store's time.
    pub fn rows(&self, key: StoreKey) -> impl Iterator<Item = (NodeId, Row)> {
        self.bucket(key).into_iter().flat_map(|bucket| bucket.rows_at(self.now_us()))
    }

    /// What all nodes spend lately of a key at the store's time, in micro-tokens per second. A row's
    /// rate over this is its node's share.
    pub fn rate_sum(&self, key: StoreKey) -> f64 {
        self.bucket(key).map_or(0.0, |bucket| bucket.rate_sum_at(self.now_us()))
    }

    fn bucket(&self, key: StoreKey) -> Option<&Bucket> {
        self.buckets.get(&key).filter(|bucket| !bucket.is_expired(self.now_us()))
    }

    fn charge(&mut self, node: NodeId, report: &Report, news: &mut Vec<Low>) -> Lease {
        if !is_sound(report) {
            return unchanged(report);
        }
        let (key, now_us) = (report.key, self.now_us());
        let bucket = self.buckets.entry(key).or_insert_with(|| Bucket::full(report, now_us));
        if bucket.is_expired(now_us) {
            *bucket = Bucket::full(report, now_us);
        }
        let Some(outcome) = bucket.charge(node, report, now_us) else {
            return unchanged(report);
        };
        if outcome.low {
            let low = Low { key, level: outcome.lease.level };
            self.low.note(low, now_us);
            if outcome.is_new {
                news.push(low);
            }
        }
        outcome.lease
    }

    fn live(&self, now_us: u64) -> u32 {
        let live =
            self.nodes.values().filter(|heard_us| now_us.saturating_sub(**heard_us) < LIVE_US);
        u32::try_from(live.count()).unwrap_or(u32::MAX)
    }

    /// Looks at the next `visits` keys and removes those that are expired. More are looked at than a
    /// call can make, so the store holds no more than about twice the keys in use.
    fn expire(&mut self, visits: usize, now_us: u64) {
        let from = self.cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.buckets.range((from, Bound::Unbounded)).take(visits);
        let next: Vec<_> = next.map(|(key, bucket)| (*key, bucket.is_expired(now_us))).collect();
        self.cursor = if next.len() < visits { None } else { next.last().map(|(key, _)| *key) };
        for (key, _) in next.into_iter().filter(|(_, expired)| *expired) {
            self.buckets.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DIGEST_AGE_US, Since};
    use super::*;

    const TOKEN: i64 = 1_000_000;
    const SECOND_US: u64 = 1_000_000;
    const HOUR_US: u64 = 3_600 * SECOND_US;
    /// When the stores of these tests are first called.
    const START_US: u64 = 500_000 * HOUR_US;

    fn key(number: u64) -> StoreKey {
        StoreKey { limit: 7, id: [number, 0] }
    }

    /// Of a bucket of 50 tokens that refills by 25 a second.
    fn report(number: u64, spent: i64) -> Report {
        Report {
            key: key(number),
            rate: 25e6,
            cap: 50 * TOKEN,
            boot: 1,
            spent: spent * TOKEN,
            charged: 0,
            level: 50 * TOKEN,
            local: false,
        }
    }

    fn call(node: u64, reports: &[Report]) -> Call {
        Call {
            node: NodeId(node),
            elapsed_us: Some(100_000),
            since: Since::default(),
            push: true,
            leave: false,
            reports: reports.to_vec(),
        }
    }

    /// Where a node has read to that was answered at the start.
    fn at_start() -> Since {
        Since { time_us: START_US, after: None }
    }

    fn leaving(call: Call) -> Call {
        Call { leave: true, ..call }
    }

    /// One report for each of so many keys, each of which it leaves low.
    fn emptied(keys: u64) -> Vec<Report> {
        (0..keys).map(|number| report(number, 50)).collect()
    }

    /// What a reply says of the keys, in tokens.
    fn levels(reply: &Reply) -> Vec<i64> {
        reply.leases.iter().map(|lease| lease.unwrap().level / TOKEN).collect()
    }

    fn nodes(store: &mut Store, call: &Call, wall_us: u64) -> u32 {
        store.call(call, wall_us).reply.nodes
    }

    #[test]
    fn a_call_is_answered_with_a_lease_for_each_report_in_order() {
        let mut store = Store::new();
        let reply = store.call(&call(1, &[report(2, 10), report(1, 20)]), START_US).reply;
        assert_eq!(levels(&reply), [40, 30]);
        assert_eq!((reply.nodes, reply.digest), (1, vec![]));
        assert_eq!(reply.since, Since { time_us: START_US, after: None });
        assert_eq!(store.level(key(2)), Some(40 * TOKEN));
        assert_eq!(store.level(key(3)), None);
    }

    #[test]
    fn a_clock_set_by_an_hour_refills_what_the_node_saw_pass() {
        for set_us in [START_US + HOUR_US, START_US - HOUR_US] {
            let mut store = Store::new();
            store.call(&call(1, &[report(1, 40)]), START_US);
            store.call(&Call { since: at_start(), ..call(1, &[]) }, set_us);
            assert_eq!(store.level(key(1)), Some(12 * TOKEN + TOKEN / 2));
            store.call(&call(1, &[]), set_us + 100_000);
            assert_eq!(store.level(key(1)), Some(15 * TOKEN));
        }
    }

    #[test]
    fn nodes_that_call_around_a_set_clock_do_not_each_refill_their_tick() {
        let mut store = Store::new();
        store.call(&call(1, &[report(1, 40)]), START_US);
        let since = store.call(&call(2, &[]), START_US + 50_000).reply.since;
        store.call(&Call { since: at_start(), ..call(1, &[]) }, START_US + HOUR_US);
        store.call(&Call { since, ..call(2, &[]) }, START_US - HOUR_US);
        assert_eq!(store.now_us(), START_US + 150_000);
        assert_eq!(store.level(key(1)), Some(13 * TOKEN + 3 * TOKEN / 4));
        // One whose last answer was longer ago knows of no later time.
        store.call(&Call { since: at_start(), ..call(3, &[]) }, START_US + HOUR_US);
        assert_eq!(store.now_us(), START_US + 150_000);
    }

    #[test]
    fn a_node_is_live_for_a_second_and_a_half() {
        let mut store = Store::new();
        assert_eq!(nodes(&mut store, &call(1, &[]), START_US), 1);
        assert_eq!(nodes(&mut store, &call(2, &[]), START_US + 400_000), 2);
        for wall in [800_000, 1_200_000, 1_499_999] {
            assert_eq!(nodes(&mut store, &call(2, &[]), START_US + wall), 2);
        }
        assert_eq!(nodes(&mut store, &call(2, &[]), START_US + LIVE_US), 1);
        assert_eq!(nodes(&mut store, &call(1, &[]), START_US + LIVE_US), 2);
    }

    #[test]
    fn a_node_that_leaves_is_charged_and_counted_no_more() {
        let mut store = Store::new();
        store.call(&call(1, &[]), START_US);
        let last = leaving(call(2, &[report(1, 30)]));
        let reply = store.call(&last, START_US).reply;
        assert_eq!((reply.nodes, levels(&reply)), (1, vec![20]));
        assert_eq!(nodes(&mut store, &call(1, &[]), START_US), 1);
        // The last call, come again, still charges nothing.
        assert_eq!(levels(&store.call(&last, START_US).reply), [20]);
    }

    #[test]
    fn a_node_that_is_silent_for_ten_minutes_is_forgotten() {
        let mut store = Store::new();
        store.call(&call(1, &[]), START_US);
        let after = |us| Call { elapsed_us: Some(us), since: at_start(), ..call(2, &[]) };
        store.call(&after(SILENT_US), START_US + SILENT_US);
        assert_eq!(store.nodes.len(), 2);
        store.call(&after(1), START_US + SILENT_US + 1);
        assert_eq!(store.nodes.len(), 1);
    }

    #[test]
    fn keys_that_a_call_spends_of_and_leaves_low_are_pushed() {
        let mut store = Store::new();
        let spending = call(1, &[report(1, 10), report(2, 40), report(3, 45)]);
        let low = |number, level: i64| Low { key: key(number), level: level * TOKEN };
        let lows = [low(2, 10), low(3, 5)];
        assert_eq!(
            store.clone().call(&Call { push: false, ..spending.clone() }, START_US).push,
            []
        );
        let answer = store.call(&spending, START_US);
        assert_eq!(answer.push, lows);
        assert_eq!(answer.reply.digest, lows);
        // Nothing is new the second time; the digest tells it all the same.
        let again = store.call(&spending, START_US);
        assert_eq!((again.push, again.reply.digest), (vec![], lows.to_vec()));
    }

    #[test]
    fn a_digest_tells_what_the_others_made_low_since_the_last_reply() {
        let mut store = Store::new();
        let since = store.call(&call(1, &[report(1, 50)]), START_US).reply.since;
        store.call(&call(2, &[report(2, 45)]), START_US + 1_000);
        let next = Call { since: Since { time_us: since.time_us + 1, ..since }, ..call(1, &[]) };
        let digest = store.call(&next, START_US + 2_000).reply.digest;
        assert_eq!(digest, [Low { key: key(2), level: 5 * TOKEN }]);
        let late = call(1, &[]);
        let digest = store.call(&late, START_US + 1_000 + DIGEST_AGE_US).reply.digest;
        assert_eq!(digest.len(), 1);
        assert_eq!(store.call(&late, START_US + 1_001 + DIGEST_AGE_US).reply.digest, []);
    }

    #[test]
    fn what_is_noted_anew_at_one_microsecond_amid_pages_is_told() {
        let mut store = Store::new();
        let first = store.call(&call(1, &emptied(600)), START_US).reply;
        assert_eq!(first.digest.len(), DIGEST_MAX);
        // Both stand before the keys of the first page, and are noted by a clock that stands still.
        let other = Report { key: StoreKey { limit: 1, id: [0, 0] }, ..report(0, 50) };
        store.call(&call(2, &[report(3, 60), other]), START_US);
        let (mut told, mut since) = (Vec::new(), first.since);
        for _ in 0..9 {
            let reply = store.call(&Call { since, ..call(1, &[]) }, START_US).reply;
            told.extend(reply.digest);
            since = reply.since;
        }
        let told_of = |key| told.iter().find(|low| low.key == key).map(|low| low.level / TOKEN);
        assert_eq!(told_of(other.key), Some(0));
        assert_eq!(told_of(key(3)), Some(-50));
        let rest: Vec<_> = (256..600).map(|number| told_of(key(number))).collect();
        assert_eq!(rest, [Some(0); 344]);
        assert_eq!(store.now_us(), START_US + 1, "one page ended amid what was noted then");
    }

    #[test]
    fn keys_that_nobody_reports_are_removed() {
        let mut store = Store::new();
        for number in 0..1_000 {
            store.call(&call(1, &[report(number, 1)]), START_US + number);
        }
        assert_eq!(store.keys().count(), 1_000);
        let idle = |us| Call { elapsed_us: Some(us), since: at_start(), ..call(1, &[]) };
        store.call(&idle(11 * SECOND_US), START_US + 11 * SECOND_US);
        assert_eq!(store.level(key(999)), None, "an expired key is gone before it is removed");
        assert_eq!(store.rows(key(999)).count(), 0);
        let again = store.call(&call(1, &[report(999, 3)]), START_US + 11 * SECOND_US);
        assert_eq!(levels(&again.reply), [47]);
        for _ in 0..130 {
            store.call(&call(1, &[]), START_US + 11 * SECOND_US);
        }
        assert_eq!(store.keys().collect::<Vec<_>>(), [key(999)]);
    }

    #[test]
    fn keys_that_are_used_once_each_do_not_pile_up() {
        let mut store = Store::new();
        let a_tick = |tick: u64| (0..50).map(|at| report(tick * 50 + at, 50)).collect::<Vec<_>>();
        let mut most = 0;
        for tick in 0..1_000 {
            store.call(&call(1, &a_tick(tick)), START_US + tick * 100_000);
            most = most.max(store.keys().count());
        }
        // Ten seconds of them are alive; a round of looking takes about as long again.
        assert!((5_000..11_000).contains(&most), "{most}");
    }

    #[test]
    fn an_unsound_report_changes_nothing_and_leaves_its_cell_as_it_was() {
        let mut store = Store::new();
        store.call(&call(1, &[report(1, 10)]), START_US);
        let unsound = [
            Report { rate: f64::NAN, ..report(1, 20) },
            Report { cap: -1, ..report(2, 20) },
            Report { spent: i64::MIN, charged: i64::MAX, level: i64::MIN, ..report(1, 0) },
            Report { boot: 0, ..report(1, 20) },
        ];
        let before = store.clone();
        let answer = store.call(&call(1, &unsound), START_US);
        assert_eq!(answer.reply.leases, unsound.each_ref().map(|report| Some(unchanged(report))));
        assert_eq!(answer.push, []);
        assert_eq!(store, before);
    }

    #[test]
    fn the_ends_of_every_number_are_no_end_of_the_store() {
        let mut store = Store::new();
        for (spent, charged, level) in
            [(i64::MAX, 0, i64::MIN), (i64::MAX, i64::MAX, i64::MAX), (0, i64::MAX, 0)]
        {
            for (rate, cap) in [(f64::MAX, i64::MAX), (f64::MIN_POSITIVE, 1), (1e6, 1)] {
                for local in [false, true] {
                    let report = Report { rate, cap, spent, charged, level, local, ..report(1, 0) };
                    let elapsed_us = Some(u64::MAX / 8);
                    let call = Call { elapsed_us, ..call(1, &[report]) };
                    let lease = store.call(&call, u64::MAX).reply.leases[0].unwrap();
                    // The greatest capacity is a float one above it.
                    assert!((-cap - 1..=cap).contains(&lease.level), "{lease:?}");
                    assert!((0.0..=1.0).contains(&lease.share), "{lease:?}");
                    store.call(&call, 0);
                }
            }
        }
    }

    #[test]
    fn a_wiped_store_knows_nothing() {
        let mut store = Store::new();
        store.call(&call(1, &emptied(3)), START_US);
        store.wipe();
        assert_eq!(store, Store::new());
        let reply = store.call(&call(2, &[]), START_US - HOUR_US).reply;
        assert_eq!((reply.nodes, reply.digest), (1, vec![]));
        assert_eq!(store.now_us(), START_US - HOUR_US);
    }
}

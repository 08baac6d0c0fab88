//! Three tollgate processes on one Redis: what they admit together, of whom they refuse nothing, and
//! what is left in the store when one of them goes.
//!
//! `TOLLGATE_LONG`, which `tests/long.sh` sets, has conforming clients go on for a minute.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use support::load::{Hop, Outcome, Shop};
use support::redis::ledger::{self, Bucket};
use support::redis::{RedisServer, ServerPlan};
use support::store_house::{LEASE_NODES, StoreHouse};
use tollgate::limits::Terms;

const NODES: usize = 3;
/// How much more than its rate an overloaded key is asked for.
const OVERLOAD: f64 = 3.0;
/// In which time what an overloaded key admits is counted.
const WINDOW: Duration = Duration::from_secs(10);
/// Of what one bucket would admit, so much is admitted at least.
const LEAST_SHARE: f64 = 0.98;

/// A Redis and the nodes on it.
struct Scene {
    redis: RedisServer,
    house: StoreHouse,
    // Each scene has the processors for itself, as far as tests of this file go.
    _turn: MutexGuard<'static, ()>,
}

impl Scene {
    fn new(limits: &str) -> Self {
        Self::on(ServerPlan::default(), limits)
    }

    fn on(plan: ServerPlan, limits: &str) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let redis = plan.start();
        let house = StoreHouse::start(NODES, &redis.quota(None), limits);
        Self { redis, house, _turn: turn }
    }

    /// The only bucket that the store has.
    fn bucket(&self) -> Bucket {
        let mut buckets = ledger::buckets(&self.redis);
        assert_eq!(buckets.len(), 1, "{buckets:?}");
        buckets.remove(0)
    }

    /// How many tokens the nodes may admit beyond burst and rate, as docs/leasing.md states it, when
    /// a key is asked for so many a second.
    fn over(&self, asked: f64, burst: f64) -> f64 {
        let cap = (burst * 1e6) as i64;
        let nodes = u32::try_from(NODES).unwrap();
        let most = Terms::default().over_at_most(cap, nodes, Default::default()) as f64;
        most.max(Terms::over_usually(asked, self.house.slowest_call())) / 1e6
    }
}

/// A limit for merchants of one category.
fn limit(name: &str, per: &str, category: &str, rate: f64, burst: f64) -> String {
    let per = if per.is_empty() { String::new() } else { format!("\"{per}\"") };
    format!(
        r#"
        [[limit]]
        name = "{name}"
        per = [{per}]
        rate = {rate}
        burst = {burst}
        mode = "enforce"
        [limit.when]
        mcc = ["{category}"]
        "#
    )
}

#[test]
fn an_overloaded_merchant_bin_and_system_get_what_one_bucket_would_give_them() {
    /// Limit, its unit, how many shops ask for a part of it, rate and burst.
    const KEYS: [(&str, &str, usize, f64, f64); 3] = [
        ("merchant", "merchant", 1, 25.0, 50.0),
        ("bin", "bin", 10, 100.0, 200.0),
        ("system", "", 12, 200.0, 400.0),
    ];
    let (mut limits, mut shops, mut ranges) = (String::new(), Vec::new(), Vec::new());
    for (number, (name, per, count, rate, burst)) in KEYS.into_iter().enumerate() {
        let category = format!("{}", 5411 + number);
        limits += &limit(name, per, &category, rate, burst);
        let first = shops.len();
        shops.extend((0..count).map(|shop| {
            // One BIN for all of them, but where it is to make no difference.
            let bin = if per.is_empty() { 411_100 + shop } else { 411_111 };
            Shop::steady(&format!("{name} {shop}"), OVERLOAD * rate / count as f64)
                .category(&category)
                .card(&format!("{bin}1111111111"))
        }));
        ranges.push(first..shops.len());
    }
    let scene = Scene::new(&limits);
    let outcome = scene.house.load(shops).finish_after(WINDOW);
    outcome.expect_whole();
    for ((name, _, _, rate, burst), range) in KEYS.into_iter().zip(ranges) {
        let outcome = outcome.of(range);
        let (admitted, ideal) = (outcome.admitted() as f64, outcome.ideal(rate, burst) as f64);
        let over = scene.over(OVERLOAD * rate, burst);
        let most = burst + rate * outcome.span().as_secs_f64() + over;
        let said = format!(
            "{name}: {admitted} of {} in {:?}, ideal {ideal}, most {most:.1}, over {over:.1}, late {:?}",
            outcome.answers.len(),
            outcome.span(),
            outcome.lateness
        );
        assert!(admitted >= LEAST_SHARE * ideal && admitted <= most, "{said}");
    }
    ledger::wait_for_spent(&scene.redis, outcome.admitted());
    assert_eq!(scene.house.at_host(), outcome.admitted() as u64);
}

#[test]
fn a_client_at_its_rate_is_never_refused_however_it_changes_nodes() {
    let long = std::env::var_os("TOLLGATE_LONG").is_some();
    let time = Duration::from_secs(if long { 60 } else { 8 });
    let scene = Scene::new(&limit("merchant", "merchant", "5411", 25.0, 50.0));
    let hops = [Hop::Message, every(50), every(1_000), Hop::At(0)];
    let shops = hops.iter().map(|hop| Shop::steady(&format!("{hop:?}"), 25.0).at(*hop));
    let outcome = scene.house.load(shops.collect()).finish_after(time);
    expect_no_refusal(&scene, &outcome);
    assert!((0..NODES).all(|node| outcome.of(0..3).admitted_at(node) > 0));
}

#[test]
fn merchants_that_nobody_has_seen_before_are_not_refused() {
    const MERCHANTS: u32 = 5_000;
    let scene = Scene::new(&limit("merchant", "merchant", "5411", 0.5, 5.0));
    let begin = |number| Duration::from_millis(1) * number;
    let merchant = |number| Shop {
        count: 2,
        every: Duration::from_millis(300),
        ..Shop::once(&format!("NEW{number}"), begin(number))
    };
    let outcome = scene.house.load((0..MERCHANTS).map(merchant).collect()).finish();
    assert_eq!(outcome.answers.len(), 2 * MERCHANTS as usize);
    expect_no_refusal(&scene, &outcome);
    assert_eq!(ledger::buckets(&scene.redis).len(), MERCHANTS as usize);
}

#[track_caller]
fn expect_no_refusal(scene: &Scene, outcome: &Outcome) {
    outcome.expect_whole();
    let slowest = outcome.slowest(|_| true);
    let said = format!("late {:?}, slowest {slowest:?}", outcome.lateness);
    assert_eq!(outcome.refused(), 0, "{said}, {:?}", scene.house.slowest_call());
    ledger::wait_for_spent(&scene.redis, outcome.admitted());
}

fn every(millis: u64) -> Hop {
    Hop::Every(Duration::from_millis(millis))
}

/// A bucket that does not refill as long as a test runs.
const BURST: f64 = 90.0;

fn still() -> String {
    limit("merchant", "merchant", "5411", 0.001, BURST)
}

/// Has a node admit so many at once.
#[track_caller]
fn admit(scene: &Scene, node: usize, count: usize) {
    let outcome = scene.house.load(vec![Shop::volley("SHOP", count, node)]).finish();
    outcome.expect_whole();
    assert_eq!(outcome.admitted(), count);
}

#[test]
fn a_node_that_is_killed_costs_at_most_its_hold() {
    let mut scene = Scene::new(&still());
    let hold = BURST / NODES as f64;
    // As many as it may spend unreported, and it dies as soon as they are answered.
    admit(&scene, 0, hold as usize);
    scene.house.kill(0);
    for node in scene.house.nodes() {
        node.wait_for_gauge(LEASE_NODES, (NODES - 1) as f64);
    }
    // A report that it had sent by then has come by now.
    let reported = ledger::spent_tokens(&scene.redis);
    let lost = hold - reported;
    assert!((0.0..=hold).contains(&lost), "{reported} of {hold}");

    let rate = 200.0;
    let shops = vec![Shop { count: 400, ..Shop::steady("SHOP", rate) }];
    let driver = support::load::Driver::start(&[1, 2].map(|node| scene.house.address(node)), shops);
    let outcome = driver.finish();
    outcome.expect_whole();
    // What the dead node has not said is admitted once more, and nothing else is.
    let all = hold + outcome.admitted() as f64;
    let over = scene.over(rate, BURST);
    assert!(all >= BURST + lost - 1.0 && all <= BURST + lost + over, "{all}, {lost} lost");
    ledger::wait_for_spent(&scene.redis, reported as usize + outcome.admitted());
}

#[test]
fn a_node_that_is_stopped_says_what_it_has_spent_and_goodbye() {
    let mut scene = Scene::new(&still());
    admit(&scene, 0, 10);
    admit(&scene, 1, 7);
    let before = ledger::nodes(&scene.redis);
    assert_eq!(before.len(), NODES);
    let (status, log) = scene.house.stop(0);
    assert!(status.success(), "{log}");
    assert!(log.contains("all that was spent is reported"), "{log}");
    // It is gone from the store when its process is, and not when it has been silent for long enough.
    let after = ledger::nodes(&scene.redis);
    assert_eq!(after.len(), NODES - 1);
    let gone = before.difference(&after).next().unwrap();
    let bucket = scene.bucket();
    let row = bucket.rows.iter().find(|row| row.node == *gone).expect("its row stays");
    assert_eq!(row.spent_tokens, 10.0);
    for node in scene.house.nodes() {
        node.wait_for_gauge(LEASE_NODES, (NODES - 1) as f64);
    }
    ledger::wait_for_spent(&scene.redis, 17);
    // Who comes after it is another node.
    scene.house.begin(0);
    scene.house.wait_for_leases();
    let back = ledger::nodes(&scene.redis);
    assert!(back.len() == NODES && !back.contains(gone), "{back:?}");
}

#[test]
fn nodes_share_a_bucket_by_a_socket_by_tls_and_as_a_user() {
    use support::redis::{Account, Tls};
    let account = Some(Account::new("tollgate", "secret"));
    for plan in [
        ServerPlan { socket_only: true, ..ServerPlan::default() },
        ServerPlan { account, ..ServerPlan::default() },
        ServerPlan { tls: Tls::On, ..ServerPlan::default() },
        ServerPlan { tls: Tls::WithClients, ..ServerPlan::default() },
    ] {
        let scene = Scene::on(plan, &still());
        admit(&scene, 0, 5);
        admit(&scene, 1, 5);
        ledger::wait_for_spent(&scene.redis, 10);
        assert_eq!(scene.bucket().rows.len(), 2);
        assert!(scene.house.nodes().all(|node| !node.log().contains("secret")));
    }
}

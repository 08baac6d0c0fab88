//! Three nodes on one Redis under traffic, while whatever may befall a Redis befalls it: who keeps to a
//! limit is not refused, whoever does not is bounded, leases come back, and at rest the store knows every
//! token that was spent, once.
//!
//! With `--nocapture` each test says how long answers took before and while. `TOLLGATE_LONG`, which
//! `tests/long.sh` sets, has each fault last for five seconds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test states its expectations"
)]

mod support;

use std::time::Duration;

use support::proxy::Proxy;
use support::redis::ledger::{self, Bucket};
use support::redis::{RedisServer, Relay, ServerPlan};
use support::store_house::{LEASE_VALID, StoreHouse};
use support::under_load::{GOOD, UnderLoad};
use support::wait_for;
use tollgate::quota::redis::script::Script;

const NODES: usize = 3;
const CONNECTS: &str = "tollgate_store_connects_total";
const LOSSES: &str = "tollgate_store_subscription_losses_total";
const QUIET: Duration = Duration::from_millis(1_500);

/// How long a fault lasts.
fn lasting() -> Duration {
    let is_long = std::env::var_os("TOLLGATE_LONG").is_some();
    if is_long { Duration::from_secs(5) } else { Duration::from_millis(1_200) }
}

/// A Redis and nodes in use.
struct Scene {
    redis: RedisServer,
    relay: Relay,
    load: UnderLoad,
}

impl Scene {
    fn start() -> Self {
        let redis = ServerPlan::default().start();
        let relay = Relay::before(redis.address());
        let quota = redis.quota(Some(relay.address()));
        let load = UnderLoad::start(|| StoreHouse::start(NODES, &quota, UnderLoad::LIMITS));
        load.go_on_for(QUIET);
        Self { redis, relay, load }
    }

    fn nodes(&self) -> impl Iterator<Item = &Proxy> {
        self.load.house.nodes()
    }

    /// Every node has seen that leases ended, and has said why.
    #[track_caller]
    fn wait_until_lost(&self, fault: &str) {
        for node in self.nodes() {
            node.wait_for_gauge(LEASE_VALID, 0.0);
            node.wait_for_log(&format!("fault=\"{fault}\""));
            node.wait_for_log("leases ended");
        }
    }

    /// The fault is over: leases come back by themselves, and all is as it was.
    #[track_caller]
    fn recover(self, name: &str, from: tollgate::clock::Moment) {
        let until = self.load.now();
        self.load.house.wait_for_leases();
        self.load.go_on_for(QUIET);
        let Self { redis, relay, load } = self;
        load.report(name, from, until);
        load.stop_and_settle([&redis]);
        drop(relay);
    }

    /// Something that does not even end leases.
    #[track_caller]
    fn goes_on_as_if_nothing_were(self, name: &str, befalls: impl Fn(&Self)) {
        let from = self.load.now();
        for _ in 0..5 {
            befalls(&self);
            self.load.go_on_for(lasting() / 5);
        }
        for node in self.nodes() {
            assert_eq!(node.log_lines(&["leases ended"]), 0, "{}", node.log());
        }
        self.recover(name, from);
    }

    /// The bucket of one of those who keep to their rate.
    fn bucket_of_a_good_one(&self) -> Bucket {
        let buckets = ledger::buckets(&self.redis);
        assert_eq!(buckets.len(), GOOD + 2);
        let of_merchants = buckets.into_iter().filter(|bucket| bucket.cap_tokens == 50.0);
        of_merchants.max_by(|a, b| a.level_tokens.total_cmp(&b.level_tokens)).unwrap()
    }
}

#[test]
fn a_redis_that_stands_still() {
    let scene = Scene::start();
    let from = scene.load.now();
    scene.redis.pause();
    scene.wait_until_lost("timeout");
    scene.load.go_on_for(lasting());
    scene.redis.resume();
    scene.recover("stopped (SIGSTOP)", from);
}

#[test]
fn a_redis_that_is_killed_and_started_empty() {
    let mut scene = Scene::start();
    let from = scene.load.now();
    scene.redis.kill();
    scene.wait_until_lost("io");
    scene.load.go_on_for(lasting());
    scene.redis.restart_empty();
    scene.recover("killed, started empty", from);
}

#[test]
fn a_redis_that_is_flushed() {
    Scene::start().goes_on_as_if_nothing_were("FLUSHALL", |scene| {
        scene.redis.cli(&["FLUSHALL"]);
    });
}

#[test]
fn a_redis_that_forgets_the_script() {
    let scene = Scene::start();
    scene.goes_on_as_if_nothing_were("SCRIPT FLUSH", |scene| {
        let before = scene.load.errors("noscript");
        scene.redis.cli(&["SCRIPT", "FLUSH"]);
        wait_for("a node sends the script along", || {
            (scene.load.errors("noscript") > before).then_some(())
        });
    });
}

#[test]
fn a_redis_that_closes_connections() {
    Scene::start().goes_on_as_if_nothing_were("CLIENT KILL", |scene| {
        let of_all = |name: &str| scene.nodes().map(|node| node.metric(name)).sum::<f64>();
        let (connects, losses) = (of_all(CONNECTS), of_all(LOSSES));
        scene.redis.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        scene.redis.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        wait_for("all connections and subscriptions are there again", || {
            let subscribed = of_all("tollgate_store_subscribed") == NODES as f64;
            let again = of_all(CONNECTS) >= connects + 3.0 && of_all(LOSSES) >= losses + 3.0;
            (subscribed && again).then_some(())
        });
    });
}

#[test]
fn a_redis_that_is_made_a_replica() {
    let scene = Scene::start();
    let from = scene.load.now();
    // Of a server that is not there: it keeps what it has.
    scene.redis.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    scene.wait_until_lost("readonly");
    scene.load.go_on_for(lasting());
    scene.redis.cli(&["REPLICAOF", "NO", "ONE"]);
    scene.recover("made a replica", from);
}

#[test]
fn a_redis_that_is_out_of_memory() {
    let scene = Scene::start();
    let from = scene.load.now();
    scene.redis.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    scene.redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    scene.wait_until_lost("oom");
    scene.load.go_on_for(lasting());
    scene.redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    scene.recover("out of memory", from);
}

#[test]
fn a_redis_that_answers_after_300_ms() {
    let scene = Scene::start();
    let from = scene.load.now();
    scene.relay.delay_answers(Duration::from_millis(300));
    scene.wait_until_lost("late");
    scene.load.go_on_for(lasting());
    scene.relay.behave();
    scene.recover("answers 300 ms late", from);
}

#[test]
fn a_redis_in_which_somebody_else_has_written_under_a_buckets_name() {
    let scene = Scene::start();
    let from = scene.load.now();
    let key = scene.bucket_of_a_good_one().key;
    scene.redis.cli(&["SET", &key, "hello"]);
    for node in scene.nodes() {
        node.wait_for_log("something that is no bucket stands under this name");
        node.wait_for_log(&key);
    }
    scene.load.go_on_for(lasting());
    assert_eq!(scene.redis.cli_text(&["GET", &key]), "hello");
    for node in scene.nodes() {
        assert_eq!(node.metric(LEASE_VALID), 1.0, "all other keys are leased");
        assert_eq!(node.log_lines(&["no bucket stands under this name"]), 1);
    }
    scene.redis.cli(&["DEL", &key]);
    scene.recover("a key of another type", from);
}

/// The clock of the machine is the clock of the tests too; so it is the last time which the store saw
/// that is set.
#[test]
fn a_redis_whose_clock_is_set() {
    /// By so many hours.
    const SETS: [f64; 3] = [-1.0, 1.0, 24.0];
    let shard = Script::new("tollgate", false).names(0).shard();
    let scene = Scene::start();
    let now = || -> f64 { scene.redis.cli_text(&["HGET", &shard, "now"]).parse().unwrap() };
    let (from, before) = (scene.load.now(), now());
    for hours in SETS {
        let wall: f64 = scene.redis.cli_text(&["HGET", &shard, "wall"]).parse().unwrap();
        let set = format!("{:.0}", wall - hours * 3.6e9);
        scene.redis.cli(&["HSET", &shard, "wall", &set]);
        wait_for("the store goes on by its clock", || {
            let wall = scene.redis.cli_text(&["HGET", &shard, "wall"]);
            (wall != set).then_some(())
        });
        scene.load.go_on_for(lasting() / 3);
    }
    let after = now();
    let passed = scene.load.now().since(from).as_micros() as f64;
    let went_on = after - before;
    // A node counts from when it sent its call, so each time the clock is set that call's way is counted
    // twice; a call that is answered takes no longer than this.
    let ways = SETS.len() as f64 * 50_000.0;
    assert!((passed / 2.0..=passed + ways).contains(&went_on), "{went_on} of {passed} us");
    scene.recover("clock set by hours", from);
}

//! Nodes on a Redis Cluster of three masters, while its slots move and a master dies: who keeps to a
//! limit is not refused, whoever does not is bounded, nothing is charged twice and nothing forgotten.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use support::redis::cluster::Move;
use support::redis::{RedisCluster as Cluster, ServerPlan};
use support::store_house::{LEASE_VALID, StoreHouse};
use support::under_load::{GOOD, UnderLoad, buckets};
use support::wait_for;
use tollgate::quota::redis::script::Script;

/// As a Cluster has them unless it is told otherwise.
const SHARDS: u16 = 8;
const LOST: &str = "tollgate_lease_shards_lost";

/// The slot of each shard.
fn slots(cluster: &Cluster) -> Vec<u16> {
    let script = Script::new("tollgate", true);
    (0..SHARDS).map(|shard| cluster.key_slot(&script.names(shard).shard())).collect()
}

#[test]
fn slots_that_move_under_load_cost_nobody_a_sale() {
    let cluster = Cluster::start();
    let load = UnderLoad::start(|| StoreHouse::start(3, &cluster.quota(), UnderLoad::LIMITS));
    load.go_on_for(Duration::from_millis(1_000));
    let slots = slots(&cluster);
    let met = |kinds: &[&str]| kinds.iter().map(|kind| load.errors(kind)).sum::<f64>();
    let mut steps = 0;
    for slot in [slots[0], slots[5]] {
        let from = cluster.owner(slot).unwrap();
        cluster.migrate_slot(slot, from, (from + 1) % 3, |step| {
            steps += 1;
            // Calls meet every state of a slot that is on its way.
            if matches!(step, Move::Marked | Move::Gone { .. } | Move::Owned) {
                load.go_on_for(Duration::from_millis(150));
            }
        });
    }
    assert!(steps >= 8, "{steps}");
    load.house.nodes().for_each(|node| node.wait_for_gauge(LOST, 0.0));
    load.house.wait_for_leases();
    load.go_on_for(Duration::from_millis(1_500));
    assert!(met(&["ask", "tryagain"]) > 0.0, "no call met a slot that is on its way");
    load.stop_and_settle(cluster.nodes());
}

#[test]
fn a_master_that_dies_costs_nobody_a_sale_and_leaves_other_shards_leased() {
    // Or no other master would answer either until the replica has taken over.
    let partial =
        ServerPlan { lines: "cluster-require-full-coverage no\n".into(), ..Default::default() };
    let mut cluster = Cluster::of(3, true, &partial);
    let load = UnderLoad::start(|| StoreHouse::start(3, &cluster.quota(), UnderLoad::LIMITS));
    load.go_on_for(Duration::from_millis(1_000));
    let slots = slots(&cluster);
    let its = slots.iter().filter(|slot| cluster.owner(**slot) == Some(1)).count();
    assert!((1..usize::from(SHARDS)).contains(&its), "{its}");

    cluster.node_mut(1).kill();
    let node = load.house.node(0);
    node.wait_for_gauge(LEASE_VALID, 0.0);
    wait_for("the shards of the dead master are lost, and no others", || {
        (node.metric(LOST) == its as f64).then_some(())
    });
    node.wait_for_log(&format!("lost={its} shards={SHARDS}"));
    cluster.wait_for_owner(cluster.first_slot(1), 4);
    load.house.nodes().for_each(|node| node.wait_for_gauge(LOST, 0.0));
    load.house.wait_for_leases();
    load.go_on_for(Duration::from_millis(2_000));
    load.stop_and_settle(cluster.nodes());
}

/// Each node asks one server for where the shards are; it may be any, also one that has none.
#[test]
fn every_shard_is_found_by_way_of_a_single_seed_that_may_be_a_replica() {
    let cluster = Cluster::with_replicas();
    let seed = cluster.node(5).quota_at(&format!("redis-cluster://{}", cluster.node(5).address()));
    let house = StoreHouse::start(2, &seed, UnderLoad::LIMITS);
    let shops =
        (0..GOOD * 4).map(|number| support::load::Shop::volley(&format!("S{number}"), 3, 0));
    let outcome = house.load(shops.collect()).finish();
    outcome.expect_whole();
    assert_eq!(outcome.refused(), 0);
    let spent = wait_for("every bucket is known", || {
        let spent = buckets(cluster.nodes());
        (spent.len() == GOOD * 4).then_some(spent)
    });
    assert!(spent.iter().all(|bucket| bucket.spent_tokens() == 3.0), "{spent:?}");
    let shards: BTreeSet<&str> =
        spent.iter().map(|bucket| bucket.key.split('}').next().unwrap()).collect();
    assert!(shards.len() > 4, "{shards:?}");
}

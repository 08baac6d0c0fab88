//! A Cluster of three masters.

use redis::Value;

use crate::support::process::exists;
use crate::support::redis::RedisCluster;
use crate::support::redis::cluster::{Move, SLOTS};
use crate::support::redis::server::text;

const KEYS: usize = 25;

#[test]
fn every_node_of_a_cluster_knows_whose_a_slot_is() {
    let cluster = RedisCluster::start();
    assert_eq!(cluster.key_slot("tg:{3}:shard"), cluster.key_slot("tg:{3}:low"));
    for (number, node) in cluster.nodes().iter().enumerate() {
        assert_eq!(cluster.owner(cluster.first_slot(number)), Some(number));
        let slots = node.cli_text(&["CLUSTER", "INFO"]);
        assert!(slots.contains(&format!("cluster_slots_ok:{SLOTS}")), "{slots}");
    }
    let slot = cluster.key_slot("a");
    let owner = cluster.owner(slot).unwrap();
    let elsewhere = cluster.node((owner + 1) % 3).try_cli(&["GET", "a"]).unwrap_err();
    assert_eq!(elsewhere.redirect_node().unwrap().1, slot);
    assert!(cluster.url().ends_with(&cluster.node(2).address().to_string()));
    let pids: Vec<u32> = cluster.nodes().iter().map(|node| node.pid()).collect();
    drop(cluster);
    assert_eq!(pids.into_iter().filter(|pid| exists(*pid)).count(), 0);
}

#[test]
fn a_slot_moves_with_all_that_is_in_it() {
    let cluster = RedisCluster::start();
    let slot = cluster.key_slot("{a}");
    let from = cluster.owner(slot).unwrap();
    let to = (from + 1) % 3;
    for number in 0..KEYS {
        cluster.node(from).cli(&["SET", &format!("{{a}}{number}"), "1"]);
    }
    let mut seen = Vec::new();
    cluster.migrate_slot(slot, from, to, |step| {
        seen.push(step);
        if step == Move::Marked {
            // What is not there is asked for at the new owner, which has to be told so.
            let error = cluster.node(from).try_cli(&["GET", "{a}none"]).unwrap_err();
            assert_eq!(error.code(), Some("ASK"));
        }
    });
    let gone = [15, 5, 0].map(|left| Move::Gone { left });
    let all = [&[Move::Marked][..], &gone, &[Move::Owned, Move::Told]].concat();
    assert_eq!(seen, all);
    assert_eq!(cluster.owner(slot), Some(to));
    let keys = cluster.node(to).cli(&["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()]);
    assert_eq!(keys, Value::Int(KEYS.try_into().unwrap()));
    let error = cluster.node(from).try_cli(&["GET", "{a}0"]).unwrap_err();
    assert_eq!(error.code(), Some("MOVED"));
}

#[test]
fn a_replica_takes_over_when_it_is_told_to_and_when_its_master_is_dead() {
    let mut cluster = RedisCluster::with_replicas();
    let (slot, other) = (cluster.first_slot(0), cluster.first_slot(1));
    cluster.failover(3, false);
    assert_eq!(cluster.owner(slot), Some(3));
    assert_eq!(text(&cluster.node(0).cli(&["ROLE"])).lines().next(), Some("slave"));
    cluster.node_mut(1).kill();
    cluster.wait_for_owner(other, 4);
}

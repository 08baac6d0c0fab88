//! Nodes that lease their limits from a store are held to one ideal bucket that sees every request
//! as it arrives, whatever network, store and processes do, in virtual time.
//!
//! `cargo run --release --example leases` plays the same worlds from the command line, and
//! `TOLLGATE_CLUSTER_SEEDS=1-20,101-120 cargo test --release --test cluster_simulation` plays all of
//! them with these seeds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

#[path = "cluster_simulation/mod.rs"]
mod cluster;

use cluster::cheat::{Cheat, OVERSPENDS, UNDERREPORTS};
use cluster::command::{self, REJECTED};
use cluster::leased::Leased;
use cluster::table::Row;
use cluster::workloads::{self, GROUPS};
use cluster::world::play;

/// Each group of workloads has a test of its own, so that they run beside each other. Ten seeds are
/// enough to find what has broken; `tests/long.sh` plays forty.
const SEEDS: &str = "1-10";

fn every_demand_is_met(group: &str) {
    let seeds = std::env::var("TOLLGATE_CLUSTER_SEEDS");
    let seeds = command::seeds(seeds.as_deref().unwrap_or(SEEDS)).unwrap();
    let (_, workloads) = GROUPS.iter().find(|(name, _)| *name == group).unwrap();
    let rows = workloads().into_iter().map(|workload| Row::play(workload, &seeds, play::<Leased>));
    let faults: Vec<_> = rows.filter_map(|row| row.fault()).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn who_keeps_to_a_limit_is_never_refused() {
    every_demand_is_met("conforming");
}

#[test]
fn bursts_get_what_one_bucket_would_give_them_and_little_more() {
    every_demand_is_met("bursts");
}

#[test]
fn an_abuser_gets_its_rate_and_costs_nobody_else_anything() {
    every_demand_is_met("abuse");
}

#[test]
fn small_large_and_many_buckets_are_shared_as_well() {
    every_demand_is_met("sizes");
}

#[test]
fn nodes_come_and_go_and_are_cut_off_unnoticed() {
    every_demand_is_met("processes");
}

#[test]
fn a_store_may_go_away_and_forget() {
    every_demand_is_met("store");
}

#[test]
fn a_replica_may_take_over_and_its_master_go_on() {
    every_demand_is_met("failovers");
}

#[test]
fn a_store_may_lose_one_of_its_shards_and_the_keys_of_the_others_are_leased_as_ever() {
    every_demand_is_met("shards");
}

#[test]
fn several_limits_are_shared_side_by_side() {
    every_demand_is_met("several limits");
}

#[test]
fn a_seed_plays_the_same_every_time() {
    for name in ["coming-and-going", "message-loss", "failover-4"] {
        let workload = workloads::named(name).unwrap();
        assert_eq!(play::<Leased>(&workload, 7), play::<Leased>(&workload, 7), "{name}");
        let others = play::<Leased>(&workload, 8);
        assert_ne!(play::<Leased>(&workload, 7).fingerprint, others.fingerprint, "{name}");
    }
}

/// What the demands are worth: each design that was rejected breaks one of them.
#[test]
fn designs_that_were_rejected_are_found_wanting() {
    for ((design, play), shows) in REJECTED.iter().zip(["first-seen", "hop-4", "hop-4", "slow-16"])
    {
        let row = Row::play(workloads::named(shows).unwrap(), &[1, 2], *play);
        assert!(row.fault().is_some(), "{design} passes {shows}");
    }
}

#[test]
fn the_books_notice_a_node_that_cheats() {
    let workload = workloads::named("abuser-4").unwrap();
    let broken = play::<Cheat<OVERSPENDS>>(&workload, 1).broken;
    assert!(broken.iter().any(|wrong| wrong.contains("unreported")), "{broken:?}");
    let broken = play::<Cheat<UNDERREPORTS>>(&workload, 1).broken;
    assert!(broken.iter().any(|wrong| wrong.contains("charged")), "{broken:?}");
}

#[test]
fn a_fault_names_its_seeds_and_how_to_play_one_again() {
    let (_, share) = REJECTED[1];
    let fault = Row::play(workloads::named("hop-4").unwrap(), &[3, 4], share).fault().unwrap();
    assert!(fault.starts_with("hop-4: not \"0 false\"; seeds [3, 4]"), "{fault}");
    let replay = "cargo run --release --example leases -- seed hop-4 3";
    assert!(fault.ends_with(replay), "{fault}");
    let (_, arguments) = replay.split_once("-- ").unwrap();
    let arguments: Vec<_> = arguments.split(' ').map(str::to_owned).collect();
    let mut told = Vec::new();
    assert!(command::run(&arguments, &mut told).unwrap());
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains("of all decisions"), "{told}");
}

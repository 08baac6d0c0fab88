//! Nodes on a Redis that three sentinels watch, while its master dies and while it is changed: who keeps
//! to a limit is not refused, whoever does not is bounded, nothing is charged twice and nothing forgotten.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use std::time::Duration;

use support::redis::{ServerPlan, Watched};
use support::store_house::StoreHouse;
use support::under_load::UnderLoad;
use support::wait_for;

fn in_use(watched: &Watched) -> UnderLoad {
    let load = UnderLoad::start(|| StoreHouse::start(3, &watched.quota(), UnderLoad::LIMITS));
    load.go_on_for(Duration::from_millis(1_000));
    load
}

#[test]
fn a_master_that_dies_under_load_costs_nobody_a_sale() {
    let mut watched = Watched::start();
    let load = in_use(&watched);
    let old = watched.wait_for_one_master();
    watched.kill_master();
    load.house.wait_for_the_end_of_leases();
    watched.wait_for_new_master(old);
    load.house.wait_for_leases();
    load.go_on_for(Duration::from_millis(2_000));
    for node in load.house.nodes() {
        assert_eq!(node.log_lines(&["leases ended"]), 1);
        assert!(node.log_lines(&["the store answers again"]) >= 1);
    }
    load.stop_and_settle(watched.servers());
}

#[test]
fn a_master_that_is_changed_under_load_costs_nobody_a_sale() {
    let watched = Watched::start();
    let load = in_use(&watched);
    for _ in 0..2 {
        watched.failover();
        for node in load.house.nodes() {
            wait_for("the node is at the master", || {
                // On a machine that stands still for a while the sentinels may choose once more.
                let master = watched.master().address().to_string();
                let (_, status) = node.page("/status");
                status.contains(&master).then_some(())
            });
        }
        load.house.wait_for_leases();
        load.go_on_for(Duration::from_millis(1_000));
    }
    load.stop_and_settle(watched.servers());
}

/// A master that has lost its replica takes no reports: each node goes on by itself.
#[test]
fn a_master_without_its_replica_refuses_reports_and_takes_them_again() {
    let plan = ServerPlan {
        lines: "min-replicas-to-write 1\nmin-replicas-max-lag 1\n".to_owned(),
        ..ServerPlan::default()
    };
    let watched = Watched::of(&plan);
    let load = in_use(&watched);
    watched.replica().pause();
    load.house.wait_for_the_end_of_leases();
    load.house.nodes().for_each(|node| node.wait_for_log("fault=\"noreplicas\""));
    watched.replica().resume();
    load.house.wait_for_leases();
    load.go_on_for(Duration::from_millis(1_000));
    load.stop_and_settle(watched.servers());
}

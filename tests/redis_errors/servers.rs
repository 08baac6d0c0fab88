//! A real server in real trouble: full, made a replica, flushed, dead, standing still.

use crate::node::{FAILS, Node, errors, per_merchant_once};
use crate::stored;
use crate::support::redis::{RedisServer, ServerPlan};
use crate::support::wait_for;
use crate::traffic::{Traffic, limit};

struct Scene {
    traffic: Traffic,
    node: Node,
    server: RedisServer,
}

impl Scene {
    fn of(plan: ServerPlan) -> Self {
        let server = plan.start();
        let node = Node::start(&(server.quota(None) + &limit()));
        node.wait_until_leased();
        let traffic = Traffic::through(&node);
        traffic.goes_on();
        Self { server, node, traffic }
    }

    fn is_lost_by(&self, kind: &str) {
        self.node.proxy.wait_for_metric(&errors(kind), 3.0);
        self.node.wait_until_lost();
        let named = format!("fault=\"{kind}\"");
        wait_for("the log says why", || {
            (self.node.proxy.log_lines(&["WARN", FAILS, &named]) > 0).then_some(())
        });
        self.traffic.goes_on();
    }

    fn ends_well(self) {
        self.node.wait_until_all_is_leased();
        self.traffic.goes_on();
        self.traffic.ends_well();
    }
}

/// BR100.
#[test]
fn a_server_that_is_full_is_a_lost_store_until_it_has_room() {
    const FILLER: &str = "somebody-elses";
    let full = ServerPlan { maxmemory: Some(("6mb", "noeviction")), ..ServerPlan::default() };
    let scene = Scene::of(full);
    let piece = "x".repeat(16_384);
    wait_for("the server is full", || {
        scene.server.try_cli(&["RPUSH", FILLER, &piece]).err().map(|error| {
            assert_eq!(error.code(), Some("OOM"), "{error}");
        })
    });
    // What the one who filled it took for its connection is free again, and is taken away too.
    scene.server.cli(&["CONFIG", "SET", "maxmemory", "5mb"]);
    scene.is_lost_by("oom");
    scene.server.cli(&["DEL", FILLER]);
    scene.node.wait_until_all_is_leased();
    // It is not tollgate that fills it.
    let names = stored::names(&scene.server);
    assert!(!names.is_empty());
    for name in names.iter().map(String::as_str).chain(["tollgate:v1:{0}:shard"]) {
        let left: i64 = scene.server.cli_text(&["PTTL", name]).parse().unwrap();
        assert!(left > 0, "{name} expires");
    }
    scene.ends_well();
}

#[test]
fn a_server_that_is_made_a_replica_is_no_store_until_it_is_a_master_again() {
    let scene = Scene::of(ServerPlan::default());
    let master = RedisServer::start();
    scene.server.cli(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
    scene.is_lost_by("readonly");
    scene.server.cli(&["REPLICAOF", "NO", "ONE"]);
    scene.ends_well();
}

#[test]
fn a_server_that_wants_replicas_and_has_none_is_a_lost_store() {
    let scene = Scene::of(ServerPlan::default());
    scene.server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    scene.is_lost_by("noreplicas");
    scene.server.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    scene.ends_well();
}

#[test]
fn somebodys_endless_script_is_a_lost_store_until_it_is_killed() {
    let scene = Scene::of(ServerPlan::default());
    scene.server.cli(&["CONFIG", "SET", "busy-reply-threshold", "10"]);
    let answer = std::thread::scope(|scope| {
        let endless = scope.spawn(|| scene.server.try_cli(&["EVAL", "while true do end", "0"]));
        scene.is_lost_by("busy");
        scene.server.cli(&["SCRIPT", "KILL"]);
        endless.join().unwrap()
    });
    assert!(answer.is_err());
    scene.ends_well();
}

#[test]
fn a_server_that_is_flushed_is_told_again_what_was_spent() {
    const BURST: u32 = 60;
    let server = RedisServer::start();
    let slow = per_merchant_once(BURST);
    let node = Node::start(&(server.quota(None) + &slow));
    node.wait_until_leased();
    let errors = node.errors_but(&["late"]);
    let mut terminal = node.terminal();
    for _ in 0..5 {
        assert_eq!(terminal.sales("SHOP0001", 10), 10);
        node.wait_until_reported("SHOP0001");
        server.cli(&["FLUSHALL"]);
    }
    assert_eq!(terminal.sales("SHOP0001", 20), 10, "no burst was given away");
    node.wait_until_reported("SHOP0001");
    assert!(stored::only(&server).is_some_and(|stored| stored.level < 1.0));
    assert_eq!(node.errors_but(&["late"]), errors);
}

#[test]
fn traffic_goes_on_while_a_server_is_flushed_time_and_again() {
    let scene = Scene::of(ServerPlan::default());
    let errors = scene.node.errors_but(&["late"]);
    for _ in 0..10 {
        scene.server.cli(&["FLUSHALL"]);
        scene.traffic.goes_on();
    }
    assert_eq!(scene.node.errors_but(&["late"]), errors);
    scene.ends_well();
}

#[test]
fn a_server_that_dies_and_is_started_empty_is_used_again() {
    let mut scene = Scene::of(ServerPlan::default());
    scene.server.kill();
    scene.is_lost_by("io");
    scene.server.restart_empty();
    scene.node.wait_until_all_is_leased();
    assert!(scene.node.errors("noscript") >= 1.0, "it had no script");
    wait_for("it has the buckets", || (!stored::names(&scene.server).is_empty()).then_some(()));
    scene.ends_well();
}

#[test]
fn a_server_that_stands_still_for_five_seconds_costs_nobody_anything() {
    let scene = Scene::of(ServerPlan::default());
    scene.server.pause();
    scene.node.proxy.wait_for_metric("tollgate_lease_age_seconds", 5.0);
    scene.is_lost_by("timeout");
    scene.server.resume();
    scene.ends_well();
}

//! A server without the script, and one that sends a node elsewhere though it is no Cluster's.

use crate::node::{FAILS, LEASES_ENDED, Node, errors};
use crate::stored;
use crate::support::redis::port::free_port;
use crate::support::redis::{RedisServer, Relay};
use crate::support::wait_for;
use crate::traffic::{Traffic, limit};

struct Scene {
    node: Node,
    relay: Relay,
    server: RedisServer,
}

impl Scene {
    fn new() -> Self {
        let server = RedisServer::start();
        let relay = Relay::before(server.address());
        let node = Node::start(&(server.quota(Some(relay.address())) + &limit()));
        node.wait_until_leased();
        Self { node, relay, server }
    }

    fn loads(&self) -> usize {
        self.relay.calls("EVAL").len()
    }
}

/// BR094.
#[test]
fn a_server_that_has_lost_the_script_is_sent_it_once() {
    let scene = Scene::new();
    let traffic = Traffic::of_good(&scene.node);
    for _ in 0..5 {
        traffic.goes_on();
        let (loads, met) = (scene.loads(), scene.node.errors("noscript"));
        let (failed, calls) = (scene.node.errors_but(&["noscript", "late"]), scene.relay.scripts());
        scene.server.cli(&["SCRIPT", "FLUSH"]);
        scene.node.proxy.wait_for_metric(&errors("noscript"), met + 1.0);
        wait_for("more calls", || (scene.relay.scripts().len() >= calls.len() + 10).then_some(()));
        let loads = scene.loads() - loads;
        // A report that cannot wait may be under way beside the tick's.
        assert!((1..=2).contains(&loads), "{loads}");
        assert_eq!(scene.node.errors("noscript") - met, loads as f64);
        assert_eq!(scene.node.errors_but(&["noscript", "late"]), failed);
    }
    traffic.goes_on();
    traffic.ends_well();
    assert_eq!(scene.node.proxy.log_lines(&[FAILS, "noscript"]), 0);
}

#[test]
fn a_node_that_is_sent_to_another_server_goes_there() {
    let scene = Scene::new();
    let traffic = Traffic::through(&scene.node);
    let other = RedisServer::start();
    traffic.goes_on();
    scene.relay.fail_scripts(&format!("-MOVED 1234 {}", other.address()));
    wait_for("buckets at the other server", || (!stored::names(&other).is_empty()).then_some(()));
    scene.node.wait_until_all_is_leased();
    traffic.goes_on();
    // It stays there, and it was on its way for no longer than a lease lasts.
    let calls = scene.relay.scripts().len();
    traffic.goes_on();
    assert_eq!(scene.relay.scripts().len(), calls);
    assert_eq!(scene.node.proxy.log_lines(&[FAILS, "moved"]), 0);
    traffic.ends_well();
}

#[test]
fn a_node_that_is_sent_to_nowhere_says_so_and_comes_back() {
    let scene = Scene::new();
    let traffic = Traffic::through(&scene.node);
    let nobody = format!("-MOVED 1234 127.0.0.1:{}", free_port());
    let itself = format!("-MOVED 1234 {}", scene.relay.address());
    let places = ["-MOVED 1234 :0", "-MOVED 1234", &nobody, &itself, "-ASK 1234 :0", &itself];
    for line in places {
        let kind = if line.starts_with("-ASK") { "ask" } else { "moved" };
        let lines = |text| scene.node.proxy.log_lines(&["WARN", text]);
        let (met, ended, failed) = (scene.node.errors(kind), lines(LEASES_ENDED), lines(FAILS));
        scene.relay.fail_scripts(line);
        scene.node.proxy.wait_for_metric(&errors(kind), met + 3.0);
        wait_for(&format!("the end of leases with {line}"), || {
            (lines(LEASES_ENDED) > ended).then_some(())
        });
        wait_for("the log says why", || (lines(FAILS) > failed).then_some(()));
        scene.node.wait_until_lost();
        traffic.goes_on();
        scene.relay.behave();
        scene.node.wait_until_all_is_leased();
        traffic.goes_on();
        // Who is sent away and finds nobody says both, once each.
        assert!(lines(FAILS) <= failed + 2, "{}", scene.node.proxy.log());
    }
    traffic.ends_well();
}

//! A store that answers late, or not for as long as a test wants: no message waits for it.

use std::time::Duration;

use crate::node::{FAILS, Node, errors};
use crate::support::redis::{RedisServer, Relay};
use crate::support::wait_for;
use crate::traffic::{GOOD, Traffic, limit};

struct Scene {
    node: Node,
    relay: Relay,
    _server: RedisServer,
}

impl Scene {
    fn new() -> Self {
        let server = RedisServer::start();
        let relay = Relay::before(server.address());
        // Room for as many as a session can send one after the other.
        let limit = crate::node::per_merchant(1e6, 1_000_000);
        let node = Node::start(&(server.quota(Some(relay.address())) + &limit));
        node.wait_until_leased();
        Self { node, relay, _server: server }
    }

    /// Calls whose answers took longer than `bound`, of those that were answered at all.
    fn slower_than(&self, bound: &str) -> f64 {
        let count = |le: &str| {
            self.node.proxy.metric(&format!("tollgate_store_seconds_bucket{{le=\"{le}\"}}"))
        };
        count("+Inf") - count(bound)
    }
}

#[test]
fn messages_are_answered_while_the_store_answers_nothing_at_all() {
    const SALES: usize = 500;
    let scene = Scene::new();
    scene.relay.black_hole(true);
    let answered = scene.node.proxy.metric(crate::node::ANSWERED);
    let mut terminal = scene.node.terminal();
    assert_eq!(terminal.sales(GOOD, SALES), SALES);
    scene.node.wait_until_lost();
    assert_eq!(terminal.sales(GOOD, SALES), SALES);
    scene.node.proxy.wait_for_metric(&errors("timeout"), 1.0);
    assert_eq!(terminal.sales(GOOD, SALES), SALES);
    // What was under way when it began has come to its end; nothing that was sent since was answered.
    assert!(scene.node.proxy.metric(crate::node::ANSWERED) <= answered + 2.0);
    scene.relay.behave();
    scene.node.wait_until_all_is_leased();
    scene.node.wait_until_reported(GOOD);
}

/// BR055 and BR087: 200 ms, 300 ms and 3 s.
#[test]
fn no_message_waits_for_a_store_that_answers_late() {
    const SALES: usize = 500;
    let scene = Scene::new();
    let mut terminal = scene.node.terminal();
    for (delay_ms, kind, bound) in
        [(200, "late", "0.1"), (300, "late", "0.25"), (3_000, "timeout", "")]
    {
        let met = scene.node.errors(kind);
        let slow = if kind == "late" { scene.slower_than(bound) } else { 0.0 };
        scene.relay.delay_answers(Duration::from_millis(delay_ms));
        scene.node.proxy.wait_for_metric(&errors(kind), met + 1.0);
        let calls = scene.relay.scripts().len();
        assert_eq!(terminal.sales(GOOD, SALES), SALES);
        // Were each answered by the store's leave, there would be a call for each.
        let calls = scene.relay.scripts().len() - calls;
        assert!(calls * 5 < SALES, "{calls} calls");
        scene.node.wait_until_lost();
        scene.node.proxy.wait_for_metric(&errors(kind), met + 3.0);
        wait_for("the log says why", || {
            let named = format!("fault=\"{kind}\"");
            (scene.node.proxy.log_lines(&[FAILS, &named]) > 0).then_some(())
        });
        assert_eq!(terminal.sales(GOOD, SALES), SALES);
        if kind == "late" {
            assert!(scene.slower_than(bound) > slow, "it shows how late they are");
        }
        scene.relay.behave();
        scene.node.wait_until_all_is_leased();
        scene.node.wait_until_reported(GOOD);
    }
}

#[test]
fn limits_hold_while_the_store_answers_late() {
    let server = RedisServer::start();
    let relay = Relay::before(server.address());
    let node = Node::start(&(server.quota(Some(relay.address())) + &limit()));
    node.wait_until_leased();
    let traffic = Traffic::through(&node);
    for (delay_ms, kind) in [(200, "late"), (3_000, "timeout")] {
        traffic.goes_on();
        let met = node.errors(kind);
        relay.delay_answers(Duration::from_millis(delay_ms));
        node.proxy.wait_for_metric(&errors(kind), met + 3.0);
        node.wait_until_lost();
        traffic.goes_on();
        relay.behave();
        node.wait_until_all_is_leased();
    }
    traffic.goes_on();
    traffic.ends_well();
}

//! What one node has emptied, another hears by push, or a tick later without.

use std::process::Command;

use crate::node::{ANSWERED, HEARD, Node, SUBSCRIBED, Terminal, approving_host, per_merchant_once};
use crate::support::proxy::BINARY;
use crate::support::redis::{RedisServer, Relay, faults};
use crate::support::wait_for;

const BURST: u32 = 20;
const LOSSES: &str = "tollgate_store_subscription_losses_total";

/// Two nodes, of which the second meets its Redis by way of a relay.
struct Scene {
    spender: (Node, Terminal),
    hearer: (Node, Terminal),
    relay: Relay,
    server: RedisServer,
}

impl Scene {
    fn with(leasing: &str) -> Self {
        let server = RedisServer::start();
        let relay = Relay::before(server.address());
        let limit = per_merchant_once(BURST);
        let host = approving_host();
        let start = |quota: String| {
            let sections = quota + leasing + &limit;
            let node = Node::before(host, Command::new(BINARY), &sections);
            node.wait_until_leased();
            let terminal = node.terminal();
            (node, terminal)
        };
        let hearer = start(server.quota(Some(relay.address())));
        let spender = start(server.quota(None));
        hearer.0.proxy.wait_for_gauge("tollgate_lease_nodes", 2.0);
        Self { spender, hearer, relay, server }
    }

    fn both_are_subscribed(&self) {
        for (node, _) in [&self.spender, &self.hearer] {
            node.proxy.wait_for_gauge(SUBSCRIBED, 1.0);
        }
    }

    /// One node empties a bucket that the other has never met; the other hears of it and refuses.
    fn is_heard(&mut self, shop: &str) {
        let heard = self.hearer.0.proxy.metric(HEARD);
        let (node, terminal) = &mut self.spender;
        // It may be held now and then before the store has heard it.
        let mut admitted = 0;
        wait_for("the bucket is empty", || {
            admitted += usize::from(terminal.sale(shop));
            (admitted == BURST as usize).then_some(())
        });
        assert!(!terminal.sale(shop));
        node.wait_until_reported(shop);
        self.hearer.0.proxy.wait_for_metric(HEARD, heard + 1.0);
        let hearer = &self.hearer.0;
        wait_for("the last word on the level", || {
            let level = hearer.lease(shop)["level_tokens"].as_f64();
            level.filter(|level| *level < 1.0)
        });
        assert!(!self.hearer.1.sale(shop), "the bucket is empty for all");
    }
}

#[test]
fn a_key_that_was_emptied_elsewhere_is_heard_by_push_though_no_call_is_answered() {
    let mut scene = Scene::with("");
    scene.both_are_subscribed();
    // Its calls fail, and so no digest comes; its connections stay.
    scene.relay.fail_scripts(faults::OOM);
    scene.hearer.0.wait_until_lost();
    let answered = scene.hearer.0.proxy.metric(ANSWERED);
    scene.is_heard("SHOP0001");
    assert_eq!(scene.hearer.0.proxy.metric(ANSWERED), answered);
    scene.relay.behave();
    scene.hearer.0.wait_until_all_is_leased();
}

#[test]
fn without_its_subscription_a_node_hears_by_the_digest_and_subscribes_again() {
    let mut scene = Scene::with("");
    scene.both_are_subscribed();
    let node = &scene.hearer.0.proxy;
    let (losses, line) = (node.metric(LOSSES), scene.relay.counts()["SUBSCRIBE"]);
    // It cannot be made again, and the way to the shard stays.
    scene.relay.refuse(true);
    scene.server.cli(&["CLIENT", "KILL", "TYPE", "PUBSUB"]);
    node.wait_for_gauge(SUBSCRIBED, 0.0);
    assert_eq!(node.metric(LOSSES), losses + 1.0);
    scene.is_heard("SHOP0001");
    let node = &scene.hearer.0.proxy;
    assert_eq!((node.metric(SUBSCRIBED), node.metric(LOSSES)), (0.0, losses + 1.0));
    scene.relay.refuse(false);
    scene.both_are_subscribed();
    assert!(scene.relay.counts()["SUBSCRIBE"] > line);
    assert_eq!(scene.spender.0.proxy.metric(LOSSES), 1.0);
    scene.is_heard("SHOP0002");
}

#[test]
fn without_pushes_no_node_subscribes_and_the_digest_tells() {
    let mut scene = Scene::with("[quota.leasing]\npush = false\n");
    scene.is_heard("SHOP0001");
    let counts = scene.relay.counts();
    assert!(!counts.contains_key("SUBSCRIBE") && counts.contains_key("EVALSHA"), "{counts:?}");
    assert_eq!(scene.server.cli_text(&["CLIENT", "LIST", "TYPE", "PUBSUB"]), "");
    assert_eq!(scene.server.cli_text(&["PUBSUB", "CHANNELS"]), "");
    for (node, _) in [&scene.spender, &scene.hearer] {
        assert_eq!((node.proxy.metric(SUBSCRIBED), node.proxy.metric(LOSSES)), (0.0, 0.0));
    }
}

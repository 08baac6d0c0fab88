//! Calls that were made and whose answers nobody got: what was spent is charged once.

use crate::node::{Node, Terminal, approving_host, per_merchant_once};
use crate::stored::{self, Stored};
use crate::support::proxy::BINARY;
use crate::support::redis::{RedisServer, Relay};
use crate::support::wait_for;

const SHOP: &str = "SHOP0001";
const BURST: u32 = 400;
/// Sales between two lost answers.
const SALES: usize = 3;
const ROUNDS: usize = 15;

struct Scene {
    nodes: Vec<(Node, Terminal)>,
    relay: Relay,
    server: RedisServer,
}

impl Scene {
    fn of(nodes: usize) -> Self {
        let server = RedisServer::start();
        let relay = Relay::before(server.address());
        // What refills in a test is too little to be counted.
        let limit = per_merchant_once(BURST);
        let sections = server.quota(Some(relay.address())) + &limit;
        let host = approving_host();
        let start = |_| {
            let node = Node::before(host, std::process::Command::new(BINARY), &sections);
            node.wait_until_leased();
            let terminal = node.terminal();
            (node, terminal)
        };
        Self { nodes: (0..nodes).map(start).collect(), relay, server }
    }

    /// Waits until the store knows what each node has spent.
    fn settled(&self, of_each: usize) -> Stored {
        for (node, _) in &self.nodes {
            node.wait_until_reported(SHOP);
        }
        let is_whole = |stored: &Stored| {
            stored.spent.len() == self.nodes.len()
                && stored.spent.values().all(|spent| *spent == of_each as f64)
        };
        wait_for(&format!("{of_each} spent by each: {:?}", stored::only(&self.server)), || {
            stored::only(&self.server).filter(is_whole)
        })
    }
}

/// BR102.
#[track_caller]
fn is_charged_once(nodes: usize) {
    let mut scene = Scene::of(nodes);
    let mut of_each = 0;
    for round in 1..=ROUNDS {
        scene.relay.lose_answers_to_reports(1);
        for (_, terminal) in &mut scene.nodes {
            assert_eq!(terminal.sales(SHOP, SALES), SALES);
        }
        of_each += SALES;
        wait_for("an answer is lost", || (scene.relay.answers_lost() == round).then_some(()));
        let stored = scene.settled(of_each);
        let level = f64::from(BURST) - (of_each * nodes) as f64;
        assert!((stored.level - level).abs() < 0.1, "{level}: {stored:?}");
    }
    // The nodes know the level too, and none of them has a token more.
    let left = BURST as usize - of_each * nodes;
    let (_, terminal) = &mut scene.nodes[0];
    let admitted = terminal.sales(SHOP, left + 10);
    assert!(admitted <= left, "{admitted} of {left}");
    let lost: f64 = scene.nodes.iter().map(|(node, _)| node.errors("io")).sum();
    assert!(lost >= 1.0, "lost answers are errors");
}

#[test]
fn an_answer_that_is_lost_charges_nothing_twice() {
    is_charged_once(1);
}

#[test]
fn answers_that_are_lost_to_two_nodes_charge_nothing_twice() {
    is_charged_once(2);
}

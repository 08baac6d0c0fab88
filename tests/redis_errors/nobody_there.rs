//! A store that is not there when a node starts.

use tollgate::clock::Clock;

use crate::node::{FAILS, LEASES_VALID, Node, STORE_UP, errors, on_loss, per_merchant};
use crate::support::redis::port::free_port;
use crate::support::redis::{RedisServer, Relay};
use crate::support::wait_for;

const SHOP: &str = "SHOP0001";
const RATE: f64 = 3.0;
const BURST: u32 = 3;
const AT_ONCE: usize = 100;
const FAIL_OPEN: &str = "tollgate_lease_fail_open_total{cause=\"on_loss\"}";

/// A node whose Redis refuses every connection, and how many of a hundred sales at once it admits. The
/// most that a bucket gives meanwhile comes with it.
fn hundred_at_once(kind: &str) -> (Node, usize, f64) {
    let clock = Clock::start();
    let quota = format!(
        "[quota]\nstore = \"redis\"\n[quota.redis]\nurl = \"redis://127.0.0.1:{}\"\n",
        free_port()
    );
    let node = Node::start(&(on_loss(&quota, kind) + &per_merchant(RATE, BURST)));
    assert!(node.proxy.page("/readyz").0);
    let mut terminal = node.terminal();
    let began = clock.now();
    for _ in 0..AT_ONCE {
        terminal.send(SHOP);
    }
    let admitted = (0..AT_ONCE).filter(|_| terminal.answer()).count();
    let most = f64::from(BURST) + RATE * clock.now().since(began).as_secs_f64();
    (node, admitted, most)
}

fn shows(node: &Node) {
    assert_eq!(node.proxy.log_lines(&["WARN", "the store has not answered", "opening without"]), 1);
    node.proxy.wait_for_gauge(STORE_UP, 0.0);
    assert_eq!(node.proxy.metric(LEASES_VALID), 0.0);
    node.proxy.wait_for_metric(&errors("io"), 3.0);
    wait_for("the log says why", || {
        (node.proxy.log_lines(&["WARN", FAILS, "fault=\"io\"", "efused"]) == 1).then_some(())
    });
}

/// BR104.
#[test]
fn without_a_store_local_admits_what_the_bucket_gives() {
    let (node, admitted, most) = hundred_at_once("local");
    assert!(admitted >= BURST as usize && admitted as f64 <= most, "{admitted}, {most} at most");
    assert_eq!(node.proxy.metric(FAIL_OPEN), 0.0);
    shows(&node);
}

/// BR104.
#[test]
fn without_a_store_open_admits_everything_and_counts_it() {
    let (node, admitted, _) = hundred_at_once("open");
    assert_eq!(admitted, AT_ONCE);
    assert_eq!(node.proxy.metric(FAIL_OPEN), AT_ONCE as f64);
    shows(&node);
}

/// BR104.
#[test]
fn without_a_store_closed_refuses_everything() {
    let (node, admitted, _) = hundred_at_once("closed");
    assert_eq!(admitted, 0);
    assert_eq!(node.proxy.metric(FAIL_OPEN), 0.0);
    shows(&node);
}

#[test]
fn a_store_that_comes_after_its_node_is_used_without_a_restart() {
    let server = RedisServer::start();
    let relay = Relay::before(server.address());
    relay.refuse(true);
    let node = Node::start(&(server.quota(Some(relay.address())) + &per_merchant(RATE, BURST)));
    let mut terminal = node.terminal();
    assert!(terminal.sale(SHOP));
    node.proxy.wait_for_metric(&errors("io"), 3.0);
    assert_eq!(node.proxy.metric(STORE_UP), 0.0);
    relay.behave();
    node.wait_until_all_is_leased();
    node.wait_until_reported(SHOP);
    assert_eq!(node.proxy.log_lines(&["the store answers again"]), 1);
    assert_eq!(node.proxy.log_lines(&["leases valid"]), 1);
}

//! Eight nodes before one Redis that stands still, and what they ask of it meanwhile and afterwards.

use std::process::Command;
use std::time::Duration;

use tollgate::clock::Moment;

use crate::node::{LEASES_VALID, Node, approving_host, per_merchant};
use crate::support::proxy::BINARY;
use crate::support::redis::{RedisServer, Relay};
use crate::support::wait_for;

const NODES: usize = 8;
/// A node has one way to its shard and one to what others push.
const LANES: usize = 2;
/// A connection that is not greeted is given up after so long, and so is a call that is not answered.
const GIVEN_UP_S: f64 = 0.5;
const PAUSE: Duration = Duration::from_secs(10);
const AFTERWARDS: Duration = Duration::from_secs(2);
/// Shops at each node, all of which have something to report afterwards.
const SHOPS: usize = 40;

fn since(moments: &[Moment], from: Moment, long: Duration) -> usize {
    let end = from.after(long);
    moments.iter().filter(|moment| (from..end).contains(moment)).count()
}

/// BR040.
#[test]
fn nodes_do_not_storm_a_redis_that_stands_still_nor_when_it_goes_on() {
    let server = RedisServer::start();
    let relay = Relay::before(server.address());
    let sections = server.quota(Some(relay.address())) + &per_merchant(10.0, 100);
    let host = approving_host();
    let nodes: Vec<Node> =
        (0..NODES).map(|_| Node::before(host, Command::new(BINARY), &sections)).collect();
    let mut terminals: Vec<_> = nodes.iter().map(Node::terminal).collect();
    nodes.iter().for_each(Node::wait_until_leased);
    let clock = relay.clock();
    let passes = |from: Moment, long: Duration| {
        wait_for("time passes", || (clock.now() >= from.after(long)).then_some(()));
    };
    let quiet_from = clock.now();
    passes(quiet_from, AFTERWARDS);
    let quiet = since(&relay.scripts(), quiet_from, AFTERWARDS);

    server.pause();
    let paused = clock.now();
    for terminal in &mut terminals {
        for shop in 0..SHOPS {
            assert!(terminal.sale(&format!("SHOP{shop:04}")));
        }
    }
    for node in &nodes {
        node.proxy.wait_for_gauge(LEASES_VALID, 0.0);
    }
    passes(paused, PAUSE);
    let resumed = clock.now();
    let attempts = since(&relay.connections(), paused, resumed.since(paused));
    server.resume();
    // One attempt at a time, each of which takes its time before it is given up.
    let of_lane = resumed.since(paused).as_secs_f64() / GIVEN_UP_S + 1.0;
    let most = of_lane * (NODES * LANES) as f64;
    assert!(attempts >= NODES, "they try again: {attempts}");
    assert!(attempts as f64 <= most, "{attempts} attempts, {most} at most");

    passes(resumed, AFTERWARDS);
    let storm = since(&relay.scripts(), resumed, AFTERWARDS);
    // What each node has to report afterwards is a call or two more than its ticks.
    assert!(storm <= 2 * quiet, "{storm} calls, {quiet} in as long before");
    nodes.iter().for_each(Node::wait_until_all_is_leased);
    for node in &nodes {
        node.proxy.wait_for_gauge("tollgate_lease_nodes", NODES as f64);
    }
}

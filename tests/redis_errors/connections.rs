//! Connections that a server ends, or nobody.

use crate::node::{CONNECTS, LEASES_ENDED, Node, SUBSCRIBED};
use crate::support::redis::{RedisServer, Relay, ServerPlan};
use crate::support::wait_for;
use crate::traffic::{Traffic, limit};

/// BR092.
#[test]
fn a_server_that_ends_idle_connections_after_a_second_meets_none() {
    let server = ServerPlan { timeout_seconds: 1, ..ServerPlan::default() }.start();
    let relay = Relay::before(server.address());
    let node = Node::start(&(server.quota(Some(relay.address())) + &limit()));
    node.wait_until_leased();
    node.proxy.wait_for_gauge(SUBSCRIBED, 1.0);
    let (connects, ended) = (node.proxy.metric(CONNECTS), node.proxy.log_lines(&[LEASES_ENDED]));
    let errors = node.errors_but(&["late"]);
    let calls = relay.scripts().len();
    // Three seconds, in which nobody has anything to spend.
    wait_for("ticks without traffic", || (relay.scripts().len() >= calls + 30).then_some(()));
    let traffic = Traffic::of_good(&node);
    traffic.goes_on();
    traffic.ends_well();
    // A machine that stands still may be late; nothing else happens.
    assert_eq!(node.errors_but(&["late"]), errors, "{}", node.proxy.log());
    assert_eq!(node.proxy.metric(CONNECTS), connects);
    assert!(node.errors("late") > 0.0 || node.proxy.log_lines(&[LEASES_ENDED]) == ended);
}

/// BR092: the node is not there for longer than its server waits.
#[test]
fn the_first_call_after_an_idle_disconnect_costs_nobody_anything() {
    let server = ServerPlan { timeout_seconds: 1, ..ServerPlan::default() }.start();
    let node = Node::start(&(server.quota(None) + &limit()));
    node.wait_until_leased();
    let connections = || {
        let clients = server.cli_text(&["CLIENT", "LIST", "TYPE", "NORMAL"]);
        // The one that asks is one.
        clients.lines().count() - 1
    };
    assert_eq!(connections(), 1);
    node.proxy.signal("STOP");
    wait_for("the server has ended the connection", || (connections() == 0).then_some(()));
    node.proxy.signal("CONT");
    let traffic = Traffic::through(&node);
    traffic.goes_on();
    node.wait_until_all_is_leased();
    assert!(node.errors("io") >= 1.0);
    traffic.goes_on();
    traffic.ends_well();
}

/// BR092: one connection that breaks is made anew before a lease has ended.
#[test]
fn a_connection_that_is_killed_ends_no_lease_and_refuses_nobody() {
    const KILLS: usize = 10;
    let server = RedisServer::start();
    let node = Node::start(&(server.quota(None) + &limit()));
    node.wait_until_leased();
    let traffic = Traffic::of_good(&node);
    let ended = node.proxy.log_lines(&[LEASES_ENDED]);
    for _ in 0..KILLS {
        traffic.goes_on();
        let connects = node.proxy.metric(CONNECTS);
        server.cli(&["CLIENT", "KILL", "TYPE", "NORMAL"]);
        node.proxy.wait_for_metric(CONNECTS, connects + 1.0);
        node.wait_until_leased();
    }
    traffic.goes_on();
    traffic.ends_well();
    // One that coincides with a machine that stands still may.
    let ended = node.proxy.log_lines(&[LEASES_ENDED]) - ended;
    assert!(ended <= KILLS / 2, "{ended} times\n{}", node.proxy.log());
}

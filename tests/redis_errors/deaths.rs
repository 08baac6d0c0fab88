//! A node that is killed time and again takes nothing of a bucket with it.

use std::process::Command;

use crate::node::{Node, approving_host, per_merchant_once};
use crate::stored;
use crate::support::proxy::BINARY;
use crate::support::redis::RedisServer;
use crate::support::wait_for;

const SHOP: &str = "SHOP0001";
const DEATHS: usize = 50;
const BURST: u32 = 200;
const ANSWERED_ITSELF: &str = "tollgate_lease_reports_total{to=\"itself\"}";

/// BR118.
#[test]
fn a_node_that_dies_after_each_of_its_leases_takes_nothing_with_it() {
    let server = RedisServer::start();
    let limit = per_merchant_once(BURST);
    let sections = server.quota(None) + &limit;
    let host = approving_host();
    let start = || Node::before(host, Command::new(BINARY), &sections);
    let survivors = [start(), start()];
    survivors.iter().for_each(Node::wait_until_leased);
    let (mut admitted, mut uncharged) = (0, 0);
    for death in 1..=DEATHS {
        let node = start();
        node.wait_until_leased();
        // It may have to hear from the store before it may spend what is left.
        let mut terminal = node.terminal();
        wait_for("it spends a token", || terminal.sale(SHOP).then_some(()));
        admitted += 1;
        node.wait_until_reported(SHOP);
        // On a busy machine its lease may have ended for a moment, and what it spent meanwhile is
        // settled and not charged.
        uncharged += usize::from(node.proxy.metric(ANSWERED_ITSELF) > 0.0);
        // Dropped, it is killed: it says goodbye to nobody.
        drop(node);
        let spent = f64::from(BURST) - stored::only(&server).unwrap().level;
        let expected = (death - uncharged) as f64 - 0.2..=death as f64 + 0.2;
        assert!(expected.contains(&spent), "{expected:?}: {spent}");
    }
    let mut terminals = survivors.each_ref().map(Node::terminal);
    wait_for("all that is left is spent", || {
        admitted +=
            terminals.iter_mut().filter_map(|terminal| terminal.sale(SHOP).then_some(())).count();
        (admitted >= BURST as usize).then_some(())
    });
    survivors.iter().for_each(|node| node.wait_until_reported(SHOP));
    for terminal in &mut terminals {
        admitted += terminal.sales(SHOP, 20);
    }
    // Either of the two may spend a token before it has heard of the other's last one.
    let by_themselves: f64 = survivors.iter().map(|node| node.proxy.metric(ANSWERED_ITSELF)).sum();
    let most = BURST as usize + 2 + uncharged + by_themselves as usize;
    assert!((BURST as usize..=most).contains(&admitted), "{admitted}, {most} at most");
    assert!(uncharged < DEATHS / 2, "{uncharged}");
}

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
    let mut admitted = 0;
    for death in 1..=DEATHS {
        let node = start();
        node.wait_until_leased();
        // It may have to hear from the store before it may spend what is left.
        let mut terminal = node.terminal();
        wait_for("it spends a token", || terminal.sale(SHOP).then_some(()));
        admitted += 1;
        node.wait_until_reported(SHOP);
        // Dropped, it is killed: it says goodbye to nobody.
        drop(node);
        let level = stored::only(&server).unwrap().level;
        assert!((level - (f64::from(BURST) - death as f64)).abs() < 0.2, "{death}: {level}");
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
    assert!((BURST as usize..=BURST as usize + 2).contains(&admitted), "{admitted}");
}

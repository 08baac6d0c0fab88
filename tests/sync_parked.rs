//! What sessions meet while the lease sync stands still: the real binary, whose sync thread does
//! nothing for seconds, with sales going through it all the while.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use serde_json::Value;
use support::house::{House, Plan, limit};
use support::message::Message;
use support::peer::Peer;
use support::wait_for;

const BURST: u32 = 20;
const VALID: &str = "tollgate_lease_valid";
const UNREPORTED: &str = "tollgate_lease_unreported_tokens{limit=\"merchant\"}";

struct Scene {
    house: House,
    terminal: Peer,
    stan: u32,
}

impl Scene {
    /// A node that leases a bucket which does not refill, and whose sync stands still for five
    /// seconds, one second after it began.
    fn with(on_loss: &str) -> Self {
        let quota = format!("[quota]\nleases = true\non_loss = \"{on_loss}\"\n");
        let plan =
            Plan { sections: quota + &limit("merchant", "merchant", BURST), ..Plan::default() };
        let house = plan.start_with(&["--park-sync", "1s,5s"]);
        house.proxy.wait_for_gauge(VALID, 1.0);
        let terminal = house.terminal();
        Self { house, terminal, stan: 0 }
    }

    /// One sale, answered before this returns; whether the host has seen it.
    fn sale(&mut self) -> bool {
        self.stan += 1;
        let request = Message::sale("4111111111111111", self.stan).with(42, "SHOP0001       ");
        self.terminal.send(&request.encode());
        let passed = wait_for("the sale at the host, or an answer to it", || {
            let at_host = self.house.at_host.has_bytes();
            (at_host || self.terminal.has_bytes()).then_some(at_host)
        });
        if passed {
            assert_eq!(self.house.at_host.receive(), request.encode());
            self.house.at_host.send(&request.answer("00").encode());
        }
        let answer = Message::decode(&self.terminal.receive());
        assert_eq!(answer.get(39), Some(if passed { "00" } else { "91" }));
        passed
    }

    fn sales(&mut self, count: u32) -> u32 {
        (0..count).filter(|_| self.sale()).count() as u32
    }

    /// Waits until the sync stands still and no lease is valid any more; that shows while it does.
    fn wait_for_the_end_of_leases(&self) {
        self.house.proxy.wait_for_log("lease sync parked");
        self.house.proxy.wait_for_gauge(VALID, 0.0);
        let log = self.house.proxy.log();
        let after = log.split("lease sync parked").nth(1).unwrap();
        assert!(!after.contains("leases"), "the sync went on before the metric showed it: {after}");
    }

    fn wait_for_new_leases(&self) {
        self.house.proxy.wait_for_gauge(VALID, 1.0);
        self.house.proxy.wait_for_gauge("tollgate_lease_local_keys", 0.0);
    }

    /// What the node says of the key's lease.
    fn lease(&self) -> Value {
        let page = "/status?limit=merchant&acquirer=123456&merchant=SHOP0001";
        let (found, text) = self.house.proxy.page(page);
        assert!(found, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()["lease"].clone()
    }
}

#[test]
fn a_node_whose_sync_stands_still_goes_on_by_its_own_bucket_and_settles_afterwards() {
    let mut scene = Scene::with("local");
    assert_eq!(scene.sales(5), 5);
    scene.wait_for_the_end_of_leases();
    assert_eq!(scene.lease()["mode"], "local");
    // Not a token less than the bucket has, and not one more.
    assert_eq!(scene.sales(BURST), BURST - 5);
    scene.wait_for_new_leases();
    assert_eq!(scene.sales(3), 0);
    let settled = wait_for("all spending at the store", || {
        let lease = scene.lease();
        (lease["standing"] == "leased" && lease["unreported_tokens"] == 0.0).then_some(lease)
    });
    assert_eq!((&settled["mode"], &settled["nodes"]), (&"leased".into(), &1.into()));
    assert!(settled["level_tokens"].as_f64().unwrap().abs() < 0.1, "{settled}");
    scene.house.proxy.wait_for_gauge(UNREPORTED, 0.0);
}

#[test]
fn with_on_loss_open_everything_passes_and_is_counted() {
    let mut scene = Scene::with("open");
    assert_eq!(scene.sales(5), 5);
    scene.wait_for_the_end_of_leases();
    assert_eq!(scene.sales(2 * BURST), 2 * BURST);
    let counted = scene.house.proxy.metric("tollgate_lease_fail_open_total{cause=\"on_loss\"}");
    assert_eq!(counted, f64::from(2 * BURST));
    // What was admitted is owed, down to one burst.
    scene.wait_for_new_leases();
    assert_eq!(scene.sales(3), 0);
}

#[test]
fn with_on_loss_closed_sales_are_refused_until_the_store_answers() {
    let mut scene = Scene::with("closed");
    assert_eq!(scene.sales(5), 5);
    scene.wait_for_the_end_of_leases();
    assert_eq!(scene.sales(3), 0);
    scene.wait_for_new_leases();
    assert_eq!(scene.sales(BURST), BURST - 5);
}

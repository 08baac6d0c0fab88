//! Every error that a server may answer a script with: one node meets them all.

use crate::node::{ANSWERS_AGAIN, FAILS, LEASES_ENDED, Node, STORE_UP, errors};
use crate::support::redis::{RedisServer, Relay, faults};
use crate::support::wait_for;
use crate::traffic::{Traffic, limit};

/// What all scripts are answered, and as what it is known.
const TABLE: [(&str, &str); 14] = [
    (faults::READONLY, "readonly"),
    (faults::MASTERDOWN, "masterdown"),
    (faults::CLUSTERDOWN, "clusterdown"),
    (faults::LOADING, "loading"),
    (faults::BUSY, "busy"),
    (faults::OOM, "oom"),
    (faults::NOREPLICAS, "noreplicas"),
    (faults::MISCONF, "misconf"),
    (faults::CROSSSLOT, "crossslot"),
    (faults::TRYAGAIN, "tryagain"),
    (faults::NOPERM, "noperm"),
    (faults::WRONGTYPE, "wrongtype"),
    (faults::NOSCRIPT, "noscript"),
    ("-ERR user_script:12: attempt to index a nil value", "script"),
];
/// Values that no script gives.
const UNREADABLE: [&str; 4] = ["+OK", ":7", "*0", "$-1"];

struct Scene {
    traffic: Traffic,
    node: Node,
    relay: Relay,
    _server: RedisServer,
}

impl Scene {
    fn new() -> Self {
        let server = RedisServer::start();
        let relay = Relay::before(server.address());
        let node = Node::start(&(server.quota(Some(relay.address())) + &limit()));
        node.wait_until_leased();
        let traffic = Traffic::through(&node);
        Self { node, relay, traffic, _server: server }
    }

    fn said(&self, texts: &[&str]) -> usize {
        self.node.proxy.log_lines(texts)
    }

    /// A fault begins, is noticed and said, and ends. Traffic goes on, and leases come back.
    fn meets(&self, kind: &str, begin: impl FnOnce(&Relay)) {
        let proxy = &self.node.proxy;
        let named = format!("fault=\"{kind}\"");
        let said = || self.said(&["WARN", FAILS, &named]);
        let (before, met_before) = (said(), self.node.errors(kind));
        let [ended, again] = [LEASES_ENDED, ANSWERS_AGAIN].map(|text| self.said(&[text]));
        begin(&self.relay);
        proxy.wait_for_metric(&errors(kind), met_before + 3.0);
        proxy.wait_for_gauge(STORE_UP, 0.0);
        wait_for(&format!("{FAILS}: {kind}"), || (said() > before).then_some(()));
        wait_for("the end of leases is said", || {
            (self.said(&[LEASES_ENDED]) > ended).then_some(())
        });
        self.node.wait_until_lost();
        self.traffic.goes_on();
        let met = self.node.errors(kind);
        proxy.wait_for_metric(&errors(kind), met + 3.0);
        assert_eq!(said(), before + 1, "said once: {}", proxy.log());
        self.relay.behave();
        self.node.wait_until_all_is_leased();
        wait_for(ANSWERS_AGAIN, || (self.said(&[ANSWERS_AGAIN]) > again).then_some(()));
        self.traffic.goes_on();
    }
}

#[test]
fn whatever_error_scripts_are_answered_traffic_goes_on_and_leases_come_back() {
    let scene = Scene::new();
    for (line, kind) in TABLE {
        scene.meets(kind, |relay| relay.fail_scripts(line));
    }
    for value in UNREADABLE {
        scene.meets("unreadable", |relay| relay.answer_scripts(value));
    }
    let Scene { traffic, node, .. } = scene;
    traffic.ends_well();
    assert_eq!(node.proxy.metric_sum("tollgate_lease_fail_open_total", &[]), 0.0);
}

/// It is no use to connect anew to a server that is short of something.
#[test]
fn a_server_that_answers_errors_of_its_own_keeps_its_connection() {
    let scene = Scene::new();
    for kind in ["oom", "noperm", "busy"] {
        let (line, _) = TABLE.into_iter().find(|(_, name)| *name == kind).unwrap();
        // A busy machine may keep one from its answers for so long that it takes it for broken.
        let made = || scene.relay.connections().len() as f64 - scene.node.errors("timeout");
        let before = made();
        scene.meets(kind, |relay| relay.fail_scripts(line));
        assert!(made() <= before, "{}", scene.node.proxy.log());
    }
    scene.traffic.ends_well();
}

//! One node before a host that approves everything, and what it says of its store.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::Value;

use crate::support::host::Host;
use crate::support::house::{Plan, SOCKETS};
use crate::support::message::Message;
use crate::support::peer::{Framing, Peer};
use crate::support::proxy::{BINARY, Proxy};
use crate::support::wait_for;

pub const STORE_UP: &str = "tollgate_store_up";
pub const LEASES_VALID: &str = "tollgate_lease_valid";
pub const SUBSCRIBED: &str = "tollgate_store_subscribed";
pub const CONNECTS: &str = "tollgate_store_connects_total";
pub const UNKEPT: &str = "tollgate_lease_unkept_total";
pub const HEARD: &str = "tollgate_lease_heard_total{placed=\"true\"}";
pub const ANSWERED: &str = "tollgate_lease_sync_total{result=\"answered\"}";

/// Lines of the log.
pub const FAILS: &str = "the store fails";
pub const ANSWERS_AGAIN: &str = "the store answers again";
pub const LEASES_ENDED: &str = "leases ended";

/// A node, whose limits are by merchant.
pub struct Node {
    pub proxy: Proxy,
}

impl Node {
    /// A node with these sections, and a host of its own.
    #[track_caller]
    pub fn start(sections: &str) -> Self {
        Self::start_by(Command::new(BINARY), sections)
    }

    /// The same by a command that ends in the binary's path.
    #[track_caller]
    pub fn start_by(command: Command, sections: &str) -> Self {
        Self::before(approving_host(), command, sections)
    }

    /// A node before a host that there is.
    #[track_caller]
    pub fn before(host: SocketAddr, command: Command, sections: &str) -> Self {
        let plan = Plan { sections: sections.to_owned(), ..Plan::default() };
        let proxy = Proxy::start_by(command, &plan.config(host));
        proxy.wait_for_metric(SOCKETS, 1.0);
        Self { proxy }
    }

    /// A new session.
    #[track_caller]
    pub fn terminal(&self) -> Terminal {
        Terminal { peer: self.proxy.connect("visa", Framing::Be16), stan: 0 }
    }

    /// Waits until the store answers and tokens are leased.
    #[track_caller]
    pub fn wait_until_leased(&self) {
        self.proxy.wait_for_gauge(STORE_UP, 1.0);
        self.proxy.wait_for_gauge(LEASES_VALID, 1.0);
    }

    /// Waits until all keys are leased again that the node answered itself.
    #[track_caller]
    pub fn wait_until_all_is_leased(&self) {
        self.wait_until_leased();
        self.proxy.wait_for_gauge("tollgate_lease_local_keys", 0.0);
    }

    /// Waits until the store is known to be lost, and the log says so.
    #[track_caller]
    pub fn wait_until_lost(&self) {
        self.proxy.wait_for_gauge(STORE_UP, 0.0);
        self.proxy.wait_for_gauge(LEASES_VALID, 0.0);
        self.proxy.wait_for_log(LEASES_ENDED);
    }

    /// How often something was met.
    #[track_caller]
    pub fn errors(&self, kind: &str) -> f64 {
        self.proxy.metric(&errors(kind))
    }

    /// How often anything was met, but for these kinds.
    #[track_caller]
    pub fn errors_but(&self, kinds: &[&str]) -> f64 {
        let all = self.proxy.metric_sum("tollgate_store_errors_total", &[]);
        all - kinds.iter().map(|kind| self.errors(kind)).sum::<f64>()
    }

    /// What the node says of a merchant's lease.
    #[track_caller]
    pub fn lease(&self, merchant: &str) -> Value {
        let query = format!("limit=merchant&acquirer=123456&merchant={merchant}");
        let (found, text) = self.proxy.page(&format!("/status?{query}"));
        assert!(found, "{text}");
        serde_json::from_str::<Value>(&text).unwrap()["lease"].clone()
    }

    /// Waits until the store has acknowledged all that was spent for a merchant.
    #[track_caller]
    pub fn wait_until_reported(&self, merchant: &str) {
        wait_for("all that was spent is reported", || {
            let lease = self.lease(merchant);
            let is_known = lease["standing"] == "leased" && lease["unreported_tokens"] == 0.0;
            is_known.then_some(())
        });
    }
}

/// A series of `tollgate_store_errors_total`.
pub fn errors(kind: &str) -> String {
    format!("tollgate_store_errors_total{{kind=\"{kind}\"}}")
}

/// A host that approves everything, for as long as the tests run.
pub fn approving_host() -> SocketAddr {
    let host = Host::listen(Framing::Be16);
    let address = host.address();
    host.serve(|frame| Some(Message::decode(frame).answer("00").encode()));
    address
}

/// `[quota]` with something else to be done without a store.
pub fn on_loss(quota: &str, on_loss: &str) -> String {
    quota.replacen("[quota]\n", &format!("[quota]\non_loss = \"{on_loss}\"\n"), 1)
}

/// A limit by merchant: tokens per second, and of a full bucket.
pub fn per_merchant(rate: f64, burst: u32) -> String {
    format!(
        r#"
        [[limit]]
        name = "merchant"
        per = ["merchant"]
        rate = {rate}
        burst = {burst}
        mode = "enforce"
        "#
    )
}

/// One of which no more comes as long as a test runs.
pub fn per_merchant_once(burst: u32) -> String {
    per_merchant(0.001, burst)
}

/// A session that waits for each of its answers.
pub struct Terminal {
    peer: Peer,
    stan: u32,
}

impl Terminal {
    /// One sale; whether it was approved, and not refused here.
    #[track_caller]
    pub fn sale(&mut self, merchant: &str) -> bool {
        self.send(merchant);
        self.answer()
    }

    /// How many of so many sales were approved.
    #[track_caller]
    pub fn sales(&mut self, merchant: &str, count: usize) -> usize {
        (0..count).filter(|_| self.sale(merchant)).count()
    }

    #[track_caller]
    pub fn send(&mut self, merchant: &str) {
        self.stan = self.stan % 999_999 + 1;
        let sale = Message::sale("4111111111111111", self.stan);
        self.peer.send(&sale.with(42, &format!("{merchant:<15}")).encode());
    }

    #[track_caller]
    pub fn answer(&mut self) -> bool {
        match self.peer.receive_message().get(39) {
            Some("00") => true,
            Some("91") => false,
            other => panic!("an answer with {other:?}"),
        }
    }
}

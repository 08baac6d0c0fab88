//! Several nodes on one store: real processes, each with its configuration, before one host.

use std::net::SocketAddr;
use std::process::ExitStatus;
use std::time::Duration;

use tollgate::iso8583::Dialect;
use tollgate::peers::Echo;
use tollgate::wire::{Framing, Header};

use super::load::{Driver, Shop};
use super::proxy::Proxy;

pub const LEASE_VALID: &str = "tollgate_lease_valid";
pub const LEASE_NODES: &str = "tollgate_lease_nodes";
const LINK: &str = "visa";
const HOST_UP: &str = "tollgate_upstream_sockets{link=\"visa\",upstream=\"host\"}";

/// Nodes that share a store, and the host that answers all that they let through.
pub struct StoreHouse {
    /// `None` is a node that has ended.
    nodes: Vec<Option<Proxy>>,
    host: Echo,
    config: String,
}

impl StoreHouse {
    /// Starts so many nodes. `quota` says where the store is, as [`RedisServer::quota`] does, and
    /// `limits` are lines of TOML. All nodes have leases and know of each other when this returns.
    ///
    /// [`RedisServer::quota`]: super::redis::RedisServer::quota
    #[track_caller]
    pub fn start(nodes: usize, quota: &str, limits: &str) -> Self {
        let house = Self::start_without_leases(nodes, quota, limits);
        house.wait_for_leases();
        house
    }

    /// The same where the store does not answer yet.
    #[track_caller]
    pub fn start_without_leases(nodes: usize, quota: &str, limits: &str) -> Self {
        let dialect = Dialect::preset("iso87_ascii").unwrap();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let host = Echo::start(any_port, Framing::Be16, Header::None, &dialect).unwrap();
        let config = config(host.address(), quota, limits);
        let mut house = Self { nodes: Vec::new(), host, config };
        for node in 0..nodes {
            house.nodes.push(None);
            house.begin(node);
        }
        house
    }

    /// Starts a node that is not there. It is a new one for the store.
    #[track_caller]
    pub fn begin(&mut self, node: usize) {
        assert!(self.nodes[node].is_none(), "node {node} runs");
        let proxy = Proxy::start(&self.config);
        proxy.wait_for_gauge(HOST_UP, 1.0);
        self.nodes[node] = Some(proxy);
    }

    /// A node that runs.
    #[track_caller]
    pub fn node(&self, node: usize) -> &Proxy {
        self.nodes[node].as_ref().expect("a node that runs")
    }

    /// All that run.
    pub fn nodes(&self) -> impl Iterator<Item = &Proxy> {
        self.nodes.iter().flatten()
    }

    /// Where a node takes messages.
    #[track_caller]
    pub fn address(&self, node: usize) -> SocketAddr {
        self.node(node).address(LINK)
    }

    /// How many messages the host has seen.
    pub fn at_host(&self) -> u64 {
        self.host.answered()
    }

    /// Begins a load on all nodes.
    #[track_caller]
    pub fn load(&self, shops: Vec<Shop>) -> Driver {
        let addresses: Vec<SocketAddr> =
            (0..self.nodes.len()).map(|node| self.address(node)).collect();
        Driver::start(&addresses, shops)
    }

    /// Ends a node as a crash would.
    #[track_caller]
    pub fn kill(&mut self, node: usize) {
        drop(self.nodes[node].take().expect("a node that runs"));
    }

    /// Stops a node in order; gives its status and its log.
    #[track_caller]
    pub fn stop(&mut self, node: usize) -> (ExitStatus, String) {
        let mut proxy = self.nodes[node].take().expect("a node that runs");
        proxy.signal("TERM");
        let status = proxy.wait();
        (status, proxy.log())
    }

    /// Waits until every node that runs has leases and knows how many they are.
    #[track_caller]
    pub fn wait_for_leases(&self) {
        let count = self.nodes().count();
        for node in self.nodes() {
            node.wait_for_gauge(LEASE_VALID, 1.0);
            node.wait_for_gauge(LEASE_NODES, count as f64);
        }
    }

    /// Waits until no node that runs has a lease any more.
    #[track_caller]
    pub fn wait_for_the_end_of_leases(&self) {
        self.nodes().for_each(|node| node.wait_for_gauge(LEASE_VALID, 0.0));
    }

    /// What the slowest call of any node to the store took at most, as its metrics tell it.
    #[track_caller]
    pub fn slowest_call(&self) -> Duration {
        let of_node = |node: &Proxy| {
            let (_, page) = node.page("/metrics");
            let buckets = page.lines().filter_map(|line| {
                let rest = line.strip_prefix("tollgate_store_seconds_bucket{le=\"")?;
                let (bound, count) = rest.split_once("\"} ")?;
                Some((bound.parse::<f64>().unwrap(), count.parse::<u64>().unwrap()))
            });
            let buckets: Vec<(f64, u64)> = buckets.collect();
            let all = buckets.last().expect("a store on Redis").1;
            let bound = buckets.iter().find(|(_, count)| *count == all).unwrap().0;
            assert!(bound.is_finite(), "a call took longer than any bucket");
            Duration::from_secs_f64(bound)
        };
        self.nodes().map(of_node).max().expect("a node that runs")
    }
}

fn config(host: SocketAddr, quota: &str, limits: &str) -> String {
    format!(
        r#"
        [node]
        workers = 1
        grace = "100ms"
        [admin]
        listen = "127.0.0.1:0"
        [[link]]
        name = "{LINK}"
        listen = "127.0.0.1:0"
        dialect = "iso87_ascii"
        framing = "be16"
        [[upstream]]
        name = "host"
        connect = "{host}"
        framing = "be16"
        connections = 1
        {quota}
        {limits}
        "#
    )
}

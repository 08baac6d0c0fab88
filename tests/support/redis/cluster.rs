//! A Cluster: masters that share the slots evenly, and a replica of each where a test wants them.

use std::net::SocketAddr;

use ::redis::Value;

use super::server::text;
use super::{RedisServer, ServerPlan};
use crate::support::wait_for;

/// All slots there are.
pub const SLOTS: u16 = 16_384;
/// A node that is silent for so long has failed, in milliseconds. Shorter, and a busy machine takes
/// one for the other.
const NODE_TIMEOUT_MS: u32 = 2_000;
/// Keys that move at once.
const BATCH: &str = "10";
/// Milliseconds that a move may take.
const MOVE_TIMEOUT_MS: &str = "5000";

/// A running Cluster. Its masters are nodes 0 to n - 1, and node n + i is the replica of node i.
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
    masters: usize,
}

/// How far a slot has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Both nodes know that it moves. Who asks for a key that has gone is sent on with ASK.
    Marked,
    /// Some of its keys have gone, and so many are left.
    Gone { left: usize },
    /// The new owner has it, and nobody else knows yet.
    Owned,
    /// All know. It has ended.
    Told,
}

impl RedisCluster {
    /// Three masters.
    #[track_caller]
    pub fn start() -> Self {
        Self::of(3, false, &ServerPlan::default())
    }

    /// Three masters with a replica each.
    #[track_caller]
    pub fn with_replicas() -> Self {
        Self::of(3, true, &ServerPlan::default())
    }

    /// So many masters, each node as planned.
    #[track_caller]
    pub fn of(masters: usize, with_replicas: bool, plan: &ServerPlan) -> Self {
        let lines = format!(
            "cluster-enabled yes\n\
             cluster-config-file nodes.conf\n\
             cluster-node-timeout {NODE_TIMEOUT_MS}\n\
             cluster-allow-replica-migration no\n{}",
            plan.lines
        );
        let plan = ServerPlan { lines, ..plan.clone() };
        let count = if with_replicas { 2 * masters } else { masters };
        let nodes: Vec<_> = (0..count).map(|_| plan.clone().start()).collect();
        let cluster = Self { nodes, masters };
        cluster.form();
        cluster
    }

    fn form(&self) {
        let share = usize::from(SLOTS).div_ceil(self.masters);
        for (number, node) in self.nodes.iter().enumerate() {
            node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
            if number < self.masters {
                let (first, end) = (number * share, ((number + 1) * share).min(SLOTS.into()));
                let (first, last) = (first.to_string(), (end - 1).to_string());
                node.cli(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            }
            self.nodes[0].cli(&["CLUSTER", "MEET", "127.0.0.1", &node.port().to_string()]);
        }
        self.wait_until_all_know("cluster_known_nodes", &self.nodes.len().to_string());
        for number in self.masters..self.nodes.len() {
            let master = self.id(number - self.masters);
            let replica = &self.nodes[number];
            // It may have to hear of the master first.
            wait_for("the replica has its master", || {
                replica.try_cli(&["CLUSTER", "REPLICATE", &master]).ok()
            });
            let is_up = || replica.info("master_link_status").filter(|status| status == "up");
            wait_for("the replica follows", is_up);
            for node in &self.nodes {
                // A master does not make way for somebody that it does not know as its replica.
                wait_for("every node knows of the replica", || {
                    let replicas = node.cli_text(&["CLUSTER", "REPLICAS", &master]);
                    replicas.contains(&self.id(number)).then_some(())
                });
            }
        }
        self.wait_until_all_know("cluster_state", "ok");
    }

    /// Waits until every node that runs says so in `CLUSTER INFO`.
    #[track_caller]
    pub fn wait_until_all_know(&self, name: &str, value: &str) {
        let line = format!("{name}:{value}");
        for node in self.nodes.iter().filter(|node| node.is_running()) {
            wait_for(&format!("{line} on port {}", node.port()), || {
                let info = node.cli_text(&["CLUSTER", "INFO"]);
                info.lines().any(|known| known == line).then_some(())
            });
        }
    }

    /// How tollgate is told where it is: all masters.
    pub fn url(&self) -> String {
        let masters = self.nodes[..self.masters].iter().map(RedisServer::address);
        url(masters)
    }

    /// What tollgate is told of it: `[quota]` and `[quota.redis]`.
    pub fn quota(&self) -> String {
        self.nodes[0].quota_at(&self.url())
    }

    pub fn node(&self, number: usize) -> &RedisServer {
        &self.nodes[number]
    }

    /// A node, to be killed or started again.
    pub fn node_mut(&mut self, number: usize) -> &mut RedisServer {
        &mut self.nodes[number]
    }

    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// What the nodes call this one.
    #[track_caller]
    pub fn id(&self, number: usize) -> String {
        self.nodes[number].cli_text(&["CLUSTER", "MYID"])
    }

    /// The number of the node that has a slot, as the first node that runs sees it.
    #[track_caller]
    pub fn owner(&self, slot: u16) -> Option<usize> {
        let asked = self.nodes.iter().find(|node| node.is_running()).expect("a node that runs");
        let number = |value: &Value| text(value).parse::<u16>().unwrap();
        let Value::Array(ranges) = asked.cli(&["CLUSTER", "SLOTS"]) else { panic!("no ranges") };
        ranges.iter().find_map(|range| {
            let Value::Array(parts) = range else { panic!("no range") };
            let has = (number(&parts[0])..=number(&parts[1])).contains(&slot);
            let Value::Array(master) = &parts[2] else { panic!("no master") };
            let port = number(&master[1]);
            has.then(|| self.nodes.iter().position(|node| node.port() == port)).flatten()
        })
    }

    /// Moves a slot to another master while everybody uses it; `step` is called after each step.
    #[track_caller]
    pub fn migrate_slot(&self, slot: u16, from: usize, to: usize, mut step: impl FnMut(Move)) {
        let (old, new) = (&self.nodes[from], &self.nodes[to]);
        let (old_id, new_id, slot) = (self.id(from), self.id(to), slot.to_string());
        new.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &old_id]);
        old.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &new_id]);
        step(Move::Marked);
        let port = new.port().to_string();
        loop {
            let keys = old.cli_text(&["CLUSTER", "GETKEYSINSLOT", &slot, BATCH]);
            let keys: Vec<&str> = keys.lines().collect();
            if keys.is_empty() {
                break;
            }
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", MOVE_TIMEOUT_MS];
            words.push("KEYS");
            words.extend(keys);
            // One that has expired meanwhile is no error: NOKEY.
            old.cli(&words);
            let left = old.cli_text(&["CLUSTER", "COUNTKEYSINSLOT", &slot]).parse().unwrap();
            step(Move::Gone { left });
        }
        let own = ["CLUSTER", "SETSLOT", &slot, "NODE", &new_id];
        new.cli(&own);
        step(Move::Owned);
        old.cli(&own);
        let others = (0..self.masters).filter(|number| ![from, to].contains(number));
        others.for_each(|number| {
            // It may have heard of it from the new owner.
            self.nodes[number].cli(&own);
        });
        step(Move::Told);
    }

    /// Makes a replica the master of its slots, and waits until all know. The old master follows it
    /// if it runs; with `force`, it is not asked.
    #[track_caller]
    pub fn failover(&self, replica: usize, force: bool) {
        let slot = self.first_slot(replica - self.masters);
        let words = ["CLUSTER", "FAILOVER", "FORCE"];
        self.nodes[replica].cli(&words[..if force { 3 } else { 2 }]);
        self.wait_for_owner(slot, replica);
    }

    /// Waits until this node has the slot and the cluster is whole.
    #[track_caller]
    pub fn wait_for_owner(&self, slot: u16, number: usize) {
        wait_for(&format!("node {number} has slot {slot}"), || {
            (self.owner(slot) == Some(number)).then_some(())
        });
        self.wait_until_all_know("cluster_state", "ok");
    }

    /// The first slot that a master had from the start.
    pub fn first_slot(&self, master: usize) -> u16 {
        u16::try_from(master * usize::from(SLOTS).div_ceil(self.masters)).unwrap()
    }

    /// The slot of a key, as a server computes it.
    #[track_caller]
    pub fn key_slot(&self, key: &str) -> u16 {
        self.nodes[0].cli_text(&["CLUSTER", "KEYSLOT", key]).parse().unwrap()
    }
}

/// The address of a Cluster that is known by some of its nodes.
pub fn url(nodes: impl Iterator<Item = SocketAddr>) -> String {
    let nodes: Vec<String> = nodes.map(|address| address.to_string()).collect();
    format!("redis-cluster://{}", nodes.join(","))
}

//! The usual arrangement: one link, `visa`, before one host. A test says only what differs.

use std::net::SocketAddr;
use std::process::Command;

use super::host::Host;
use super::message::Layout;
use super::peer::{Framing, Peer};
use super::proxy::{BINARY, Proxy};

/// What a test wants; the texts are lines of TOML.
pub struct Plan {
    pub layout: Layout,
    pub link_framing: Framing,
    pub host_framing: Framing,
    pub connections: usize,
    /// So long that no test meets it unless it says so.
    pub deadline: &'static str,
    /// In `[log]`.
    pub log: String,
    /// In `[[link]]`.
    pub link: String,
    /// In `[link.codes]`.
    pub codes: String,
    /// In `[[upstream]]`.
    pub upstream: String,
    /// Whole sections, such as limits.
    pub sections: String,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            layout: Layout::Hex,
            link_framing: Framing::Be16,
            host_framing: Framing::Be16,
            connections: 1,
            deadline: "50s",
            log: String::new(),
            link: String::new(),
            codes: String::new(),
            upstream: String::new(),
            sections: String::new(),
        }
    }
}

impl Plan {
    /// One limit after the other.
    pub fn limits(limits: &[String]) -> Self {
        Self { sections: limits.concat(), ..Self::default() }
    }

    pub fn config(&self, host: SocketAddr) -> String {
        let Self { connections, deadline, log, link, codes, upstream, sections, .. } = self;
        let (dialect, framing) = (self.layout.preset(), self.link_framing.name());
        let host_framing = self.host_framing.name();
        format!(
            r#"
            [node]
            grace = "100ms"
            [admin]
            listen = "127.0.0.1:0"
            [log]
            {log}
            [[link]]
            name = "visa"
            listen = "127.0.0.1:0"
            dialect = "{dialect}"
            framing = "{framing}"
            deadline = "{deadline}"
            {link}
            [link.codes]
            {codes}
            [[upstream]]
            name = "host"
            connect = "{host}"
            framing = "{host_framing}"
            connections = {connections}
            {upstream}
            {sections}
            "#
        )
    }

    /// Starts host and proxy, and waits until every connection between them is up.
    #[track_caller]
    pub fn start(&self) -> House {
        self.start_with(&[])
    }

    /// The same with more on the command line of the proxy.
    #[track_caller]
    pub fn start_with(&self, more: &[&str]) -> House {
        let host = Host::listen(self.host_framing);
        let command = Command::new(BINARY);
        let proxy = Proxy::start_with(command, &self.config(host.address()), more);
        let mut at_host: Vec<_> = (0..self.connections).map(|_| host.accept()).collect();
        proxy.wait_for_metric(SOCKETS, self.connections as f64);
        let standby = at_host.split_off(1);
        let at_host = at_host.remove(0);
        House { proxy, host, at_host, standby, link_framing: self.link_framing }
    }
}

/// Connections to the host that are up.
pub const SOCKETS: &str = "tollgate_upstream_sockets{link=\"visa\",upstream=\"host\"}";

/// A proxy before its host.
pub struct House {
    pub proxy: Proxy,
    pub host: Host,
    /// The connection that was accepted first.
    pub at_host: Peer,
    pub standby: Vec<Peer>,
    link_framing: Framing,
}

impl House {
    /// A new session.
    #[track_caller]
    pub fn terminal(&self) -> Peer {
        self.proxy.connect("visa", self.link_framing)
    }
}

/// A limit with `burst` tokens per key, and no more of them as long as a test runs.
pub fn limit(name: &str, per: &str, burst: u32) -> String {
    limit_in("enforce", name, per, burst)
}

/// The same in any mode.
pub fn limit_in(mode: &str, name: &str, per: &str, burst: u32) -> String {
    let per = if per.is_empty() { String::new() } else { format!("\"{per}\"") };
    format!(
        r#"
        [[limit]]
        name = "{name}"
        per = [{per}]
        rate = 0.001
        burst = {burst}
        mode = "{mode}"
        "#
    )
}

/// A key of the limit above it: `which` are its lines of TOML.
pub fn key(which: &str, burst: u32) -> String {
    format!("[[limit.key]]\n{which}\nrate = 0.001\nburst = {burst}\n")
}

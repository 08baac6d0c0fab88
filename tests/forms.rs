//! What becomes of messages that are not as they should be, and of forms that few links have, told
//! by the real binary: card numbers read one place off, types that the standard does not give, frames
//! in parts, rejects.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    unreachable_pub,
    reason = "a test states its expectations"
)]

#[path = "support/encoder.rs"]
#[allow(dead_code, reason = "it makes up values as well, and these are given")]
mod encoder;
mod support;

#[path = "forms/cards.rs"]
mod cards;
#[path = "forms/malformed.rs"]
mod malformed;
#[path = "forms/parts.rs"]
mod parts;
#[path = "forms/rejects.rs"]
mod rejects;
#[path = "forms/types.rs"]
mod types;

use encoder::Table;
use support::config;
use support::fixtures;
use support::host::Host;
use support::peer::{Framing, Peer};
use support::proxy::Proxy;

const CARD: &str = "4111111111111111";

/// What a link is to be.
struct Form {
    dialect: &'static str,
    framing: Framing,
    host_framing: Framing,
    /// In `[[link]]`.
    keys: String,
    /// Whole sections, such as limits.
    sections: String,
}

impl Default for Form {
    fn default() -> Self {
        Self {
            dialect: "iso87_ascii",
            framing: Framing::Be16,
            host_framing: Framing::Be16,
            keys: String::new(),
            sections: String::new(),
        }
    }
}

/// A link, `visa`, before a host, and a session.
struct Way {
    proxy: Proxy,
    terminal: Peer,
    at_host: Peer,
}

impl Form {
    #[track_caller]
    fn open(&self) -> Way {
        let host = Host::listen(self.host_framing);
        let link_keys = format!("deadline = \"50s\"\n{}", self.keys);
        let host_keys = format!("connections = 1\nframing = \"{}\"", self.host_framing.name());
        let link = config::link("visa", host.address(), &link_keys, &host_keys)
            .replace("\"iso87_ascii\"", &format!("\"{}\"", self.dialect))
            .replacen("\"be16\"", &format!("\"{}\"", self.framing.name()), 1);
        let proxy = Proxy::start(&format!("{}{link}{}", config::node("0s"), self.sections));
        let at_host = host.accept();
        proxy.wait_for_metric(r#"tollgate_upstream_up{link="visa",upstream="visa-host"}"#, 1.0);
        let terminal = proxy.connect("visa", self.framing);
        Way { proxy, terminal, at_host }
    }
}

impl Way {
    /// From the network to the host, as it is.
    #[track_caller]
    fn goes_to_host(&mut self, frame: &[u8]) {
        self.terminal.send(frame);
        assert!(self.at_host.receive() == frame, "a frame arrived changed");
    }
}

/// A preset's table, to write messages by.
fn table(preset: &str) -> Table {
    Table::read(&fixtures::preset(preset))
}

//! A proxy with several links, each before a host of its own.

use crate::support::config;
use crate::support::framing::Framing;
use crate::support::host::Host;
use crate::support::peer::Peer;
use crate::support::proxy::Proxy;

/// What a link is to be.
pub struct Wanted {
    pub framing: Framing,
    pub preset: &'static str,
}

/// A link, its host, and a session.
pub struct Way {
    pub name: String,
    pub framing: Framing,
    pub preset: &'static str,
    pub terminal: Peer,
    pub at_host: Peer,
}

pub struct Ways {
    pub proxy: Proxy,
    pub all: Vec<Way>,
}

impl Ways {
    /// Links of every framing, in one dialect.
    #[track_caller]
    pub fn of_every_framing(preset: &'static str, link_keys: &str) -> Self {
        let wanted = Framing::ALL.map(|framing| Wanted { framing, preset });
        Self::open(wanted.into(), link_keys)
    }

    #[track_caller]
    pub fn open(wanted: Vec<Wanted>, link_keys: &str) -> Self {
        let hosts: Vec<Host> = wanted.iter().map(|want| Host::listen(want.framing)).collect();
        let mut text = config::node("0s");
        for (number, (want, host)) in wanted.iter().zip(&hosts).enumerate() {
            let (framing, preset, host) = (want.framing.name(), want.preset, host.address());
            text.push_str(&format!(
                r#"
                [[link]]
                name = "link-{number}"
                listen = "127.0.0.1:0"
                dialect = "{preset}"
                framing = "{framing}"
                upstream = "host-{number}"
                deadline = "50s"
                frame_timeout = "60s"
                {link_keys}
                [[upstream]]
                name = "host-{number}"
                connect = "{host}"
                connections = 1
                "#
            ));
        }
        let proxy = Proxy::start(&text);
        let ways = wanted.into_iter().zip(&hosts).enumerate().map(|(number, (want, host))| {
            let at_host = host.accept();
            let name = format!("link-{number}");
            let labels = format!("link=\"{name}\",upstream=\"host-{number}\"");
            proxy.wait_for_metric(&format!("tollgate_upstream_up{{{labels}}}"), 1.0);
            let Wanted { framing, preset } = want;
            let terminal = proxy.connect(&name, framing);
            Way { name, framing, preset, terminal, at_host }
        });
        let all = ways.collect();
        Self { proxy, all }
    }
}

impl Way {
    /// The host gets exactly these frames next.
    #[track_caller]
    pub fn expect_at_host(&mut self, frames: &[Vec<u8>]) {
        for (number, frame) in frames.iter().enumerate() {
            let arrived = self.at_host.receive();
            let (preset, framing) = (self.preset, self.framing);
            assert!(arrived == *frame, "{preset} over {framing:?}: frame {number} arrived changed");
        }
    }

    pub fn counted(&self, proxy: &Proxy, metric: &str, label: &str) -> f64 {
        proxy.metric_sum(metric, &[&format!("link=\"{}\"", self.name), label])
    }
}

//! What the demo is played with: the host, the proxy, the network, and what happens to them when.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc;

use super::scene::Scene;
use crate::config::{Config, Faults};
use crate::metrics::{Published, PublishedLink};
use crate::peers::{
    Behaviour, Host, HostSettings, Latency, Network, NetworkError, NetworkSettings, Script, Tally,
};
use crate::server::{Exit, Server, StartError, Stop};
use crate::worker::LinkCounters;

/// Connections of the network.
pub(super) const CONNECTIONS: usize = 4;
/// The proxy is given so long to reach the host.
const START_WITHIN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The host on a good day.
fn good_day() -> Behaviour {
    let (least, tail) = (Duration::from_millis(8), Duration::from_millis(6));
    Behaviour {
        latency: Latency::Tailed { least, tail },
        declined_share: 0.05,
        ..Behaviour::PROMPT
    }
}

/// On a bad one: 4 of 10 answers come after the deadline, and soon enough after it to be seen.
fn bad_day() -> Behaviour {
    let late_by = Latency::Between(Duration::from_millis(500), Duration::from_millis(700));
    Behaviour { late_share: 0.4, late_by, ..good_day() }
}

/// Why the demo cannot be played.
#[derive(Debug, Error)]
pub(super) enum StageError {
    #[error("its own configuration is wrong: {0}")]
    Config(#[from] Faults),
    #[error("its own configuration has no link, or no admin address")]
    Bare,
    #[error("the proxy cannot start: {0}")]
    Proxy(#[from] StartError),
    #[error("{what} cannot start: {source}")]
    Peer { what: &'static str, source: io::Error },
    #[error("the simulated network cannot start: {0}")]
    Network(#[from] NetworkError),
    #[error("the proxy did not reach the simulated host in time")]
    NotReady,
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
}

/// What happens along the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// The host becomes slow.
    Slow,
    /// It is itself again.
    Recover,
    /// One of its connections breaks.
    Cut,
}

impl Act {
    /// When each of them happens.
    pub(super) fn in_order(duration: Duration) -> impl Iterator<Item = (Duration, Self)> {
        [(0.35, Self::Slow), (0.5, Self::Recover), (0.7, Self::Cut)]
            .into_iter()
            .map(move |(share, act)| (duration.mul_f64(share), act))
    }
}

/// Everything at work.
pub(super) struct Stage {
    /// Where the proxy listens.
    pub(super) proxy: SocketAddr,
    /// Where its metrics are.
    pub(super) admin: SocketAddr,
    /// What the network sends.
    pub(super) scenes: Vec<Scene>,
    /// The proxy's deadline.
    pub(super) deadline: Duration,
    counters: Arc<LinkCounters>,
    // In the order in which they are to be dropped: nobody is left to whom nobody answers.
    network: Network,
    running: Running,
    host: Host,
}

/// The proxy on its own thread. Dropping it stops it.
struct Running {
    stop: mpsc::Sender<Stop>,
    thread: Option<JoinHandle<Result<Exit, StartError>>>,
}

/// What is known after the end.
pub(super) struct Curtain {
    pub(super) scenes: Vec<Scene>,
    pub(super) deadline: Duration,
    pub(super) tally: Tally,
    pub(super) counters: Arc<LinkCounters>,
    /// How the proxy ended; `None` when it could not even start to.
    pub(super) exit: Option<Exit>,
}

impl Stage {
    /// Starts the host, the proxy before it and the network before that.
    pub(super) fn set(mut config: Config, duration: Duration) -> Result<Self, StageError> {
        let scenes = Scene::all(&config.limits);
        let link = config.links.first_mut().ok_or(StageError::Bare)?;
        let (framing, dialect) = (link.session.framing, Arc::clone(&link.dialect));
        let deadline = link.exchange.deadline;
        let host = HostSettings::loopback(framing, Arc::clone(&dialect));
        let host = HostSettings { script: Script::Issuer(good_day()), ..host };
        let host = Host::start(host)
            .map_err(|source| StageError::Peer { what: "the simulated host", source })?;
        link.upstream.connect = vec![host.address().to_string()];
        link.listener.listen = vec![ANY_PORT];
        let connections = link.upstream.connections as u64;
        config.admin = Some(ANY_PORT);

        let server = Server::bind(config)?;
        let proxy = server.addresses(0).first().copied().ok_or(StageError::Bare)?;
        let admin = server.admin_address().ok_or(StageError::Bare)?;
        let published = server.published();
        let counters = link_of(&published).map(|link| Arc::clone(&link.counters));
        let counters = counters.ok_or(StageError::Bare)?;
        let running = Running::start(server)?;
        wait_for(|| counters.connections_up.get() >= connections)?;

        let flows = scenes.iter().map(|scene| scene.flow.clone()).collect();
        let network = Network::start(NetworkSettings {
            connections: CONNECTIONS,
            duration,
            at_once: deadline / 2,
            seed: fastrand::u64(..),
            ..NetworkSettings::new(proxy, framing, dialect, flows)
        })?;
        Ok(Self { proxy, admin, scenes, deadline, counters, network, running, host })
    }

    /// Where the host listens.
    pub(super) const fn host_address(&self) -> SocketAddr {
        self.host.address()
    }

    /// What the proxy counts.
    pub(super) fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// What the network counts.
    pub(super) fn tally(&self) -> Tally {
        self.network.tally()
    }

    /// Makes it happen.
    pub(super) fn perform(&self, act: Act) {
        match act {
            Act::Slow => self.host.follow(Script::Issuer(bad_day())),
            Act::Recover => self.host.follow(Script::Issuer(good_day())),
            Act::Cut => self.host.cut(),
        }
    }

    /// Says what happens.
    pub(super) fn announcement(&self, act: Act) -> String {
        match act {
            Act::Slow => format!(
                "the host is slow: 4 of 10 answers take 500 to 700 ms more, the deadline is {} ms",
                self.deadline.as_millis()
            ),
            Act::Recover => "the host is itself again".to_owned(),
            Act::Cut => {
                "the active connection to the host is cut, the standby takes over".to_owned()
            }
        }
    }

    /// Lets the network finish, then ends the proxy in order.
    pub(super) fn end(self) -> Curtain {
        let Self { scenes, deadline, counters, network, running, host, .. } = self;
        let tally = network.finish();
        let exit = running.stop();
        drop(host);
        Curtain { scenes, deadline, tally, counters, exit }
    }
}

fn link_of(published: &Published) -> Option<&PublishedLink> {
    published.links.first()
}

impl Running {
    fn start(server: Server) -> Result<Self, StageError> {
        let (stop, stops) = mpsc::channel(1);
        let thread = std::thread::Builder::new().name("tollgate".to_owned());
        let thread = thread
            .spawn(move || server.run(stops))
            .map_err(|source| StageError::Peer { what: "the proxy's thread", source })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    fn stop(mut self) -> Option<Exit> {
        self.end()
    }

    fn end(&mut self) -> Option<Exit> {
        // A proxy that ended by itself has said how.
        let _ = self.stop.try_send(Stop { by: "the demo" });
        self.thread.take()?.join().ok()?.ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn wait_for(ready: impl Fn() -> bool) -> Result<(), StageError> {
    let mut left = START_WITHIN;
    while !ready() {
        left = left.checked_sub(LOOK).ok_or(StageError::NotReady)?;
        std::thread::sleep(LOOK);
    }
    Ok(())
}

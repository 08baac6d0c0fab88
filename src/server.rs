//! The life of the process: bind, assemble, serve, and the ordered end.
//!
//! Everything is bound before anything is served, so a port that is taken shows at once. The
//! control thread accepts and hands each socket to its link's worker, serves the admin interface
//! and listens for signals; it never touches a message.

mod accept;
mod leasing;
mod limits;
mod shutdown;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

pub use limits::harden;
pub use shutdown::{Exit, Stop};

use crate::admin::{self, Readiness};
use crate::clock::Clock;
use crate::config::{Config, HostDown, Link};
use crate::exchange::Exchange;
use crate::gate::Gate;
use crate::limits::Policy;
use crate::limits::rule::RuleFault;
use crate::metrics::{Published, PublishedLink};
use crate::net::listener::{Admittance, Bound};
use crate::worker::{Command, LinkCounters, LinkSettings, LinkStart, Throttle, Worker};
use accept::Doorkeeper;
use leasing::Leases;

/// Sockets on their way to a worker; a full queue makes the control thread wait, not the worker.
const COMMANDS_MAX: usize = 1_024;

/// Why the process cannot start.
#[derive(Debug, Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("{what}: cannot listen on {address}: {source}")]
    Bind {
        /// Whose address.
        what: String,
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The limits contradict each other.
    #[error("limits: {0}")]
    Limits(#[from] RuleFault),
    /// A thread or a runtime cannot be had.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// A process whose addresses are taken and that serves nobody yet.
#[derive(Debug)]
pub struct Server {
    config: Config,
    clock: Clock,
    policy: Arc<Policy>,
    workers: usize,
    doors: Vec<BoundLink>,
    admin: Option<Bound>,
    published: Arc<Published>,
    leases: Option<Leases>,
}

/// A link whose addresses are taken.
#[derive(Debug)]
struct BoundLink {
    bound: Vec<(Bound, SocketAddr)>,
    counters: Arc<LinkCounters>,
}

impl Server {
    /// Takes every address of the configuration and prepares everything else.
    ///
    /// # Errors
    /// When an address cannot be had.
    pub fn bind(config: Config) -> Result<Self, StartError> {
        let clock = Clock::start();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = if config.node.workers == 0 { cores } else { config.node.workers };
        let workers = workers.min(config.links.len()).max(1);
        let (policy, leases) = leasing::policy(&config, workers, clock)?;
        let mut doors = Vec::new();
        for link in &config.links {
            let what = format!("link {}", link.name);
            let bound = link.listener.listen.iter().map(|address| take(&what, *address));
            let bound = bound.collect::<Result<_, _>>()?;
            doors.push(BoundLink { bound, counters: Arc::default() });
        }
        let admin = config.admin.map(|address| take("admin", address)).transpose()?;
        let published_link = |(link, door): (&Link, &BoundLink)| PublishedLink {
            name: link.name.clone(),
            upstream: link.upstream.name.clone(),
            codes: link.gate.codes,
            counters: Arc::clone(&door.counters),
        };
        let published = Arc::new(Published {
            node: config.node.name.clone(),
            links: config.links.iter().zip(&doors).map(published_link).collect(),
            policy: Arc::clone(&policy),
            clock,
            leasing: leases.as_ref().map(Leases::published),
            lost_lines: OnceLock::new(),
        });
        let admin = admin.map(|(bound, _)| bound);
        Ok(Self { config, clock, policy, workers, doors, admin, published, leases })
    }

    /// The addresses of a link, with the ports that port 0 became.
    pub fn addresses(&self, link: usize) -> Vec<SocketAddr> {
        let door = self.doors.get(link);
        door.map(|door| door.bound.iter().map(|(_, address)| *address).collect())
            .unwrap_or_default()
    }

    /// The address of the admin interface.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(|bound| bound.address().ok())
    }

    /// For tests: `after` it began, the lease sync does nothing for so long.
    pub fn park_sync(&mut self, after: Duration, during: Duration) {
        if let Some(leases) = &mut self.leases {
            leases.park(after, during);
        }
    }

    /// What the process publishes of itself.
    pub fn published(&self) -> Arc<Published> {
        Arc::clone(&self.published)
    }

    /// Serves until it is told to stop, and ends in order.
    ///
    /// # Errors
    /// When a thread or a runtime cannot be had.
    pub fn run(self, stop: mpsc::Receiver<Stop>) -> Result<Exit, StartError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let exit = runtime.block_on(self.serve(stop));
        // Whoever still talks to the admin interface does not keep the process.
        runtime.shutdown_background();
        exit
    }

    async fn serve(self, stop: mpsc::Receiver<Stop>) -> Result<Exit, StartError> {
        let readiness = Readiness::default();
        let (stop_accepting, admin_ended) = (CancellationToken::new(), CancellationToken::new());
        if let Some(bound) = self.admin {
            let address = bound.address()?;
            info!(%address, "admin listening");
            let listener = bound.listen()?.into_inner();
            let ended = admin_ended.clone();
            tokio::spawn(admin::serve(listener, self.published, readiness.clone(), ended));
        }
        let mut fleet = Fleet::new(self.workers, self.clock, &self.policy);
        let sync = match self.leases {
            Some(leases) => {
                fleet.sync_bell = Some(leases.bell());
                Some(leases.start(self.clock, &self.policy).await?)
            }
            None => None,
        };
        let mut doorkeepers = Vec::new();
        for (link, door) in self.config.links.iter().zip(self.doors) {
            let (host_up, sees_host) = watch::channel(false);
            let counters = Arc::clone(&door.counters);
            let (worker, place) = fleet.assign(link, counters, host_up);
            let admittance = Admittance::new(&link.listener);
            for (bound, address) in door.bound {
                info!(link = %link.name, %address, "listening");
                doorkeepers.push(Doorkeeper {
                    link: link.name.clone(),
                    place,
                    worker: worker.clone(),
                    address,
                    admittance: admittance.clone(),
                    counters: Arc::clone(&door.counters),
                    host_up: sees_host.clone(),
                    close_when_down: link.host_down == HostDown::Close,
                    listener: Some(bound.listen()?),
                    clock: self.clock,
                    refusals: Throttle::default(),
                    failures: Throttle::default(),
                });
            }
        }
        let workers = fleet.start()?;
        for doorkeeper in doorkeepers {
            tokio::spawn(doorkeeper.keep(stop_accepting.clone()));
        }
        readiness.set(true);
        info!(node = %self.config.node.name, workers = self.workers, "ready");
        let deadline = self.config.links.iter().map(|link| link.exchange.deadline).max();
        let ending = shutdown::Ending {
            readiness,
            stop_accepting,
            grace: self.config.node.grace,
            deadline: deadline.unwrap_or_default(),
            workers,
        };
        let exit = ending.run(stop).await;
        if let Some(sync) = sync {
            sync.end().await;
        }
        admin_ended.cancel();
        Ok(exit)
    }
}

fn take(what: &str, address: SocketAddr) -> Result<(Bound, SocketAddr), StartError> {
    let failed = |source| StartError::Bind { what: what.to_owned(), address, source };
    let bound = Bound::take(address).map_err(failed)?;
    let address = bound.address().map_err(failed)?;
    Ok((bound, address))
}

/// A worker that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) counters: Vec<Arc<LinkCounters>>,
    pub(crate) thread: JoinHandle<()>,
}

/// The workers before they run: links are dealt out to them in turn.
struct Fleet {
    crews: Vec<Crew>,
    clock: Clock,
    policy: Arc<Policy>,
    /// Rung when a key cannot wait for the sync's next tick.
    sync_bell: Option<Arc<Notify>>,
    dealt: usize,
}

struct Crew {
    links: Vec<LinkStart>,
    counters: Vec<Arc<LinkCounters>>,
    sender: mpsc::Sender<Command>,
    receiver: mpsc::Receiver<Command>,
}

impl Fleet {
    fn new(workers: usize, clock: Clock, policy: &Arc<Policy>) -> Self {
        let crew = |_| {
            let (sender, receiver) = mpsc::channel(COMMANDS_MAX);
            Crew { links: Vec::new(), counters: Vec::new(), sender, receiver }
        };
        let crews = (0..workers).map(crew).collect();
        Self { crews, clock, policy: Arc::clone(policy), sync_bell: None, dealt: 0 }
    }

    /// Gives a link to the next worker; returns how to reach it and the link's place there.
    fn assign(
        &mut self,
        link: &Link,
        counters: Arc<LinkCounters>,
        host_up: watch::Sender<bool>,
    ) -> (mpsc::Sender<Command>, usize) {
        let gate = Gate::new(link.id, link.gate.clone(), Arc::clone(&self.policy));
        let dialect = Arc::clone(&link.dialect);
        let exchange = Exchange::new(&link.exchange, dialect, link.header, gate, fastrand::u64(..));
        let settings = LinkSettings {
            name: link.name.clone(),
            session: link.session.clone(),
            upstream: link.upstream.clone(),
            close_when_down: link.host_down == HostDown::Close,
        };
        let at = self.dealt % self.crews.len().max(1);
        self.dealt += 1;
        // There is at least one crew, and `at` is below their number.
        #[expect(clippy::indexing_slicing, reason = "at is a remainder of the number of crews")]
        let crew = &mut self.crews[at];
        let place = crew.links.len();
        crew.counters.push(Arc::clone(&counters));
        crew.links.push(LinkStart { settings, exchange, counters, host_up });
        (crew.sender.clone(), place)
    }

    fn start(self) -> io::Result<Vec<Running>> {
        let mut running = Vec::new();
        for (number, crew) in self.crews.into_iter().enumerate() {
            let worker = Worker {
                number,
                clock: self.clock,
                policy: Arc::clone(&self.policy),
                sync_bell: self.sync_bell.clone(),
                links: crew.links,
                commands: crew.receiver,
            };
            let thread = std::thread::Builder::new().name(format!("worker-{number}"));
            let thread = thread.spawn(move || {
                if let Err(error) = worker.run() {
                    error!(worker = number, %error, "worker cannot run");
                }
            })?;
            running.push(Running { commands: crew.sender, counters: crew.counters, thread });
        }
        Ok(running)
    }
}

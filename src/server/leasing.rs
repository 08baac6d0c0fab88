//! The policy that a configuration asks for, and the lease sync beside it.

use std::future::{Future, pending, ready};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::StartError;
use crate::clock::Clock;
use crate::config::Config;
use crate::limits::Policy;
use crate::metrics::Leasing;
use crate::quota::embedded::Embedded;
use crate::quota::protocol::{Call, Low, NodeId, Reply};
use crate::quota::redis::Redis;
use crate::quota::sync::Sync;
use crate::quota::task::{Handle, Store};

/// The store has so long to answer before the listeners open without it.
const PATIENCE: Duration = Duration::from_secs(1);
/// The sync is looked at so often while somebody waits for it.
const LOOK: Duration = Duration::from_millis(1);
/// And has so long to end.
const FAREWELL: Duration = Duration::from_millis(500);

/// A sync that does not run yet.
#[derive(Debug)]
pub(super) struct Leases {
    handle: Handle,
    store: Kept,
    lease_ttl: Duration,
    parked: Option<(Duration, Duration)>,
}

/// One that does.
#[derive(Debug)]
pub(super) struct Syncing {
    handle: Handle,
    thread: JoinHandle<()>,
}

/// The policy of a configuration, and the sync that it needs, if it leases its tokens.
pub(super) fn policy(
    config: &Config,
    workers: usize,
    clock: Clock,
) -> Result<(Arc<Policy>, Option<Leases>), StartError> {
    let (links, seed, now) = (config.link_names(), fastrand::u64(..), clock.now());
    let quota = &config.quota;
    if !quota.leases {
        return Ok((Arc::new(Policy::new(&config.limits, &links, workers, seed, now)?), None));
    }
    let policy = Policy::leased(&config.limits, &links, quota.terms, workers, seed, now)?;
    let policy = Arc::new(policy);
    let node = NodeId(fastrand::u64(..));
    let sync = Sync::new(quota.sync.clone(), node, fastrand::u64(..), Arc::clone(&policy), now);
    let handle = Handle::new(sync);
    let store = match &quota.redis {
        None => {
            let shards = (0..quota.sync.shards).map(|_| Embedded::new()).collect();
            Kept::Here(InProcess { shards, clock })
        }
        Some(settings) => {
            let where_to = settings.deployment.to_string();
            Kept::There(Redis::new(settings.clone(), &quota.sync, node, clock), where_to)
        }
    };
    let lease_ttl = quota.sync.lease_ttl;
    Ok((policy, Some(Leases { handle, store, lease_ttl, parked: None })))
}

impl Leases {
    pub(super) fn published(&self) -> Leasing {
        let (store, redis) = match &self.store {
            Kept::Here(_) => ("embedded".to_owned(), None),
            Kept::There(redis, name) => (name.clone(), Some(redis.health())),
        };
        Leasing { sync: self.handle.clone(), lease_ttl: self.lease_ttl, store, redis }
    }

    pub(super) fn bell(&self) -> Arc<Notify> {
        self.handle.bell()
    }

    pub(super) const fn park(&mut self, after: Duration, during: Duration) {
        self.parked = Some((after, during));
    }

    /// Starts the sync and waits for the first answer of the store, so that the node knows what the
    /// others have made low before it admits anything; but not for long.
    pub(super) async fn start(
        self,
        clock: Clock,
        policy: &Arc<Policy>,
    ) -> Result<Syncing, StartError> {
        let Self { handle, store, parked, .. } = self;
        let of_sync = Arc::clone(policy);
        let (thread, store) = match store {
            Kept::Here(store) => {
                (handle.run(store, clock, of_sync, parked)?, "embedded".to_owned())
            }
            Kept::There(store, name) => (handle.run(store, clock, of_sync, parked)?, name),
        };
        let answered = async {
            while !handle.with(Sync::has_answer) {
                sleep(LOOK).await;
            }
        };
        let answers = timeout(PATIENCE, answered).await.is_ok();
        // Which shards do not is the sync's to say.
        let leases = policy.leases();
        if answers || leases.shards_lost(clock.now()) < leases.shards() {
            info!(%store, "leasing tokens");
        } else {
            warn!(
                %store,
                "the store has not answered; opening without leases, every bucket is taken for full"
            );
        }
        Ok(Syncing { handle, thread })
    }
}

impl Syncing {
    /// Lets it report what was spent last, and leave.
    pub(super) async fn end(self) {
        self.handle.stop();
        let ended = async {
            while !self.thread.is_finished() {
                sleep(LOOK).await;
            }
        };
        if timeout(FAREWELL, ended).await.is_err() {
            warn!("the lease sync did not end in time; what was spent last is not reported");
        }
    }
}

/// Where tokens are kept.
#[derive(Debug)]
enum Kept {
    /// In this process.
    Here(InProcess),
    /// On a Redis, and what it is called in the log.
    There(Redis, String),
}

/// The store of this process. It has no other node, so nothing is ever pushed.
#[derive(Debug)]
struct InProcess {
    shards: Box<[Embedded]>,
    clock: Clock,
}

impl Store for InProcess {
    fn call(&self, shard: u16, call: Call) -> impl Future<Output = Option<Reply>> + 'static {
        let now_us = self.clock.now().nanos() / 1_000;
        ready(self.shards.get(usize::from(shard)).map(|store| store.call(&call, now_us)))
    }

    fn hear(&mut self, _lows: &mut Vec<Low>) -> impl Future<Output = ()> {
        pending()
    }
}

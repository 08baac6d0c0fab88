//! The thread of the lease sync: it waits for ticks, answers and pushes, and hands them to [`Sync`].
//!
//! It has a thread of its own, so that neither a scrape nor a storm of connections delays it, and it
//! delays no worker: a worker that finds a key urgent rings a bell and goes on. A bug that ends its
//! work is logged and counted, and it begins again with what it knew; meanwhile every bucket goes on
//! filling at its rate, open and not shut.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{Notify, mpsc};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::protocol::{Call, Low, Reply};
use super::sync::{Outgoing, Sync};
use crate::clock::{Clock, Moment};
use crate::limits::{OnLoss, Policy};

/// A store that can be called.
pub trait Store: Send + 'static {
    /// Begins to connect, on the event loop that it will be called on.
    fn open(&mut self) {}

    /// Sends a call to a shard and waits for its answer. `None` is a call that has failed, for whatever
    /// reason.
    fn call(&self, shard: u16, call: Call) -> impl Future<Output = Option<Reply>> + 'static;

    /// Waits for keys that other nodes have made low, and adds them. It may be given up while it
    /// waits.
    fn hear(&mut self, lows: &mut Vec<Low>) -> impl Future<Output = ()>;
}

/// The sync as other threads see it.
#[derive(Clone, Debug)]
pub struct Handle {
    sync: Arc<Mutex<Sync>>,
    bell: Arc<Notify>,
    stop: CancellationToken,
    restarts: Arc<AtomicU64>,
}

/// What the thread needs.
struct Keeper {
    handle: Handle,
    clock: Clock,
    policy: Arc<Policy>,
    /// For tests: so long after its start it does nothing, for so long.
    parked: Option<(Duration, Duration)>,
    began: Moment,
    /// How many shards of the store were said to be lost last; `None` before anything was said.
    said: Option<u16>,
}

/// After a bug the work begins again so much later.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// At the start the shards of a store answer one after the other: nothing is said of the last ones for
/// so long.
const UNSAID: Duration = Duration::from_secs(1);

impl Handle {
    /// A sync that nobody runs yet.
    pub fn new(sync: Sync) -> Self {
        Self {
            sync: Arc::new(Mutex::new(sync)),
            bell: Arc::default(),
            stop: CancellationToken::new(),
            restarts: Arc::default(),
        }
    }

    /// Runs the sync on a thread of its own until it is stopped.
    ///
    /// # Errors
    /// When the thread cannot be had.
    pub fn run(
        &self,
        store: impl Store,
        clock: Clock,
        policy: Arc<Policy>,
        parked: Option<(Duration, Duration)>,
    ) -> std::io::Result<JoinHandle<()>> {
        let began = clock.now();
        let keeper = Keeper { handle: self.clone(), clock, policy, parked, began, said: None };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("lease-sync".to_owned());
        thread.spawn(move || keep(keeper, store, &runtime))
    }

    /// What a worker rings when a key cannot wait for the tick.
    pub fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.bell)
    }

    /// Ends the sync with its last reports.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Looks at what the sync knows. It does not go on meanwhile.
    pub fn with<T>(&self, look: impl FnOnce(&Sync) -> T) -> T {
        look(&lock(&self.sync))
    }

    /// How often a bug has ended its work, and it began again.
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Sync> {
        lock(&self.sync)
    }
}

/// What one event leaves behind is whole for every key but the one it was at, which is reported anew.
fn lock(sync: &Mutex<Sync>) -> MutexGuard<'_, Sync> {
    sync.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(mut keeper: Keeper, mut store: impl Store, runtime: &Runtime) {
    runtime.block_on(async { store.open() });
    while !keeper.handle.stop.is_cancelled() {
        let work = std::panic::AssertUnwindSafe(|| {
            LocalSet::new().block_on(runtime, keeper.work(&mut store));
        });
        if std::panic::catch_unwind(work).is_err() {
            keeper.handle.restarts.fetch_add(1, Relaxed);
            error!("a bug ended the lease sync, starting it again; buckets fill by themselves");
            keeper.handle.lock().recover();
            runtime.block_on(sleep(AGAIN_AFTER));
        }
    }
}

impl Keeper {
    /// Syncs until it is told to stop.
    async fn work(&mut self, store: &mut impl Store) {
        let (answered, mut answers) = mpsc::unbounded_channel::<(u64, Option<Reply>)>();
        let (mut out, mut lows) = (Vec::new(), Vec::new());
        let began = self.clock.now();
        loop {
            let due = self.handle.lock().due().since(self.clock.now());
            tokio::select! {
                biased;
                () = self.handle.stop.cancelled() => break,
                Some((number, reply)) = answers.recv() => self.take(number, reply.as_ref()),
                () = store.hear(&mut lows) => {
                    self.handle.lock().hear(self.clock.now(), &lows);
                    lows.clear();
                }
                () = self.handle.bell.notified() => self.handle.lock().urge(self.clock.now()),
                () = sleep(due) => {}
            }
            if let Some((_, during)) =
                self.parked.take_if(|(after, _)| self.clock.now().since(began) >= *after)
            {
                warn!(?during, "lease sync parked, as asked for");
                std::thread::sleep(during);
            }
            // Before the turn gives anything up: after a pause many have come at once.
            while let Ok((number, reply)) = answers.try_recv() {
                self.take(number, reply.as_ref());
            }
            if self.policy.wants_sync() {
                self.handle.lock().urge(self.clock.now());
            }
            self.handle.lock().turn(self.clock.now(), &mut out);
            for Outgoing { number, shard, call } in out.drain(..) {
                let (reply, answered) = (store.call(shard, call), answered.clone());
                spawn_local(async move {
                    // Who waited for it may have begun again.
                    let _ = answered.send((number, reply.await));
                });
            }
            self.say();
        }
        self.leave(store).await;
    }

    fn take(&self, number: u64, reply: Option<&Reply>) {
        let (mut sync, now) = (self.handle.lock(), self.clock.now());
        match reply {
            Some(reply) => sync.answer(now, number, reply),
            None => sync.fail(number),
        }
    }

    /// Says once per change which leases are valid, and what it means for traffic.
    fn say(&mut self) {
        let (leases, now) = (self.policy.leases(), self.clock.now());
        let (lost, shards) = (leases.shards_lost(now), leases.shards());
        if !is_news(self.said, (lost, shards), now.since(self.began)) {
            return;
        }
        self.said = Some(lost);
        let on_loss = leases.terms().map(|terms| terms.on_loss).unwrap_or_default();
        if (1..shards).contains(&lost) {
            return say_of_some(lost, shards, on_loss);
        }
        match (lost == 0, on_loss) {
            (true, _) => info!(nodes = leases.nodes(), "leases valid: the store answers"),
            (false, OnLoss::Local) => warn!(
                "leases ended: the store does not answer; each node goes on by its share of every rate, look at the store"
            ),
            (false, OnLoss::Open) => warn!(
                "leases ended: the store does not answer; limits admit everything, as on_loss is open; look at the store"
            ),
            (false, OnLoss::Closed) => error!(
                "leases ended: the store does not answer; limits refuse everything, as on_loss is closed; look at the store"
            ),
        }
    }

    /// Says goodbye to the store, and waits for it no longer than for any call.
    async fn leave(&self, store: &impl Store) {
        let mut out = Vec::new();
        self.handle.lock().leave(self.clock.now(), &mut out);
        let patience = self.handle.with(|sync| sync.settings().reply_timeout);
        let mut untold: BTreeMap<u16, VecDeque<Call>> = BTreeMap::new();
        for Outgoing { shard, call, .. } in out {
            untold.entry(shard).or_default().push_back(call);
        }
        let mut is_all_told = true;
        // One call of each shard at a time, and no more of one that does not answer.
        while !untold.is_empty() {
            let sent = untold.iter_mut().filter_map(|(shard, calls)| {
                let answer = timeout(patience, store.call(*shard, calls.pop_front()?));
                Some((*shard, spawn_local(answer)))
            });
            let sent: Vec<_> = sent.collect();
            for (shard, answer) in sent {
                if !matches!(answer.await, Ok(Ok(Some(_)))) {
                    is_all_told = false;
                    untold.remove(&shard);
                }
            }
            untold.retain(|_, calls| !calls.is_empty());
        }
        if is_all_told {
            info!("lease sync ended: all that was spent is reported");
        } else {
            warn!("the store did not take the last report; what was spent since is not counted");
        }
    }
}

/// Whether so many lost shards have to be spoken of, when `said` was the last that was said.
fn is_news(said: Option<u16>, (lost, shards): (u16, u16), since_start: Duration) -> bool {
    match said {
        Some(said) => said != lost,
        // Who starts the sync says it when nothing answers at all.
        None => lost == 0 || (lost < shards && since_start >= UNSAID),
    }
}

/// Some shards of the store are lost, and not all.
fn say_of_some(lost: u16, shards: u16, on_loss: OnLoss) {
    match on_loss {
        OnLoss::Local => warn!(
            lost,
            shards,
            "some shards of the store do not answer; each node goes on by its share of every rate for their keys, all others are leased; look at the store"
        ),
        OnLoss::Open => warn!(
            lost,
            shards,
            "some shards of the store do not answer; limits admit everything of their keys, as on_loss is open; look at the store"
        ),
        OnLoss::Closed => error!(
            lost,
            shards,
            "some shards of the store do not answer; limits refuse everything of their keys, as on_loss is closed; look at the store"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_shards_are_spoken_of_once_per_change_and_at_the_start_not_before_they_had_their_time() {
        let early = Duration::from_millis(10);
        assert_eq!([8, 3, 0].map(|lost| is_news(None, (lost, 8), early)), [false, false, true]);
        assert_eq!([8, 3, 0].map(|lost| is_news(None, (lost, 8), UNSAID)), [false, true, true]);
        assert_eq!([8, 3, 0].map(|lost| is_news(Some(3), (lost, 8), early)), [true, false, true]);
        // A store of one shard that has never answered is the start's to speak of.
        assert!(!is_news(None, (1, 1), UNSAID) && is_news(Some(0), (1, 1), early));
    }
}

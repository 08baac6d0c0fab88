//! The store on Redis: one server, one that Sentinels name, or a Cluster.
//!
//! Each shard has a `line` of its own to its master, and a `subscription` to what other nodes
//! publish; both look for the master again when it is gone. [`script`] says what one call is to a Redis
//! and reads what it answers; what the answer means is [`protocol`](super::protocol)'s. `fault` is
//! the table of all that may go wrong, `health` what is counted and said of it.
//!
//! It is not the client's own cluster client that finds a slot's master, for that one says a call again
//! when its connection broke, and holds it for longer than a lease lasts. Here a redirection moves the
//! line, and the sync reports anew: nothing is ever sent twice.

mod backoff;
mod connect;
mod fault;
mod health;
mod line;
mod open;
pub mod script;
mod settings;
mod subscription;
mod survey;
mod trial;
mod url;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::error;

use self::connect::Connector;
pub use self::fault::Fault;
pub use self::health::{CALL_BOUNDS, Health, Shard};
use self::line::Line;
use self::script::Script;
pub use self::settings::{Deployment, Login, Password, Settings, Tls};
use self::subscription::Subscription;
use self::survey::Surveyor;
pub use self::survey::{Survey, Warning};
pub use self::trial::{Tried, try_out};
pub use self::url::{Address, Said, UrlFault, deployment, parse};
use super::protocol::{Call, Low, NodeId, Reply};
use super::sync;
use super::task::Store;
use crate::clock::Clock;

/// Pushes that wait for the sync.
const NEWS_MAX: usize = 256;
/// After a bug, a connection is kept again so much later.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// A store on Redis, as one node has it.
#[derive(Debug)]
pub struct Redis {
    lines: Vec<Arc<Line>>,
    /// Until they are kept.
    subscriptions: Vec<Subscription>,
    news: mpsc::Receiver<Vec<Low>>,
    health: Arc<Health>,
}

impl Redis {
    /// A store of so many shards that nobody has connected to yet.
    pub fn new(settings: Settings, sync: &sync::Settings, node: NodeId, clock: Clock) -> Self {
        let is_cluster = matches!(settings.deployment, Deployment::Cluster { .. });
        let script = Arc::new(Script::new(&settings.namespace, is_cluster));
        let surveyor = Arc::new(Surveyor::new(settings.deployment.clone()));
        let connector = Arc::new(Connector::new(settings));
        let shards = sync.shards;
        let health = Arc::new(Health::new(shards));
        let (news, heard) = mpsc::channel(NEWS_MAX);
        let line = |shard| {
            let means = (Arc::clone(&connector), Arc::clone(&script));
            let seen = (Arc::clone(&health), Arc::clone(&surveyor));
            Arc::new(Line::new(shard, means, seen, clock, sync.reply_timeout))
        };
        let lines: Vec<_> = (0..shards).map(line).collect();
        let subscription = |(shard, line): (u16, &Arc<Line>)| Subscription {
            shard,
            node,
            connector: Arc::clone(&connector),
            script: Arc::clone(&script),
            health: Arc::clone(&health),
            place: line.place(),
            news: news.clone(),
        };
        let heard_of = lines.iter().take(if sync.push { lines.len() } else { 0 });
        let subscriptions = (0..).zip(heard_of).map(subscription).collect();
        Self { lines, subscriptions, news: heard, health }
    }

    /// What is counted of it.
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.health)
    }
}

/// Has something go on for good: when a bug ends it, it begins again.
fn keep_up<T>(begin: impl Fn() -> T + Send + 'static)
where
    T: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(async move {
        while let Err(ended) = tokio::spawn(begin()).await {
            if ended.is_cancelled() {
                return;
            }
            error!("a bug ended what keeps a connection to the store, starting it again");
            sleep(AGAIN_AFTER).await;
        }
    });
}

impl Store for Redis {
    fn open(&mut self) {
        for line in &self.lines {
            let line = Arc::clone(line);
            keep_up(move || Arc::clone(&line).keep());
        }
        for subscription in self.subscriptions.drain(..) {
            keep_up(move || subscription.clone().keep());
        }
    }

    fn call(&self, shard: u16, call: Call) -> impl Future<Output = Option<Reply>> + 'static {
        let line = self.lines.get(usize::from(shard)).map(Arc::clone);
        async move { line?.call(call).await }
    }

    async fn hear(&mut self, lows: &mut Vec<Low>) {
        // It holds senders of its own only before it is opened.
        match self.news.recv().await {
            Some(news) => lows.extend(news),
            None => std::future::pending().await,
        }
    }
}

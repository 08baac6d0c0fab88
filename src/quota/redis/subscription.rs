//! What other nodes publish of one shard: keys that they have made low.
//!
//! It is only ever sooner than the digest of the next answer, which tells the same. So nothing is
//! repeated and nothing is waited for; that a subscription is lost is counted, and it is made again.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{PushInfo, PushKind, RedisResult, Value};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::backoff::Backoff;
use super::connect::Connector;
use super::health::Health;
use super::script::Script;
use super::url::Address;
use crate::quota::protocol::{Low, NodeId};

/// A connection that only ever listens is asked so often whether it is still there.
const PING: Duration = Duration::from_secs(1);

/// Most pushes that wait to be read.
const PUSHES_MAX: usize = 1_024;

/// The subscription of one shard.
#[derive(Clone, Debug)]
pub(super) struct Subscription {
    pub(super) shard: u16,
    pub(super) node: NodeId,
    pub(super) connector: Arc<Connector>,
    pub(super) script: Arc<Script>,
    pub(super) health: Arc<Health>,
    /// Where the shard is.
    pub(super) place: watch::Receiver<Option<Address>>,
    /// To the sync. When it is full, what comes is dropped: the digest tells it.
    pub(super) news: mpsc::Sender<Vec<Low>>,
}

impl Subscription {
    /// Keeps subscribed, for as long as it is not dropped.
    pub(super) async fn keep(mut self) {
        let mut backoff = Backoff::default();
        loop {
            let Some(address) = self.place.borrow_and_update().clone() else {
                if self.place.changed().await.is_err() {
                    return;
                }
                continue;
            };
            if self.listen(&address).await.is_ok() {
                backoff = Backoff::default();
            }
            self.health.subscribed(self.shard, false);
            sleep(backoff.wait(fastrand::u64(..))).await;
        }
    }

    /// Hears one server until it is gone, or the shard is somewhere else. An error is a server that was
    /// not subscribed to at all.
    async fn listen(&mut self, address: &Address) -> RedisResult<()> {
        let (told, mut pushes) = mpsc::channel(PUSHES_MAX);
        let health = Arc::clone(&self.health);
        let told = move |push| {
            if told.try_send(push).is_err() {
                health.news_lost.count();
            }
        };
        let mut connection = self.connector.connect_to_hear(address, told).await?;
        let mut subscribe = redis::cmd(self.script.subscribe());
        subscribe.arg(self.script.channel(self.shard));
        let _: Value = subscribe.query_async(&mut connection).await?;
        self.health.subscribed(self.shard, true);
        loop {
            tokio::select! {
                push = timeout(PING, pushes.recv()) => match push {
                    Ok(Some(push)) => if !self.take(&push) { return Ok(()) },
                    Ok(None) => return Ok(()),
                    Err(_) => if !is_there(&mut connection).await { return Ok(()) },
                },
                moved = self.place.changed() => {
                    // Nobody keeps a line to the store any more, or it leads somewhere else.
                    if moved.is_err() || self.place.borrow().as_ref() != Some(address) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Takes what was pushed; false when nothing more will be.
    fn take(&self, push: &PushInfo) -> bool {
        match push.kind {
            PushKind::Message | PushKind::SMessage => {
                let payload = push.data.last();
                let Some(Value::BulkString(payload)) = payload else { return true };
                let Some((from, lows)) = self.script.read_news(payload) else { return true };
                let many = lows.len() as u64;
                if from != self.node && self.news.try_send(lows).is_err() {
                    self.health.news_lost.add(many);
                }
                true
            }
            // The slot has moved away, or the connection is gone.
            PushKind::SUnsubscribe | PushKind::Unsubscribe | PushKind::Disconnection => false,
            _ => true,
        }
    }
}

async fn is_there(connection: &mut MultiplexedConnection) -> bool {
    redis::cmd("PING").query_async::<Value>(connection).await.is_ok()
}

//! One shard's way to its master: a connection, the calls on it, and where to go when it breaks.
//!
//! There is one connection at a time, made by one attempt at a time. A call that fails is not said
//! again. Only the connection that carried a call may answer it: what an older one still has to say is of
//! a master that may have been followed by another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{RedisResult, Value};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::backoff::Backoff;
use super::connect::{Connector, STALL};
use super::fault::{Consequence, Fault, consequence};
use super::health::Health;
use super::open::Open;
use super::script::Script;
use super::survey::Surveyor;
use super::url::Address;
use crate::clock::{Clock, Moment};
use crate::quota::protocol::{Call, Reply};

/// Most calls under way. A tick has no more than half of them, and the sync gives a call up before the
/// next tick.
const IN_FLIGHT_MAX: u64 = 512;
/// The redirections of a cluster are followed at once so often, and then at the pace of any other failure.
const REDIRECTIONS_MAX: u32 = 3;
/// A master that says so often in a row that it may take nothing has maybe been followed by another.
const OUTCAST_AFTER: u32 = 3;

/// One shard's way to its master.
#[derive(Debug)]
pub(super) struct Line {
    shard: u16,
    connector: Arc<Connector>,
    script: Arc<Script>,
    health: Arc<Health>,
    surveyor: Arc<Surveyor>,
    clock: Clock,
    /// How long the sync waits for an answer.
    reply_timeout: Duration,
    state: Mutex<State>,
    broken: Notify,
    /// Where the shard is; followed by the subscription.
    at: watch::Sender<Option<Address>>,
}

#[derive(Debug, Default)]
struct State {
    /// Counts connections, so that each call knows its own.
    generation: u64,
    open: Option<Open>,
    /// Where the shard was said to be, by whoever it was asked of.
    follow: Option<(Address, bool)>,
    /// By which a call went nowhere, since the last answer.
    redirections: u32,
    /// Calls in a row that a master refused which others may have given up.
    outcast: u32,
    answered: bool,
}

impl Line {
    pub(super) fn new(
        shard: u16,
        (connector, script): (Arc<Connector>, Arc<Script>),
        (health, surveyor): (Arc<Health>, Arc<Surveyor>),
        clock: Clock,
        reply_timeout: Duration,
    ) -> Self {
        let (state, broken, at) = (Mutex::default(), Notify::new(), watch::Sender::new(None));
        Self { shard, connector, script, health, surveyor, clock, reply_timeout, state, broken, at }
    }

    /// Where the shard is, as it changes.
    pub(super) fn place(&self) -> watch::Receiver<Option<Address>> {
        self.at.subscribe()
    }

    /// Keeps a connection, for as long as it is not dropped.
    pub(super) async fn keep(self: Arc<Self>) {
        let (mut backoff, mut attempts) = (Backoff::default(), 0);
        loop {
            match self.connect(attempts).await {
                Ok(()) => {
                    self.broken.notified().await;
                    self.health.disconnected(self.shard);
                    let mut state = self.state();
                    if std::mem::take(&mut state.answered) {
                        (backoff, attempts) = (Backoff::default(), 0);
                    }
                    if state.follow.is_some() && state.redirections <= REDIRECTIONS_MAX {
                        continue;
                    }
                }
                Err(error) => {
                    let (fault, _) = consequence(&error);
                    self.health.failed(self.shard, fault, &error.to_string(), self.clock.now());
                    // Whoever was said to have the shard may be gone.
                    self.state().follow = None;
                }
            }
            attempts += 1;
            sleep(backoff.wait(fastrand::u64(..))).await;
        }
    }

    async fn connect(&self, attempts: usize) -> RedisResult<()> {
        let follow = self.state().follow.take();
        let (address, asking) = match follow {
            Some(follow) => follow,
            None => {
                let last = self.at.borrow().clone();
                (self.connector.locate(last, attempts).await?, false)
            }
        };
        let connection = self.connector.connect(&address).await?;
        self.health.connected(self.shard, address.to_string());
        self.surveyor.look(&address, connection.clone());
        let mut state = self.state();
        state.generation = state.generation.wrapping_add(1);
        state.open = Some(Open { connection, asking });
        drop(state);
        self.at.send_if_modified(|at| at.replace(address.clone()) != Some(address));
        debug!(shard = self.shard, "connected to the store");
        Ok(())
    }

    /// One call: sent once, and answered or not.
    pub(super) async fn call(self: Arc<Self>, call: Call) -> Option<Reply> {
        let began = self.clock.now();
        let Some((generation, open)) = self.open() else {
            self.fail(Fault::NotConnected, "no connection", began);
            return None;
        };
        let Some(under_way) = self.health.under_way(self.shard, IN_FLIGHT_MAX) else {
            self.fail(Fault::Full, "too many calls under way", began);
            return None;
        };
        let answer = timeout(STALL, self.exchange(open, &call)).await;
        drop(under_way);
        let now = self.clock.now();
        let took = now.since(began);
        match answer {
            Ok(Ok(value)) => self.read(generation, &call, &value, (took, now)),
            Ok(Err(error)) => {
                let (fault, consequence) = consequence(&error);
                self.fail(fault, &error.to_string(), now);
                self.follow_up(generation, fault, consequence);
                None
            }
            Err(_) => {
                self.fail(Fault::Timeout, "no answer", now);
                self.follow_up(generation, Fault::Timeout, Consequence::Reconnect);
                None
            }
        }
    }

    /// Sends a call, and once more with the script if the server does not know it: then nothing ran.
    async fn exchange(&self, mut open: Open, call: &Call) -> RedisResult<Value> {
        let answer = open.ask(self.script.call(self.shard, call)).await;
        match answer {
            Err(error) if consequence(&error).1 == Consequence::SendScript => {
                self.health.count(Fault::NoScript);
                open.ask(self.script.load_and_call(self.shard, call)).await
            }
            answer => answer,
        }
    }

    fn read(
        &self,
        generation: u64,
        call: &Call,
        value: &Value,
        (took, now): (Duration, Moment),
    ) -> Option<Reply> {
        let reply = match self.script.read(value, call.reports.len()) {
            Ok(reply) => reply,
            Err(unreadable) => {
                self.fail(Fault::Unreadable, &unreadable.to_string(), now);
                return None;
            }
        };
        let mut state = self.state();
        if state.generation != generation || state.open.is_none() {
            return None;
        }
        state.answered = true;
        (state.redirections, state.outcast) = (0, 0);
        drop(state);
        if took > self.reply_timeout {
            self.health.took(took, now);
            self.fail(Fault::Late, &format!("answered after {took:?}"), now);
        } else {
            self.health.answered(self.shard, took, now);
        }
        for (report, _) in call.reports.iter().zip(&reply.leases).filter(|(_, of)| of.is_none()) {
            let name = self.script.names(self.shard).bucket(report.key);
            self.health.foreign(report.key, &name, now);
        }
        Some(reply)
    }

    fn follow_up(&self, generation: u64, fault: Fault, consequence: Consequence) {
        let mut state = self.state();
        let (stays, follow) = match consequence {
            Consequence::SendScript | Consequence::Stay => (true, None),
            Consequence::Reconnect => (false, None),
            Consequence::Follow { address, asking } => {
                (false, Some((address.near(self.at.borrow().as_ref()), asking)))
            }
        };
        // What an older connection has to say of itself is known.
        if state.generation != generation || state.open.is_none() {
            return;
        }
        // One that leads nowhere, or says to wait, counts as well: it may go on.
        if fault.is_redirection() {
            state.redirections = state.redirections.saturating_add(1);
        }
        if fault.is_an_outcasts() && self.connector.may_be_elsewhere() {
            state.outcast = state.outcast.saturating_add(1);
        }
        if !stays || state.outcast >= OUTCAST_AFTER {
            state.outcast = 0;
            state.open = None;
            state.follow = follow;
            self.broken.notify_one();
        }
    }

    fn fail(&self, fault: Fault, detail: &str, now: Moment) {
        if fault.is_redirection() && self.state().redirections < REDIRECTIONS_MAX {
            self.health.count(fault);
        } else {
            self.health.failed(self.shard, fault, detail, now);
        }
    }

    fn open(&self) -> Option<(u64, Open)> {
        let state = self.state();
        Some((state.generation, state.open.clone()?))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

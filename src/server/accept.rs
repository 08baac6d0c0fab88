//! The door of a link: accepts, refuses, and hands over.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::clock::Clock;
use crate::net::listener::{Admittance, Bound, Listener};
use crate::worker::{Command, LinkCounters, Throttle};

/// After a failed accept: what is missing (a file descriptor) is not back at once.
const RETRY: Duration = Duration::from_millis(100);

/// One address of one link.
#[derive(Debug)]
pub(super) struct Doorkeeper {
    pub(super) link: String,
    /// The link's place among its worker's links.
    pub(super) place: usize,
    pub(super) worker: mpsc::Sender<Command>,
    pub(super) address: SocketAddr,
    pub(super) admittance: Admittance,
    pub(super) counters: Arc<LinkCounters>,
    pub(super) host_up: watch::Receiver<bool>,
    /// The door is shut while no connection to the host is up.
    pub(super) close_when_down: bool,
    pub(super) listener: Option<Listener>,
    pub(super) clock: Clock,
    /// Refusals can be provoked at will.
    pub(super) refusals: Throttle,
    pub(super) failures: Throttle,
}

impl Doorkeeper {
    /// Keeps the door until no more is to be accepted.
    pub(super) async fn keep(mut self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.serve() => {}
        }
    }

    async fn serve(&mut self) {
        loop {
            if self.close_when_down && !*self.host_up.borrow() {
                self.listener = None;
                let (link, address) = (&self.link, self.address);
                info!(%link, %address, "listener closed while no connection to the host is up");
                if self.host_up.wait_for(|up| *up).await.is_err() {
                    return;
                }
            }
            match self.listener.take() {
                Some(listener) => self.accept_until_down(&listener).await,
                None => self.reopen().await,
            }
        }
    }

    /// Accepts for as long as the door is to be open.
    async fn accept_until_down(&mut self, listener: &Listener) {
        let mut host_up = self.host_up.clone();
        let close_when_down = self.close_when_down;
        let down = async {
            if !close_when_down || host_up.wait_for(|up| !*up).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = down => {}
            () = self.accept(listener) => {}
        }
    }

    async fn reopen(&mut self) {
        let (link, address) = (&self.link, self.address);
        match Bound::take(address).and_then(Bound::listen) {
            Ok(listener) => {
                info!(%link, %address, "listening again");
                self.listener = Some(listener);
            }
            Err(error) => {
                if let Some(more) = self.failures.pass(self.clock.now()) {
                    warn!(%link, %address, %error, more, "cannot listen again yet");
                }
                sleep(RETRY).await;
            }
        }
    }

    async fn accept(&mut self, listener: &Listener) {
        loop {
            let link = &self.link;
            let (socket, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    if let Some(more) = self.failures.pass(self.clock.now()) {
                        warn!(%link, %error, more, "cannot accept a connection");
                    }
                    sleep(RETRY).await;
                    continue;
                }
            };
            match self.admittance.admit(peer.ip()) {
                Ok(seat) => {
                    let command = Command::Accept { link: self.place, socket, peer, seat };
                    if self.worker.send(command).await.is_err() {
                        return;
                    }
                }
                Err(refusal) => {
                    if let Some(count) = self.counters.refused_connections.get(refusal as usize) {
                        count.set(count.get() + 1);
                    }
                    if let Some(more) = self.refusals.pass(self.clock.now()) {
                        warn!(%link, %peer, more, "connection refused: {refusal}");
                    }
                }
            }
        }
    }
}

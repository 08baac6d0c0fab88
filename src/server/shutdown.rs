//! The ordered end, in one function.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::Running;
use crate::admin::Readiness;
use crate::worker::{Command, Left, PARTING};

/// An answer is sent at most so long after its deadline, and is then still to be written.
const MARGIN: Duration = Duration::from_millis(500);
/// Sessions and workers are looked at so often while the end is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// What tells the process to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// What it was: `SIGTERM`, `SIGINT`.
    pub by: &'static str,
}

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Every request that was taken in was answered.
    Clean,
    /// It was cut short.
    Forced,
}

/// All that the end concerns.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) readiness: Readiness,
    pub(super) stop_accepting: CancellationToken,
    pub(super) grace: Duration,
    /// The longest of the links.
    pub(super) deadline: Duration,
    pub(super) workers: Vec<Running>,
}

impl Ending {
    /// Waits to be told to stop, then: not ready, accept nothing more, serve what is open for the
    /// grace, take nothing more, answer what is in flight, write it, end. A second stop ends at once.
    pub(super) async fn run(self, mut stop: mpsc::Receiver<Stop>) -> Exit {
        tokio::select! {
            told = stop.recv() => {
                info!(by = told.map_or("its owner", |stop| stop.by), "stopping");
            }
            worker = self.dead_worker() => {
                error!(worker, "a worker thread is gone; ending, so that the process is restarted");
                return Exit::Forced;
            }
        }
        self.readiness.set(false);
        self.stop_accepting.cancel();
        tokio::select! {
            exit = self.drain() => exit,
            again = second(&mut stop) => {
                warn!(by = again.by, "stopping at once");
                Exit::Forced
            }
        }
    }

    async fn dead_worker(&self) -> usize {
        loop {
            if let Some(dead) = self.workers.iter().position(|worker| worker.thread.is_finished()) {
                return dead;
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    async fn drain(&self) -> Exit {
        info!(grace = ?self.grace, "serving open sessions for the grace");
        // When they are all gone before it ends, there is nobody to wait for.
        let _ = timeout(self.grace, self.all_sessions_gone()).await;
        let within = self.deadline + MARGIN;
        info!(?within, "taking no more, waiting for what is in flight");
        let mut left = Left::default();
        let mut reports = Vec::new();
        for worker in &self.workers {
            let (done, report) = oneshot::channel();
            // A worker that is gone has nothing in flight; its missing report says so below.
            let _ = worker.commands.send(Command::Drain { within, done }).await;
            reports.push(report);
        }
        for report in reports {
            match timeout(within + PARTING + MARGIN, report).await {
                Ok(Ok(of_worker)) => {
                    left.requests += of_worker.requests;
                    left.others += of_worker.others;
                    left.unwritten += of_worker.unwritten;
                }
                _ => {
                    error!("a worker did not report");
                    return Exit::Forced;
                }
            }
        }
        let Left { requests, others, unwritten } = left;
        if others > 0 {
            warn!(others, "messages without the host's answer; their senders repeat them");
        }
        if requests > 0 || unwritten > 0 {
            error!(requests, unwritten, "ended with requests unanswered or answers unwritten");
            return Exit::Forced;
        }
        info!("stopped");
        Exit::Clean
    }

    async fn all_sessions_gone(&self) {
        let open = || {
            let links = self.workers.iter().flat_map(|worker| &worker.counters);
            links.map(|link| link.sessions.get()).sum::<u64>()
        };
        while open() > 0 {
            sleep(LOOK).await;
        }
    }
}

/// The next stop, if anybody is left to send one.
async fn second(stop: &mut mpsc::Receiver<Stop>) -> Stop {
    match stop.recv().await {
        Some(stop) => stop,
        None => std::future::pending().await,
    }
}

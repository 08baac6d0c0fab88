//! What the thread of a network uses: it is to be seen whether the network was measured, or what it
//! sent to.

use std::time::Duration;

use crate::clock::{self, Moment};

/// What the thread of a network used, over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The time.
    pub wall: Duration,
    /// On a processor.
    pub cpu: Duration,
    /// Ready to work and without a processor, since others had them. Zero where the system does not
    /// say.
    pub waiting: Duration,
}

impl Usage {
    /// The share of the time in which it worked, 0 to 1. Near 1 it is the network that is measured
    /// and not what it sends to.
    pub fn share(&self) -> f64 {
        share(self.cpu, self.wall)
    }

    /// The share of the time in which it could not work, 0 to 1, since others had the processors.
    pub fn waiting_share(&self) -> f64 {
        share(self.waiting, self.wall)
    }
}

fn share(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { part.as_secs_f64() / whole.as_secs_f64() }
}

/// A reading of this thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    at: Moment,
    cpu: Duration,
    waiting: Duration,
}

impl Reading {
    pub(super) fn take(now: Moment) -> Self {
        Self { at: now, cpu: clock::thread_cpu(), waiting: waiting().unwrap_or_default() }
    }

    /// What was used from this reading to another.
    pub(super) fn until(self, later: Self) -> Usage {
        Usage {
            wall: later.at.since(self.at),
            cpu: later.cpu.saturating_sub(self.cpu),
            waiting: later.waiting.saturating_sub(self.waiting),
        }
    }
}

/// How long this thread has waited for a processor, as the scheduler counts it.
fn waiting() -> Option<Duration> {
    let numbers = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = numbers.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

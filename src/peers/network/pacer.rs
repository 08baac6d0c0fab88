//! When messages are sent: arrivals at random and at a rate, whatever becomes of the answers.
//!
//! A load that waits for answers sends less exactly when they are slow, and so hides it. Here each
//! message has the moment at which it was to be sent, and its latency counts from there.
//!
//! It is a thread, since the runtime's timers are good for a millisecond, ten times what a local
//! answer takes; a sleeping thread wakes within some fifty microseconds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use super::kind::draw_weighted;
use crate::clock::{Clock, Moment};

/// It looks so often whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// A message that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// When it was to be sent.
    pub(super) at: Moment,
    /// Its flow, by its place in the settings.
    pub(super) flow: usize,
}

/// What a pacer needs.
pub(super) struct Pacer {
    pub(super) clock: Clock,
    pub(super) end: Moment,
    /// Messages per second of each flow.
    pub(super) rates: Vec<f64>,
    /// The connections. A full one makes the pacer wait; it then catches up, so that nothing is
    /// left out and the wait counts as latency.
    pub(super) connections: Vec<mpsc::Sender<Arrival>>,
    pub(super) rng: fastrand::Rng,
}

impl Pacer {
    /// Sends arrivals until the end, or until `stop`. Returns how many met no connection.
    pub(super) fn run(mut self, stop: &AtomicBool) -> u64 {
        let rate: f64 = self.rates.iter().sum();
        let mut unsent = 0;
        if rate <= 0.0 {
            return unsent;
        }
        let mut at = self.clock.now();
        loop {
            // Gaps of a Poisson process; 1 - f64() is above 0, so the logarithm is finite.
            at = at.after(Duration::from_secs_f64(-(1.0 - self.rng.f64()).ln() / rate));
            if at >= self.end || !self.wait_until(at, stop) {
                return unsent;
            }
            let flow = draw_weighted(self.rates.iter().copied(), &mut self.rng);
            let connection = self.rng.usize(..self.connections.len().max(1));
            let sender = self.connections.get(connection);
            let taken = sender.is_some_and(|to| to.blocking_send(Arrival { at, flow }).is_ok());
            unsent += u64::from(!taken);
        }
    }

    /// False when it is to stop.
    fn wait_until(&self, at: Moment, stop: &AtomicBool) -> bool {
        loop {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            let left = at.since(self.clock.now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

//! Sockets that take nothing for now.

use crate::clock::Moment;
use crate::net::stream::Writer;

/// Whether a socket takes what is written to it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::worker) struct Stall {
    /// Since when it has taken nothing, while there was something to take.
    pub(in crate::worker) since: Option<Moment>,
    /// A task waits for it to take bytes again.
    pub(super) watched: bool,
}

impl Stall {
    /// A write took `taken` bytes and left some.
    pub(super) fn left_some(&mut self, taken: usize, now: Moment) {
        if taken > 0 || self.since.is_none() {
            self.since = Some(now);
        }
    }

    /// Its connection is given up. Whoever waits for the socket keeps it open, and a peer that takes
    /// nothing would have him wait for ever; shut down, it wakes him.
    pub(super) fn release(&self, writer: &Writer) {
        if self.watched {
            writer.shut_down();
        }
    }
}

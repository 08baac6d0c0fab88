//! What the connections of a network share: its settings and its luck, the buffers that each of them
//! uses in turn, and what is to be tried again.

use std::collections::VecDeque;

use super::NetworkSettings;
use super::answers::Answers;
use super::awaited::Sent;
use super::deck::{Deck, Drawn};
use crate::clock::Moment;
use crate::peers::inbox::Inbox;
use crate::wire::Splitter;

/// More than any message of any network.
const FRAME_BYTES_MAX: usize = 65_535;
/// Messages that wait to be tried again. What finds so many is not.
const RETRIES_MAX: usize = 1 << 20;

/// Buffers and all else.
pub(super) struct Floor {
    pub(super) splitter: Splitter,
    pub(super) inbox: Inbox,
    /// Buffers that nobody writes from. A connection takes one only while it has something to
    /// write, so that few of them go round and stay in the nearest cache.
    pub(super) spare: Vec<Vec<u8>>,
    pub(super) desk: Desk,
}

/// All else.
pub(super) struct Desk {
    pub(super) settings: NetworkSettings,
    pub(super) deck: Deck,
    pub(super) answers: Answers,
    pub(super) now: Moment,
    /// Since 1970.
    pub(super) seconds: u32,
    /// What was to be sent before is not counted.
    pub(super) counts_from: Moment,
    pub(super) is_sending: bool,
    /// In the order in which they are due.
    retries: VecDeque<Retry>,
    rng: fastrand::Rng,
}

/// What is to be tried again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    pub(super) due: Moment,
    pub(super) drawn: Drawn,
    pub(super) tries: u8,
}

impl Floor {
    pub(super) fn new(settings: NetworkSettings, deck: Deck) -> Self {
        let splitter = Splitter::new(settings.framing, FRAME_BYTES_MAX);
        let inbox = Inbox::new(&splitter);
        let rng = fastrand::Rng::with_seed(settings.seed ^ u64::MAX);
        let desk = Desk {
            settings,
            deck,
            answers: Answers::new(),
            now: Moment::START,
            seconds: 0,
            counts_from: Moment::START,
            is_sending: true,
            retries: VecDeque::new(),
            rng,
        };
        Self { splitter, inbox, spare: Vec::new(), desk }
    }
}

impl Desk {
    /// From now on it is so late.
    pub(super) fn set_time(&mut self, now: Moment, seconds: u32) {
        self.now = now;
        if self.seconds != seconds {
            self.seconds = seconds;
            self.deck.set_time(seconds);
        }
    }

    /// Whether what was to be sent at that moment is counted.
    #[inline]
    pub(super) fn counts(&self, at: Moment) -> bool {
        at >= self.counts_from
    }

    /// Decides whether what got a 91 is tried again.
    pub(super) fn may_try_again(&mut self, sent: &Sent) {
        let retry = &self.settings.retry;
        let may = sent.kind.is_request()
            && sent.again < retry.times
            && self.retries.len() < RETRIES_MAX
            && self.rng.f64() < retry.share;
        if may {
            let Sent { flow, kind, shop, luck, again, .. } = *sent;
            let drawn = Drawn { flow, kind, shop, luck };
            let due = self.now.after(retry.after);
            self.retries.push_back(Retry { due, drawn, tries: again + 1 });
        }
    }

    /// When something is to be tried again next.
    pub(super) fn next_retry(&self) -> Option<Moment> {
        self.retries.front().map(|retry| retry.due)
    }

    /// What is to be tried again by now.
    pub(super) fn due_retry(&mut self) -> Option<Retry> {
        self.retries.pop_front_if(|retry| retry.due <= self.now)
    }
}

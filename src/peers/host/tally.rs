//! What a host counts.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::issuer::{Answer, Answered, Code, Reply};

/// What a host has seen and done. Every message that came is received or unreadable; of those
/// received, each is answered, dropped, not answerable, or unsent, or its answer still waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTally {
    /// Messages by MTI number: 420 for 0420.
    pub received: BTreeMap<u16, u64>,
    /// Frames in which no message type could be read, or whose header is another.
    pub unreadable: u64,
    /// Messages of which the dialect does not read all; they are answered from what it reads.
    pub faulty: u64,
    /// Frames without a message.
    pub keepalives: u64,
    /// Answers that left, by Field 39; those of an echo are under `none`.
    pub answers: BTreeMap<String, u64>,
    /// How many of them were late.
    pub late: u64,
    /// Messages that the host kept silent about.
    pub dropped: u64,
    /// Answers to messages of the host's own, of which there are none, and what the dialect has no
    /// answer for.
    pub not_answerable: u64,
    /// Answers that were owed on a connection when it ended, or not given because it was closed.
    pub unsent: u64,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that were closed at once, since as many were open as may be.
    pub refused: u64,
    /// Connections that the host closed because its script says so.
    pub closed: u64,
    /// Connections that it closed because no frame could be cut from what came.
    pub broken: u64,
    /// Connections that are open.
    pub open: u64,
    /// The phase that the host is in, from 1; `None` without phases.
    pub phase: Option<usize>,
    /// Whether it listens.
    pub listening: bool,
    /// What its thread has used of a processor; known when it has ended.
    pub cpu: Duration,
}

impl HostTally {
    /// All messages.
    pub fn messages(&self) -> u64 {
        self.received.values().sum()
    }
}

/// The tally while it grows.
#[derive(Debug, Default)]
pub(super) struct Counts {
    tally: HostTally,
    /// Codes come from the script and a few of this module's own, so they are not many.
    answers: HashMap<Code, u64>,
}

impl Counts {
    /// What is to be counted by name.
    pub(super) const fn tally(&mut self) -> &mut HostTally {
        &mut self.tally
    }

    /// One frame with a message came.
    pub(super) fn came(&mut self, reply: &Reply) {
        let Some(mti) = reply.mti else {
            self.tally.unreadable += 1;
            return;
        };
        *self.tally.received.entry(mti.number()).or_default() += 1;
        self.tally.faulty += u64::from(reply.faulty);
        match reply.answer {
            Answered::With(_) => {}
            Answered::Dropped => self.tally.dropped += 1,
            Answered::Not => self.tally.not_answerable += 1,
        }
    }

    /// One answer left.
    pub(super) fn left(&mut self, answer: &Answer) {
        *self.answers.entry(answer.code).or_default() += 1;
        self.tally.late += u64::from(answer.late);
    }

    /// All of it, as it stands.
    pub(super) fn read(&self) -> HostTally {
        let mut tally = self.tally.clone();
        for (code, count) in &self.answers {
            *tally.answers.entry(code.to_string()).or_default() += count;
        }
        tally
    }

    /// How many messages came.
    pub(super) fn messages(&self) -> u64 {
        self.tally.messages()
    }

    /// How many messages of one type came.
    pub(super) fn messages_of(&self, mti: u16) -> u64 {
        self.tally.received.get(&mti).copied().unwrap_or_default()
    }
}

/// What such a lock guards is whole between any two statements, whoever panicked.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The calls that are under way.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Moment;
use crate::limits::Place;

/// So many lists are kept for later.
const ROOMS_MAX: usize = 64;

/// A call under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) number: u64,
    pub(super) shard: u16,
    pub(super) sent_at: Moment,
    /// What it reports, in its order.
    pub(super) places: Vec<Place>,
}

/// All of them, the oldest first. At most as many as leave within one reply timeout.
#[derive(Debug, Default)]
pub(super) struct Flights {
    flying: VecDeque<Flight>,
    last: u64,
    /// Lists of places that are free to use, so that a busy sync does not allocate.
    rooms: Vec<Vec<Place>>,
}

impl Flights {
    /// The number of the next call. The low half is never 0, by which a record says "none".
    pub(super) fn next_number(&mut self) -> u64 {
        self.last = self.last.wrapping_add(1);
        if self.last as u32 == 0 {
            self.last = self.last.wrapping_add(1);
        }
        self.last
    }

    /// An empty list of places, mostly one that was in use before.
    pub(super) fn room(&mut self) -> Vec<Place> {
        self.rooms.pop().unwrap_or_default()
    }

    pub(super) fn keep_room(&mut self, flight: Flight) {
        self.give_back(flight.places);
    }

    pub(super) fn give_back(&mut self, mut room: Vec<Place>) {
        if self.rooms.len() < ROOMS_MAX {
            room.clear();
            self.rooms.push(room);
        }
    }

    pub(super) fn forget_all(&mut self) {
        self.flying.clear();
    }

    pub(super) fn send(&mut self, flight: Flight) {
        self.flying.push_back(flight);
    }

    /// Takes a call out, if it is under way.
    pub(super) fn land(&mut self, number: u64) -> Option<Flight> {
        let at = self.flying.iter().position(|flight| flight.number == number)?;
        self.flying.remove(at)
    }

    pub(super) fn oldest(&self) -> Option<Moment> {
        self.flying.front().map(|flight| flight.sent_at)
    }

    /// The oldest call, if it has been under way for so long.
    pub(super) fn overdue(&self, now: Moment, timeout: Duration) -> Option<u64> {
        let oldest = self.flying.front()?;
        (oldest.sent_at.after(timeout) <= now).then_some(oldest.number)
    }
}

//! One link on its worker: its exchange, its buffers, and the turns in which the two meet.
//!
//! A turn is synchronous from the first byte to the last decision: everything a peer has sent is
//! cut, decided and queued before anybody else runs, with one reading of the clock. Nothing is
//! written in it; that is the flush, after all peers that were ready have had their turn.

#[cfg(test)]
mod allocations;
mod host;
mod sessions;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tracing::debug;

use super::counters::{Closed, LinkCounters};
use super::port::{Found, Port, Stalled};
use super::record::{Recorder, Throttle};
use crate::clock::{Clock, Moment};
use crate::exchange::{Exchange, SessionId, Side};
use crate::limits::Policy;
use crate::net::buffer::ReadBuffer;
use crate::net::session;
use crate::wire::Splitter;

/// Frames that one peer may have dealt with before the others get their turn.
const FRAMES_PER_TURN: usize = 128;
/// The same for a connection to the host, which brings everybody's answers: more than one read
/// mostly holds. Cut into short turns, what each session is written falls into small pieces, and so
/// does what it sends next.
const FRAMES_PER_HOST_TURN: usize = 512;
/// Lines a second about sessions that open, and about those that close: a peer that connects again
/// and again must not fill the log.
const SESSION_LINES: u32 = 20;
/// One turn in so many is timed: the second reading of the clock costs as much as a decision.
const TURNS_PER_TIMING: u32 = 16;

/// What a peer's task does after a turn.
#[derive(Debug)]
pub(super) enum Next {
    /// Read more.
    Read,
    /// Let others run and take another turn.
    Yield,
    /// Take another turn when there is room again.
    Wait,
    /// Close it, for this fault of its peer.
    Close(Closed, String),
    /// The session is gone.
    End,
}

impl Next {
    /// Since when a frame has been begun and not finished, after a turn of so many frames.
    fn begun_since(
        &self,
        before: Option<Moment>,
        buffer: &ReadBuffer,
        frames: usize,
        now: Moment,
    ) -> Option<Moment> {
        let begun = matches!(self, Self::Read) && !buffer.unread().is_empty();
        match (begun, frames) {
            (false, _) => None,
            (true, 0) => before.or(Some(now)),
            (true, _) => Some(now),
        }
    }
}

/// What a link shares with its worker.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    pub(super) clock: Clock,
    pub(super) policy: Arc<Policy>,
    pub(super) worker: usize,
}

/// One link on its worker.
#[derive(Debug)]
pub(super) struct Link {
    name: Arc<str>,
    surroundings: Surroundings,
    exchange: Exchange,
    port: Port,
    session: session::Settings,
    /// Cuts what sessions send.
    from_sessions: Splitter,
    /// Cuts what the host sends.
    from_host: Splitter,
    /// Whether a connection to the host is up; the listener watches it.
    host_up: watch::Sender<bool>,
    /// Sessions are closed while no connection to the host is up.
    close_when_down: bool,
    /// Wakes sessions that wait for room.
    room: Rc<Notify>,
    waiting_for_room: bool,
    turns: u32,
    found: Found,
    openings: Throttle,
    closings: Throttle,
    faults: Throttle,
    ups: Throttle,
    downs: Throttle,
    /// Nothing more goes to the host; what is in flight is still answered.
    draining: bool,
}

impl Link {
    pub(super) fn new(
        settings: &super::LinkSettings,
        exchange: Exchange,
        surroundings: Surroundings,
        host_up: watch::Sender<bool>,
        counters: Arc<LinkCounters>,
    ) -> Self {
        let name: Arc<str> = settings.name.as_str().into();
        let policy = Arc::clone(&surroundings.policy);
        let recorder = Recorder::new(Arc::clone(&name), counters, policy);
        let host_framing = settings.upstream.framing;
        let connections = settings.upstream.connections;
        let frame_bytes_max = settings.session.frame_bytes_max;
        Self {
            name,
            surroundings,
            exchange,
            port: Port::new(settings.session.framing, host_framing, connections, recorder),
            session: settings.session.clone(),
            from_sessions: Splitter::new(settings.session.framing, frame_bytes_max),
            from_host: Splitter::new(host_framing, frame_bytes_max),
            host_up,
            close_when_down: settings.close_when_down,
            room: Rc::new(Notify::new()),
            waiting_for_room: false,
            turns: 0,
            found: Found::default(),
            openings: Throttle::per_second(SESSION_LINES),
            closings: Throttle::per_second(SESSION_LINES),
            faults: Throttle::per_second(SESSION_LINES),
            ups: Throttle::per_second(SESSION_LINES),
            downs: Throttle::per_second(SESSION_LINES),
            draining: false,
        }
    }

    pub(super) const fn session_settings(&self) -> &session::Settings {
        &self.session
    }

    /// A buffer for what sessions send.
    pub(super) fn session_buffer(&self) -> ReadBuffer {
        ReadBuffer::new(&self.from_sessions)
    }

    /// A buffer for what one connection to the host brings.
    pub(super) fn host_buffer(&self) -> ReadBuffer {
        ReadBuffer::new(&self.from_host)
    }

    pub(super) fn room(&self) -> Rc<Notify> {
        Rc::clone(&self.room)
    }

    pub(super) const fn clock(&self) -> Clock {
        self.surroundings.clock
    }

    fn now(&mut self) -> Moment {
        let now = self.surroundings.clock.now();
        self.port.set_now(now);
        now
    }

    // Time.

    /// Every 5 ms: deadlines.
    pub(super) fn tick(&mut self) {
        let now = self.now();
        self.exchange.tick(now, &mut self.port);
        self.port.tick();
        let (answerable, others) = self.exchange.in_flight();
        let [first, second] = &self.port.counters().in_flight;
        first.set(answerable as u64);
        second.set(others as u64);
    }

    /// Every 100 ms: who is too slow.
    pub(super) fn look_around(&mut self) {
        let now = self.now();
        let sessions: Vec<_> = self.port.session_ids().collect();
        for id in sessions {
            match self.overdue(id, now) {
                Some(closed) => self.shut(id, closed, closed.time_is_up()),
                None => self.close_if_done(id),
            }
        }
        let timeout = self.session.frame_timeout;
        let connections: Vec<_> = self.port.connection_ids().collect();
        for id in connections {
            let Some(connection) = self.port.connection_mut(id) else { continue };
            let (partial, stall) = (connection.partial_since, connection.stall.since);
            if is_over(partial, timeout, now) || is_over(stall, timeout, now) {
                connection.close.notify_one();
            }
        }
    }

    fn overdue(&self, id: SessionId, now: Moment) -> Option<Closed> {
        let session = self.port.session(id)?;
        let timeout = self.session.frame_timeout;
        if is_over(session.partial_since, timeout, now) {
            return Some(Closed::FrameTimeout);
        }
        if is_over(session.stall.since, timeout, now) {
            return Some(Closed::WriteStall);
        }
        let idle = self.session.idle_timeout?;
        (!session.half_closed && is_over(Some(session.read_at), idle, now)).then_some(Closed::Idle)
    }

    // Writing.

    /// One write per buffer. No clock is read: it is part of the turn before it.
    pub(super) fn flush(&mut self, wait_for: impl FnMut(Stalled)) {
        let mut found = std::mem::take(&mut self.found);
        self.port.flush(&mut found);
        self.port.counters().queued_bytes.set(self.port.queued_bytes() as u64);
        self.follow_up(found, wait_for);
    }

    /// A socket takes bytes again.
    pub(super) fn resume(&mut self, socket: &Stalled, wait_for: impl FnMut(Stalled)) {
        self.now();
        let mut found = std::mem::take(&mut self.found);
        self.port.unwatch(socket);
        match socket {
            Stalled::Session(id, _) => self.port.flush_session(*id, &mut found),
            Stalled::Connection(id, _) => self.port.flush_connection(*id, &mut found),
        }
        self.follow_up(found, wait_for);
    }

    fn follow_up(&mut self, mut found: Found, wait_for: impl FnMut(Stalled)) {
        let caught_up = std::mem::take(&mut found.caught_up);
        if caught_up || (self.waiting_for_room && self.port.has_room()) {
            self.wake_sessions();
        }
        found.stalled.drain(..).for_each(wait_for);
        for id in found.finished.drain(..) {
            self.close_if_done(id);
        }
        self.found = found;
    }

    fn wake_sessions(&mut self) {
        self.waiting_for_room = false;
        self.room.notify_waiters();
    }

    // Shutdown.

    /// Forwards nothing more. What is in flight is still answered, and what its sessions send
    /// meanwhile meets no host: dropped unanswered, it would cost its sender the whole of a time-out.
    pub(super) fn drain(&mut self) {
        self.draining = true;
        self.port.close_the_way();
        let sessions: Vec<_> = self.port.session_ids().collect();
        for id in sessions {
            if let Some(session) = self.port.session_mut(id) {
                session.half_closed = true;
                session.partial_since = None;
            }
            self.exchange.half_closed(id);
            self.close_if_done(id);
        }
        self.wake_sessions();
        let (answerable, others) = self.exchange.in_flight();
        debug!(link = %self.name, answerable, others, "draining");
    }

    /// Tells every session that nothing more comes, whatever it still waits for.
    pub(super) fn part(&mut self) {
        let sessions: Vec<_> = self.port.session_ids().collect();
        for id in sessions {
            if let Some(session) = self.port.session(id) {
                session.finish();
            }
        }
    }

    /// Whether every session has ended.
    pub(super) fn is_deserted(&self) -> bool {
        self.port.session_ids().next().is_none()
    }

    /// What a drain still waits for: requests in flight, other messages in flight, and whether
    /// bytes are unwritten.
    pub(super) fn left(&self) -> (usize, usize, bool) {
        let (answerable, others) = self.exchange.in_flight();
        (answerable, others, !self.port.is_flushed())
    }
}

fn count_keepalive(port: &Port, from: Side) {
    let [network, host] = &port.counters().keepalives;
    match from {
        Side::Network => network.count(),
        Side::Host => host.count(),
    }
}

fn is_over(since: Option<Moment>, timeout: Duration, now: Moment) -> bool {
    since.is_some_and(|since| now.since(since) >= timeout)
}

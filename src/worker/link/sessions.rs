//! The network's side of a link: its sessions, and the turns in which they are read.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tracing::{info, warn};

use super::{FRAMES_PER_TURN, Link, Next, TURNS_PER_TIMING, count_keepalive};
use crate::clock::Moment;
use crate::exchange::{Exchange, Flow, SessionId, Side};
use crate::gate::Looked;
use crate::limits::LOOK_AHEAD;
use crate::net::buffer::ReadBuffer;
use crate::net::session::Keepalive;
use crate::net::stream::Writer;
use crate::wire::Splitter;
use crate::worker::counters::Closed;

/// Said of a session that the system has given up.
const UNACKNOWLEDGED: &str =
    "its system acknowledged nothing within frame_timeout, or 5 s at least";
/// Said of a session that is closed for a message.
const MALFORMED: &str = "a message was not readable to its end";

impl Link {
    /// Takes a session in; `None` when the link takes none any more.
    pub(in crate::worker) fn open_session(
        &mut self,
        peer: SocketAddr,
        writer: Writer,
        seat: OwnedSemaphorePermit,
    ) -> Option<SessionId> {
        if self.draining || (self.close_when_down && self.port.active().is_none()) {
            return None;
        }
        let now = self.now();
        let id = self.port.open_session(peer, writer, seat, now);
        self.exchange.opened(id);
        let open = self.count_sessions();
        if let Some(more) = self.openings.pass(now) {
            info!(link = %self.name, %peer, open, more, "session opened");
        }
        if open == 1
            && let Some(more) = self.ups.pass(now)
        {
            info!(link = %self.name, more, "link up");
        }
        Some(id)
    }

    pub(in crate::worker) fn reads_with(
        &mut self,
        id: SessionId,
        reader: tokio::task::AbortHandle,
    ) {
        if let Some(session) = self.port.session_mut(id) {
            session.reader = Some(reader);
        }
    }

    /// Deals with what a session has sent, up to a bounded number of frames.
    pub(in crate::worker) fn session_turn(
        &mut self,
        id: SessionId,
        buffer: &mut ReadBuffer,
    ) -> Next {
        if self.draining && self.has_what_it_is_owed(id) {
            // It was told that nothing more comes: an answer would not reach it.
            buffer.consume(buffer.unread().len());
            return Next::Read;
        }
        let now = self.now();
        let policy = Arc::clone(&self.surroundings.policy);
        let turn = policy.turn(self.surroundings.worker);
        let (next, frames) = self.session_frames(id, buffer, now);
        drop(turn);
        self.time_some(now, frames);
        if let Some(session) = self.port.session_mut(id) {
            session.read_at = now;
            session.partial_since = next.begun_since(session.partial_since, buffer, frames, now);
        }
        // A session that is behind waits for its own peer. Room at the host does not help it: it
        // would be woken by every flush, and ask for another by its turn.
        self.waiting_for_room |= matches!(next, Next::Wait) && !self.port.is_behind(id);
        next
    }

    fn session_frames(
        &mut self,
        id: SessionId,
        buffer: &mut ReadBuffer,
        now: Moment,
    ) -> (Next, usize) {
        let Self { exchange, port, session, from_sessions, surroundings, .. } = self;
        let policy = &*surroundings.policy;
        if port.session(id).is_none() {
            return (Next::End, 0);
        }
        let is_far = policy.is_far();
        let mut looked = [const { None }; LOOK_AHEAD];
        for frames in 0..FRAMES_PER_TURN {
            if port.is_behind(id) {
                return (Next::Wait, frames);
            }
            let in_look = frames % LOOK_AHEAD;
            if in_look == 0 && is_far {
                look_ahead(exchange, from_sessions, buffer.unread(), &mut looked);
            }
            let split = match from_sessions.split(buffer.unread()) {
                Ok(Some(split)) => split,
                Ok(None) => return (Next::Read, frames),
                Err(error) => {
                    return (Next::Close(Closed::Framing, error.to_string()), frames);
                }
            };
            let bytes = split.whole.len();
            let flow = if split.frame.is_empty() {
                count_keepalive(port, Side::Network);
                if session.keepalive == Keepalive::Answer {
                    port.keep_session_alive(id, split.whole);
                }
                Flow::Taken
            } else {
                let looked = looked.get_mut(in_look).and_then(Option::take);
                exchange.request_looked_at(id, split.frame, looked, now, port)
            };
            match flow {
                Flow::Taken => buffer.consume(bytes),
                Flow::Wait => return (Next::Wait, frames),
                Flow::Close => return (Next::Close(Closed::Malformed, MALFORMED.into()), frames),
            }
        }
        (Next::Yield, FRAMES_PER_TURN)
    }

    fn time_some(&mut self, began: Moment, frames: usize) {
        self.turns = self.turns.wrapping_add(1);
        let Ok(frames @ 1..) = u32::try_from(frames) else { return };
        if self.turns.is_multiple_of(TURNS_PER_TIMING) {
            let took = self.surroundings.clock.now().since(began);
            self.port.counters().decisions.record(took / frames);
        }
    }

    /// The session will send nothing more. It is closed at once if it is owed nothing.
    pub(in crate::worker) fn end_of_stream(&mut self, id: SessionId, left_over: usize) {
        let Some(session) = self.port.session_mut(id) else { return };
        session.half_closed = true;
        session.at_end = true;
        session.partial_since = None;
        let peer = session.peer;
        if left_over > 0 {
            let link = &self.name;
            if let Some(more) = self.faults.pass(self.port.now()) {
                warn!(%link, %peer, bytes = left_over, more, "session ended in the middle of a frame");
            }
        }
        self.exchange.half_closed(id);
        self.close_if_done(id);
    }

    /// Closes a session that will send nothing more and has what it is owed, or cannot be given it.
    pub(super) fn close_if_done(&mut self, id: SessionId) {
        let Some(session) = self.port.session(id).filter(|session| session.half_closed) else {
            return;
        };
        match session.broken {
            Some(ErrorKind::TimedOut) => return self.break_off(id, ErrorKind::TimedOut),
            Some(_) => return self.close_session(id, "gone before it had all its answers"),
            None => {}
        }
        match (self.has_what_it_is_owed(id), session.at_end) {
            (false, _) => {}
            (true, true) => self.close_session(id, "ended by its peer"),
            // Closing now, with bytes unread, would be a reset, and some systems then take from the
            // peer what it has not read yet. It is told that nothing more comes, and heard out.
            (true, false) => session.finish(),
        }
    }

    /// Whether every answer that a session may expect was written to it.
    fn has_what_it_is_owed(&self, id: SessionId) -> bool {
        let written = self.port.session(id).is_none_or(|session| session.out.pending().is_empty());
        written && self.exchange.owed(id) == 0
    }

    /// tollgate closes a session for a fault of its peer.
    pub(in crate::worker) fn shut(&mut self, id: SessionId, closed: Closed, detail: &str) {
        if let Some(count) = self.port.counters().sessions_closed.get(closed as usize) {
            count.count();
        }
        if let Some(session) = self.port.session(id) {
            let (link, peer, cause) = (&self.name, session.peer, closed.name());
            if let Some(more) = self.faults.pass(self.port.now()) {
                warn!(%link, %peer, cause, more, "closing session: {detail}");
            }
        }
        self.close_session(id, closed.name());
    }

    /// A session's connection broke. The system gives one up that acknowledges nothing, often before
    /// its buffers are full and the stall shows here.
    pub(in crate::worker) fn break_off(&mut self, id: SessionId, why: ErrorKind) {
        match why {
            ErrorKind::TimedOut => self.shut(id, Closed::WriteStall, UNACKNOWLEDGED),
            _ => self.close_session(id, &why.to_string()),
        }
    }

    pub(in crate::worker) fn close_session(&mut self, id: SessionId, why: &str) {
        let Some(session) = self.port.close_session(id) else { return };
        if let Some(reader) = session.reader {
            reader.abort();
        }
        let owed = self.exchange.owed(id);
        self.exchange.closed(id);
        let open = self.count_sessions();
        let unwritten = session.out.pending().len();
        let (link, peer) = (&self.name, session.peer);
        if let Some(more) = self.closings.pass(self.port.now()) {
            info!(%link, %peer, open, owed, unwritten, more, "session closed: {why}");
        }
        if open == 0
            && let Some(more) = self.downs.pass(self.port.now())
        {
            warn!(%link, more, "link down: no session is open");
        }
    }

    fn count_sessions(&self) -> usize {
        let open = self.port.session_ids().count();
        self.port.counters().sessions.set(open as u64);
        open
    }
}

/// Looks at the next frames of a session, if they are more than one: what leads to their buckets is
/// fetched for all of them, then the buckets.
fn look_ahead(
    exchange: &mut Exchange,
    splitter: &mut Splitter,
    unread: &[u8],
    looked: &mut [Option<Looked>; LOOK_AHEAD],
) {
    looked.iter_mut().for_each(|looked| *looked = None);
    let mut rest = unread;
    for slot in &mut *looked {
        // Whatever is wrong with a frame is found when it is dealt with.
        let Ok(Some(split)) = splitter.split(rest) else { break };
        let Some(behind) = rest.get(split.whole.len()..) else { break };
        if behind.is_empty() && rest.len() == unread.len() {
            return;
        }
        *slot = exchange.look_ahead(split.frame);
        rest = behind;
    }
    looked.iter().flatten().for_each(|looked| exchange.fetch(looked));
}

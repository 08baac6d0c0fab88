//! Writing: one write per buffer that something was queued in, and what did not go is reported.

use std::rc::Rc;

use super::{Found, Port, Stalled};
use crate::exchange::{ConnectionId, SessionId};

impl Port {
    /// One write per buffer that something was queued in.
    pub(in crate::worker) fn flush(&mut self, found: &mut Found) {
        // A standby has no part in the queue, but may have answers of its own to write.
        for slot in 0..self.connections.len() {
            if let Some(id) = self.connection_at(slot) {
                self.flush_connection(id, found);
            }
        }
        while let Some(id) = self.dirty.pop() {
            if let Some(session) = self.session_mut(id) {
                session.dirty = false;
            }
            self.flush_session(id, found);
        }
    }

    /// Writes a session's answers.
    pub(in crate::worker) fn flush_session(&mut self, id: SessionId, found: &mut Found) {
        let now = self.recorder.now();
        let Some(session) = self.session_mut(id) else { return };
        if !session.out.pending().is_empty() {
            let was_behind = session.is_behind();
            match session.writer.try_write(session.out.pending()) {
                Ok(taken) => {
                    session.out.advance(taken);
                    session.stall.left_some(taken, now);
                }
                // A broken socket is always ready, so that to wait for it would never end.
                Err(error) => {
                    session.broken = Some(error.kind());
                    session.out.clear();
                }
            }
            found.caught_up |= was_behind && !session.is_behind();
            if !session.out.pending().is_empty() {
                if !std::mem::replace(&mut session.stall.watched, true) {
                    found.stalled.push(Stalled::Session(id, Rc::clone(&session.writer)));
                }
                return;
            }
            session.stall.since = None;
        }
        if session.half_closed {
            found.finished.push(id);
        }
    }

    /// Writes what is queued for the host, if `id` is the active connection, and what is its own. A
    /// connection that is broken is told to close.
    pub(in crate::worker) fn flush_connection(&mut self, id: ConnectionId, found: &mut Found) {
        let now = self.recorder.now();
        let is_active = self.active == Some(id);
        let place = self.connections.get_mut(id.slot as usize);
        let Some(connection) = place.and_then(|place| place.get_mut(id.generation)) else { return };
        loop {
            let own = !connection.own.pending().is_empty();
            let pending = match (own, is_active) {
                (true, _) => connection.own.pending(),
                (false, true) => self.queue.pending(),
                (false, false) => &[],
            };
            if pending.is_empty() {
                connection.stall.since = None;
                return;
            }
            let Ok(taken) = connection.writer.try_write(pending) else {
                return connection.close.notify_one();
            };
            let all = taken == pending.len();
            if own {
                connection.own.advance(taken);
            } else {
                self.queue.advance(taken);
            }
            if !all {
                connection.stall.left_some(taken, now);
                if !std::mem::replace(&mut connection.stall.watched, true) {
                    found.stalled.push(Stalled::Connection(id, Rc::clone(&connection.writer)));
                }
                return;
            }
        }
    }

    /// The one who waited for a socket is back.
    pub(in crate::worker) fn unwatch(&mut self, stalled: &Stalled) {
        let stall = match stalled {
            Stalled::Session(id, _) => self.session_mut(*id).map(|session| &mut session.stall),
            Stalled::Connection(id, _) => self.connection_mut(*id).map(|up| &mut up.stall),
        };
        if let Some(stall) = stall {
            stall.watched = false;
        }
    }
}

//! Answers to frames that carry no message: the same bytes back, and not often, so that two peers
//! that both answer are not kept busy by it.

use super::Port;
use crate::clock::Moment;
use crate::exchange::{ConnectionId, SessionId};
use crate::net::session::Keepalive;

/// When a keepalive was last answered on one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeptAlive(Option<Moment>);

impl KeptAlive {
    /// Whether one may be answered now, which it then is.
    fn pass(&mut self, now: Moment) -> bool {
        let pass = self.0.is_none_or(|last| now.since(last) >= Keepalive::INTERVAL);
        if pass {
            self.0 = Some(now);
        }
        pass
    }
}

impl Port {
    /// Sends a keepalive back to the session that it came from.
    pub(in crate::worker) fn keep_session_alive(&mut self, id: SessionId, keepalive: &[u8]) {
        let now = self.now();
        if let Some(session) = self.session_mut(id)
            && session.kept_alive.pass(now)
        {
            session.out.push_keepalive(keepalive);
            self.mark_dirty(id);
        }
    }

    /// Sends a keepalive back to the host. On the active connection it takes its turn in the queue,
    /// as a frame may have been begun there.
    pub(in crate::worker) fn keep_connection_alive(&mut self, id: ConnectionId, keepalive: &[u8]) {
        let now = self.now();
        let is_active = self.active == Some(id);
        let Some(connection) = self.connection_mut(id) else { return };
        if !connection.kept_alive.pass(now) {
            return;
        }
        if is_active {
            self.queue.push_keepalive(keepalive);
        } else {
            connection.own.push_keepalive(keepalive);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_answered_once_a_second() {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let mut kept_alive = KeptAlive::default();
        let passed = [5, 6, 1_004, 1_005, 1_006, 9_000].map(|millis| kept_alive.pass(at(millis)));
        assert_eq!(passed, [true, false, false, true, false, true]);
    }
}

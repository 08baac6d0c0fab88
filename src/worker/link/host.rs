//! The host's side of a link: its connections, and the turns in which they are read.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;
use tracing::{error, info, warn};

use super::{FRAMES_PER_HOST_TURN, Link, Next, count_keepalive};
use crate::clock::Moment;
use crate::exchange::{ConnectionId, Side};
use crate::net::buffer::ReadBuffer;
use crate::net::session::Keepalive;
use crate::net::stream::Writer;
use crate::worker::counters::Closed;

impl Link {
    pub(in crate::worker) fn connected(
        &mut self,
        slot: usize,
        peer: SocketAddr,
        writer: Writer,
    ) -> (ConnectionId, Rc<Notify>) {
        // A task that ended by a bug left its connection behind; were it the active one, the queue
        // would wait for it for ever.
        if let Some(left_behind) = self.port.connection_at(slot) {
            self.disconnected(left_behind, "nobody reads it any more");
        }
        let was_up = self.port.active().is_some();
        let (id, close) = self.port.connect(slot, peer, writer);
        let up = self.count_connections();
        let link = &self.name;
        let role = if was_up { "standby" } else { "active" };
        info!(%link, host = %peer, connection = slot, role, up, "host connected");
        if !was_up {
            info!(%link, "host up");
            self.host_up.send_replace(true);
        }
        (id, close)
    }

    pub(in crate::worker) fn disconnected(&mut self, id: ConnectionId, why: &str) {
        let now = self.now();
        let Some(peer) = self.port.connection_mut(id).map(|connection| connection.peer) else {
            return;
        };
        let written = self.port.disconnect(id);
        let up = self.count_connections();
        let (link, slot) = (Arc::clone(&self.name), id.slot);
        warn!(%link, host = %peer, connection = slot, up, "host disconnected: {why}");
        if let Some(written) = written {
            self.exchange.lost(written);
            if self.port.active().is_none() {
                self.host_lost(now);
            }
        }
        // With another connection the queue moves on; with none, whatever waited meets silence.
        self.wake_sessions();
    }

    fn host_lost(&mut self, now: Moment) {
        let (answerable, others) = self.exchange.in_flight();
        self.exchange.stranded(now, &mut self.port);
        let link = Arc::clone(&self.name);
        if self.close_when_down {
            error!(%link, answerable, others, "host down: closing all sessions and the listener");
            let sessions: Vec<_> = self.port.session_ids().collect();
            for id in sessions {
                self.shut(id, Closed::HostDown, "no connection to the host is up");
            }
        } else {
            error!(%link, answerable, others, "host down: requests are answered here");
        }
        self.host_up.send_replace(false);
    }

    fn count_connections(&self) -> usize {
        let up = self.port.connection_ids().count();
        self.port.counters().connections_up.set(up as u64);
        up
    }

    pub(in crate::worker) fn count_reconnect(&self) {
        self.port.counters().reconnects.count();
    }

    /// Deals with what the host has sent on a connection, up to a bounded number of frames.
    pub(in crate::worker) fn host_turn(
        &mut self,
        id: ConnectionId,
        buffer: &mut ReadBuffer,
    ) -> Next {
        let now = self.now();
        let (next, frames) = self.host_frames(id, buffer, now);
        if let Some(connection) = self.port.connection_mut(id) {
            let before = connection.partial_since;
            connection.partial_since = next.begun_since(before, buffer, frames, now);
        }
        next
    }

    fn host_frames(
        &mut self,
        id: ConnectionId,
        buffer: &mut ReadBuffer,
        now: Moment,
    ) -> (Next, usize) {
        let Self { exchange, port, session, from_host, .. } = self;
        for frames in 0..FRAMES_PER_HOST_TURN {
            let split = match from_host.split(buffer.unread()) {
                Ok(Some(split)) => split,
                Ok(None) => return (Next::Read, frames),
                Err(error) => {
                    return (Next::Close(Closed::Framing, error.to_string()), frames);
                }
            };
            let bytes = split.whole.len();
            if !split.frame.is_empty() {
                exchange.answer(id, split.frame, now, port);
            } else {
                count_keepalive(port, Side::Host);
                if session.keepalive == Keepalive::Answer {
                    port.keep_connection_alive(id, split.whole);
                }
            }
            buffer.consume(bytes);
        }
        (Next::Yield, FRAMES_PER_HOST_TURN)
    }
}

//! Where a link's exchange sends to: the buffers of its sessions and of its host, and the one write
//! per buffer that empties them after a turn.
//!
//! It knows sockets and no message. What it cannot write at once stays buffered, up to a bound, and
//! is reported so that somebody waits for the socket.

mod keepalive;
mod place;
mod stall;
mod write;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::task::AbortHandle;

use super::counters::LinkCounters;
use super::record::Recorder;
use crate::clock::Moment;
use crate::exchange::{ConnectionId, Outcome, Room, Sequence, SessionId, Sink};
use crate::gate::Verdict;
use crate::net::buffer::WriteBuffer;
use crate::net::host_queue::{Fill, HostQueue};
use crate::net::stream::Writer;
use crate::traffic::Traffic;
use crate::wire::Framing;
use keepalive::KeptAlive;
use place::Place;
use stall::Stall;

/// What one link may have queued for its host: about four thousand messages.
const HOST_QUEUE_BYTES_MAX: usize = 1024 * 1024;
/// What one session may be behind with its answers; beyond that they reach nobody.
const SESSION_BYTES_MAX: usize = 1024 * 1024;
/// A session that is so far behind is not read until it has caught up.
const SESSION_BYTES_HIGH: usize = 256 * 1024;
/// Answers of the network on their way to a standby connection.
const STANDBY_BYTES_MAX: usize = 256 * 1024;

/// A session's half that is written, and how it is doing.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) peer: SocketAddr,
    /// Its place among the link's `connections_max`, held as long as it is open.
    _seat: OwnedSemaphorePermit,
    writer: Rc<Writer>,
    pub(super) out: WriteBuffer,
    pub(super) reader: Option<AbortHandle>,
    /// Nothing more is taken from it; it closes once it has what it is owed.
    pub(super) half_closed: bool,
    /// Its peer has said that it sends nothing more.
    pub(super) at_end: bool,
    /// Why its peer takes no more bytes and never will; whoever still reads it may find some.
    pub(super) broken: Option<ErrorKind>,
    pub(super) read_at: Moment,
    /// Since when a frame has been begun and not finished.
    pub(super) partial_since: Option<Moment>,
    pub(super) stall: Stall,
    kept_alive: KeptAlive,
    dirty: bool,
}

impl Session {
    /// Tells the peer that nothing more comes.
    pub(super) fn finish(&self) {
        self.writer.finish();
    }

    fn is_behind(&self) -> bool {
        self.out.pending().len() > SESSION_BYTES_HIGH
    }
}

/// A connection's half that is written, and how it is doing.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    writer: Rc<Writer>,
    /// Answers to what the host originated here while another connection is the active one.
    own: WriteBuffer,
    /// Number of the first frame that this connection may have carried.
    first: u64,
    pub(super) close: Rc<Notify>,
    pub(super) partial_since: Option<Moment>,
    pub(super) stall: Stall,
    kept_alive: KeptAlive,
}

/// What a flush found; kept and filled again, so that flushing does not allocate.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Sockets that did not take all, and that nobody waits for yet.
    pub(super) stalled: Vec<Stalled>,
    /// Sessions that took all, or take nothing any more, and from which nothing more will be read.
    pub(super) finished: Vec<SessionId>,
    /// A session is no longer too far behind to be read.
    pub(super) caught_up: bool,
}

/// Something that takes no more bytes for now.
#[derive(Debug)]
pub(super) enum Stalled {
    Session(SessionId, Rc<Writer>),
    Connection(ConnectionId, Rc<Writer>),
}

/// The buffers of one link.
#[derive(Debug)]
pub(super) struct Port {
    sessions: Vec<Place<Session>>,
    dirty: Vec<SessionId>,
    session_framing: Framing,
    connections: Vec<Place<Connection>>,
    active: Option<ConnectionId>,
    queue: HostQueue,
    host_framing: Framing,
    /// What sessions send finds no way to the host any more.
    way_closed: bool,
    recorder: Recorder,
}

impl Port {
    pub(super) fn new(
        session_framing: Framing,
        host_framing: Framing,
        connections: usize,
        recorder: Recorder,
    ) -> Self {
        let place = |_| Place { generation: 0, tenant: None };
        Self {
            sessions: Vec::new(),
            dirty: Vec::new(),
            session_framing,
            connections: (0..connections).map(place).collect(),
            active: None,
            queue: HostQueue::new(host_framing, HOST_QUEUE_BYTES_MAX),
            host_framing,
            way_closed: false,
            recorder,
        }
    }

    pub(super) fn counters(&self) -> &Arc<LinkCounters> {
        self.recorder.counters()
    }

    pub(super) const fn now(&self) -> Moment {
        self.recorder.now()
    }

    pub(super) fn set_now(&mut self, now: Moment) {
        self.recorder.set_now(now);
    }

    /// Every 5 ms.
    pub(super) fn tick(&mut self) {
        self.recorder.tick();
    }

    // Sessions.

    pub(super) fn open_session(
        &mut self,
        peer: SocketAddr,
        writer: Writer,
        seat: OwnedSemaphorePermit,
        now: Moment,
    ) -> SessionId {
        let free = self.sessions.iter().position(|place| place.tenant.is_none());
        let slot = free.unwrap_or(self.sessions.len());
        if free.is_none() {
            self.sessions.push(Place { generation: 0, tenant: None });
        }
        let generation = self.sessions.get_mut(slot).map_or(0, |place| {
            place.generation = place.generation.wrapping_add(1);
            place.tenant = Some(Session {
                peer,
                _seat: seat,
                writer: Rc::new(writer),
                out: WriteBuffer::new(self.session_framing, SESSION_BYTES_MAX),
                reader: None,
                half_closed: false,
                at_end: false,
                broken: None,
                read_at: now,
                partial_since: None,
                stall: Stall::default(),
                kept_alive: KeptAlive::default(),
                dirty: false,
            });
            place.generation
        });
        SessionId { slot: u32::try_from(slot).unwrap_or(u32::MAX), generation }
    }

    pub(super) fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(id.slot as usize)?.get(id.generation)
    }

    pub(super) fn session_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(id.slot as usize)?.get_mut(id.generation)
    }

    /// Takes a session out. What the turn under way has queued for it is counted as answered, so it
    /// is still offered to the socket.
    pub(super) fn close_session(&mut self, id: SessionId) -> Option<Session> {
        self.session(id)?;
        let mut session = self.sessions.get_mut(id.slot as usize)?.tenant.take()?;
        if let Ok(taken) = session.writer.try_write(session.out.pending()) {
            session.out.advance(taken);
        }
        session.stall.release(&session.writer);
        Some(session)
    }

    pub(super) fn session_ids(&self) -> impl Iterator<Item = SessionId> + '_ {
        (0..).zip(&self.sessions).filter_map(|(slot, place)| {
            place.tenant.as_ref().map(|_| SessionId { slot, generation: place.generation })
        })
    }

    /// Something was queued for a session: the flush writes it.
    fn mark_dirty(&mut self, id: SessionId) {
        if let Some(session) = self.session_mut(id)
            && !std::mem::replace(&mut session.dirty, true)
        {
            self.dirty.push(id);
        }
    }

    /// Whether a session is too far behind with its answers to be read.
    pub(super) fn is_behind(&self, id: SessionId) -> bool {
        self.session(id).is_some_and(Session::is_behind)
    }

    // Connections to the host.

    /// Takes a new connection in; the first becomes the active one.
    pub(super) fn connect(
        &mut self,
        slot: usize,
        peer: SocketAddr,
        writer: Writer,
    ) -> (ConnectionId, Rc<Notify>) {
        let close = Rc::new(Notify::new());
        let connection = Connection {
            peer,
            writer: Rc::new(writer),
            own: WriteBuffer::new(self.host_framing, STANDBY_BYTES_MAX),
            first: self.queue.written() + 1,
            close: Rc::clone(&close),
            partial_since: None,
            stall: Stall::default(),
            kept_alive: KeptAlive::default(),
        };
        let generation = self.connections.get_mut(slot).map_or(0, |place| {
            place.generation = place.generation.wrapping_add(1);
            place.tenant = Some(connection);
            place.generation
        });
        let id = ConnectionId { slot: u32::try_from(slot).unwrap_or(u32::MAX), generation };
        if self.active.is_none() {
            self.active = Some(id);
        }
        (id, close)
    }

    pub(super) fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(id.slot as usize)?.get_mut(id.generation)
    }

    pub(super) fn connection_ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        (0..self.connections.len()).filter_map(|slot| self.connection_at(slot))
    }

    pub(super) fn connection_at(&self, slot: usize) -> Option<ConnectionId> {
        let place = self.connections.get(slot).filter(|place| place.tenant.is_some())?;
        let generation = place.generation;
        Some(ConnectionId { slot: u32::try_from(slot).unwrap_or(u32::MAX), generation })
    }

    /// Takes a lost connection out. When it was the active one, returns which frames were written
    /// whole on it, and the next connection that is up goes on with the queue.
    pub(super) fn disconnect(
        &mut self,
        id: ConnectionId,
    ) -> Option<std::ops::RangeInclusive<Sequence>> {
        self.connection_mut(id)?;
        let connection = self.connections.get_mut(id.slot as usize)?.tenant.take()?;
        connection.stall.release(&connection.writer);
        if self.active != Some(id) {
            return None;
        }
        let written = self.queue.rewind();
        let next = self.connection_ids().next();
        self.active = next;
        if let Some(next) = self.active
            && let Some(connection) = self.connection_mut(next)
        {
            connection.first = written + 1;
        }
        Some(Sequence(connection.first)..=Sequence(written))
    }

    pub(super) const fn active(&self) -> Option<ConnectionId> {
        self.active
    }

    /// Nothing more of what sessions send goes to the host.
    pub(super) const fn close_the_way(&mut self) {
        self.way_closed = true;
    }

    const fn is_way_open(&self) -> bool {
        self.active.is_some() && !self.way_closed
    }

    /// Whether a session may be offered the way to the host again.
    pub(super) fn has_room(&self) -> bool {
        !self.is_way_open() || self.queue.fill(0) == Fill::Open
    }

    pub(super) const fn queued_bytes(&self) -> usize {
        self.queue.queued_bytes()
    }

    /// Whether everything that was queued was written.
    pub(super) fn is_flushed(&self) -> bool {
        let sessions = self.sessions.iter().filter_map(|place| place.tenant.as_ref());
        let all_taken = sessions.map(|session| session.out.pending().len()).sum::<usize>() == 0;
        let connections = self.connections.iter().filter_map(|place| place.tenant.as_ref());
        let all_returned = connections.map(|up| up.own.pending().len()).sum::<usize>() == 0;
        all_taken && all_returned && (self.active.is_none() || self.queue.pending().is_empty())
    }
}

impl Sink for Port {
    fn room(&self, frame_bytes: usize) -> Room {
        if !self.is_way_open() {
            return Room::Down;
        }
        match self.queue.fill(frame_bytes) {
            Fill::Open => Room::Open,
            Fill::Tight => Room::Tight,
            Fill::Full => Room::Full,
        }
    }

    fn forward(&mut self, frame: &[u8]) -> Option<Sequence> {
        self.queue.push(frame).ok().map(Sequence)
    }

    fn withdraw(&mut self, sequence: Sequence) -> bool {
        self.queue.withdraw(sequence.0)
    }

    fn carries(&self, frame: &[u8]) -> bool {
        self.session_framing.carries(frame)
    }

    fn deliver(&mut self, id: SessionId, frame: &[u8]) -> bool {
        let Some(session) = self.session_mut(id) else { return false };
        if session.broken.is_some() || session.out.push(frame).is_err() {
            return false;
        }
        self.mark_dirty(id);
        true
    }

    fn give_back(&mut self, id: ConnectionId, frame: &[u8]) -> bool {
        if self.active == Some(id) {
            return self.queue.push(frame).is_ok();
        }
        self.connection_mut(id).is_some_and(|connection| connection.own.push(frame).is_ok())
    }

    fn decided(&mut self, traffic: &Traffic, verdict: &Verdict) {
        self.recorder.decided(traffic, verdict);
    }

    fn record(&mut self, outcome: Outcome) {
        self.recorder.record(&outcome);
    }
}

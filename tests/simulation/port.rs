//! The port of the simulation: the real queue and buffers, and connections and sessions that are
//! nothing but bytes and moments.
//!
//! It does what `worker::port` does with sockets, writes down everything that the exchange asks of
//! it for the model to judge, and can be made to cheat, so that the model can be seen to notice.

use std::collections::VecDeque;
use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::exchange::{ConnectionId, Outcome, Room, Sequence, SessionId, Sink};
use tollgate::net::buffer::WriteBuffer;
use tollgate::net::host_queue::{Fill, HostQueue};
use tollgate::wire::{Framing, Splitter};

const FRAMING: Framing = Framing::Be16;
const STANDBY_BYTES_MAX: usize = 4_096;

/// What the exchange asked of the port, in order.
#[derive(Debug)]
pub(crate) enum Event {
    /// A frame was queued for the host.
    Forwarded,
    /// A queued frame was taken back.
    Withdrawn,
    /// A frame was offered to a session, and taken or not.
    Offered { session: SessionId, frame: Vec<u8>, taken: bool },
    /// An answer of the network was queued for a connection, or not.
    GivenBack { connection: ConnectionId, taken: bool },
    /// Something happened.
    Recorded(Outcome),
}

/// How the port cheats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cheat {
    /// It does not.
    Nothing,
    /// A session is given every fifth frame twice.
    AnswerTwice,
    /// Every fifth frame for a session goes to another one.
    AnswerElsewhere,
    /// Every fifth frame for a session is dropped, and said to be delivered.
    AnswerNobody,
    /// Every fifth frame for the host is changed by one bit.
    Garble,
    /// Every fifth frame for the host is queued twice.
    ForwardTwice,
    /// Every fifth frame for the host is dropped, and said to be queued.
    ForwardNothing,
    /// Every fifth frame for the host trades places with the next.
    Overtake,
    /// Frames that are taken back are sent all the same.
    SendWithdrawn,
}

impl Cheat {
    pub(crate) const ALL: [Self; 8] = [
        Self::AnswerTwice,
        Self::AnswerElsewhere,
        Self::AnswerNobody,
        Self::Garble,
        Self::ForwardTwice,
        Self::ForwardNothing,
        Self::Overtake,
        Self::SendWithdrawn,
    ];
}

/// A session as its peer sees it.
#[derive(Debug)]
pub(crate) struct Peer {
    out: WriteBuffer,
    /// It takes no bytes, so that its buffer fills.
    pub(crate) stuck: bool,
    pub(crate) half_closed: bool,
    /// Frames that it wants to send and that were not taken yet, as numbers of the model.
    pub(crate) unread: VecDeque<usize>,
    /// The exchange said to wait.
    pub(crate) waiting: bool,
}

/// A connection as the host sees it.
#[derive(Debug)]
pub(crate) struct Connection {
    own: WriteBuffer,
    /// Number of the first frame that it may have carried.
    first: u64,
    /// Every byte ever written to it.
    stream: Vec<u8>,
    /// Until when the bytes up to here are under way.
    under_way: VecDeque<(Moment, usize)>,
    /// When the bytes from here on were written.
    written_at: Vec<(usize, Moment)>,
    arrived: usize,
    parsed: usize,
    /// The host reads from it.
    pub(crate) reading: bool,
}

/// A frame that reached the host whole.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) connection: ConnectionId,
    pub(crate) frame: Vec<u8>,
    /// When its first byte was written.
    pub(crate) begun: Moment,
}

/// What became of a connection's bytes when it was lost.
#[derive(Debug)]
pub(crate) struct Loss {
    /// Frames that the host has got whole before.
    pub(crate) arrivals: Vec<Arrival>,
    /// Every frame that was written whole on it.
    pub(crate) whole: Vec<Vec<u8>>,
    /// A frame was begun on it and not written whole.
    pub(crate) begun: bool,
    /// What the exchange is to be told, if it was the active one.
    pub(crate) written: Option<std::ops::RangeInclusive<Sequence>>,
}

#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) sessions: Vec<(SessionId, Peer)>,
    pub(crate) connections: Vec<(ConnectionId, Connection)>,
    active: Option<ConnectionId>,
    queue: HostQueue,
    session_bytes_max: usize,
    /// What a connection takes that the host has not read.
    window: usize,
    generations: u32,
    pub(crate) events: Vec<Event>,
    cheat: Cheat,
    calls: u32,
    held: Option<Vec<u8>>,
}

impl Port {
    pub(crate) fn new(queue_bytes: usize, window: usize, cheat: Cheat) -> Self {
        Self {
            sessions: Vec::new(),
            connections: Vec::new(),
            active: None,
            queue: HostQueue::new(FRAMING, queue_bytes),
            session_bytes_max: 1_500,
            window,
            generations: 0,
            events: Vec::new(),
            cheat,
            calls: 0,
            held: None,
        }
    }

    fn cheats(&mut self, cheat: Cheat) -> bool {
        if self.cheat != cheat {
            return false;
        }
        self.calls += 1;
        self.calls.is_multiple_of(5)
    }

    // Sessions.

    pub(crate) fn open(&mut self) -> SessionId {
        let taken = |slot| self.sessions.iter().any(|(id, _)| id.slot == slot);
        let slot = (0..).find(|slot| !taken(*slot)).unwrap();
        self.generations += 1;
        let id = SessionId { slot, generation: self.generations };
        let peer = Peer {
            out: WriteBuffer::new(FRAMING, self.session_bytes_max),
            stuck: false,
            half_closed: false,
            unread: VecDeque::new(),
            waiting: false,
        };
        self.sessions.push((id, peer));
        id
    }

    pub(crate) fn close(&mut self, id: SessionId) {
        self.sessions.retain(|(open, _)| *open != id);
    }

    pub(crate) fn peer(&self, id: SessionId) -> Option<&Peer> {
        self.sessions.iter().find(|(open, _)| *open == id).map(|(_, peer)| peer)
    }

    pub(crate) fn peer_mut(&mut self, id: SessionId) -> Option<&mut Peer> {
        self.sessions.iter_mut().find(|(open, _)| *open == id).map(|(_, peer)| peer)
    }

    /// Whether all that was queued for a session was taken by it.
    pub(crate) fn has_taken_all(&self, id: SessionId) -> bool {
        self.peer(id).is_none_or(|peer| peer.out.pending().is_empty())
    }

    // Connections.

    pub(crate) fn connect(&mut self) -> ConnectionId {
        let taken = |slot| self.connections.iter().any(|(id, _)| id.slot == slot);
        let slot = (0..).find(|slot| !taken(*slot)).unwrap();
        self.generations += 1;
        let id = ConnectionId { slot, generation: self.generations };
        let connection = Connection {
            own: WriteBuffer::new(FRAMING, STANDBY_BYTES_MAX),
            first: self.queue.written() + 1,
            stream: Vec::new(),
            under_way: VecDeque::new(),
            written_at: Vec::new(),
            arrived: 0,
            parsed: 0,
            reading: true,
        };
        self.connections.push((id, connection));
        self.active.get_or_insert(id);
        id
    }

    /// Loses a connection of whose bytes under way the host gets the share `keep` of 256.
    pub(crate) fn lose(&mut self, id: ConnectionId, keep: u8) -> Loss {
        let at = self.connections.iter().position(|(up, _)| *up == id).unwrap();
        let (_, mut connection) = self.connections.remove(at);
        let under_way = connection.stream.len() - connection.arrived;
        connection.arrived += under_way * usize::from(keep) / 255;
        let arrivals = connection.arrivals(id);
        let whole: Vec<_> = frames(&connection.stream).map(<[u8]>::to_vec).collect();
        let whole_bytes: usize = whole.iter().map(|frame| frame.len() + 2).sum();
        let begun = connection.stream.len() > whole_bytes;
        let mut written = None;
        if self.active == Some(id) {
            let newest = self.queue.rewind();
            written = Some(Sequence(connection.first)..=Sequence(newest));
            self.active = self.connections.first().map(|(next, _)| *next);
            if let Some((_, next)) = self.connections.first_mut() {
                next.first = newest + 1;
            }
        }
        Loss { arrivals, whole, begun, written }
    }

    pub(crate) const fn is_up(&self) -> bool {
        self.active.is_some()
    }

    /// Whether a session that waits may be offered the way to the host again.
    pub(crate) fn has_room(&self) -> bool {
        self.active.is_none() || self.queue.fill(0) == Fill::Open
    }

    pub(crate) fn is_flushed(&self) -> bool {
        let own = |connection: &Connection| connection.own.pending().is_empty();
        self.queue.queued_bytes() == 0 && self.connections.iter().all(|(_, up)| own(up))
    }

    // Bytes.

    /// Writes what peers take; `most` is what one write takes at most, `flight` how long bytes are
    /// under way.
    pub(crate) fn flush(&mut self, now: Moment, most: usize, flight: Duration) {
        for (_, peer) in self.sessions.iter_mut().filter(|(_, peer)| !peer.stuck) {
            peer.out.advance(peer.out.pending().len());
        }
        for (id, connection) in &mut self.connections {
            let room = self.window.saturating_sub(connection.stream.len() - connection.arrived);
            let mut room = room.min(most);
            let own = connection.own.pending();
            let bytes = own[..own.len().min(room)].to_vec();
            room -= bytes.len();
            connection.own.advance(bytes.len());
            connection.write(&bytes, now, flight);
            while self.active == Some(*id) && connection.own.pending().is_empty() {
                let pending = self.queue.pending();
                let bytes = pending[..pending.len().min(room)].to_vec();
                if bytes.is_empty() {
                    break;
                }
                room -= bytes.len();
                self.queue.advance(bytes.len());
                connection.write(&bytes, now, flight);
            }
        }
    }

    /// What the host has got by now, connection by connection.
    pub(crate) fn arrivals(&mut self, now: Moment) -> Vec<Arrival> {
        let mut all = Vec::new();
        for (id, connection) in self.connections.iter_mut().filter(|(_, up)| up.reading) {
            while let Some((_, end)) = connection.under_way.pop_front_if(|(due, _)| *due <= now) {
                connection.arrived = end;
            }
            all.extend(connection.arrivals(*id));
        }
        all
    }
}

impl Peer {
    /// One that takes bytes takes all; only one that is stuck falls behind.
    fn give(&mut self, frame: &[u8]) -> bool {
        let taken = self.out.push(frame).is_ok();
        if !self.stuck {
            self.out.advance(self.out.pending().len());
        }
        taken
    }
}

impl Connection {
    fn write(&mut self, bytes: &[u8], now: Moment, flight: Duration) {
        if bytes.is_empty() {
            return;
        }
        self.written_at.push((self.stream.len(), now));
        self.stream.extend_from_slice(bytes);
        // Bytes do not overtake each other, whatever is drawn for them.
        let earliest = self.under_way.back().map_or(now, |(due, _)| *due);
        self.under_way.push_back((earliest.max(now.after(flight)), self.stream.len()));
    }

    fn arrivals(&mut self, id: ConnectionId) -> Vec<Arrival> {
        let mut all = Vec::new();
        let arrived = &self.stream[..self.arrived];
        let mut splitter = splitter();
        while let Ok(Some(split)) = splitter.split(&arrived[self.parsed..]) {
            let before = self.written_at.partition_point(|(start, _)| *start <= self.parsed);
            let begun = self.written_at[before - 1].1;
            all.push(Arrival { connection: id, frame: split.frame.to_vec(), begun });
            self.parsed += split.whole.len();
        }
        all
    }
}

fn splitter() -> Splitter {
    Splitter::new(FRAMING, 65_535)
}

fn frames(mut stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let whole = splitter().split(stream).ok()??.whole.len();
        let (whole, rest) = stream.split_at(whole);
        stream = rest;
        Some(&whole[FRAMING.prefix_bytes()..])
    })
}

impl Sink for Port {
    fn room(&self, frame_bytes: usize) -> Room {
        if self.active.is_none() {
            return Room::Down;
        }
        match self.queue.fill(frame_bytes) {
            Fill::Open => Room::Open,
            Fill::Tight => Room::Tight,
            Fill::Full => Room::Full,
        }
    }

    fn forward(&mut self, frame: &[u8]) -> Option<Sequence> {
        if self.cheats(Cheat::Garble) {
            let mut garbled = frame.to_vec();
            *garbled.last_mut()? ^= 1;
            let sequence = Sequence(self.queue.push(&garbled).ok()?);
            self.events.push(Event::Forwarded);
            return Some(sequence);
        }
        if self.cheats(Cheat::Overtake) && self.held.is_none() {
            self.held = Some(frame.to_vec());
            self.events.push(Event::Forwarded);
            return Some(Sequence(u64::MAX));
        }
        let sequence = self.queue.push(frame).ok()?;
        if let Some(held) = self.held.take() {
            self.queue.push(&held).ok()?;
        }
        if self.cheats(Cheat::ForwardTwice) {
            self.queue.push(frame).ok()?;
        }
        if self.cheats(Cheat::ForwardNothing) {
            self.queue.withdraw(sequence);
        }
        self.events.push(Event::Forwarded);
        Some(Sequence(sequence))
    }

    fn withdraw(&mut self, sequence: Sequence) -> bool {
        let withdrew = if self.cheat == Cheat::SendWithdrawn {
            sequence.0 > self.queue.written()
        } else {
            self.queue.withdraw(sequence.0)
        };
        if withdrew {
            self.events.push(Event::Withdrawn);
        }
        withdrew
    }

    fn deliver(&mut self, session: SessionId, frame: &[u8]) -> bool {
        let times = if self.cheats(Cheat::AnswerTwice) { 2 } else { 1 };
        let mut to = session;
        if self.cheats(Cheat::AnswerElsewhere)
            && let Some((other, _)) = self.sessions.iter().find(|(id, _)| *id != session)
        {
            to = *other;
        }
        if self.cheats(Cheat::AnswerNobody) {
            return true;
        }
        let mut taken = false;
        for _ in 0..times {
            taken = self.peer_mut(to).is_some_and(|peer| peer.give(frame));
            let frame = frame.to_vec();
            self.events.push(Event::Offered { session: to, frame, taken });
        }
        taken
    }

    fn give_back(&mut self, connection: ConnectionId, frame: &[u8]) -> bool {
        let taken = if self.active == Some(connection) {
            self.queue.push(frame).is_ok()
        } else {
            let own = self.connections.iter_mut().find(|(id, _)| *id == connection);
            own.is_some_and(|(_, up)| up.own.push(frame).is_ok())
        };
        self.events.push(Event::GivenBack { connection, taken });
        taken
    }

    fn record(&mut self, outcome: Outcome) {
        self.events.push(Event::Recorded(outcome));
    }
}

//! One seed's world: an exchange with its gate and limits, a network and a host that do as they
//! please, and virtual time.
//!
//! A step is 5 ms, in moments of 1 ms each; a tick ends it.

use std::sync::Arc;
use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::exchange::{Exchange, Flow, SessionId, Settings, Sink};
use tollgate::gate::Gate;
use tollgate::iso8583::Dialect;
use tollgate::limits::Policy;
use tollgate::traffic::LinkId;
use tollgate::wire::Header;

use crate::effects::Check;
use crate::host::Answer;
use crate::model::{Model, Rules};
use crate::network::{Draft, Fields, Network};
use crate::port::{Cheat, Event, Peer, Port};
use crate::scene::{Mood, gate_settings, limits};
use crate::tally::Tally;

pub(crate) const MOMENT: Duration = Duration::from_millis(1);
const MOMENTS_PER_STEP: u32 = 5;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) random: fastrand::Rng,
    pub(crate) mood: Mood,
    pub(crate) rules: Rules,
    pub(crate) exchange: Exchange,
    policy: Arc<Policy>,
    pub(crate) port: Port,
    pub(crate) model: Model,
    pub(crate) network: Network,
    pub(crate) answers: Vec<Answer>,
    /// Answers of the network to the host's own messages.
    pub(crate) replies: Vec<(Moment, SessionId, (String, Fields))>,
    pub(crate) now: Moment,
    pub(crate) host_stan: usize,
    pub(crate) tally: Tally,
}

impl World {
    pub(crate) fn new(seed: u64, cheat: Cheat) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mood = Mood::drawn(&mut random);
        let rules = Rules::drawn(&mut random, &mood);
        let policy = Policy::new(&limits(&rules), &[], 1, seed, Moment::START).unwrap();
        let policy = Arc::new(policy.looking_ahead_from(0));
        let gate = Gate::new(LinkId(0), gate_settings(), Arc::clone(&policy));
        let settings = Settings {
            deadline: rules.deadline,
            answer_timeout: rules.answer_timeout,
            match_fields: Settings::MATCH_FIELDS.to_vec(),
            inflight_max: rules.inflight_max,
        };
        let dialect = Arc::new(Dialect::preset("iso87_ascii").unwrap());
        Self {
            random,
            exchange: Exchange::new(&settings, dialect, Header::None, gate, seed),
            policy,
            port: Port::new(mood.queue_bytes, mood.window, cheat),
            model: Model::new(rules.clone()),
            rules,
            network: Network::new(mood.omits_fields),
            mood,
            answers: Vec::new(),
            replies: Vec::new(),
            now: Moment::START,
            host_stan: 0,
            tally: Tally::default(),
        }
    }

    /// Whether something happens that happens `times` of 1,000.
    fn chance(&mut self, times: u32) -> bool {
        self.random.u32(..1_000) < times
    }

    pub(crate) const fn second(&self) -> u64 {
        self.now.nanos() / 1_000_000_000
    }

    /// One step with everything that may happen.
    pub(crate) fn step(&mut self) -> Check {
        for _ in 0..MOMENTS_PER_STEP {
            if self.chance(self.mood.trouble) {
                self.trouble_session()?;
            }
            if self.chance(self.mood.trouble) {
                self.trouble_connection()?;
            }
            self.come_up();
            for _ in 0..self.random.u32(..=self.mood.messages) {
                self.speak();
            }
            if self.chance(15) {
                self.host_speaks()?;
            }
            self.moment()?;
        }
        self.tick()
    }

    /// Says nothing new and lets everything come to its end.
    pub(crate) fn finish(&mut self) -> Check {
        for (_, peer) in &mut self.port.sessions {
            peer.stuck = false;
        }
        if self.port.connections.is_empty() {
            self.port.connect();
        }
        let mut rest = 2 * (self.rules.deadline + self.rules.answer_timeout);
        for steps in 0.. {
            if steps > 20_000 {
                return Err("it does not come to an end".to_owned());
            }
            for (_, connection) in &mut self.port.connections {
                connection.reading = true;
            }
            for _ in 0..MOMENTS_PER_STEP {
                self.moment()?;
            }
            self.tick()?;
            let unread = self.port.sessions.iter().any(|(_, peer)| !peer.unread.is_empty());
            if !unread && self.port.is_flushed() {
                rest = rest.saturating_sub(MOMENT * MOMENTS_PER_STEP);
            }
            if rest.is_zero() && self.answers.is_empty() {
                break;
            }
        }
        if self.exchange.in_flight() != (0, 0) {
            return Err(format!("left in flight: {:?}", self.exchange.in_flight()));
        }
        self.model.is_over()
    }

    /// A millisecond passes.
    fn moment(&mut self) -> Check {
        self.now = self.now.after(MOMENT);
        self.replies()?;
        self.take_turns()?;
        let most = self.random.usize(1..=self.mood.write_bytes);
        let flight = MOMENT * self.random.u32(0..4);
        self.port.flush(self.now, most, flight);
        self.end_half_closed();
        for arrival in self.port.arrivals(self.now) {
            self.host_reads(&arrival)?;
        }
        self.host_answers()
    }

    fn tick(&mut self) -> Check {
        self.exchange.tick(self.now, &mut self.port);
        let events = self.events();
        self.model.ticked(self.now, &events)?;
        self.policy.sweep(self.now, 8);
        self.agree()
    }

    /// What the port was asked since this was asked last.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        let events = std::mem::take(&mut self.port.events);
        for event in &events {
            if let Event::Recorded(outcome) = event {
                self.tally.outcome(outcome);
            }
        }
        events
    }

    /// The exchange counts what the model counts.
    pub(crate) fn agree(&self) -> Check {
        let (counted, known) = (self.exchange.in_flight(), self.model.in_flight());
        if counted != known {
            return Err(format!("in flight: {counted:?} by the exchange, {known:?} by the model"));
        }
        for (id, _) in &self.port.sessions {
            let (owed, known) = (self.exchange.owed(*id), self.model.owed(*id));
            if owed as usize != known {
                return Err(format!(
                    "owed to {id:?}: {owed} by the exchange, {known} by the model"
                ));
            }
        }
        Ok(())
    }

    // Sessions.

    pub(crate) fn some_session(&mut self) -> Option<SessionId> {
        self.random.choice(&self.port.sessions).map(|(id, _)| *id)
    }

    fn trouble_session(&mut self) -> Check {
        let Some(id) = self.some_session() else { return Ok(()) };
        match self.random.u8(..4) {
            0 => self.close(id),
            1 => {
                // The end of a stream comes after everything that was sent on it.
                let peer = self.port.peer_mut(id).unwrap();
                if peer.unread.is_empty() && !peer.half_closed {
                    peer.half_closed = true;
                    self.exchange.half_closed(id);
                    self.model.stopped(id);
                }
            }
            2 => self.port.peer_mut(id).unwrap().stuck = true,
            _ => self.port.peer_mut(id).unwrap().stuck = false,
        }
        self.agree()
    }

    fn close(&mut self, id: SessionId) {
        if self.exchange.owed(id) > 0 {
            self.tally.count("session closed with answers owed");
        }
        self.exchange.closed(id);
        self.port.close(id);
        self.model.stopped(id);
    }

    /// Closes sessions that have said all and heard all.
    fn end_half_closed(&mut self) {
        let done = |(id, peer): &(SessionId, Peer)| {
            let over = peer.half_closed && self.port.has_taken_all(*id);
            (over && self.exchange.owed(*id) == 0).then_some(*id)
        };
        let done: Vec<_> = self.port.sessions.iter().filter_map(done).collect();
        for id in done {
            self.tally.count("half-closed session closed");
            self.close(id);
        }
    }

    /// Sessions and connections that are missing come back in a while.
    fn come_up(&mut self) {
        if self.port.sessions.len() < self.mood.sessions_max && self.chance(60) {
            let id = self.port.open();
            self.exchange.opened(id);
            self.model.opened(id);
        }
        if self.port.connections.len() < self.mood.connections_max && self.chance(25) {
            self.port.connect();
        }
    }

    fn speak(&mut self) {
        let Some(session) = self.some_session() else { return };
        if self.port.peer(session).is_none_or(|peer| peer.half_closed) {
            return;
        }
        let (id, second) = (self.model.sent.len(), self.second());
        let again = self.chance(80);
        let original = self.model.some_original(&mut self.random).filter(|_| again);
        let draft = match original {
            Some(original) => Network::again(&mut self.random, original, id),
            None => self.network.next(&mut self.random, second, id),
        };
        self.want(session, draft);
    }

    fn want(&mut self, session: SessionId, draft: Draft) {
        let id = self.model.wants(session, draft);
        if let Some(peer) = self.port.peer_mut(session) {
            peer.unread.push_back(id);
        }
    }

    /// The network answers the host's own messages.
    fn replies(&mut self) -> Check {
        let now = self.now;
        let due = self.replies.extract_if(.., |(due, ..)| *due <= now).collect::<Vec<_>>();
        for (_, session, (mti, fields)) in due {
            if self.port.peer(session).is_some_and(|peer| !peer.half_closed) {
                self.want(session, Draft::new(&mti, fields));
            }
        }
        Ok(())
    }

    /// Every session that has something to say and may say it has its turn.
    fn take_turns(&mut self) -> Check {
        let mut ids: Vec<_> = self.port.sessions.iter().map(|(id, _)| *id).collect();
        self.random.shuffle(&mut ids);
        for id in ids {
            let room = self.port.has_room();
            let peer = self.port.peer_mut(id).unwrap();
            if peer.waiting && !room {
                continue;
            }
            while let Some(message) = self.port.peer(id).and_then(|peer| peer.unread.front()) {
                if self.offer(id, *message)? == Flow::Wait {
                    break;
                }
            }
        }
        Ok(())
    }

    fn offer(&mut self, session: SessionId, message: usize) -> Check<Flow> {
        let frame = &self.model.sent[message].draft.frame;
        let room = self.port.room(frame.len());
        let turn = self.policy.turn(0);
        // Every other message is looked at ahead, as those are that came together.
        let looked = if message.is_multiple_of(2) { self.exchange.look_ahead(frame) } else { None };
        looked.iter().for_each(|looked| self.exchange.fetch(looked));
        let (now, port) = (self.now, &mut self.port);
        let flow = self.exchange.request_looked_at(session, frame, looked, now, port);
        drop(turn);
        let events = self.events();
        self.model.offered(message, flow, room, self.now, &events)?;
        self.agree()?;
        let peer = self.port.peer_mut(session).unwrap();
        let waited = std::mem::replace(&mut peer.waiting, flow == Flow::Wait);
        if flow == Flow::Wait {
            self.tally.count("wait");
        } else {
            peer.unread.pop_front();
            if waited {
                self.tally.count("retry taken");
            }
        }
        Ok(flow)
    }
}

//! The host's half of the world: its connections, what it reads, and what it says when.

use tollgate::exchange::ConnectionId;

use crate::effects::Check;
use crate::host::{self, Honesty, Received};
use crate::message::message;
use crate::network::Damage;
use crate::port::Arrival;
use crate::sent::response_to;
use crate::world::{MOMENT, World};

impl World {
    pub(crate) fn trouble_connection(&mut self) -> Check {
        let Some((id, connection)) = self.random.choice(&mut self.port.connections) else {
            return Ok(());
        };
        match self.random.u8(..4) {
            0 => {
                let id = *id;
                self.lose(id)?;
            }
            1 => connection.reading = false,
            _ => connection.reading = true,
        }
        self.agree()
    }

    fn lose(&mut self, id: ConnectionId) -> Check {
        let keep = self.random.u8(..);
        let loss = self.port.lose(id, keep);
        for arrival in &loss.arrivals {
            self.host_reads(arrival)?;
        }
        self.model.lost(&loss.whole);
        if loss.begun {
            self.tally.count("connection lost with a frame begun");
        }
        if let Some(written) = loss.written {
            self.exchange.lost(written);
            if !self.port.is_up() {
                self.tally.count("all connections lost");
                self.exchange.stranded(self.now, &mut self.port);
                let events = self.events();
                self.model.stranded(self.now, &events)?;
            }
        }
        Ok(())
    }

    /// The host has read a message and makes up its mind.
    pub(crate) fn host_reads(&mut self, arrival: &Arrival) -> Check {
        let id = self.model.arrived(arrival)?;
        let sent = &self.model.sent[id];
        let Some(response) = sent.response() else { return Ok(()) };
        if response.as_bytes()[2] == b'5' && self.random.bool() {
            return Ok(());
        }
        let received = Received {
            id,
            response: &response,
            fields: &sent.draft.fields,
            connection: arrival.connection,
            other_stan: self.model.some_stan(&mut self.random),
            // What could not be read is not recognised by anything.
            may_spare: self.network.omits_stans && sent.draft.damage == Damage::None,
            may_lie: !self.network.omits_stans,
        };
        let answers = host::answers(&mut self.random, &received, self.rules.deadline, self.now);
        self.answers.extend(answers);
        Ok(())
    }

    pub(crate) fn host_answers(&mut self) -> Check {
        let now = self.now;
        let due = self.answers.extract_if(.., |answer| answer.due <= now).collect::<Vec<_>>();
        for answer in due {
            let up: Vec<_> = self.port.connections.iter().map(|(id, _)| *id).collect();
            let same = up.contains(&answer.connection) && !answer.sibling;
            let other = self.random.choice(&up).copied();
            let Some(connection) = other.map(|other| if same { answer.connection } else { other })
            else {
                continue;
            };
            let age = now.since(self.model.received(answer.of));
            if answer.honesty == Honesty::Sparing && age >= self.rules.answer_timeout {
                continue;
            }
            self.exchange.answer(connection, &answer.frame, now, &mut self.port);
            let events = self.events();
            self.model.host_answered(&answer, &events)?;
            self.agree()?;
        }
        Ok(())
    }

    pub(crate) fn host_speaks(&mut self) -> Check {
        let up = self.random.choice(&self.port.connections).map(|(id, _)| *id);
        let Some(connection) = up else { return Ok(()) };
        self.host_stan += 1;
        let second = self.second();
        let own = host::own_message(&mut self.random, self.host_stan, second);
        let frame = message(&own.0, &own.1);
        self.exchange.answer(connection, &frame, self.now, &mut self.port);
        let events = self.events();
        let session = self.model.host_spoke(connection, &own, self.now, &events)?;
        if let Some(session) = session
            && self.random.u8(..8) > 0
        {
            let due = self.now.after(MOMENT * self.random.u32(0..200));
            let response = response_to(&own.0).unwrap();
            // Now and then the answer comes from another session.
            let elsewhere = self.random.u8(..8) == 0;
            let other = self.some_session().filter(|_| elsewhere);
            self.replies.push((due, other.unwrap_or(session), (response, own.1)));
        }
        Ok(())
    }
}

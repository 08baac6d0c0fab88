//! What must be true of what the host says: whose answer goes where, and who hears the host's own
//! messages and gives them their answer.

use tollgate::clock::Moment;
use tollgate::exchange::{ConnectionId, Outcome, Room, SessionId, Side, Stray, Unread};

use crate::effects::{Check, Effects, ensure};
use crate::host::{Answer, Honesty};
use crate::message::message;
use crate::model::Model;
use crate::network::{Fields, field};
use crate::port::Event;
use crate::sent::response_to;

/// A message of the host's own that a session was given.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) stan: String,
    pub(crate) response: String,
    pub(crate) connection: ConnectionId,
    pub(crate) until: Moment,
}

impl Model {
    /// The host answered.
    pub(crate) fn host_answered(&mut self, answer: &Answer, events: &[Event]) -> Check {
        let effects = Effects::of(events)?;
        ensure!(effects.forwarded == 0, "an answer was forwarded");
        if answer.honesty == Honesty::Unreadable {
            let said = effects.said == [&Outcome::Unreadable(Side::Host, Unread::Mti)];
            ensure!(said && effects.offers.is_empty(), "unreadable, and yet {events:?}");
            return Ok(());
        }
        if let Some((session, frame, said)) = effects.offers.first() {
            ensure!(effects.offers.len() == 1, "one answer went to two sessions");
            ensure!(*frame == answer.frame, "an answer was changed");
            let delivery =
                matches!(said, Outcome::Delivered { .. } | Outcome::Stray(Stray::Undeliverable, _));
            ensure!(delivery, "an answer of the host's met {said:?}");
            let theirs =
                |id: &usize| self.sent[*id].session == *session && self.is_meant(answer, *id);
            let id = self.pending.iter().copied().find(theirs);
            let id = id.ok_or_else(|| {
                format!("{answer:?} went to {session:?}; {}", self.who_fits(answer))
            })?;
            self.finish(id);
            return self.count_answer(id);
        }
        let strays: Vec<_> = effects.strays().collect();
        let [(stray, trace)] = strays.as_slice() else { return Err(format!("{events:?}")) };
        ensure!(trace.approves == answer.approves, "whether it approves was mistaken");
        self.strayed(answer, *stray)
    }

    fn strayed(&mut self, answer: &Answer, stray: Stray) -> Check {
        let late: Vec<_> = self.late.iter().map(|(id, _)| *id).collect();
        let is_own = |id: &usize| self.is_meant(answer, *id) && self.sent[*id].fits(answer);
        let pending = self.pending.iter().any(is_own);
        match stray {
            Stray::Late => {
                ensure!(!pending, "{answer:?} is called late, and is waited for");
                let at = late.iter().position(is_own);
                self.late.remove(at.ok_or_else(|| {
                    format!("{answer:?} is called late; {}", self.who_fits(answer))
                })?);
            }
            Stray::Unmatched => {
                ensure!(!pending, "{answer:?} is called unmatched, and is waited for");
                ensure!(!late.iter().any(is_own), "{answer:?} is called unmatched, and is late");
            }
            Stray::Ambiguous => {
                let fit = |id: &&usize| self.sent[**id].fits(answer);
                let fitting: Vec<_> = self.pending.iter().chain(&late).filter(fit).collect();
                let copies = |id: &&usize| self.sent[**id].is_copy_of(&self.sent[*fitting[0]]);
                ensure!(!fitting.iter().all(copies), "{answer:?} is called ambiguous");
                ensure!(answer.honesty == Honesty::Sparing, "{answer:?} is unmistakable");
            }
            Stray::Undeliverable | Stray::NoSession => return Err(format!("{stray:?}")),
        }
        Ok(())
    }

    /// Its own request, and what else it could be taken to answer.
    fn who_fits(&self, answer: &Answer) -> String {
        let late = self.late.iter().map(|(id, _)| id);
        let fit = |id: &&usize| self.sent[**id].fits(answer);
        let told = |id: &usize| format!("{:?}\n", self.sent[*id]);
        let fitting: String = self.pending.iter().chain(late).filter(fit).map(told).collect();
        format!("of\n{:?}\nfor which fit\n{fitting}", self.sent[answer.of])
    }

    /// Whether the answer may be given to whoever sent `id`.
    fn is_meant(&self, answer: &Answer, id: usize) -> bool {
        match answer.honesty {
            Honesty::Lying => self.sent[id].fits(answer),
            _ => id == answer.of || self.sent[id].is_copy_of(&self.sent[answer.of]),
        }
    }

    /// The host sent something of its own.
    pub(crate) fn host_spoke(
        &mut self,
        connection: ConnectionId,
        (mti, fields): &(String, Fields),
        now: Moment,
        events: &[Event],
    ) -> Check<Option<SessionId>> {
        let effects = Effects::of(events)?;
        let Some((session, frame, said)) = effects.offers.first() else {
            let nobody = matches!(effects.said.as_slice(), [Outcome::Stray(Stray::NoSession, _)]);
            ensure!(nobody && self.listening.is_empty(), "the host's message met {events:?}");
            return Ok(None);
        };
        ensure!(Some(session) == self.listening.last(), "the host's message went to {session:?}");
        ensure!(*frame == message(mti, fields), "the host's message was changed");
        if !matches!(said, Outcome::HostOriginated) {
            return Ok(None);
        }
        if self.asked.len() >= self.rules.inflight_max {
            self.asked.remove(0);
        }
        self.asked.push(Asked {
            stan: field(fields, 11).unwrap_or_default().to_owned(),
            response: response_to(mti).unwrap_or_default(),
            connection,
            until: now.after(self.rules.answer_timeout),
        });
        Ok(Some(*session))
    }

    /// An answer of the network's goes to the connection that asked, else to whichever is up.
    pub(crate) fn answer_to_host(&mut self, id: usize, room: Room, effects: &Effects<'_>) -> Check {
        ensure!(effects.offers.is_empty(), "an answer was answered");
        let sent = &self.sent[id];
        let asked = self.asked.iter().position(|asked| {
            asked.response[..3] == sent.draft.mti[..3]
                && Some(asked.stan.as_str()) == sent.field(11)
        });
        let given = effects.gave_back.first();
        match (asked.map(|at| self.asked.remove(at)), given) {
            (Some(asked), Some((connection, taken))) => {
                ensure!(asked.connection == *connection, "answer {id} went to {connection:?}");
                if *taken {
                    self.sent[id].forwarded = true;
                    // It may leave on a standby connection, and so before what was queued earlier.
                    self.sent[id].arrived = true;
                    return Ok(());
                }
            }
            (None, None) => {}
            (asked, given) => return Err(format!("answer {id} to {asked:?} went to {given:?}")),
        }
        match room {
            Room::Down => ensure!(effects.forwarded == 0, "{id} was sent nowhere"),
            _ => ensure!(effects.forwarded == 1, "answer {id} was lost"),
        }
        self.sent[id].forwarded = effects.forwarded == 1;
        Ok(())
    }
}

//! What must be true of the exchange, kept by plain lists and strings: it shares no code with it.
//!
//! The model is told everything that goes in, and reads from the port's events what came out.

use std::collections::HashMap;
use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::exchange::{Flow, Outcome, Pass, Room, SessionId};
use tollgate::reason::Reason;

use crate::effects::{Check, Effects, ensure, reason_of};
use crate::network::{Damage, Draft};
use crate::port::{Arrival, Event};
use crate::said_by_host::Asked;
use crate::sent::{Sent, Stage};

/// A token bucket that counts only what it let through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) rate: f64,
    pub(crate) burst: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) deadline: Duration,
    pub(crate) answer_timeout: Duration,
    pub(crate) inflight_max: usize,
    pub(crate) all: Bound,
    pub(crate) bin: Bound,
    /// The card numbers that the bin limit is for begin so.
    pub(crate) bin_prefix: &'static str,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) rules: Rules,
    pub(crate) sent: Vec<Sent>,
    by_frame: HashMap<Vec<u8>, usize>,
    /// In the order of forwarding.
    pub(crate) pending: Vec<usize>,
    pub(crate) late: Vec<(usize, Moment)>,
    pub(crate) asked: Vec<Asked>,
    last_at_host: HashMap<SessionId, usize>,
    /// Open sessions that may be given messages of the host's own, the last to speak at the end.
    pub(crate) listening: Vec<SessionId>,
    admitted_all: u32,
    admitted_bin: u32,
}

impl Model {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            sent: Vec::new(),
            by_frame: HashMap::new(),
            pending: Vec::new(),
            late: Vec::new(),
            asked: Vec::new(),
            last_at_host: HashMap::new(),
            listening: Vec::new(),
            admitted_all: 0,
            admitted_bin: 0,
        }
    }

    /// A session wants to send this.
    pub(crate) fn wants(&mut self, session: SessionId, draft: Draft) -> usize {
        let id = self.sent.len();
        self.by_frame.insert(draft.frame.clone(), id);
        self.sent.push(Sent::new(session, draft));
        id
    }

    pub(crate) fn opened(&mut self, session: SessionId) {
        self.listening.push(session);
    }

    pub(crate) fn stopped(&mut self, session: SessionId) {
        self.listening.retain(|listening| *listening != session);
    }

    fn spoke(&mut self, session: SessionId) {
        if self.listening.contains(&session) {
            self.stopped(session);
            self.listening.push(session);
        }
    }

    /// In flight as the exchange counts it: answerable, and all others.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        let answerable = self.pending.iter().filter(|id| self.sent[**id].answerable()).count();
        (answerable, self.pending.len() - answerable)
    }

    /// Answers that a session waits for. Nobody waits for that to a notification.
    pub(crate) fn owed(&self, session: SessionId) -> usize {
        let its_own = self.pending.iter().map(|id| &self.sent[*id]);
        its_own.filter(|sent| sent.session == session && sent.expects_answer()).count()
    }

    /// When the exchange was given a message.
    pub(crate) fn received(&self, id: usize) -> Moment {
        self.sent[id].received
    }

    /// The STAN of some message in flight.
    pub(crate) fn some_stan(&self, random: &mut fastrand::Rng) -> Option<String> {
        let id = *random.choice(&self.pending)?;
        self.sent[id].field(11).map(str::to_owned)
    }

    /// A message to send again.
    pub(crate) fn some_original(&self, random: &mut fastrand::Rng) -> Option<&Draft> {
        let first = self.sent.len().saturating_sub(40);
        let recent = self.sent.get(first..)?.iter().map(|sent| &sent.draft);
        let whole: Vec<_> = recent.filter(|draft| draft.damage == Damage::None).collect();
        random.choice(whole).filter(|draft| draft.mti.as_bytes()[2] != b'1')
    }

    // What a session sent.

    pub(crate) fn offered(
        &mut self,
        id: usize,
        flow: Flow,
        room: Room,
        now: Moment,
        events: &[Event],
    ) -> Check {
        let (answerable, session) = (self.sent[id].answerable(), self.sent[id].session);
        if flow == Flow::Wait {
            ensure!(room == Room::Full && !answerable, "{id} has to wait, with room {room:?}");
            ensure!(events.is_empty(), "{id} has to wait, and yet {events:?}");
            return Ok(());
        }
        self.sent[id].received = now;
        self.sent[id].stage = Stage::Over;
        let effects = Effects::of(events)?;
        ensure!(
            effects.offers.len() + effects.forwarded + effects.gave_back.len() <= 2,
            "{events:?}"
        );
        if self.sent[id].is_answer() {
            self.answer_to_host(id, room, &effects)?;
        } else if let Some((to, frame, said)) = effects.offers.first() {
            let (Outcome::Answered { reason, .. } | Outcome::Unheard { reason, .. }) = **said
            else {
                return Err(format!("{id} met {said:?}"));
            };
            ensure!(answerable, "{id} was answered, which nobody may do: {:?}", self.sent[id]);
            ensure!(*to == session, "{id} was answered to {to:?}");
            ensure!(effects.forwarded == 0, "{id} was refused and forwarded");
            self.refused(id, reason, room, now, frame)?;
        } else if effects.forwarded > 0 {
            ensure!(effects.forwarded == 1, "{id} was forwarded twice");
            self.forwarded(id, &effects, now)?;
        } else {
            let silence = effects.said.iter().any(|said| matches!(said, Outcome::Unsent { .. }));
            ensure!(silence && room == Room::Down, "{id} vanished: {events:?}");
            ensure!(!answerable, "{id} met silence");
        }
        self.spoke(session);
        Ok(())
    }

    fn refused(
        &mut self,
        id: usize,
        reason: Reason,
        room: Room,
        now: Moment,
        frame: &[u8],
    ) -> Check {
        let full = self.in_flight().0 >= self.rules.inflight_max;
        let right = match reason {
            Reason::Unavailable => room == Room::Down,
            Reason::Overload => room != Room::Down && (room != Room::Open || full),
            Reason::Limit => room == Room::Open && !full,
            Reason::Lost | Reason::Deadline | Reason::Malfunction | Reason::Format => false,
        };
        ensure!(right, "{id} was refused for {reason:?} with room {room:?}");
        self.answered_here(id, reason, now, frame)
    }

    fn forwarded(&mut self, id: usize, effects: &Effects<'_>, now: Moment) -> Check {
        let answerable = self.sent[id].answerable();
        let passes: Vec<_> = effects.passes().collect();
        let admitted = passes == [Pass::Admitted];
        ensure!(passes.len() == 1, "{id} passed as {passes:?}");
        ensure!(!answerable || admitted, "{:?} passed as {passes:?}", self.sent[id]);
        if answerable {
            self.count_admission(id, now)?;
        }
        self.sent[id].forwarded = true;
        if self.sent[id].response().is_some() {
            let bound = self.rules.inflight_max;
            let (_, others) = self.in_flight();
            let forgotten = effects.said.contains(&&Outcome::Forgotten);
            ensure!(forgotten == (!answerable && others >= bound), "{others} of {bound} in flight");
            if forgotten {
                let protected = |id: &usize| !self.sent[*id].answerable();
                let oldest = self.pending.iter().copied().find(protected);
                self.finish(oldest.ok_or("nothing to forget")?);
            }
            self.sent[id].stage = Stage::Pending;
            self.pending.push(id);
        }
        Ok(())
    }

    fn count_admission(&mut self, id: usize, now: Moment) -> Check {
        let Rules { all, bin, bin_prefix, .. } = self.rules;
        let card = self.sent[id].card().map(|card| card.starts_with(bin_prefix));
        self.admitted_all += 1;
        self.admitted_bin += u32::from(card == Some(true));
        let most = |bound: Bound| bound.burst + bound.rate * now.since(Moment::START).as_secs_f64();
        for (admitted, bound) in [(self.admitted_all, all), (self.admitted_bin, bin)] {
            ensure!(f64::from(admitted) <= most(bound) + 1e-6, "{admitted} admitted by {bound:?}");
        }
        Ok(())
    }

    /// tollgate answered `id` with `frame`.
    fn answered_here(&mut self, id: usize, reason: Reason, now: Moment, frame: &[u8]) -> Check {
        let expected = self.sent[id].local_answer(reason);
        let text = String::from_utf8_lossy;
        ensure!(frame == expected, "{} is not {}", text(frame), text(&expected));
        self.count_answer(id)?;
        self.sent[id].answered = Some((reason, now));
        Ok(())
    }

    pub(crate) fn count_answer(&mut self, id: usize) -> Check {
        self.sent[id].answers += 1;
        ensure!(self.sent[id].answers == 1, "{id} was answered twice");
        Ok(())
    }

    pub(crate) fn finish(&mut self, id: usize) {
        self.sent[id].stage = Stage::Over;
        self.pending.retain(|pending| *pending != id);
    }

    // Time, and what connections do.

    /// After a tick nothing that is due is left.
    pub(crate) fn ticked(&mut self, now: Moment, events: &[Event]) -> Check {
        let effects = Effects::of(events)?;
        for (session, frame, said) in &effects.offers {
            let (reason, waited) = reason_of(said)?;
            let matches = |id: &usize| {
                let sent = &self.sent[*id];
                sent.session == *session && *frame == sent.local_answer(reason)
            };
            let id = self.pending.iter().copied().find(matches);
            let id = id.ok_or_else(|| format!("{said:?} answered nothing"))?;
            let sent = &self.sent[id];
            let age = now.since(sent.received);
            ensure!(age >= self.rules.deadline, "{id} was answered after {age:?}");
            ensure!(waited.is_none_or(|waited| waited == age), "{id} waited {age:?}: {said:?}");
            let right = match reason {
                Reason::Overload => !sent.arrived,
                Reason::Lost => sent.lost,
                Reason::Deadline => !sent.lost,
                _ => false,
            };
            ensure!(right, "{id} was answered for {reason:?}: {sent:?}");
            self.answered_here(id, reason, now, frame)?;
            self.finish(id);
            if reason.forwarded() {
                if self.late.len() >= self.rules.inflight_max {
                    self.late.remove(0);
                }
                self.late.push((id, now.after(self.rules.answer_timeout)));
            }
        }
        self.forget(now, &effects)
    }

    fn forget(&mut self, now: Moment, effects: &Effects<'_>) -> Check {
        let mut unanswered = 0;
        for id in self.pending.clone() {
            let (sent, age) = (&self.sent[id], now.since(self.sent[id].received));
            if sent.answerable() {
                ensure!(age < self.rules.deadline, "{id} has waited {age:?} and still waits");
            } else if age >= self.rules.answer_timeout {
                unanswered += usize::from(sent.expects_answer());
                self.finish(id);
            }
        }
        let said = |said: &&&Outcome| matches!(said, Outcome::Unanswered { .. });
        let counted = effects.said.iter().filter(said).count();
        ensure!(counted == unanswered, "{counted} of {unanswered} unanswered were counted");
        self.late.retain(|(_, until)| *until > now);
        self.asked.retain(|asked| asked.until > now);
        Ok(())
    }

    /// The last connection was lost: requests that were not begun are answered at once, or taken back
    /// in silence.
    pub(crate) fn stranded(&mut self, now: Moment, events: &[Event]) -> Check {
        let effects = Effects::of(events)?;
        for (session, frame, said) in &effects.offers {
            let (reason, _) = reason_of(said)?;
            ensure!(reason == Reason::Unavailable, "{said:?} while stranded");
            let matches = |id: &usize| {
                let sent = &self.sent[*id];
                sent.session == *session && *frame == sent.local_answer(reason) && !sent.lost
            };
            let id = self.pending.iter().copied().find(matches);
            let id = id.ok_or_else(|| format!("{said:?} answered nothing"))?;
            self.answered_here(id, reason, now, frame)?;
            self.finish(id);
        }
        let waits = |id: &usize| self.sent[*id].is_request() && !self.sent[*id].lost;
        let waiting: Vec<_> = self.pending.iter().copied().filter(waits).collect();
        let silence = effects.said.iter().filter(|said| matches!(said, Outcome::Unsent { .. }));
        ensure!(silence.count() == waiting.len(), "{waiting:?} met {:?}", effects.said);
        for id in waiting {
            ensure!(!self.sent[id].answerable(), "{id} waits for no connection");
            self.sent[id].taken_back = true;
            self.finish(id);
        }
        Ok(())
    }

    /// A frame reached the host whole. Returns its number if the network sent it.
    pub(crate) fn arrived(&mut self, arrival: &Arrival) -> Check<usize> {
        let id = self.by_frame.get(&arrival.frame).copied();
        let id = id.ok_or_else(|| {
            format!("the host got {}, which nobody sent", String::from_utf8_lossy(&arrival.frame))
        })?;
        let sent = &mut self.sent[id];
        ensure!(sent.forwarded, "{id} reached the host, and was not forwarded");
        if sent.is_answer() {
            return Ok(id);
        }
        ensure!(!sent.arrived, "{id} reached the host twice");
        sent.arrived = true;
        ensure!(!sent.taken_back, "{id} was taken back and reached the host");
        if let Some((reason, at)) = sent.answered {
            ensure!(reason.forwarded(), "{id} was refused for {reason:?} and reached the host");
            ensure!(arrival.begun <= at, "{id} was sent after it had been answered");
        }
        let last = self.last_at_host.insert(sent.session, id);
        ensure!(last.is_none_or(|last| last < id), "{id} was overtaken by {last:?}");
        Ok(id)
    }

    /// These frames were written whole to a connection that was lost.
    pub(crate) fn lost(&mut self, whole: &[Vec<u8>]) {
        for id in whole.iter().filter_map(|frame| self.by_frame.get(frame)) {
            let sent = &mut self.sent[*id];
            sent.lost = true;
            sent.lost_under_way |= !sent.arrived;
        }
    }

    /// Nothing is under way any more: what was accepted has reached the host, but for what was taken
    /// back and what was lost under way.
    pub(crate) fn is_over(&self) -> Check {
        for (id, sent) in self.sent.iter().enumerate().filter(|(_, sent)| sent.forwarded) {
            let taken_back = sent.answered.is_some() || sent.taken_back;
            let excused = taken_back || sent.lost_under_way || sent.is_answer();
            ensure!(sent.arrived || excused, "{id} never reached the host: {sent:?}");
        }
        let heard = |sent: &&Sent| sent.answerable() && sent.stage != Stage::Unread;
        for sent in self.sent.iter().filter(heard) {
            ensure!(sent.answers == 1, "a request got {} answers: {sent:?}", sent.answers);
        }
        Ok(())
    }
}

//! Messages: what nodes and the store say to each other, and the timers of the nodes.

use tollgate::clock::Moment;

use super::{Event, World};
use crate::cluster::fault::Outage;
use crate::cluster::node::{CallOf, Node, PushOf, ReplyOf, Store};
use crate::cluster::process::{Deed, Life};

impl<N: Node> World<'_, N> {
    /// After each deed: what the node has to say goes out, and its timer is set anew.
    pub(super) fn sends_and_sets_its_timer(&mut self, who: Life) {
        for outgoing in std::mem::take(&mut self.out) {
            self.outcome.count("call sent");
            let is_cut_off = self.process(who).is_some_and(|process| process.is_cut_off);
            self.carry(is_cut_off, || Event::Called(who, outgoing.number, outgoing.call.clone()));
        }
        let now = self.now;
        let Some(process) = self.process(who) else { return };
        let due = process.node.due().map(|due| process.clock.when(due).max(now));
        if let Some(due) = due.filter(|_| !process.has_left)
            && process.armed.is_none_or(|armed| due < armed)
        {
            process.armed = Some(due);
            self.agenda.put(due, Event::Does(who, Deed::Turn(due)));
        }
    }

    /// Puts down what happens when each copy of a message arrives.
    fn carry(&mut self, is_cut_off: bool, arrives: impl Fn() -> Event<N>) {
        if is_cut_off {
            self.outcome.count("message of a node that is cut off");
            return;
        }
        let mut copies = 0;
        for after in self.network.copies() {
            self.agenda.put(self.now.after(after), arrives());
            copies += 1;
        }
        match copies {
            0 => self.outcome.count("message lost"),
            1 => {}
            _ => self.outcome.count("message doubled"),
        }
    }

    /// The timer of a node rings. One that was set anew meanwhile does not.
    pub(super) fn turns(&mut self, who: Life, at: Moment) {
        let (now, mut out) = (self.now, std::mem::take(&mut self.out));
        if let Some(process) = self.process(who).filter(|process| process.armed == Some(at)) {
            process.armed = None;
            let shown = process.clock.shows(now);
            if process.node.due().is_some_and(|due| due <= shown) && !process.has_left {
                process.node.turn(shown, &mut out);
                let is_idle = process.node.due().is_none_or(|due| due > shown);
                assert!(is_idle, "a node that had its turn wants it again at once");
            }
        }
        self.out = out;
    }

    /// A call reaches the store.
    pub(super) fn called(&mut self, by: Life, number: u64, call: CallOf<N>) {
        let outage = self.store.outage(&call);
        match outage {
            Some(Outage::CallsLost) => return self.outcome.count("call found no store"),
            Some(Outage::Refused) => {
                self.outcome.count("call refused");
                return self.carry(false, || Event::Does(by, Deed::Fail(number)));
            }
            Some(Outage::AnswersLost) | None => {}
        }
        if self.store.is_stalled {
            self.stalled.push_back((by, number, call));
            return;
        }
        self.outcome.key_syncs += <N::Store as Store>::keys(&call) as u64;
        let (reply, push) = self.store.call(&call, self.now);
        if outage.is_some() {
            return self.outcome.count("answer lost");
        }
        self.outcome.count("call answered");
        let hears = |world: &mut Self, who| world.process(who).is_none_or(|it| !it.is_cut_off);
        let is_cut_off = !hears(self, by);
        self.carry(is_cut_off, || Event::Does(by, Deed::Answer(number, reply.clone())));
        let Some(push) = push else { return };
        for who in self.lives() {
            if who != by {
                self.outcome.count("push");
                let is_cut_off = !hears(self, who);
                self.carry(is_cut_off, || Event::Does(who, Deed::Hear(push.clone())));
            }
        }
    }

    pub(super) fn hears_an_answer(&mut self, who: Life, number: u64, reply: &ReplyOf<N>) {
        let now = self.now;
        if let Some(process) = self.process(who) {
            process.node.answer(process.clock.shows(now), number, reply);
            if !process.is_open && process.node.has_heard() {
                self.opens(who);
            }
        }
    }

    pub(super) fn hears_of_a_failure(&mut self, who: Life, number: u64) {
        let now = self.now;
        if let Some(process) = self.process(who) {
            process.node.fail(process.clock.shows(now), number);
        }
    }

    pub(super) fn hears_a_push(&mut self, who: Life, push: &PushOf<N>) {
        let now = self.now;
        if let Some(process) = self.process(who) {
            process.node.hear(process.clock.shows(now), push);
        }
    }
}

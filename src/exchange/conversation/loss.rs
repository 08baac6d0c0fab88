//! What becomes of messages whose way to the host is gone.

use std::ops::RangeInclusive;

use super::{Conversation, answer_waiting};
use crate::clock::Moment;
use crate::exchange::{Outcome, Sequence, Sink};
use crate::reason::Reason;
use crate::traffic::Class;

impl Conversation {
    pub(in crate::exchange) fn lost(&mut self, written: &RangeInclusive<Sequence>) {
        let mut at = self.requests.oldest();
        while let Some(place) = at {
            let Some((waiting, next)) = self.requests.value_and_next(place) else { return };
            waiting.lost |= written.contains(&waiting.sequence);
            at = next;
        }
    }

    pub(in crate::exchange) fn stranded(&mut self, now: Moment, sink: &mut impl Sink) {
        let mut at = self.requests.oldest();
        while let Some(place) = at {
            let Some((waiting, next)) = self.requests.value_and_next(place) else { return };
            at = next;
            if sink.withdraw(waiting.sequence)
                && let Some(waiting) = self.requests.remove(place)
            {
                self.sessions.settle(waiting.session);
                answer_waiting(waiting, Reason::Unavailable, &self.gate, now, sink);
            }
        }
        // What may not be answered here gets the silence that it would meet now. A request that was
        // kept would reach the host when its network has long given it up, and put money on hold.
        let mut at = self.others.oldest();
        while let Some(place) = at {
            let Some((waiting, next)) = self.others.value_and_next(place) else { return };
            at = next;
            if waiting.class != Class::Protected
                && sink.withdraw(waiting.sequence)
                && let Some(waiting) = self.others.remove(place)
            {
                let class = waiting.class;
                self.sessions.settle(waiting.session);
                sink.record(Outcome::Unsent { class });
            }
        }
    }
}

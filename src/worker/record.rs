//! Counting and logging what became of messages.
//!
//! Every outcome is counted. A line is written only for what an operator has to act on, and at most
//! one a second and kind where a peer could provoke them at will: a log that floods hides the line
//! that matters. No line holds a byte of a message beyond MTI, STAN and RRN.

use std::sync::Arc;
use std::time::Duration;

use tracing::{debug, warn};

use super::counters::{LinkCounters, Source};
use super::lookout::Lookout;
use crate::clock::Moment;
use crate::count::Word;
use crate::exchange::{Outcome, Side, Stray, Trace};
use crate::gate::{CardCheck, Verdict};
use crate::limits::{LimitSet, Policy};
use crate::reason::Reason;
use crate::traffic::Traffic;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// Approvals that nothing in flight asked for: enough to see whose they are, not enough for a host
/// that repeats itself to fill the disk.
const UNASKED_APPROVALS: u32 = 20;

/// Counts and logs for one link.
#[derive(Debug)]
pub(super) struct Recorder {
    link: Arc<str>,
    counters: Arc<LinkCounters>,
    lookout: Lookout,
    now: Moment,
    malformed: Throttle,
    stray: Throttle,
    unsent: Throttle,
    uncarried: Throttle,
    overload: Throttle,
    overdue: Throttle,
    unasked: Throttle,
    rejected: Throttle,
    cards: Throttle,
}

impl Recorder {
    pub(super) fn new(link: Arc<str>, counters: Arc<LinkCounters>, policy: Arc<Policy>) -> Self {
        Self {
            link,
            lookout: Lookout::new(policy, Arc::clone(&counters)),
            counters,
            now: Moment::START,
            malformed: Throttle::default(),
            stray: Throttle::default(),
            unsent: Throttle::default(),
            uncarried: Throttle::default(),
            overload: Throttle::default(),
            overdue: Throttle::default(),
            unasked: Throttle::per_second(UNASKED_APPROVALS),
            rejected: Throttle::default(),
            cards: Throttle::once_in(MINUTE),
        }
    }

    pub(super) const fn counters(&self) -> &Arc<LinkCounters> {
        &self.counters
    }

    /// When the turn under way, or the last, began.
    pub(super) const fn now(&self) -> Moment {
        self.now
    }

    pub(super) const fn set_now(&mut self, now: Moment) {
        self.now = now;
    }

    /// Every 5 ms.
    pub(super) fn tick(&mut self) {
        self.lookout.tick(self.now);
    }

    pub(super) fn decided(&mut self, traffic: &Traffic, verdict: &Verdict) {
        self.lookout.decided(traffic, verdict, self.now);
    }

    pub(super) fn record(&mut self, outcome: &Outcome) {
        count_outcome(&self.counters, outcome);
        match *outcome {
            Outcome::Answered { reason: Reason::Overload, .. } => {
                if let Some(more) = self.overload.pass(self.now) {
                    let link = &self.link;
                    warn!(%link, more, "answered for overload: the host takes too little");
                }
            }
            Outcome::Answered { reason: Reason::Deadline | Reason::Lost, .. } => {
                if let Some(more) = self.overdue.pass(self.now) {
                    let link = &self.link;
                    warn!(
                        %link, more,
                        "answered at the deadline: the host has the request and has not answered"
                    );
                }
            }
            Outcome::Unsent { .. } => {
                if let Some(more) = self.unsent.pass(self.now) {
                    let link = &self.link;
                    warn!(
                        %link, more,
                        "no way to the host: a message that may not be answered here meets silence, \
                         its sender will repeat it"
                    );
                }
            }
            Outcome::Uncarried { .. } => {
                if let Some(more) = self.uncarried.pass(self.now) {
                    let link = &self.link;
                    warn!(
                        %link, more,
                        "a message that may not be answered here cannot be written in the framing of \
                         the host, and never will: its sender will repeat it in vain"
                    );
                }
            }
            Outcome::Malformed(side, fault) => self.log_fault(side, fault.field, fault.kind.name()),
            Outcome::Unreadable(side, unread) => self.log_fault(side, 0, unread.name()),
            Outcome::Rejected(side, code, Trace { mti, stan, .. }) => {
                if let Some(more) = self.rejected.pass(self.now) {
                    let (link, from) = (&self.link, side.name());
                    warn!(
                        %link, from, %code, %mti, %stan, more,
                        "message came back rejected for its form"
                    );
                }
            }
            Outcome::CardRead(card) => self.check_cards(card),
            Outcome::Stray(stray, trace) => self.log_stray(stray, &trace),
            _ => {}
        }
    }

    fn log_fault(&mut self, side: Side, field: u8, kind: &str) {
        let (link, from) = (&self.link, side.name());
        match self.malformed.pass(self.now) {
            Some(more) => warn!(
                %link, from, field, kind, more,
                "message not readable to its end: is the dialect right?"
            ),
            None => debug!(%link, from, field, kind, "message not readable to its end"),
        }
    }

    fn check_cards(&mut self, card: CardCheck) {
        if self.counters.cards.count(card)
            && let Some(more) = self.cards.pass(self.now)
        {
            let (link, digits) = (&self.link, if card.odd { "odd" } else { "even" });
            warn!(
                %link, digits, more,
                "most card numbers fail the Luhn check: are they where the dialect says, and odd ones \
                 padded on that side? limits by BIN count what does not exist"
            );
        }
    }

    /// An approval whose request was answered otherwise is money on hold that nobody will release:
    /// always a line. There are at most as many as there were requests.
    fn log_stray(&mut self, stray: Stray, trace: &Trace) {
        let Trace { mti, stan, rrn, approves } = trace;
        let (link, kind) = (&self.link, stray.name());
        let unasked = matches!(stray, Stray::Unmatched | Stray::NoSession);
        let throttle = match (approves, unasked) {
            (true, false) => None,
            (true, true) => Some(&mut self.unasked),
            (false, _) => Some(&mut self.stray),
        };
        let Some(more) = throttle.map_or(Some(0), |throttle| throttle.pass(self.now)) else {
            return debug!(%link, kind, %mti, %stan, %rrn, "answer reached nobody");
        };
        let problem = match (approves, stray) {
            (false, _) => "answer reached nobody",
            (true, Stray::Ambiguous) => {
                "approval that fits several requests, given to none of them"
            }
            (true, _) if unasked => "approval that nothing in flight asked for, maybe a second one",
            (true, _) => {
                "approval reached nobody: the host may hold money for a sale that was declined or \
                 broken off"
            }
        };
        warn!(%link, kind, %mti, %stan, %rrn, more, "{problem}");
    }
}

fn count_outcome(counters: &LinkCounters, outcome: &Outcome) {
    match *outcome {
        Outcome::Forwarded { class, pass } => {
            count_in(counters.forwarded.get(class as usize), pass as usize);
        }
        Outcome::Answered { class, reason, limit, waited } => {
            count_in(counters.answered.get(class as usize), reason as usize);
            if let Some(limit) = limit {
                count(counters.refused_by.get(usize::from(limit.0)));
            }
            respond(counters, Source::Proxy, waited);
        }
        Outcome::Unheard { reason, .. } => count(counters.unheard.get(reason as usize)),
        Outcome::Delivered { class, waited } => {
            count(counters.delivered.get(class as usize));
            respond(counters, Source::Host, waited);
        }
        Outcome::HostOriginated => counters.host_originated.count(),
        Outcome::Returned => counters.returned.count(),
        Outcome::Shadowed(limits) => count_each(&counters.shadowed_by, limits),
        Outcome::Forgiven(limits) => count_each(&counters.forgiven_by, limits),
        Outcome::Unanswered { class } => count(counters.unanswered.get(class as usize)),
        Outcome::Forgotten => counters.forgotten.count(),
        Outcome::Unsent { class } => count(counters.unsent.get(class as usize)),
        Outcome::Uncarried { class } => count(counters.uncarried.get(class as usize)),
        Outcome::Malformed(Side::Network, fault) => {
            count(counters.faults.get(fault.kind as usize));
        }
        Outcome::Malformed(Side::Host, fault) => {
            count(counters.host_faults.get(fault.kind as usize));
        }
        Outcome::Unreadable(side, unread) => {
            count_in(counters.unreadable.get(side as usize), unread as usize);
        }
        Outcome::UnknownType(side, part) => {
            count_in(counters.unknown_types.get(side as usize), part as usize);
        }
        Outcome::Rejected(side, ..) => count(counters.rejected.get(side as usize)),
        // Counted with the alarm.
        Outcome::CardRead(_) => {}
        Outcome::Stray(stray, trace) => {
            count_in(counters.strays.get(stray as usize), usize::from(trace.approves));
        }
    }
}

fn count(word: Option<&Word>) {
    if let Some(word) = word {
        word.count();
    }
}

fn count_in<const N: usize>(words: Option<&[Word; N]>, at: usize) {
    count(words.and_then(|words| words.get(at)));
}

fn count_each(words: &[Word], limits: LimitSet) {
    for limit in limits.iter() {
        count(words.get(usize::from(limit.0)));
    }
}

fn respond(counters: &LinkCounters, source: Source, waited: Duration) {
    if let Some(responses) = counters.responses.get(source as usize) {
        responses.record(waited);
    }
}

/// Lets so many lines through in a while, and tells the next one how many were kept back.
#[derive(Debug)]
pub struct Throttle {
    lines_max: u32,
    while_of: Duration,
    began: Option<Moment>,
    lines: u32,
    kept_back: u64,
}

impl Throttle {
    /// At most `lines_max` lines a second.
    pub const fn per_second(lines_max: u32) -> Self {
        Self { lines_max, while_of: SECOND, began: None, lines: 0, kept_back: 0 }
    }

    /// One line in `while_of`.
    pub const fn once_in(while_of: Duration) -> Self {
        Self { lines_max: 1, while_of, began: None, lines: 0, kept_back: 0 }
    }

    /// How many lines were kept back since the last, when this one may be written.
    pub fn pass(&mut self, now: Moment) -> Option<u64> {
        if self.began.is_none_or(|began| now.since(began) >= self.while_of) {
            self.began = Some(now);
            self.lines = 0;
        }
        if self.lines >= self.lines_max {
            self.kept_back += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.kept_back))
    }
}

/// One line a second.
impl Default for Throttle {
    fn default() -> Self {
        Self::per_second(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throttle_tells_how_many_lines_it_kept_back() {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let mut throttle = Throttle::per_second(2);
        let passed: Vec<_> = [0, 1, 2, 3, 999, 1_000, 1_001, 1_002, 9_000]
            .map(|millis| throttle.pass(at(millis)))
            .into();
        let expected =
            [Some(0), Some(0), None, None, None, Some(3), Some(0), None, Some(1)].to_vec();
        assert_eq!(passed, expected);
    }
}

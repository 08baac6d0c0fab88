//! What the limits are met with: how much of their budgets is left, and by whom they are met most.
//!
//! A look at every limit of a message costs more than the decision on it, so one message in sixteen
//! is looked at, at random. Refusals are all looked at, up to a bound in each span of 5 ms: a flood of
//! them is a sample of itself. Nothing here waits: what is counted is handed out once a second to
//! whoever asks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::counters::LinkCounters;
use super::ranking::Ranking;
use crate::clock::Moment;
use crate::gate::Verdict;
use crate::limits::{LIMITS_MAX, LimitIx, LimitSet, Policy};
use crate::traffic::Traffic;

/// One message in so many is looked at.
pub const MESSAGES_PER_LOOK: u32 = 16;
/// Refusals that are looked at between two ticks.
const REFUSALS_PER_TICK: u32 = 16;
/// How often what was counted is handed out.
const HANDOUT: Duration = Duration::from_secs(1);
/// How long a ranking counts before it starts again.
pub const SPAN: Duration = Duration::from_secs(60);

/// By whom one limit was met most.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    /// Of the messages that were looked at.
    pub by: Ranking,
    /// Of those that it refused, or would have refused in shadow mode.
    pub refused: Ranking,
}

impl Met {
    const NOBODY: Self = Self { by: Ranking::EMPTY, refused: Ranking::EMPTY };

    /// With what another counted.
    pub fn add(&mut self, other: &Self) {
        self.by.add(&other.by);
        self.refused.add(&other.refused);
    }
}

/// What one link handed out last.
#[derive(Debug)]
pub struct Handout(Mutex<Spans>);

/// The span before, and the one under way.
type Spans = [Box<[Met]>; 2];

impl Default for Handout {
    fn default() -> Self {
        Self(Mutex::new(Spans::default()))
    }
}

impl Handout {
    /// By whom a limit was met most on this link, in the last one to two minutes.
    pub fn of(&self, limit: LimitIx) -> Met {
        let spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = Met::NOBODY;
        let of_limit = spans.iter().filter_map(|span| span.get(usize::from(limit.0)));
        of_limit.for_each(|met| sum.add(met));
        sum
    }
}

/// Looks at what one link decides.
#[derive(Debug)]
pub(super) struct Lookout {
    policy: Arc<Policy>,
    counters: Arc<LinkCounters>,
    spans: Spans,
    until_look: u32,
    refusals_left: u32,
    handed_out: Moment,
    began: Moment,
    rng: fastrand::Rng,
}

impl Lookout {
    pub(super) fn new(policy: Arc<Policy>, counters: Arc<LinkCounters>) -> Self {
        let limits = policy.limits().len().min(LIMITS_MAX);
        let nobody = || vec![Met::NOBODY; limits].into_boxed_slice();
        let spans = [nobody(), nobody()];
        *counters.met.0.lock().unwrap_or_else(PoisonError::into_inner) = [nobody(), nobody()];
        Self {
            policy,
            counters,
            spans,
            until_look: 1,
            refusals_left: REFUSALS_PER_TICK,
            handed_out: Moment::START,
            began: Moment::START,
            rng: fastrand::Rng::new(),
        }
    }

    /// The limits were asked about a message.
    #[inline]
    pub(super) fn decided(&mut self, traffic: &Traffic, verdict: &Verdict, now: Moment) {
        let mut refusing = verdict.shadowed;
        if let Some(limit) = verdict.refused_by {
            refusing.insert(limit);
        }
        if !refusing.is_empty() && self.refusals_left > 0 {
            self.refusals_left -= 1;
            self.count_refusals(traffic, refusing);
        }
        self.until_look -= 1;
        if self.until_look == 0 {
            self.look(traffic, now);
        }
    }

    #[cold]
    fn count_refusals(&mut self, traffic: &Traffic, refusing: LimitSet) {
        let [_, span] = &mut self.spans;
        for limit in refusing.iter() {
            if let (Some(met), Some(mark)) =
                (span.get_mut(usize::from(limit.0)), self.policy.key_mark(limit, traffic))
            {
                met.refused.count(mark, traffic);
            }
        }
    }

    #[cold]
    fn look(&mut self, traffic: &Traffic, now: Moment) {
        // Evenly from 1 to 31: a peer that sends in a rhythm is not always met at the same beat.
        self.until_look = self.rng.u32(1..2 * MESSAGES_PER_LOOK);
        let [_, span] = &mut self.spans;
        self.policy.peek(traffic, now, |limit, left| {
            let place = usize::from(limit.0);
            if let Some(budget) = self.counters.budgets.get(place) {
                budget.record(left.share);
            }
            if let Some(met) = span.get_mut(place) {
                met.by.count(left.mark, traffic);
            }
        });
    }

    /// Every 5 ms.
    pub(super) fn tick(&mut self, now: Moment) {
        self.refusals_left = REFUSALS_PER_TICK;
        if now.since(self.handed_out) < HANDOUT {
            return;
        }
        self.handed_out = now;
        if now.since(self.began) >= SPAN {
            self.began = now;
            self.spans.swap(0, 1);
            let [_, under_way] = &mut self.spans;
            under_way.fill(Met::NOBODY);
        }
        // Whoever reads holds it for the time of a copy; then the next second will do.
        if let Ok(mut handed_out) = self.counters.met.0.try_lock() {
            for (to, from) in handed_out.iter_mut().zip(&self.spans) {
                to.copy_from_slice(from);
            }
        }
    }
}

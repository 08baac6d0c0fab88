//! What the gate would do with a message, and why, for an operator. It spends nothing.

use super::{Classified, Gate, LocalAnswers, Verdict};
use crate::clock::Moment;
use crate::iso8583::View;
use crate::limits::{Bucket, Dimension, Holder, LimitIx, LimitSet, Mode, Standing};
use crate::traffic::{Class, Traffic};

/// Why tollgate may not answer a message itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Its type is none that is answered for the host: an advice, a reversal, network management.
    Type,
    /// The link says `local_answers = "never"`.
    Setting,
    /// It carries a MAC, so that its answer would have to carry one.
    Mac,
    /// Its STAN could not be read, so that nobody would know its answer.
    Unmatchable,
}

/// A message as the gate sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What it is.
    pub classified: Classified,
    /// Why it may not be answered here; `None`: it may.
    pub silence: Option<Silence>,
    /// How every limit stands to it: those that are asked in the order in which they are, then those
    /// that are off.
    pub standings: Vec<(LimitIx, Standing)>,
    /// What the limits would say.
    pub verdict: Verdict,
}

impl Gate {
    /// Why tollgate may not answer this message itself; `None`: it may. The MTI alone makes a message
    /// answerable; a MAC, the link's setting, or a fault before the STAN may forbid it all the same:
    /// an answer that cannot be matched or verified is worse than none (rules.md 0.6).
    pub fn silence(&self, view: &View<'_>) -> Option<Silence> {
        let local_answers = self.settings.local_answers;
        if !view.mti().answerable() {
            Some(Silence::Type)
        } else if local_answers == LocalAnswers::Never {
            Some(Silence::Setting)
        } else if local_answers == LocalAnswers::UnlessMac && view.has_mac() {
            Some(Silence::Mac)
        } else if view.fault().is_some() && !view.has(STAN) {
            Some(Silence::Unmatchable)
        } else {
            None
        }
    }

    /// What the gate would do with a message now. `can_be_answered` is whether its answer can be
    /// written at all, which is not the gate's to know; `correct` may put what it knows better into
    /// the standings before they are judged.
    pub fn explain(
        &self,
        view: &View<'_>,
        can_be_answered: bool,
        now: Moment,
        correct: impl FnOnce(&Traffic, &mut [(LimitIx, Standing)]),
    ) -> Explanation {
        let classified = self.classify(view);
        let silence = self.silence(view);
        let may_answer = silence.is_none() && can_be_answered;
        let mut standings = self.policy.findings(&classified.traffic, now);
        correct(&classified.traffic, &mut standings);
        let verdict = self.foresee(&standings, classified.traffic.class, may_answer);
        if view.fault().is_some() {
            self.hide_places(&mut standings);
        }
        Explanation { classified, silence, standings, verdict }
    }

    /// Takes merchants and terminals out of the names of keys: behind a wrong length their place may
    /// hold digits of a card. What the configuration names may be seen.
    fn hide_places(&self, standings: &mut [(LimitIx, Standing)]) {
        for (limit, standing) in standings {
            if let Standing::Applies(bucket) = standing
                && bucket.holder != Holder::Named
                && self.is_per_place(*limit)
            {
                HIDDEN.clone_into(&mut bucket.key);
            }
        }
    }

    fn is_per_place(&self, limit: LimitIx) -> bool {
        let rule = self.policy.limits().get(usize::from(limit.0));
        let places = [Dimension::Merchant, Dimension::Terminal];
        rule.is_some_and(|rule| places.into_iter().any(|place| rule.per.has(place)))
    }

    /// What [`Gate::admit`] would say.
    fn foresee(
        &self,
        standings: &[(LimitIx, Standing)],
        class: Class,
        may_answer: bool,
    ) -> Verdict {
        let mut verdict =
            Verdict { refused_by: None, shadowed: LimitSet::EMPTY, forgiven: LimitSet::EMPTY };
        let buckets = standings.iter().filter_map(|(limit, standing)| match standing {
            Standing::Applies(bucket) => Some((*limit, bucket)),
            Standing::Off | Standing::NotFor(_) | Standing::Lacks(_) => None,
        });
        // A named key's floor settles everything, if its limit is enforced.
        let exempt = buckets.clone().any(|(limit, bucket)| {
            let named = bucket.holder == Holder::Named;
            named && bucket.conforms() && self.mode(limit) == Some(Mode::Enforce)
        });
        if class != Class::Protected && !exempt {
            let refuses = |bucket: &Bucket| !bucket.conforms() && !bucket.has_token();
            for (limit, _) in buckets.clone().filter(|(_, bucket)| refuses(bucket)) {
                if self.mode(limit) == Some(Mode::Enforce) {
                    verdict.refused_by = Some(limit);
                    break;
                }
                verdict.shadowed.insert(limit);
            }
        }
        if class == Class::Protected || (verdict.refused_by.is_some() && !may_answer) {
            let forgiven = buckets.filter(|(_, bucket)| bucket.would_forgive());
            forgiven.for_each(|(limit, _)| verdict.forgiven.insert(limit));
        }
        verdict
    }

    fn mode(&self, limit: LimitIx) -> Option<Mode> {
        Some(self.policy.limits().get(usize::from(limit.0))?.mode)
    }
}

/// The name of a key that may hold what does not belong there.
const HIDDEN: &str = "not shown, as the message has a fault";

/// The trace number, by which whoever asked knows the answer again.
const STAN: u8 = 11;

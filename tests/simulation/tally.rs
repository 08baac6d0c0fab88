//! How often each thing happened, so that a simulation that no longer reaches something fails.

use std::collections::BTreeMap;

use tollgate::exchange::{Outcome, Pass, Side, Stray};
use tollgate::reason::Reason;

use crate::effects::Check;

/// Counts by name.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: BTreeMap<String, u32>,
}

impl Tally {
    pub(crate) fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    pub(crate) fn outcome(&mut self, outcome: &Outcome) {
        self.count(match outcome {
            Outcome::Forwarded { pass, .. } => format!("forwarded {}", pass.name()),
            Outcome::Shadowed(_) => "shadowed".to_owned(),
            Outcome::Forgiven(_) => "forgiven".to_owned(),
            Outcome::Answered { reason, .. } => format!("answered {}", reason.name()),
            Outcome::Unheard { .. } => "unheard".to_owned(),
            Outcome::Delivered { .. } => "delivered".to_owned(),
            Outcome::HostOriginated => "host originated".to_owned(),
            Outcome::Returned => "returned".to_owned(),
            Outcome::Malformed(Side::Network, _) => "malformed network".to_owned(),
            Outcome::Malformed(Side::Host, _) => "malformed host".to_owned(),
            Outcome::Unreadable(Side::Network, _) => "unreadable network".to_owned(),
            Outcome::Unreadable(Side::Host, _) => "unreadable host".to_owned(),
            Outcome::UnknownType(side, part) => {
                format!("unknown {} {}", part.name(), side.name())
            }
            Outcome::CardRead(_) => "card read".to_owned(),
            Outcome::Rejected(side, ..) => format!("rejected {}", side.name()),
            Outcome::Uncarried { .. } => "uncarried".to_owned(),
            Outcome::Unsent { .. } => "unsent".to_owned(),
            Outcome::Unanswered { .. } => "unanswered".to_owned(),
            Outcome::Forgotten => "forgotten".to_owned(),
            Outcome::Stray(stray, trace) if trace.approves => {
                format!("stray {} approving", stray.name())
            }
            Outcome::Stray(stray, _) => format!("stray {}", stray.name()),
        });
    }

    /// Everything that can happen has, at least so often.
    pub(crate) fn is_complete(&self, times: u32) -> Check {
        let plain = [
            "shadowed",
            "forgiven",
            "unheard",
            "delivered",
            "host originated",
            "returned",
            "malformed network",
            "malformed host",
            "unreadable network",
            "unreadable host",
            "unsent",
            "unanswered",
            "forgotten",
            "stray late approving",
            "wait",
            "retry taken",
            "connection lost with a frame begun",
            "all connections lost",
            "session closed with answers owed",
            "half-closed session closed",
        ];
        let mut wanted: Vec<String> = plain.into_iter().map(str::to_owned).collect();
        wanted.extend(Pass::ALL.map(|pass| format!("forwarded {}", pass.name())));
        wanted.extend(Stray::ALL.map(|stray| format!("stray {}", stray.name())));
        // A malfunction is a frame that the framing cannot carry, which sessions cannot send; for its
        // form nothing is refused where malformed messages are forwarded.
        let never = [Reason::Malfunction, Reason::Format];
        let reasons = Reason::ALL.into_iter().filter(|reason| !never.contains(reason));
        wanted.extend(reasons.map(|reason| format!("answered {}", reason.name())));
        let seen = |what: &String| self.counts.get(what).copied().unwrap_or_default();
        wanted.retain(|what| seen(what) < times);
        if wanted.is_empty() { Ok(()) } else { Err(format!("too seldom: {wanted:?} of {self:#?}")) }
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (what, count) in other.counts {
            *self.counts.entry(what).or_default() += count;
        }
    }
}

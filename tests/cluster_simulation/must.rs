//! What must come of a workload.

use std::fmt;

use crate::cluster::outcome::{Outcome, Unleased};

/// One demand on the outcome of one seed, or of all seeds together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Must {
    /// No request of a good source is refused.
    RefuseNoGood,
    /// At most one of so many is.
    RefuseOneGoodIn(u64),
    /// What the ideal admits and the nodes do not, in percent of what it admits, window by window.
    Lose(f64),
    /// Tokens beyond burst + rate x time, in the worst window of the worst key.
    Exceed(f64),
    /// The same of keys whose shard of the store is never lost.
    ExceedElsewhere(f64),
    /// Keys of a lost shard go by themselves, of good sources and of others, and no key of another
    /// shard does.
    LeaseAllOthers,
    /// No protected request is refused.
    RefuseNoProtected,
    /// Of what the ideal admits for the limit of this name, the nodes admit so many percent.
    Admit(&'static str, f64),
    /// Every decision is the ideal's.
    AgreeWithIdeal,
}

impl Must {
    pub(crate) fn is_met_by(self, outcome: &Outcome) -> bool {
        match self {
            Self::RefuseNoGood => outcome.false_rejects == 0,
            Self::RefuseOneGoodIn(many) => outcome.false_rejects * many <= outcome.good,
            Self::Lose(percent) => outcome.lost_percent() <= percent,
            Self::Exceed(tokens) => outcome.over.worst <= tokens,
            Self::ExceedElsewhere(tokens) => outcome.over_elsewhere <= tokens,
            Self::LeaseAllOthers => {
                let Unleased { lost_good, lost_other, elsewhere } = outcome.unleased;
                elsewhere == 0 && lost_good > 0 && lost_other > 0
            }
            Self::RefuseNoProtected => outcome.protected_refused == 0,
            Self::Admit(limit, percent) => outcome.admitted_percent(limit) >= percent,
            Self::AgreeWithIdeal => outcome.disagreements == 0,
        }
    }
}

impl fmt::Display for Must {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RefuseNoGood => write!(f, "0 false"),
            Self::RefuseOneGoodIn(many) => write!(f, "<= 1 false in {many}"),
            Self::Lose(percent) => write!(f, "FR <= {percent} %"),
            Self::Exceed(tokens) => write!(f, "over <= {tokens}"),
            Self::ExceedElsewhere(tokens) => write!(f, "over elsewhere <= {tokens}"),
            Self::LeaseAllOthers => write!(f, "all others leased"),
            Self::RefuseNoProtected => write!(f, "protected 0"),
            Self::Admit(limit, percent) => write!(f, "{limit} admits >= {percent} %"),
            Self::AgreeWithIdeal => write!(f, "identical"),
        }
    }
}

//! What goes wrong in a workload.

use std::time::Duration;

/// How a store is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outage {
    /// Calls never reach it.
    CallsLost,
    /// It does what it is told, and nobody hears that it did.
    AnswersLost,
    /// Nodes are told at once that it cannot be reached.
    Refused,
}

/// One thing that goes wrong. Nodes are named by their places.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The store is away.
    StoreDown { how: Outage, lasting: Duration },
    /// One shard of the store is away.
    ShardDown { shard: u16, how: Outage, lasting: Duration },
    /// The store answers everything later, in order.
    StoreStalls { lasting: Duration },
    /// The store forgets everything.
    StoreWiped,
    /// The store is away, and comes back as a replica that has not heard of what was `lost`.
    StoreFailsOver { lost: Duration, lasting: Duration },
    /// The store's wall clock is set.
    ClockSteps { by: Step },
    /// A process dies; another takes its place after a while.
    NodeCrashes { place: usize, back_after: Duration },
    /// All processes die at once and come back.
    AllCrash { back_after: Duration },
    /// One more node, at the next place.
    NodeJoins { place: usize },
    /// A node says its last words and goes.
    NodeLeaves { place: usize },
    /// A node and the store do not hear each other.
    NodeCutOff { place: usize, lasting: Duration },
    /// A process is stopped. What arrives meanwhile waits.
    NodePauses { place: usize, lasting: Duration, wakes: Wakes },
}

/// How a process takes up what has come in while it was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// In the order in which it came.
    InOrder,
    /// Requests first: every worker runs before the sync does.
    WorkersFirst,
}

/// How a clock is set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Forward(Duration),
    Back(Duration),
}

impl Step {
    pub(crate) fn micros(self) -> i64 {
        let micros = |by: Duration| i64::try_from(by.as_micros()).unwrap();
        match self {
            Self::Forward(by) => micros(by),
            Self::Back(by) => -micros(by),
        }
    }
}

impl Fault {
    /// How long it lasts; what happens at once lasts no time.
    pub(crate) const fn lasting(self) -> Duration {
        match self {
            Self::StoreDown { lasting, .. }
            | Self::ShardDown { lasting, .. }
            | Self::StoreStalls { lasting }
            | Self::StoreFailsOver { lasting, .. }
            | Self::NodeCutOff { lasting, .. }
            | Self::NodePauses { lasting, .. } => lasting,
            Self::NodeCrashes { back_after, .. } | Self::AllCrash { back_after } => back_after,
            // The last words have been heard by then, and the process ends.
            Self::NodeLeaves { .. } => Duration::from_millis(500),
            Self::StoreWiped | Self::ClockSteps { .. } | Self::NodeJoins { .. } => Duration::ZERO,
        }
    }

    /// How it is counted.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::StoreDown { .. } => "store went away",
            Self::ShardDown { .. } => "shard went away",
            Self::StoreStalls { .. } => "store stalled",
            Self::StoreWiped => "store wiped",
            Self::StoreFailsOver { .. } => "store failed over",
            Self::ClockSteps { .. } => "store's clock stepped",
            Self::NodeCrashes { .. } => "node crashed",
            Self::AllCrash { .. } => "all nodes crashed",
            Self::NodeJoins { .. } => "node joined",
            Self::NodeLeaves { .. } => "node left",
            Self::NodeCutOff { .. } => "node cut off",
            Self::NodePauses { .. } => "process stopped",
        }
    }
}

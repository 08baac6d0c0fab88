//! The gate: what a message is, and whether it may pass.
//!
//! A view and the time go in, a verdict comes out. It sends nothing, builds no answer (that is
//! `iso8583::reply`) and remembers no message (that is `exchange`).

mod codes;

pub use codes::Codes;

use std::sync::Arc;

use crate::clock::Moment;
use crate::iso8583::{FieldSet, View};
use crate::limits::{LimitIx, LimitSet, Policy};
use crate::traffic::{Class, LinkId, Traffic};

/// How a link answers for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Fields that a local answer takes from its request, byte for byte.
    pub echo: FieldSet,
    /// Field 39 by reason.
    pub codes: Codes,
    /// Whether it answers at all.
    pub local_answers: LocalAnswers,
}

impl Settings {
    /// Default of `echo`: what comes back unchanged in public pairs of request and answer.
    pub const ECHO: [u8; 16] = [2, 3, 4, 7, 11, 12, 13, 19, 24, 25, 32, 33, 37, 41, 42, 49];
}

/// Whether tollgate answers a link's requests itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LocalAnswers {
    /// Unless the request carries a MAC (DE64 or DE128), since the answer would have to carry one.
    #[default]
    UnlessMac,
    /// A request with a MAC too, by an answer without one.
    Always,
    /// Never: nothing is refused on this link, only counted.
    Never,
}

impl LocalAnswers {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::UnlessMac, Self::Always, Self::Never];

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnlessMac => "unless-mac",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

/// What the limits say of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The enforcing limit that has no token for it; `None`: it may pass.
    pub refused_by: Option<LimitIx>,
    /// Limits in shadow mode that would have refused it.
    pub shadowed: LimitSet,
    /// Limits whose debt was full, so that its charge was forgiven.
    pub forgiven: LimitSet,
}

/// One link's gate.
#[derive(Debug)]
pub struct Gate {
    link: LinkId,
    settings: Settings,
    policy: Arc<Policy>,
}

impl Gate {
    /// The gate of `link`, before limits that all links share.
    pub const fn new(link: LinkId, settings: Settings, policy: Arc<Policy>) -> Self {
        Self { link, settings, policy }
    }

    /// How this link answers for itself.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the limiter needs to know of a message.
    pub fn classify(&self, view: &View<'_>) -> Traffic {
        let operation = view.operation();
        let class = if view.mti().answerable() { operation.class() } else { Class::Protected };
        Traffic {
            link: self.link,
            class,
            operation,
            bin: view.pan().and_then(|pan| pan.bin()),
            merchant: view.merchant(),
        }
    }

    /// Whether tollgate may answer this message itself. The MTI alone makes it answerable; a MAC,
    /// the link's setting, or a fault before the STAN may forbid it all the same: an answer that
    /// cannot be matched or verified is worse than none (rules.md 0.6).
    pub fn may_answer(&self, view: &View<'_>) -> bool {
        let permitted = match self.settings.local_answers {
            LocalAnswers::UnlessMac => !view.has_mac(),
            LocalAnswers::Always => true,
            LocalAnswers::Never => false,
        };
        let matchable = view.fault().is_none() || view.has(11);
        view.mti().answerable() && permitted && matchable
    }

    /// Asks the limits. What may not be answered may not be refused either: the verdict still names
    /// the limit, but the message is charged as if it had passed.
    pub fn admit(&self, traffic: &Traffic, may_answer: bool, now: Moment) -> Verdict {
        let mut verdict = Verdict {
            refused_by: None,
            shadowed: LimitSet::default(),
            forgiven: LimitSet::default(),
        };
        if traffic.class != Class::Protected {
            let decision = self.policy.decide(traffic, now);
            verdict.refused_by = decision.refused_by;
            verdict.shadowed = decision.shadowed;
        }
        if traffic.class == Class::Protected || (verdict.refused_by.is_some() && !may_answer) {
            verdict.forgiven = self.policy.charge(traffic, now).forgiven;
        }
        verdict
    }
}

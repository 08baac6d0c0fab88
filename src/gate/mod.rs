//! The gate: what a message is, and whether it may pass.
//!
//! A view and the time go in, a verdict comes out. It sends nothing, builds no answer (that is
//! `iso8583::Composer`) and remembers no message (that is `exchange`).

mod codes;
mod explain;

pub use codes::Codes;
pub use explain::{Explanation, Silence};

use std::fmt;
use std::sync::Arc;

use crate::clock::Moment;
use crate::iso8583::{FieldSet, View};
use crate::limits::{Digests, Dimension, LimitIx, LimitSet, Policy};
use crate::traffic::{Class, Classes, LinkId, Operation, Operations, Traffic};

/// How a link answers for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Fields that a local answer takes from its request, byte for byte.
    pub echo: FieldSet,
    /// Field 39 by reason.
    pub codes: Codes,
    /// Whether it answers at all.
    pub local_answers: LocalAnswers,
    /// What becomes of a message of the network that cannot be read to its end.
    pub malformed: Malformed,
    /// What its processing codes mean.
    pub operations: Operations,
    /// How gladly its requests are refused.
    pub classes: Classes,
}

impl Settings {
    /// Default of `echo`: what comes back unchanged in public pairs of request and answer.
    pub const ECHO: [u8; 16] = [2, 3, 4, 7, 11, 12, 13, 19, 24, 25, 32, 33, 37, 41, 42, 49];
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            echo: FieldSet::of(&Self::ECHO),
            codes: Codes::default(),
            local_answers: LocalAnswers::default(),
            malformed: Malformed::default(),
            operations: Operations::default(),
            classes: Classes::default(),
        }
    }
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

/// What becomes of a message of the network that cannot be read to its end. Whatever is chosen,
/// what tollgate may not answer is forwarded: an advice or a reversal is never lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Malformed {
    /// It is forwarded unchanged, and the limits see what was read of it: a wrong line in a dialect
    /// must not decline sales.
    #[default]
    Forward,
    /// A request of which the STAN was read is answered with the code for a wrong format.
    Answer,
    /// A request is not forwarded, and its session is closed.
    Close,
}

impl Malformed {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Forward, Self::Answer, Self::Close];

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Answer => "answer",
            Self::Close => "close",
        }
    }
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified {
    /// What the limiter needs to know of it.
    pub traffic: Traffic,
    /// Its card number, if it has one.
    pub card: Option<CardCheck>,
}

/// A message that was classified, on its way to [`Gate::admit`].
#[derive(Clone)]
pub struct Looked {
    /// What it is.
    pub classified: Classified,
    digests: Digests,
}

/// Nothing: where a message has a fault, a merchant's place may hold what is nobody's business.
impl fmt::Debug for Looked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Looked(..)")
    }
}

/// Whether a card number's last digit checks the others. Where most of an odd number of digits fail,
/// the dialect most likely has the padding of odd digits on the wrong side, and every BIN of theirs
/// is read one place off; where all fail, field 2 is read somewhere else than it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardCheck {
    /// Its digits are odd in number.
    pub odd: bool,
    /// Its last digit is the check digit (Luhn) of the others.
    pub passes: bool,
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

    /// What a message is.
    pub fn classify(&self, view: &View<'_>) -> Classified {
        let Settings { operations, classes, .. } = &self.settings;
        let code = view.processing_code();
        let operation = code.map_or(Operation::Other, |code| operations.of(code));
        let answerable = view.mti().answerable();
        let class = if answerable { classes.of(operation) } else { Class::Protected };
        let pan = view.pan();
        let wanted = |dimension| self.policy.needs().has(dimension);
        let traffic = Traffic {
            link: self.link,
            class,
            operation,
            bin: pan.and_then(|pan| pan.bin()),
            merchant: if wanted(Dimension::Merchant) { view.merchant() } else { None },
            terminal: if wanted(Dimension::Terminal) { view.terminal() } else { None },
            mcc: if wanted(Dimension::Mcc) { view.mcc() } else { None },
        };
        let card = pan.map(|pan| CardCheck { odd: pan.is_odd(), passes: pan.passes_luhn() });
        Classified { traffic, card }
    }

    /// What a message is, with what leads to its buckets asked for.
    #[inline]
    pub fn look(&self, view: &View<'_>) -> Looked {
        let mut looked = Looked { classified: self.classify(view), digests: Digests::none() };
        self.policy.look_ahead(&looked.classified.traffic, &mut looked.digests);
        looked
    }

    /// Asks for the buckets themselves, some time after [`look`](Self::look).
    #[inline]
    pub fn fetch(&self, looked: &Looked) {
        self.policy.fetch(&looked.digests);
    }

    /// Whether tollgate may answer this message itself.
    pub fn may_answer(&self, view: &View<'_>) -> bool {
        self.silence(view).is_none()
    }

    /// Asks the limits. What may not be answered may not be refused either: the verdict still names
    /// the limit, but the message is charged as if it had passed.
    pub fn admit(&self, looked: &mut Looked, may_answer: bool, now: Moment) -> Verdict {
        let Looked { classified: Classified { traffic, .. }, digests } = looked;
        let mut verdict = Verdict {
            refused_by: None,
            shadowed: LimitSet::default(),
            forgiven: LimitSet::default(),
        };
        if traffic.class != Class::Protected {
            let decision = self.policy.decide_with(traffic, digests, now);
            verdict.refused_by = decision.refused_by;
            verdict.shadowed = decision.shadowed;
        }
        if traffic.class == Class::Protected || (verdict.refused_by.is_some() && !may_answer) {
            verdict.forgiven = self.policy.charge_with(traffic, digests, now).forgiven;
        }
        verdict
    }
}

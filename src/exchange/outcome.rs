//! What became of a message, for those who count and log: the exchange itself does neither.

use std::time::Duration;

use crate::gate::CardCheck;
use crate::iso8583::{Fault, Mti, MtiPart, View};
use crate::limits::{LimitIx, LimitSet};
use crate::reason::Reason;
use crate::traffic::{Class, Text, Traffic};
use crate::wire::RejectCode;

/// Something that happened to one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A message of the network was queued for the host, unchanged.
    Forwarded {
        /// Its class.
        class: Class,
        /// Why it was let through.
        pass: Pass,
    },
    /// Limits in shadow mode would have refused it.
    Shadowed(LimitSet),
    /// It was protected, and limits were so deep in debt that its charge was forgiven.
    Forgiven(LimitSet),
    /// tollgate answered a request itself.
    Answered {
        /// Its class.
        class: Class,
        /// Why.
        reason: Reason,
        /// The limit, when that was the reason.
        limit: Option<LimitIx>,
        /// From the request's arrival to this answer.
        waited: Duration,
    },
    /// tollgate's own answer reached nobody: its session is gone, or takes no more bytes.
    Unheard {
        /// Its class.
        class: Class,
        /// Why it was answered.
        reason: Reason,
    },
    /// The host's answer was queued for the session that asked, unchanged.
    Delivered {
        /// The request's class.
        class: Class,
        /// From the request's arrival to this answer.
        waited: Duration,
    },
    /// A message that the host originated was queued for a session.
    HostOriginated,
    /// The network's answer to such a message was queued for the host.
    Returned,
    /// A message that cannot be read to its end. It went its way all the same.
    Malformed(Side, Fault),
    /// A message without so much as an MTI: forwarded if it came from the network, else dropped.
    Unreadable(Side, Unread),
    /// A message with a digit in its MTI that the standard does not give.
    UnknownType(Side, MtiPart),
    /// A card number was read from a message of the network.
    CardRead(CardCheck),
    /// A message came back rejected for its form, from the side to which it had gone.
    Rejected(Side, RejectCode, Trace),
    /// A message that tollgate may not answer found no connection to the host: silence. Its sender
    /// keeps it and sends it again.
    Unsent {
        /// Its class.
        class: Class,
    },
    /// A message that tollgate may not answer cannot be written in the framing of the host. Its sender
    /// keeps it and sends it again, in vain.
    Uncarried {
        /// Its class.
        class: Class,
    },
    /// The host has not answered a protected message within `answer_timeout`.
    Unanswered {
        /// Its class.
        class: Class,
    },
    /// The oldest protected message in flight was forgotten to make room for a newer one; its answer
    /// will find nobody.
    Forgotten,
    /// An answer, or a message of the host's own, that reached nobody.
    Stray(Stray, Trace),
}

/// Why a message was let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Every limit that applies had a token for it.
    Admitted,
    /// It is never refused.
    Protected,
    /// It would have been refused, but tollgate may not answer it.
    Unenforceable,
    /// It has no MTI, so that no limit applies.
    Unread,
}

impl Pass {
    /// Every one, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Admitted, Self::Protected, Self::Unenforceable, Self::Unread];

    /// How a message of this class is let through. `enforceable` is false when it would have been
    /// refused but for having to pass.
    pub const fn of(traffic: &Traffic, enforceable: bool) -> Self {
        match (traffic.class, enforceable) {
            (Class::Protected, _) => Self::Protected,
            (_, true) => Self::Admitted,
            (_, false) => Self::Unenforceable,
        }
    }

    /// The name in metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admitted => "forward",
            Self::Protected => "pass_protected",
            Self::Unenforceable => "unenforceable",
            Self::Unread => "pass_unread",
        }
    }
}

/// From whom a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From a session of the link.
    Network,
    /// From a connection to the host.
    Host,
}

/// What was missing of a message of which nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The header that the link's messages have.
    Header,
    /// An MTI.
    Mti,
}

impl Unread {
    /// Both, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Header, Self::Mti];

    /// The name in logs and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "no_header",
            Self::Mti => "no_mti",
        }
    }
}

impl Side {
    /// Both, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Network, Self::Host];

    /// The name in logs and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Host => "host",
        }
    }
}

/// Why an answer reached nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stray {
    /// tollgate had answered at the deadline.
    Late,
    /// The session that asked is gone, or takes no more bytes.
    Undeliverable,
    /// No request in flight fits it.
    Unmatched,
    /// Several requests in flight fit it, and they are not the same.
    Ambiguous,
    /// A message of the host's own while no session is open.
    NoSession,
}

impl Stray {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Late, Self::Undeliverable, Self::Unmatched, Self::Ambiguous, Self::NoSession];

    /// The name in logs and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Late => "late",
            Self::Undeliverable => "undeliverable",
            Self::Unmatched => "unmatched",
            Self::Ambiguous => "ambiguous",
            Self::NoSession => "no_session",
        }
    }
}

/// What may be said of a message in a log: enough to find it on the other side, nothing of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Its MTI.
    pub mti: Mti,
    /// DE11.
    pub stan: Text<12>,
    /// DE37; empty if the message cannot be read to its end. Behind a wrong length its place may
    /// hold twelve digits of a card, where six are the most that may be shown.
    pub rrn: Text<12>,
    /// It answers an authorization or financial request, and Field 39 approves, or was not read for a
    /// fault before it: the host has, or may have, put a hold on somebody's money.
    pub approves: bool,
}

impl Trace {
    pub(super) fn of(view: &View<'_>) -> Self {
        let mti = view.mti();
        // The same code in an answer to an advice, a reversal or an echo moves no money.
        let of_request = matches!((mti.class(), mti.function()), (1 | 2, 1));
        let sound = view.fault().is_none();
        let code = view.text::<4>(39);
        let approves = of_request
            && code.map_or(!sound, |code| crate::iso8583::approves(mti.version(), code.as_bytes()));
        let rrn = if sound { view.text(37) } else { None };
        Self {
            mti,
            stan: view.text(11).unwrap_or_default(),
            rrn: rrn.unwrap_or_default(),
            approves,
        }
    }
}

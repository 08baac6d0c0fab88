//! What a host is told to do: one behaviour, or one after the other.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::iso8583::{Mti, View};
use crate::traffic::Operation;

const AMOUNT: u8 = 4;
/// An exponential tail is cut here, in means: one answer in 3,000 would take longer.
const TAIL_MAX: f64 = 8.0;

/// What a host does.
#[derive(Clone, Debug, PartialEq)]
pub enum Script {
    /// Answers as an issuer does.
    Issuer(Behaviour),
    /// Answers as an issuer whose days are good and bad.
    Phases(Phases),
}

/// One behaviour after the other, from the moment on that a host hears of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Phases {
    /// In their order. Of none, nothing comes: the host is prompt.
    pub phases: Vec<Phase>,
    /// What follows the last of them.
    pub at_the_end: AtTheEnd,
}

/// A behaviour for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// How long it lasts.
    pub lasts: Duration,
    /// Whether it begins with closing every connection.
    pub close_all: bool,
    /// What the host does meanwhile.
    pub behaviour: Behaviour,
}

/// What follows the last phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtTheEnd {
    /// The last phase goes on.
    #[default]
    Hold,
    /// The first phase comes again.
    Repeat,
}

/// How an issuer answers. Shares are 0 to 1 and drawn for each message on its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// How long it takes.
    pub latency: Latency,
    /// The share that takes `late_by` longer.
    pub late_share: f64,
    /// How much longer those take.
    pub late_by: Latency,
    /// The share that it never answers.
    pub dropped_share: f64,
    /// The share of requests that it declines for want of funds: 51, or what the version has for it.
    /// Advices and reversals are never declined.
    pub declined_share: f64,
    /// When it closes a connection.
    pub closing: Closing,
    /// Bytes a second that it reads of each connection at most; the rest stays with the sender.
    pub slow_read: Option<u32>,
    /// Whether it accepts connections; while it does not, it has none.
    pub listening: bool,
    /// What is different for some messages; the first that matches holds.
    pub exceptions: Vec<Exception>,
}

impl Behaviour {
    /// Approves everything at once.
    pub const PROMPT: Self = Self {
        latency: Latency::NONE,
        late_share: 0.0,
        late_by: Latency::NONE,
        dropped_share: 0.0,
        declined_share: 0.0,
        closing: Closing::NEVER,
        slow_read: None,
        listening: true,
        exceptions: Vec::new(),
    };

    /// The exception that holds for this message.
    pub(super) fn exception(&self, view: &View<'_>) -> Option<&Exception> {
        self.exceptions.iter().find(|exception| exception.of.matches(view))
    }
}

/// When a host closes a connection, with all that it still owes there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Closing {
    /// After so many messages of the connection; what is due at that moment is still written.
    pub after: Option<u32>,
    /// At this share of messages, in place of their answers.
    pub share: f64,
    /// Whether the last that it writes is the first half of the answer to the message at which it
    /// closes.
    pub mid_frame: bool,
}

impl Closing {
    /// Leaves that to its peers.
    pub const NEVER: Self = Self { after: None, share: 0.0, mid_frame: false };
}

/// Something else for some messages. What it does not name is as the behaviour has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Exception {
    /// Which messages.
    pub of: Match,
    /// Field 39 of answers to requests; advices and reversals are answered as ever.
    pub code: Option<String>,
    /// How long an answer takes.
    pub latency: Option<Latency>,
    /// The share that is never answered.
    pub dropped_share: Option<f64>,
}

/// Which messages: those that have all that is named here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Match {
    /// This very type; its repeats have another.
    pub mti: Option<Mti>,
    /// The first eight digits of the card number, as a number.
    pub bin: Option<RangeInclusive<u32>>,
    /// Field 42 without the blanks that fill it, of whatever acquirer.
    pub merchant: Option<String>,
    /// What the transaction does.
    pub operation: Option<Operation>,
    /// Field 4, in the currency's smallest unit.
    pub amount: Option<RangeInclusive<u64>>,
}

impl Match {
    fn matches(&self, view: &View<'_>) -> bool {
        let bin = |range: &RangeInclusive<u32>| {
            let bin = view.pan().and_then(|pan| pan.bin());
            bin.is_some_and(|bin| range.contains(&bin.number()))
        };
        self.mti.is_none_or(|mti| view.mti() == mti)
            && self.bin.as_ref().is_none_or(bin)
            && self.merchant.as_ref().is_none_or(|name| is_merchant(view, name))
            && self.operation.is_none_or(|operation| view.operation() == operation)
            && self
                .amount
                .as_ref()
                .is_none_or(|range| amount(view).is_some_and(|amount| range.contains(&amount)))
    }
}

fn is_merchant(view: &View<'_>, name: &str) -> bool {
    let Some(merchant) = view.merchant() else { return false };
    // An acquirer is digits, so the first colon parts the two.
    let acceptor = merchant.name().splitn(2, |byte| *byte == b':').nth(1);
    acceptor == Some(name.as_bytes())
}

fn amount(view: &View<'_>) -> Option<u64> {
    std::str::from_utf8(view.text::<12>(AMOUNT)?.as_bytes()).ok()?.parse().ok()
}

/// How long an answer takes. The host's timers are good for about a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// Always the same.
    Exactly(Duration),
    /// Anything in between, evenly.
    Between(Duration, Duration),
    /// At least `least`, and on average `tail` more, with the long tail of a queue.
    Tailed {
        /// The shortest.
        least: Duration,
        /// What it takes longer on average.
        tail: Duration,
    },
}

impl Latency {
    /// No time.
    pub const NONE: Self = Self::Exactly(Duration::ZERO);

    /// At least `least`, and more: `tail` on average if there is one, or else up to `jitter`.
    pub fn of(least: Duration, jitter: Option<Duration>, tail: Option<Duration>) -> Self {
        match (jitter, tail) {
            (_, Some(tail)) => Self::Tailed { least, tail },
            (Some(jitter), None) => Self::Between(least, least.saturating_add(jitter)),
            (None, None) => Self::Exactly(least),
        }
    }

    pub(super) fn draw(self, luck: &mut fastrand::Rng) -> Duration {
        match self {
            Self::Exactly(latency) => latency,
            Self::Between(least, most) => least + most.saturating_sub(least).mul_f64(luck.f64()),
            Self::Tailed { least, tail } => {
                // 1 - f64() is above 0, so the logarithm is finite.
                let means = -(1.0 - luck.f64()).ln();
                least + tail.mul_f64(means.min(TAIL_MAX))
            }
        }
    }
}

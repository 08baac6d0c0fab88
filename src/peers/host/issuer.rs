//! What a host answers, and when.

use std::sync::Arc;
use std::time::Duration;

use crate::iso8583::{Dialect, FieldSet, Mti, MtiEncoding, Spans, View};
use crate::peers::Message;

/// What issuers give back unchanged.
const ECHO: FieldSet = FieldSet::of(&[
    2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 18, 19, 24, 25, 32, 33, 37, 41, 42, 49, 50, 51, 70,
]);
const AUTHORIZATION_CODE: u8 = 38;
const RESPONSE_CODE: u8 = 39;
const APPROVED: &str = "00";
const NOT_SUFFICIENT_FUNDS: &str = "51";
/// An exponential tail is cut here, in means: one answer in 3,000 would take longer.
const TAIL_MAX: f64 = 8.0;

/// What a host does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Script {
    /// Gives every message back at once as its own answer, read no further than its MTI: for
    /// measuring what stands before the host. MTIs in ASCII only.
    Echo,
    /// Answers as an issuer does.
    Issuer(Behaviour),
}

/// How an issuer answers. Shares are 0 to 1 and drawn for each message on its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Behaviour {
    /// How long it takes.
    pub latency: Latency,
    /// The share that takes `slow` in place of `latency`.
    pub slow_share: f64,
    /// How long those take.
    pub slow: Latency,
    /// The share that it never answers.
    pub dropped_share: f64,
    /// The share of requests that it declines (51). Advices and reversals are never declined.
    pub declined_share: f64,
}

impl Behaviour {
    /// Approves everything at once.
    pub const PROMPT: Self = Self {
        latency: Latency::Exactly(Duration::ZERO),
        slow_share: 0.0,
        slow: Latency::Exactly(Duration::ZERO),
        dropped_share: 0.0,
        declined_share: 0.0,
    };
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
    fn draw(self, luck: &mut fastrand::Rng) -> Duration {
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

/// One connection's issuer.
pub(super) struct Issuer {
    dialect: Arc<Dialect>,
    spans: Spans,
    luck: fastrand::Rng,
}

/// What becomes of one frame.
pub(super) struct Reply {
    /// What it was, if that could be read.
    pub(super) mti: Option<Mti>,
    /// The answer and how long it takes.
    pub(super) answer: Option<(Duration, Vec<u8>)>,
}

impl Issuer {
    pub(super) fn new(dialect: Arc<Dialect>, luck: fastrand::Rng) -> Self {
        Self { dialect, spans: Spans::default(), luck }
    }

    pub(super) fn reply(&mut self, frame: &[u8], script: Script) -> Reply {
        match script {
            Script::Echo => self.echo(frame),
            Script::Issuer(behaviour) => self.judge(frame, &behaviour),
        }
    }

    fn echo(&self, frame: &[u8]) -> Reply {
        let head = frame.split_first_chunk::<4>();
        let readable = head.filter(|_| self.dialect.mti() == MtiEncoding::Ascii);
        let read = readable.and_then(|(digits, rest)| {
            Some((Mti::from_digits(digits.map(|digit| digit.wrapping_sub(b'0')))?, rest))
        });
        let Some((mti, rest)) = read else { return Reply { mti: None, answer: None } };
        let answer = mti.response().map(|response| {
            let mut answer = Vec::with_capacity(frame.len());
            self.dialect.mti().write(response, &mut answer);
            answer.extend_from_slice(rest);
            (Duration::ZERO, answer)
        });
        Reply { mti: Some(mti), answer }
    }

    fn judge(&mut self, frame: &[u8], behaviour: &Behaviour) -> Reply {
        let Self { dialect, spans, luck } = self;
        let Ok(view) = View::parse(dialect, frame, spans) else {
            return Reply { mti: None, answer: None };
        };
        let mti = view.mti();
        let ignored = Reply { mti: Some(mti), answer: None };
        let Some(answer) = Message::answer_to(&view, &ECHO) else { return ignored };
        if luck.f64() < behaviour.dropped_share {
            return ignored;
        }
        let answer = if mti.answerable() && luck.f64() < behaviour.declined_share {
            answer.field(RESPONSE_CODE, NOT_SUFFICIENT_FUNDS)
        } else if mti.answerable() {
            let code = format!("{:06}", luck.u32(0..1_000_000));
            answer.field(AUTHORIZATION_CODE, code).field(RESPONSE_CODE, APPROVED)
        } else {
            answer.field(RESPONSE_CODE, APPROVED)
        };
        let slow = luck.f64() < behaviour.slow_share;
        let latency = if slow { behaviour.slow } else { behaviour.latency };
        let mut encoded = Vec::new();
        // A dialect whose field 39 takes no code of 1987 gets no answers.
        let built = answer.encode(dialect, &mut encoded).is_ok();
        let answer = built.then(|| (latency.draw(luck), encoded));
        Reply { mti: Some(mti), answer }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer() -> Issuer {
        let dialect = Arc::new(Dialect::preset("iso87_ascii").unwrap());
        Issuer::new(dialect, fastrand::Rng::with_seed(7))
    }

    fn frame(message: &Message) -> Vec<u8> {
        let mut frame = Vec::new();
        message.encode(&Dialect::preset("iso87_ascii").unwrap(), &mut frame).unwrap();
        frame
    }

    fn answers(mti: &str, behaviour: Behaviour) -> Vec<(Duration, String)> {
        let frame = frame(&Message::new(mti).field(11, "000042").field(41, "TERM1"));
        let mut issuer = issuer();
        (0..1_000)
            .filter_map(|_| issuer.reply(&frame, Script::Issuer(behaviour)).answer)
            .map(|(latency, answer)| (latency, String::from_utf8(answer).unwrap()))
            .collect()
    }

    #[test]
    fn a_prompt_issuer_approves_requests_with_a_code_and_the_rest_without() {
        for (latency, answer) in answers("0100", Behaviour::PROMPT) {
            assert_eq!(latency, Duration::ZERO);
            assert!(answer.starts_with("01100020000006800000000042"), "{answer}");
            assert!(answer.ends_with("00TERM1   "), "{answer}");
        }
        let (_, answer) = &answers("0421", Behaviour::PROMPT)[0];
        assert_eq!(answer, "0430002000000280000000004200TERM1   ");
        assert!(answers("0110", Behaviour::PROMPT).is_empty());
    }

    #[test]
    fn shares_are_shares() {
        let latency =
            Latency::Tailed { least: Duration::from_millis(8), tail: Duration::from_millis(4) };
        let slow = Latency::Between(Duration::from_secs(1), Duration::from_secs(2));
        let behaviour = Behaviour {
            latency,
            slow,
            slow_share: 0.25,
            dropped_share: 0.5,
            declined_share: 0.125,
        };
        let about = |count: usize, expected: usize| count.abs_diff(expected) < expected / 3;
        let drawn = answers("0200", behaviour);
        assert!(about(drawn.len(), 500), "{}", drawn.len());
        let slow = drawn.iter().filter(|(latency, _)| *latency >= Duration::from_secs(1)).count();
        assert!(about(slow, 125), "{slow}");
        let declined = drawn.iter().filter(|(_, answer)| answer.contains("51TERM1")).count();
        assert!(about(declined, 62), "{declined}");
        let most = drawn.iter().map(|(latency, _)| *latency).max().unwrap();
        assert!(most <= Duration::from_secs(2));
        assert!(drawn.iter().all(|(latency, _)| *latency >= Duration::from_millis(8)));
        assert!(answers("0120", behaviour).iter().all(|(_, answer)| answer.contains("00TERM1")));
    }

    #[test]
    fn an_echo_changes_nothing_but_the_message_type() {
        let request = frame(&Message::new("0201").field(2, "4111111111111111").field(11, "1"));
        let Reply { mti, answer } = issuer().reply(&request, Script::Echo);
        assert_eq!(mti.map(Mti::number), Some(201));
        let (latency, answer) = answer.unwrap();
        assert_eq!((latency, &answer[..4]), (Duration::ZERO, &b"0210"[..]));
        assert_eq!(answer[4..], request[4..]);
        assert!(issuer().reply(b"02", Script::Echo).mti.is_none());
    }
}

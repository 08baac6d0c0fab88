//! What a host answers, and when.

use std::sync::Arc;
use std::time::Duration;

use super::behaviour::Behaviour;
use crate::iso8583::{Dialect, FieldSet, Mti, Spans, View, approves};
use crate::peers::Message;
use crate::traffic::Text;
use crate::wire::Header;

/// What issuers give back unchanged.
const ECHO: FieldSet = FieldSet::of(&[
    2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 18, 19, 24, 25, 32, 33, 37, 41, 42, 49, 50, 51, 70,
]);
const AUTHORIZATION_CODE: u8 = 38;
const RESPONSE_CODE: u8 = 39;

/// Field 39 of an answer, as text.
pub(super) type Code = Text<4>;

/// One connection's issuer.
pub(super) struct Issuer {
    dialect: Arc<Dialect>,
    header: Header,
    spans: Spans,
    luck: fastrand::Rng,
}

/// What becomes of one frame.
pub(super) struct Reply {
    /// What it was, if that could be read.
    pub(super) mti: Option<Mti>,
    /// Whether it could not be read to its end.
    pub(super) faulty: bool,
    /// What it gets.
    pub(super) answer: Answered,
}

/// What the host does about a message.
pub(super) enum Answered {
    /// It answers.
    With(Answer),
    /// It could answer and keeps silent.
    Dropped,
    /// Nobody answers such a message, or not in this dialect.
    Not,
}

/// An answer and when it leaves.
pub(super) struct Answer {
    /// How long it takes.
    pub(super) wait: Duration,
    /// Whether it takes longer than answers do.
    pub(super) late: bool,
    /// What Field 39 says.
    pub(super) code: Code,
    /// Header and message.
    pub(super) frame: Vec<u8>,
}

impl Issuer {
    pub(super) fn new(dialect: Arc<Dialect>, header: Header, luck: fastrand::Rng) -> Self {
        Self { dialect, header, spans: Spans::default(), luck }
    }

    /// Whether something that happens to this share of messages happens to this one.
    pub(super) fn draws(&mut self, share: f64) -> bool {
        self.luck.f64() < share
    }

    /// Answers as an issuer of this behaviour.
    pub(super) fn judge(&mut self, frame: &[u8], behaviour: &Behaviour) -> Reply {
        let Self { dialect, header, spans, luck } = self;
        let Ok(opened) = header.open(frame) else { return Reply::UNREADABLE };
        let Ok(view) = View::parse(dialect, opened.body, spans) else { return Reply::UNREADABLE };
        let mti = view.mti();
        let reply = |answer| Reply { mti: Some(mti), faulty: view.fault().is_some(), answer };
        let answer = Message::answer_to(&view, &ECHO);
        // A reject is its own answer.
        let Some(answer) = answer.filter(|_| opened.rejected.is_none()) else {
            return reply(Answered::Not);
        };
        let exception = behaviour.exception(&view);
        let dropped = exception.and_then(|exception| exception.dropped_share);
        if luck.f64() < dropped.unwrap_or(behaviour.dropped_share) {
            return reply(Answered::Dropped);
        }
        let declined = luck.f64() < behaviour.declined_share;
        let code = match exception.and_then(|exception| exception.code.as_deref()) {
            Some(code) if mti.answerable() => code,
            None if mti.answerable() && declined => not_sufficient_funds(mti),
            _ => accepted(mti),
        };
        let mut answer = answer.field(RESPONSE_CODE, code);
        if mti.answerable() && approves(mti.version(), code.as_bytes()) {
            answer = answer.field(AUTHORIZATION_CODE, format!("{:06}", luck.u32(0..1_000_000)));
        }
        let latency = exception.and_then(|exception| exception.latency);
        let mut wait = latency.unwrap_or(behaviour.latency).draw(luck);
        let late = luck.f64() < behaviour.late_share;
        if late {
            wait = wait.saturating_add(behaviour.late_by.draw(luck));
        }
        let mut answered = Vec::with_capacity(frame.len());
        header.answer(frame, &mut answered);
        if answer.encode(dialect, &mut answered).is_err() {
            return reply(Answered::Not);
        }
        header.seal(&mut answered);
        let code = Code::cut(code.as_bytes());
        reply(Answered::With(Answer { wait, late, code, frame: answered }))
    }
}

impl Reply {
    const UNREADABLE: Self = Self { mti: None, faulty: true, answer: Answered::Not };
}

/// What an issuer says that has done what it was asked. From 1993 on each kind of message has a
/// digit of its own for it.
const fn accepted(mti: Mti) -> &'static str {
    match (mti.version(), mti.class()) {
        (0, _) => "00",
        (1, 4) => "400",
        (1, 5) => "500",
        (1, 8) => "800",
        (1, _) => "000",
        (_, 4) => "4000",
        (_, 5) => "5000",
        (_, 8) => "8000",
        _ => "0000",
    }
}

const fn not_sufficient_funds(mti: Mti) -> &'static str {
    match mti.version() {
        0 => "51",
        1 => "116",
        _ => "1116",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::host::behaviour::{Exception, Latency, Match};

    fn issuer(header: Header) -> Issuer {
        let dialect = Arc::new(Dialect::preset("iso87_ascii").unwrap());
        Issuer::new(dialect, header, fastrand::Rng::with_seed(7))
    }

    fn frame(message: &Message) -> Vec<u8> {
        let mut frame = Vec::new();
        message.encode(&Dialect::preset("iso87_ascii").unwrap(), &mut frame).unwrap();
        frame
    }

    fn with(reply: Reply) -> Option<Answer> {
        match reply.answer {
            Answered::With(answer) => Some(answer),
            Answered::Dropped | Answered::Not => None,
        }
    }

    fn answers_to(message: &Message, behaviour: &Behaviour) -> Vec<(Duration, String)> {
        let frame = frame(message);
        let mut issuer = issuer(Header::None);
        (0..1_000)
            .filter_map(|_| with(issuer.judge(&frame, behaviour)))
            .map(|answer| (answer.wait, String::from_utf8(answer.frame).unwrap()))
            .collect()
    }

    fn answers(mti: &str, behaviour: &Behaviour) -> Vec<(Duration, String)> {
        answers_to(&Message::new(mti).field(11, "000042").field(41, "TERM1"), behaviour)
    }

    #[test]
    fn a_prompt_issuer_approves_requests_with_a_code_and_the_rest_without() {
        for (latency, answer) in answers("0100", &Behaviour::PROMPT) {
            assert_eq!(latency, Duration::ZERO);
            assert!(answer.starts_with("01100020000006800000000042"), "{answer}");
            assert!(answer.ends_with("00TERM1   "), "{answer}");
        }
        let (_, answer) = &answers("0421", &Behaviour::PROMPT)[0];
        assert_eq!(answer, "0430002000000280000000004200TERM1   ");
        assert!(answers("0110", &Behaviour::PROMPT).is_empty());
    }

    #[test]
    fn shares_are_shares() {
        let latency =
            Latency::Tailed { least: Duration::from_millis(8), tail: Duration::from_millis(4) };
        let late_by = Latency::Between(Duration::from_secs(1), Duration::from_secs(2));
        let behaviour = Behaviour {
            latency,
            late_by,
            late_share: 0.25,
            dropped_share: 0.5,
            declined_share: 0.125,
            ..Behaviour::PROMPT
        };
        let about = |count: usize, expected: usize| count.abs_diff(expected) < expected / 3;
        let drawn = answers("0200", &behaviour);
        assert!(about(drawn.len(), 500), "{}", drawn.len());
        let late = drawn.iter().filter(|(latency, _)| *latency >= Duration::from_secs(1)).count();
        assert!(about(late, 125), "{late}");
        let declined = drawn.iter().filter(|(_, answer)| answer.contains("51TERM1")).count();
        assert!(about(declined, 62), "{declined}");
        let most = drawn.iter().map(|(latency, _)| *latency).max().unwrap();
        assert!(most <= Duration::from_millis(2_040));
        assert!(drawn.iter().all(|(latency, _)| *latency >= Duration::from_millis(8)));
        assert!(answers("0120", &behaviour).iter().all(|(_, answer)| answer.contains("00TERM1")));
    }

    #[test]
    fn an_exception_holds_for_messages_that_have_all_it_names() {
        let of = Match {
            mti: Mti::from_digits([0, 2, 0, 0]),
            bin: Some(41_111_100..=41_111_199),
            merchant: Some("SHOP0001".to_owned()),
            operation: Some(crate::traffic::Operation::Purchase),
            amount: Some(500..=1_000),
        };
        let exception =
            Exception { of, code: Some("05".to_owned()), latency: None, dropped_share: None };
        let behaviour = Behaviour { exceptions: vec![exception], ..Behaviour::PROMPT };
        let sale = |mti| {
            let sale = Message::new(mti).field(2, "4111111111111111").field(3, "000000");
            sale.field(4, "1000").field(11, "42").field(42, "SHOP0001")
        };
        let declined = |message: &Message| {
            let answers = answers_to(message, &behaviour);
            assert_eq!(answers.len(), 1_000);
            answers.iter().all(|(_, answer)| answer.contains("05SHOP0001"))
        };
        assert!(declined(&sale("0200")));
        for other in [
            sale("0100"),
            sale("0200").field(2, "4111121111111111"),
            sale("0200").field(3, "010000"),
            sale("0200").field(4, "1001"),
            sale("0200").field(4, "499"),
            sale("0200").field(42, "SHOP0002"),
            sale("0200").without(42),
            sale("0200").without(4),
        ] {
            assert!(!declined(&other), "{other:?}");
        }
    }

    #[test]
    fn a_code_of_an_exception_declines_no_advice_and_an_approval_has_an_authorization_code() {
        let exception = |code: &str| Exception {
            of: Match::default(),
            code: Some(code.to_owned()),
            latency: Some(Latency::Exactly(Duration::from_secs(1))),
            dropped_share: None,
        };
        let behaviour = |code| Behaviour { exceptions: vec![exception(code)], ..Behaviour::PROMPT };
        let (wait, answer) = &answers("0420", &behaviour("05"))[0];
        assert_eq!(*wait, Duration::from_secs(1));
        assert!(answer.ends_with("00TERM1   "), "{answer}");
        // Field 38 is the sixth bit from the end of the bitmap's fifth byte.
        assert!(answers("0100", &behaviour("05"))[0].1.starts_with("01100020000002800000"));
        assert!(answers("0100", &behaviour("10"))[0].1.starts_with("01100020000006800000"));
        let silent = Exception { dropped_share: Some(1.0), ..exception("00") };
        let silent = Behaviour { exceptions: vec![silent], ..Behaviour::PROMPT };
        assert!(answers("0420", &silent).is_empty());
    }

    #[test]
    fn every_version_is_answered_in_its_own_codes() {
        let codes = |digits| {
            let mti = Mti::from_digits(digits).unwrap();
            (accepted(mti), not_sufficient_funds(mti))
        };
        assert_eq!(codes([0, 4, 2, 0]), ("00", "51"));
        assert_eq!(codes([1, 1, 0, 0]), ("000", "116"));
        assert_eq!(codes([1, 4, 2, 0]).0, "400");
        assert_eq!(codes([1, 8, 0, 4]).0, "800");
        assert_eq!(codes([2, 2, 0, 0]), ("0000", "1116"));
    }
}

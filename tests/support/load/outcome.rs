//! What became of a load, and what one bucket for all would have made of it.

use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::peers::Latencies;

/// What a node said to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The host has seen it.
    Admitted,
    /// Field 39 is 91.
    Refused,
    /// Something else, which no test expects.
    Other,
}

/// One message that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The number of its shop.
    pub shop: usize,
    pub node: usize,
    /// When it was to be sent, was sent, and was answered.
    pub due: Moment,
    pub sent: Moment,
    pub came: Moment,
    pub verdict: Verdict,
}

impl Answer {
    /// How long it took from when it was to be sent.
    pub fn took(&self) -> Duration {
        self.came.since(self.due)
    }

    pub fn is_admitted(&self) -> bool {
        self.verdict == Verdict::Admitted
    }

    pub fn is_refused(&self) -> bool {
        self.verdict == Verdict::Refused
    }
}

/// What became of all messages so far.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// In the order in which they came, per node.
    pub answers: Vec<Answer>,
    /// Messages that were sent, by shop.
    pub sent: Vec<usize>,
    /// Messages that no node was there for.
    pub unsent: usize,
    /// The longest that a message was sent late: a busy machine.
    pub lateness: Duration,
}

impl Outcome {
    /// Those of some shops, such as `0..3`, alone.
    #[must_use]
    pub fn of(&self, shops: std::ops::Range<usize>) -> Self {
        let answers = self.answers.iter().filter(|answer| shops.contains(&answer.shop));
        let answers = answers.copied().collect();
        let sent = self.sent.iter().enumerate();
        let sent = sent.map(|(shop, sent)| if shops.contains(&shop) { *sent } else { 0 });
        Self { answers, sent: sent.collect(), ..self.clone() }
    }

    /// Those alone that were sent from one moment until another.
    #[must_use]
    pub fn between(&self, from: Moment, until: Moment) -> Self {
        let sent = |answer: &&Answer| (from..until).contains(&answer.sent);
        Self { answers: self.answers.iter().filter(sent).copied().collect(), ..self.clone() }
    }

    pub fn admitted(&self) -> usize {
        self.answers.iter().filter(|answer| answer.is_admitted()).count()
    }

    pub fn refused(&self) -> usize {
        self.answers.iter().filter(|answer| answer.is_refused()).count()
    }

    /// What was admitted at a node.
    pub fn admitted_at(&self, node: usize) -> usize {
        let there = self.answers.iter().filter(|answer| answer.node == node);
        there.filter(|answer| answer.is_admitted()).count()
    }

    pub fn unanswered(&self) -> usize {
        self.sent.iter().sum::<usize>() - self.answers.len()
    }

    /// Fails unless every message was sent and answered as tollgate or the host answers.
    #[track_caller]
    pub fn expect_whole(&self) {
        let others = self.answers.iter().filter(|answer| answer.verdict == Verdict::Other).count();
        let all = (self.unsent, self.unanswered(), others);
        assert_eq!(all, (0, 0, 0), "not sent, not answered, answered otherwise");
    }

    /// From the first message to the last answer.
    pub fn span(&self) -> Duration {
        let first = self.answers.iter().map(|answer| answer.sent).min().unwrap_or_default();
        let last = self.answers.iter().map(|answer| answer.came).max().unwrap_or_default();
        last.since(first)
    }

    /// How long answers took of which `picked` says so.
    pub fn latencies(&self, picked: impl Fn(&Answer) -> bool) -> Latencies {
        let mut latencies = Latencies::default();
        let answers = self.answers.iter().filter(|answer| picked(answer));
        answers.for_each(|answer| latencies.record(answer.took()));
        latencies
    }

    /// The longest that an answer took of which `picked` says so.
    pub fn slowest(&self, picked: impl Fn(&Answer) -> bool) -> Duration {
        let answers = self.answers.iter().filter(|answer| picked(answer));
        answers.map(Answer::took).max().unwrap_or_default()
    }

    /// What one bucket would have admitted of the same messages.
    pub fn ideal(&self, rate: f64, burst: f64) -> usize {
        let mut sent: Vec<Moment> = self.answers.iter().map(|answer| answer.sent).collect();
        sent.sort_unstable();
        ideal(rate, burst, &sent)
    }
}

/// How many of messages at these moments one bucket admits, full at first.
pub fn ideal(rate: f64, burst: f64, sent: &[Moment]) -> usize {
    let mut level = burst;
    let mut last = sent.first().copied().unwrap_or_default();
    let mut admits = |moment: &&Moment| {
        level = (level + rate * moment.since(last).as_secs_f64()).min(burst);
        last = **moment;
        let admits = level >= 1.0;
        level -= if admits { 1.0 } else { 0.0 };
        admits
    };
    sent.iter().filter(|moment| admits(moment)).count()
}

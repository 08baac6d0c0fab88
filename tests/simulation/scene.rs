//! What is configured: limits, codes, and how much goes on.

use std::time::Duration;

use tollgate::gate::{self, Codes};
use tollgate::iso8583::LocalCode;
use tollgate::limits::{BinRange, Burst, KeyMatch, Mode, Per, Rate, Rule, RuleKey};
use tollgate::reason::Reason;

use crate::model::{Bound, Rules};

const DEADLINE: Duration = Duration::from_millis(120);
const ANSWER_TIMEOUT: Duration = Duration::from_millis(700);
/// The bin that a limit is set for.
const BIN: &str = "411111";

/// How much goes on, drawn once for each seed, so that every extreme has worlds of its own.
#[derive(Debug)]
pub(crate) struct Mood {
    pub(crate) sessions_max: usize,
    pub(crate) connections_max: usize,
    /// Messages in a moment, at most.
    pub(crate) messages: u32,
    /// How often, of 1,000 moments, something happens to a session or a connection.
    pub(crate) trouble: u32,
    /// What one write takes at most, in bytes.
    pub(crate) write_bytes: usize,
    /// What may be queued for the host, in bytes.
    pub(crate) queue_bytes: usize,
    /// What a connection takes that the host has not read, in bytes.
    pub(crate) window: usize,
    /// Network and host leave out fields by which answers are recognised.
    pub(crate) omits_fields: bool,
}

impl Mood {
    pub(crate) fn drawn(random: &mut fastrand::Rng) -> Self {
        let omits_fields = random.u8(..3) == 0;
        let mut draw = |choices: &[usize]| choices[random.usize(..choices.len())];
        Self {
            sessions_max: draw(&[1, 2, 4, 6]),
            connections_max: draw(&[1, 2, 3]),
            messages: u32::try_from(draw(&[0, 1, 4])).unwrap(),
            trouble: u32::try_from(draw(&[0, 5, 20, 60])).unwrap(),
            write_bytes: draw(&[70, 1_000, 100_000]),
            queue_bytes: draw(&[900, 3_000, 100_000]),
            window: draw(&[200, 2_000, 100_000]),
            omits_fields,
        }
    }
}

impl Rules {
    pub(crate) fn drawn(random: &mut fastrand::Rng, mood: &Mood) -> Self {
        // An answer without its STAN can be told from others' only while its request is known.
        let inflight_max =
            if mood.omits_fields { 5_000 } else { [3, 12, 100, 5_000][random.usize(..4)] };
        let mut bound = || {
            let mut tokens = || [1.0, 20.0, 1e5, 1e5][random.usize(..4)];
            Bound { rate: tokens(), burst: tokens() }
        };
        let (all, bin) = (bound(), bound());
        let (deadline, answer_timeout) = (DEADLINE, ANSWER_TIMEOUT);
        Self { deadline, answer_timeout, inflight_max, all, bin, bin_prefix: BIN }
    }
}

pub(crate) fn gate_settings() -> gate::Settings {
    gate::Settings { codes: codes(), ..gate::Settings::default() }
}

/// One limit over all, one for a single bin, and one that only watches.
pub(crate) fn limits(rules: &Rules) -> [Rule; 3] {
    let rule = |name: &str, per, bound: Bound, mode| {
        let (rate, burst) = (Rate::per_second(bound.rate), Burst::tokens(bound.burst));
        Rule { mode, keys_max: 1_000, ..Rule::new(name, per, rate.unwrap(), burst.unwrap()) }
    };
    let plenty = Bound { rate: 1e6, burst: 1e6 };
    let mut bin = rule("bin", Per::BIN, plenty, Mode::Enforce);
    bin.keys.push(RuleKey {
        matches: KeyMatch::of_bin(BinRange::parse(rules.bin_prefix).unwrap()),
        rate: Rate::per_second(rules.bin.rate).unwrap(),
        burst: Burst::tokens(rules.bin.burst).unwrap(),
        peak: None,
        floor: None,
    });
    let few = Bound { rate: 50.0, burst: 5.0 };
    [
        rule("all", Per::NOTHING, rules.all, Mode::Enforce),
        bin,
        rule("merchant", Per::MERCHANT, few, Mode::Shadow),
    ]
}

/// Field 39 by reason: each another one, so that the reason shows.
pub(crate) const fn code(reason: Reason) -> &'static str {
    match reason {
        Reason::Limit => "61",
        Reason::Overload => "65",
        Reason::Unavailable => "92",
        Reason::Lost => "91",
        Reason::Deadline => "68",
        Reason::Malfunction => "96",
        Reason::Format => "30",
    }
}

/// The codes above, as a link is told them.
fn codes() -> Codes {
    let chosen =
        |codes: Codes, reason| codes.with(reason, LocalCode::parse_1987(code(reason)).unwrap());
    Reason::ALL.into_iter().fold(Codes::default(), chosen)
}

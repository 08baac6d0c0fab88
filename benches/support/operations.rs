//! Everything that a message costs, by name, each ready to be run over and over.

use std::hint::black_box;
use std::sync::Arc;

use tollgate::clock::Moment;
use tollgate::gate;
use tollgate::iso8583::{Composer, Dialect, FieldSet, LocalCode, Spans, View, can_say};
use tollgate::limits::Policy;

use crate::limits::{Busy, LIMITS_MAX, Tokens};
use crate::link::{BATCH, Link, gate};
use crate::purchase::purchase;

/// Messages that are parsed, classified or answered in a run.
const REPEATS: u32 = 1_000;
/// Messages that are decided on in a run, each of another merchant.
const DECISIONS: usize = 10_000;
/// Turns of a link in a run.
const TURNS: usize = 8;
/// How often an operation may be run: what it works on is prepared beforehand.
const RUNS_MAX: usize = 8;

/// Something that can be run, [`RUNS_MAX`] times.
pub(crate) struct Operation {
    /// Messages of a run.
    pub(crate) items: u32,
    pub(crate) run: Box<dyn FnMut()>,
}

/// All there are.
pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<_> =
        Dialect::PRESETS.iter().map(|preset| format!("parse/{preset}")).collect();
    names.push("classify".to_owned());
    let answering = Dialect::PRESETS.iter().filter(|preset| answers(preset));
    names.extend(answering.map(|preset| format!("answer/{preset}")));
    for merchants in [100_000, 1_000_000] {
        names.extend((1..=LIMITS_MAX).map(|limits| format!("decide/{merchants}/{limits}")));
        names.push(format!("refuse/{merchants}"));
    }
    let whole = ["forwarded", "refused-by-merchant", "refused-by-all"];
    names.extend(whole.map(|what| format!("message/{what}")));
    names
}

/// The operation of one of these [`names`].
pub(crate) fn prepare(name: &str) -> Operation {
    let (kind, what) = name.split_once('/').unwrap_or((name, ""));
    match kind {
        "parse" => parse(what),
        "classify" => classify(),
        "answer" => answer(what),
        "decide" => {
            let (merchants, limits) = what.split_once('/').expect("merchants/limits");
            decide(merchants, limits.parse().expect("a number"), Tokens::PLENTY)
        }
        "refuse" => decide(what, 3, Tokens { merchant: 1.0, ..Tokens::PLENTY }),
        "message" => message(match what {
            "forwarded" => Tokens::PLENTY,
            "refused-by-merchant" => Tokens { merchant: 0.0001, ..Tokens::PLENTY },
            _ => Tokens { all: 0.0001, ..Tokens::PLENTY },
        }),
        _ => panic!("no operation {name}"),
    }
}

fn repeated(mut once: impl FnMut() + 'static) -> Operation {
    Operation { items: REPEATS, run: Box::new(move || (0..REPEATS).for_each(|_| once())) }
}

fn parse(preset: &str) -> Operation {
    let dialect = dialect(preset);
    let request = purchase(preset);
    let mut spans = Spans::default();
    repeated(move || {
        let view = View::parse(&dialect, black_box(&request), &mut spans).unwrap();
        assert!(black_box(&view).fault().is_none());
    })
}

fn dialect(preset: &str) -> Arc<Dialect> {
    Arc::new(Dialect::preset(preset).expect("it is a preset"))
}

/// The purchase in a preset, read; it lives as long as the process.
fn view(preset: &str, dialect: Arc<Dialect>) -> View<'static> {
    let dialect = Box::leak(Box::new(dialect));
    let spans = Box::leak(Box::default());
    View::parse(dialect, purchase(preset).leak(), spans).unwrap()
}

fn classify() -> Operation {
    let view = view("iso87_ascii", dialect("iso87_ascii"));
    let gate = gate(Arc::new(Policy::new(&[], &[], 1, 42, Moment::START).unwrap()));
    repeated(move || {
        black_box(gate.classify(black_box(&view)));
    })
}

fn answer(preset: &str) -> Operation {
    let dialect = dialect(preset);
    let view = view(preset, Arc::clone(&dialect));
    let mut composer = Composer::new(dialect, FieldSet::of(&gate::Settings::ECHO));
    let mut out = Vec::with_capacity(4096);
    repeated(move || {
        out.clear();
        let slot = composer.compose(black_box(&view), &mut out).unwrap();
        assert!(slot.write(&mut out, LocalCode::IssuerInoperative));
    })
}

/// Whether the purchase, of version 1987, can be refused in a preset.
fn answers(preset: &str) -> bool {
    can_say(&dialect(preset), 0, LocalCode::IssuerInoperative) == Some(true)
}

fn decide(merchants: &str, limits: usize, tokens: Tokens) -> Operation {
    let busy = Busy::new(limits, merchants.parse().expect("a number"), tokens);
    let expected = if tokens == Tokens::PLENTY { 0 } else { DECISIONS };
    let mut from = 0;
    let run = move || {
        let messages = busy.messages.get(from..from + DECISIONS).expect("too many runs");
        from += DECISIONS;
        assert_eq!(black_box(busy.refused(messages, Moment::START)), expected);
    };
    Operation { items: DECISIONS as u32, run: Box::new(run) }
}

fn message(tokens: Tokens) -> Operation {
    let mut link = Link::new(tokens);
    let batches: Vec<_> = (0..TURNS * RUNS_MAX).map(|_| link.batch()).collect();
    let mut from = 0;
    let run = move || {
        for batch in batches.get(from..from + TURNS).expect("too many runs") {
            link.turn(batch);
        }
        from += TURNS;
        let became = link.became();
        assert_eq!((became.forwarded, became.others), (became.delivered, 0));
        assert_eq!(became.answered == 0, tokens == Tokens::PLENTY);
    };
    Operation { items: BATCH * TURNS as u32, run: Box::new(run) }
}

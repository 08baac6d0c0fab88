//! Many sequences side by side, so that one round trip serves them all. Each has a shard of its own.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use fastrand::Rng;
use redis::{Cmd, Connection, Pipeline, PubSub, Value, cmd};

use crate::sequence::{Sequence, Turn};
use crate::state;
use crate::timed::Timed;

/// Sequences of one group.
pub(crate) const SEQUENCES: u64 = 100;

/// After the news of each round.
const ROUND: &str = "round";

/// Both ends of a server: one that calls, one that listens.
pub(crate) struct Ends<'a> {
    pub(crate) timed: Timed,
    pub(crate) caller: Connection,
    pub(crate) listener: PubSub<'a>,
}

impl<'a> Ends<'a> {
    pub(crate) fn new(timed: Timed, caller: Connection, listener: &'a mut Connection) -> Self {
        let mut listener = listener.as_pubsub();
        listener.psubscribe("test:v1:*").unwrap();
        listener.subscribe(ROUND).unwrap();
        Self { timed, caller, listener }
    }

    fn ask(&mut self, commands: impl IntoIterator<Item = Cmd>) -> Vec<Value> {
        let mut pipeline = Pipeline::new();
        for command in commands {
            pipeline.add_command(command);
        }
        pipeline.query(&mut self.caller).unwrap()
    }
}

/// Plays one group from an empty server to an empty server; says how many calls and reports it had.
pub(crate) fn play(ends: &mut Ends<'_>, group: u64) -> (usize, usize) {
    let first = group * SEQUENCES;
    let sequence = |at| {
        let names = ends.timed.script.names(u16::try_from(at).unwrap());
        Sequence::new(first + at, names)
    };
    let mut sequences: Vec<_> = (0..SEQUENCES).map(sequence).collect();
    let mut random = Rng::with_seed(group);
    let (mut calls, mut reports) = (0, 0);
    ends.ask(sequences.iter().flat_map(Sequence::prepare));
    let rounds = sequences.iter().map(|sequence| sequence.turns).max().unwrap();
    for round in 0..=rounds {
        let mut commands = Vec::new();
        if random.u32(..100) == 0 {
            sequences.iter_mut().for_each(|sequence| drop(sequence.wipe()));
            commands.push(cmd("FLUSHALL"));
        }
        let mut turns: Vec<(usize, Turn)> = Vec::new();
        for (at, sequence) in sequences.iter_mut().enumerate() {
            commands.extend(sequence.befall());
            if round == rounds {
                turns.push((at, sequence.last_turn()));
            } else if round < sequence.turns {
                turns.push((at, sequence.turn()));
            }
        }
        let before = commands.len();
        let shard = |at: usize| u16::try_from(at).unwrap();
        let timed = &ends.timed;
        commands.extend(
            turns.iter().map(|(at, turn)| timed.call(shard(*at), &turn.call, turn.wall_us)),
        );
        commands.push(cmd("PUBLISH").arg(ROUND).arg("").to_owned());
        let answers = ends.ask(commands);
        for ((at, turn), answer) in turns.iter().zip(&answers[before..]) {
            calls += 1;
            reports += turn.call.reports.len();
            let reply = ends.timed.script.read(answer, turn.call.reports.len()).unwrap();
            named(first, *at, round, || sequences[*at].check(turn, &reply));
        }
        for (at, turn) in turns.iter().filter(|(_, turn)| turn.news().is_some()) {
            let message = ends.listener.get_message().unwrap();
            named(first, *at, round, || {
                let (channel, news) = (message.get_channel_name(), message.get_payload_bytes());
                assert_eq!(channel, sequences[*at].names().channel());
                assert_eq!(ends.timed.script.read_news(news), turn.news());
            });
        }
        assert_eq!(ends.listener.get_message().unwrap().get_channel_name(), ROUND);
    }
    for (at, sequence) in sequences.iter().enumerate() {
        let answers = ends.ask(state::questions(sequence));
        named(first, at, rounds, || state::check(sequence, &answers));
    }
    ends.ask([cmd("FLUSHALL")]);
    (calls, reports)
}

/// Says which sequence it was that went wrong.
fn named(first: u64, at: usize, round: usize, check: impl FnOnce()) {
    if let Err(fault) = catch_unwind(AssertUnwindSafe(check)) {
        let group = first / SEQUENCES;
        eprintln!(
            "sequence {at} of group {group}, call {round}; TOLLGATE_SCRIPT_GROUPS={group}-{group} plays it again"
        );
        resume_unwind(fault);
    }
}

//! What the host says: to each message whatever a host may say, at whatever time, and now and then
//! something of its own.

use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::exchange::ConnectionId;

use crate::message::message;
use crate::network::{Fields, field};

/// An answer on its way.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) due: Moment,
    /// Where the message came in that it answers.
    pub(crate) connection: ConnectionId,
    /// It leaves on another connection, if there is one.
    pub(crate) sibling: bool,
    pub(crate) frame: Vec<u8>,
    /// The number of the message that it answers.
    pub(crate) of: usize,
    pub(crate) mti: String,
    pub(crate) fields: Fields,
    pub(crate) honesty: Honesty,
    pub(crate) approves: bool,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let frame = String::from_utf8_lossy(&self.frame);
        write!(f, "the {:?} answer to {}, {frame},", self.honesty, self.of)
    }
}

/// What can be expected of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Honesty {
    /// It says whose it is.
    Full,
    /// It leaves a field out by which it would be recognised. Nobody can tell it from another's
    /// once its own request waits no more, so it is sent once and soon, by a host that neither lies
    /// nor repeats itself.
    Sparing,
    /// It carries the STAN of another.
    Lying,
    /// It has no MTI.
    Unreadable,
}

/// A message as the host knows it.
#[derive(Debug)]
pub(crate) struct Received<'a> {
    pub(crate) id: usize,
    pub(crate) response: &'a str,
    pub(crate) fields: &'a Fields,
    pub(crate) connection: ConnectionId,
    /// The STAN of some other message.
    pub(crate) other_stan: Option<String>,
    /// It may leave out what the answer is recognised by.
    pub(crate) may_spare: bool,
    /// It may lie, and repeat itself.
    pub(crate) may_lie: bool,
}

/// Fields that come back in an answer.
const ECHO: [u8; 13] = [2, 3, 4, 7, 11, 12, 32, 37, 41, 42, 48, 49, 90];

/// What the host does about a message: no answer, one, or two.
pub(crate) fn answers(
    random: &mut fastrand::Rng,
    received: &Received<'_>,
    deadline: Duration,
    now: Moment,
) -> Vec<Answer> {
    let stanless = field(received.fields, 11).is_none();
    if random.u8(..100) < 8 || (stanless && !received.may_spare) {
        return Vec::new();
    }
    let mut fields: Fields =
        received.fields.iter().filter(|(de, _)| ECHO.contains(de)).cloned().collect();
    let approves = random.u8(..10) < 7;
    fields.push((39, (if approves { "00" } else { ["05", "51", "91"][random.usize(..3)] }).into()));
    if approves {
        fields.push((38, format!("{:06}", received.id)));
    }
    let mut honesty = if stanless { Honesty::Sparing } else { Honesty::Full };
    match random.u8(..100) {
        0..4 if received.may_spare => {
            honesty = Honesty::Sparing;
            fields.retain(|(de, _)| *de != 11);
        }
        4..8 if received.may_spare => {
            honesty = Honesty::Sparing;
            fields.retain(|(de, _)| *de != 41);
        }
        8..18 => replace(&mut fields, 37, || format!("H{:011}", received.id)),
        // Whoever a lie is given to waits no more, so that its own answer, if sparing, may be given
        // to somebody else again. So no host here is a sparing one and a liar.
        18..22 if received.other_stan.is_some() && received.may_lie => {
            honesty = Honesty::Lying;
            replace(&mut fields, 11, || received.other_stan.clone().unwrap_or_default());
        }
        _ => {}
    }
    fields.sort_unstable();
    let mut frame = message(received.response, &fields);
    match random.u8(..100) {
        0 | 1 => frame.extend_from_slice(b"TRAILING"),
        2 if honesty == Honesty::Full => {
            honesty = Honesty::Unreadable;
            frame = b"OOPS".to_vec();
        }
        _ => {}
    }
    let answer = Answer {
        due: now.after(delay(random, deadline)),
        connection: received.connection,
        sibling: random.u8(..8) == 0,
        frame,
        of: received.id,
        mti: received.response.to_owned(),
        fields,
        honesty,
        approves: approves && ["011", "021"].iter().any(|kind| received.response.starts_with(kind)),
    };
    let mut answers = vec![answer.clone()];
    if honesty == Honesty::Full && received.may_lie && random.u8(..100) < 12 {
        answers.push(Answer { due: now.after(delay(random, deadline)), ..answer });
    }
    answers
}

fn replace(fields: &mut Fields, de: u8, value: impl Fn() -> String) {
    for (_, old) in fields.iter_mut().filter(|(number, _)| *number == de) {
        *old = value();
    }
}

/// Mostly at once, at times just before or after the deadline, seldom long after it.
fn delay(random: &mut fastrand::Rng, deadline: Duration) -> Duration {
    let deadline_ms = u64::try_from(deadline.as_millis()).unwrap();
    Duration::from_millis(match random.u8(..20) {
        0..13 => random.u64(0..deadline_ms / 3),
        13..17 => random.u64(deadline_ms - 12..deadline_ms + 12),
        17..19 => random.u64(deadline_ms..deadline_ms * 3),
        _ => random.u64(deadline_ms..deadline_ms * 12),
    })
}

/// A message of the host's own. Its STANs are the network's as well, which must not matter.
pub(crate) fn own_message(
    random: &mut fastrand::Rng,
    stan: usize,
    second: u64,
) -> (String, Fields) {
    let mti = ["0800", "0302", "0620"][random.usize(..3)];
    let fields = vec![
        (7, format!("{:010}", 1_201_120_000 + second)),
        (11, format!("{stan:06}")),
        (48, format!("H{stan}")),
        (70, "301".to_owned()),
    ];
    (mti.to_owned(), fields)
}

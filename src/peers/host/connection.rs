//! One connection of a host: reads at its pace, and answers each message when it is due.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::behaviour::Behaviour;
use super::floor::{Floor, RETRY, Seat};
use super::issuer::{Answer, Answered, Issuer, Reply};
use super::tally::locked;
use crate::clock::Moment;
use crate::net::buffer::{ReadBuffer, WriteBuffer};
use crate::net::stream::{Reader, Socket, Writer};
use crate::wire::{Framing, Splitter};

/// More than any message of any network.
const FRAME_BYTES_MAX: usize = 65_535;
/// Answers that wait to be written on one connection.
const OUT_BYTES_MAX: usize = 4 << 20;
/// A peer that does not take its answers is not read from.
const OUT_BYTES_READING: usize = OUT_BYTES_MAX / 4;
/// What an answer that waits takes beside its bytes.
const WAITING_OVERHEAD_BYTES: usize = 128;
/// A slow reader reads so often in a second, if a byte or more is due then.
const READS_PER_SECOND: u32 = 20;

/// Serves one connection to its end.
pub(super) async fn converse(floor: &Floor, seat: &Seat, number: u64, socket: Socket) {
    let Ok((mut reader, writer)) = socket.open() else { return };
    let settings = &floor.settings;
    let luck = fastrand::Rng::with_seed(settings.seed.wrapping_add(number));
    let splitter = Splitter::new(settings.framing, FRAME_BYTES_MAX);
    let mut unread = ReadBuffer::new(&splitter);
    let mut desk = Desk {
        floor,
        splitter,
        issuer: Issuer::new(Arc::clone(&settings.dialect), settings.header, luck),
        due: BTreeMap::new(),
        taken: 0,
        heard: 0,
        read_at: Moment::START,
        out: WriteBuffer::new(settings.framing, OUT_BYTES_MAX),
    };
    while let Next::Go = turn(seat, &mut reader, &writer, &mut unread, &mut desk).await {}
}

/// Whether a connection goes on.
enum Next {
    Go,
    /// No more comes, or it is of no more use.
    End,
    /// The host closes it, and this is the last that it writes.
    Close(Vec<u8>),
}

/// One connection's answers: those that wait for their time, and those that wait to be written.
struct Desk<'a> {
    floor: &'a Floor,
    splitter: Splitter,
    issuer: Issuer,
    /// Soonest first; of those of one moment, the one that came first.
    due: BTreeMap<(Moment, u64), Answer>,
    /// Messages that were given an answer.
    taken: u64,
    /// Messages that came.
    heard: u32,
    /// A slow reader does not read before.
    read_at: Moment,
    out: WriteBuffer,
}

/// Waits for something to do and does it.
async fn turn(
    seat: &Seat,
    reader: &mut Reader,
    writer: &Writer,
    unread: &mut ReadBuffer,
    desk: &mut Desk<'_>,
) -> Next {
    let floor = desk.floor;
    let behaviour = floor.behaviour();
    let pace = desk.pace(&behaviour, floor.clock.now());
    let unwritten = desk.out.pending().len();
    let mut next = Next::Go;
    tokio::select! {
        read = reader.fill_at_most(unread, pace.bytes_max), if pace.reads => {
            let Ok(bytes @ 1..) = read else { return Next::End };
            let now = floor.clock.now();
            seat.heard.set(now);
            desk.rest(&behaviour, bytes, now);
            next = desk.take(&behaviour, unread, now);
        }
        () = sleep(pace.look_again.unwrap_or_default()), if pace.look_again.is_some() => {}
        () = writer.writable(), if unwritten > 0 => {}
        () = floor.changed.notified() => {}
    }
    desk.release(floor.clock.now());
    let Ok(written) = writer.try_write(desk.out.pending()) else { return Next::End };
    desk.out.advance(written);
    if let Next::Close(last) = &next {
        // A peer that does not take what is before it does not get it.
        if desk.out.pending().is_empty() {
            let _ = writer.try_write(last);
        }
        locked(&floor.counts).tally().closed += 1;
    }
    next
}

/// What a connection waits for.
struct Pace {
    reads: bool,
    bytes_max: usize,
    /// When there is something to do even if nothing comes.
    look_again: Option<Duration>,
}

impl Desk<'_> {
    fn pace(&self, behaviour: &Behaviour, now: Moment) -> Pace {
        let soonest = self.due.first_key_value().map(|((due, _), _)| due.since(now));
        let has_room = self.out.pending().len() < OUT_BYTES_READING;
        let held_back = self.floor.is_full().then_some(RETRY);
        let rest =
            behaviour.slow_read.map(|_| self.read_at.since(now)).filter(|rest| !rest.is_zero());
        let bytes_max = match behaviour.slow_read {
            Some(bytes_per_second) => (bytes_per_second / READS_PER_SECOND).max(1) as usize,
            None => usize::MAX,
        };
        let waits = [soonest, held_back.filter(|_| has_room), rest.filter(|_| has_room)];
        Pace {
            reads: has_room && held_back.is_none() && rest.is_none(),
            bytes_max,
            look_again: waits.into_iter().flatten().min(),
        }
    }

    /// Takes the time that these bytes are to take.
    fn rest(&mut self, behaviour: &Behaviour, bytes: usize, now: Moment) {
        if let Some(bytes_per_second) = behaviour.slow_read {
            let seconds = bytes as f64 / f64::from(bytes_per_second.max(1));
            self.read_at = now.after(Duration::from_secs_f64(seconds));
        }
    }

    /// Takes every whole frame.
    fn take(&mut self, behaviour: &Behaviour, unread: &mut ReadBuffer, now: Moment) -> Next {
        let mut counts = locked(&self.floor.counts);
        loop {
            let split = match self.splitter.split(unread.unread()) {
                Ok(Some(split)) => split,
                Ok(None) => return Next::Go,
                Err(_) => {
                    counts.tally().broken += 1;
                    return Next::End;
                }
            };
            let bytes = split.whole.len();
            if split.frame.is_empty() {
                unread.consume(bytes);
                counts.tally().keepalives += 1;
                continue;
            }
            let reply = self.issuer.judge(split.frame, behaviour);
            unread.consume(bytes);
            counts.came(&reply);
            self.heard = self.heard.saturating_add(1);
            let closing = behaviour.closing;
            let at_random = self.issuer.draws(closing.share);
            let closes = at_random || closing.after.is_some_and(|after| self.heard >= after);
            let Reply { answer: Answered::With(answer), .. } = reply else {
                if closes {
                    return Next::Close(Vec::new());
                }
                continue;
            };
            if closes && (at_random || closing.mid_frame) {
                counts.tally().unsent += 1;
                let framing = self.floor.settings.framing;
                let last = closing.mid_frame.then(|| first_half(framing, &answer.frame));
                return Next::Close(last.unwrap_or_default());
            }
            self.keep(answer, now);
            if closes {
                return Next::Close(Vec::new());
            }
        }
    }

    /// Keeps an answer until it is due.
    fn keep(&mut self, answer: Answer, now: Moment) {
        self.taken += 1;
        self.floor.waiting.set(self.floor.waiting.get().saturating_add(bytes_of(&answer)));
        self.due.insert((now.after(answer.wait), self.taken), answer);
    }

    /// Moves what is due to the connection.
    fn release(&mut self, now: Moment) {
        let is_due = |due: &BTreeMap<(Moment, u64), Answer>| {
            due.first_key_value().is_some_and(|((at, _), _)| *at <= now)
        };
        if !is_due(&self.due) {
            return;
        }
        let mut counts = locked(&self.floor.counts);
        while is_due(&self.due)
            && let Some((_, answer)) = self.due.pop_first()
        {
            self.floor.waiting.set(self.floor.waiting.get().saturating_sub(bytes_of(&answer)));
            // Reading stops long before there is no room; an answer too long to be framed is lost.
            match self.out.push(&answer.frame) {
                Ok(()) => counts.left(&answer),
                Err(_) => counts.tally().unsent += 1,
            }
        }
    }
}

impl Drop for Desk<'_> {
    fn drop(&mut self) {
        let bytes = self.due.values().map(bytes_of).sum();
        self.floor.waiting.set(self.floor.waiting.get().saturating_sub(bytes));
        locked(&self.floor.counts).tally().unsent += self.due.len() as u64;
    }
}

fn bytes_of(answer: &Answer) -> usize {
    answer.frame.len().saturating_add(WAITING_OVERHEAD_BYTES)
}

/// The beginning of a frame whose end does not come.
fn first_half(framing: Framing, frame: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What cannot be framed is not begun either.
    let _ = framing.join(frame, &mut bytes);
    bytes.truncate(bytes.len().div_ceil(2));
    bytes
}

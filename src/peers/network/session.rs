//! One connection of a network: what it sends, and which answer is whose.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::TcpStream;

use super::answers::Verdict;
use super::awaited::{Awaited, STANS, Sent, Told};
use super::deck::{Drawn, is_terminal};
use super::floor::{Desk, Floor, Retry};
use super::tally::{Answer, Took};
use super::{Pace, Tally};
use crate::clock::Moment;
use crate::peers::inbox::is_passing;
use crate::peers::poll::{Poll, Wish};
use crate::wire::Header;

/// Messages that wait to be written; more are not sent before.
const OUT_BYTES_MAX: usize = 1 << 20;

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Errand {
    /// When it was to be sent.
    pub(super) at: Moment,
    pub(super) drawn: Drawn,
    /// How often it was tried before.
    pub(super) tries: u8,
}

/// One connection.
pub(super) struct Session {
    number: usize,
    /// `None` once it is closed: what is dropped is not watched any more.
    stream: Option<TcpStream>,
    rng: fastrand::Rng,
    /// What is sent next, drawn one message ahead so that its parts are near by then.
    next: Option<Drawn>,
    awaited: Awaited,
    /// Of messages that were repeated and answered, how many answers more may come, by STAN: no more
    /// entries than there are STANs, as a message with the same STAN takes its place.
    owed_again: HashMap<u32, u8>,
    /// What a reversal takes back.
    last_request: (u32, u32),
    /// The beginning of an answer.
    left: Vec<u8>,
    /// What is to be written, behind what was.
    out: Vec<u8>,
    written: usize,
    awaits_writing: bool,
}

impl Session {
    pub(super) fn new(number: usize, stream: TcpStream, desk: &Desk) -> Self {
        let settings = &desk.settings;
        // Connections count from different numbers, as the terminals behind them would.
        let share = STANS / u32::try_from(settings.connections).unwrap_or(u32::MAX).max(1);
        let first = share.saturating_mul(u32::try_from(number).unwrap_or(0));
        let room = if let Pace::Window(window) = settings.pace { window } else { 0 };
        Self {
            number,
            stream: Some(stream),
            rng: fastrand::Rng::with_seed(settings.seed.wrapping_add(1 + number as u64)),
            next: None,
            awaited: Awaited::new(room, first),
            owed_again: HashMap::new(),
            last_request: (first, desk.seconds),
            left: Vec::new(),
            out: Vec::new(),
            written: 0,
            awaits_writing: false,
        }
    }

    pub(super) fn watch(&self, poll: &Poll) -> io::Result<()> {
        let token = self.number as u64;
        self.stream.iter().try_for_each(|stream| poll.watch(stream, token, Wish::Read))
    }

    pub(super) const fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// How many answers it waits for; none once it is closed.
    pub(super) const fn awaits(&self) -> usize {
        if self.is_open() { self.awaited.count() } else { 0 }
    }

    /// Whether its peer leaves so much untaken that nothing more is sent.
    pub(super) const fn is_full(&self) -> bool {
        self.out.len() - self.written >= OUT_BYTES_MAX
    }

    pub(super) const fn has_unwritten(&self) -> bool {
        self.out.len() > self.written
    }

    /// Sends what is new until so many answers are awaited; what is to be tried again comes first.
    pub(super) fn top_up(&mut self, window: usize, floor: &mut Floor, tally: &mut Tally) {
        while floor.desk.is_sending && self.awaits() < window && self.is_open() && !self.is_full() {
            let errand = match floor.desk.due_retry() {
                Some(Retry { drawn, tries, .. }) => Errand { at: floor.desk.now, drawn, tries },
                None => {
                    let Some(errand) = self.draw(floor.desk.now, floor) else { return };
                    errand
                }
            };
            self.send(errand, floor, tally);
        }
    }

    /// Something new, that is to be sent at some moment.
    pub(super) fn draw(&mut self, at: Moment, floor: &Floor) -> Option<Errand> {
        let deck = &floor.desk.deck;
        let drawn = self.next.take().or_else(|| deck.draw(&mut self.rng))?;
        self.next = deck.draw(&mut self.rng);
        self.next.iter().for_each(|next| deck.fetch(next));
        Some(Errand { at, drawn, tries: 0 })
    }

    /// Puts a message to what is to be written.
    pub(super) fn send(&mut self, errand: Errand, floor: &mut Floor, tally: &mut Tally) {
        let Errand { at, drawn: Drawn { flow, kind, shop, luck }, tries } = errand;
        let desk = &floor.desk;
        let counts = desk.counts(at);
        let Some(stan) = self.awaited.next_stan() else {
            tally.unsent += u64::from(counts);
            return;
        };
        let sent = Sent { at, luck, stan, shop, flow, kind, again: tries };
        let told = Told { time: desk.seconds, original: self.last_request };
        if self.out.capacity() == 0 {
            self.out = floor.spare.pop().unwrap_or_default();
        }
        desk.deck.write(&sent, &told, self.number, &mut self.out);
        if !self.owed_again.is_empty() {
            self.owed_again.remove(&stan);
        }
        if kind.is_request() {
            self.last_request = (stan, desk.seconds);
            self.awaited.insert(sent, None);
        } else {
            self.awaited.insert(sent, Some(told));
        }
        if counts {
            tally.sent(flow.into(), kind);
            tally.retries += u64::from(tries > 0);
        }
    }

    /// Writes what waits, once, and is told when more can be.
    pub(super) fn flush(&mut self, poll: &Poll, floor: &mut Floor) {
        let Some(stream) = &self.stream else { return };
        if self.has_unwritten() {
            let mut stream = stream;
            match stream.write(self.out.get(self.written..).unwrap_or_default()) {
                Ok(bytes) => self.written += bytes,
                Err(error) if is_passing(&error) => {}
                // A broken connection shows when it is read.
                Err(_) => self.written = self.out.len(),
            }
        }
        let waits = self.has_unwritten();
        if waits && self.written > OUT_BYTES_MAX / 2 {
            self.out.drain(..self.written);
            self.written = 0;
        } else if !waits && self.out.capacity() > 0 {
            self.out.clear();
            self.written = 0;
            floor.spare.push(std::mem::take(&mut self.out));
        }
        if waits != self.awaits_writing {
            let wish = if waits { Wish::Both } else { Wish::Read };
            // If it cannot be watched for this any more, the answers will be missing.
            let _ = poll.change(stream, self.number as u64, wish);
            self.awaits_writing = waits;
        }
    }

    /// Reads once and takes every whole answer. Closes when there is no more to come, or a length
    /// cannot be believed.
    pub(super) fn read(&mut self, floor: &mut Floor, tally: &mut Tally) {
        let Floor { splitter, inbox, desk, .. } = floor;
        let Some(stream) = &self.stream else { return };
        if !inbox.fill(stream, &mut self.left) {
            return self.close(tally);
        }
        let mut used = 0;
        let bytes = &*inbox.bytes();
        loop {
            match splitter.split(bytes.get(used..).unwrap_or_default()) {
                Ok(Some(split)) => {
                    used += split.whole.len();
                    if !split.frame.is_empty() {
                        self.settle(split.frame, desk, tally);
                    }
                }
                Ok(None) => break,
                Err(_) => return self.close(tally),
            }
        }
        inbox.put_by(used, &mut self.left);
    }

    fn close(&mut self, tally: &mut Tally) {
        tally.closed += 1;
        self.stream = None;
    }

    /// Finds whose answer it is: by STAN and, where the answer has one, by terminal.
    fn settle(&mut self, frame: &[u8], desk: &mut Desk, tally: &mut Tally) {
        let body = match desk.settings.header {
            Header::None => Some(frame),
            header => header.open(frame).ok().map(|opened| opened.body),
        };
        let read = body.and_then(|body| desk.answers.read(&desk.settings.dialect, body));
        let found = read.and_then(|answer| {
            let sent = *self.awaited.get(answer.stan)?;
            let own = |given| is_terminal(given, self.number, sent.shop);
            answer.terminal.is_none_or(own).then_some((answer.verdict, sent))
        });
        let Some((verdict, sent)) = found else {
            if !read.is_some_and(|answer| self.is_owed_again(answer.stan)) {
                tally.unmatched += u64::from(desk.counts(desk.now));
            }
            return;
        };
        self.awaited.remove(sent.stan);
        let repeated = sent.again > 0 && !sent.kind.is_request();
        if repeated {
            self.owed_again.insert(sent.stan, sent.again);
        }
        let took = desk.now.since(sent.at);
        let answer = match verdict {
            Verdict::Approved => Answer::Approved,
            Verdict::Declined => Answer::Declined,
            Verdict::None => Answer::Other,
            Verdict::Inoperative if took < desk.settings.at_once => Answer::Refused,
            Verdict::Inoperative => Answer::Overdue,
        };
        if verdict == Verdict::Inoperative {
            desk.may_try_again(&sent);
        }
        if desk.counts(sent.at) {
            let took = if repeated { Took::Repeated } else { Took::Latency(took) };
            tally.answered(sent.flow.into(), sent.kind, answer, took);
        }
    }

    /// Whether a message that was answered had been sent again before that: each sending may have an
    /// answer of its own.
    fn is_owed_again(&mut self, stan: u32) -> bool {
        let owed = self.owed_again.get_mut(&stan).filter(|owed| **owed > 0);
        owed.map(|owed| *owed -= 1).is_some()
    }

    /// Gives up what was not answered for too long, and sends again what may not be refused.
    pub(super) fn sweep(&mut self, floor: &mut Floor, tally: &mut Tally) {
        if self.awaits() == 0 {
            return;
        }
        let desk = &floor.desk;
        let (patience, repeat_after) = (desk.settings.patience, desk.settings.repeat_after);
        let (mut forgotten, mut full) = (0, self.is_full());
        for (sent, told) in self.awaited.iter_mut() {
            let repeats = u32::from(sent.again) + 1;
            if desk.now >= sent.at.after(patience) {
                sent.stan = 0;
                forgotten += 1;
            } else if !sent.kind.is_request()
                && desk.now >= sent.at.after(repeat_after.saturating_mul(repeats))
                && !full
            {
                sent.again = sent.again.saturating_add(1);
                desk.deck.write_again(sent, told, self.number, &mut self.out);
                full = self.out.len() - self.written >= OUT_BYTES_MAX;
                tally.repeats += u64::from(desk.counts(sent.at));
            }
        }
        self.awaited.forgot(forgotten);
    }
}

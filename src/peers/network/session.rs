//! One connection of a network: what it sends, and which answer is whose.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::kind::Occasion;
use super::pacer::Arrival;
use super::tally::{Answer, Took};
use super::{Flow, Kind, NetworkSettings, Tally};
use crate::clock::{Clock, Moment, Utc};
use crate::iso8583::{Spans, View, approves};
use crate::net::buffer::{ReadBuffer, WriteBuffer};
use crate::net::stream::{Reader, Writer};
use crate::peers::{Card, Message};
use crate::traffic::Text;
use crate::wire::Splitter;

/// More than any message of any network.
const FRAME_BYTES_MAX: usize = 65_535;
/// Messages that wait to be written.
const OUT_BYTES_MAX: usize = 1 << 20;
/// It looks so often what is to be repeated, and whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// STANs have six digits, of which 000000 is none.
const STANS: u32 = 999_999;
/// Prices, in the currency's smallest unit.
const AMOUNTS: std::ops::Range<u32> = 100..50_000;

/// A message whose answer is awaited.
struct Awaited {
    at: Moment,
    flow: usize,
    kind: Kind,
    terminal: Text<8>,
    /// What is sent again if it is not answered, and when.
    repeat: Option<(Message, Moment)>,
    repeated: bool,
}

/// One connection.
pub(super) struct Session {
    pub(super) number: usize,
    pub(super) settings: Arc<NetworkSettings>,
    pub(super) tally: Arc<Mutex<Tally>>,
    pub(super) clock: Clock,
    pub(super) arrivals: mpsc::Receiver<Arrival>,
    pub(super) rng: fastrand::Rng,
    /// What is not answered by then never will be.
    pub(super) end: Moment,
}

/// What a session keeps while it runs.
struct Talk {
    number: usize,
    settings: Arc<NetworkSettings>,
    tally: Arc<Mutex<Tally>>,
    rng: fastrand::Rng,
    awaited: HashMap<u32, Awaited>,
    stan: u32,
    /// What a reversal takes back.
    last_request: (u32, Utc),
    out: WriteBuffer,
    spans: Spans,
    scratch: Vec<u8>,
}

impl Session {
    /// Sends what arrives and takes the answers, until nothing more will come of either.
    pub(super) async fn run(mut self, mut reader: Reader, writer: Writer) {
        let mut talk = Talk::new(&self);
        let mut splitter = Splitter::new(self.settings.framing, FRAME_BYTES_MAX);
        let mut unread = ReadBuffer::new(&splitter);
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut arriving = true;
        while arriving || !talk.awaited.is_empty() {
            let unwritten = talk.out.pending().len();
            tokio::select! {
                arrival = self.arrivals.recv(), if arriving && unwritten < OUT_BYTES_MAX / 2 => {
                    arriving = arrival.is_some();
                    let mut next = arrival;
                    while let Some(arrival) = next {
                        talk.send(arrival, self.clock.now());
                        next = self.arrivals.try_recv().ok();
                    }
                }
                read = reader.fill(&mut unread) => {
                    let open = matches!(read, Ok(bytes) if bytes > 0);
                    if !open || talk.take(&mut splitter, &mut unread, self.clock.now()).is_none() {
                        talk.tally().closed += 1;
                        return;
                    }
                }
                _ = looks.tick() => {
                    let now = self.clock.now();
                    if now >= self.end {
                        return;
                    }
                    talk.repeat(now);
                }
                () = writer.writable(), if unwritten > 0 => {}
            }
            // A broken connection shows when it is read.
            let written = writer.try_write(talk.out.pending()).unwrap_or(0);
            talk.out.advance(written);
        }
    }
}

impl Talk {
    fn new(session: &Session) -> Self {
        let Session { number, settings, tally, rng, .. } = session;
        // Connections count from different numbers, as the terminals behind them would.
        let share = STANS / u32::try_from(settings.connections).unwrap_or(u32::MAX).max(1);
        let first = share.saturating_mul(u32::try_from(*number).unwrap_or(0));
        Self {
            number: *number,
            settings: Arc::clone(settings),
            tally: Arc::clone(tally),
            rng: rng.clone(),
            awaited: HashMap::new(),
            stan: first,
            last_request: (first, Utc::now()),
            out: WriteBuffer::new(settings.framing, OUT_BYTES_MAX),
            spans: Spans::default(),
            scratch: Vec::new(),
        }
    }

    fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        // The counts are whole between any two statements, whoever panicked.
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&mut self, arrival: Arrival, now: Moment) {
        let settings = Arc::clone(&self.settings);
        let Some(Flow { range, shops, mix, .. }) = settings.flows.get(arrival.flow) else { return };
        let kind = mix.draw(&mut self.rng);
        let place = self.rng.usize(..shops.len().max(1));
        let Some(shop) = shops.get(place) else { return };
        let Some(stan) = self.next_stan() else { return self.tally().unsent += 1 };
        let terminal = format!("T{:03}{:04}", self.number % 1_000, place % 10_000);
        let time = Utc::now();
        let occasion = Occasion {
            kind,
            stan,
            terminal: &terminal,
            card: &Card::random(range, &mut self.rng),
            shop,
            time,
            amount: self.rng.u32(AMOUNTS),
            original: self.last_request,
        };
        let message = occasion.message();
        if !self.queue(&message) {
            return self.tally().unsent += 1;
        }
        self.tally().sent(arrival.flow, kind);
        if kind.is_request() {
            self.last_request = (stan, time);
        }
        let repeat =
            (!kind.is_request()).then(|| (message.repeated(), now.after(settings.repeat_after)));
        let (at, flow, terminal) = (arrival.at, arrival.flow, Text::cut(terminal.as_bytes()));
        let awaited = Awaited { at, flow, kind, terminal, repeat, repeated: false };
        self.awaited.insert(stan, awaited);
    }

    /// The next number that nothing waits under; `None` when there is none.
    fn next_stan(&mut self) -> Option<u32> {
        let busy = self.awaited.len();
        for _ in 0..=busy {
            self.stan = self.stan % STANS + 1;
            if !self.awaited.contains_key(&self.stan) {
                return Some(self.stan);
            }
        }
        None
    }

    /// Queues a message to be written; false when it cannot be written in this dialect, or there is
    /// no room.
    fn queue(&mut self, message: &Message) -> bool {
        self.scratch.clear();
        message.encode(&self.settings.dialect, &mut self.scratch).is_ok()
            && self.out.push(&self.scratch).is_ok()
    }

    /// Takes every whole answer; `None` when a length cannot be believed.
    fn take(
        &mut self,
        splitter: &mut Splitter,
        unread: &mut ReadBuffer,
        now: Moment,
    ) -> Option<()> {
        while let Some(split) = splitter.split(unread.unread()).ok()? {
            if !split.frame.is_empty() {
                self.settle(split.frame, now);
            }
            let bytes = split.whole.len();
            unread.consume(bytes);
        }
        Some(())
    }

    /// Finds whose answer it is: by STAN and, where the answer has one, by terminal.
    fn settle(&mut self, frame: &[u8], now: Moment) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(view) = View::parse(&self.settings.dialect, frame, &mut self.spans) else {
            tally.unmatched += 1;
            return;
        };
        let stan = view.text::<6>(11).and_then(|stan| stan.to_string().parse().ok());
        let terminal = view.text::<8>(41);
        let found = stan.filter(|stan| {
            self.awaited.get(stan).is_some_and(|awaited: &Awaited| {
                view.mti().is_answer() && terminal.is_none_or(|given| given == awaited.terminal)
            })
        });
        let Some(Awaited { at, flow, kind, repeated, .. }) =
            found.and_then(|stan| self.awaited.remove(&stan))
        else {
            tally.unmatched += 1;
            return;
        };
        let took = now.since(at);
        let code = view.text::<4>(39).unwrap_or_default();
        let answer = match code.as_bytes() {
            b"91" if took < self.settings.at_once => Answer::Refused,
            b"91" => Answer::Overdue,
            code if approves(view.mti().version(), code) => Answer::Approved,
            _ => Answer::Declined,
        };
        let took = if repeated { Took::Repeated } else { Took::Latency(took) };
        tally.answered(flow, kind, answer, took);
    }

    /// Sends again what was not answered in time.
    fn repeat(&mut self, now: Moment) {
        let mut again = Vec::new();
        for awaited in self.awaited.values_mut() {
            if let Some((message, due)) = &mut awaited.repeat
                && *due <= now
            {
                *due = now.after(self.settings.repeat_after);
                awaited.repeated = true;
                again.push(message.clone());
            }
        }
        for message in again {
            if self.queue(&message) {
                self.tally().repeats += 1;
            }
        }
    }
}

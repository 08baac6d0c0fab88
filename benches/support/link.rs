//! A link in the midst of its traffic, without sockets: messages go through the exchange, over the
//! real queue to the host and the real buffer of a session.

use std::hint::black_box;
use std::sync::Arc;

use tollgate::clock::Moment;
use tollgate::exchange::{
    ConnectionId, Exchange, Flow, Outcome, Room, Sequence, SessionId, Settings, Sink,
};
use tollgate::gate::{self, Gate};
use tollgate::iso8583::Dialect;
use tollgate::limits::{LOOK_AHEAD, Policy};
use tollgate::net::buffer::WriteBuffer;
use tollgate::net::host_queue::{Fill, HostQueue};
use tollgate::traffic::LinkId;
use tollgate::wire::{Framing, Header};

use crate::limits::{Tokens, rules};

pub(crate) const MERCHANTS: u32 = 100_000;
/// Messages that a turn deals with; as many are in flight before their answers come.
pub(crate) const BATCH: u32 = 128;
/// 100,000 messages a second.
const NANOS_PER_MESSAGE: u64 = 10_000;
/// How often a worker looks at its deadlines.
const TICK_NANOS: u64 = 5_000_000;
const SESSION: SessionId = SessionId { slot: 0, generation: 1 };
const CONNECTION: ConnectionId = ConnectionId { slot: 0, generation: 1 };

/// An ordinary purchase of 165 bytes: 15 fields behind a binary bitmap. `parse` has the same one
/// with its bitmap in hexadecimal.
pub(crate) fn purchase(stan: u32, merchant: u32) -> Vec<u8> {
    let mut message = b"0100\x72\x38\x04\x81\x08\xe0\x80\x00".to_vec();
    let (place, bin) = ("COFFEE AND CAKE, LONG ROATOWN         GB", merchant % 64);
    let text = format!(
        "164111{bin:04}11111111000000000000012345060412{:04}{:06}1234560604051000612345\
         6{stan:012}TERMID01SHOP{merchant:08}   {place}826",
        stan / 1_000_000 % 10_000,
        stan % 1_000_000,
    );
    message.extend_from_slice(text.as_bytes());
    message
}

/// The host's approval of it, of 99 bytes.
fn approval(stan: u32, merchant: u32) -> Vec<u8> {
    let mut message = b"0110\x32\x20\x00\x01\x0a\xc0\x80\x00".to_vec();
    let text = format!(
        "000000000000012345060412{:04}{:06}06123456{stan:012}00TERMID01SHOP{merchant:08}   826",
        stan / 1_000_000 % 10_000,
        stan % 1_000_000,
    );
    message.extend_from_slice(text.as_bytes());
    message
}

/// The buffers of a worker, written by nobody: what is queued is gone at the end of the turn.
struct Buffers {
    to_host: HostQueue,
    to_session: WriteBuffer,
    became: Became,
}

/// What became of messages.
#[derive(Clone, Copy)]
pub(crate) struct Became {
    pub(crate) forwarded: u32,
    /// Answered by tollgate itself.
    pub(crate) answered: u32,
    /// The host's answers.
    pub(crate) delivered: u32,
    pub(crate) others: u32,
}

impl Buffers {
    const fn new() -> Self {
        Self {
            to_host: HostQueue::new(Framing::Be16, 1 << 20),
            to_session: WriteBuffer::new(Framing::Be16, 1 << 20),
            became: Became { forwarded: 0, answered: 0, delivered: 0, others: 0 },
        }
    }

    fn flush(&mut self) {
        let bytes = black_box(self.to_host.pending()).len();
        self.to_host.advance(bytes);
        let bytes = black_box(self.to_session.pending()).len();
        self.to_session.advance(bytes);
    }
}

impl Sink for Buffers {
    fn room(&self, frame_bytes: usize) -> Room {
        match self.to_host.fill(frame_bytes) {
            Fill::Open => Room::Open,
            Fill::Tight => Room::Tight,
            Fill::Full => Room::Full,
        }
    }

    fn forward(&mut self, frame: &[u8]) -> Option<Sequence> {
        self.to_host.push(frame).ok().map(Sequence)
    }

    fn withdraw(&mut self, sequence: Sequence) -> bool {
        self.to_host.withdraw(sequence.0)
    }

    fn deliver(&mut self, _: SessionId, frame: &[u8]) -> bool {
        self.to_session.push(frame).is_ok()
    }

    fn give_back(&mut self, _: ConnectionId, frame: &[u8]) -> bool {
        self.to_host.push(frame).is_ok()
    }

    fn record(&mut self, outcome: Outcome) {
        let became = &mut self.became;
        *match outcome {
            Outcome::Forwarded { .. } => &mut became.forwarded,
            Outcome::Answered { .. } => &mut became.answered,
            Outcome::Delivered { .. } => &mut became.delivered,
            // Said beside what becomes of it.
            Outcome::CardRead(_) => return,
            _ => &mut became.others,
        } += 1;
    }
}

/// A link with limits per merchant, per BIN and over all, in the midst of its traffic.
pub(crate) struct Link {
    exchange: Exchange,
    buffers: Buffers,
    policy: Arc<Policy>,
    now: u64,
    ticked: u64,
    stan: u32,
    random: fastrand::Rng,
}

/// One message of the network, and what the host will say of it.
pub(crate) struct Pair {
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Link {
    /// With limits per merchant, per BIN and over all.
    pub(crate) fn new(tokens: Tokens) -> Self {
        let rules = rules(3, MERCHANTS as usize, tokens);
        let policy = Arc::new(Policy::new(&rules, &[], 1, 42, Moment::START).unwrap());
        let gate = gate(Arc::clone(&policy));
        let settings = Settings {
            deadline: Settings::DEADLINE,
            answer_timeout: Settings::ANSWER_TIMEOUT,
            match_fields: Settings::MATCH_FIELDS.to_vec(),
            inflight_max: Settings::INFLIGHT_MAX,
        };
        let mut exchange = Exchange::new(&settings, dialect(), Header::None, gate, 42);
        exchange.opened(SESSION);
        let mut link = Self {
            exchange,
            buffers: Buffers::new(),
            policy,
            now: 0,
            ticked: 0,
            stan: 0,
            random: fastrand::Rng::with_seed(42),
        };
        // Every merchant has its bucket, and the first token taken from it.
        for first in (0..MERCHANTS).step_by(BATCH as usize) {
            let batch: Vec<_> =
                (first..first + BATCH).map(|at| link.pair(at % MERCHANTS)).collect();
            link.turn(&batch);
        }
        link.buffers = Buffers::new();
        link
    }

    pub(crate) const fn became(&self) -> Became {
        self.buffers.became
    }

    fn pair(&mut self, merchant: u32) -> Pair {
        self.stan += 1;
        Pair { request: purchase(self.stan, merchant), answer: approval(self.stan, merchant) }
    }

    /// The next messages, each of some merchant.
    pub(crate) fn batch(&mut self) -> Vec<Pair> {
        (0..BATCH)
            .map(|_| {
                let merchant = self.random.u32(..MERCHANTS);
                self.pair(merchant)
            })
            .collect()
    }

    /// What the network sent is dealt with and leaves; then what the host says to it.
    pub(crate) fn turn(&mut self, batch: &[Pair]) {
        let Self { exchange, buffers, policy, now, .. } = self;
        *now += NANOS_PER_MESSAGE * u64::from(BATCH);
        let turn = policy.turn(0);
        for together in batch.chunks(LOOK_AHEAD) {
            let mut looked = [const { None }; LOOK_AHEAD];
            for (pair, looked) in together.iter().zip(&mut looked) {
                *looked = exchange.look_ahead(&pair.request);
            }
            looked.iter().flatten().for_each(|looked| exchange.fetch(looked));
            for (Pair { request, .. }, looked) in together.iter().zip(&mut looked) {
                let (looked, now) = (looked.take(), Moment::from_nanos(*now));
                let flow = exchange.request_looked_at(SESSION, request, looked, now, buffers);
                assert_eq!(flow, Flow::Taken);
            }
        }
        drop(turn);
        buffers.flush();
        if exchange.in_flight().0 > 0 {
            for pair in batch {
                exchange.answer(CONNECTION, &pair.answer, Moment::from_nanos(*now), buffers);
            }
            buffers.flush();
        }
        if self.now - self.ticked >= TICK_NANOS {
            self.ticked = self.now;
            self.exchange.tick(Moment::from_nanos(self.now), &mut self.buffers);
        }
    }
}

pub(crate) fn dialect() -> Arc<Dialect> {
    Arc::new(Dialect::preset("iso87_ascii_binbitmap").expect("it is a preset"))
}

/// A gate before `policy`, with everything else by default.
pub(crate) fn gate(policy: Arc<Policy>) -> Gate {
    Gate::new(LinkId(0), gate::Settings::default(), policy)
}

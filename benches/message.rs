//! What one message costs from its bytes to the bytes that leave: parsing, decision, correlation and
//! the buffers, without sockets. Beside it, in the same run, what a foreign codec (`iso8583_rs`)
//! takes for its parsing alone, since times of different runs and machines compare badly.
//!
//! The figure is the time of one item. Messages come in batches as they come from a socket, and lie
//! in the cache as bytes do that were just read; the 100,000 merchants' buckets do not.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench states its expectations")]

use std::hint::black_box;
use std::sync::Arc;

use divan::{Bencher, counter::ItemsCount};
use iso8583_rs::iso8583::iso_spec::{self, IsoMsg};
use tollgate::clock::Moment;
use tollgate::exchange::{
    ConnectionId, Exchange, Flow, Outcome, Room, Sequence, SessionId, Settings, Sink,
};
use tollgate::gate::{self, Gate};
use tollgate::iso8583::{Dialect, FieldSet, LocalCode, Spans, View, compose};
use tollgate::limits::{Burst, Per, Policy, Rate, Rule};
use tollgate::net::buffer::WriteBuffer;
use tollgate::net::host_queue::{Fill, HostQueue};
use tollgate::traffic::LinkId;
use tollgate::wire::{Framing, Header};

fn main() {
    // Says on standard output what it reads, so let it do so before the table.
    iso_spec::spec("");
    divan::main();
}

const MERCHANTS: u32 = 100_000;
/// Messages that a turn deals with; as many are in flight before their answers come.
const BATCH: u32 = 128;
/// 100,000 messages a second.
const NANOS_PER_MESSAGE: u64 = 10_000;
/// How often a worker looks at its deadlines.
const TICK_NANOS: u64 = 5_000_000;
const SESSION: SessionId = SessionId { slot: 0, generation: 1 };
const CONNECTION: ConnectionId = ConnectionId { slot: 0, generation: 1 };

/// An ordinary purchase of 165 bytes: 15 fields behind a binary bitmap. `parse` has the same one
/// with its bitmap in hexadecimal.
fn purchase(stan: u32, merchant: u32) -> Vec<u8> {
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
    forwarded: u32,
    answered: u32,
    delivered: u32,
    others: u32,
}

impl Buffers {
    const fn new() -> Self {
        Self {
            to_host: HostQueue::new(Framing::Be16, 1 << 20),
            to_session: WriteBuffer::new(Framing::Be16, 1 << 20),
            forwarded: 0,
            answered: 0,
            delivered: 0,
            others: 0,
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
        match outcome {
            Outcome::Forwarded { .. } => self.forwarded += 1,
            Outcome::Answered { .. } => self.answered += 1,
            Outcome::Delivered { .. } => self.delivered += 1,
            _ => self.others += 1,
        }
    }
}

/// A link with limits per merchant, per BIN and over all, in the midst of its traffic.
struct Link {
    exchange: Exchange,
    buffers: Buffers,
    policy: Arc<Policy>,
    now: u64,
    ticked: u64,
    stan: u32,
    random: fastrand::Rng,
}

/// One message of the network, and what the host will say of it.
struct Pair {
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Link {
    /// Tokens per second and burst of each limit.
    fn new(merchant: f64, bin: f64, all: f64) -> Self {
        let rule = |name: &str, per, tokens: f64, keys_max| {
            let burst = Burst::tokens(tokens.max(1.0)).unwrap();
            let rule = Rule::new(name, per, Rate::per_second(tokens).unwrap(), burst);
            Rule { bin_digits: 8, keys_max, ..rule }
        };
        let rules = [
            rule("merchant", Per::MERCHANT, merchant, MERCHANTS as usize),
            rule("bin", Per::BIN, bin, 1_000),
            rule("all", Per::NOTHING, all, 1),
        ];
        let policy = Arc::new(Policy::new(&rules, &[], 1, 42, Moment::START).unwrap());
        let gate = Gate::new(LinkId(0), gate::Settings::default(), Arc::clone(&policy));
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

    fn pair(&mut self, merchant: u32) -> Pair {
        self.stan += 1;
        Pair { request: purchase(self.stan, merchant), answer: approval(self.stan, merchant) }
    }

    /// The next messages, each of some merchant.
    fn batch(&mut self) -> Vec<Pair> {
        (0..BATCH)
            .map(|_| {
                let merchant = self.random.u32(..MERCHANTS);
                self.pair(merchant)
            })
            .collect()
    }

    /// What the network sent is dealt with and leaves; then what the host says to it.
    fn turn(&mut self, batch: &[Pair]) {
        let Self { exchange, buffers, policy, now, .. } = self;
        *now += NANOS_PER_MESSAGE * u64::from(BATCH);
        let turn = policy.turn(0);
        for pair in batch {
            let flow = exchange.request(SESSION, &pair.request, Moment::from_nanos(*now), buffers);
            assert_eq!(flow, Flow::Taken);
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

fn dialect() -> Arc<Dialect> {
    Arc::new(Dialect::preset("iso87_ascii_binbitmap").expect("it is a preset"))
}

/// Runs turns and returns what became of the messages: forwarded, delivered, answered here, other.
fn run(bencher: Bencher<'_, '_>, link: Link) -> (u32, u32, u32, u32) {
    let link = std::cell::RefCell::new(link);
    bencher
        .counter(ItemsCount::new(BATCH))
        .with_inputs(|| link.borrow_mut().batch())
        .bench_local_refs(|batch| link.borrow_mut().turn(batch));
    let Buffers { forwarded, delivered, answered, others, .. } = link.into_inner().buffers;
    (forwarded, delivered, answered, others)
}

/// Request and answer: two messages are read, one entry is made and removed.
#[divan::bench(sample_size = 1, sample_count = 2_000)]
fn forwarded_and_answered_by_the_host(bencher: Bencher<'_, '_>) {
    let (forwarded, delivered, answered, others) = run(bencher, Link::new(1e6, 1e7, 1e7));
    assert!(forwarded > 0);
    assert_eq!((forwarded, 0, 0), (delivered, answered, others));
}

#[divan::bench(sample_size = 1, sample_count = 2_000)]
fn refused_by_the_merchants_limit(bencher: Bencher<'_, '_>) {
    let (forwarded, _, answered, others) = run(bencher, Link::new(0.0001, 1e7, 1e7));
    assert!(answered > 0);
    assert_eq!((forwarded, others), (0, 0));
}

/// The last limit that is asked refuses: what the two before it took is given back.
#[divan::bench(sample_size = 1, sample_count = 2_000)]
fn refused_by_the_limit_over_all(bencher: Bencher<'_, '_>) {
    let (forwarded, _, answered, others) = run(bencher, Link::new(1e6, 1e7, 0.0001));
    assert!(answered > 0);
    assert_eq!((forwarded, others), (0, 0));
}

/// The parser alone, here and there.
#[divan::bench(sample_size = 1_000)]
fn parse_by_tollgate(bencher: Bencher<'_, '_>) {
    let (dialect, request) = (dialect(), purchase(1, 1));
    let mut spans = Spans::default();
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        let view = View::parse(&dialect, black_box(&request), &mut spans).unwrap();
        assert!(black_box(&view).fault().is_none());
    });
}

#[divan::bench(sample_size = 1_000)]
fn parse_by_iso8583_rs(bencher: Bencher<'_, '_>) {
    let (spec, mut request) = (iso_spec::spec(""), purchase(1, 1));
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        black_box(spec.parse(black_box(&mut request)).unwrap());
    });
}

/// Fields that the refusal of this request echoes.
const ECHOED: [u32; 13] = [2, 3, 4, 7, 11, 12, 13, 25, 32, 37, 41, 42, 49];

/// Parser and answer with Field 39 = 91, here and there; no limit, no buffer.
#[divan::bench(sample_size = 1_000)]
fn parse_and_answer_by_tollgate(bencher: Bencher<'_, '_>) {
    let (dialect, request) = (dialect(), purchase(1, 1));
    let echo = FieldSet::of(&gate::Settings::ECHO);
    let mut spans = Spans::default();
    let mut answer = Vec::with_capacity(512);
    let mut refuse = || {
        let view = View::parse(&dialect, black_box(&request), &mut spans).unwrap();
        answer.clear();
        let slot = compose(black_box(&view), &echo, &mut answer).unwrap();
        assert!(slot.write(&mut answer, LocalCode::IssuerInoperative));
        black_box(answer.as_slice()).to_owned()
    };
    assert_eq!(refuse(), refusal_by_iso8583_rs(&mut purchase(1, 1)), "not the same answer");
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        let view = View::parse(&dialect, black_box(&request), &mut spans).unwrap();
        answer.clear();
        let slot = compose(black_box(&view), &echo, &mut answer).unwrap();
        assert!(slot.write(&mut answer, LocalCode::IssuerInoperative));
        black_box(answer.as_slice());
    });
}

#[divan::bench(sample_size = 1_000)]
fn parse_and_answer_by_iso8583_rs(bencher: Bencher<'_, '_>) {
    let mut request = purchase(1, 1);
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        black_box(refusal_by_iso8583_rs(black_box(&mut request)));
    });
}

fn refusal_by_iso8583_rs(request: &mut Vec<u8>) -> Vec<u8> {
    let spec = iso_spec::spec("");
    let request = spec.parse(request).unwrap();
    let mut answer: IsoMsg = iso_spec::new_msg(spec, spec.get_message_from_header("0110").unwrap());
    answer.set("message_type", "0110").unwrap();
    answer.echo_from(&request, &ECHOED).unwrap();
    answer.set_on(39, "91").unwrap();
    answer.assemble().unwrap()
}

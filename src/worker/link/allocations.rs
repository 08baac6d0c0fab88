//! Tests that a message allocates nothing on its whole way through a worker, once the buffers have
//! grown: cut, decided, queued, counted and written, and its answer back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use allocation_counter::measure;
use tokio::sync::{Semaphore, watch};

use super::*;
use crate::exchange::ConnectionId;
use crate::gate::{self, Gate};
use crate::iso8583::Dialect;
use crate::limits::{Burst, Per, Rate, Rule};
use crate::net::listener::Bound;
use crate::net::stream::{Reader, Socket, Writer};
use crate::net::upstream;
use crate::reason::Reason;
use crate::traffic::LinkId;
use crate::wire::{Framing, Header};
use crate::worker::LinkSettings;
use crate::{exchange, net};

const FRAMING: Framing = Framing::Be16;
const FRAME_BYTES_MAX: usize = 4_096;
/// Messages that lie in the socket when it is read.
const BATCH: usize = 20;
const WARM_UP: usize = 100;
const MEASURED: usize = 100;

/// One end of a connection.
struct End {
    reader: Reader,
    writer: Writer,
    buffer: ReadBuffer,
    splitter: Splitter,
}

impl End {
    async fn open(socket: Socket) -> Self {
        let (reader, writer) = socket.open().unwrap();
        writer.writable().await;
        let splitter = Splitter::new(FRAMING, FRAME_BYTES_MAX);
        Self { reader, writer, buffer: ReadBuffer::new(&splitter), splitter }
    }

    fn send(&self, frames: &[Vec<u8>]) {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| FRAMING.join(frame, &mut bytes).unwrap());
        assert_eq!(self.writer.try_write(&bytes).unwrap(), bytes.len());
    }

    /// Takes these frames, which must come as they are.
    async fn take(&mut self, frames: &[Vec<u8>]) {
        for frame in frames {
            loop {
                if let Some(split) = self.splitter.split(self.buffer.unread()).unwrap() {
                    assert_eq!(split.frame, frame);
                    let bytes = split.whole.len();
                    self.buffer.consume(bytes);
                    break;
                }
                assert!(self.reader.fill(&mut self.buffer).await.unwrap() > 0);
            }
        }
    }
}

/// Reads until the frames of a batch lie in the buffer.
async fn gather((reader, buffer): &mut (Reader, ReadBuffer), frames: &[Vec<u8>]) {
    let bytes: usize = frames.iter().map(|frame| FRAMING.overhead_bytes() + frame.len()).sum();
    while buffer.unread().len() < bytes {
        assert!(reader.fill(buffer).await.unwrap() > 0);
    }
}

/// Two ends of one connection.
async fn two_ends() -> (End, End, SocketAddr) {
    let bound = Bound::take("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = bound.address().unwrap();
    let listener = bound.listen().unwrap();
    let dialled = Socket::dial(address, Duration::from_secs(5)).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    (End::open(dialled).await, End::open(accepted).await, address)
}

/// A link with one session and one connection, and who is at their other ends.
struct Road {
    link: Link,
    session: SessionId,
    connection: ConnectionId,
    /// What the link reads.
    from_network: (Reader, ReadBuffer),
    from_host: (Reader, ReadBuffer),
    network: End,
    host: End,
    sent: usize,
}

impl Road {
    /// A limit over all with so many tokens, and one per merchant and BIN with plenty.
    async fn new(tokens: f64) -> Self {
        let rule = |name: &str, per, tokens: f64| {
            let burst = Burst::tokens(tokens.max(1.0)).unwrap();
            Rule {
                keys_max: 1_000,
                ..Rule::new(name, per, Rate::per_second(tokens).unwrap(), burst)
            }
        };
        let rules = [
            rule("merchant", Per::MERCHANT, 1e7),
            rule("bin", Per::BIN, 1e7),
            rule("all", Per::NOTHING, tokens),
        ];
        let clock = Clock::start();
        let policy = Arc::new(Policy::new(&rules, &[], 1, 1, clock.now()).unwrap());
        let gate = gate::Settings::default();
        let exchange = Exchange::new(
            &exchange::Settings {
                deadline: Duration::from_secs(60),
                answer_timeout: Duration::from_secs(600),
                match_fields: exchange::Settings::MATCH_FIELDS.to_vec(),
                inflight_max: exchange::Settings::INFLIGHT_MAX,
            },
            Arc::new(Dialect::preset("iso87_ascii").unwrap()),
            Header::None,
            Gate::new(LinkId(0), gate, Arc::clone(&policy)),
            1,
        );
        let settings = LinkSettings {
            name: "link".to_owned(),
            session: net::session::Settings {
                framing: FRAMING,
                keepalive: Default::default(),
                frame_bytes_max: FRAME_BYTES_MAX,
                frame_timeout: Duration::from_secs(60),
                idle_timeout: None,
            },
            upstream: upstream::Settings {
                name: "host".to_owned(),
                connect: Vec::new(),
                framing: FRAMING,
                connections: 1,
            },
            close_when_down: false,
        };
        let surroundings = Surroundings { clock, policy, worker: 0 };
        let (host_up, _) = watch::channel(false);
        let mut link = Link::new(&settings, exchange, surroundings, host_up, Arc::default());
        let (host, ours, address) = two_ends().await;
        let (connection, _) = link.connected(0, address, ours.writer);
        let from_host = (ours.reader, ours.buffer);
        let (network, ours, address) = two_ends().await;
        let seat = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let session = link.open_session(address, ours.writer, seat).unwrap();
        let from_network = (ours.reader, ours.buffer);
        Self { link, session, connection, from_network, from_host, network, host, sent: 0 }
    }

    /// The next requests and their answers by the host.
    fn batch(&mut self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let stans = self.sent..self.sent + BATCH;
        self.sent += BATCH;
        let requests = stans.clone().map(|stan| message("0100", "7220000000C08000", stan, ""));
        let answers = stans.map(|stan| message("0110", "7220000002C08000", stan, "00"));
        (requests.collect(), answers.collect())
    }
}

fn message(mti: &str, bitmap: &str, stan: usize, code: &str) -> Vec<u8> {
    let merchant = format!("SHOP{:011}", stan % 50);
    format!(
        "{mti}{bitmap}164111111111111111000000000000001000\
         1130045900{stan:06}{code}TERM0001{merchant}840"
    )
    .into_bytes()
}

fn unstalled(stalled: Stalled) {
    panic!("{stalled:?}");
}

/// What a turn, the writing after it and a look at the time allocate.
fn allocations_of(link: &mut Link, turn: impl FnOnce(&mut Link) -> Next) -> u64 {
    let mut next = None;
    let allocations = measure(|| {
        next = Some(turn(link));
        link.flush(unstalled);
        link.tick();
    });
    assert!(matches!(next, Some(Next::Read)), "{next:?}");
    allocations.count_total
}

fn on_a_runtime(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

#[test]
fn a_message_and_its_answer_allocate_nothing_on_their_way_through_a_worker() {
    on_a_runtime(async {
        let mut road = Road::new(1e7).await;
        let (mut at_first, mut later) = (0, 0);
        for round in 0..WARM_UP + MEASURED {
            let (requests, answers) = road.batch();
            road.network.send(&requests);
            gather(&mut road.from_network, &requests).await;
            let (session, buffer) = (road.session, &mut road.from_network.1);
            let there = allocations_of(&mut road.link, |link| link.session_turn(session, buffer));
            road.host.take(&requests).await;
            road.host.send(&answers);
            gather(&mut road.from_host, &answers).await;
            let (connection, buffer) = (road.connection, &mut road.from_host.1);
            let back = allocations_of(&mut road.link, |link| link.host_turn(connection, buffer));
            road.network.take(&answers).await;
            *if round < WARM_UP { &mut at_first } else { &mut later } += there + back;
        }
        assert!(at_first > 0, "the counter counts nothing");
        assert_eq!(later, 0);
    });
}

#[test]
fn a_refused_message_allocates_nothing_on_its_way_through_a_worker() {
    on_a_runtime(async {
        let mut road = Road::new(0.001).await;
        let mut later = 0;
        for round in 0..WARM_UP + MEASURED {
            let (requests, _) = road.batch();
            road.network.send(&requests);
            gather(&mut road.from_network, &requests).await;
            let (session, buffer) = (road.session, &mut road.from_network.1);
            let count = allocations_of(&mut road.link, |link| link.session_turn(session, buffer));
            // The answers would fill the socket if nobody took them.
            while road.network.buffer.unread().is_empty() {
                road.network.reader.fill(&mut road.network.buffer).await.unwrap();
            }
            let unread = road.network.buffer.unread().len();
            road.network.buffer.consume(unread);
            if round >= WARM_UP {
                later += count;
            }
        }
        let refused = &road.link.port.counters().answered;
        let refused: u64 = refused.iter().map(|by| by[Reason::Limit as usize].get()).sum();
        assert_eq!(refused, (BATCH * (WARM_UP + MEASURED) - 1) as u64);
        assert_eq!(later, 0);
    });
}

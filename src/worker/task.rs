//! A worker's tasks: one per session and per connection to read, one to write after all of them,
//! one to look at the time.
//!
//! They only wait and call the link; what happens in between is in [`super::link`]. A task never
//! holds a link across an await.

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::task::{spawn_local, yield_now};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{debug, error, warn};

use super::link::{Link, Next, Surroundings};
use super::port::Stalled;
use super::{Command, Left, LinkSettings, PARTING, Worker};
use crate::exchange::{ConnectionId, SessionId};
use crate::limits::Policy;
use crate::net::buffer::{Inbox, ReadBuffer, Rest};
use crate::net::stream::{Reader, Socket};
use crate::net::upstream::{Backoff, Dialer};

/// Deadlines are looked at so often; an answer is at most so late.
const TICK: Duration = Duration::from_millis(5);
/// Slow peers are looked for so often, in ticks.
const TICKS_PER_ROUND: u32 = 20;
/// How much of the tables of limits one tick may clean.
const SWEEP_BUDGET: usize = 512;
/// A connection that lived so long was of use, and its loss is the first again.
const PROVEN: Duration = Duration::from_secs(10);
/// A connection that was given up is listened to for so long: what its host had said lies there
/// already.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A link, shared by the tasks of one thread.
type Shared = Rc<RefCell<Link>>;

/// One link and the bell that is rung when something was queued.
#[derive(Clone)]
struct Desk {
    link: Shared,
    /// What all of its sessions are read into.
    inbox: Rc<Inbox>,
    flush: Rc<Notify>,
}

impl Desk {
    fn session_turn(&self, id: SessionId, buffer: &mut ReadBuffer) -> Next {
        let next = self.link.borrow_mut().session_turn(id, buffer);
        self.flush.notify_one();
        next
    }
}

/// Serves a worker's links until the control thread is gone.
pub(super) async fn serve(worker: Worker) {
    let Worker { number, clock, policy, sync_bell, links, mut commands } = worker;
    let flush = Rc::new(Notify::new());
    let surroundings = Surroundings { clock, policy: policy.clone(), worker: number };
    let mut desks = Vec::new();
    for start in links {
        let link = Link::new(
            &start.settings,
            start.exchange,
            surroundings.clone(),
            start.host_up,
            start.counters,
        );
        let inbox = Rc::new(Inbox::new(link.session_buffer()));
        let desk = Desk { link: Rc::new(RefCell::new(link)), inbox, flush: Rc::clone(&flush) };
        for slot in 0..start.settings.upstream.connections {
            let (desk, settings) = (desk.clone(), start.settings.clone());
            supervise("connection", move || stay_connected(desk.clone(), slot, settings.clone()));
        }
        desks.push(desk);
    }
    let links: Vec<Shared> = desks.iter().map(|desk| Rc::clone(&desk.link)).collect();
    supervise("flush", {
        let (links, flush) = (links.clone(), Rc::clone(&flush));
        let sync = sync_bell.map(|bell| SyncBell { policy: policy.clone(), bell });
        move || write_all(links.clone(), Rc::clone(&flush), sync.clone())
    });
    supervise("time", {
        let links = links.clone();
        move || keep_time(links.clone(), policy.clone(), surroundings.clone(), Rc::clone(&flush))
    });
    while let Some(command) = commands.recv().await {
        obey(command, &desks, &links);
    }
}

/// Runs a task for ever. It ends only by a bug, which must not end the link with it.
fn supervise<F: Future<Output = ()> + 'static>(name: &'static str, task: impl Fn() -> F + 'static) {
    spawn_local(async move {
        loop {
            let ended = spawn_local(task()).await;
            error!(task = name, panicked = ended.is_err(), "worker task ended, starting it again");
            sleep(TICK).await;
        }
    });
}

fn obey(command: Command, desks: &[Desk], links: &[Shared]) {
    match command {
        Command::Accept { link, socket, peer, seat } => {
            if let Some(desk) = desks.get(link) {
                accept(desk, socket, peer, seat);
            }
        }
        Command::Drain { within, done } => {
            spawn_local(drain(links.to_vec(), within, done));
        }
    }
}

fn accept(desk: &Desk, socket: Socket, peer: SocketAddr, seat: OwnedSemaphorePermit) {
    let timeout = desk.link.borrow().session_settings().frame_timeout;
    let (reader, writer) = match socket.given_up_after(timeout).and_then(Socket::open) {
        Ok(halves) => halves,
        Err(error) => return debug!(%peer, %error, "session was gone before it began"),
    };
    let Some(id) = desk.link.borrow_mut().open_session(peer, writer, seat) else { return };
    let task = spawn_local(read_session(desk.clone(), id, reader));
    desk.link.borrow_mut().reads_with(id, task.abort_handle());
    let desk = desk.clone();
    spawn_local(async move {
        let panicked = task.await.is_err_and(|error| error.is_panic());
        if panicked {
            error!(%peer, "a bug in tollgate ended this session; other sessions go on");
            desk.link.borrow_mut().close_session(id, "internal fault");
        }
    });
}

/// Reads a session to its end.
async fn read_session(desk: Desk, id: SessionId, mut reader: Reader) {
    let room = desk.link.borrow().room();
    let mut rest = Rest::default();
    loop {
        let taken = reader.take_turn(&desk.inbox, &mut rest, |buffer| {
            let more = buffer.is_full();
            (desk.session_turn(id, buffer), more)
        });
        let (mut next, more) = match taken.await {
            Ok(Some(taken)) => taken,
            Ok(None) => return desk.link.borrow_mut().end_of_stream(id, rest.bytes()),
            Err(error) => {
                return desk.link.borrow_mut().break_off(id, error.kind());
            }
        };
        loop {
            match next {
                // To read on would not wait, and the others would have no turn between the two.
                Next::Read if more => {
                    yield_now().await;
                    break;
                }
                Next::Read => break,
                Next::Yield => yield_now().await,
                Next::Wait => room.notified().await,
                Next::Close(cause, detail) => {
                    return desk.link.borrow_mut().shut(id, cause, &detail);
                }
                Next::End => return,
            }
            next = desk.inbox.lend(&mut rest, |buffer| desk.session_turn(id, buffer));
        }
    }
}

/// Keeps one connection to the host open.
async fn stay_connected(desk: Desk, slot: usize, settings: LinkSettings) {
    let mut dialer = Dialer::new(&settings.upstream.connect);
    let mut backoff = Backoff::default();
    let mut told = false;
    let mut before = false;
    loop {
        match dialer.dial().await {
            Ok((socket, address)) => {
                told = false;
                if before {
                    desk.link.borrow().count_reconnect();
                }
                before = true;
                let lived_long = converse(&desk, slot, socket, address, &settings).await;
                if lived_long {
                    backoff.reset();
                }
            }
            Err(error) if !told => {
                told = true;
                let (link, upstream) = (&settings.name, &settings.upstream.name);
                warn!(%link, %upstream, connection = slot, %error, "cannot reach host, will keep trying");
            }
            Err(error) => debug!(link = %settings.name, connection = slot, %error, "still no host"),
        }
        sleep(backoff.next(fastrand::u64(..))).await;
    }
}

/// Serves one connection to its end; says whether it lived long enough to have been of use.
async fn converse(
    desk: &Desk,
    slot: usize,
    socket: Socket,
    address: SocketAddr,
    settings: &LinkSettings,
) -> bool {
    let timeout = settings.session.frame_timeout;
    let (mut reader, writer) = match socket.given_up_after(timeout).and_then(Socket::open) {
        Ok(halves) => halves,
        Err(error) => {
            debug!(%address, %error, "connection was gone before it began");
            return false;
        }
    };
    let (id, close) = desk.link.borrow_mut().connected(slot, address, writer);
    desk.flush.notify_one();
    let mut buffer = desk.link.borrow().host_buffer();
    let began = desk.link.borrow().clock().now();
    let ended = tokio::select! {
        why = read_host(desk, id, &mut reader, &mut buffer) => Some(why),
        () = close.notified() => None,
    };
    let why = ended.as_deref().unwrap_or("it takes or finishes nothing any more");
    desk.link.borrow_mut().disconnected(id, why);
    desk.flush.notify_one();
    if ended.is_none() {
        // What it answered before it took nothing more are answers all the same: an approval that
        // is not read is money on hold that nobody knows of. The next connection need not wait.
        let desk = desk.clone();
        let hear_out = async move { read_host(&desk, id, &mut reader, &mut buffer).await };
        spawn_local(tokio::time::timeout(LAST_WORDS, hear_out));
    }
    let ended = desk.link.borrow().clock().now();
    ended.since(began) >= PROVEN
}

/// Reads a connection to its end and says why it ended. What lies in `buffer` already comes first.
async fn read_host(
    desk: &Desk,
    id: ConnectionId,
    reader: &mut Reader,
    buffer: &mut ReadBuffer,
) -> String {
    let mut more = false;
    loop {
        loop {
            let next = desk.link.borrow_mut().host_turn(id, buffer);
            desk.flush.notify_one();
            match next {
                Next::Read if more => {
                    yield_now().await;
                    break;
                }
                Next::Read => break,
                Next::Yield | Next::Wait => yield_now().await,
                Next::Close(_, detail) => return detail,
                Next::End => return "closed".to_owned(),
            }
        }
        match reader.fill(buffer).await {
            Ok(0) if buffer.unread().is_empty() => return "closed by the host".to_owned(),
            Ok(0) => return "closed by the host in the middle of a frame".to_owned(),
            Ok(_) => more = buffer.is_full(),
            // What the platform says of it is worded in many ways.
            Err(error) => return error.kind().to_string(),
        }
    }
}

/// Writes what was queued, after every peer that was ready has had its turn: the bell is rung
/// during a turn, and this task then stands behind all that were ready before it.
async fn write_all(links: Vec<Shared>, bell: Rc<Notify>, sync: Option<SyncBell>) {
    loop {
        bell.notified().await;
        if let Some(SyncBell { policy, bell }) = &sync
            && policy.wants_sync()
        {
            bell.notify_one();
        }
        for link in &links {
            flush(link);
        }
    }
}

/// How a worker's turn tells the lease sync that a key cannot wait.
#[derive(Clone)]
struct SyncBell {
    policy: Arc<Policy>,
    bell: Arc<Notify>,
}

fn flush(link: &Shared) {
    link.borrow_mut().flush(|socket| {
        spawn_local(wait_for(Rc::clone(link), socket));
    });
}

/// Writes on whenever a socket takes bytes again, until it has taken all.
async fn wait_for(link: Shared, socket: Stalled) {
    let mut stalled = Some(socket);
    while let Some(socket) = stalled.take() {
        match &socket {
            Stalled::Session(_, writer) | Stalled::Connection(_, writer) => writer.writable().await,
        }
        // A host that is gone makes its socket writable too. Whoever reads it shall have the first
        // word: what is written after its end counts as written, and is not sent again.
        yield_now().await;
        link.borrow_mut().resume(&socket, |again| stalled = Some(again));
    }
}

/// Looks at deadlines and at who is too slow.
async fn keep_time(
    links: Vec<Shared>,
    policy: Arc<Policy>,
    surroundings: Surroundings,
    bell: Rc<Notify>,
) {
    let mut ticks = interval(TICK);
    // After a pause of the whole process, one late tick says all that many would.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut count = 0_u32;
    loop {
        ticks.tick().await;
        count = count.wrapping_add(1);
        policy.sweep(surroundings.clock.now(), SWEEP_BUDGET);
        for link in &links {
            let mut link = link.borrow_mut();
            link.tick();
            if count.is_multiple_of(TICKS_PER_ROUND) {
                link.look_around();
            }
        }
        bell.notify_one();
    }
}

/// Ends a worker's conversations in order.
async fn drain(links: Vec<Shared>, within: Duration, done: oneshot::Sender<Left>) {
    for link in &links {
        link.borrow_mut().drain();
    }
    let all_done = async {
        while !links.iter().all(|link| link.borrow().left() == (0, 0, false)) {
            sleep(TICK).await;
        }
    };
    // What is not done by then is counted below.
    let _ = tokio::time::timeout(within, all_done).await;
    let mut left = Left::default();
    for link in &links {
        let (requests, others, unwritten) = link.borrow().left();
        left.requests += requests;
        left.others += others;
        left.unwritten += usize::from(unwritten);
        link.borrow_mut().part();
    }
    let deserted = async {
        while !links.iter().all(|link| link.borrow().is_deserted()) {
            sleep(TICK).await;
        }
    };
    // Peers that do not end their side by then are cut off.
    let _ = tokio::time::timeout(PARTING, deserted).await;
    // The control thread may have given up already.
    let _ = done.send(left);
}

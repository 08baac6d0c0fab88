//! What the connections of a host share on its thread: the port, the script, and what is waiting.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::behaviour::Behaviour;
use super::connection::converse;
use super::course::{Course, Part};
use super::tally::{Counts, locked};
use super::{Command, HostSettings};
use crate::clock::{Clock, Moment};
use crate::net::listener::{Bound, Listener};
use crate::net::stream::Socket;

/// Connections that are open at once; one more is closed as soon as it is accepted.
const CONNECTIONS_MAX: usize = 4_096;
/// Answers that wait for their time, on all connections; above it none is read from.
const WAITING_BYTES_MAX: usize = 256 << 20;
/// What is missing (a file descriptor, the port, room) is not back at once.
pub(super) const RETRY: Duration = Duration::from_millis(10);

/// What the connections share.
pub(super) struct Floor {
    pub(super) settings: HostSettings,
    pub(super) counts: Arc<Mutex<Counts>>,
    pub(super) clock: Clock,
    /// Bytes of answers that wait for their time.
    pub(super) waiting: Cell<usize>,
    /// Told when messages are to be answered otherwise.
    pub(super) changed: Notify,
    behaviour: RefCell<Rc<Behaviour>>,
    seats: RefCell<Vec<Rc<Seat>>>,
    seated: Cell<u64>,
}

/// One connection, for whoever wants to cut it.
#[derive(Default)]
pub(super) struct Seat {
    /// When a message came last.
    pub(super) heard: Cell<Moment>,
    cut: Notify,
}

impl Floor {
    /// How messages are answered at present.
    pub(super) fn behaviour(&self) -> Rc<Behaviour> {
        Rc::clone(&self.behaviour.borrow())
    }

    /// Whether no more may be read before answers have left.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.get() >= WAITING_BYTES_MAX
    }

    fn cut_last(&self) {
        let seats = self.seats.borrow();
        if let Some(seat) = seats.iter().max_by_key(|seat| seat.heard.get()) {
            seat.cut.notify_one();
        }
    }

    fn cut_all(&self) {
        for seat in self.seats.borrow().iter() {
            seat.cut.notify_one();
        }
    }

    /// Goes on as this part of the script says.
    fn play(&self, part: &Part) {
        *self.behaviour.borrow_mut() = Rc::clone(&part.behaviour);
        locked(&self.counts).tally().phase = part.phase;
        self.changed.notify_waiters();
        if part.close_all || !part.listening() {
            self.cut_all();
        }
    }

    fn seat(self: &Rc<Self>, socket: Socket) {
        let mut counts = locked(&self.counts);
        if self.seats.borrow().len() >= CONNECTIONS_MAX {
            counts.tally().refused += 1;
            return;
        }
        counts.tally().accepted += 1;
        counts.tally().open += 1;
        let number = self.seated.get() + 1;
        self.seated.set(number);
        let seat = Rc::new(Seat::default());
        // Before the task runs, so that who closes all closes this one too.
        self.seats.borrow_mut().push(Rc::clone(&seat));
        let floor = Rc::clone(self);
        spawn_local(async move {
            tokio::select! {
                () = converse(&floor, &seat, number, socket) => {}
                () = seat.cut.notified() => locked(&floor.counts).tally().closed += 1,
            }
            floor.seats.borrow_mut().retain(|other| !Rc::ptr_eq(other, &seat));
            locked(&floor.counts).tally().open -= 1;
        });
    }
}

/// Serves until nobody can order anything more.
pub(super) async fn serve(
    bound: Bound,
    address: SocketAddr,
    settings: HostSettings,
    counts: Arc<Mutex<Counts>>,
    mut orders: mpsc::UnboundedReceiver<Command>,
) {
    let clock = Clock::start();
    let mut course = Course::new(settings.script.clone(), clock.now());
    let mut part = course.part();
    let floor = Rc::new(Floor {
        settings,
        counts,
        clock,
        waiting: Cell::new(0),
        changed: Notify::new(),
        behaviour: RefCell::new(Rc::clone(&part.behaviour)),
        seats: RefCell::default(),
        seated: Cell::new(0),
    });
    floor.play(&part);
    // A socket that was just bound can be watched, or nothing can.
    let mut listener = bound.listen().ok();
    loop {
        listener = match listener {
            Some(listener) if part.listening() => Some(listener),
            // Whoever has the port meanwhile keeps it as long as it likes.
            None if part.listening() => listen(address),
            _ => None,
        };
        locked(&floor.counts).tally().listening = listener.is_some();
        let retry = (part.listening() && listener.is_none()).then_some(RETRY);
        let wait = course.left(clock.now()).into_iter().chain(retry).min();
        tokio::select! {
            socket = accept(listener.as_ref()), if listener.is_some() => floor.seat(socket),
            () = sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            order = orders.recv() => match order {
                Some(Command::Cut) => floor.cut_last(),
                Some(Command::Follow(script)) => {
                    course = Course::new(script, clock.now());
                    part = course.part();
                    floor.play(&part);
                }
                None => return,
            },
        }
        if let Some(next) = course.next(clock.now()) {
            part = next;
            floor.play(&part);
        }
    }
}

fn listen(address: SocketAddr) -> Option<Listener> {
    Bound::take(address).ok()?.listen().ok()
}

async fn accept(listener: Option<&Listener>) -> Socket {
    loop {
        match listener {
            Some(listener) => match listener.accept().await {
                Ok((socket, _)) => return socket,
                Err(_) => sleep(RETRY).await,
            },
            None => std::future::pending().await,
        }
    }
}

//! The loop of a network: waits for its connections and its moments, and serves whatever is there,
//! round by round. A connection is read once and written once in a round, however much there is.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::floor::{Floor, Retry};
use super::pace::Arrivals;
use super::session::{Errand, Session};
use super::usage::Reading;
use super::{Pace, Tally};
use crate::clock::{self, Clock, Moment};
use crate::peers::poll::{Events, Poll};

/// It looks so often what is to be repeated or given up, and whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// Arrivals that are dealt with before answers are looked at again.
const ARRIVALS_AT_ONCE: usize = 1_024;

/// Orders to a network, of which a higher one takes the place of a lower one.
pub(super) mod order {
    /// Go on.
    pub(in super::super) const RUN: u8 = 0;
    /// End at once. What lies between is to send nothing new and to wait for what is owed.
    pub(in super::super) const QUIT: u8 = 2;
}

/// A network's thread.
pub(super) struct Engine {
    pub(super) poll: Poll,
    pub(super) sessions: Vec<Session>,
    pub(super) floor: Floor,
    pub(super) clock: Clock,
    pub(super) tally: Arc<Mutex<Tally>>,
    pub(super) order: Arc<AtomicU8>,
}

/// What is to happen when.
struct Plan {
    /// Seconds since 1970 at the start of the clock.
    epoch: u64,
    /// `None` in a closed loop.
    arrivals: Option<Arrivals>,
    /// An arrival that found its connection full.
    held: Option<(usize, Errand)>,
    /// Which connection an arrival goes to.
    rng: fastrand::Rng,
    /// Connections that have something to write.
    dirty: Vec<usize>,
    next_look: Moment,
    end: Moment,
    /// What is not answered by then never will be.
    give_up: Moment,
    /// Since when usage is measured.
    measured: Option<Reading>,
    is_measured: bool,
}

impl Engine {
    /// Works until everything was sent and answered, or the patience is over, or nobody is left.
    pub(super) fn run(mut self) {
        let (mut plan, mut events) = (self.plan(), Events::new());
        self.set_time(&plan);
        if let Pace::Window(window) = self.floor.desk.settings.pace {
            let mut tally = locked(&self.tally);
            for session in &mut self.sessions {
                session.top_up(window, &mut self.floor, &mut tally);
                session.flush(&self.poll, &mut self.floor);
            }
        }
        // Without the poll nothing can be known any more.
        while self.is_wanted(&plan) && self.poll.wait(self.patience(&plan), &mut events).is_ok() {
            self.set_time(&plan);
            let tally = Arc::clone(&self.tally);
            let mut tally = locked(&tally);
            self.measure(&mut plan, &mut tally);
            self.converse(&events, &mut tally);
            self.arrive(&mut plan, &mut tally);
            self.look(&mut plan, &mut tally);
        }
        let mut tally = locked(&self.tally);
        let left = plan
            .arrivals
            .iter_mut()
            .map(|arrivals| std::iter::from_fn(|| arrivals.take(plan.end)).count() as u64);
        tally.unsent += left.sum::<u64>() + u64::from(plan.held.is_some());
    }

    fn plan(&mut self) -> Plan {
        let desk = &mut self.floor.desk;
        let settings = &desk.settings;
        let start = self.clock.now();
        desk.counts_from = start.after(settings.warmup);
        let end = desk.counts_from.after(settings.duration);
        let rate = settings.flows.iter().map(|flow| flow.rate.max(0.0)).sum::<f64>();
        let luck = |salt| fastrand::Rng::with_seed(settings.seed.wrapping_sub(salt));
        let arrivals = match settings.pace {
            Pace::Rate if rate > 0.0 => Some(Arrivals::new(rate, start, end, luck(1))),
            _ => None,
        };
        Plan {
            epoch: clock::unix_seconds()
                .saturating_sub(Duration::from_nanos(start.nanos()).as_secs()),
            arrivals,
            held: None,
            rng: luck(2),
            dirty: Vec::new(),
            next_look: start,
            end,
            give_up: end.after(settings.patience),
            measured: None,
            is_measured: false,
        }
    }

    fn set_time(&mut self, plan: &Plan) {
        let now = self.clock.now();
        let seconds = plan.epoch.saturating_add(now.nanos() / 1_000_000_000);
        self.floor.desk.set_time(now, u32::try_from(seconds).unwrap_or(u32::MAX));
    }

    /// Whether there is anything left to do.
    fn is_wanted(&self, plan: &Plan) -> bool {
        let desk = &self.floor.desk;
        if self.order.load(Ordering::Relaxed) == order::QUIT || desk.now >= plan.give_up {
            return false;
        }
        let mut open = self.sessions.iter().filter(|session| session.is_open());
        if desk.is_sending { open.next().is_some() } else { open.any(|open| open.awaits() > 0) }
    }

    /// How long nothing has to be done, if nothing comes.
    fn patience(&self, plan: &Plan) -> Duration {
        let desk = &self.floor.desk;
        let mut next = plan.next_look;
        if desk.is_sending && next > plan.end {
            next = plan.end;
        }
        if let (Some(arrivals), None) = (&plan.arrivals, &plan.held) {
            let due = arrivals.next().into_iter().chain(desk.next_retry());
            next = due.fold(next, Moment::min);
        }
        next.since(self.clock.now())
    }

    /// Takes the readings at both ends of the time that is counted, and ends the sending.
    fn measure(&mut self, plan: &mut Plan, tally: &mut Tally) {
        let desk = &mut self.floor.desk;
        let is_told = self.order.load(Ordering::Relaxed) != order::RUN;
        if is_told && desk.is_sending {
            plan.end = plan.end.min(desk.now);
            plan.give_up = desk.now.after(desk.settings.patience);
            plan.arrivals.iter_mut().for_each(Arrivals::stop);
        }
        if plan.measured.is_none() && desk.now >= desk.counts_from {
            plan.measured = Some(Reading::take(desk.now));
        }
        let is_over = desk.now >= plan.end;
        if is_over
            && !plan.is_measured
            && let Some(since) = plan.measured
        {
            plan.is_measured = true;
            tally.usage = since.until(Reading::take(desk.now));
        }
        // What was to be sent before the end is sent, however late it is.
        let owes = plan.arrivals.as_ref().is_some_and(|arrivals| arrivals.next().is_some());
        desk.is_sending &= !is_over || !is_told && (owes || plan.held.is_some());
    }

    /// Serves the connections on which there is something.
    fn converse(&mut self, events: &Events, tally: &mut Tally) {
        let Self { poll, sessions, floor, .. } = self;
        for ready in events.iter() {
            let Some(session) = sessions.get_mut(ready.token as usize) else { continue };
            if ready.readable && session.is_open() {
                session.read(floor, tally);
            }
            if let Pace::Window(window) = floor.desk.settings.pace {
                session.top_up(window, floor, tally);
            }
            if session.is_open() && (ready.writable || session.has_unwritten()) {
                session.flush(poll, floor);
            }
        }
    }

    /// Sends what has arrived by now, and what is to be tried again.
    fn arrive(&mut self, plan: &mut Plan, tally: &mut Tally) {
        let Self { poll, sessions, floor, .. } = self;
        let Plan { arrivals: Some(arrivals), held, rng, dirty, .. } = plan else { return };
        if !floor.desk.is_sending {
            return;
        }
        for _ in 0..ARRIVALS_AT_ONCE {
            let (place, errand) = match held.take() {
                Some(held) => held,
                None => {
                    let place = rng.usize(..sessions.len().max(1));
                    let Some(session) = sessions.get_mut(place) else { break };
                    let errand = match floor.desk.due_retry() {
                        Some(Retry { due, drawn, tries }) => Errand { at: due, drawn, tries },
                        None => {
                            let Some(at) = arrivals.take(floor.desk.now) else { break };
                            let Some(errand) = session.draw(at, floor) else { break };
                            errand
                        }
                    };
                    (place, errand)
                }
            };
            let Some(session) = sessions.get_mut(place) else { break };
            if !session.is_open() {
                tally.unsent += u64::from(floor.desk.counts(errand.at));
                continue;
            }
            if session.is_full() {
                // It is sent when there is room, and counted from when it was to be sent.
                *held = Some((place, errand));
                break;
            }
            if !session.has_unwritten() {
                dirty.push(place);
            }
            session.send(errand, floor, tally);
        }
        for place in dirty.drain(..) {
            if let Some(session) = sessions.get_mut(place) {
                session.flush(poll, floor);
            }
        }
    }

    /// Looks what is to be repeated or given up, now and then.
    fn look(&mut self, plan: &mut Plan, tally: &mut Tally) {
        let now = self.floor.desk.now;
        if now < plan.next_look {
            return;
        }
        plan.next_look = now.after(LOOK);
        for session in self.sessions.iter_mut().filter(|session| session.is_open()) {
            session.sweep(&mut self.floor, tally);
            if let Pace::Window(window) = self.floor.desk.settings.pace {
                session.top_up(window, &mut self.floor, tally);
            }
            if session.has_unwritten() {
                session.flush(&self.poll, &mut self.floor);
            }
        }
    }
}

/// The counts are whole between any two statements, whoever panicked.
pub(super) fn locked(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

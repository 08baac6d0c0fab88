//! Messages that go on whatever becomes of the store: of a merchant that keeps to its limit, and of one
//! that does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tollgate::clock::{Clock, Moment};

use crate::node::{Node, Terminal, per_merchant};
use crate::support::wait_for;

pub const GOOD: &str = "GOOD";
pub const ABUSER: &str = "ABUSER";

/// Tokens per second, and of a full bucket. A node that hears nothing spends no more than a burst while
/// its lease lasts, so that a burst has to last for longer than that.
const RATE: f64 = 100.0;
const BURST: u32 = 100;
/// One that keeps to its limit leaves so much between two messages, and one that does not so little.
const GOOD_GAP: Duration = Duration::from_millis(10);
const ABUSERS_GAP: Duration = Duration::from_millis(2);

/// Sessions in threads of their own. They end when this is dropped.
pub struct Traffic {
    counts: Arc<Counts>,
    threads: Vec<JoinHandle<()>>,
    clock: Clock,
}

#[derive(Default)]
struct Counts {
    ends: AtomicBool,
    good_admitted: AtomicUsize,
    good_refused: AtomicUsize,
    abuser_admitted: AtomicUsize,
    abuser_refused: AtomicUsize,
}

/// The limit that it is about.
pub fn limit() -> String {
    per_merchant(RATE, BURST)
}

impl Traffic {
    /// Both merchants at one node.
    #[track_caller]
    pub fn through(node: &Node) -> Self {
        let mut this = Self::of_good(node);
        this.add(node, ABUSER, ABUSERS_GAP, |counts| {
            (&counts.abuser_admitted, &counts.abuser_refused)
        });
        this
    }

    /// The one that keeps to its limit alone.
    #[track_caller]
    pub fn of_good(node: &Node) -> Self {
        let mut this = Self { counts: Arc::default(), threads: Vec::new(), clock: Clock::start() };
        this.add(node, GOOD, GOOD_GAP, |counts| (&counts.good_admitted, &counts.good_refused));
        this
    }

    fn add(
        &mut self,
        node: &Node,
        merchant: &'static str,
        gap: Duration,
        of: fn(&Counts) -> (&AtomicUsize, &AtomicUsize),
    ) {
        let (counts, terminal, clock) = (Arc::clone(&self.counts), node.terminal(), self.clock);
        self.threads.push(std::thread::spawn(move || {
            let (admitted, refused) = of(&counts);
            run(terminal, merchant, (gap, clock), &counts.ends, &|is_admitted| {
                if is_admitted { admitted } else { refused }.fetch_add(1, Ordering::SeqCst);
            });
        }));
    }

    /// Waits until so many more messages of the good merchant were answered, and more than one of each.
    #[track_caller]
    pub fn goes_on(&self) {
        const MORE: usize = 10;
        let before = self.answered();
        wait_for("messages are answered", || (self.answered() >= before + MORE).then_some(()));
        assert_eq!(self.counts.good_refused.load(Ordering::SeqCst), 0, "refused in its limit");
    }

    fn answered(&self) -> usize {
        let Counts { good_admitted, good_refused, .. } = &*self.counts;
        good_admitted.load(Ordering::SeqCst) + good_refused.load(Ordering::SeqCst)
    }

    /// Ends it. Nobody was refused who kept to the limit, and who did not got no more than a second
    /// burst beyond burst and rate.
    #[track_caller]
    pub fn ends_well(mut self) {
        self.end();
        let elapsed = self.clock.now().since(Moment::START).as_secs_f64();
        let count = |of: &AtomicUsize| of.load(Ordering::SeqCst);
        let Counts { good_admitted, good_refused, abuser_admitted, abuser_refused, .. } =
            &*self.counts;
        assert!(count(good_admitted) > 0);
        assert_eq!(count(good_refused), 0, "refused in its limit");
        let most = f64::from(2 * BURST) + RATE * elapsed;
        let admitted = count(abuser_admitted);
        assert!(admitted as f64 <= most, "{admitted} admitted in {elapsed} s, {most} at most");
        assert_eq!(count(abuser_refused) == 0, admitted == 0, "an abuser is refused at times");
    }

    fn end(&mut self) {
        self.counts.ends.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            // What it has to say is said by its own panic.
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "a session failed");
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.end();
    }
}

fn run(
    mut terminal: Terminal,
    merchant: &str,
    (gap, clock): (Duration, Clock),
    ends: &AtomicBool,
    count: &dyn Fn(bool),
) {
    while !ends.load(Ordering::SeqCst) {
        let next = clock.now().after(gap);
        count(terminal.sale(merchant));
        // A merchant's pace, and not the wait for an effect.
        while clock.now() < next {
            std::thread::park_timeout(next.since(clock.now()));
        }
    }
}

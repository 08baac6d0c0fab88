//! Every order in which gates and the lease sync may meet in one cell, by a model checker: the very
//! sources of the cell, its grant and the turns are built over loom's atomics.
//!
//! Three threads, at most three preemptions; `TOLLGATE_LOOM_PREEMPTIONS` asks for more. What rests on
//! the order of sequentially consistent accesses (that no spending stays unreported, src/limits/cell.rs)
//! is not shown here: loom takes them for acquire and release. Threads show it in tests/lease_stress.rs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    dead_code,
    unreachable_pub,
    unused_imports,
    missing_docs,
    reason = "a test states its expectations, and uses a part of the files that it includes"
)]

/// Loom's atomics, of which it takes sequentially consistent accesses for acquire and release.
mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

    use std::sync::atomic::AtomicBool as StdBool;

    /// Whether such accesses have the one order that the language gives them.
    pub(crate) static SEQUENTIAL: StdBool = StdBool::new(false);

    fn fence_of(order: Ordering) {
        if order == Ordering::SeqCst && SEQUENTIAL.load(Ordering::Relaxed) {
            fence(Ordering::SeqCst);
        }
    }

    /// An atomic with a fence before each sequentially consistent load and after each store, which is how
    /// such accesses are made of fences.
    macro_rules! fenced {
        ($name:ident, $value:ty) => {
            #[derive(Debug, Default)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            impl $name {
                pub(crate) fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    fence_of(order);
                    self.0.load(order)
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    self.0.store(value, order);
                    fence_of(order);
                }

                pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                    let before = self.0.swap(value, order);
                    fence_of(order);
                    before
                }

                pub(crate) fn compare_exchange(
                    &self,
                    present: $value,
                    value: $value,
                    order: Ordering,
                    otherwise: Ordering,
                ) -> Result<$value, $value> {
                    let before = self.0.compare_exchange(present, value, order, otherwise);
                    fence_of(if before.is_ok() { order } else { otherwise });
                    before
                }

                pub(crate) fn compare_exchange_weak(
                    &self,
                    present: $value,
                    value: $value,
                    order: Ordering,
                    otherwise: Ordering,
                ) -> Result<$value, $value> {
                    self.compare_exchange(present, value, order, otherwise)
                }
            }
        };
    }
    fenced!(AtomicBool, bool);
    fenced!(AtomicI64, i64);
}
mod clock {
    pub(crate) use tollgate::clock::Moment;
}
mod rule {
    pub(crate) use tollgate::limits::{Amount, Burst, Rate, Share};
}
/// What the tests in the included files ask for; they are not run here.
mod limits {
    pub(crate) mod rule {
        pub(crate) use tollgate::limits::{Burst, Rate};
    }
}
#[path = "../src/limits/cell.rs"]
mod cell;
#[path = "../src/limits/grant.rs"]
mod grant;
#[path = "../src/limits/lease.rs"]
mod lease;
#[path = "../src/limits/limit_set.rs"]
mod limit_set;
#[path = "../src/limits/marks.rs"]
mod marks;
#[path = "../src/limits/turns.rs"]
mod turns;

use std::panic::{AssertUnwindSafe, catch_unwind};

use atomic::{AtomicU64, Ordering};
use cell::{Asking, Cell, Notice, Reach, Take};
use clock::Moment;
use grant::{Grant, ONE};
use lease::{Leases, Terms};
use loom::sync::Arc;
use loom::thread;
use marks::Marks;
use rule::{Burst, Rate};
use turns::{Since, Turns};

/// A bucket of so many tokens at one a second.
fn bucket(tokens: f64) -> Grant {
    Grant::new(Rate::per_second(1.0).unwrap(), Burst::tokens(tokens).unwrap())
}

fn second(at: u64) -> Moment {
    Moment::from_nanos(at * 1_000_000_000)
}

fn explore(name: &str, model: impl Fn() + Sync + Send + 'static) {
    let asked = std::env::var("TOLLGATE_LOOM_PREEMPTIONS").ok();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(asked.map_or(3, |asked| asked.parse().unwrap()));
    let orders = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let seen = std::sync::Arc::clone(&orders);
    builder.check(move || {
        seen.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{name} ... ok, {} orders", orders.load(Ordering::Relaxed));
}

/// The same of a model that breaks a rule: some order shows it.
fn finds(name: &str, model: impl Fn() + Sync + Send + 'static) {
    let found = catch_unwind(AssertUnwindSafe(|| explore(name, model)));
    assert!(found.is_err(), "no order shows what is wrong with: {name}");
    println!("{name} ... found, as it has to be");
}

fn takes(cell: &Cell, grant: &Grant, now: Moment, count: usize) -> i64 {
    (0..count).filter(|_| cell.take(grant, Asking::at(now)) == Take::Granted).count() as i64
}

/// Three threads at it at once. The one that begins them does nothing else: loom does not part what
/// it does before another thread's first access.
fn at_once<A: Send + 'static, B: Send + 'static, C: Send + 'static>(
    one: impl FnOnce() -> A + Send + 'static,
    other: impl FnOnce() -> B + Send + 'static,
    third: impl FnOnce() -> C + Send + 'static,
) -> (A, B, C) {
    let threads = (thread::spawn(one), thread::spawn(other), thread::spawn(third));
    (threads.0.join().unwrap(), threads.1.join().unwrap(), threads.2.join().unwrap())
}

/// Two gates and a lease in between: what the store says of what was spent so far.
fn gates_beside_a_lease(lease: fn(&Cell, &Grant)) {
    let grant = bucket(2.0);
    let cell = Arc::new(Cell::full(&grant, second(1)));
    let [one, other, sync] = std::array::from_fn(|_| Arc::clone(&cell));
    let ((), granted, ()) = at_once(
        move || {
            // Taken and given back, as by a message that a later limit refuses.
            if one.take(&grant, Asking::at(second(1))) == Take::Granted {
                one.undo();
            }
        },
        move || takes(&other, &grant, second(1), 2),
        move || lease(&sync, &grant),
    );
    let spent = cell.spent().unwrap();
    assert_eq!(spent, granted * ONE, "no spending is lost");
    assert!(granted <= 2, "no token is handed out twice");
    let level = cell.level(&grant, second(1)).unwrap();
    assert!(level <= grant.cap() - spent, "{level} left of what was spent {spent}");
}

fn charged_by_the_store(cell: &Cell, grant: &Grant) {
    let spent = cell.spent().unwrap();
    cell.lease(grant, (grant.cap() - spent, second(1)), spent, Reach::FREE);
}

/// A lease that counts as charged what was spent since the report.
fn not_in_terms_of_spent(cell: &Cell, grant: &Grant) {
    let spent = cell.spent().unwrap();
    let level = grant.cap() - spent;
    cell.lease(grant, (level, second(1)), cell.spent().unwrap(), Reach::FREE);
}

/// A bucket that is full and more, and two gates and a push that cut it.
fn a_full_bucket_is_cut_once() {
    let grant = bucket(1.0);
    let cell = Arc::new(Cell::full(&grant, second(1)));
    let [one, other, sync] = std::array::from_fn(|_| Arc::clone(&cell));
    let (first, last, _) = at_once(
        move || takes(&one, &grant, second(9), 1),
        move || takes(&other, &grant, second(9), 1),
        move || sync.lower(&grant, (grant.cap(), second(9)), 0, Reach::FREE),
    );
    assert_eq!((first + last, cell.spent()), (1, Some(ONE)));
    assert_eq!(cell.level(&grant, second(9)), Some(0));
}

/// Protected traffic is charged beside a take, down to one burst of debt.
fn a_debt_ends_at_one_burst() {
    let grant = bucket(1.0);
    let cell = Arc::new(Cell::full(&grant, second(1)));
    let [one, other, third] = std::array::from_fn(|_| Arc::clone(&cell));
    let charge = move |cell: &Cell, count: usize| {
        let granted = |_: &usize| cell.charge(&grant, second(1)) == Take::Granted;
        (0..count).filter(granted).count() as i64
    };
    let (two, single, taken) = at_once(
        move || charge(&one, 2),
        move || charge(&other, 1),
        move || takes(&third, &grant, second(1), 1),
    );
    let spent = two + single + taken;
    assert_eq!(cell.spent(), Some(spent * ONE));
    assert_eq!(spent, 2, "one token, and one of debt");
}

/// While its lease is valid, no order of gates goes beyond a hold.
fn a_hold_holds() {
    let grant = bucket(9.0);
    let reach = Reach { hold: Some(ONE), budget: Some(ONE) };
    let cell = Arc::new(Cell::opened(&grant, second(1), reach, 0));
    let [one, other, sync] = std::array::from_fn(|_| Arc::clone(&cell));
    let gate = move |cell: &Cell| {
        let asking = Asking { leased: true, ..Asking::at(second(1)) };
        (0..2).filter(|_| cell.take(&grant, asking) == Take::Granted).count() as i64
    };
    let (first, last, reported) = at_once(
        move || gate(&one),
        move || gate(&other),
        move || {
            // The answer to a report of everything until here lets them go so much further.
            let reported = sync.spent().unwrap();
            sync.lease(&grant, (grant.cap() - reported, second(1)), reported, reach);
            reported
        },
    );
    assert!((first + last) * ONE <= reported + ONE, "beyond {reported}");
}

const OWNER: u64 = 1;
const STRANGER: u64 = 2;

/// A slot as the table has it: whose it is, and its cell.
struct Slot {
    id: AtomicU64,
    cell: Cell,
    turns: Turns,
}

impl Slot {
    /// A gate of this key finds its cell and takes a token, within a turn.
    fn visit(&self, worker: usize, id: u64, grant: &Grant) -> i64 {
        let _turn = self.turns.begin(worker);
        if self.id.load(Ordering::Acquire) == id {
            takes(&self.cell, grant, second(1), 1)
        } else {
            0
        }
    }

    /// The sync retires the owner and gives the slot to a stranger, if it may.
    fn reuse(&self, grant: &Grant, wait: bool) -> bool {
        if !self.cell.retire(grant, second(1), |_| true) {
            return false;
        }
        self.id.store(0, Ordering::Release);
        let mut since = Since::default();
        self.turns.mark(&mut since);
        let may_reuse = !wait || self.turns.have_ended(&mut since);
        if may_reuse {
            self.cell.renew(grant, second(1), Reach::FREE);
            self.id.store(STRANGER, Ordering::Release);
        }
        may_reuse
    }
}

/// A key is retired and its slot given to another while gates of both are at it.
fn a_slot_goes_to_a_stranger(wait: bool) {
    let grant = bucket(5.0);
    let slot = Arc::new(Slot {
        id: AtomicU64::new(OWNER),
        cell: Cell::full(&grant, second(1)),
        turns: Turns::new(2),
    });
    let [of_owner, of_stranger, of_sync] = std::array::from_fn(|_| Arc::clone(&slot));
    let (_, granted, reused) = at_once(
        move || of_owner.visit(0, OWNER, &grant),
        move || of_stranger.visit(1, STRANGER, &grant),
        move || of_sync.reuse(&grant, wait),
    );
    if reused {
        let spent = slot.cell.spent();
        assert_eq!(spent, Some(granted * ONE), "the stranger's own tokens and no others");
    }
}

/// What a gate tells the sync of two cells that cannot wait, beside a sync that collects.
fn an_urgent_mark_is_called(collect: fn(&Leases, &Marks)) {
    let told = Arc::new((Leases::new(Some(Terms::default())), Marks::new(2)));
    let [one, other, sync] = std::array::from_fn(|_| Arc::clone(&told));
    let tell = |(leases, urgent): &(Leases, Marks), number| {
        urgent.set(number);
        leases.call();
    };
    at_once(
        move || tell(&one, 0),
        move || tell(&other, 1),
        move || collect(&sync.0, &sync.1),
    );
    let mut left = 0;
    told.1.collect(|_| left += 1);
    assert!(left == 0 || told.0.is_called(), "{left} marked, and nobody calls");
}

fn call_first(leases: &Leases, urgent: &Marks) {
    leases.heed_call();
    urgent.collect(|_| ());
}

fn call_last(leases: &Leases, urgent: &Marks) {
    urgent.collect(|_| ());
    leases.heed_call();
}

fn main() {
    explore("an urgent mark is called", || an_urgent_mark_is_called(call_first));
    finds("a call that is heeded after the marks", || an_urgent_mark_is_called(call_last));
    explore("gates beside a lease", || gates_beside_a_lease(charged_by_the_store));
    finds("a lease not in terms of what was spent", || {
        gates_beside_a_lease(not_in_terms_of_spent);
    });
    explore("a full bucket is cut once", a_full_bucket_is_cut_once);
    explore("a debt ends at one burst", a_debt_ends_at_one_burst);
    explore("a hold holds", a_hold_holds);
    explore("a slot goes to a stranger after every turn", || a_slot_goes_to_a_stranger(true));
    finds("a slot that does not wait for turns", || a_slot_goes_to_a_stranger(false));
}

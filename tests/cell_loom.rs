//! Every order in which gates and the lease sync may meet in one cell, by a model checker: the very
//! sources of the cell, its grant, the marks, the call of the sync and the turns are built over loom's
//! atomics.
//!
//! Three threads, at most three preemptions; `TOLLGATE_LOOM_PREEMPTIONS` asks for another bound. Beside
//! each model stands a broken one, of which some order shows what is wrong: so the models can fail.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    dead_code,
    unreachable_pub,
    unused_imports,
    missing_docs,
    reason = "a test states its expectations, and uses a part of the files that it includes"
)]

/// Loom's atomics, with two things of their own. Loom knows the order of sequentially consistent fences
/// and not that of accesses, so such an access is one of acquire and release with a fence, or without
/// any. And a store is a swap.
mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering, fence};

    use std::sync::atomic::AtomicBool as StdBool;

    use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

    /// Whether sequentially consistent accesses are.
    pub(crate) static SEQUENTIAL: StdBool = StdBool::new(false);

    /// Before a load and after a store: one of two who store and then load sees the other's.
    fn fence_of(order: Ordering) {
        if order == SeqCst && SEQUENTIAL.load(Relaxed) {
            fence(SeqCst);
        }
    }

    fn at_most(order: Ordering, weaker: Ordering) -> Ordering {
        if order == SeqCst { weaker } else { order }
    }

    macro_rules! own {
        ($name:ident, $value:ty) => {
            #[derive(Debug, Default)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            impl $name {
                pub(crate) fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    fence_of(order);
                    self.0.load(at_most(order, Acquire))
                }

                /// Loom would let a store be followed by an exchange of what it has replaced, which no
                /// order of the two allows.
                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    self.0.swap(value, at_most(order, Release));
                    fence_of(order);
                }

                pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                    let before = self.0.swap(value, at_most(order, AcqRel));
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
                    let most = at_most(order, AcqRel);
                    let before = self.0.compare_exchange(present, value, most, otherwise);
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
    own!(AtomicBool, bool);
    own!(AtomicI64, i64);
    own!(AtomicU64, u64);

    macro_rules! own_change {
        ($name:ident) => {
            pub(crate) fn $name(&self, value: u64, order: Ordering) -> u64 {
                let before = self.0.$name(value, at_most(order, AcqRel));
                fence_of(order);
                before
            }
        };
    }
    impl AtomicU64 {
        own_change!(fetch_or);
        own_change!(fetch_add);
        own_change!(fetch_sub);
        own_change!(fetch_max);
    }
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
#[path = "../src/limits/choice.rs"]
mod choice;
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
    let clock = tollgate::clock::Clock::start();
    let began = clock.now();
    let orders = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let seen = std::sync::Arc::clone(&orders);
    builder.check(move || {
        seen.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let took = clock.now().since(began).as_secs_f64();
    println!("{name} ... ok, {} orders in {took:.1} s", orders.load(Ordering::Relaxed));
}

/// The same of a model that breaks a rule: some order shows it.
fn finds(name: &str, model: impl Fn() + Sync + Send + 'static) {
    // What it is about to say is what it has to say.
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let found = catch_unwind(AssertUnwindSafe(|| explore(name, model)));
    std::panic::set_hook(loud);
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

type Gate = fn(&Cell, &Grant, Moment) -> bool;

fn take(cell: &Cell, grant: &Grant, now: Moment) -> bool {
    cell.take(grant, Asking::at(now)) == Take::Granted
}

/// A bucket that is full and more, of which another node has left nothing: two gates that cut it, and
/// the push that says so.
fn a_full_bucket_is_cut_beside_a_push(gate: Gate) {
    let grant = bucket(1.0);
    let cell = Arc::new(Cell::full(&grant, second(1)));
    let [one, other, sync] = std::array::from_fn(|_| Arc::clone(&cell));
    let (first, last, _) = at_once(
        move || i64::from(gate(&one, &grant, second(9))),
        move || i64::from(gate(&other, &grant, second(9))),
        move || sync.lower(&grant, (0, second(9)), 0, Reach::FREE),
    );
    let spent = first + last;
    assert!(spent <= 1, "{spent} tokens of one");
    assert_eq!(cell.spent(), Some(spent * ONE), "no spending is lost");
    assert_eq!(cell.level(&grant, second(9)), Some(-spent * ONE), "the push stands");
}

/// Cuts by a store what it has seen to be too much.
fn cut_by_a_store(cell: &Cell, grant: &Grant, now: Moment) -> bool {
    if let (Some(spent), Some(level)) = (cell.spent(), cell.level(grant, now))
        && level == grant.cap()
    {
        cell.lease(grant, (level, now), spent, Reach::FREE);
    }
    take(cell, grant, now)
}

/// A push of what the store knows, beside gates that have spent more.
fn a_push_lowers(lower: fn(&Cell, &Grant)) {
    let grant = bucket(3.0);
    let cell = Arc::new(Cell::full(&grant, second(1)));
    let [one, other, sync] = std::array::from_fn(|_| Arc::clone(&cell));
    let (first, last, ()) = at_once(
        move || takes(&one, &grant, second(1), 1),
        move || takes(&other, &grant, second(1), 2),
        move || lower(&sync, &grant),
    );
    let spent = (first + last) * ONE;
    assert_eq!(cell.spent(), Some(spent));
    assert_eq!(cell.level(&grant, second(1)), Some(2 * ONE - spent));
}

fn in_terms_of_charged(cell: &Cell, grant: &Grant) {
    cell.lower(grant, (2 * ONE, second(1)), 0, Reach::FREE);
}

/// Takes for charged what the store knows nothing of.
fn in_terms_of_spent(cell: &Cell, grant: &Grant) {
    cell.lower(grant, (2 * ONE, second(1)), cell.spent().unwrap(), Reach::FREE);
}

/// Protected traffic is charged beside a take, down to one burst of debt.
fn a_debt_ends_at_one_burst(charge: Gate) {
    let grant = bucket(1.0);
    let cell = Arc::new(Cell::full(&grant, second(1)));
    let [one, other, third] = std::array::from_fn(|_| Arc::clone(&cell));
    let (two, single, taken) = at_once(
        move || (0..2).filter(|_| charge(&one, &grant, second(1))).count() as i64,
        move || i64::from(charge(&other, &grant, second(1))),
        move || takes(&third, &grant, second(1), 1),
    );
    let spent = two + single + taken;
    assert_eq!(cell.spent(), Some(spent * ONE));
    assert_eq!(spent, 2, "one token, and one of debt");
}

fn charge(cell: &Cell, grant: &Grant, now: Moment) -> bool {
    cell.charge(grant, now) == Take::Granted
}

/// Looks, and then charges whatever has become of it.
fn look_and_charge(cell: &Cell, grant: &Grant, now: Moment) -> bool {
    cell.level(grant, now).unwrap() >= ONE - grant.cap()
        && cell.charge(&bucket(9.0), now) == Take::Granted
}

/// While its lease is valid, no order of gates goes beyond a hold.
fn a_hold_holds(gate: Gate) {
    let grant = bucket(9.0);
    let reach = Reach { hold: Some(ONE), budget: Some(ONE) };
    let cell = Arc::new(Cell::opened(&grant, second(1), reach, 0));
    let [one, other, sync] = std::array::from_fn(|_| Arc::clone(&cell));
    let (two, single, reported) = at_once(
        move || (0..2).filter(|_| gate(&one, &grant, second(1))).count() as i64,
        move || i64::from(gate(&other, &grant, second(1))),
        move || {
            // The answer to a report of everything until here lets them go so much further.
            let reported = sync.spent().unwrap();
            sync.lease(&grant, (grant.cap() - reported, second(1)), reported, reach);
            reported
        },
    );
    assert!((two + single) * ONE <= reported + ONE, "beyond {reported}");
}

fn take_leased(cell: &Cell, grant: &Grant, now: Moment) -> bool {
    cell.take(grant, Asking { leased: true, ..Asking::at(now) }) == Take::Granted
}

/// Looks at what is held, and then takes whatever has become of it.
fn look_and_take(cell: &Cell, grant: &Grant, now: Moment) -> bool {
    cell.spent() == Some(0) && take(cell, grant, now)
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
    /// A gate of this key finds its cell and spends, within a turn, and undoes what it takes if a later
    /// limit refuses the message. Returns what it has spent.
    fn visit(&self, worker: usize, id: u64, visit: Visit, grant: &Grant) -> i64 {
        let _turn = self.turns.begin(worker);
        if self.id.load(Ordering::Acquire) != id {
            return 0;
        }
        let spend = if visit == Visit::Charge { charge } else { take };
        let granted = spend(&self.cell, grant, second(1));
        if granted && visit == Visit::TakeAndUndo {
            self.cell.undo();
            return 0;
        }
        i64::from(granted)
    }

    /// The sync retires the owner and gives the slot to a stranger, if it may. What was spent a while
    /// ago has refilled by then.
    fn reuse(&self, grant: &Grant, wait: bool) -> bool {
        if !self.cell.retire(grant, second(9), |_| true) {
            return false;
        }
        self.id.store(0, Ordering::Release);
        let mut since = Since::default();
        self.turns.mark(&mut since);
        let may_reuse = !wait || self.turns.have_ended(&mut since);
        if may_reuse {
            self.cell.renew(grant, second(9), Reach::FREE);
            self.id.store(STRANGER, Ordering::Release);
        }
        may_reuse
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    Take,
    Charge,
    TakeAndUndo,
}

/// A key is retired and its slot given to another while gates of both are at it.
fn a_slot_goes_to_a_stranger(owner: Visit, wait: bool) {
    let grant = bucket(5.0);
    let slot = Arc::new(Slot {
        id: AtomicU64::new(OWNER),
        cell: Cell::full(&grant, second(1)),
        turns: Turns::new(2),
    });
    let [of_owner, of_stranger, of_sync] = std::array::from_fn(|_| Arc::clone(&slot));
    let (_, granted, reused) = at_once(
        move || of_owner.visit(0, OWNER, owner, &grant),
        move || of_stranger.visit(1, STRANGER, Visit::Take, &grant),
        move || of_sync.reuse(&grant, wait),
    );
    if reused {
        let spent = slot.cell.spent();
        assert_eq!(spent, Some(granted * ONE), "the stranger's own tokens and no others");
    }
}

/// A cell and all by which its gates tell the sync of it.
struct Node {
    cell: Cell,
    leases: Leases,
    soon: Marks,
    urgent: Marks,
}

impl Node {
    /// The sync wants to hear at once after so many micro-tokens.
    fn new(grant: &Grant, budget: i64) -> Self {
        Self {
            cell: Cell::opened(grant, second(1), Reach { hold: None, budget: Some(budget) }, 0),
            leases: Leases::new(Some(Terms::default())),
            soon: Marks::new(1),
            urgent: Marks::new(1),
        }
    }

    /// A gate takes a token and tells of it, as a limit does.
    fn gate(&self, grant: &Grant) {
        let taken = self.cell.take(grant, Asking::at(second(1)));
        assert_eq!(taken, Take::Granted);
        match self.cell.notice(taken) {
            Notice::Known => {}
            Notice::Soon => self.soon.set(self.cell.number()),
            Notice::Urgent => {
                self.urgent.set(self.cell.number());
                self.leases.call();
            }
        }
    }

    /// What the sync reads of a cell that was marked; `None` if it was not.
    fn collect_soon(&self, read: fn(&Self) -> Option<i64>) -> Option<i64> {
        let mut found = false;
        self.soon.collect(|_| found = true);
        if found { read(self) } else { None }
    }
}

/// Two gates spend while the sync collects; it collects once more when they are done.
fn no_spending_stays_unreported(read: fn(&Node) -> Option<i64>) {
    let grant = bucket(9.0);
    let node = Arc::new(Node::new(&grant, 9 * ONE));
    let [one, other, sync] = std::array::from_fn(|_| Arc::clone(&node));
    let ((), (), first) = at_once(
        move || one.gate(&grant),
        move || other.gate(&grant),
        move || sync.collect_soon(read),
    );
    let charged = node.collect_soon(heed_and_read).or(first);
    assert_eq!(charged, node.cell.spent(), "nobody tells of the last");
}

fn heed_and_read(node: &Node) -> Option<i64> {
    if node.cell.heed() { node.cell.spent() } else { None }
}

fn read_and_heed(node: &Node) -> Option<i64> {
    let spent = node.cell.spent();
    if node.cell.heed() { spent } else { None }
}

/// A report, its answer, and gates that go as far as the sync wants to know.
fn who_goes_as_far_as_the_budget_wakes_the_sync(heeds_the_lease: bool) {
    let grant = bucket(9.0);
    let node = Arc::new(Node::new(&grant, ONE));
    let [one, other, sync] = std::array::from_fn(|_| Arc::clone(&node));
    let ((), (), (charged, due)) = at_once(
        move || one.gate(&grant),
        move || other.gate(&grant),
        move || {
            sync.leases.heed_call();
            sync.urgent.collect(|_| ());
            sync.cell.hush();
            let charged = sync.cell.spent().unwrap();
            let reach = Reach { hold: None, budget: Some(ONE) };
            let due = sync.cell.lease(&grant, (9 * ONE - charged, second(1)), charged, reach);
            (charged, due && heeds_the_lease)
        },
    );
    let unreported = node.cell.spent().unwrap() - charged;
    assert!(unreported < ONE || due || node.leases.is_called(), "{unreported} and nobody wakes it");
}

/// What two gates tell of cells of two limits that cannot wait, beside a sync that collects.
fn an_urgent_mark_is_called(collect: fn(&Leases, &[Marks; 2])) {
    let limits = || std::array::from_fn(|_| Marks::new(1));
    let told: Arc<(Leases, [Marks; 2])> = Arc::new((Leases::new(Some(Terms::default())), limits()));
    let [one, other, sync] = std::array::from_fn(|_| Arc::clone(&told));
    let tell = |(leases, urgent): &(Leases, [Marks; 2]), limit: usize| {
        urgent[limit].set(0);
        leases.call();
    };
    at_once(move || tell(&one, 0), move || tell(&other, 1), move || collect(&sync.0, &sync.1));
    let is_left = told.1.iter().any(|urgent| !urgent.is_empty());
    assert!(!is_left || told.0.is_called(), "a mark is left, and nobody calls");
}

fn call_first(leases: &Leases, limits: &[Marks; 2]) {
    leases.heed_call();
    limits.iter().for_each(|urgent| urgent.collect(|_| ()));
}

fn call_last(leases: &Leases, limits: &[Marks; 2]) {
    limits.iter().for_each(|urgent| urgent.collect(|_| ()));
    leases.heed_call();
}

fn main() {
    explore("gates beside a lease", || gates_beside_a_lease(charged_by_the_store));
    finds("a lease not in terms of what was spent", || {
        gates_beside_a_lease(not_in_terms_of_spent);
    });
    explore("a full bucket is cut beside a push", || a_full_bucket_is_cut_beside_a_push(take));
    finds("a cut by a store", || a_full_bucket_is_cut_beside_a_push(cut_by_a_store));
    explore("a push lowers", || a_push_lowers(in_terms_of_charged));
    finds("a push in terms of what was spent", || a_push_lowers(in_terms_of_spent));
    explore("a debt ends at one burst", || a_debt_ends_at_one_burst(charge));
    finds("a look, and then a charge", || a_debt_ends_at_one_burst(look_and_charge));
    explore("a hold holds", || a_hold_holds(take_leased));
    finds("a look, and then a take", || a_hold_holds(look_and_take));
    explore("who charges meets no stranger", || a_slot_goes_to_a_stranger(Visit::Charge, true));
    finds("a charge in a slot that waits for no turn", || {
        a_slot_goes_to_a_stranger(Visit::Charge, false);
    });
    explore("who undoes meets no stranger", || a_slot_goes_to_a_stranger(Visit::TakeAndUndo, true));
    finds("an undo in a slot that waits for no turn", || {
        a_slot_goes_to_a_stranger(Visit::TakeAndUndo, false);
    });
    // What rests on sequential consistency breaks without it.
    finds("a call by acquire and release alone", || an_urgent_mark_is_called(call_first));
    finds("marks by acquire and release alone", || no_spending_stays_unreported(heed_and_read));
    let heeds_the_lease = || who_goes_as_far_as_the_budget_wakes_the_sync(true);
    finds("a budget by acquire and release alone", heeds_the_lease);
    atomic::SEQUENTIAL.store(true, Ordering::Relaxed);
    explore("an urgent mark is called", || an_urgent_mark_is_called(call_first));
    finds("a call that is heeded after the marks", || an_urgent_mark_is_called(call_last));
    explore("no spending stays unreported", || no_spending_stays_unreported(heed_and_read));
    finds("a cell that is read before it is heeded", || {
        no_spending_stays_unreported(read_and_heed);
    });
    explore("who goes as far as the budget wakes the sync", heeds_the_lease);
    finds("a lease that does not say who has gone beyond", || {
        who_goes_as_far_as_the_budget_wakes_the_sync(false);
    });
}

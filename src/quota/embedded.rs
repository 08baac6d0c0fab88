//! The store held in process, for the nodes that live in it.
//!
//! It owns one [`Store`] and the inboxes of those who want to hear at once which keys are low. It
//! takes the time as an argument, wakes nobody and keeps nothing for a later process. A call is
//! answered on the caller's thread, under a lock that is held for that call alone.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::protocol::{Answer, Call, Low, NodeId, Reply, Store};

/// Most lows that wait in one inbox. A node that is behind by more has the digest to catch up with.
pub const INBOX_MAX: usize = 1_024;

/// A handle to the store; its clones are handles to the same one.
#[derive(Clone, Debug, Default)]
pub struct Embedded {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    store: Store,
    /// Of those who still hold theirs.
    inboxes: Vec<Weak<Mutex<Waiting>>>,
}

/// Where the lows of the calls of all nodes wait for one of them.
#[derive(Debug)]
pub struct Inbox {
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    lows: VecDeque<Low>,
    lost: u64,
    /// Whose calls tell nothing here.
    except: Option<NodeId>,
}

impl Embedded {
    /// A store that has heard nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a call that arrives at `wall_us`, and puts what it has to tell into the inboxes.
    pub fn call(&self, call: &Call, wall_us: u64) -> Reply {
        let mut shared = self.lock();
        let Answer { reply, push } = shared.store.call(call, wall_us);
        if !push.is_empty() {
            shared.inboxes.retain(|inbox| {
                let inbox = inbox.upgrade();
                inbox.is_some_and(|inbox| {
                    lock(&inbox).receive(call.node, &push);
                    true
                })
            });
        }
        reply
    }

    /// An inbox for what is pushed from here on, until it is dropped.
    pub fn subscribe(&self) -> Inbox {
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let mut shared = self.lock();
        shared.inboxes.retain(|inbox| inbox.strong_count() > 0);
        shared.inboxes.push(Arc::downgrade(&waiting));
        Inbox { waiting }
    }

    /// Has `see` look at the store, or do to it what befalls a store: to be wiped, or rolled back to
    /// an earlier copy. Everybody else waits meanwhile.
    pub fn with<T>(&self, see: impl FnOnce(&mut Store) -> T) -> T {
        see(&mut self.lock().store)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

impl Inbox {
    /// This inbox without what `node` itself causes, which its reply tells better.
    #[must_use]
    pub fn except(self, node: NodeId) -> Self {
        lock(&self.waiting).except = Some(node);
        self
    }

    /// Takes out the low that has waited longest.
    pub fn take(&self) -> Option<Low> {
        lock(&self.waiting).lows.pop_front()
    }

    /// How many lows were dropped because [`INBOX_MAX`] others came after them.
    pub fn lost(&self) -> u64 {
        lock(&self.waiting).lost
    }
}

impl Waiting {
    fn receive(&mut self, from: NodeId, push: &[Low]) {
        if self.except == Some(from) {
            return;
        }
        for low in push {
            if self.lows.len() == INBOX_MAX {
                self.lows.pop_front();
                self.lost = self.lost.saturating_add(1);
            }
            self.lows.push_back(*low);
        }
    }
}

/// Neither a store nor an inbox is left half changed by what unwinds under its lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::super::protocol::{Report, Since};
    use super::*;
    use crate::limits::StoreKey;

    const TOKEN: i64 = 1_000_000;

    /// A call that spends all 50 tokens of these keys.
    fn emptying(node: u64, keys: std::ops::Range<u64>) -> Call {
        let report = |number| Report {
            key: key(number),
            rate: 25e6,
            cap: 50 * TOKEN,
            boot: 1,
            spent: 50 * TOKEN,
            charged: 0,
            level: 50 * TOKEN,
            local: false,
        };
        Call {
            node: NodeId(node),
            elapsed_us: None,
            since: Since::default(),
            push: true,
            leave: false,
            reports: keys.map(report).collect(),
        }
    }

    fn key(number: u64) -> StoreKey {
        StoreKey { limit: 1, id: [number, 0] }
    }

    fn taken(inbox: &Inbox) -> Vec<u64> {
        std::iter::from_fn(|| inbox.take()).map(|low| low.key.id[0]).collect()
    }

    #[test]
    fn clones_are_handles_to_one_store() {
        let store = Embedded::new();
        assert_eq!(store.call(&emptying(1, 0..1), 1_000).leases[0].unwrap().level, 0);
        let other = store.clone();
        assert_eq!(other.call(&emptying(2, 0..1), 1_000).leases[0].unwrap().level, -50 * TOKEN);
        assert_eq!(store.with(|store| store.level(key(0))), Some(-50 * TOKEN));
        assert_eq!(store.with(|store| store.rows(key(0)).count()), 2);
    }

    #[test]
    fn a_node_hears_what_the_others_leave_low_from_its_subscription_on() {
        let store = Embedded::new();
        store.call(&emptying(1, 0..2), 1_000);
        let all = store.subscribe();
        let of_others = store.subscribe().except(NodeId(1));
        store.call(&emptying(1, 2..4), 1_000);
        store.call(&emptying(2, 4..6), 1_000);
        store.call(&Call { push: false, ..emptying(2, 6..8) }, 1_000);
        assert_eq!(taken(&all), [2, 3, 4, 5]);
        assert_eq!(taken(&of_others), [4, 5]);
        assert_eq!(all.take(), None);
    }

    #[test]
    fn a_full_inbox_drops_the_oldest_and_counts_it() {
        let store = Embedded::new();
        let inbox = store.subscribe();
        let most = u64::try_from(INBOX_MAX).unwrap();
        store.call(&emptying(1, 0..most), 1_000);
        assert_eq!(inbox.lost(), 0);
        store.call(&emptying(1, most..most + 3), 1_000);
        assert_eq!(inbox.lost(), 3);
        assert_eq!(taken(&inbox), (3..most + 3).collect::<Vec<_>>());
    }

    #[test]
    fn a_dropped_inbox_is_forgotten() {
        let store = Embedded::new();
        drop(store.subscribe());
        let kept = store.subscribe();
        assert_eq!(store.lock().inboxes.len(), 1);
        drop(kept);
        store.call(&emptying(1, 0..1), 1_000);
        assert_eq!(store.lock().inboxes.len(), 0);
    }

    #[test]
    fn a_caller_that_panics_under_the_lock_takes_nobody_with_it() {
        let store = Embedded::new();
        store.call(&emptying(1, 0..1), 1_000);
        let unwound = catch_unwind(AssertUnwindSafe(|| store.with(|_| panic!("on purpose"))));
        assert!(unwound.is_err() && store.shared.is_poisoned());
        assert_eq!(store.call(&emptying(1, 0..1), 1_000).leases[0].unwrap().level, 0);
    }
}

//! The automatic keys of one limit: a bounded table that is read without a lock.
//!
//! An index of chains in atomics leads to slots of one cache line, each with a key's id and its
//! [`Cell`]. Finding a key takes no lock; making one takes the table's, for the time of an insert.
//! Slots come into being in chunks, so a table costs what its keys cost and not what it may grow
//! to. When no slot is free, a key is served by one of [`OVERFLOW`] buckets that such keys share.
//!
//! A key is retired when its bucket has been full for [`REST`]: the bucket it would get anew is
//! full as well, so nothing is forgotten. Its slot goes through the stages
//!
//! ```text
//! fresh or free -> in use -> leaving (unlinked) -> waiting (for the turns under way) -> free
//! ```
//!
//! so that an undo or a charge never meets a stranger. The table refuses to grow, to evict a key
//! that still owes or is owed something, and to know what its keys stand for.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use prefetch_index::prefetch_index;

use super::cell::{Cell, Reach, Take};
use super::grant::Grant;
use super::id::{KeyId, Spread};
use super::turns::{Since, Turns};
use crate::clock::Moment;

/// Buckets that the keys without a slot share. Enough that one abuser among them meets few others.
pub(super) const OVERFLOW: usize = 64;

/// How long a bucket has to have been full before its key is retired. More than the clock readings
/// of two workers can differ, so that neither finds a bucket short of what refilled meanwhile.
const REST: Duration = Duration::from_secs(1);

/// Slots in a chunk: 32 KiB.
const CHUNK: usize = 512;

/// One key: a cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Slot {
    pub(super) cell: Cell,
    first: AtomicU64,
    second: AtomicU64,
    /// The next slot of the chain, as its index plus one; 0 ends it.
    next: AtomicU32,
}

impl Slot {
    /// The key that the slot has, or had last.
    pub(super) fn id(&self) -> KeyId {
        KeyId { first: self.first.load(Relaxed), second: self.second.load(Relaxed) }
    }
}

/// A cell on a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Lone(pub(super) Cell);

type Chunk = Box<[Slot; CHUNK]>;

/// The automatic keys of one limit.
#[derive(Debug)]
pub(super) struct Table {
    /// Where each chain begins, as a slot's index plus one; 0 is an empty chain.
    heads: Box<[AtomicU32]>,
    chunks: Box<[OnceLock<Chunk>]>,
    spread: Spread,
    /// The number of the first slot's cell.
    first_number: u32,
    stock: Mutex<Stock>,
    overflow: Box<[Lone]>,
    in_use: AtomicUsize,
    overflowed: AtomicU64,
}

/// How many slots a sweep visits at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visits {
    /// While few are free.
    pub(super) crowded: usize,
    /// While there is no need of room.
    pub(super) roomy: usize,
}

/// What there is to know when a sweep comes to a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    /// A bucket that was full then has rested long enough for clocks to differ.
    pub(super) full_at: Moment,
    /// Few slots are free.
    pub(super) crowded: bool,
}

/// Which slots are not in use, and why.
#[derive(Debug)]
struct Stock {
    keys_max: u32,
    /// The first index that was never used.
    fresh: u32,
    free: Vec<u32>,
    leaving: Vec<u32>,
    waiting: Vec<u32>,
    /// Who was in a turn when `waiting` was filled.
    since: Since,
    /// Where the next sweep goes on.
    cursor: u32,
    settled: usize,
    /// Buckets were retired because they were full then. A new one is not full before it, or a
    /// worker with an older reading would hand out twice what refilled in between.
    full_at: Moment,
}

impl Table {
    /// An empty table for `keys_max` keys, whose cells have the numbers from `first_number` on; its
    /// overflow buckets are full at `now`.
    pub(super) fn new(
        keys_max: usize,
        first_number: u32,
        grant: &Grant,
        spread: Spread,
        now: Moment,
    ) -> Self {
        // Half to a quarter full at most, so that a lookup rarely meets a second slot.
        let heads = keys_max.saturating_add(keys_max / 2).next_power_of_two();
        let stock = Stock {
            keys_max: u32::try_from(keys_max).unwrap_or(u32::MAX - 1),
            fresh: 0,
            free: Vec::new(),
            leaving: Vec::new(),
            waiting: Vec::new(),
            since: Since::default(),
            cursor: 0,
            settled: 0,
            full_at: Moment::START,
        };
        Self {
            heads: (0..heads).map(|_| AtomicU32::new(0)).collect(),
            chunks: (0..keys_max.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect(),
            spread,
            first_number,
            stock: Mutex::new(stock),
            overflow: (0..OVERFLOW).map(|_| Lone(Cell::full(grant, now))).collect(),
            in_use: AtomicUsize::new(0),
            overflowed: AtomicU64::new(0),
        }
    }

    /// The cell of a key that has a slot. The caller is in a turn and keeps it no longer than that.
    #[inline]
    pub(super) fn cell(&self, id: KeyId) -> Option<&Cell> {
        self.find(id).map(|slot| &slot.cell)
    }

    /// Lets `spend` have the cell of a key that had no slot or just lost it, and hands out the cell
    /// for an undo. A bucket that is made for it is full and reaches so far. The caller is in a turn
    /// and keeps it no longer than that.
    #[cold]
    pub(super) fn spend_new(
        &self,
        id: KeyId,
        grant: &Grant,
        (now, reach): (Moment, Reach),
        spend: impl Fn(&Cell) -> Take,
    ) -> Option<(&Cell, Take)> {
        while let Some(slot) = self.make(id, grant, (now, reach)) {
            let take = spend(&slot.cell);
            if take != Take::Retired {
                return Some((&slot.cell, take));
            }
        }
        self.overflowed.fetch_add(1, Relaxed);
        self.overflow_of(id).map(|cell| (cell, spend(cell)))
    }

    /// The bucket that a key without a slot would share now; `None` while a slot is free.
    #[cold]
    pub(super) fn shared(&self, id: KeyId) -> Option<&Cell> {
        if self.lock().is_full() { self.overflow_of(id) } else { None }
    }

    fn overflow_of(&self, id: KeyId) -> Option<&Cell> {
        // The high half of the word; the low half chooses the chain.
        let at = (self.spread.word(id) >> 32) as usize % OVERFLOW;
        self.overflow.get(at).map(|lone| &lone.0)
    }

    /// Keys that have a slot.
    pub(super) fn keys_in_use(&self) -> usize {
        self.in_use.load(Relaxed)
    }

    /// Messages that an overflow bucket served.
    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed.load(Relaxed)
    }

    /// Settles a few cells, takes slots back that nobody can hold any more, and retires those keys
    /// that `retire` does. Does nothing if another worker is at it or makes a key.
    pub(super) fn sweep(
        &self,
        grant: &Grant,
        turns: &Turns,
        (now, visits): (Moment, Visits),
        mut retire: impl FnMut(&Slot, Visit) -> bool,
    ) {
        let mut guard = match self.stock.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let stock = &mut *guard;
        let full_at = before_rest(now);
        if let Some(lone) = self.overflow.get(stock.settled % OVERFLOW) {
            lone.0.settle(grant, full_at);
        }
        stock.settled = stock.settled.wrapping_add(1);
        stock.take_back(turns);
        let crowded = stock.is_crowded();
        let visits = if crowded { visits.crowded } else { visits.roomy };
        for _ in 0..visits.min(stock.fresh as usize) {
            let index = stock.next_visit();
            let Some(slot) = self.slot(index) else { continue };
            slot.cell.settle(grant, full_at);
            if retire(slot, Visit { full_at, crowded }) {
                self.unlink(index, slot);
                stock.leaving.push(index);
                stock.full_at = stock.full_at.max(full_at);
            }
        }
        stock.wait_for_turns(turns);
        self.in_use.store(stock.in_use(), Relaxed);
    }

    /// Has the processor fetch the head of a key's chain, and does not wait for it.
    #[inline]
    pub(super) fn fetch_head(&self, id: KeyId) {
        prefetch_index(&self.heads, self.chain(id));
    }

    /// The same for the slot that the chain begins with, which mostly is the key's.
    #[inline]
    pub(super) fn fetch_slot(&self, id: KeyId) {
        let first = self.head(id).and_then(|head| head.load(Acquire).checked_sub(1));
        if let Some(index) = first.map(|index| index as usize)
            && let Some(chunk) = self.chunks.get(index / CHUNK).and_then(OnceLock::get)
        {
            prefetch_index(&**chunk, index % CHUNK);
        }
    }

    #[inline]
    fn head(&self, id: KeyId) -> Option<&AtomicU32> {
        self.heads.get(self.chain(id))
    }

    /// Which chain a key is in.
    #[inline]
    fn chain(&self, id: KeyId) -> usize {
        // The number of heads is a power of two.
        self.spread.word(id) as usize & (self.heads.len() - 1)
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot> {
        let index = index as usize;
        self.chunks.get(index / CHUNK)?.get()?.get(index % CHUNK)
    }

    #[inline]
    fn find(&self, id: KeyId) -> Option<&Slot> {
        let mut link = self.head(id)?.load(Acquire);
        loop {
            let slot = self.slot(link.checked_sub(1)?)?;
            if slot.first.load(Relaxed) == id.first && slot.second.load(Relaxed) == id.second {
                return Some(slot);
            }
            link = slot.next.load(Acquire);
        }
    }

    /// The slot of the cell with this number.
    pub(super) fn numbered(&self, number: u32) -> Option<&Slot> {
        self.slot(number.checked_sub(self.first_number)?)
    }

    /// The chunk that the slot of this index lies in.
    fn new_chunk(&self, index: u32) -> Chunk {
        let first = self.first_number + index - index % CHUNK as u32;
        Box::new(std::array::from_fn(|place| Slot {
            cell: Cell::retired(first + place as u32),
            first: AtomicU64::new(0),
            second: AtomicU64::new(0),
            next: AtomicU32::new(0),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Stock> {
        // Nothing under this lock leaves the stock half changed when it unwinds.
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key's slot, linked by this call or by another worker's; `None` when no slot is free.
    pub(super) fn make(
        &self,
        id: KeyId,
        grant: &Grant,
        (now, reach): (Moment, Reach),
    ) -> Option<&Slot> {
        let mut stock = self.lock();
        if let Some(slot) = self.find(id) {
            return Some(slot);
        }
        let index = stock.draw()?;
        let chunk = self.chunks.get(index as usize / CHUNK)?;
        let slot = chunk.get_or_init(|| self.new_chunk(index)).get(index as usize % CHUNK)?;
        let head = self.head(id)?;
        slot.first.store(id.first, Relaxed);
        slot.second.store(id.second, Relaxed);
        slot.cell.renew(grant, now.max(stock.full_at), reach);
        slot.next.store(head.load(Relaxed), Relaxed);
        head.store(index + 1, Release);
        self.in_use.store(stock.in_use(), Relaxed);
        Some(slot)
    }

    /// Takes a slot out of its chain. Its own link stays, for those who are just walking over it.
    fn unlink(&self, index: u32, slot: &Slot) {
        let mut link = self.head(slot.id());
        while let Some(from) = link {
            let to = from.load(Relaxed);
            if to == index + 1 {
                from.store(slot.next.load(Relaxed), Release);
                return;
            }
            link = to.checked_sub(1).and_then(|index| self.slot(index)).map(|slot| &slot.next);
        }
    }
}

/// The moment since which a bucket must have been full to be taken for idle at `now`.
pub(super) fn before_rest(now: Moment) -> Moment {
    Moment::from_nanos(now.nanos().saturating_sub(REST.as_nanos() as u64))
}

impl Stock {
    /// A slot that is free to use.
    fn draw(&mut self) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            return Some(index);
        }
        let index = self.fresh;
        (index < self.keys_max).then(|| {
            self.fresh += 1;
            index
        })
    }

    const fn is_full(&self) -> bool {
        self.free.is_empty() && self.fresh >= self.keys_max
    }

    fn in_use(&self) -> usize {
        (self.fresh as usize)
            .saturating_sub(self.free.len() + self.leaving.len() + self.waiting.len())
    }

    /// Whether less than an eighth of the slots is free, or about to be.
    fn is_crowded(&self) -> bool {
        let keys_max = self.keys_max as usize;
        keys_max.saturating_sub(self.in_use()) <= keys_max / 8
    }

    fn next_visit(&mut self) -> u32 {
        let index = if self.cursor < self.fresh { self.cursor } else { 0 };
        self.cursor = index + 1;
        index
    }

    fn take_back(&mut self, turns: &Turns) {
        if !self.waiting.is_empty() && turns.have_ended(&mut self.since) {
            self.free.append(&mut self.waiting);
        }
    }

    fn wait_for_turns(&mut self, turns: &Turns) {
        if self.waiting.is_empty() && !self.leaving.is_empty() {
            std::mem::swap(&mut self.waiting, &mut self.leaving);
            turns.mark(&mut self.since);
        }
    }
}

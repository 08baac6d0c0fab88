//! What the lease sync may see of a policy, and do to it.
//!
//! The sync finds here which cells gates have marked, the cell of a key that the store names, and
//! which keys have rested. It alone retires the keys of a leased policy, so a [`Place`] that it
//! holds stays what it is until the sync itself gives it up.

use super::cell::Cell;
use super::grant::Grant;
use super::id::{Digests, KeyId};
use super::lease::{Hold, Leases};
use super::limit::{Buckets, Limit, News};
use super::limit_set::LimitIx;
use super::marks::Marks;
use super::policy::Policy;
use super::store_key::StoreKey;
use super::table::{Visit, Visits};
use crate::clock::Moment;
use crate::traffic::Traffic;

/// Where a cell is: its limit, in the order in which limits are asked, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The limit.
    pub limit: u8,
    /// The cell.
    pub number: u32,
}

/// What a leased bucket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It limits.
    Limit(Hold),
    /// It says what may not be refused: never held, and no other node's low level touches it.
    Floor,
}

/// One cell, as the sync sees it.
#[derive(Clone, Copy, Debug)]
pub struct Leased<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// What its bucket hands out.
    pub grant: &'a Grant,
    /// What it is for.
    pub role: Role,
    /// What it is to all nodes.
    pub key: StoreKey,
}

impl Policy {
    /// What gates and sync tell each other of all leases.
    pub const fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Whether some gate wants the sync to look at once.
    pub fn wants_sync(&self) -> bool {
        self.leases.is_called()
    }

    /// Takes the marks of all cells that gates want looked at with the next tick.
    pub fn collect_soon(&self, found: impl FnMut(Place)) {
        self.collect(|news| &news.soon, found);
    }

    /// Takes the marks of all cells that gates want looked at at once.
    pub fn collect_urgent(&self, found: impl FnMut(Place)) {
        // First the call: one that comes after it is heard the next time.
        self.leases.heed_call();
        self.collect(|news| &news.urgent, found);
    }

    /// Whether some cell is marked to be looked at at once, whoever was told of it.
    pub fn has_urgent(&self) -> bool {
        self.limits
            .iter()
            .filter_map(|limit| limit.news.as_ref())
            .any(|news| !news.urgent.is_empty())
    }

    fn collect(&self, marks: impl Fn(&News) -> &Marks, mut found: impl FnMut(Place)) {
        for (place, limit) in (0u8..).zip(&self.limits) {
            if let Some(news) = &limit.news {
                marks(news).collect(|number| found(Place { limit: place, number }));
            }
        }
    }

    /// Marks a cell, as a gate does.
    pub fn remind(&self, place: Place) {
        if let Some(Leased { cell, .. }) = self.leased_cell(place)
            && cell.remind()
            && let Some(news) = self.at(place).and_then(|limit| limit.news.as_ref())
        {
            news.soon.set(place.number);
        }
    }

    /// The cell at a place.
    pub fn leased_cell(&self, place: Place) -> Option<Leased<'_>> {
        let limit = self.at(place)?;
        let (cell, grant, id) = limit.numbered(place.number)?;
        Some(Leased { cell, grant, role: limit.role(), key: limit.store_key(id) })
    }

    /// The place of a key that the store names: that of its cell, which is made if there is none.
    /// `None` when no limit here has such keys, or no slot is free.
    pub fn place_of(&self, key: &StoreKey, now: Moment) -> Option<Place> {
        let at = self.limits.iter().position(|limit| limit.id.first == key.limit)?;
        let number = self.limits.get(at)?.number_of(key_id(key), now, &self.leases)?;
        Some(Place { limit: u8::try_from(at).ok()?, number })
    }

    /// How many limits have leased cells.
    pub fn leased_limits(&self) -> usize {
        self.limits.len()
    }

    /// The limit of the configuration that the leased cells of a place belong to.
    pub fn limit_at(&self, place: u8) -> Option<LimitIx> {
        self.limits.get(usize::from(place)).map(|limit| limit.ix)
    }

    /// Visits `visits` slots of each limit and retires the keys of those which `may_retire` lets go,
    /// whose places are added to `retired`. A bucket that is not full stays, whatever it says.
    /// `may_retire` gets the place, whether few slots are free, and what was spent.
    pub fn sweep_leased(
        &self,
        now: Moment,
        visits: usize,
        mut may_retire: impl FnMut(Place, bool, i64) -> bool,
        retired: &mut Vec<Place>,
    ) {
        let visits = Visits { crowded: visits, roomy: visits };
        for (at, limit) in (0u8..).zip(&self.limits) {
            limit.sweep(&self.turns, now, visits, |slot, Visit { full_at, crowded }| {
                let place = Place { limit: at, number: slot.cell.number() };
                let may_leave = |spent| may_retire(place, crowded, spent);
                let gone = slot.cell.retire(&limit.grant, full_at, may_leave);
                retired.extend(gone.then_some(place));
                gone
            });
        }
    }

    fn at(&self, place: Place) -> Option<&Limit> {
        self.limits.get(usize::from(place.limit))
    }
}

impl Limit {
    /// What the key that a message has here is to all nodes, whether it has a cell or not.
    #[cold]
    pub(super) fn store_key_of(
        &self,
        traffic: &Traffic,
        digests: &mut Digests,
    ) -> Option<StoreKey> {
        let named = self.find(traffic, digests)?.named;
        let id = match (&self.buckets, named) {
            (Buckets::One(_), _) => self.id,
            (Buckets::Keyed(keys), Some(place)) => keys.named.id(place)?,
            (Buckets::Keyed(_), None) => self.id_with(traffic, digests)?,
        };
        Some(self.store_key(id))
    }

    const fn role(&self) -> Role {
        self.part.role(self.hold)
    }

    fn store_key(&self, id: KeyId) -> StoreKey {
        StoreKey { limit: self.id.first, id: [id.first, id.second] }
    }

    /// The cell of this number, what its bucket hands out, and which key it is of.
    fn numbered(&self, number: u32) -> Option<(&Cell, &Grant, KeyId)> {
        let keys = match &self.buckets {
            Buckets::One(lone) => return Some((&lone.0, &self.grant, self.id)),
            Buckets::Keyed(keys) => keys,
        };
        if let Some((named, id)) = keys.named.numbered(number) {
            return Some((&named.cell, &named.grant, id));
        }
        let slot = keys.table.numbered(number)?;
        Some((&slot.cell, &self.grant, slot.id()))
    }

    /// The number of the cell that a key has or is given now.
    fn number_of(&self, id: KeyId, now: Moment, leases: &Leases) -> Option<u32> {
        let keys = match &self.buckets {
            Buckets::One(_) => return (id == self.id).then_some(0),
            Buckets::Keyed(keys) => keys,
        };
        keys.named.number_of(id).or_else(|| {
            let reach = leases.first_reach(&self.grant, self.hold);
            Some(keys.table.make(id, &self.grant, (now, reach))?.cell.number())
        })
    }
}

const fn key_id(key: &StoreKey) -> KeyId {
    let [first, second] = key.id;
    KeyId { first, second }
}

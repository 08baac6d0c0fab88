//! The books of a leased node: what it admitted, what its cells say, and what the store has charged.

use std::ops::Range;

use tollgate::clock::Moment;
use tollgate::limits::{Burst, Place, Policy, Rule, StoreKey, Terms};
use tollgate::quota::protocol::NodeId;
use tollgate::quota::sync::Sync;
use tollgate::traffic::Class;

use crate::cluster::leased::LeaseStore;
use crate::cluster::limit::at;
use crate::cluster::node::{Asked, Taken};

/// One token, as cells and store count.
const ONE: i64 = 1_000_000;

/// Finds the cells of requests, and watches what is spent before the store hears of it.
#[derive(Debug)]
pub(crate) struct Books {
    /// Of nobody: it tells what a request's buckets are called.
    namer: Policy,
    /// Of each limit: its places among the parts of all limits.
    parts: Vec<Range<usize>>,
    nodes: u32,
    /// Since when as many nodes are live as the cluster has.
    complete_since: Option<Moment>,
    /// By the key of the first limit.
    places: Vec<Option<Place>>,
    broken: Vec<String>,
}

impl Books {
    pub(crate) fn new(rules: &[Rule], nodes: usize) -> Self {
        // Its buckets never run dry, and so each request marks all of its cells.
        let burst = Burst::tokens(1e9).unwrap();
        let rules: Vec<_> = rules.iter().map(|rule| Rule { burst, ..rule.clone() }).collect();
        let namer = Policy::leased(&rules, &[], Terms::default(), 1, 0, Moment::START);
        let mut end = 0;
        let parts = rules.iter().map(|rule| {
            let has_floor = rule.floor.is_some() || rule.keys.iter().any(|key| key.floor.is_some());
            let begin = end;
            end += 1 + usize::from(has_floor) + usize::from(rule.peak.is_some());
            begin..end
        });
        Self {
            parts: parts.collect(),
            namer: namer.unwrap(),
            nodes: u32::try_from(nodes).unwrap(),
            complete_since: None,
            places: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// What the store calls the buckets of a request in one limit: that of its rate, and its peak.
    fn store_keys(&self, asked: &Asked, limit: usize) -> Vec<StoreKey> {
        let _turn = self.namer.turn(0);
        // Nothing is guaranteed to what is charged, so no floor is met.
        self.namer.charge(&asked.traffic, Moment::START);
        let mut marked = Vec::new();
        self.namer.collect_urgent(|place| marked.push(place));
        self.namer.collect_soon(|place| marked.push(place));
        marked.sort_unstable();
        marked.dedup();
        let cells = marked.into_iter().filter_map(|place| {
            let leased = self.namer.leased_cell(place)?;
            leased.cell.heed();
            Some((usize::from(place.limit), leased.key))
        });
        let cells: Vec<_> = cells.collect();
        let parts = &self.parts[limit];
        cells.into_iter().filter(|(part, _)| parts.contains(part)).map(|(_, key)| key).collect()
    }

    /// A request was admitted: while the lease is valid, a node holds itself to what it may spend
    /// before the store hears of it. What a lease that was given among fewer nodes allows is not
    /// looked at.
    pub(crate) fn note(&mut self, policy: &Policy, sync: &Sync, asked: &Asked, now: Moment) {
        if policy.leases().nodes() != self.nodes || !policy.leases().is_valid(now) {
            self.complete_since = None;
            return;
        }
        let complete_since = *self.complete_since.get_or_insert(now);
        if at(&mut self.places, asked.key, |_| None).is_none() {
            let key = self.store_keys(asked, 0)[0];
            self.places[asked.key] = policy.place_of(&key, now);
        }
        let Some(known) = self.places[asked.key].and_then(|place| sync.look(place, now)) else {
            return;
        };
        let is_of_all = now.since(complete_since) > known.age;
        let may_be_spent = known.hold.unwrap_or(i64::MAX);
        if is_of_all && asked.traffic.class != Class::Protected && known.unreported > may_be_spent {
            let micro = known.unreported;
            let wrong = format!("at {now:?} {micro} unreported, and {may_be_spent} may be");
            self.broken.push(wrong);
        }
    }

    /// At rest the store has charged what was admitted, no more and no less.
    pub(crate) fn audit(
        &self,
        (id, policy): (NodeId, &Policy),
        store: &LeaseStore,
        now: Moment,
        taken: &[Taken],
    ) -> Vec<String> {
        let mut broken = self.broken.clone();
        // A token that was given back after it was reported stays charged.
        let given_back = i64::try_from(policy.leases().undone()).unwrap() * ONE;
        for Taken { asked, limit, tokens } in taken {
            let admitted = i64::try_from(*tokens).unwrap() * ONE;
            for key in self.store_keys(asked, *limit) {
                let spent = policy
                    .place_of(&key, now)
                    .and_then(|place| policy.leased_cell(place)?.cell.spent())
                    .unwrap_or_default();
                if spent != admitted {
                    broken.push(format!("{key}: {admitted} admitted and {spent} spent"));
                }
                let row = store.row(key, policy.leases().shards(), id);
                let charged = row.map(|row| row.spent);
                if !charged.is_some_and(|charged| (0..=given_back).contains(&(charged - spent))) {
                    broken.push(format!("{key}: {spent} spent and {charged:?} charged"));
                }
            }
        }
        broken
    }
}

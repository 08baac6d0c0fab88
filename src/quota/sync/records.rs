//! The records of all keys that were reported, found by the place of their cells.
//!
//! They lie in chunks as the cells do, and a chunk comes into being with its first record, so that a
//! large table of which little is in use costs little here.

use super::record::Record;
use crate::limits::Place;

const CHUNK: usize = 512;

type Chunk = Box<[Option<Record>]>;

/// By limit, then by number.
#[derive(Debug)]
pub(super) struct Records {
    limits: Vec<Vec<Option<Chunk>>>,
    count: usize,
}

impl Records {
    /// None yet, of so many limits.
    pub(super) fn new(limits: usize) -> Self {
        Self { limits: (0..limits).map(|_| Vec::new()).collect(), count: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    pub(super) fn get(&self, place: Place) -> Option<&Record> {
        let chunks = self.limits.get(usize::from(place.limit))?;
        let chunk = chunks.get(place.number as usize / CHUNK)?.as_ref()?;
        chunk.get(place.number as usize % CHUNK)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut Record> {
        let chunks = self.limits.get_mut(usize::from(place.limit))?;
        let chunk = chunks.get_mut(place.number as usize / CHUNK)?.as_mut()?;
        chunk.get_mut(place.number as usize % CHUNK)?.as_mut()
    }

    /// The record of a place, made by `first` if there is none.
    pub(super) fn get_or(
        &mut self,
        place: Place,
        first: impl FnOnce() -> Record,
    ) -> Option<&mut Record> {
        let chunks = self.limits.get_mut(usize::from(place.limit))?;
        let at = place.number as usize / CHUNK;
        if chunks.len() <= at {
            chunks.resize_with(at + 1, || None);
        }
        let chunk = chunks.get_mut(at)?.get_or_insert_with(|| (0..CHUNK).map(|_| None).collect());
        let record = chunk.get_mut(place.number as usize % CHUNK)?;
        if record.is_none() {
            self.count += 1;
        }
        Some(record.get_or_insert_with(first))
    }

    pub(super) fn remove(&mut self, place: Place) {
        let chunks = self.limits.get_mut(usize::from(place.limit));
        let chunk = chunks.and_then(|chunks| chunks.get_mut(place.number as usize / CHUNK));
        let record = chunk
            .and_then(Option::as_mut)
            .and_then(|chunk| chunk.get_mut(place.number as usize % CHUNK));
        if record.is_some_and(|record| record.take().is_some()) {
            self.count -= 1;
        }
    }

    /// Does something to every record.
    pub(super) fn each_mut(&mut self, mut change: impl FnMut(Place, &mut Record)) {
        for (limit, chunks) in (0u8..).zip(&mut self.limits) {
            for (at, chunk) in chunks.iter_mut().enumerate() {
                for (slot, record) in
                    chunk.iter_mut().flat_map(|chunk| chunk.iter_mut()).enumerate()
                {
                    if let Some(record) = record {
                        change(Place { limit, number: (at * CHUNK + slot) as u32 }, record);
                    }
                }
            }
        }
    }

    /// Every record with its place.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Place, &Record)> {
        self.limits.iter().enumerate().flat_map(|(limit, chunks)| {
            chunks.iter().enumerate().flat_map(move |(at, chunk)| {
                let records = chunk.iter().flat_map(|chunk| chunk.iter()).enumerate();
                records.filter_map(move |(slot, record)| {
                    let place = Place { limit: limit as u8, number: (at * CHUNK + slot) as u32 };
                    Some((place, record.as_ref()?))
                })
            })
        })
    }
}

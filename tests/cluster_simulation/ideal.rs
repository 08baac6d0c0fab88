//! The ideal: one place that sees every request when it arrives, and takes all its tokens or none.

use tollgate::clock::Moment;
use tollgate::traffic::Class;

use crate::cluster::bucket::Bucket;
use crate::cluster::limit::{Limit, at};
use crate::cluster::source::Source;

/// All limits, each with its keys.
#[derive(Debug)]
pub(crate) struct Ideal {
    limits: Vec<(Limit, Vec<Key>)>,
}

#[derive(Debug)]
struct Key {
    buckets: Vec<Bucket>,
    floor: Option<Bucket>,
}

impl Ideal {
    pub(crate) fn new(limits: &[Limit]) -> Self {
        Self { limits: limits.iter().map(|limit| (limit.clone(), Vec::new())).collect() }
    }

    /// Whether the request is admitted.
    pub(crate) fn decide(&mut self, source: &Source, now: Moment) -> bool {
        let is_exempt = source.class == Class::Protected || self.takes_from_floor(source, now);
        let is_sheddable = source.class == Class::Sheddable;
        let is_admitted = is_exempt
            || self.keys(source).all(|(limit, key)| {
                let reserve = if is_sheddable { limit.reserve } else { 0.0 };
                key.buckets.iter_mut().all(|bucket| bucket.has(now, reserve))
            });
        if is_admitted {
            let spend = if is_exempt { Bucket::charge } else { Bucket::spend };
            for (_, key) in self.keys(source) {
                key.buckets.iter_mut().for_each(|bucket| spend(bucket, now));
            }
        }
        is_admitted
    }

    fn takes_from_floor(&mut self, source: &Source, now: Moment) -> bool {
        self.keys(source).any(|(_, key)| key.floor.as_mut().is_some_and(|floor| floor.take(now)))
    }

    fn keys(&mut self, source: &Source) -> impl Iterator<Item = (&Limit, &mut Key)> {
        self.limits.iter_mut().map(|(limit, keys)| {
            let make = |key| Key { buckets: limit.buckets(), floor: limit.floor(key) };
            let key = at(keys, limit.key(source), make);
            (&*limit, key)
        })
    }
}

//! The ideal: one place that sees every request when it arrives, and takes all its tokens or none.

use tollgate::clock::Moment;
use tollgate::traffic::Class;

use crate::cluster::bucket::Bucket;
use crate::cluster::limit::{Limit, at};
use crate::cluster::source::Source;

/// All limits, each with its buckets by key.
#[derive(Debug)]
pub(crate) struct Ideal {
    limits: Vec<(Limit, Vec<Bucket>)>,
}

impl Ideal {
    pub(crate) fn new(limits: &[Limit]) -> Self {
        Self { limits: limits.iter().map(|limit| (limit.clone(), Vec::new())).collect() }
    }

    /// Whether the request is admitted.
    pub(crate) fn decide(&mut self, source: &Source, now: Moment) -> bool {
        let protected = source.class == Class::Protected;
        let admitted = protected || self.buckets(source).all(|bucket| bucket.has(now, 0.0));
        if admitted {
            let spend = if protected { Bucket::charge } else { Bucket::spend };
            self.buckets(source).for_each(|bucket| spend(bucket, now));
        }
        admitted
    }

    fn buckets(&mut self, source: &Source) -> impl Iterator<Item = &mut Bucket> {
        self.limits
            .iter_mut()
            .map(|(limit, buckets)| at(buckets, limit.key(source), || limit.bucket()))
    }
}

//! The store of designs that lend blocks of tokens: a token is with the store or with one node.

use tollgate::clock::Moment;

use crate::cluster::bucket::Bucket;
use crate::cluster::limit::{Limit, at};
use crate::cluster::node::Store;

/// What a node wants of a key, or gives back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wish {
    Lend(u32),
    TakeBack(u32),
}

/// The bucket of each key.
#[derive(Clone, Debug)]
pub(crate) struct Till {
    limit: Limit,
    buckets: Vec<Bucket>,
}

impl Store for Till {
    type Call = Vec<(usize, Wish)>;
    /// Tokens lent, by key.
    type Reply = Vec<(usize, u32)>;
    type Push = ();

    fn new(limits: &[Limit]) -> Self {
        Self { limit: limits[0].clone(), buckets: Vec::new() }
    }

    fn call(&mut self, call: &Self::Call, wall_us: u64) -> (Self::Reply, Option<()>) {
        let now = Moment::from_nanos(wall_us * 1_000);
        let mut lent = Vec::new();
        for (key, wish) in call {
            let bucket = at(&mut self.buckets, *key, |_| self.limit.buckets().remove(0));
            match *wish {
                Wish::Lend(most) => {
                    let whole = (0..most).take_while(|_| bucket.take(now)).count();
                    lent.push((*key, u32::try_from(whole).unwrap()));
                }
                Wish::TakeBack(tokens) => bucket.put_back(now, tokens),
            }
        }
        (lent, None)
    }

    fn keys(call: &Self::Call) -> usize {
        call.len()
    }

    fn wipe(&mut self) {
        self.buckets.clear();
    }
}

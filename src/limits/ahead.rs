//! Fetching the buckets of a message before it is decided on.
//!
//! A table of many keys lies far from the processor, and a decision would wait for two of its lines,
//! one after the other. So the head of a key's chain is asked for as soon as the key is known, and
//! the slot when the head has had the time to arrive: messages that came together are looked at
//! together. This is a hint to the processor and nothing else: it takes no token, makes no key, and
//! a message that nobody looked at is decided on alike.

use super::id::Digests;
use super::policy::Policy;
use crate::traffic::Traffic;

/// So many messages are looked at together at most: about what a processor fetches at once, and not
/// so much that the first is gone again from the cache nearest to it.
pub const LOOK_AHEAD: usize = 16;

/// Fewer keys of a limit stay near the processor unasked: 256 KiB of buckets.
pub(super) const FAR_KEYS: usize = 4_096;

impl Policy {
    /// The same policy, which looks ahead where a limit has so many keys in use. By default these
    /// are as many as do not stay near the processor by themselves.
    #[must_use]
    pub fn looking_ahead_from(mut self, keys: usize) -> Self {
        self.far_keys = keys;
        self
    }

    /// Whether the buckets of some limit are so many that looking ahead is worth its time.
    pub fn is_far(&self) -> bool {
        self.limits.iter().any(|limit| limit.far(self.far_keys).is_some())
    }

    /// Has the processor fetch what leads to the buckets of a message.
    #[inline]
    pub fn look_ahead(&self, traffic: &Traffic, digests: &mut Digests) {
        for place in self.plan.of(traffic).iter() {
            if let Some(limit) = self.limits.get(place)
                && let Some(table) = limit.far(self.far_keys)
                && let Some(id) = limit.id_with(traffic, digests)
            {
                table.fetch_head(id);
                digests.keep(place, id);
            }
        }
    }

    /// Has it fetch the buckets themselves, some time after [`look_ahead`](Self::look_ahead).
    #[inline]
    pub fn fetch(&self, digests: &Digests) {
        for (place, id) in digests.kept() {
            if let Some(table) = self.limits.get(place).and_then(|limit| limit.table()) {
                table.fetch_slot(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;
    use crate::limits::{Burst, LimitIx, Per, Rate, Rule};
    use crate::traffic::{Class, LinkId, MerchantId, Operation};

    fn at(shop: u32) -> Traffic {
        Traffic {
            merchant: MerchantId::new(b"123456", format!("SHOP{shop:08}").as_bytes()),
            ..Traffic::new(LinkId(0), Class::Standard, Operation::Purchase)
        }
    }

    #[test]
    fn looking_ahead_takes_no_token_and_makes_no_key_and_the_decision_is_the_same() {
        let (rate, burst) = (Rate::per_second(0.001).unwrap(), Burst::tokens(2.0).unwrap());
        let rule = Rule { keys_max: 8_192, ..Rule::new("merchant", Per::MERCHANT, rate, burst) };
        let now = Moment::START;
        let policy = Policy::new(&[rule], &[], 1, 42, now).unwrap();
        let _turn = policy.turn(0);
        assert!(!policy.is_far());
        for shop in 0..5_000 {
            assert_eq!(policy.decide(&at(shop), now).refused_by, None);
        }
        assert!(policy.is_far());
        for shop in 0..10_000 {
            let (traffic, mut digests) = (at(shop), Digests::none());
            policy.look_ahead(&traffic, &mut digests);
            policy.fetch(&digests);
            assert_eq!(policy.keys_in_use(LimitIx(0)), 5_000);
        }
        for shop in 0..8_000 {
            let (traffic, mut digests) = (at(shop), Digests::none());
            policy.look_ahead(&traffic, &mut digests);
            // One token of two is left where one was taken, and both where none was.
            let left = if shop < 5_000 { 1 } else { 2 };
            let mut granted =
                || policy.decide_with(&traffic, &mut digests, now).refused_by.is_none();
            assert_eq!((0..3).filter(|_| granted()).count(), left, "{shop}");
        }
    }

    #[test]
    fn a_message_without_a_merchant_can_be_looked_at() {
        let policy = Policy::new(&[], &[], 1, 42, Moment::START).unwrap();
        let bare = Traffic::new(LinkId(9), Class::Standard, Operation::Purchase);
        let mut digests = Digests::none();
        policy.look_ahead(&bare, &mut digests);
        policy.fetch(&digests);
    }
}

//! A shard of the store: it has the keys that are its own, is called by itself, answers by itself and
//! may be lost by itself. What a node knows of one stands here.

use std::time::Duration;

use super::Sync;
use crate::clock::Moment;
use crate::limits::{Place, Policy};
use crate::quota::protocol::{Reply, Since};

/// What a node has heard of one shard, and the keys of that shard that wait for something.
#[derive(Debug, Default)]
pub(super) struct Shard {
    /// When the newest call that was answered had left.
    pub(super) answered_at: Option<Moment>,
    pub(super) since: Since,
    /// Live nodes, as it counted them last.
    nodes: u32,
    /// Keys that are looked at in this turn; empty between turns.
    pub(super) due: Vec<Place>,
    /// Keys that did not find room in the last tick's calls.
    pub(super) late: Vec<Place>,
    /// Keys that the node answers itself, and those of them that are reported next since the shard is
    /// back, the last first.
    pub(super) local: Vec<Place>,
    pub(super) returning: Vec<Place>,
    pub(super) return_at: Option<Moment>,
    /// How far apart their reports are.
    pub(super) return_gap: Duration,
}

impl Sync {
    /// Every shard.
    pub(super) fn each_shard(&self) -> impl Iterator<Item = u16> + use<> {
        0..u16::try_from(self.shards.len()).unwrap_or(u16::MAX)
    }

    pub(super) fn shard_mut(&mut self, shard: u16) -> Option<&mut Shard> {
        self.shards.get_mut(usize::from(shard))
    }

    /// Whether the leases of a shard's keys are valid.
    pub(super) fn is_heard(&self, shard: u16, now: Moment) -> bool {
        self.policy.leases().is_shard_valid(shard, now)
    }

    /// A shard has answered a call that left at `sent_at`: the leases of its keys are good for a while.
    pub(super) fn hear_shard(&mut self, shard: u16, sent_at: Moment, reply: &Reply, now: Moment) {
        if let Some(own) = self.shard_mut(shard) {
            if own.answered_at.is_none_or(|newest| newest < sent_at) {
                own.answered_at = Some(sent_at);
                own.since = reply.since;
            }
            own.nodes = reply.nodes;
        }
        let until = sent_at.after(self.settings.lease_ttl);
        let is_heard = |other| self.is_heard(other, now) || (other == shard && now <= until);
        // The nodes that there are: the most that a shard has counted last, of those whose leases are
        // valid. One that has just come back has not heard of all nodes, and one that is lost knows of
        // nodes that have left since. Too many hold each other back a little more, and too few may
        // together spend more than there is.
        let heard = self.each_shard().zip(&self.shards).filter(|(other, _)| is_heard(*other));
        let nodes = heard.map(|(_, own)| own.nodes).max().unwrap_or(reply.nodes);
        self.policy.leases().renew(shard, until, nodes);
    }
}

/// Puts a key to those that are due of its shard.
pub(super) fn sort_in(shards: &mut [Shard], policy: &Policy, place: Place) {
    let at = match shards.len() {
        1 => Some(0),
        count => u16::try_from(count)
            .ok()
            .and_then(|count| Some(policy.leased_cell(place)?.key.shard(count))),
    };
    if let Some(shard) = at.and_then(|at| shards.get_mut(usize::from(at))) {
        shard.due.push(place);
    }
}

/// How many of so many calls a shard may make at the most, when each wants so many: who wants no more
/// than an even part has it, and what it leaves is the others'.
pub(super) fn fair_part(mut wanted: Vec<usize>, calls: usize) -> usize {
    wanted.sort_unstable();
    let (mut left, mut sharers) = (calls, wanted.len());
    for want in wanted {
        let even = left / sharers.max(1);
        if want > even {
            return even;
        }
        left -= want;
        sharers -= 1;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_some_shards_do_not_want_of_the_calls_is_the_others() {
        let part = |wanted: &[usize]| fair_part(wanted.to_vec(), 12);
        assert_eq!(part(&[]), usize::MAX);
        assert_eq!(part(&[13]), 12);
        assert_eq!(part(&[4, 4, 4]), usize::MAX);
        assert_eq!(part(&[9, 1, 9]), 5);
        assert_eq!(part(&[0, 100, 0]), 12);
        assert_eq!(part(&[5, 5, 5, 5]), 3);
    }
}

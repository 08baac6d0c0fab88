//! The list of keys that are low, by the time that they were noted, and how a node reads it in pages.
//!
//! A key stands in it once, at its last note. The list tells what it was told: whether a bucket has
//! filled since is for the next report of it to say.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{DIGEST_AGE_US, DIGEST_MAX, Low, Since};
use crate::limits::StoreKey;

/// Keys noted low.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LowKeys {
    noted: BTreeMap<StoreKey, u64>,
    /// The level at each note, by its time; keys noted at one time are in their own order.
    levels: BTreeMap<(u64, StoreKey), i64>,
}

/// One page of the list.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    pub(super) digest: Vec<Low>,
    pub(super) since: Since,
    /// The page ended amid keys that were noted at this very time. A key that is noted at it anew
    /// would fall among those already told, so the next note has to be later.
    pub(super) amid_now: bool,
}

impl LowKeys {
    /// Notes a key, in place of its earlier note. Time never goes back from note to note.
    pub(super) fn note(&mut self, low: Low, now_us: u64) {
        if let Some(earlier_us) = self.noted.insert(low.key, now_us) {
            self.levels.remove(&(earlier_us, low.key));
        }
        self.levels.insert((now_us, low.key), low.level);
    }

    /// What was noted since `since` and is recent enough to be told.
    ///
    /// A `since` that lies ahead is of an earlier life of the store and says nothing of this one.
    pub(super) fn page(&self, since: Since, now_us: u64) -> Page {
        let since = if since.time_us > now_us { Since::default() } else { since };
        let oldest_us = now_us.saturating_sub(DIGEST_AGE_US);
        let from = match since.after {
            Some(key) if since.time_us >= oldest_us => Bound::Excluded((since.time_us, key)),
            _ => Bound::Included((since.time_us.max(oldest_us), StoreKey { limit: 0, id: [0, 0] })),
        };
        let page = self.levels.range((from, Bound::Unbounded)).take(DIGEST_MAX);
        let (mut digest, mut last) = (Vec::new(), None);
        for (&(time_us, key), &level) in page {
            digest.push(Low { key, level });
            last = Some((time_us, key));
        }
        // A page that is not full told all there is, and what else is noted at this time comes next.
        let (since, amid_now) = match last {
            Some((time_us, key)) if digest.len() == DIGEST_MAX => {
                (Since { time_us, after: Some(key) }, time_us == now_us)
            }
            _ => (Since { time_us: now_us, after: None }, false),
        };
        Page { digest, since, amid_now }
    }

    /// Forgets keys that no page tells of any more, at most `most` of them.
    pub(super) fn forget(&mut self, now_us: u64, most: usize) {
        let oldest_us = now_us.saturating_sub(DIGEST_AGE_US);
        for _ in 0..most {
            let Some(first) = self.levels.first_entry() else { return };
            let (time_us, key) = *first.key();
            if time_us >= oldest_us {
                return;
            }
            first.remove();
            self.noted.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn key(number: u64) -> StoreKey {
        StoreKey { limit: 1, id: [number, 0] }
    }

    fn low(number: u64, level: i64) -> Low {
        Low { key: key(number), level }
    }

    /// Reads on from `since` until a page is not full.
    fn read_on(keys: &LowKeys, mut since: Since, now_us: u64) -> (Vec<Low>, Since) {
        let mut told = Vec::new();
        for _ in 0..100 {
            let page = keys.page(since, now_us);
            since = page.since;
            told.extend(&page.digest);
            if page.digest.len() < DIGEST_MAX {
                return (told, since);
            }
        }
        panic!("the pages do not end");
    }

    #[test]
    fn a_key_is_told_once_at_its_last_note() {
        let mut keys = LowKeys::default();
        keys.note(low(1, 10), 100);
        keys.note(low(2, 20), 200);
        keys.note(low(1, 5), 300);
        let page = keys.page(Since::default(), 300);
        assert_eq!(page.digest, [low(2, 20), low(1, 5)]);
        assert_eq!(page.since, Since { time_us: 300, after: None });
    }

    #[test]
    fn what_is_noted_at_the_time_of_a_reply_is_told_by_the_next_one() {
        let mut keys = LowKeys::default();
        let read = keys.page(Since::default(), 100).since;
        keys.note(low(1, 10), 100);
        assert_eq!(keys.page(read, 100).digest, [low(1, 10)]);
        assert_eq!(keys.page(Since { time_us: 101, after: None }, 101).digest, []);
    }

    #[test]
    fn six_hundred_keys_of_one_time_are_told_once_each_in_three_pages() {
        let mut keys = LowKeys::default();
        for number in (0..600).rev() {
            keys.note(low(number, 1), 5_000);
        }
        let first = keys.page(Since::default(), 5_000);
        assert_eq!(first.digest.len(), DIGEST_MAX);
        assert_eq!(first.since, Since { time_us: 5_000, after: Some(key(255)) });
        assert!(first.amid_now);
        let (told, since) = read_on(&keys, Since::default(), 5_001);
        assert_eq!(told, (0..600).map(|number| low(number, 1)).collect::<Vec<_>>());
        assert_eq!(keys.page(since, 5_001).digest, []);
    }

    #[test]
    fn a_list_of_exactly_a_page_ends() {
        let mut keys = LowKeys::default();
        for number in 0..256 {
            keys.note(low(number, 1), 5_000);
        }
        let (told, since) = read_on(&keys, Since::default(), 5_000);
        assert_eq!(told.len(), 256);
        assert_eq!(since, Since { time_us: 5_000, after: None });
    }

    #[test]
    fn a_key_that_is_noted_again_between_pages_is_not_skipped() {
        let mut keys = LowKeys::default();
        for number in 0..600 {
            keys.note(low(number, 9), 5_000);
        }
        let first = keys.page(Since::default(), 5_000);
        for number in [3, 400] {
            keys.note(low(number, 2), 5_001);
        }
        let (told, _) = read_on(&keys, first.since, 5_001);
        assert!(told.ends_with(&[low(3, 2), low(400, 2)]));
        let all: BTreeSet<_> = first.digest.iter().chain(&told).map(|low| low.key).collect();
        assert_eq!(all.len(), 600);
        assert_eq!(first.digest.len() + told.len(), 601);
    }

    #[test]
    fn what_is_older_than_its_age_is_neither_told_nor_kept() {
        let mut keys = LowKeys::default();
        for number in 0..4 {
            keys.note(low(number, 1), 1_000 + number);
        }
        let now_us = 1_002 + DIGEST_AGE_US;
        assert_eq!(keys.page(Since::default(), now_us).digest, [low(2, 1), low(3, 1)]);
        let of_long_ago = Since { time_us: 1_000, after: Some(key(9)) };
        assert_eq!(keys.page(of_long_ago, now_us).digest, [low(2, 1), low(3, 1)]);
        keys.forget(now_us, 1);
        assert_eq!((keys.noted.len(), keys.levels.len()), (3, 3));
        keys.forget(now_us, 9);
        assert_eq!((keys.noted.len(), keys.levels.len()), (2, 2));
    }

    #[test]
    fn a_place_of_an_earlier_life_of_the_store_is_no_place_in_this_one() {
        let mut keys = LowKeys::default();
        keys.note(low(1, 10), 100);
        let page = keys.page(Since { time_us: 9_000, after: Some(key(7)) }, 200);
        assert_eq!(page.digest, [low(1, 10)]);
        assert_eq!(page.since, Since { time_us: 200, after: None });
    }
}

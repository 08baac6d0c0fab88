//! The messages of one connection whose answers are awaited: a flat array, in which each has the
//! place of its STAN.
//!
//! STANs count up, so that they take the places in turn; one whose place is still taken is left
//! out. The array doubles before it is crowded, to the number of STANs that there are.

use super::kind::Kind;
use crate::clock::Moment;

/// STANs have six digits, of which 000000 is none.
pub(super) const STANS: u32 = 999_999;
/// Enough for a window of 8 without growing.
const PLACES_MIN: usize = 16;
const PLACES_MAX: usize = 1 << 20;

/// A message that was sent. There is one for each that is in flight, and each is touched twice: it
/// is kept to 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// When it was to be sent.
    pub(super) at: Moment,
    /// What all that is drawn of it was drawn from.
    pub(super) luck: u32,
    /// 0 marks a free place.
    pub(super) stan: u32,
    /// Its shop's place in its flow.
    pub(super) shop: u32,
    pub(super) flow: u16,
    pub(super) kind: Kind,
    /// Of a request, how often it was tried before under other STANs; of the others, how often they
    /// were repeated under their own.
    pub(super) again: u8,
}

/// What only messages have that may have to be repeated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// When it was sent first, in seconds since 1970.
    pub(super) time: u32,
    /// STAN and time of what it takes back.
    pub(super) original: (u32, u32),
}

impl Sent {
    const FREE: Self = Self {
        at: Moment::START,
        luck: 0,
        stan: 0,
        shop: 0,
        flow: 0,
        kind: Kind::Purchase,
        again: 0,
    };
}

/// What is awaited.
pub(super) struct Awaited {
    places: Box<[Sent]>,
    /// As many.
    told: Box<[Told]>,
    count: usize,
    stan: u32,
}

impl Awaited {
    /// With room for so many, that will give out STANs after `first`.
    pub(super) fn new(room: usize, first: u32) -> Self {
        let places = (2 * room).next_power_of_two().clamp(PLACES_MIN, PLACES_MAX);
        Self {
            places: vec![Sent::FREE; places].into(),
            told: vec![Told::default(); places].into(),
            count: 0,
            stan: first,
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    const fn place(&self, stan: u32) -> usize {
        stan as usize & (self.places.len() - 1)
    }

    /// The next STAN that nothing waits under; `None` when there is none left.
    pub(super) fn next_stan(&mut self) -> Option<u32> {
        if self.count * 2 >= self.places.len() {
            self.grow();
        }
        for _ in 0..self.places.len() {
            self.stan = self.stan % STANS + 1;
            if self.places.get(self.place(self.stan)).is_some_and(|sent| sent.stan == 0) {
                return Some(self.stan);
            }
        }
        None
    }

    /// Notes a message under a STAN that [`Awaited::next_stan`] has given.
    #[inline]
    pub(super) fn insert(&mut self, sent: Sent, told: Option<Told>) {
        let place = self.place(sent.stan);
        if let Some(free) = self.places.get_mut(place) {
            *free = sent;
            self.count += 1;
        }
        if let (Some(told), Some(free)) = (told, self.told.get_mut(place)) {
            *free = told;
        }
    }

    pub(super) fn get(&self, stan: u32) -> Option<&Sent> {
        self.places.get(self.place(stan)).filter(|sent| sent.stan == stan && stan != 0)
    }

    /// It is awaited no more.
    pub(super) fn remove(&mut self, stan: u32) {
        let place = self.place(stan);
        if let Some(sent) = self.places.get_mut(place)
            && sent.stan == stan
            && stan != 0
        {
            sent.stan = 0;
            self.count -= 1;
        }
    }

    /// All of it, in no order. Whoever sets a STAN to 0 has to say so with [`Awaited::forgot`].
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&mut Sent, &Told)> {
        self.places.iter_mut().zip(&self.told).filter(|(sent, _)| sent.stan != 0)
    }

    /// So many STANs were set to 0.
    pub(super) const fn forgot(&mut self, count: usize) {
        self.count -= count;
    }

    fn grow(&mut self) {
        let places = self.places.len() * 2;
        if places > PLACES_MAX {
            return;
        }
        let before = std::mem::replace(&mut self.places, vec![Sent::FREE; places].into());
        let told = std::mem::replace(&mut self.told, vec![Told::default(); places].into());
        self.count = 0;
        // Twice the places: what lay apart still does.
        let before = before.iter().zip(&told).filter(|(sent, _)| sent.stan != 0);
        before.for_each(|(sent, told)| self.insert(*sent, Some(*told)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(awaited: &mut Awaited) -> u32 {
        let stan = awaited.next_stan().unwrap();
        awaited.insert(Sent { stan, luck: stan * 3, ..Sent::FREE }, None);
        stan
    }

    #[test]
    fn what_is_kept_of_a_message_is_small() {
        assert_eq!(size_of::<Sent>(), 24);
    }

    #[test]
    fn each_is_found_under_its_stan_however_many_there_are() {
        let mut awaited = Awaited::new(1, STANS - 5);
        let stans: Vec<u32> = (0..5_000).map(|_| put(&mut awaited)).collect();
        assert_eq!((stans[4], stans[5], awaited.count()), (STANS, 1, 5_000));
        assert!(stans.iter().all(|stan| awaited.get(*stan).unwrap().luck == stan * 3));
        stans.iter().for_each(|stan| awaited.remove(*stan));
        assert_eq!(awaited.count(), 0);
        awaited.remove(stans[0]);
        assert_eq!((awaited.count(), awaited.get(0).is_none()), (0, true));
    }

    #[test]
    fn a_message_that_stays_does_not_keep_others_from_their_turn() {
        let mut awaited = Awaited::new(1, 0);
        let stays = put(&mut awaited);
        for _ in 0..100_000 {
            let stan = put(&mut awaited);
            awaited.remove(stan);
        }
        assert_eq!((awaited.count(), awaited.places.len()), (1, PLACES_MIN));
        assert!(awaited.get(stays).is_some());
    }

    #[test]
    fn stans_run_out_and_come_back() {
        let mut awaited = Awaited::new(PLACES_MAX, 0);
        for _ in 0..STANS {
            put(&mut awaited);
        }
        assert_eq!(awaited.next_stan(), None);
        awaited.remove(77);
        assert_eq!(awaited.next_stan(), Some(77));
    }
}

//! Which request an answer belongs to.
//!
//! A STAN has six digits and is counted by each acquirer or terminal for itself, so that alone it
//! names nobody. An answer fits a request when kind and STAN are equal and no field that both carry
//! contradicts; among several that fit, the fields that hosts echo most reliably decide. An answer
//! that could belong to two different requests is given to neither: the wrong session must never
//! hear it, and both still get their deadline answer.

use std::cmp::Ordering;

use super::identity::{Answer, Identity};
use super::inflight::{Inflight, Place};

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// This request, in the register of this number.
    One(usize, Place),
    /// No request fits.
    None,
    /// Several fit and are not the same.
    Ambiguous,
}

/// A request that an answer may belong to, and in which register it lies where.
pub(super) type Candidate<'a> = (usize, Place, &'a Identity);

/// The search for the request that an answer belongs to, one register after the other.
#[derive(Debug)]
pub(super) struct Search<'a> {
    answer: &'a Answer<'a>,
    /// The best of those that fit; of equal ones the first.
    best: Option<Candidate<'a>>,
    /// Another one fits as well and is not the same request.
    ambiguous: bool,
}

impl<'a> Search<'a> {
    pub(super) const fn of(answer: &'a Answer<'a>) -> Self {
        Self { answer, best: None, ambiguous: false }
    }

    /// Looks at the entries of `register`, the oldest first.
    #[must_use]
    pub(super) fn among<T: Default>(mut self, number: usize, register: &'a Inflight<T>) -> Self {
        let answer = self.answer;
        if answer.has_stan() {
            for (place, request) in register.by_key(answer.index_key()) {
                if request.same_kind(answer) && request.same_stan(answer) {
                    self.consider((number, place, request));
                }
            }
        } else {
            for (place, request) in register.by_age() {
                if fits_without_stan(request, answer) {
                    self.consider((number, place, request));
                }
            }
        }
        self
    }

    /// Nearly always only one fits, and then the answer's tie fields are not even read.
    fn consider(&mut self, candidate: Candidate<'a>) {
        let (.., request) = candidate;
        if request.contradicts(self.answer) {
            return;
        }
        let Some((.., best)) = self.best else {
            self.best = Some(candidate);
            return;
        };
        match request.tie_rank(self.answer).cmp(&best.tie_rank(self.answer)) {
            Ordering::Less => {}
            Ordering::Equal => self.ambiguous |= request.fingerprint() != best.fingerprint(),
            Ordering::Greater => (self.best, self.ambiguous) = (Some(candidate), false),
        }
    }

    pub(super) const fn choice(&self) -> Choice {
        match self.best {
            None => Choice::None,
            Some(_) if self.ambiguous => Choice::Ambiguous,
            Some((number, place, _)) => Choice::One(number, place),
        }
    }
}

/// When the host left the STAN out, a request must agree in a field that both carry, and be of no
/// other card: without that every request of the kind would do, and one that has no STAN either has
/// no better claim than the others. Only where neither carries anything does the kind alone decide.
fn fits_without_stan(request: &Identity, answer: &Answer<'_>) -> bool {
    let agrees = || request.agrees(answer) && !request.is_of_another_card(answer);
    request.same_kind(answer) && (agrees() || request.is_bare_as(answer))
}

/// For an answer that fits none, as its fault lies before whatever would tell: the only request of
/// its kind, if there is but one and nothing that was read of it speaks against that one.
pub(super) fn only_one_of_kind<'a>(
    answer: &Answer<'_>,
    mut all: impl Iterator<Item = Candidate<'a>>,
) -> Choice {
    let speaks_against =
        |request: &Identity| request.contradicts(answer) || request.is_of_another_card(answer);
    match (all.next(), all.next()) {
        (Some((number, place, request)), None) if !speaks_against(request) => {
            Choice::One(number, place)
        }
        _ => Choice::None,
    }
}

/// All entries of `register` that an answer of this kind may belong to.
pub(super) fn of_kind<'a, T: Default>(
    number: usize,
    register: &'a Inflight<T>,
    answer: &'a Answer<'a>,
) -> impl Iterator<Item = Candidate<'a>> {
    let of_kind = register.by_age().filter(|(_, request)| request.same_kind(answer));
    of_kind.map(move |(place, request)| (number, place, request))
}

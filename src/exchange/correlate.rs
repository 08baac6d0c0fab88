//! Which request an answer belongs to.
//!
//! A STAN has six digits and is counted by each acquirer or terminal for itself, so that alone it
//! names nobody. An answer fits a request when kind and STAN are equal and no field that both carry
//! contradicts; among several that fit, the fields that hosts echo most reliably decide. An answer
//! that could belong to two different requests is given to neither: the wrong session must never
//! hear it, and both still get their deadline answer.

use super::identity::Identity;
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

/// Entries of `register` that an answer may belong to, the oldest first.
pub(super) fn candidates<'a, T: Default>(
    number: usize,
    register: &'a Inflight<T>,
    answer: &'a Identity,
) -> impl Iterator<Item = Candidate<'a>> {
    let by_stan = answer.has_stan().then(|| register.namesakes(answer));
    let without_stan = (!answer.has_stan())
        .then(|| register.iter().filter(|(_, request)| fits_without_stan(request, answer)));
    let all = by_stan.into_iter().flatten().chain(without_stan.into_iter().flatten());
    all.map(move |(place, request)| (number, place, request))
}

/// When the host left the STAN out, a request must agree in a field that both carry, and be of no
/// other card: without that every request of the kind would do, and one that has no STAN either has
/// no better claim than the others. Only where neither carries anything does the kind alone decide.
fn fits_without_stan(request: &Identity, answer: &Identity) -> bool {
    let agrees = request.agrees(answer) && !request.is_of_another_card(answer);
    request.same_kind(answer) && (agrees || (request.is_bare() && answer.is_bare()))
}

/// For an answer that fits none, as its fault lies before whatever would tell: the only request of
/// its kind, if there is but one and nothing that was read of it speaks against that one.
pub(super) fn only_one_of_kind<'a>(
    answer: &Identity,
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
    answer: &'a Identity,
) -> impl Iterator<Item = Candidate<'a>> {
    let of_kind = register.iter().filter(|(_, request)| request.same_kind(answer));
    of_kind.map(move |(place, request)| (number, place, request))
}

/// The best of `candidates`; of equal ones the first.
pub(super) fn choose<'a>(
    answer: &Identity,
    candidates: impl Iterator<Item = Candidate<'a>>,
) -> Choice {
    let mut best: Option<(u8, &Identity, Choice)> = None;
    for (number, place, request) in candidates {
        if request.contradicts(answer) {
            continue;
        }
        let rank = request.tie_rank(answer);
        match &mut best {
            Some((best_rank, ..)) if rank < *best_rank => {}
            Some((best_rank, first, choice)) if rank == *best_rank => {
                if first.fingerprint() != request.fingerprint() {
                    *choice = Choice::Ambiguous;
                }
            }
            _ => best = Some((rank, request, Choice::One(number, place))),
        }
    }
    best.map_or(Choice::None, |(_, _, choice)| choice)
}

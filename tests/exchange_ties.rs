//! Whose answer is whose among many requests of one STAN: the link's conversation chooses as a model
//! does that reads every field beforehand and compares the fields themselves.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

#[path = "support/conversation.rs"]
mod conversation;
#[path = "support/from_dialect.rs"]
mod message;

use std::cmp::Reverse;

use conversation::Link;
use proptest::collection::vec;
use proptest::prelude::*;
use tollgate::exchange::SessionId;

const STAN: [&str; 2] = ["000007", "000008"];

/// Fields, and two values of each.
const FIELDS: [(u8, [&str; 2]); 11] = [
    (2, ["4111111111111111", "4222222222222222222"]),
    (3, ["000000", "200000"]),
    (4, ["000000000100", "000000000200"]),
    (7, ["1201120000", "1201120001"]),
    (12, ["120000", "130000"]),
    (32, ["123456", "1234567"]),
    (35, ["4111111111111111=2912", "5555555555554444=2912"]),
    (37, ["000000000001", "000000000002"]),
    (41, ["TERM0001", "TERM0002"]),
    (42, ["SHOP00000000001", "SHOP"]),
    (49, ["978", "840"]),
];
const MATCHED: [u8; 4] = [7, 32, 41, 42];
const TIES: [u8; 4] = [2, 37, 4, 12];
const COPIED: [u8; 10] = [2, 3, 4, 11, 12, 32, 37, 41, 42, 49];

type Fields = Vec<(u8, &'static str)>;

fn get(fields: &Fields, field: u8) -> Option<&'static str> {
    fields.iter().find(|(de, _)| *de == field).map(|(_, value)| *value)
}

/// What both carry.
fn both(one: &Fields, other: &Fields, field: u8) -> Option<(&'static str, &'static str)> {
    get(one, field).zip(get(other, field))
}

fn agree(one: &Fields, other: &Fields, field: u8) -> bool {
    both(one, other, field).is_some_and(|(one, other)| one == other)
}

fn differ(one: &Fields, other: &Fields, field: u8) -> bool {
    both(one, other, field).is_some_and(|(one, other)| one != other)
}

fn fits(request: &Fields, answer: &Fields) -> bool {
    let found = if get(answer, 11).is_some() {
        agree(request, answer, 11)
    } else {
        MATCHED.iter().any(|field| agree(request, answer, *field)) && !differ(request, answer, 2)
    };
    found && !MATCHED.iter().any(|field| differ(request, answer, *field))
}

fn rank(request: &Fields, answer: &Fields) -> [bool; 4] {
    TIES.map(|field| agree(request, answer, field))
}

/// The card from wherever it is, and the fields that two copies have in common.
fn fingerprint(request: &Fields) -> (Option<&'static str>, [Option<&'static str>; 10]) {
    let of_track = || get(request, 35)?.split('=').next();
    (get(request, 2).or_else(of_track), COPIED.map(|field| get(request, field)))
}

/// Which of the requests an answer belongs to.
fn choose(requests: &[(SessionId, Fields)], answer: &Fields) -> Option<usize> {
    let fitting = (0..requests.len()).filter(|at| fits(&requests[*at].1, answer));
    let best = fitting.clone().min_by_key(|at| Reverse(rank(&requests[*at].1, answer)))?;
    let request = &requests[best].1;
    let equal = fitting.filter(|at| rank(&requests[*at].1, answer) == rank(request, answer));
    let mut copies = equal.map(|at| fingerprint(&requests[at].1) == fingerprint(request));
    copies.all(|copy| copy).then_some(best)
}

/// Most fields of most messages are the same; one in eight is absent, one has the other value.
fn fields(stan: impl Strategy<Value = Option<usize>>) -> impl Strategy<Value = Fields> {
    (stan, vec(0..8, FIELDS.len())).prop_map(|(stan, picked)| {
        let mut fields: Fields = stan.map(|at| (11, STAN[at])).into_iter().collect();
        for ((field, [usual, other]), picked) in FIELDS.into_iter().zip(picked) {
            match picked {
                0 => {}
                1 => fields.push((field, other)),
                _ => fields.push((field, usual)),
            }
        }
        fields
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn an_answer_goes_where_its_fields_say(
        requests in vec(fields(prop_oneof![9 => Just(Some(0)), 1 => Just(Some(1))]), 1..12),
        answers in vec(fields(prop_oneof![8 => Just(Some(0)), 1 => Just(Some(1)), 2 => Just(None)]), 1..12),
    ) {
        let mut link = Link::new();
        let mut waiting: Vec<(SessionId, Fields)> = Vec::new();
        for (slot, request) in (10..).zip(requests) {
            let session = SessionId { slot, generation: 1 };
            link.ask(session, "0100", &request);
            waiting.push((session, request));
        }
        for mut answer in answers {
            answer.push((39, "00"));
            let expected = choose(&waiting, &answer).map(|at| waiting.remove(at).0);
            prop_assert_eq!(link.host("0110", &answer), Vec::from_iter(expected));
        }
    }
}

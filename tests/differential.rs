//! The walker against a foreign codec (`iso8583_rs`) on damaged messages: where both accept one,
//! every field has the same bytes, and what the walker accepts the other does not refuse.
//!
//! The other panics on much of what a peer may send, which is why it is no part of the daemon.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;
use iso8583_rs::iso8583::iso_spec::{self, IsoMsg, Spec};
use tollgate::iso8583::{Dialect, FieldSet, Spans, View};

/// Damaged messages; the seeds go before them as they are.
const DAMAGED: usize = 100_000;

/// The fields and types of `fixtures/peer/ascii87.yaml`.
const PEER_FIELDS: FieldSet = FieldSet::of(&[
    2, 3, 4, 7, 11, 12, 13, 14, 18, 22, 25, 32, 35, 37, 38, 39, 41, 42, 43, 48, 49, 52, 54, 55, 60,
    61, 62, 63, 70, 90, 95, 102, 128,
]);
const PEER_TYPES: [u16; 10] = [100, 110, 120, 130, 200, 210, 420, 430, 800, 810];

const SEEDS: [(&str, &[(u32, &str)]); 4] = [
    (
        "0100",
        &[
            (2, "4111111111111111"),
            (3, "000000"),
            (4, "000000012345"),
            (7, "0604123456"),
            (11, "123456"),
            (12, "123456"),
            (13, "0604"),
            (14, "2912"),
            (18, "5999"),
            (22, "051"),
            (25, "00"),
            (32, "123456"),
            (35, "4111111111111111=29122011234567890"),
            (37, "060412123456"),
            (41, "TERMID01"),
            (42, "MERCHANT0000001"),
            (43, "COFFEE AND CAKE          TOWN         GB"),
            (49, "826"),
            (52, "0011223344556677"),
            (55, "9f02060000000123455f340102820239008407a0000000031010"),
        ],
    ),
    (
        "0420",
        &[
            (2, "4111111111111111"),
            (3, "000000"),
            (4, "000000012345"),
            (7, "0604123500"),
            (11, "123457"),
            (32, "123456"),
            (39, "68"),
            (41, "TERMID01"),
            (48, "REVERSAL=TIMEOUT"),
            (49, "826"),
            (90, "010012345606041234560000012345600000000000"),
            (95, "000000000000000000000000000000000000000000"),
            (102, "ACCOUNT 1"),
            (128, "8899aabbccddeeff"),
        ],
    ),
    ("0800", &[(7, "0604161616"), (11, "654321"), (70, "301")]),
    (
        "0110",
        &[
            (3, "000000"),
            (4, "000000012345"),
            (11, "123456"),
            (37, "060412123456"),
            (38, "A1B2C3"),
            (39, "00"),
            (41, "TERMID01"),
            (54, "1002826C000000012345"),
            (60, "PRIVATE"),
            (61, "PRIVATE AS WELL"),
            (62, ""),
            (63, "0"),
        ],
    ),
];

fn peer_message(spec: &'static Spec, mti: &str, fields: &[(u32, &str)]) -> Vec<u8> {
    let segment = spec.get_message_from_header(mti).expect("a message type of the peer");
    let mut message = iso_spec::new_msg(spec, segment);
    message.set("message_type", mti).unwrap();
    for (de, value) in fields {
        message.set_on(*de, value).unwrap();
    }
    message.assemble().unwrap()
}

/// The peer's reading: `None` when it refuses the message or panics over it.
fn peer_parse(spec: &'static Spec, body: &[u8]) -> Option<IsoMsg> {
    let mut body = body.to_vec();
    catch_unwind(AssertUnwindSafe(|| spec.parse(&mut body).ok())).ok().flatten()
}

/// One of six kinds of damage.
fn mutate(body: &mut Vec<u8>, rng: &mut Rng) {
    let at = rng.usize(..body.len());
    match rng.u8(..6) {
        0 => body.truncate(at),
        1 => body[at] ^= 1 << rng.u8(..8),
        2 => (0..=rng.u8(..4)).for_each(|_| {
            let at = rng.usize(..body.len());
            body[at] = rng.u8(..);
        }),
        3 => {
            let at = at.min(23);
            body[at] = rng.u8(..);
        }
        4 if rng.bool() => body.insert(at, rng.u8(..)),
        4 => drop(body.remove(at)),
        _ => {
            let end = body.len().min(at + rng.usize(1..9));
            let fill = rng.u8(..);
            body[at..end].fill(fill);
        }
    }
}

#[test]
fn two_codecs_that_accept_a_damaged_message_read_the_same_fields() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // The peer's panics are expected by the thousand, and print field contents.
        if info.location().is_none_or(|place| !place.file().contains("iso8583_rs")) {
            print(info);
        }
    }));
    let spec = iso_spec::spec("");
    let dialect = Dialect::preset("iso87_ascii_binbitmap").unwrap();
    let seeds = SEEDS.map(|(mti, fields)| peer_message(spec, mti, fields));
    let mut spans = Spans::default();
    let mut rng = Rng::with_seed(8583);
    let (mut both, mut compared) = (0, 0);
    for case in 0..seeds.len() + DAMAGED {
        let mut body = seeds[case % seeds.len()].clone();
        if case >= seeds.len() {
            mutate(&mut body, &mut rng);
        }
        let peer = peer_parse(spec, &body);
        let Ok(view) = View::parse(&dialect, &body, &mut spans) else { continue };
        if view.fault().is_some() {
            assert!(case >= seeds.len(), "an undamaged message has a fault");
            continue;
        }
        let Some(peer) = peer else {
            let known = PEER_TYPES.contains(&view.mti().number())
                && view.fields().difference(PEER_FIELDS).is_empty();
            assert!(!known, "case {case}: the peer refuses what the walker accepts");
            continue;
        };
        both += 1;
        for de in view.fields().iter() {
            let theirs = peer.fd_map.get(&format!("de{de}")).map(Vec::as_slice);
            assert_eq!(view.raw(de), theirs, "case {case}, field {de}");
            compared += 1;
        }
        // The peer's map also holds message type and bitmap.
        assert_eq!(peer.fd_map.len(), view.fields().iter().count() + 2, "case {case}");
    }
    println!("both accepted {both} of {DAMAGED}, {compared} fields compared");
    assert!(both > 20_000, "both accepted only {both} of {DAMAGED}");
    assert!(compared > 5 * both, "only {compared} fields compared");
}

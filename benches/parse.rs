//! What reading a message and splicing an answer cost: the share of the 1 ms budget that is ours.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench states its expectations"
)]

#[path = "../tests/support/encoder.rs"]
#[allow(dead_code, reason = "only whole messages are built here")]
mod encoder;
#[path = "../tests/support/purchase.rs"]
mod purchase;

use std::hint::black_box;
use std::sync::Arc;

use divan::Bencher;
use purchase::purchase;
use tollgate::iso8583::{Composer, Dialect, FieldSet, LocalCode, Spans, View, can_say};

/// An ordinary purchase of 173 bytes: 15 fields behind one word of bitmap in hexadecimal.
const REQUEST: &[u8] = b"01007238048108E08000\
164111111111111111000000000000012345060412345612345612345606040510006123456060456123456\
TERMID01MERCHANT0000001COFFEE AND CAKE, LONG ROATOWN         GB826";

/// The same fields in the layout of POS terminals: digits two a byte, binary bitmap.
const REQUEST_BCD: &[u8] = b"\x01\x00\x72\x38\x04\x81\x08\xe0\x80\x00\
\x16\x41\x11\x11\x11\x11\x11\x11\x11\x00\x00\x00\x00\x00\x00\x01\x23\x45\x06\x04\x12\x34\x56\
\x12\x34\x56\x12\x34\x56\x06\x04\x00\x51\x00\x06\x12\x34\x56060456123456\
TERMID01MERCHANT0000001COFFEE AND CAKE, LONG ROATOWN         GB826";

const ECHO: FieldSet = FieldSet::of(&[2, 3, 4, 7, 11, 12, 13, 19, 24, 25, 32, 33, 37, 41, 42, 49]);

fn main() {
    assert_eq!(purchase("iso87_ascii"), REQUEST, "not the same purchase");
    assert_eq!(purchase("iso87_bcd_left"), REQUEST_BCD, "not the same purchase");
    divan::main();
}

fn dialect() -> Dialect {
    Dialect::preset("iso87_ascii").expect("it is a preset")
}

#[divan::bench(sample_size = 10_000)]
fn parse(bencher: Bencher<'_, '_>) {
    let dialect = dialect();
    let mut spans = Spans::default();
    bencher.bench_local(|| {
        let view = View::parse(&dialect, black_box(REQUEST), &mut spans).unwrap();
        assert!(black_box(&view).fault().is_none());
    });
}

/// The request without some of its fields: another for each number below 32.
fn without_some(request: &View<'_>, number: usize) -> Vec<u8> {
    let left_out = |de| [13, 22, 25, 43, 49].iter().position(|field| *field == de);
    let kept = |de: &u8| left_out(*de).is_none_or(|place| number >> place & 1 == 0);
    let fields: Vec<u8> = request.fields().iter().filter(kept).collect();
    let bitmap = fields.iter().fold(0_u64, |bits, de| bits | 1 << (64 - u32::from(*de)));
    let mut body = format!("0100{bitmap:016X}").into_bytes();
    fields.iter().for_each(|de| body.extend(request.whole(*de).unwrap()));
    body
}

/// Kinds of messages at random: of more than a link remembers most are walked field by field.
#[divan::bench(args = [1, 4, 8, 16, 32], sample_size = 10_000)]
fn parse_some_of_as_many_kinds(bencher: Bencher<'_, '_>, kinds: usize) {
    let dialect = dialect();
    let mut spans = Spans::default();
    let request = View::parse(&dialect, REQUEST, &mut spans).unwrap();
    let requests: Vec<_> = (0..kinds).map(|number| without_some(&request, number)).collect();
    let (mut spans, mut random) = (Spans::default(), 1_usize);
    bencher.bench_local(|| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let request = &requests[(random >> 32) % kinds];
        let view = View::parse(&dialect, black_box(request), &mut spans).unwrap();
        assert!(black_box(&view).fault().is_none());
    });
}

#[divan::bench(sample_size = 10_000)]
fn parse_bcd(bencher: Bencher<'_, '_>) {
    let dialect = Dialect::preset("iso87_bcd_left").expect("it is a preset");
    let mut spans = Spans::default();
    bencher.bench_local(|| {
        let view = View::parse(&dialect, black_box(REQUEST_BCD), &mut spans).unwrap();
        assert!(black_box(&view).fault().is_none());
    });
}

#[divan::bench(args = Dialect::PRESETS, sample_size = 10_000)]
fn parse_in(bencher: Bencher<'_, '_>, preset: &str) {
    let dialect = Dialect::preset(preset).expect("it is a preset");
    let request = purchase(preset);
    let mut spans = Spans::default();
    bencher.bench_local(|| {
        let view = View::parse(&dialect, black_box(&request), &mut spans).unwrap();
        assert!(black_box(&view).fault().is_none());
    });
}

#[divan::bench(sample_size = 10_000)]
fn parse_card_and_merchant(bencher: Bencher<'_, '_>) {
    let dialect = dialect();
    let mut spans = Spans::default();
    bencher.bench_local(|| {
        let view = View::parse(&dialect, black_box(REQUEST), &mut spans).unwrap();
        black_box((view.pan(), view.merchant(), view.operation()));
    });
}

#[divan::bench(sample_size = 10_000)]
fn compose_answer(bencher: Bencher<'_, '_>) {
    let dialect = Arc::new(dialect());
    let mut composer = Composer::new(Arc::clone(&dialect), ECHO);
    let mut spans = Spans::default();
    let view = View::parse(&dialect, REQUEST, &mut spans).unwrap();
    let mut out = Vec::with_capacity(4096);
    bencher.bench_local(|| {
        out.clear();
        black_box(composer.compose(black_box(&view), &mut out).unwrap());
    });
}

/// The local answer to the same purchase as each preset writes it, with Field 39 = 91.
#[divan::bench(args = answering(), sample_size = 10_000)]
fn answer_in(bencher: Bencher<'_, '_>, preset: &str) {
    let dialect = Arc::new(Dialect::preset(preset).expect("it is a preset"));
    let mut composer = Composer::new(Arc::clone(&dialect), ECHO);
    let request = purchase(preset);
    let mut spans = Spans::default();
    let view = View::parse(&dialect, &request, &mut spans).unwrap();
    let mut out = Vec::with_capacity(4096);
    bencher.bench_local(|| {
        out.clear();
        let slot = composer.compose(black_box(&view), &mut out).unwrap();
        assert!(slot.write(&mut out, LocalCode::IssuerInoperative));
    });
}

/// Presets whose Field 39 holds the two characters that a message of 1987 is answered with.
fn answering() -> impl Iterator<Item = &'static str> {
    Dialect::PRESETS.iter().copied().filter(|preset| {
        let dialect = Dialect::preset(preset).expect("it is a preset");
        can_say(&dialect, 0, LocalCode::IssuerInoperative) == Some(true)
    })
}

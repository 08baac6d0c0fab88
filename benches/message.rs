//! What one message costs from its bytes to the bytes that leave: parsing, decision, correlation and
//! the buffers, without sockets. Beside it, in the same run, what a foreign codec (`iso8583_rs`)
//! takes for its parsing alone, since times of different runs and machines compare badly.
//!
//! The figure is the time of one item. Messages come in batches as they come from a socket, and lie
//! in the cache as bytes do that were just read; the 100,000 merchants' buckets do not.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench states its expectations")]

#[path = "support/limits.rs"]
#[allow(dead_code, reason = "decisions alone are `decide`")]
mod limits;
#[path = "support/link.rs"]
mod link;

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::Arc;

use divan::{Bencher, counter::ItemsCount};
use iso8583_rs::iso8583::iso_spec::{self, IsoMsg};
use limits::Tokens;
use link::{BATCH, Became, Link, dialect, purchase};
use tollgate::clock::Moment;
use tollgate::gate;
use tollgate::iso8583::{Composer, FieldSet, LocalCode, Spans, View};
use tollgate::limits::Policy;

fn main() {
    // Says on standard output what it reads, so let it do so before the table.
    iso_spec::spec("");
    divan::main();
}

/// Runs turns and says what became of the messages.
fn run(bencher: Bencher<'_, '_>, link: Link) -> Became {
    let link = RefCell::new(link);
    bencher
        .counter(ItemsCount::new(BATCH))
        .with_inputs(|| link.borrow_mut().batch())
        .bench_local_refs(|batch| link.borrow_mut().turn(batch));
    link.into_inner().became()
}

/// Request and answer: two messages are read, one entry is made and removed.
#[divan::bench(sample_size = 1, sample_count = 2_000)]
fn forwarded_and_answered_by_the_host(bencher: Bencher<'_, '_>) {
    let became = run(bencher, Link::new(Tokens::PLENTY));
    assert!(became.forwarded > 0);
    assert_eq!((became.forwarded, 0, 0), (became.delivered, became.answered, became.others));
}

fn refused(bencher: Bencher<'_, '_>, tokens: Tokens) {
    let became = run(bencher, Link::new(tokens));
    assert!(became.answered > 0);
    assert_eq!((became.forwarded, became.others), (0, 0));
}

#[divan::bench(sample_size = 1, sample_count = 2_000)]
fn refused_by_the_merchants_limit(bencher: Bencher<'_, '_>) {
    refused(bencher, Tokens { merchant: 0.0001, ..Tokens::PLENTY });
}

/// The last limit that is asked refuses: what the two before it took is given back.
#[divan::bench(sample_size = 1, sample_count = 2_000)]
fn refused_by_the_limit_over_all(bencher: Bencher<'_, '_>) {
    refused(bencher, Tokens { all: 0.0001, ..Tokens::PLENTY });
}

/// What a message is: class, operation, BIN, merchant, and its card number's check digit.
#[divan::bench(sample_size = 1_000)]
fn classify(bencher: Bencher<'_, '_>) {
    let (dialect, request) = (dialect(), purchase(1, 1));
    let policy = Policy::new(&[], &[], 1, 42, Moment::START).unwrap();
    let gate = link::gate(Arc::new(policy));
    let mut spans = Spans::default();
    let view = View::parse(&dialect, &request, &mut spans).unwrap();
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        black_box(gate.classify(black_box(&view)));
    });
}

/// The parser alone, here and there.
#[divan::bench(sample_size = 1_000)]
fn parse_by_tollgate(bencher: Bencher<'_, '_>) {
    let (dialect, request) = (dialect(), purchase(1, 1));
    let mut spans = Spans::default();
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        let view = View::parse(&dialect, black_box(&request), &mut spans).unwrap();
        assert!(black_box(&view).fault().is_none());
    });
}

#[divan::bench(sample_size = 1_000)]
fn parse_by_iso8583_rs(bencher: Bencher<'_, '_>) {
    let (spec, mut request) = (iso_spec::spec(""), purchase(1, 1));
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        black_box(spec.parse(black_box(&mut request)).unwrap());
    });
}

/// Fields that the refusal of this request echoes.
const ECHOED: [u32; 13] = [2, 3, 4, 7, 11, 12, 13, 25, 32, 37, 41, 42, 49];

/// Parser and answer with Field 39 = 91, here and there; no limit, no buffer.
#[divan::bench(sample_size = 1_000)]
fn parse_and_answer_by_tollgate(bencher: Bencher<'_, '_>) {
    let (dialect, request) = (dialect(), purchase(1, 1));
    let echo = FieldSet::of(&gate::Settings::ECHO);
    let mut composer = Composer::new(Arc::clone(&dialect), echo);
    let mut spans = Spans::default();
    let mut answer = Vec::with_capacity(512);
    let mut refuse = || {
        let view = View::parse(&dialect, black_box(&request), &mut spans).unwrap();
        answer.clear();
        let slot = composer.compose(black_box(&view), &mut answer).unwrap();
        assert!(slot.write(&mut answer, LocalCode::IssuerInoperative));
        black_box(answer.as_slice()).to_owned()
    };
    assert_eq!(refuse(), refusal_by_iso8583_rs(&mut purchase(1, 1)), "not the same answer");
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        let view = View::parse(&dialect, black_box(&request), &mut spans).unwrap();
        answer.clear();
        let slot = composer.compose(black_box(&view), &mut answer).unwrap();
        assert!(slot.write(&mut answer, LocalCode::IssuerInoperative));
        black_box(answer.as_slice());
    });
}

#[divan::bench(sample_size = 1_000)]
fn parse_and_answer_by_iso8583_rs(bencher: Bencher<'_, '_>) {
    let mut request = purchase(1, 1);
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| {
        black_box(refusal_by_iso8583_rs(black_box(&mut request)));
    });
}

fn refusal_by_iso8583_rs(request: &mut Vec<u8>) -> Vec<u8> {
    let spec = iso_spec::spec("");
    let request = spec.parse(request).unwrap();
    let mut answer: IsoMsg = iso_spec::new_msg(spec, spec.get_message_from_header("0110").unwrap());
    answer.set("message_type", "0110").unwrap();
    answer.echo_from(&request, &ECHOED).unwrap();
    answer.set_on(39, "91").unwrap();
    answer.assemble().unwrap()
}

//! The load that other tests drive clusters with, on a single node: it sends what it is to send, when
//! it is to, and knows what became of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

mod support;

use std::time::Duration;

use support::house::limit;
use support::load::{Hop, Shop, ideal};
use support::message::Message;
use support::store_house::StoreHouse;
use tollgate::clock::Moment;

const QUOTA: &str = "[quota]\nleases = true\n";

#[test]
fn what_was_admitted_is_what_the_host_has_seen() {
    let house = StoreHouse::start(1, QUOTA, &limit("merchant", "merchant", 20));
    let shops = (0..3).map(|number| Shop::steady(&format!("SHOP{number}"), 100.0));
    let driver = house.load(shops.collect());
    let outcome = driver.finish_after(Duration::from_millis(500));
    outcome.expect_whole();
    assert_eq!(outcome.admitted(), 3 * 20);
    assert_eq!(house.at_host(), 3 * 20);
    assert_eq!((outcome.admitted_at(0), outcome.of(1..2).admitted()), (60, 20));
    assert_eq!(outcome.ideal(0.001, 20.0), 20);
    assert_eq!(outcome.refused(), outcome.sent.iter().sum::<usize>() - 60);
    for (shop, sent) in outcome.sent.iter().enumerate() {
        // A message each ten milliseconds, the first at once.
        let last = outcome.of(shop..shop + 1).answers.iter().map(|answer| answer.due).max();
        let first = outcome.of(shop..shop + 1).answers.iter().map(|answer| answer.due).min();
        let gaps = last.unwrap().since(first.unwrap()).as_millis() / 10;
        assert_eq!(u128::try_from(*sent).unwrap(), gaps + 1);
    }
    assert!(outcome.latencies(|answer| answer.is_refused()).count() > 0);
}

#[test]
fn a_schedule_is_kept_to_the_message() {
    let house = StoreHouse::start(1, QUOTA, "");
    let few = Shop { count: 7, every: Duration::from_millis(3), ..Shop::steady("A", 1.0) };
    let from = Duration::from_millis(100);
    let shops = vec![few, Shop::once("B", from), Shop::volley("C", 40, 0).at(Hop::At(0))];
    let outcome = house.load(shops).finish();
    outcome.expect_whole();
    assert_eq!(outcome.sent, [7, 1, 40]);
    let mut due: Vec<Moment> = outcome.of(0..1).answers.iter().map(|answer| answer.due).collect();
    due.sort_unstable();
    let gaps = due.windows(2).map(|pair| pair[1].since(pair[0]));
    assert_eq!(gaps.collect::<Vec<_>>(), [Duration::from_millis(3); 6]);
    let later = outcome.of(1..2).answers[0].due.since(due[0]);
    assert_eq!(later, from);
    assert!(outcome.answers.iter().all(|answer| answer.sent >= answer.due));
}

#[test]
fn shops_change_nodes_and_leave_out_those_that_are_not_there() {
    let mut house = StoreHouse::start_without_leases(3, "", "");
    let message = Shop::steady("A", 200.0);
    let time = Shop::steady("B", 200.0).at(Hop::Every(Duration::from_millis(50)));
    let driver = house.load(vec![message, time, Shop::steady("C", 200.0).at(Hop::At(1))]);
    support::wait_for("all nodes have answered", || {
        let so_far = driver.so_far();
        let both = [so_far.of(0..1), so_far.of(1..2)];
        both.iter().all(|of| (0..3).all(|node| of.admitted_at(node) > 0)).then_some(())
    });
    assert_eq!(driver.so_far().of(2..3).admitted_at(0), 0);
    house.kill(1);
    let killed = driver.now();
    support::wait_for("the others take over", || {
        let since = driver.so_far().of(2..3).between(killed, Moment::from_nanos(u64::MAX));
        (since.admitted_at(2) > 10).then_some(())
    });
    house.begin(1);
    driver.connect(1, house.address(1));
    let back = driver.now();
    support::wait_for("it is used again", || {
        let since = driver.so_far().of(2..3).between(back, Moment::from_nanos(u64::MAX));
        (since.admitted_at(1) > 10).then_some(())
    });
    let outcome = driver.stop();
    assert_eq!(outcome.unsent, 0);
}

#[test]
fn one_bucket_admits_its_burst_and_its_rate() {
    let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
    let steady: Vec<Moment> = (0..100).map(|number| at(number * 40)).collect();
    assert_eq!(ideal(25.0, 1.0, &steady), 100);
    let thrice: Vec<Moment> = (0..300).map(|number| at(number * 40 / 3)).collect();
    assert_eq!(ideal(25.0, 50.0, &thrice), 149);
    assert_eq!(ideal(25.0, 50.0, &[at(5); 80]), 50);
    assert_eq!(ideal(25.0, 50.0, &[]), 0);
}

#[test]
fn a_field_is_found_without_reading_the_rest() {
    let message = Message::sale("4111111111111111", 7).with(39, "91").with(70, "301");
    let bytes = message.encode();
    for (field, value) in message.0.iter().filter(|(field, _)| **field > 1) {
        assert_eq!(Message::peek(&bytes, *field), Some(value.as_str()), "field {field}");
    }
    assert_eq!(Message::peek(&bytes, 38), None);
    assert_eq!(Message::peek(&message.answer("00").encode(), 39), Some("00"));
}

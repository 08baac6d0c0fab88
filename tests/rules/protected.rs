//! R1: what is never refused.

use crate::CARD;
use crate::support::house::{House, Plan, limit};
use crate::support::message::Message;
use crate::support::peer::Peer;

/// Every kind that is not an authorization or financial request of an acquirer: advices,
/// notifications, reversals, reconciliation, administration, fees, network management, file
/// actions, requests of an issuer, answers, and what no standard knows.
const KINDS: [&str; 53] = [
    "120", "121", "122", "124", "140", "220", "221", "222", "240", "300", "302", "304", "310",
    "320", "400", "401", "402", "420", "421", "422", "423", "440", "500", "520", "522", "600",
    "601", "620", "621", "640", "700", "720", "740", "800", "801", "804", "820", "102", "103",
    "104", "202", "203", "160", "180", "190", "280", "000", "900", "110", "130", "210", "430",
    "810",
];

fn never_refused() -> Vec<String> {
    let of_known_versions =
        (0..=9).flat_map(|version| KINDS.map(|kind| format!("{version}{kind}")));
    // In a version that is not known, a request is not known either.
    let unknown = (3..=9)
        .flat_map(|version| ["100", "101", "200", "201"].map(|kind| format!("{version}{kind}")));
    of_known_versions.chain(unknown).collect()
}

/// Spends the last token, and sees the next request refused.
fn empty_the_buckets(house: &mut House, terminal: &mut Peer) {
    let sale = Message::sale(CARD, 1);
    terminal.send(&sale.encode());
    assert_eq!(house.at_host.receive(), sale.encode());
    house.at_host.send(&sale.answer("00").encode());
    assert_eq!(Message::decode(&terminal.receive()).get(39), Some("00"));
    expect_refusal(terminal, 2);
}

/// The next thing that this session hears is the refusal of a request that is sent now: so it heard
/// nothing of what it sent before.
fn expect_refusal(terminal: &mut Peer, stan: u32) {
    terminal.send(&Message::sale(CARD, stan).encode());
    let refusal = Message::decode(&terminal.receive());
    let expected = format!("{stan:06}");
    assert_eq!((refusal.get(0), refusal.get(11)), (Some("0110"), Some(expected.as_str())));
    assert_eq!(refusal.get(39), Some("91"));
}

fn expect_no_protected_reject(house: &House) {
    let rejects =
        |class: &str| house.proxy.metric_sum("tollgate_rejects_total", &["link=\"visa\"", class]);
    assert_eq!(rejects("class=\"protected\""), 0.0);
    assert!(rejects("class=\"standard\"") > 0.0, "the metric counts nothing");
}

fn check_all_pass(limits: &[String]) {
    let mut house = Plan::limits(limits).start();
    let mut terminal = house.terminal();
    empty_the_buckets(&mut house, &mut terminal);
    let kinds = never_refused();
    assert!(kinds.len() > 500, "{}", kinds.len());
    for (mti, stan) in kinds.iter().zip(100..) {
        let message = Message::sale(CARD, stan).mti(mti).encode();
        terminal.send(&message);
        assert_eq!(house.at_host.receive(), message, "{mti}");
    }
    expect_refusal(&mut terminal, 3);
    expect_no_protected_reject(&house);
    let labels = ["link=\"visa\"", "outcome=\"pass_protected\""];
    let passed = house.proxy.metric_sum("tollgate_decisions_total", &labels);
    assert_eq!(passed, kinds.len() as f64);
}

#[test]
fn r01_no_class_marked_never_is_refused_with_the_bin_bucket_empty() {
    check_all_pass(&[limit("bin", "bin", 1)]);
}

#[test]
fn r01_no_class_marked_never_is_refused_with_the_merchant_bucket_empty() {
    check_all_pass(&[limit("merchant", "merchant", 1)]);
}

#[test]
fn r01_no_class_marked_never_is_refused_with_the_global_bucket_empty() {
    check_all_pass(&[limit("all", "", 1)]);
}

#[test]
fn r01_no_class_marked_never_is_refused_with_all_buckets_empty() {
    let limits = [limit("bin", "bin", 1), limit("merchant", "merchant", 1), limit("all", "", 1)];
    check_all_pass(&limits);
}

#[test]
fn r01_a_message_without_an_mti_passes_with_all_buckets_empty() {
    let mut house = Plan::limits(&[limit("all", "", 1)]).start();
    let mut terminal = house.terminal();
    empty_the_buckets(&mut house, &mut terminal);
    let whole = Message::sale(CARD, 4).encode();
    let letters = [b"01O0", &whole[4..]].concat();
    let ebcdic = [&[0xf0, 0xf1, 0xf0, 0xf0], &whole[4..]].concat();
    for frame in [&letters[..], &ebcdic, b"0", b"010", b"\0\0\0\0", b" 0100"] {
        terminal.send(frame);
        assert_eq!(house.at_host.receive(), frame, "{}", frame.escape_ascii());
    }
    expect_refusal(&mut terminal, 3);
}

/// A request that cannot be read to its end is still limited by what was read before the fault, and
/// what is protected stays so.
#[test]
fn r01_a_reversal_that_cannot_be_read_to_its_end_passes_with_all_buckets_empty() {
    let mut house = Plan::limits(&[limit("all", "", 1)]).start();
    let mut terminal = house.terminal();
    empty_the_buckets(&mut house, &mut terminal);
    let whole = Message::sale(CARD, 4).mti("0420").encode();
    for end in 4..whole.len() {
        terminal.send(&whole[..end]);
        assert_eq!(house.at_host.receive(), &whole[..end]);
    }
    expect_refusal(&mut terminal, 3);
    let faults = ["link=\"visa\"", "from=\"network\""];
    let counted = house.proxy.metric_sum("tollgate_parse_errors_total", &faults);
    assert_eq!(counted, (whole.len() - 4) as f64);
}

#[test]
fn r01_protected_messages_pass_while_requests_are_answered_for_overload() {
    let mut house = Plan { upstream: "inflight_max = 1".to_owned(), ..Plan::default() }.start();
    let mut terminal = house.terminal();
    terminal.send(&Message::sale(CARD, 1).encode());
    house.at_host.receive();
    expect_refusal(&mut terminal, 2);
    for (mti, stan) in never_refused().iter().zip(100..) {
        let message = Message::sale(CARD, stan).mti(mti).encode();
        terminal.send(&message);
        assert_eq!(house.at_host.receive(), message, "{mti}");
    }
    expect_refusal(&mut terminal, 3);
    let overload = ["class=\"standard\"", "reason=\"overload\""];
    assert_eq!(house.proxy.metric_sum("tollgate_rejects_total", &overload), 2.0);
    expect_no_protected_reject(&house);
}

//! R14, R15 and R22: which buckets a message meets, and that none of their keys is a label.

use std::collections::BTreeSet;

use crate::support::house::{House, Plan, key, limit, limit_in};
use crate::support::message::Message;
use crate::support::peer::Peer;
use crate::{CARD, OTHER_CARD};

/// Sends a request; says whether the host got it.
fn passes(house: &mut House, terminal: &mut Peer, request: &Message) -> bool {
    terminal.send(&request.encode());
    // Behind it comes what always passes.
    let marker = Message::sale(CARD, 999_999).without(2).without(42).mti("0800").encode();
    terminal.send(&marker);
    let arrived = house.at_host.receive();
    if arrived == marker {
        let answer = Message::decode(&terminal.receive());
        assert_eq!((answer.get(11), answer.get(39)), (request.get(11), Some("91")));
        return false;
    }
    assert_eq!(arrived, request.encode());
    assert_eq!(house.at_host.receive(), marker);
    true
}

/// What a request holds of a card, without field 2.
fn carrying(fields: &[(u8, &str)], stan: u32) -> Message {
    let bare = Message::sale(CARD, stan).without(2);
    fields.iter().fold(bare, |message, (field, value)| message.with(*field, value))
}

#[test]
fn r14_a_card_number_is_found_in_every_field_that_has_one() {
    let mut house = Plan::limits(&[limit("bin", "bin", 1)]).start();
    let mut terminal = house.terminal();
    // Each place has an issuer of its own, so that a place that is not looked at lets both pass.
    let places: [(u8, &str, &str); 9] = [
        (2, "4000001111111111", "4000002222222222"),
        (2, "6304000011111", "6304001234567890123"),
        (35, "4000101111111111=29121010000012345678", "4000102222222222=2912"),
        (35, "4000201111111111D29121010000012345678", "4000202222222222D2912"),
        (35, "4000301111111111", "4000301111111111=29121010000012345"),
        (45, "B4000401111111111^DOE/JANE^29121010000000000000", "B4000402222222222^X^2912"),
        (45, "B5100401111111111^DOE/J.4111111111111111^2912", "B5100402222222222^^2912"),
        (34, "4000501111111111", "4000502222222222"),
        (34, "5100501111111111111", "5100502222222222222"),
    ];
    for ((field, first, second), stan) in places.into_iter().zip((1..).step_by(10)) {
        let (spends, refused) =
            (carrying(&[(field, first)], stan), carrying(&[(field, second)], stan + 1));
        assert!(passes(&mut house, &mut terminal, &spends), "{field} {first}");
        assert!(!passes(&mut house, &mut terminal, &refused), "{field} {second}");
        // The same issuer, wherever the number is.
        let digits: String =
            first.chars().skip_while(|c| *c == 'B').take_while(char::is_ascii_digit).collect();
        for elsewhere in [
            carrying(&[(2, &digits)], stan + 2),
            carrying(&[(35, &format!("{digits}=2912"))], stan + 3),
            carrying(&[(35, &format!("{digits}D2912"))], stan + 4),
            carrying(&[(45, &format!("B{digits}^A^2912"))], stan + 5),
            carrying(&[(34, &digits)], stan + 6),
        ] {
            assert!(!passes(&mut house, &mut terminal, &elsewhere), "{field} {elsewhere:?}");
        }
    }
}

#[test]
fn r14_field_2_is_believed_before_the_tracks_and_these_before_field_34() {
    let mut house = Plan::limits(&[limit("bin", "bin", 1)]).start();
    let mut terminal = house.terminal();
    let all = [
        (2, "4000001111111111"),
        (35, "4000101111111111=2912"),
        (45, "B4000201111111111^A^2912"),
        (34, "4000301111111111"),
    ];
    for (begin, stan) in (0..all.len()).zip((1..).step_by(10)) {
        assert!(passes(&mut house, &mut terminal, &carrying(&all[begin..], stan)), "{begin}");
        assert!(!passes(&mut house, &mut terminal, &carrying(&all[begin..=begin], stan + 1)));
    }
}

/// In 2003 field 34 is something else. A request of 1993 or 2003 cannot be refused in this dialect,
/// but it is charged.
#[test]
fn r14_field_34_holds_a_card_number_up_to_1993_and_not_in_2003() {
    let mut house = Plan::limits(&[limit("bin", "bin", 1)]).start();
    let mut terminal = house.terminal();
    for (mti, pan, charged) in
        [("1100", "4000101111111111", true), ("2100", "4000201111111111", false)]
    {
        let extended = carrying(&[(34, pan)], 1).mti(mti);
        assert!(passes(&mut house, &mut terminal, &extended));
        let next = carrying(&[(2, pan)], 2);
        assert_eq!(passes(&mut house, &mut terminal, &next), !charged, "{mti}");
    }
}

#[test]
fn r14_a_message_without_a_card_number_meets_merchant_and_global_limits_alone() {
    let bin = limit("bin", "bin", 1);
    let per_merchant = [bin.clone(), limit("merchant", "merchant", 4)];
    // What comes behind each request meets this limit too.
    let global = [bin, limit("all", "", 8)];
    for limits in [per_merchant, global] {
        let mut house = Plan::limits(&limits).start();
        let mut terminal = house.terminal();
        let none = [
            carrying(&[], 1),
            carrying(&[(2, "")], 2),
            carrying(&[(2, "1234567")], 3),
            carrying(&[(35, ";")], 4),
        ];
        for request in &none {
            assert!(passes(&mut house, &mut terminal, request), "{request:?}");
        }
        assert!(!passes(&mut house, &mut terminal, &carrying(&[], 5)));
    }
}

#[test]
fn r14_a_key_of_eight_digits_beats_one_of_six() {
    let keys = [
        limit("bin", "bin", 1),
        key("bin = \"411111\"", 2),
        key("bin = \"41111122\"", 4),
        key("bin = \"4\"", 6),
    ];
    let mut house = Plan::limits(&keys).start();
    let mut terminal = house.terminal();
    for (pan, burst) in [
        ("4111112200000000", 4),
        ("4111113300000000", 2),
        ("4222222200000000", 6),
        ("5555555500000000", 1),
    ] {
        for stan in 0..burst {
            assert!(passes(&mut house, &mut terminal, &Message::sale(pan, stan)), "{pan} {stan}");
        }
        assert!(!passes(&mut house, &mut terminal, &Message::sale(pan, 99)), "{pan}");
    }
}

#[test]
fn r15_merchants_of_one_name_at_different_acquirers_have_buckets_of_their_own() {
    let mut house = Plan::limits(&[limit("merchant", "merchant", 1)]).start();
    let mut terminal = house.terminal();
    let at = |acquirer: Option<&str>, stan| match acquirer {
        Some(acquirer) => Message::sale(CARD, stan).with(32, acquirer),
        None => Message::sale(CARD, stan).without(32),
    };
    for (acquirer, stan) in
        [Some("123456"), Some("654321"), Some("1"), Some("12345678901"), None].into_iter().zip(1..)
    {
        assert!(passes(&mut house, &mut terminal, &at(acquirer, stan)), "{acquirer:?}");
        assert!(!passes(&mut house, &mut terminal, &at(acquirer, stan + 50)), "{acquirer:?}");
    }
}

#[test]
fn r15_acquirer_and_name_are_kept_apart() {
    let mut house = Plan::limits(&[limit("merchant", "merchant", 1)]).start();
    let mut terminal = house.terminal();
    // The same characters in a row, parted elsewhere.
    for (acquirer, name) in [("1234", "56SHOP         "), ("123456", "SHOP           ")] {
        let sale = Message::sale(CARD, 1).with(32, acquirer).with(42, name);
        assert!(passes(&mut house, &mut terminal, &sale), "{acquirer} {name}");
    }
}

#[test]
fn r15_trailing_blanks_of_a_merchant_do_not_matter() {
    let keys = [
        limit("merchant", "merchant", 1),
        key("merchant = \"SHOP\"\nacquirer = \"123456\"", 2),
        key("merchant = \"LONG NAME OF 15\"\nacquirer = \"123456\"", 2),
        key("merchant = \"BLANKS    \"\nacquirer = \"123456\"", 2),
    ];
    let mut house = Plan::limits(&keys).start();
    let mut terminal = house.terminal();
    for (name, burst) in [
        ("SHOP           ", 2),
        ("LONG NAME OF 15", 2),
        ("BLANKS         ", 2),
        ("OTHER          ", 1),
        (" SHOP          ", 1),
    ] {
        for stan in 0..burst {
            let sale = Message::sale(CARD, stan).with(42, name);
            assert!(passes(&mut house, &mut terminal, &sale), "{name} {stan}");
        }
        let sale = Message::sale(CARD, 99).with(42, name);
        assert!(!passes(&mut house, &mut terminal, &sale), "{name}");
    }
}

/// Names and labels of every series, without values. The labels of a histogram's buckets are bounds.
fn series(page: &str) -> BTreeSet<String> {
    let lines = page.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

#[test]
fn r22_no_bin_merchant_terminal_or_trace_number_ever_becomes_a_label() {
    const NUMBERS: std::ops::Range<u32> = 271_000..274_000;
    let limits = [
        limit("bin", "bin", 1),
        limit("merchant", "merchant", 1),
        limit_in("shadow", "terminal", "terminal", 1),
        limit_in("shadow", "mcc", "mcc", 1),
        limit("all", "", 1_000_000),
    ];
    let mut house =
        Plan { upstream: "inflight_max = 100000".to_owned(), ..Plan::limits(&limits) }.start();
    let mut terminal = house.terminal();
    let (_, page) = house.proxy.page("/metrics");
    let before = series(&page);
    assert!(before.len() > 100, "{}", before.len());

    let sale = |number: u32| {
        Message::sale(&format!("{}0000000000", 300_000 + number), number)
            .with(41, &format!("T{number:07}"))
            .with(42, &format!("M{number:014}"))
            .with(32, &format!("7{number:06}"))
            .with(37, &format!("R{number:011}"))
            .with(18, &format!("{:04}", number % 10_000))
            .with(49, &format!("{:03}", number % 1_000))
    };
    for number in NUMBERS {
        terminal.send(&sale(number).encode());
        assert_eq!(house.at_host.receive(), sale(number).encode());
        let code = format!("{:02}", number % 100);
        house.at_host.send(&sale(number).answer(&code).encode());
        terminal.receive();
        // The second of each is refused by a limit.
        terminal.send(&sale(number).encode());
        terminal.receive();
    }
    // Answers that reach nobody, and messages that break off before they could be answered.
    for number in NUMBERS.take(300) {
        house.at_host.send(&sale(number).answer("00").encode());
        terminal.send(&sale(number).encode()[..60 + number as usize % 12]);
        house.at_host.receive();
    }
    let advice = Message::sale(OTHER_CARD, 1).mti("0120");
    terminal.send(&advice.encode());
    house.at_host.receive();
    house.at_host.send(&advice.answer("00").encode());
    terminal.receive();

    let (_, page) = house.proxy.page("/metrics");
    for limit in ["bin", "merchant", "terminal", "mcc"] {
        let looks = format!("tollgate_budget_remaining_ratio_count{{limit=\"{limit}\"}}");
        assert!(house.proxy.metric(&looks) > 10.0, "{limit}: nothing was looked at");
        let keys = house.proxy.metric(&format!("tollgate_limit_keys{{limit=\"{limit}\"}}"));
        assert!(keys >= NUMBERS.len() as f64, "{limit}: {keys}");
    }
    assert_eq!(series(&page), before, "a series came or went");
    // A digit run that all of a message's keys contain, or its BIN: no bound of a histogram has it.
    for number in NUMBERS {
        let keys = [number.to_string(), (number + 300_000).to_string()];
        let found = before.iter().find(|series| keys.iter().any(|key| series.contains(key)));
        assert_eq!(found, None, "{number}");
    }
}

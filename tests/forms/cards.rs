//! Card numbers that are read one place off show in their check digits.

use fastrand::Rng;

use crate::encoder::Fields;
use crate::support::luhn::{card_number, passes};
use crate::support::wait_for;
use crate::{Form, Way, table};

/// More than it takes for an alarm.
const SALES: usize = 70;
const ALARM: &str = "most card numbers fail the Luhn check";
/// So many digits of a card number in a row are a leak. Six of it may be shown.
const RUN: usize = 9;

fn cards(digits: usize) -> Vec<String> {
    let mut rng = Rng::with_seed(15);
    let cards: Vec<String> = (0..SALES).map(|_| card_number(digits, &mut rng)).collect();
    assert!(cards.iter().all(|card| card.len() == digits && passes(card.as_bytes())));
    cards
}

/// A sale in `iso87_bcd`, which has the padding of an odd digit on the right.
fn sale(card: &str, stan: usize) -> Vec<u8> {
    let fields = [
        (0, "0100"),
        (2, card),
        (3, "000000"),
        (4, "000000001000"),
        (7, "1130045900"),
        (11, &format!("{stan:06}")),
        (41, "TERM0001"),
    ];
    let fields = fields.map(|(de, value)| (de, value.to_owned()));
    table("iso87_bcd").encode(&Fields::from(fields))
}

/// Sends a sale with each of these cards, and waits until all are counted.
#[track_caller]
fn send(way: &mut Way, cards: &[String], digits: &str) {
    let sales: Vec<Vec<u8>> = cards.iter().zip(1..).map(|(card, stan)| sale(card, stan)).collect();
    // In one write, so that what is said at most once in a while is not said twice.
    let two = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
    let stream = sales.iter().flat_map(|sale| [&two(sale.len()), &sale[..]].concat());
    way.terminal.send_raw(&stream.collect::<Vec<u8>>());
    for sale in &sales {
        assert!(way.at_host.receive() == *sale, "a sale arrived changed");
    }
    wait_for("every card number is counted", || {
        let [passed, failed] = counted(way, digits);
        (passed + failed == cards.len() as f64).then_some(())
    });
}

/// How many passed the check and how many failed it.
fn counted(way: &Way, digits: &str) -> [f64; 2] {
    ["passed", "failed"].map(|luhn| {
        let labels = format!("link=\"visa\",digits=\"{digits}\",luhn=\"{luhn}\"");
        way.proxy.metric(&format!("tollgate_card_numbers_total{{{labels}}}"))
    })
}

fn ratio(way: &Way, digits: &str) -> f64 {
    let labels = format!("link=\"visa\",digits=\"{digits}\"");
    way.proxy.metric(&format!("tollgate_luhn_failure_ratio{{{labels}}}"))
}

/// Everything that was to be said of the sales stands in the log before this returns.
fn log_so_far(way: &mut Way) -> String {
    let mut cut = sale(&cards(16)[0], 999_999);
    cut.pop();
    way.goes_to_host(&cut);
    way.proxy.wait_for_log("message not readable to its end");
    way.proxy.log()
}

#[test]
fn odd_digits_that_are_padded_on_the_other_side_are_an_alarm_that_tells_no_card_number() {
    let form = Form { dialect: "iso87_bcd_left", ..Form::default() };
    let mut way = form.open();
    let cards = cards(15);
    send(&mut way, &cards, "odd");
    // What is read of each: without its first digit, and with the padding behind it.
    let read: Vec<String> = cards.iter().map(|card| format!("{}0", &card[1..])).collect();
    let passed = read.iter().filter(|card| passes(card.as_bytes())).count();
    assert_eq!(counted(&way, "odd"), [passed as f64, (SALES - passed) as f64]);
    let failing = ratio(&way, "odd");
    assert!(failing > 0.5 && failing < 1.0, "{failing}");
    assert_eq!(counted(&way, "even"), [0.0, 0.0]);
    assert_eq!(ratio(&way, "even"), 0.0);

    let log = log_so_far(&mut way);
    assert_eq!(way.proxy.log_lines(&[ALARM]), 1, "{log}");
    assert_eq!(way.proxy.log_lines(&[ALARM, "link=visa", "digits=\"odd\""]), 1, "{log}");
    let (_, page) = way.proxy.page("/metrics");
    let runs = cards.iter().flat_map(|card| (0..=card.len() - RUN).map(|at| &card[at..at + RUN]));
    let mut searched = 0;
    for run in runs {
        assert!(!log.contains(run) && !page.contains(run), "a part of a card number is told");
        searched += 1;
    }
    assert_eq!(searched, SALES * (15 - RUN + 1));
}

#[test]
fn odd_digits_that_are_padded_where_the_dialect_has_it_are_no_alarm() {
    let form = Form { dialect: "iso87_bcd", ..Form::default() };
    let mut way = form.open();
    send(&mut way, &cards(15), "odd");
    assert_eq!(counted(&way, "odd"), [SALES as f64, 0.0]);
    assert_eq!((ratio(&way, "odd"), ratio(&way, "even")), (0.0, 0.0));
    let log = log_so_far(&mut way);
    assert!(!log.contains("Luhn"), "{log}");
}

#[test]
fn an_even_number_of_digits_passes_on_either_side() {
    for dialect in ["iso87_bcd", "iso87_bcd_left"] {
        let mut way = Form { dialect, ..Form::default() }.open();
        send(&mut way, &cards(16), "even");
        assert_eq!(counted(&way, "even"), [SALES as f64, 0.0], "{dialect}");
        assert_eq!(counted(&way, "odd"), [0.0, 0.0], "{dialect}");
        assert_eq!((ratio(&way, "odd"), ratio(&way, "even")), (0.0, 0.0), "{dialect}");
        let log = log_so_far(&mut way);
        assert!(!log.contains("Luhn"), "{log}");
    }
}

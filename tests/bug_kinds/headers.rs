//! What stands before a message.

use crate::support::config;
use crate::support::framing::Framing;
use crate::support::header::Header;
use crate::support::host::Host;
use crate::support::house::limit;
use crate::support::message::Message;
use crate::support::proxy::Proxy;

const CARD: &str = "4111111111111111";
/// What a local answer takes from a sale: all that it has.
const ECHOED: [u8; 13] = [2, 3, 4, 7, 11, 12, 13, 25, 32, 37, 41, 42, 49];

fn refusal(sale: &Message) -> Vec<u8> {
    let answer = ECHOED.into_iter().fold(Message::new("0110", &[]), |answer, field| {
        answer.with(field, sale.get(field).unwrap())
    });
    answer.with(39, "91").encode()
}

#[track_caller]
fn passes_and_is_turned_round(framing: Framing, header: Header) {
    let host = Host::listen(framing);
    let keys = format!("header = \"{}\"\ndeadline = \"50s\"", header.name());
    let link = config::link("visa", host.address(), &keys, "connections = 1");
    let link = link.replace("\"be16\"", &format!("\"{}\"", framing.name()));
    let proxy = Proxy::start(&format!("{}{link}{}", config::node("0s"), limit("all", "", 1)));
    let mut at_host = host.accept();
    proxy.wait_for_log("host up");
    let mut terminal = proxy.connect("visa", framing);

    // Frames that end before their message begins are nobody's to judge.
    for end in 1..=header.bytes() {
        let begun = header.before(&Message::sale(CARD, 1).encode())[..end].to_vec();
        terminal.send(&begun);
        assert_eq!(at_host.receive(), begun, "{header:?} over {framing:?}");
    }
    let unread = |kind: &str| proxy.metric_sum("tollgate_parse_errors_total", &[kind]);
    let begun = header.bytes().saturating_sub(1) as f64;
    assert_eq!(unread("kind=\"no_header\""), begun, "{header:?} over {framing:?}");
    assert_eq!(unread(""), header.bytes() as f64, "{header:?} over {framing:?}");

    let (first, second) = (Message::sale(CARD, 1), Message::sale(CARD, 2));
    let request = header.before(&first.encode());
    terminal.send(&request);
    assert_eq!(at_host.receive(), request, "{header:?} over {framing:?}");
    // The host's header is its own affair.
    let answer = header.before(&first.answer("00").encode());
    at_host.send(&answer);
    assert_eq!(terminal.receive(), answer, "{header:?} over {framing:?}");

    let request = header.before(&second.encode());
    terminal.send(&request);
    let refused = header.answer_before(&request, &refusal(&second));
    assert_eq!(terminal.receive(), refused, "{header:?} over {framing:?}");
}

#[test]
fn every_header_passes_unchanged_and_is_turned_round_once_in_a_local_answer() {
    let mut pairs = 0;
    for framing in Framing::ALL {
        for header in Header::ALL {
            passes_and_is_turned_round(framing, header);
            pairs += 1;
        }
    }
    assert_eq!(pairs, 16 * 6);
}

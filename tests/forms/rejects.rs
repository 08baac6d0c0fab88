//! Messages that come back with Visa's reject header.

use crate::support::header::{Header, rejected};
use crate::support::house::limit;
use crate::support::message::Message;
use crate::support::peer::Framing;
use crate::{CARD, Form, Way};

const LINE: &str = "message came back rejected for its form";

fn way(sections: String) -> Way {
    let (framing, host_framing) = (Framing::Vmlh4, Framing::Vmlh4);
    let keys = "header = \"visa\"".to_owned();
    Form { framing, host_framing, keys, sections, ..Form::default() }.open()
}

fn visa(message: &Message) -> Vec<u8> {
    Header::Visa.before(&message.encode())
}

#[track_caller]
fn assert_counted(way: &Way, network: f64, host: f64) {
    for (from, count) in [("network", network), ("host", host)] {
        let series = format!(r#"tollgate_rejected_messages_total{{link="visa",from="{from}"}}"#);
        way.proxy.wait_for_metric(&series, count);
        assert_eq!(way.proxy.metric(&series), count, "{from}");
    }
}

#[test]
fn a_request_that_the_host_rejects_is_answered_at_once_with_a_format_error() {
    let mut way = way(String::new());
    let sale = Message::sale(CARD, 1);
    let request = visa(&sale);
    way.goes_to_host(&request);
    way.at_host.send(&rejected(&request));
    // The header is the request's own, turned round; every field of the sale is one that is echoed.
    let body = sale.clone().mti("0110").with(39, "30").encode();
    let answer = way.terminal.receive();
    assert_eq!(answer, Header::Visa.answer_before(&request, &body));
    assert_eq!(usize::from(u16::from_be_bytes([answer[3], answer[4]])), answer.len());
    assert_counted(&way, 0.0, 1.0);
    let reason = "tollgate_rejects_total";
    assert_eq!(way.proxy.metric_sum(reason, &["reason=\"format\""]), 1.0);
    way.proxy.wait_for_log(LINE);
    assert_eq!(way.proxy.log_lines(&[LINE, "link=visa", "from=\"host\"", "code=0143"]), 1);

    // It is answered once; another message of the host's is the next that comes.
    way.at_host.send(&rejected(&request));
    assert_counted(&way, 0.0, 2.0);
    let next = visa(&Message::sale(CARD, 2));
    way.goes_to_host(&next);
    let answer = visa(&Message::sale(CARD, 2).answer("00"));
    way.at_host.send(&answer);
    assert_eq!(way.terminal.receive(), answer);
    assert_eq!(way.proxy.metric_sum(reason, &[]), 1.0);
}

#[test]
fn an_advice_that_the_host_rejects_has_the_reject_for_its_answer() {
    for mti in ["0120", "0420"] {
        let mut way = way(String::new());
        let advice = visa(&Message::sale(CARD, 1).mti(mti));
        way.goes_to_host(&advice);
        let reject = rejected(&advice);
        way.at_host.send(&reject);
        assert_eq!(way.terminal.receive(), reject, "{mti}");
        assert_counted(&way, 0.0, 1.0);
        assert_eq!(way.proxy.metric_sum("tollgate_rejects_total", &[]), 0.0, "{mti}");
        assert_eq!(way.proxy.metric_sum("tollgate_stray_messages_total", &[]), 0.0, "{mti}");
    }
}

#[test]
fn a_reject_of_the_networks_goes_to_the_host_as_it_is_though_the_limit_is_used_up() {
    let mut way = way(limit("all", "", 1));
    let first = Message::sale(CARD, 1);
    way.goes_to_host(&visa(&first));
    let answer = visa(&first.answer("00"));
    way.at_host.send(&answer);
    assert_eq!(way.terminal.receive(), answer);
    let second = Message::sale(CARD, 2);
    way.terminal.send(&visa(&second));
    let refused = way.terminal.receive();
    let refused = Message::decode(Header::Visa.behind(&refused));
    assert_eq!((refused.get(11), refused.get(39)), (Some("000002"), Some("91")));

    // The host's answer comes back, and what looks like a request of the network's.
    way.goes_to_host(&rejected(&answer));
    way.goes_to_host(&rejected(&visa(&Message::sale(CARD, 3))));
    assert_counted(&way, 2.0, 0.0);
    way.proxy.wait_for_log(LINE);
    assert!(way.proxy.log_lines(&[LINE, "link=visa", "from=\"network\"", "code=0143"]) >= 1);
    assert_eq!(way.proxy.metric_sum("tollgate_rejects_total", &[]), 1.0);

    // Neither was answered, and the limit is still used up.
    let fourth = Message::sale(CARD, 4);
    way.terminal.send(&visa(&fourth));
    let refused = way.terminal.receive();
    let refused = Message::decode(Header::Visa.behind(&refused));
    assert_eq!((refused.get(11), refused.get(39)), (Some("000004"), Some("91")));
}

//! Reports about what stands behind something else in a session: the answer behind the end of what
//! it says, and good messages behind a bad one.

use crate::support::house::{House, Plan, SOCKETS};
use crate::support::message::{Layout, Message};
use crate::support::wait_for;

const CARD: &str = "4111111111111111";

fn inflight(house: &House) -> f64 {
    house.proxy.metric_sum("tollgate_inflight", &["link=\"visa\""])
}

#[test]
fn a_session_that_has_said_all_it_has_to_say_still_gets_its_answer() {
    let mut house = Plan { layout: Layout::Binary, ..Plan::default() }.start();
    let (mut terminal, mut other) = (house.terminal(), house.terminal());
    let sale = |stan| Message::sale(CARD, stan);
    let encode = |message: &Message| message.encode_as(Layout::Binary);
    terminal.send(&encode(&sale(1)));
    terminal.half_close();
    assert_eq!(house.at_host.receive(), encode(&sale(1)));
    wait_for("the request is in flight", || (inflight(&house) == 1.0).then_some(()));
    // Others are served meanwhile, and the host takes its time.
    for stan in 2..20 {
        other.send(&encode(&sale(stan)));
        assert_eq!(house.at_host.receive(), encode(&sale(stan)));
        house.at_host.send(&encode(&sale(stan).answer("00")));
        assert_eq!(other.receive(), encode(&sale(stan).answer("00")));
    }
    house.at_host.send(&encode(&sale(1).answer("00")));
    assert_eq!(terminal.receive(), encode(&sale(1).answer("00")));
    terminal.expect_end();
    wait_for("nothing is in flight", || (inflight(&house) == 0.0).then_some(()));
}

/// BR035 on the host's side: what it says before its end is heard, and what it has not answered by
/// then it never will.
#[test]
fn a_host_that_has_said_all_it_has_to_say_is_heard_out_and_nothing_is_sent_to_it_again() {
    let mut house = Plan { deadline: "150ms", ..Plan::default() }.start();
    let mut terminal = house.terminal();
    let advice = Message::sale(CARD, 1).mti("0120");
    let sale = |stan| Message::sale(CARD, stan);
    for message in [advice.clone(), sale(2)] {
        terminal.send(&message.encode());
        assert_eq!(house.at_host.receive_message(), message);
    }
    assert_eq!(terminal.receive_message().get(39), Some("91"));
    terminal.send(&sale(3).encode());
    assert_eq!(house.at_host.receive_message(), sale(3));
    house.at_host.send(&advice.answer("00").encode());
    house.at_host.half_close();
    let mut heard = [terminal.receive_message(), terminal.receive_message()];
    // Its deadline may have passed before the host answered the advice.
    heard.sort_by_key(|answer| answer.get(0) != Some("0130"));
    assert_eq!(heard[0], advice.answer("00"));
    assert_eq!((heard[1].get(11), heard[1].get(39)), (Some("000003"), Some("91")));
    house.at_host.expect_end();
    let mut at_host = house.host.accept();
    house.proxy.wait_for_gauge(SOCKETS, 1.0);
    let advice = Message::sale(CARD, 4).mti("0120");
    terminal.send(&advice.encode());
    assert_eq!(at_host.receive_message(), advice);
    at_host.send(&advice.answer("00").encode());
    assert_eq!(terminal.receive_message(), advice.answer("00"));
}

#[test]
fn a_frame_that_cannot_be_read_is_said_once_and_the_good_ones_behind_it_pass() {
    let mut house = Plan { layout: Layout::Binary, ..Plan::default() }.start();
    let mut terminal = house.terminal();
    let encode = |stan| Message::sale(CARD, stan).encode_as(Layout::Binary);
    let bad = [encode(1), b"behind".to_vec()].concat();
    let frames: Vec<Vec<u8>> = std::iter::once(bad).chain((2..12).map(encode)).collect();
    let stream = frames.iter().flat_map(|frame| crate::support::peer::Framing::Be16.wrap(frame));
    terminal.send_raw(&stream.collect::<Vec<u8>>());
    for frame in &frames {
        assert!(house.at_host.receive() == *frame, "it arrived changed");
    }
    let faults = |kind: &str| house.proxy.metric_sum("tollgate_parse_errors_total", &[kind]);
    assert_eq!((faults(""), faults("kind=\"trailing\"")), (1.0, 1.0));
    wait_for("a line that says so", || {
        (house.proxy.log_lines(&["not readable", "field=49", "trailing"]) == 1).then_some(())
    });
    // Nothing goes on with it.
    let mut before = house.proxy.cpu();
    let mut quiet = 0;
    wait_for("the process is idle", || {
        std::thread::park_timeout(std::time::Duration::from_millis(20));
        let after = house.proxy.cpu();
        quiet = if after == before { quiet + 1 } else { 0 };
        before = after;
        (quiet == 10).then_some(())
    });
    assert_eq!(house.proxy.log_lines(&["not readable"]), 1);
}

//! R2 and R5: what stands in Field 39 and in the MTI of an answer that tollgate gives itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use crate::CARD;
use crate::support::house::{Plan, key, limit};
use crate::support::message::Message;
use crate::support::peer::Peer;

const REASONS: [&str; 6] = ["limit", "overload", "unavailable", "lost", "deadline", "malfunction"];

/// What a session is told for each reason that can be brought about from outside: all but
/// `malfunction`.
fn codes_by_reason(codes: &str) -> BTreeMap<&'static str, String> {
    let mut house = Plan {
        deadline: "1500ms",
        codes: codes.to_owned(),
        upstream: "inflight_max = 1".to_owned(),
        sections: limit("merchant", "merchant", 1000)
            + &key("merchant = \"BUSY\"\nacquirer = \"123456\"", 1),
        ..Plan::default()
    }
    .start();
    let mut terminal = house.terminal();
    let mut told = BTreeMap::new();
    let mut hear = |terminal: &mut Peer, stan: u32, reason| {
        let answer = Message::decode(&terminal.receive());
        assert_eq!(answer.get(11), Some(format!("{stan:06}").as_str()), "{reason}");
        told.insert(reason, answer.get(39).unwrap().to_owned());
    };

    let busy = |stan| Message::sale(CARD, stan).with(42, "BUSY           ");
    terminal.send(&busy(1).encode());
    house.at_host.receive();
    house.at_host.send(&busy(1).answer("00").encode());
    terminal.receive();
    terminal.send(&busy(2).encode());
    hear(&mut terminal, 2, "limit");

    terminal.send(&Message::sale(CARD, 3).encode());
    house.at_host.receive();
    terminal.send(&Message::sale(CARD, 4).encode());
    hear(&mut terminal, 4, "overload");
    hear(&mut terminal, 3, "deadline");

    terminal.send(&Message::sale(CARD, 5).encode());
    house.at_host.receive();
    drop(house.host);
    drop(house.at_host);
    hear(&mut terminal, 5, "lost");
    terminal.send(&Message::sale(CARD, 6).encode());
    hear(&mut terminal, 6, "unavailable");

    let counted =
        |metric, reason: &str| house.proxy.metric_sum(metric, &[&format!("reason=\"{reason}\"")]);
    for reason in ["limit", "overload", "unavailable"] {
        assert_eq!(counted("tollgate_rejects_total", reason), 1.0, "{reason}");
    }
    for reason in ["deadline", "lost"] {
        assert_eq!(counted("tollgate_deadline_answers_total", reason), 1.0, "{reason}");
    }
    told
}

#[test]
fn r02_every_reason_is_answered_with_91_by_default() {
    let told = codes_by_reason("");
    assert_eq!(told.len(), 5);
    assert!(told.values().all(|code| code == "91"), "{told:?}");
}

#[test]
fn r02_each_reason_is_answered_with_the_code_that_is_configured_for_it() {
    let codes = [
        ("limit", "65"),
        ("overload", "61"),
        ("unavailable", "N0"),
        ("lost", "92"),
        ("deadline", "68"),
    ];
    let lines = codes.map(|(reason, code)| format!("{reason} = \"{code}\"")).join("\n");
    let expected = codes.map(|(reason, code)| (reason, code.to_owned()));
    assert_eq!(codes_by_reason(&lines), expected.into());
}

#[test]
fn r02_no_reason_can_be_configured_to_approve_decline_or_keep_the_card() {
    let address = "127.0.0.1:9".parse().unwrap();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("rules-codes-{}.toml", std::process::id()));
    let check = |codes: String| {
        std::fs::write(&path, Plan { codes, ..Plan::default() }.config(address)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(["check", "--config"]).arg(&path).output().unwrap()
    };
    for reason in REASONS {
        let sound = check(format!("{reason} = \"91\""));
        assert_eq!(sound.status.code(), Some(0), "{}", String::from_utf8_lossy(&sound.stderr));
        for code in [
            "05", "100", "1000", "00", "08", "10", "11", "85", "000", "0000", "04", "07", "41",
            "43", "200", "", "5", "0", " 91", "907", "9107",
        ] {
            let refused = check(format!("{reason} = \"{code}\""));
            assert_eq!(refused.status.code(), Some(78), "{reason} = {code}");
            let said = String::from_utf8_lossy(&refused.stderr).into_owned()
                + &String::from_utf8_lossy(&refused.stdout);
            assert!(said.contains(reason), "{reason} = {code}: {said}");
        }
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn r02_a_code_of_the_hosts_own_is_delivered_whatever_it_is() {
    let mut house = Plan::default().start();
    let mut terminal = house.terminal();
    for (code, stan) in ["05", "00", "04", "43", "91", "N7", "  "].into_iter().zip(1..) {
        let sale = Message::sale(CARD, stan);
        terminal.send(&sale.encode());
        house.at_host.receive();
        house.at_host.send(&sale.answer(code).encode());
        assert_eq!(terminal.receive(), sale.answer(code).encode());
    }
}

/// A 1993 code has three characters and a 2003 code four. Where Field 39 has two, an answer cannot
/// say what it has to: such a request is not refused but forwarded, and counted.
#[test]
fn r02_a_request_whose_code_does_not_fit_field_39_is_forwarded_and_counted_unenforceable() {
    let mut house = Plan { sections: limit("all", "", 1), ..Plan::default() }.start();
    let mut terminal = house.terminal();
    terminal.send(&Message::sale(CARD, 1).encode());
    house.at_host.receive();
    let mtis = ["1100", "1101", "1200", "1201", "2100", "2101", "2200", "2201"];
    for (mti, stan) in mtis.into_iter().zip(10..) {
        let request = Message::sale(CARD, stan).mti(mti);
        terminal.send(&request.encode());
        assert_eq!(house.at_host.receive(), request.encode(), "{mti}");
        house.at_host.send(&request.answer("00").encode());
        assert_eq!(terminal.receive(), request.answer("00").encode(), "{mti}");
    }
    terminal.send(&Message::sale(CARD, 2).encode());
    assert_eq!(Message::decode(&terminal.receive()).get(39), Some("91"));
    let labels = ["class=\"standard\"", "outcome=\"unenforceable\""];
    let passed = house.proxy.metric_sum("tollgate_decisions_total", &labels);
    assert_eq!(passed, mtis.len() as f64);
}

#[test]
fn r02_a_request_whose_code_does_not_fit_field_39_gets_no_answer_at_its_deadline() {
    let mut house = Plan { deadline: "50ms", ..Plan::default() }.start();
    let mut terminal = house.terminal();
    let first = Message::sale(CARD, 1).mti("1100");
    terminal.send(&first.encode());
    house.at_host.receive();
    // This one was sent later, and its deadline comes later.
    terminal.send(&Message::sale(CARD, 2).encode());
    house.at_host.receive();
    let answer = Message::decode(&terminal.receive());
    assert_eq!((answer.get(11), answer.get(39)), (Some("000002"), Some("91")));
    house.at_host.send(&first.answer("00").encode());
    assert_eq!(terminal.receive(), first.answer("00").encode(), "its answer is still welcome");
}

#[test]
fn r05_the_answer_has_the_response_mti_of_its_request_and_a_repeat_that_of_its_original() {
    let mut house = Plan { sections: limit("all", "", 1), ..Plan::default() }.start();
    let mut terminal = house.terminal();
    terminal.send(&Message::sale(CARD, 1).encode());
    house.at_host.receive();
    let pairs = [("0100", "0110"), ("0101", "0110"), ("0200", "0210"), ("0201", "0210")];
    for ((request, response), stan) in pairs.into_iter().zip(10..) {
        for operation in ["000000", "010000", "200000", "310000", "990000"] {
            let message = Message::sale(CARD, stan).mti(request).with(3, operation);
            terminal.send(&message.encode());
            let answer = Message::decode(&terminal.receive());
            assert_eq!(answer.get(0), Some(response), "{request} {operation}");
            assert_eq!(answer.get(39), Some("91"), "{request} {operation}");
            assert_eq!(answer.get(11), message.get(11), "{request} {operation}");
        }
    }
}

#[test]
fn r05_the_hosts_answer_finds_an_original_and_a_repeat_alike() {
    let mut house = Plan::default().start();
    let mut terminal = house.terminal();
    let pairs = [("0100", "0110"), ("0101", "0110"), ("0200", "0210"), ("0201", "0210")];
    let others = [("0120", "0130"), ("0121", "0130"), ("0220", "0230"), ("0400", "0410")];
    let more = [("0401", "0410"), ("0420", "0430"), ("0421", "0430"), ("0800", "0810")];
    for ((mti, response), stan) in pairs.into_iter().chain(others).chain(more).zip(10..) {
        let request = Message::sale(CARD, stan).mti(mti);
        terminal.send(&request.encode());
        house.at_host.receive();
        let answer = request.answer("00");
        assert_eq!(answer.get(0), Some(response));
        house.at_host.send(&answer.encode());
        assert_eq!(terminal.receive(), answer.encode(), "{mti}");
    }
}

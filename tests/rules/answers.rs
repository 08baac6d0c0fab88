//! R6: an answer that tollgate gives itself can be read, says whose it is, and holds no secret.

use std::path::PathBuf;
use std::process::Command;

use crate::CARD;
use crate::support::house::{Plan, limit};
use crate::support::message::{Layout, Message};
use crate::support::peer::Framing;

/// Default of `echo`.
const ECHO: [u8; 16] = [2, 3, 4, 7, 11, 12, 13, 19, 24, 25, 32, 33, 37, 41, 42, 49];

/// What no answer carries, whatever is configured.
const FORBIDDEN: [u8; 12] = [14, 34, 35, 36, 38, 45, 52, 53, 55, 64, 90, 128];

/// A request that has all of `ECHO` and all of `FORBIDDEN`, and more.
fn full_request(stan: u32) -> Message {
    Message::sale(CARD, stan)
        .with(5, "000000000500")
        .with(14, "2912")
        .with(18, "5999")
        .with(19, "840")
        .with(22, "051")
        .with(24, "200")
        .with(33, "98765432101")
        .with(34, "5555555555554444")
        .with(35, "4111111111111111=29121010000012345678")
        .with(36, "995555555555554444=1234")
        .with(38, "OLD123")
        .with(43, "SHOP OF ALL THINGS       SPRINGFIELD  US")
        .with(45, "B4111111111111111^DOE/J^29121010000")
        .with(48, "private, with 39 and 91 in it")
        .with(52, "00112233445566FF")
        .with(53, "2001010100000000")
        .with(55, "9F2608C2A1B7D4E5F60718")
        .with(59, "transport")
        .with(63, "network data")
        .with(64, "8899AABBCCDDEEFF")
        .with(90, "010000000111301200000000012345600000000000")
        .with(102, "ACCOUNT-1")
        .with(128, "0102030405060708")
}

/// The local answer to a full request, on a link with these keys.
fn refusal(layout: Layout, link_framing: Framing, link: &str) -> (Message, Message) {
    let plan = Plan {
        layout,
        link_framing,
        link: format!("local_answers = \"always\"\n{link}"),
        ..Plan::limits(&[limit("all", "", 1)])
    };
    let mut house = plan.start();
    let mut terminal = house.terminal();
    terminal.send(&Message::sale(CARD, 1).encode_as(layout));
    house.at_host.receive();
    let request = full_request(7);
    terminal.send(&request.encode_as(layout));
    (request, Message::decode_as(layout, &terminal.receive()))
}

fn expect_exactly(request: &Message, answer: &Message, echo: &[u8]) {
    let mut expected = Message::new("0110", &[(39, "91")]);
    for field in echo {
        expected = expected.with(*field, request.get(*field).unwrap());
    }
    assert_eq!(*answer, expected);
}

#[test]
fn r06_an_answer_holds_the_fields_of_the_default_echo_list_unchanged_and_nothing_else() {
    for layout in [Layout::Hex, Layout::Binary] {
        for framing in [Framing::Be16, Framing::Be16Incl] {
            let (request, answer) = refusal(layout, framing, "");
            expect_exactly(&request, &answer, &ECHO);
            for field in FORBIDDEN {
                assert!(request.get(field).is_some() && answer.get(field).is_none(), "{field}");
            }
        }
    }
}

#[test]
fn r06_an_answer_holds_the_fields_of_a_configured_echo_list_and_nothing_else() {
    for layout in [Layout::Hex, Layout::Binary] {
        for echo in [&[11][..], &[63, 11, 41, 48], &[3, 11, 102], &[11, 37, 43, 49, 59, 102]] {
            let (request, answer) = refusal(layout, Framing::Be16, &format!("echo = {echo:?}"));
            expect_exactly(&request, &answer, echo);
        }
    }
}

#[test]
fn r06_echoed_fields_that_a_request_does_not_have_are_not_made_up() {
    let mut house = Plan::limits(&[limit("all", "", 1)]).start();
    let mut terminal = house.terminal();
    terminal.send(&Message::sale(CARD, 1).encode());
    house.at_host.receive();
    for present in [&[11][..], &[2, 11], &[11, 49], &[4, 11, 37, 42]] {
        let full = Message::sale(CARD, 2);
        let request = present.iter().fold(Message::new("0200", &[]), |message, field| {
            message.with(*field, full.get(*field).unwrap())
        });
        terminal.send(&request.encode());
        let answer = Message::decode(&terminal.receive());
        assert_eq!(answer, request.clone().mti("0210").with(39, "91"));
    }
}

#[test]
fn r06_card_secrets_macs_and_authorization_codes_cannot_be_configured_to_be_echoed() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("rules-echo-{}.toml", std::process::id()));
    let check = |link: String| {
        let plan = Plan { link, ..Plan::default() };
        std::fs::write(&path, plan.config("127.0.0.1:9".parse().unwrap())).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(["check", "--config"]).arg(&path).output().unwrap().status.code()
    };
    assert_eq!(check("echo = [11, 48]".to_owned()), Some(0));
    for field in FORBIDDEN {
        assert_eq!(check(format!("echo = [11, {field}]")), Some(78), "{field}");
    }
    std::fs::remove_file(&path).unwrap();
}

/// A request that is cut short is answered only if the answer can be matched, and then with what
/// was read before the fault.
#[test]
fn r06_the_answer_to_a_request_that_is_cut_short_can_be_read() {
    let mut house = Plan::limits(&[limit("all", "", 1)]).start();
    let mut terminal = house.terminal();
    terminal.send(&Message::sale(CARD, 1).encode());
    house.at_host.receive();
    let request = Message::sale(CARD, 2);
    let whole = request.encode();
    let mut answered = 0;
    for end in 5..whole.len() {
        terminal.send(&whole[..end]);
        let marker = Message::sale(CARD, 3).mti("0120").encode();
        terminal.send(&marker);
        let arrived = house.at_host.receive();
        if arrived != marker {
            assert_eq!(arrived, &whole[..end]);
            assert_eq!(house.at_host.receive(), marker);
            continue;
        }
        answered += 1;
        let answer = Message::decode(&terminal.receive());
        assert_eq!((answer.get(0), answer.get(39)), (Some("0110"), Some("91")));
        assert_eq!(answer.get(11), request.get(11));
        for (field, value) in answer.0.iter().filter(|(field, _)| ![0, 39].contains(*field)) {
            assert_eq!(Some(value.as_str()), request.get(*field), "field {field}");
        }
    }
    assert!(answered > 50, "{answered}");
}

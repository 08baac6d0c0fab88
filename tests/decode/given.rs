//! How a message is given, and what is no way of giving one.

use std::io::Write;
use std::process::{Command, Stdio};

use super::{CONFIGURATION, FAULTY, SOUND, Said, USAGE, decode, temporary};
use crate::support::hex::{from_hex, to_hex};
use crate::support::message::Message;
use crate::support::proxy::tollgate;

fn decode_from_standard_input(arguments: &[&str], input: &[u8]) -> Said {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .arg("decode")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    Said::of(child.wait_with_output().unwrap())
}

/// 0800 with field 11 = 000123.
const ECHO: &str = "3038303030303230303030303030303030303030303030313233";

#[test]
fn a_message_is_taken_from_wherever_it_is() {
    let dialect = ["--dialect", "iso87_ascii"];
    let expected = decode(&[&dialect[..], &[ECHO]].concat());
    assert_eq!(expected.code, SOUND, "{}{}", expected.out, expected.err);
    assert!(expected.out.contains("000123"), "{}", expected.out);
    let bytes = from_hex(ECHO);
    let spaced: Vec<&str> = (0..ECHO.len()).step_by(4).map(|at| &ECHO[at..at + 4]).collect();
    let hex_file = temporary("hex", format!("{}\n", spaced.join(" \t\r\n")).as_bytes());
    let raw_file = temporary("raw", &bytes);
    let blanks = spaced.join(" ");
    let given: [&[&str]; 4] = [&[&blanks], &spaced, &[&hex_file], &[&raw_file]];
    for given in given {
        let said = decode(&[&dialect[..], given].concat());
        assert_eq!((said.code, said.out, said.err), (SOUND, expected.out.clone(), String::new()));
    }
    for input in [ECHO.as_bytes(), &bytes] {
        let said = decode_from_standard_input(&[&dialect[..], &["-"]].concat(), input);
        assert_eq!((said.code, said.out), (SOUND, expected.out.clone()));
    }
}

/// An echo in ASCII is nothing but digits.
#[test]
fn a_file_of_digits_is_hexadecimal_unless_only_its_digits_are_a_message() {
    let raw = from_hex(ECHO);
    assert!(raw.iter().all(u8::is_ascii_digit));
    let said = decode(&["--dialect", "iso87_ascii", &temporary("digits", &raw)]);
    assert!(said.code == SOUND && said.out.contains("000123"), "{}", said.out);
    let bcd = temporary("bcd", b"08000020000000000000000456");
    let said = decode(&["--dialect", "iso87_bcd", &bcd]);
    assert!(said.code == SOUND && said.out.contains("000456"), "{}", said.out);
    // Neither is without a fault: as hexadecimal, then.
    let said =
        decode(&["--dialect", "iso87_bcd", &temporary("neither", b"0800002000000000000000")]);
    assert!(said.code == FAULTY && said.out.contains(" 11 bytes"), "{}", said.out);
}

#[test]
fn control_characters_of_a_message_do_not_reach_the_terminal() {
    let nasty = Message::sale("4111111111111111", 7)
        .with(41, "\x1b]0;x\x07\nA")
        .with(42, "\x1b[2J\u{7f}\r\x00SHOP    ");
    let hex = to_hex(&nasty.encode());
    for more in [&[][..], &["--json"]] {
        let said = decode(&[&["--dialect", "iso87_ascii"], more, &[&hex]].concat());
        assert_eq!(said.code, SOUND, "{}", said.out);
        assert!(said.out.contains(".]0;x..A") && said.out.contains(".[2J...SHOP"), "{}", said.out);
        assert!(said.out.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", said.out);
    }
}

#[test]
fn a_command_line_at_fault_is_a_usage_error_that_repeats_nothing() {
    let card = "4111111111111111";
    let odd = format!("{card}4");
    let no_file = format!("./{card}.hex");
    let twice = format!("{card}.hex");
    let empty = temporary("empty", b"");
    let ascii = ["--dialect", "iso87_ascii"];
    for (arguments, words) in [
        (vec![card], "--dialect"),
        (vec!["--dialect", "iso87", card], "there is no such dialect; there are iso87_ascii, "),
        ([&ascii[..], &["--framing", "be17", card]].concat(), "unknown framing; write be16,"),
        ([&ascii[..], &["--header", "tpdu+0", card]].concat(), "unknown header; write one of none"),
        ([&ascii[..], &[&odd]].concat(), "INPUT has 17 hexadecimal digits: a byte takes two"),
        ([&ascii[..], &[&no_file]].concat(), "neither hexadecimal digits nor a file"),
        ([&ascii[..], &[&twice, card]].concat(), "neither hexadecimal digits nor a file"),
        ([&ascii[..], &[" "]].concat(), "INPUT is empty"),
        ([&ascii[..], &[&empty]].concat(), "INPUT is empty"),
        (ascii.to_vec(), "INPUT"),
        ([&ascii[..], &["--xml", card]].concat(), "--xml"),
    ] {
        let said = decode(&arguments);
        assert_eq!((said.code, said.out.as_str()), (USAGE, ""), "{arguments:?}");
        assert!(said.err.contains(words), "{arguments:?}: {}", said.err);
        assert!(!said.err.contains("41111"), "{arguments:?}: {}", said.err);
    }
}

/// The page on dialects ends with a sample message, which is for the dialect that it builds.
#[test]
fn the_sample_of_the_page_on_dialects_is_decoded() {
    let page = include_str!("../../docs/dialects.md");
    let (_, toml) = page.split_once("```toml\n").expect("a configuration");
    let config = temporary("page.toml", toml.split_once("```").unwrap().0.as_bytes());
    let (_, command) = page.split_once("tollgate decode").expect("a command");
    let hex = command.lines().nth(1).unwrap().trim();
    let said = decode(&["--config", &config, "--dialect", "domestic", hex]);
    assert_eq!((said.code, said.err.as_str()), (SOUND, ""), "{}", said.out);
    assert!(said.out.contains("378282*****0005") && said.out.contains("SHOP0001"), "{}", said.out);
}

/// The command line's own errors quote what they do not understand.
#[test]
fn a_message_in_a_wrong_place_of_the_command_line_is_not_repeated() {
    let in_option = format!("--json={ECHO}");
    for arguments in [&[ECHO][..], &["decode", "--dialect", "iso87_ascii", &in_option, ECHO]] {
        let said = Said::of(tollgate(arguments));
        assert_eq!((said.code, said.out.as_str()), (USAGE, ""), "{arguments:?}");
        assert!(said.err.contains("may hold a message"), "{}", said.err);
        assert!(!said.err.contains(&ECHO[..8]), "{}", said.err);
    }
}

#[test]
fn a_configuration_at_fault_is_said_with_its_faults() {
    let config = temporary("wrong.toml", b"[dialect.own]\nbasis = \"iso87_bcd\"\n");
    let said = decode(&["--config", &config, "--dialect", "iso87_ascii", ECHO]);
    assert_eq!((said.code, said.out.as_str()), (CONFIGURATION, ""));
    assert!(said.err.contains("line 2: "), "{}", said.err);
}

#[test]
fn an_input_of_more_than_16_mib_is_refused() {
    let large = temporary("large", &vec![0; (16 << 20) + 1]);
    let said = decode(&["--dialect", "iso87_ascii", "--framing", "be16", &large]);
    std::fs::remove_file(large).unwrap();
    assert_eq!((said.code, said.out.as_str()), (USAGE, ""));
    assert!(said.err.contains("larger than 16 MiB: nothing was decoded"), "{}", said.err);
}

//! `tollgate demo`, as a newcomer runs it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

use std::process::Command;

/// The shortest card number that is one.
const CARD_DIGITS_MIN: usize = 13;

#[test]
fn a_newcomer_sees_who_is_refused_and_that_every_promise_holds() {
    let demo = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["demo", "--seconds", "3"])
        .output()
        .unwrap();
    let (out, err) = (text(&demo.stdout), text(&demo.stderr));
    assert!(demo.status.success(), "{out}\n{err}");
    assert_eq!(err, "", "nothing disturbs the table");

    for second in ["   1s", "   2s", "   3s"] {
        let row = line(&out, second);
        let columns: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(columns.len(), 14, "{row}");
        let limit: u64 = columns[3].parse().unwrap();
        assert!(limit > 0, "requests are refused in every second: {row}");
    }
    for happening in ["the host is slow", "itself again", "the standby takes over"] {
        assert!(out.contains(happening), "{out}");
    }
    for name in ["cards 555555, everyday shops", "cards 411111, shop TICKETS"] {
        let row = line(&out, &format!("  {name}"));
        assert!(row.ends_with("<-- over its limit"), "{row}");
        assert!(refused(row) > 0.0, "{row}");
    }
    for name in ["cards 411111, everyday shops", "cards 601100, everyday shops"] {
        assert_eq!(refused(line(&out, &format!("  {name}"))), 0.0, "{out}");
    }
    assert_eq!(out.matches("[held  ]").count(), 5, "{out}");
    assert!(!has_card_number(&out) && !has_card_number(&err), "{out}\n{err}");
}

#[test]
fn a_duration_that_is_no_demo_is_refused_as_usage() {
    for seconds in ["1", "3601", "soon"] {
        let demo = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["demo", "--seconds", seconds])
            .output()
            .unwrap();
        assert_eq!(demo.status.code(), Some(64), "{seconds}");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    let found = text.lines().find(|line| line.starts_with(start));
    found.unwrap_or_else(|| panic!("no line {start:?} in\n{text}"))
}

/// The last number of a line.
fn refused(row: &str) -> f64 {
    row.split_whitespace().rev().find_map(|word| word.parse().ok()).unwrap()
}

fn has_card_number(text: &str) -> bool {
    let runs = text.split(|character: char| !character.is_ascii_digit());
    runs.into_iter().any(|digits| digits.len() >= CARD_DIGITS_MIN)
}

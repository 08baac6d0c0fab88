//! What must be in nothing that is printed, and the search for it.

use std::collections::BTreeSet;

use crate::rows::{Row, SHOWN};
use crate::support::hex::to_hex;
use crate::support::luhn;

/// So many characters of a hidden value in a row are a leak. Six of a card number may be shown.
const RUN: usize = 9;

/// Pieces of all values of a row that are hidden, in characters and as bytes in hexadecimal digits.
pub(crate) fn secrets(row: &Row) -> BTreeSet<String> {
    let mut secrets = BTreeSet::new();
    let (shown, hidden): (Vec<_>, Vec<_>) =
        row.fields().into_iter().partition(|(de, _)| SHOWN.contains(de));
    for (de, value) in hidden {
        for run in value.as_bytes().windows(RUN) {
            let text = String::from_utf8(run.to_vec()).unwrap();
            // A row of zeros says nothing and is in every other number.
            let is_shown = shown.iter().any(|(_, value)| value.contains(&text));
            let says_much = run.iter().collect::<BTreeSet<_>>().len() > 3;
            if !is_shown && (says_much || is_of_card(de, &value)) {
                secrets.insert(to_hex(text.as_bytes()));
                secrets.insert(text);
            }
        }
    }
    secrets
}

/// Test cards are rows of the same digit and are looked for all the same.
fn is_of_card(de: u8, value: &str) -> bool {
    de == 2 && value.len() >= 13
}

/// Asserts that nothing of `secrets` is in what was printed, nor a card number of anybody.
#[track_caller]
pub(crate) fn assert_silent(what: &str, secrets: &BTreeSet<String>, printed: &str) {
    for secret in secrets {
        assert!(!printed.contains(secret.as_str()), "{what}: {secret} in:\n{printed}");
    }
    let digits = printed.as_bytes();
    for length in 13..=19 {
        for run in digits.windows(length) {
            let card = run.iter().all(u8::is_ascii_digit) && luhn::passes(run);
            assert!(!card, "{what}: {} in:\n{printed}", String::from_utf8_lossy(run));
        }
    }
}

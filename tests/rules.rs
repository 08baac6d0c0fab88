//! The acceptance rules of payments (R1 and so on), each on real sockets, each test under its rule.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    unreachable_pub,
    reason = "a test states its expectations"
)]

mod support;

#[path = "rules/answers.rs"]
mod answers;
#[path = "rules/bytes.rs"]
mod bytes;
#[path = "rules/codes.rs"]
mod codes;
#[path = "rules/host_down.rs"]
mod host_down;
#[path = "rules/keys.rs"]
mod keys;
#[path = "rules/once.rs"]
mod once;
#[path = "rules/order.rs"]
mod order;
#[path = "rules/protected.rs"]
mod protected;

/// Test card numbers of different issuers.
const CARD: &str = "4111111111111111";
const OTHER_CARD: &str = "5555555555554444";

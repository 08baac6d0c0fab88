//! Kinds of bugs that others had on the wire, looked for in every framing and every dialect: pieces
//! of frames and several in one, lengths that are none, keepalives, bytes that are missing or too
//! many, fields that nobody knows.
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

#[path = "bug_kinds/content.rs"]
mod content;
#[path = "bug_kinds/framings.rs"]
mod framings;
#[path = "bug_kinds/headers.rs"]
mod headers;
#[path = "bug_kinds/samples.rs"]
mod samples;
#[path = "bug_kinds/ways.rs"]
mod ways;

//! Public bug reports about the wire, each played with its own bytes against the real binary: what
//! others got wrong is right here, and whatever a session sends, the next good message goes its way.
//!
//! The reports and what becomes of them are data (`fixtures/bug_reports`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub,
    reason = "a test states its expectations"
)]

mod support;

#[path = "bug_reports/content.rs"]
mod content;
#[path = "bug_reports/correlation.rs"]
mod correlation;
#[path = "bug_reports/echoes.rs"]
mod echoes;
#[path = "bug_reports/growth.rs"]
mod growth;
#[path = "bug_reports/keepalives.rs"]
mod keepalives;
#[path = "bug_reports/lengths.rs"]
mod lengths;
#[path = "bug_reports/play.rs"]
mod play;
#[path = "bug_reports/reports.rs"]
mod reports;
#[path = "bug_reports/severity.rs"]
mod severity;
#[path = "bug_reports/slow.rs"]
mod slow;
#[path = "bug_reports/storms.rs"]
mod storms;
#[path = "bug_reports/streams.rs"]
mod streams;
#[path = "bug_reports/too_long.rs"]
mod too_long;

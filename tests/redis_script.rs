//! The script says to a real Redis exactly what the store in process says.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs,
    reason = "a test states its expectations"
)]

#[path = "redis_script/group.rs"]
mod group;
#[path = "redis_script/sequence.rs"]
mod sequence;
#[path = "redis_script/server.rs"]
mod server;
#[path = "redis_script/state.rs"]
mod state;
#[path = "redis_script/timed.rs"]
mod timed;

use group::Ends;
use server::RedisServer;

/// Of a hundred sequences each.
const GROUPS: &str = "0-199";

#[test]
fn twenty_thousand_random_sequences_of_calls_are_answered_alike() {
    let groups = std::env::var("TOLLGATE_SCRIPT_GROUPS");
    let groups = groups.as_deref().unwrap_or(GROUPS);
    let (first, last) = groups.split_once('-').expect("first-last");
    let server = RedisServer::start();
    let mut listener = server.connect();
    let mut ends = Ends::new(server.connect(), &mut listener);
    let (mut calls, mut reports) = (0, 0);
    for group in first.parse::<u64>().unwrap()..=last.parse().unwrap() {
        let (more_calls, more_reports) = group::play(&mut ends, group);
        calls += more_calls;
        reports += more_reports;
    }
    assert!(calls > 0 && reports > calls, "{calls} calls, {reports} reports");
}

//! The Redis servers that other tests stand on: each kind starts, answers, fails as it is told to and
//! leaves no process behind.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

mod support;

#[path = "redis_processes/cluster.rs"]
mod cluster;
#[path = "redis_processes/relay.rs"]
mod relay;
#[path = "redis_processes/sentinel.rs"]
mod sentinel;
#[path = "redis_processes/server.rs"]
mod server;

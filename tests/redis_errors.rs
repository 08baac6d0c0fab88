//! A Redis in every kind of trouble, before real nodes with real messages: who keeps to a limit is
//! never refused in `local` mode, an abuser is bounded, metrics and log say what is wrong, and leases
//! come back by themselves.
//!
//! Most nodes meet their Redis by way of a relay that misbehaves on demand. Nothing is waited for but
//! conditions.

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

#[path = "redis_errors/answers.rs"]
mod answers;
#[path = "redis_errors/connections.rs"]
mod connections;
#[path = "redis_errors/deaths.rs"]
mod deaths;
#[path = "redis_errors/foreign_keys.rs"]
mod foreign_keys;
#[path = "redis_errors/late_answers.rs"]
mod late_answers;
#[path = "redis_errors/lost_answers.rs"]
mod lost_answers;
#[path = "redis_errors/nobody_there.rs"]
mod nobody_there;
#[path = "redis_errors/node.rs"]
mod node;
#[path = "redis_errors/pushes.rs"]
mod pushes;
#[path = "redis_errors/redirections.rs"]
mod redirections;
#[path = "redis_errors/rights.rs"]
mod rights;
#[path = "redis_errors/servers.rs"]
mod servers;
#[path = "redis_errors/stored.rs"]
mod stored;
#[path = "redis_errors/storm.rs"]
mod storm;
#[path = "redis_errors/traffic.rs"]
mod traffic;

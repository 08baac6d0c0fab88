//! Real Redis processes, each with a directory and ports of its own, and a relay that stands before
//! them and misbehaves. All of them listen on loopback alone and keep nothing on disk.
//!
//! ```text
//!  tollgate ── TCP ──> Relay ── TCP ──> RedisServer <── unix socket ── the test
//!               delays, loses, refuses,   alone, or one of a RedisCluster
//!               answers by itself         or of a Watched (Sentinel)
//! ```

pub mod certificates;
pub mod cluster;
pub mod ledger;
pub mod plan;
pub mod port;
pub mod relay;
pub mod sentinel;
pub mod server;

pub use cluster::RedisCluster;
pub use plan::{Account, ServerPlan, Tls};
pub use relay::{Relay, faults};
pub use sentinel::Watched;
pub use server::RedisServer;

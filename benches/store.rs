//! What leasing costs a Redis: a call of the script by its keys, and a cluster of eight nodes with ten
//! thousand keys, played for real against a server of its own.
//!
//! `cargo bench --bench store` takes about a minute and prints the tables of `docs/leasing.md`. What a
//! call costs is the server's own account of it, `usec` of `INFO commandstats`, which is the script
//! alone, and the CPU time of the whole server, which reads, writes and publishes as well.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench states its expectations and prints its table"
)]

#[path = "store/calls.rs"]
mod calls;
#[path = "store/cluster.rs"]
mod cluster;
#[path = "store/info.rs"]
mod info;
#[path = "../tests/redis_script/server.rs"]
mod server;

fn main() {
    // As a test of all targets runs it, there is nothing to see.
    if std::env::args().any(|argument| argument == "--bench") {
        calls::print_table();
        cluster::print_table();
    }
}

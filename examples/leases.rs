//! Plays the cluster simulation from the command line and prints its table.
//!
//! `cargo run --release --example leases -- table` is the whole of it: every workload over forty
//! seeds. It ends with 1 if something is not as it must be.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "the worlds are those of a test, which states its expectations"
)]

#[path = "../tests/cluster_simulation/mod.rs"]
mod cluster;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match cluster::command::run(&arguments, &mut std::io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) | Err(_) => ExitCode::FAILURE,
    }
}

//! What integration tests stand on: the real binary as a child process, a host and clients that are
//! nothing but sockets, and messages.
//!
//! Everything waits on a condition with one generous limit, and never sleeps for an effect.

#![allow(dead_code, unused_imports, reason = "each test binary uses its own part of this")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    clippy::print_stdout,
    missing_docs,
    unreachable_pub,
    reason = "a test states its expectations"
)]

pub mod config;
pub mod csv;
pub mod fixtures;
pub mod framing;
pub mod header;
pub mod host;
pub mod house;
pub mod load;
pub mod luhn;
pub mod message;
pub mod peer;
pub mod process;
pub mod proxy;
pub mod redis;
pub mod simulated;
pub mod store_house;
pub mod temp_dir;
pub mod under_load;

use std::time::Duration;

pub(crate) use fixtures::hex;

/// What happens at all happens within this, on any machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `condition` gives something.
#[track_caller]
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let clock = tollgate::clock::Clock::start();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(clock.now().since(tollgate::clock::Moment::START) < PATIENCE, "never: {what}");
        // Between two looks, not for an effect.
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

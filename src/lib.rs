//! tollgate: an ISO 8583 TCP ingress proxy between card network links and an issuer's
//! authorization host.
//!
//! A pure core (`wire`, `iso8583`, `limits`, `gate`, `exchange`) takes bytes and time and says what
//! to do; shells (`net`, `worker`, `admin`, `server`) own sockets, clocks, logs and metrics.
//! `docs/architecture.md` is the map of the house; `tests/layers.rs` holds it to it.

pub mod admin;
pub mod cli;
pub mod clock;
pub mod config;
pub mod count;
pub mod exchange;
pub mod gate;
pub mod iso8583;
pub mod limits;
pub mod metrics;
pub mod net;
pub mod pan;
pub mod peers;
pub mod probe;
pub mod quota;
pub mod reason;
pub mod server;
pub mod traffic;
pub mod wire;
pub mod worker;

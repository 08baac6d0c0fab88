//! The other two ends of the line, simulated: a card network and an authorization host.
//!
//! They are for the demo, for load tests and for integration tests: real sockets, real messages,
//! nothing prepared. They listen and connect wherever they are told and end by themselves. Nothing
//! on the way of a real message uses them, and unlike the proxy they build messages, of invented
//! test cards alone.
//!
//! ```text
//!  Network: pacer ──> sessions ══ TCP ══> (tollgate) ══ TCP ══> Host: connections
//!              arrivals at a rate,                               answers by a script
//!              whatever the answers do
//! ```

mod card;
mod host;
mod latencies;
mod message;
mod network;

pub use card::Card;
pub use host::{Behaviour, Host, HostSettings, Latency, Script};
pub use latencies::Latencies;
pub use message::{EncodeError, FieldError, Message};
pub use network::{Flow, FlowTally, Kind, KindTally, Mix, Network, NetworkSettings, Shop, Tally};

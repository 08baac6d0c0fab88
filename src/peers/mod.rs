//! The other two ends of the line, simulated: a card network and an authorization host.
//!
//! They are for the demo, for load tests and for integration tests: real sockets, real messages,
//! nothing prepared. They listen and connect wherever they are told and end by themselves. Nothing
//! on the way of a real message uses them, and unlike the proxy they build messages, of invented
//! test cards alone.
//!
//! ```text
//!  Network: sessions ══ TCP ══> (tollgate) ══ TCP ══> Host: answers by a script
//!     at a rate, whatever the                         Echo: answers at once, as
//!     answers do, or in a window                            cheaply as can be
//! ```

mod card;
mod echo;
mod host;
mod inbox;
mod latencies;
mod message;
mod network;
mod poll;

pub use echo::Echo;
pub use host::{
    AtTheEnd, Behaviour, Closing, Exception, Host, HostSettings, HostTally, Latency, Match, Phase,
    Phases, Script,
};
pub use latencies::Latencies;
pub use message::{EncodeError, FieldError, Message};
pub use network::{
    Choice, Flow, FlowTally, Kind, KindTally, Mix, MixError, Network, NetworkError,
    NetworkSettings, NoTemplate, Pace, Retry, Shop, Stopper, Tally, Usage,
};

//! Sockets: listening, accepted sessions, connections to the host.
//!
//! It owns buffers and sockets and knows `wire`, so that it can tell where a frame begins; it knows
//! no field, no limit and no verdict. [`stream`] is the only place that names a TCP stream.

pub mod buffer;
pub mod host_queue;
pub mod listener;
pub mod session;
pub mod stream;
pub mod upstream;

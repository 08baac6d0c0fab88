//! The wire: how a byte stream is cut into frames, and what stands in a frame before the MTI.
//!
//! Bytes in, frames out, and back. It knows no field of a message (that is `iso8583`) and no socket
//! (that is `net`); a frame is copied here only to join it to an outgoing buffer, or to put together
//! one that came in parts.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod fault;
mod framing;
mod header;
mod splitter;

pub use fault::{FrameError, LikelyCause};
pub use framing::Framing;
pub use header::{Header, HeaderFault, Opened, RejectCode};
pub use splitter::{Split, Splitter};

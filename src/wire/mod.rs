//! The wire: how a byte stream is cut into frames, and what stands in a frame before the MTI.
//!
//! Bytes in, frames out, and back. It knows no field of a message (that is `iso8583`) and no socket
//! (that is `net`); a frame is never copied here but for being joined to an outgoing buffer.

#![deny(clippy::arithmetic_side_effects)]

mod framing;
mod header;

pub use framing::{FrameError, Framing, LikelyCause, Split};
pub use header::Header;

//! Free ports that stay free while a server is down.
//!
//! The system hands out the ports of its own range to whoever connects or listens on port 0, as the
//! tests do all the time. A server that is to come back on its port would find it taken, and a
//! client that keeps dialling one of them may even connect to itself. So these ports lie below.

use std::net::{Ipv4Addr, TcpListener};

/// The system's own begin at 32768 unless somebody has changed that.
const PORTS: std::ops::Range<u16> = 10_000..22_000;
/// A node of a cluster speaks to the others so much higher, unless it is told otherwise.
const BUS_OFFSET: u16 = 10_000;

/// A port that nobody listens on, neither on it nor on its bus port. Another test may take it before
/// its server does, which then says so and is given another.
pub fn free_port() -> u16 {
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    std::iter::repeat_with(|| fastrand::u16(PORTS))
        .take(1_000)
        .find(|port| is_free(*port) && is_free(port + BUS_OFFSET))
        .expect("a free port")
}

//! The store on Redis: one server, one that Sentinel names, or a Cluster.
//!
//! [`script`] says what one call is to a Redis and reads what it answers; what the answer means is
//! [`protocol`](super::protocol)'s.

pub mod script;

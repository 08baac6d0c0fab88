//! Quota: how the nodes of a cluster share one bucket per key without asking anyone while they
//! decide.
//!
//! A **lease** is the level of the bucket, not a block of tokens. Each node decides on its own copy
//! (`limits`), reports in the background how many tokens it has spent so far, and each reply is the
//! level at the moment of the report. [`protocol`] is the one definition of what a store does with a
//! report, [`embedded`] holds such a store in process, and [`sync`] decides when a node reports what.
//! `docs/leasing.md` explains it all to a reader who has never seen it.
//!
//! Nothing here is on the path of a message.

pub mod embedded;
pub mod protocol;
pub mod redis;
pub mod sync;
pub mod task;

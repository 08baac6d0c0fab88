//! The atomics of cells, marks, leases and turns. They stand here by themselves so that a model
//! checker's can take their place: `tests/cell_loom.rs` builds the same files over those of loom.

pub(super) use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering, fence};

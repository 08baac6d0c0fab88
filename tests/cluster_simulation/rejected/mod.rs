//! Designs that were rejected, played in the same worlds.

mod blocks;
mod demand;
mod share;
mod till;
mod timer;

pub(crate) use blocks::FixedBlocks;
pub(crate) use demand::DemandLease;
pub(crate) use share::StaticShare;
pub(crate) use timer::TimerOnly;

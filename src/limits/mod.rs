//! Limits: token buckets per merchant, per BIN and over all, and the one order they are asked in.
//!
//! [`rule`] is what an operator asks for, [`policy`] decides by it, [`cell`] is one bucket. Between
//! them stand the bounded table of keys nobody named, the keys somebody did, and the turns by which
//! a slot of the table is known to be out of everybody's hands.
//!
//! This module reads no clock, draws no random number, logs nothing and knows no message: time,
//! seeds and [`Traffic`](crate::traffic::Traffic) are arguments. Nothing here waits for a network.

pub mod cell;
mod id;
mod named;
pub mod policy;
pub mod rule;
mod table;
mod turns;

pub use policy::{Charge, Decision, LIMITS_MAX, LimitInfo, LimitIx, LimitSet, Policy};
pub use rule::{Burst, KeyMatch, Mode, Per, Rate, Rule, RuleKey};
pub use turns::Turn;

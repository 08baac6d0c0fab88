//! Limits: token buckets per merchant, per BIN and more, and the one order they are asked in.
//!
//! [`rule`] is what an operator asks for, [`policy`] decides by it, [`cell`] is one bucket. Between
//! them stand the plan of which limits can apply, the bounded table of keys nobody named, the keys
//! somebody did, and the turns by which a slot of the table is known to be out of everybody's hands.
//! [`finding`] tells an operator how they stand to one message.
//!
//! This module reads no clock, draws no random number, logs nothing and knows no message: time,
//! seeds and [`Traffic`](crate::traffic::Traffic) are arguments. Nothing here waits for a network.

mod ahead;
mod atomic;
pub mod cell;
mod choice;
mod conforming;
pub mod finding;
pub mod grant;
mod id;
mod key_name;
pub mod lease;
mod leasing;
mod limit;
mod limit_set;
mod marks;
mod named;
mod part;
mod per;
mod plan;
pub mod policy;
pub mod rule;
mod store_key;
mod table;
mod turns;

pub use ahead::LOOK_AHEAD;
pub use finding::{Beside, Bucket, Filter, Holder, Left, Standing};
pub use id::Digests;
pub use lease::{Hold, Leases, OnLoss, Terms};
pub use leasing::{Leased, Place, Role};
pub use limit_set::{LIMITS_MAX, LimitIx, LimitSet};
pub use per::{Dimension, Per};
pub use policy::{Charge, Decision, Policy};
pub use rule::{
    Amount, BinRange, Burst, KeyMatch, MccRange, Mode, Rate, Reserve, Rule, RuleKey, Share, When,
};
pub use store_key::{SHARDS_MAX, StoreKey};
pub use turns::Turn;

//! ISO 8583 messages: how one is read where it lies, and how an answer is spliced from it.
//!
//! A [`Dialect`] says as data how one network lays its fields out; a [`View`] walks a message once
//! and keeps offsets; a [`Composer`] builds an answer from the request's own bytes. Nothing here
//! rebuilds a message that passes through, decides what is answered, or knows framing, headers,
//! time or limits. A peer's bytes come in through [`View::parse`] and can make it fail, not panic.

// Lengths and offsets come from a peer: arithmetic says what happens at its ends.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod bitmap;
mod code;
mod composer;
mod describe;
mod dialect;
mod ebcdic;
mod fault;
mod field;
mod field_set;
mod layout;
mod length;
mod mti;
mod reader;
mod reply;
mod steps;
mod table;
mod view;
mod walk;
mod words;

pub use bitmap::{BitmapEncoding, BitmapLayout, BitmapRule, THIRD_BITMAP};
pub use code::{LocalCode, approves};
pub use composer::Composer;
pub use describe::{Bitmap, DescribedFault, DescribedField, Description, Shown};
pub use dialect::Dialect;
pub(crate) use ebcdic::from_ascii as to_ebcdic;
pub use fault::{Fault, FaultKind, Unreadable};
pub use field::{Content, DataEncoding, FieldSpec, Misfit, Padding, Unit};
pub use field_set::{FieldSet, FieldSetIter};
pub use length::{Length, LengthEncoding, LengthKind, Prefix};
pub use mti::{Mti, MtiEncoding, MtiPart};
pub use reply::{NEVER_ECHOED, NoReply, Slot, can_say, compose};
pub use table::{RowFault, TableError};
pub use view::View;
pub use walk::Spans;

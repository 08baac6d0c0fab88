//! Framings and headers as they are named on the command line.

use crate::wire::{Framing, Header};

/// The framing of this name, or the names that there are.
pub(super) fn framing(name: &str) -> Result<Framing, String> {
    Framing::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Framing::ALL.iter().map(|framing| framing.name()).collect();
        format!("unknown framing; write {} or ascii:2 to ascii:8", names.join(", "))
    })
}

/// The header of this name, or the names that there are.
pub(super) fn header(name: &str) -> Result<Header, String> {
    Header::from_name(name).ok_or_else(|| {
        let names = Header::NAMES.join(", ");
        format!("unknown header; write one of {names} (N from 1 to 64)")
    })
}

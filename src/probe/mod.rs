//! What has to hold whatever bytes a peer sends, stated once for all who make bytes up: the fuzz
//! targets in `fuzz/`, their corpus in `tests/fuzz_corpus.rs`, and `tests/mutations.rs`.
//!
//! Each function takes any bytes at all. The first few choose how the rest is read (a choice counts
//! round, so that every byte is one), the rest is what a peer sent. It panics when a promise of
//! `wire` or `iso8583` is broken and at nothing else, and says how far it came, so that whoever
//! makes bytes up sees that they are not all refused at the door. Nothing of the daemon calls it.

mod reply;
mod view;

use std::sync::LazyLock;

pub use reply::{REPLY_HEAD_BYTES, reply};
pub use view::{VIEW_HEAD_BYTES, view};

use crate::iso8583::Dialect;

/// The presets in their order. A table is read once: reading it takes longer than a probe.
static DIALECTS: LazyLock<Vec<Dialect>> =
    LazyLock::new(|| Dialect::PRESETS.iter().filter_map(|name| Dialect::preset(name)).collect());

/// The preset that a byte chooses.
fn dialect(choice: u8) -> Option<&'static Dialect> {
    DIALECTS.iter().cycle().nth(usize::from(choice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_chosen() {
        for (choice, name) in (0..).zip(Dialect::PRESETS) {
            assert_eq!(dialect(choice), Dialect::preset(name).as_ref(), "{name}");
        }
        assert!((0..=255).all(|choice| dialect(choice).is_some()));
    }
}

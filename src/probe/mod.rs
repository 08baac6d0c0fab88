//! What has to hold whatever bytes a peer sends, stated once for all who make bytes up: the fuzz
//! targets in `fuzz/`, their corpus in `tests/fuzz_corpus.rs`, and `tests/mutations.rs`.
//!
//! Each function takes any bytes at all. The first few choose how the rest is read (a choice counts
//! round, so that every byte is one), the rest is what a peer sent. It panics when a promise of
//! `wire` or `iso8583` is broken and at nothing else, and says how far it came, so that whoever
//! makes bytes up sees that they are not all refused at the door. Nothing of the daemon calls it.

mod reply;
mod split;
mod view;

use std::sync::LazyLock;

pub use reply::{REPLY_HEAD_BYTES, reply};
pub use split::{SPLIT_HEAD_BYTES, split};
pub use view::{VIEW_HEAD_BYTES, view};

use crate::iso8583::{BitmapEncoding, Dialect};
use crate::wire::{Framing, Header};

/// One header of each kind, and of the kinds with a length its least, its most and one between.
pub const HEADERS: [Header; 10] = [
    Header::None,
    Header::Tpdu { application_bytes: 0 },
    Header::Visa,
    Header::Base24,
    Header::Tpdu { application_bytes: 6 },
    Header::Tpdu { application_bytes: 64 },
    Header::Fixed { bytes: 1 },
    Header::Fixed { bytes: 9 },
    Header::Fixed { bytes: 12 },
    Header::Fixed { bytes: 64 },
];

/// Numbers of ASCII digits that [`Framing::ALL`] has no framing of.
const DIGITS: [u8; 6] = [2, 3, 5, 6, 7, 8];

/// Presets that stand here a second time, with a third bitmap in place of field 65, in each way of
/// writing one.
pub const WITH_THIRD_BITMAP: [(&str, BitmapEncoding); 3] = [
    ("iso87_ascii", BitmapEncoding::HexAscii),
    ("iso87_bcd", BitmapEncoding::Binary),
    ("iso93_ebcdic", BitmapEncoding::HexEbcdic),
];

/// A table is read once: reading it takes longer than a probe.
static DIALECTS: LazyLock<Vec<Dialect>> = LazyLock::new(|| {
    let presets = Dialect::PRESETS.iter().filter_map(|name| Dialect::preset(name));
    let others = WITH_THIRD_BITMAP.into_iter().filter_map(|(preset, encoding)| {
        let mut dialect = Dialect::preset(preset)?;
        dialect.define_third_bitmap(encoding, "third bitmap").ok()?;
        // Fields of a length of their own at both ends and between.
        let spec = *dialect.field(2)?;
        for de in [129, 130, 192] {
            dialect.define(de, spec, "field of the third bitmap").ok()?;
        }
        Some(dialect)
    });
    presets.chain(others).collect()
});

/// Every dialect in the order in which a byte chooses one: the presets in theirs, then those of
/// [`WITH_THIRD_BITMAP`], which have fields 129, 130 and 192 like field 2.
pub fn dialects() -> impl Iterator<Item = &'static Dialect> + Clone {
    DIALECTS.iter()
}

/// Every framing in the order in which a byte chooses one.
pub fn framings() -> impl Iterator<Item = Framing> + Clone {
    Framing::ALL.into_iter().chain(DIGITS.map(|digits| Framing::Ascii { digits }))
}

/// The framing that a byte chooses.
fn framing(choice: u8) -> Option<Framing> {
    framings().cycle().nth(usize::from(choice))
}

/// The dialect that a byte chooses.
fn dialect(choice: u8) -> Option<&'static Dialect> {
    dialects().cycle().nth(usize::from(choice))
}

/// The header that a byte chooses.
fn header(choice: u8) -> Option<Header> {
    HEADERS.into_iter().cycle().nth(usize::from(choice))
}

/// Where `part` lies in `whole`. It has to be a piece of it and not a copy.
fn offset(whole: &[u8], part: &[u8]) -> usize {
    let at = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
    assert!(at <= whole.len() && part.len() <= whole.len() - at, "a piece of something else");
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_framing_and_header_can_be_chosen() {
        assert_eq!(dialects().count(), Dialect::PRESETS.len() + WITH_THIRD_BITMAP.len());
        for (choice, name) in (0..).zip(Dialect::PRESETS) {
            assert_eq!(dialect(choice), Dialect::preset(name).as_ref(), "{name}");
        }
        for digits in 2..=8 {
            assert!((0..=255).any(|choice| framing(choice) == Some(Framing::Ascii { digits })));
        }
        for wanted in Framing::ALL {
            assert!((0..=255).any(|choice| framing(choice) == Some(wanted)));
        }
        for wanted in HEADERS {
            assert!((0..=255).any(|choice| header(choice) == Some(wanted)));
        }
        let chosen = |choice| (dialect(choice), framing(choice), header(choice));
        assert!((0..=255).map(chosen).all(|(a, b, c)| a.is_some() && b.is_some() && c.is_some()));
    }

    #[test]
    #[should_panic(expected = "a piece of something else")]
    fn a_copy_is_no_piece_of_the_message() {
        let body = b"0100".to_vec();
        offset(&body, &body.clone());
    }
}

//! What the walk does at each field of a dialect, worked out beforehand.
//!
//! It says how to step over a field, and nothing of what a field means.

use std::sync::Arc;

use super::bitmap::BitmapLayout;
use super::field::{DataEncoding, FieldSpec, Unit};
use super::length::{Length, LengthEncoding};

/// Field numbers are bytes, so that a table of 256 is never indexed past its end.
const FIELDS: usize = 256;

/// What the walk does at a field. Nearly all fields of ASCII dialects are of the first kinds, whose
/// data need no look at all; the others are read by [`FieldSpec::read`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Undefined,
    /// So many bytes.
    Fixed(u16),
    /// Two ASCII digits, then as many bytes, at most so many.
    Ascii2(u16),
    /// Three ASCII digits, then as many bytes, at most so many.
    Ascii3(u16),
    Other,
}

impl Step {
    pub(super) fn of(spec: &FieldSpec) -> Self {
        // What has as many bytes as units, and no digits to check.
        let plain = match spec.data {
            DataEncoding::Ascii | DataEncoding::Ebcdic | DataEncoding::Binary => true,
            DataEncoding::BcdTrack => spec.unit == Unit::Bytes,
            _ => false,
        };
        match spec.length {
            _ if !plain => Self::Other,
            Length::Fixed => Self::Fixed(spec.max),
            Length::Prefixed(prefix) => match (prefix.encoding, prefix.digits) {
                (LengthEncoding::Ascii, 2) => Self::Ascii2(spec.max),
                (LengthEncoding::Ascii, 3) => Self::Ascii3(spec.max),
                _ => Self::Other,
            },
        }
    }
}

/// How one dialect is walked: its bitmap, and a step for every field. Shared, as whoever remembers
/// where fields lie has to know that it is still walking the same dialect; a change makes another.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Steps(Arc<Every>);

#[derive(Clone, PartialEq, Eq)]
struct Every {
    bitmap: BitmapLayout,
    by_field: [Step; FIELDS],
}

impl Steps {
    /// A dialect without fields.
    pub(super) fn new(bitmap: BitmapLayout) -> Self {
        Self(Arc::new(Every { bitmap, by_field: [Step::Undefined; FIELDS] }))
    }

    #[inline]
    pub(super) fn bitmap(&self) -> BitmapLayout {
        self.0.bitmap
    }

    #[inline]
    pub(super) fn of(&self, de: u8) -> Step {
        self.0.by_field.get(usize::from(de)).copied().unwrap_or(Step::Undefined)
    }

    pub(super) fn set_bitmap(&mut self, bitmap: BitmapLayout) {
        Arc::make_mut(&mut self.0).bitmap = bitmap;
    }

    pub(super) fn set(&mut self, de: u8, step: Step) {
        if let Some(slot) = Arc::make_mut(&mut self.0).by_field.get_mut(usize::from(de)) {
            *slot = step;
        }
    }

    /// Whether these are the very same, not merely equal.
    #[inline]
    pub(super) fn are(&self, others: &Self) -> bool {
        Arc::ptr_eq(&self.0, &others.0)
    }
}

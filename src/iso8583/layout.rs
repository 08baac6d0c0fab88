//! Where the fields of messages with the same bitmap lie, remembered from one message to the next.
//!
//! A link sees few kinds of messages, and in one kind only what has a length prefix moves: all else
//! keeps its distance from the prefix before it. So a message whose bitmap is known is walked from
//! prefix to prefix. Whatever is unusual in it is left to the walk over every field, which alone
//! knows faults: nothing is remembered of a message that has one, and nothing is found out here.

use std::ops::Range;

use super::dialect::Dialect;
use super::field_set::FieldSet;
use super::reader::Reader;
use super::steps::{Step, Steps};
use super::walk::{Span, read_field};

/// So many layouts are remembered: more than the kinds of messages that make up a link's load.
const LAYOUTS: usize = 8;
/// Once there are so many, one message in so many of another kind takes a place. To learn a layout
/// takes five times as long as to walk without it: where more kinds take turns than are remembered,
/// learning each would cost more than all that is saved.
const MESSAGES_PER_PLACE: u8 = 32;
/// Of messages with more fields no layout is remembered: twice as many as busy ones have.
const FIELDS_MAX: usize = 64;
/// The longest bitmap: three words of sixteen hexadecimal digits.
const BITMAP_BYTES_MAX: usize = 48;

/// The layouts of one dialect that were met of late.
pub(super) struct Layouts {
    /// Of the dialect that they are of.
    steps: Option<Steps>,
    /// Has room for all of them from the start, so that no message makes anything allocate.
    known: Vec<Layout>,
    /// The one that was followed last: the next message is mostly of the same kind.
    last: usize,
    /// Whose place the next one takes once there are enough.
    oldest: usize,
    /// Messages of other kinds that pass before that.
    until_place: u8,
}

/// How messages with one bitmap are laid out behind it.
struct Layout {
    bitmap: [u8; BITMAP_BYTES_MAX],
    bitmap_bytes: usize,
    fields: FieldSet,
    /// Fields of fixed length, by their distance from the beginning of their stretch.
    places: [(u8, Span); FIELDS_MAX],
    stretches: [Stretch; FIELDS_MAX],
    stretches_len: usize,
}

/// Fields of fixed length one behind another, and what ends them.
#[derive(Clone, Copy)]
struct Stretch {
    /// From which to which of the places.
    from: u8,
    to: u8,
    /// The field behind them, whose length is read from the message; `None` at a message's end.
    then: Option<u8>,
    bytes: u32,
}

impl Stretch {
    /// One without fields behind so many places.
    const fn after(places: u8) -> Self {
        Self { from: places, to: places, then: None, bytes: 0 }
    }

    fn places(self) -> Range<usize> {
        usize::from(self.from)..usize::from(self.to)
    }
}

impl Default for Layouts {
    fn default() -> Self {
        Self {
            steps: None,
            known: Vec::with_capacity(LAYOUTS),
            last: 0,
            oldest: 0,
            until_place: MESSAGES_PER_PLACE,
        }
    }
}

impl Layouts {
    /// Reads a whole message behind its MTI if its bitmap is known and it has no fault: its fields.
    /// `None` leaves the reader anywhere and where fields lie unsaid.
    #[inline]
    pub(super) fn follow(
        &mut self,
        dialect: &Dialect,
        reader: &mut Reader<'_>,
        by_field: &mut [Span; 256],
    ) -> Option<FieldSet> {
        if !self.steps.as_ref()?.are(dialect.steps()) {
            return None;
        }
        let body = reader.rest();
        let layout = match self.known.get(self.last) {
            Some(last) if body.starts_with(last.bitmap()) => last,
            _ => {
                self.last =
                    self.known.iter().position(|layout| body.starts_with(layout.bitmap()))?;
                self.known.get(self.last)?
            }
        };
        layout.follow(dialect, reader, by_field)
    }

    /// May keep in mind how messages of this bitmap are laid out, of which one was read without a
    /// fault. A third bitmap between the fields is not provided for.
    #[cold]
    pub(super) fn remember(&mut self, dialect: &Dialect, bitmap: &[u8], fields: &FieldSet) {
        if self.steps.as_ref().is_none_or(|steps| !steps.are(dialect.steps())) {
            self.steps = Some(dialect.steps().clone());
            self.known.clear();
            self.oldest = 0;
        }
        if self.known.len() >= LAYOUTS {
            self.until_place = self.until_place.saturating_sub(1);
            if self.until_place > 0 {
                return;
            }
            self.until_place = MESSAGES_PER_PLACE;
        }
        let Some(layout) = Layout::of(dialect, bitmap, fields) else { return };
        if self.known.len() < LAYOUTS {
            self.known.push(layout);
        } else {
            if let Some(oldest) = self.known.get_mut(self.oldest) {
                *oldest = layout;
            }
            self.oldest = self.oldest.wrapping_add(1) % LAYOUTS;
        }
    }
}

impl Layout {
    /// `None` when there are too many fields.
    fn of(dialect: &Dialect, bitmap: &[u8], fields: &FieldSet) -> Option<Self> {
        let mut layout = Self {
            bitmap: [0; BITMAP_BYTES_MAX],
            bitmap_bytes: bitmap.len(),
            fields: *fields,
            places: [(0, Span::NOWHERE); FIELDS_MAX],
            stretches: [Stretch::after(0); FIELDS_MAX],
            stretches_len: 0,
        };
        layout.bitmap.get_mut(..bitmap.len())?.copy_from_slice(bitmap);
        let mut stretch = Stretch::after(0);
        for de in fields.iter() {
            if let Step::Fixed(bytes) = dialect.steps().of(de) {
                let start = usize::try_from(stretch.bytes).ok()?;
                let end = start.checked_add(bytes.into())?;
                *layout.places.get_mut(usize::from(stretch.to))? =
                    (de, Span::new(start, start, end));
                stretch.to = stretch.to.checked_add(1)?;
                stretch.bytes = u32::try_from(end).ok()?;
            } else {
                layout.end_stretch(Stretch { then: Some(de), ..stretch })?;
                stretch = Stretch::after(stretch.to);
            }
        }
        layout.end_stretch(stretch)?;
        Some(layout)
    }

    fn end_stretch(&mut self, stretch: Stretch) -> Option<()> {
        *self.stretches.get_mut(self.stretches_len)? = stretch;
        self.stretches_len = self.stretches_len.checked_add(1)?;
        Some(())
    }

    #[inline]
    fn bitmap(&self) -> &[u8] {
        self.bitmap.get(..self.bitmap_bytes).unwrap_or_default()
    }

    #[inline]
    fn follow(
        &self,
        dialect: &Dialect,
        reader: &mut Reader<'_>,
        by_field: &mut [Span; 256],
    ) -> Option<FieldSet> {
        reader.take(self.bitmap_bytes)?;
        for stretch in self.stretches.get(..self.stretches_len)? {
            let start = reader.at();
            for (de, place) in self.places.get(stretch.places())? {
                *by_field.get_mut(usize::from(*de))? = place.moved(start);
            }
            reader.take(stretch.bytes as usize)?;
            if let Some(de) = stretch.then {
                let start = reader.at();
                let data = read_field(dialect, de, reader).ok()?;
                *by_field.get_mut(usize::from(de))? = Span::new(start, data, reader.at());
            }
        }
        reader.is_at_end().then_some(self.fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_there_are_enough_a_kind_takes_a_place_only_when_many_messages_have_none() {
        let dialect = Dialect::preset("iso87_ascii").unwrap();
        let mut layouts = Layouts::default();
        let mut meet = |field: u8| {
            let (fields, mut bitmap) = (FieldSet::of(&[field]), Vec::new());
            dialect.bitmap().write(&fields, &mut bitmap);
            layouts.remember(&dialect, &bitmap, &fields);
            layouts.known.iter().any(|layout| layout.fields == fields)
        };
        assert!((2..10).all(&mut meet), "the first eight");
        for newcomer in 10..30 {
            let met = (1..=MESSAGES_PER_PLACE).find(|_| meet(newcomer));
            assert_eq!(met, Some(MESSAGES_PER_PLACE), "{newcomer}");
        }
        assert_eq!(layouts.known.len(), LAYOUTS);
    }
}

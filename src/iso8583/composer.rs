//! Answers of the same shape, of which only the echoed bytes differ.
//!
//! All but the bytes of the echoed fields follows from the dialect, the echo list, the type of the
//! request and which of its fields were read. A [`Shape`] is what follows; a [`Composer`] remembers
//! the shapes of late requests, since a link carries few, and an answer is composed of every request
//! that may need one. It keeps no byte of any message, and decides nothing.

use std::ops::Range;
use std::sync::Arc;

use super::bitmap::THIRD_BITMAP;
use super::code::LocalCode;
use super::dialect::Dialect;
use super::field_set::FieldSet;
use super::length::Length;
use super::mti::Mti;
use super::reply::{NEVER_ECHOED, NoReply, RESPONSE_CODE, Room, Slot, compose};
use super::view::View;

/// How many shapes a composer remembers: more than the kinds of request that one link carries.
const SHAPES_MAX: usize = 8;

/// MTI and bitmap take no more: four digits, and three words of sixteen.
const HEAD_BYTES_MAX: usize = 4 + 48;
/// Six digits of length, and the four of a code.
const CODE_BYTES_MAX: usize = 6 + 4;
const THIRD_BITMAP_BYTES_MAX: usize = 16;
/// Between two runs lies one field at least: before field 39 or behind it, and behind field 65.
const RUNS_MAX: usize = 19;
const RUNS_BEHIND_THIRD_MAX: usize = 64;

/// Composes the local answers of one link, and remembers the shapes that it gave the last of them.
#[derive(Debug)]
pub struct Composer {
    dialect: Arc<Dialect>,
    echo: FieldSet,
    /// The latest first.
    shapes: [Box<Shape>; SHAPES_MAX],
}

impl Composer {
    /// A composer of answers that echo no other fields than these. It allocates all it ever needs.
    pub fn new(dialect: Arc<Dialect>, echo: FieldSet) -> Self {
        Self { dialect, echo, shapes: std::array::from_fn(|_| Box::new(Shape::empty())) }
    }

    /// Does what [`compose`] does with this composer's echo list.
    ///
    /// # Errors
    /// The same.
    #[inline]
    pub fn compose(&mut self, view: &View<'_>, out: &mut Vec<u8>) -> Result<Slot, NoReply> {
        // The dialect is held, so that nothing else can be in its place.
        if !std::ptr::eq(view.dialect(), &raw const *self.dialect) {
            return compose(view, &self.echo, out);
        }
        let (mti, read) = (view.mti(), view.fields());
        let [latest, ..] = &self.shapes;
        if !latest.answers(mti, read) {
            self.recall(mti, read)?;
        }
        let [latest, ..] = &self.shapes;
        Ok(latest.splice(view, out))
    }

    /// Makes the shape of the answers to such requests the latest.
    #[inline(never)]
    fn recall(&mut self, mti: Mti, read: FieldSet) -> Result<(), NoReply> {
        let known = self.shapes.iter().position(|shape| shape.answers(mti, read));
        let place = match known {
            Some(place) => place,
            None => {
                let [.., oldest] = &mut self.shapes;
                oldest.shape(&self.dialect, &self.echo, mti, read)?;
                SHAPES_MAX.saturating_sub(1)
            }
        };
        if let Some(later) = self.shapes.get_mut(..=place) {
            later.rotate_right(1);
        }
        Ok(())
    }
}

/// Fields that are echoed and all of the request's between them, side by side in both.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u8,
    last: u8,
}

impl Run {
    #[inline]
    fn append(self, view: &View<'_>, out: &mut Vec<u8>) {
        let Some(Range { start, mut end }) = view.range(self.first) else { return };
        if self.last != self.first {
            let Some(last) = view.range(self.last) else { return };
            end = last.end;
        }
        if let Some(bytes) = view.body().get(start..end) {
            out.extend_from_slice(bytes);
        }
    }
}

/// An answer without the bytes that it echoes.
#[derive(Debug)]
pub(super) struct Shape {
    /// The type of the requests that it answers; `None` while it is no shape.
    mti: Option<Mti>,
    /// What was read of them. That includes the fields that are not echoed: whatever lies between
    /// two that are keeps them apart.
    read: FieldSet,
    /// MTI and bitmap.
    head: Vec<u8>,
    before_code: Vec<Run>,
    /// Field 39 with its length prefix, unwritten.
    code: Vec<u8>,
    behind_code: Vec<Run>,
    /// What stands in place of field 65; empty where none is due.
    third_bitmap: Vec<u8>,
    behind_third: Vec<Run>,
    /// Where the code lies in `code`.
    slot: Slot,
}

impl Shape {
    /// No shape, and room for any.
    pub(super) fn empty() -> Self {
        Self {
            mti: None,
            read: FieldSet::EMPTY,
            head: Vec::with_capacity(HEAD_BYTES_MAX),
            before_code: Vec::with_capacity(RUNS_MAX),
            code: Vec::with_capacity(CODE_BYTES_MAX),
            behind_code: Vec::with_capacity(RUNS_MAX),
            third_bitmap: Vec::with_capacity(THIRD_BITMAP_BYTES_MAX),
            behind_third: Vec::with_capacity(RUNS_BEHIND_THIRD_MAX),
            slot: Slot::NOWHERE,
        }
    }

    #[inline]
    fn answers(&self, mti: Mti, read: FieldSet) -> bool {
        // In whole words, since every request passes here.
        let ([a, b, c], [x, y, z]) = (self.read.words(), read.words());
        let same_type = self.mti.is_some_and(|known| known.word() == mti.word());
        same_type && a == x && b == y && c == z
    }

    /// Becomes the shape of the answer to requests of this type of which these fields were read.
    pub(super) fn shape(
        &mut self,
        dialect: &Dialect,
        echo: &FieldSet,
        mti: Mti,
        read: FieldSet,
    ) -> Result<(), NoReply> {
        self.mti = None;
        let response = mti.response().ok_or(NoReply::MessageType)?;
        let spec = dialect.field(RESPONSE_CODE).ok_or(NoReply::ResponseCode)?;
        let room = Room::of(spec, mti.version()).ok_or(NoReply::ResponseCode)?;

        self.code.clear();
        if let Length::Prefixed(prefix) = spec.length {
            prefix.write(room.units, &mut self.code);
        }
        self.slot = Slot::new(self.code.len(), spec, &room, mti.version());
        self.code.resize(self.code.len().saturating_add(usize::from(room.size)), 0);
        if !self.slot.write(&mut self.code, LocalCode::SystemMalfunction) {
            return Err(NoReply::ResponseCode);
        }

        let echoed = echo.intersection(read).difference(NEVER_ECHOED);
        let mut fields = echoed;
        fields.insert(RESPONSE_CODE);
        self.head.clear();
        dialect.mti().write(response, &mut self.head);
        dialect.bitmap().write(&fields, &mut self.head);
        self.third_bitmap.clear();
        dialect.bitmap().write_third(&fields, &mut self.third_bitmap);
        self.arrange(read, echoed);
        (self.mti, self.read) = (Some(mti), read);
        Ok(())
    }

    /// Finds the runs: fields that stood side by side in the request still do, but where Field 39
    /// or a third bitmap comes between them, in the answer or, whether or not that has one, in the
    /// request.
    fn arrange(&mut self, read: FieldSet, echoed: FieldSet) {
        let Self { before_code, behind_code, behind_third, .. } = self;
        before_code.clear();
        behind_code.clear();
        behind_third.clear();
        let mut goes_on = false;
        for de in read.iter() {
            let runs = match de {
                ..RESPONSE_CODE => &mut *before_code,
                RESPONSE_CODE..=THIRD_BITMAP => &mut *behind_code,
                _ => &mut *behind_third,
            };
            let went_on = goes_on;
            goes_on = echoed.contains(de);
            match runs.last_mut() {
                _ if !goes_on => {}
                Some(run) if went_on => run.last = de,
                _ => runs.push(Run { first: de, last: de }),
            }
        }
    }

    /// Appends the answer to a request of the type and the fields that it was shaped for.
    pub(super) fn splice(&self, view: &View<'_>, out: &mut Vec<u8>) -> Slot {
        out.extend_from_slice(&self.head);
        self.before_code.iter().for_each(|run| run.append(view, out));
        let mut slot = self.slot;
        slot.at = out.len().saturating_add(slot.at);
        out.extend_from_slice(&self.code);
        self.behind_code.iter().for_each(|run| run.append(view, out));
        if !(self.third_bitmap.is_empty() && self.behind_third.is_empty()) {
            self.splice_third(view, out);
        }
        slot
    }

    #[inline(never)]
    fn splice_third(&self, view: &View<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.third_bitmap);
        self.behind_third.iter().for_each(|run| run.append(view, out));
    }
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;

    use super::*;
    use crate::iso8583::Spans;

    /// Every field there is, of one character, behind the longest heads that there are.
    fn dialect(third: &str) -> Dialect {
        let mut table = "de,content,len_kind,len_enc,data_enc,max,unit,pad,name\n\
             0,n,fixed,none,ascii,4,chars,none,MTI\n\
             39,an,LLLLLL,ascii,ascii,2,chars,none,x\n"
            .to_owned();
        table += third;
        for de in (2..=192).filter(|de| ![39, 65].contains(de)) {
            table += &format!("{de},an,fixed,none,ascii,1,chars,none,x\n");
        }
        Dialect::from_table(&table).unwrap()
    }

    fn message(dialect: &Dialect, mti: &str, fields: &FieldSet) -> Vec<u8> {
        let mut body = mti.as_bytes().to_vec();
        dialect.bitmap().write(fields, &mut body);
        for de in fields.iter() {
            if de == THIRD_BITMAP.saturating_add(1) {
                dialect.bitmap().write_third(fields, &mut body);
            }
            body.extend_from_slice(if de == RESPONSE_CODE { b"00000200" } else { b"." });
        }
        body
    }

    #[test]
    fn a_composer_knows_more_shapes_than_it_remembers_and_allocates_for_none() {
        for third in [
            "1,b,bitmap,none,hex_ascii,24,bytes,none,x\n",
            "1,b,bitmap,none,hex_ascii,16,bytes,none,x\n65,b,bitmap,none,hex_ascii,8,bytes,none,x\n",
        ] {
            let dialect = Arc::new(dialect(third));
            let fields: FieldSet = (2..=192).filter(|de| *de != 65).collect();
            let bodies: Vec<_> = ["0100", "0101", "0200", "0220", "0420", "0800"]
                .iter()
                .flat_map(|mti| {
                    [fields, fields.difference(FieldSet::of(&[2, 39, 40]))].map(|f| (mti, f))
                })
                .map(|(mti, fields)| message(&dialect, mti, &fields))
                .collect();
            assert!(bodies.len() > SHAPES_MAX);
            for odd in 0..2 {
                // Runs of one field each, as many as there can be.
                let echo: FieldSet = (2..=192).filter(|de| de % 2 == odd).collect();
                let mut composer = Composer::new(Arc::clone(&dialect), echo);
                let (mut out, mut spans) = (Vec::with_capacity(4096), Spans::default());
                for body in bodies.iter().chain(bodies.iter().rev()) {
                    let view = View::parse(&dialect, body, &mut spans).unwrap();
                    assert_eq!(view.fault(), None);
                    out.clear();
                    let mut slot = Err(NoReply::MessageType);
                    let spent = measure(|| slot = composer.compose(&view, &mut out));
                    assert_eq!(spent.count_total, 0);
                    let mut once = Vec::new();
                    assert_eq!(slot, compose(&view, &echo, &mut once));
                    assert_eq!(out, once);
                    assert!(slot.is_ok());
                }
            }
        }
    }

    /// What was answered last is first; what has no answer costs at most the oldest its place.
    #[test]
    fn what_was_composed_longest_ago_is_forgotten() {
        let dialect = Arc::new(Dialect::preset("iso87_ascii").unwrap());
        let mut composer = Composer::new(Arc::clone(&dialect), FieldSet::of(&[2, 11]));
        let mut compose = |mti: &str, remembered: &[&str]| {
            let body = [mti.as_bytes(), b"0020000000000000000042"].concat();
            let mut spans = Spans::default();
            let view = View::parse(&dialect, &body, &mut spans).unwrap();
            let composed = composer.compose(&view, &mut Vec::new()).is_ok();
            let types = composer.shapes.iter().filter_map(|shape| shape.mti);
            let types: Vec<_> = types.map(|mti| mti.to_string()).collect();
            assert_eq!(types, remembered, "after {mti}");
            composed
        };
        assert!(compose("0100", &["0100"]));
        assert!(compose("0200", &["0200", "0100"]));
        assert!(compose("0100", &["0100", "0200"]));
        for no_answer in ["0110", "1100", "3100"] {
            assert!(!compose(no_answer, &["0100", "0200"]));
        }
        let mut all = vec!["0100", "0200"];
        for mti in ["0101", "0120", "0121", "0201", "0220", "0221"] {
            all.insert(0, mti);
            assert!(compose(mti, &all));
        }
        all.pop();
        all.insert(0, "0420");
        assert!(compose("0420", &all));
        assert_eq!(all.len(), SHAPES_MAX);
        all.pop();
        assert!(!compose("0110", &all), "the oldest makes room for what turns out to be no shape");
        assert!(!compose("1100", &all));
    }
}

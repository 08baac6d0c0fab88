//! A message described for people: which fields lie where, what may be shown of them, and where and
//! why it cannot be read.
//!
//! What is shown is decided here and once, by a list of what may be ([`showing`]): whoever prints a
//! description has nothing else to print. Why a message breaks is said in the dialect's own terms
//! ([`expected`]) and names what was found by its kind alone.

mod expected;
mod showing;

use super::FieldSet;
use super::dialect::Dialect;
use super::fault::Unreadable;
use super::mti::Mti;
use super::reader::Reader;
use super::view::View;
use crate::pan::{CARD_DIGITS_MIN, PAN_DIGITS_MAX, holds_card_number};
use showing::Showing;
pub use showing::Shown;

/// The field number by which a fault of the bitmap goes.
const BITMAP: u8 = 1;

/// One message, as far as it can be read and may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The length of the message in bytes, from its MTI on.
    pub bytes: usize,
    /// What kind of message it is; `None` when that cannot be read or must not be shown.
    pub mti: Option<Mti>,
    /// Which fields it says it has; `None` when that cannot be read or must not be shown.
    pub bitmap: Option<Bitmap>,
    /// The fields that were read, in their order.
    pub fields: Vec<DescribedField>,
    /// Where and why it cannot be read on.
    pub fault: Option<DescribedFault>,
}

/// What a message says of its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    /// The words as they were sent, in upper-case hexadecimal digits, with the bits that announce a
    /// further word.
    pub hex: String,
    /// The fields that they announce, without those bits.
    pub announced: FieldSet,
}

/// A field that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedField {
    /// Its number.
    pub de: u8,
    /// What the dialect calls it; empty if it has no name for it.
    pub name: String,
    /// Where it begins, length prefix included, in bytes from the MTI.
    pub at: usize,
    /// How many bytes its data have on the wire, without the length prefix.
    pub raw_bytes: usize,
    /// What may be shown of its value.
    pub shown: Shown,
}

/// Where a message breaks, and what was expected there. Nothing in it is a byte of the message but
/// a length that was read and believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedFault {
    /// The field: 0 for the MTI, 1 for the bitmap, the last field for bytes that follow it.
    pub field: u8,
    /// What it is called.
    pub name: String,
    /// Where it begins, in bytes from the MTI; for bytes that follow the last field, where they do.
    pub at: usize,
    /// The kind of fault, by the name that it has in metrics.
    pub kind: &'static str,
    /// What was expected and what was found, in words.
    pub expected: String,
}

impl Description {
    /// Describes a message.
    ///
    /// While a message has a fault nothing proves that what was read as a field is that field. Then
    /// less is shown, and nothing at all where its beginning does not look like a message's.
    pub fn of(view: &View<'_>) -> Self {
        let dialect = view.dialect();
        let fault = view.fault().map(|fault| DescribedFault {
            field: fault.field,
            name: name_of(dialect, fault.field),
            at: usize::from(fault.at),
            kind: fault.kind.name(),
            expected: expected::of_field(dialect, view.body(), fault),
        });
        let mut description = Self {
            bytes: view.body().len(),
            mti: Some(view.mti()),
            bitmap: bitmap(view),
            fields: fields(view),
            fault,
        };
        if description.fault.is_some() && !description.begins_like_a_message(view) {
            description.mti = None;
            description.bitmap = None;
            description.fields.clear();
        }
        description
    }

    /// Describes what has no MTI that can be read.
    pub fn unreadable(dialect: &Dialect, body: &[u8], why: Unreadable) -> Self {
        let fault = DescribedFault {
            field: 0,
            name: name_of(dialect, 0),
            at: 0,
            kind: why.name(),
            expected: expected::of_mti(dialect.mti(), body, why),
        };
        Self { bytes: body.len(), mti: None, bitmap: None, fields: Vec::new(), fault: Some(fault) }
    }

    /// Takes back what its fields say, for whoever has found that the message is to be read in
    /// another way: then none of them is what its number says.
    pub fn conceal(&mut self) {
        self.mti = None;
        self.bitmap = None;
        for field in &mut self.fields {
            field.shown = Shown::Hidden;
        }
    }

    /// Whether a text is a time of transmission (field 7): MMDDhhmmss.
    pub fn is_time(text: &[u8]) -> bool {
        showing::is_time(text)
    }

    /// Whether MTI and bitmap can be what they were read as, and are not digits of a card number
    /// that a wrong header or framing put in their place.
    fn begins_like_a_message(&self, view: &View<'_>) -> bool {
        if view.mti().unknown_part().is_some() {
            return false;
        }
        let bitmap = self.bitmap.as_ref().map_or("", |bitmap| bitmap.hex.as_str());
        if is_length_and_card(bitmap) {
            return false;
        }
        // A card number that begins in the bitmap may end in the first field.
        let at = self.fields.first().map_or(view.body().len(), |field| field.at);
        let after = view.body().get(at..).unwrap_or_default();
        let after = after.get(..PAN_DIGITS_MAX).unwrap_or(after);
        let half_bytes: String = after.iter().map(|byte| format!("{byte:02X}")).collect();
        let characters: String = after.iter().map(|byte| char::from(*byte)).collect();
        let may_hold_card = [half_bytes, characters]
            .iter()
            .any(|after| holds_card_number(format!("{}{bitmap}{after}", view.mti()).as_bytes()));
        showing::is_anchored(view) || !may_hold_card
    }
}

/// Whether a bitmap looks like the beginning of a card number behind its length, two digits a byte:
/// in a message cut off at its front, what stands in the place of an MTI and a bitmap most often is.
fn is_length_and_card(bitmap: &str) -> bool {
    let (length, digits) = bitmap.split_at_checked(2).unwrap_or_default();
    matches!(length.parse(), Ok(CARD_DIGITS_MIN..=PAN_DIGITS_MAX))
        && digits.bytes().take(CARD_DIGITS_MIN).all(|digit| digit.is_ascii_digit())
}

fn fields(view: &View<'_>) -> Vec<DescribedField> {
    let mut showing = Showing::new(view);
    let described = view.fields().iter().filter_map(|de| {
        let range = view.range(de)?;
        Some(DescribedField {
            de,
            name: name_of(view.dialect(), de),
            at: range.start,
            raw_bytes: view.raw(de)?.len(),
            shown: showing.field(view, de),
        })
    });
    described.collect()
}

/// A dialect's names come from a file: what a terminal would obey is left out of them.
fn name_of(dialect: &Dialect, de: u8) -> String {
    let name = match de {
        0 => "MTI",
        BITMAP => "bitmap",
        _ => dialect.field_name(de).unwrap_or_default(),
    };
    name.chars().map(|character| if character.is_control() { '.' } else { character }).collect()
}

/// The words that were sent, and the fields that they announce.
fn bitmap(view: &View<'_>) -> Option<Bitmap> {
    let (layout, announced) = (view.dialect().bitmap(), view.announced());
    let mut reader = Reader::new(view.body());
    view.dialect().mti().read(&mut reader).ok()?;
    let (words, fault) = layout.words(&mut reader);
    let mut hex: String = words.iter().map(|word| format!("{word:016X}")).collect();
    let [_, _, third] = announced.words();
    if layout.third.is_some() && third != 0 {
        hex.push_str(&format!("{third:016X}"));
    }
    fault.is_none().then_some(Bitmap { hex, announced })
}

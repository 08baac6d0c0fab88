//! What a request and its answer are recognised by, reduced to words: no field of a card is kept.
//!
//! Which of several requests an answer belongs to, `correlate` decides; here it is only said in what
//! two messages agree. What tells several requests apart is read of an answer when it is asked for:
//! nearly every answer fits but one.

use std::cell::OnceCell;

use super::hash::Key;
use crate::exchange::Settings;
use crate::iso8583::{DataEncoding, Dialect, FieldSet, View};
use crate::pan::{CardHashKey, Pan};

const CARD_NUMBER: u8 = 2;
const AMOUNT: u8 = 4;
const STAN: u8 = 11;
const TIME: u8 = 12;
const REFERENCE: u8 = 37;

/// Fields that decide between several requests that all fit an answer, the strongest first.
const TIE_FIELDS: [u8; 4] = [CARD_NUMBER, REFERENCE, AMOUNT, TIME];

/// With the card, the STAN and the fields above, those that are equal in two copies of one request
/// and differ in two requests. Not DE7: a sender may stamp a repeat with the time of the repeat.
const FINGERPRINT_FIELDS: [u8; 5] = [3, 32, 41, 42, 49];

/// Where a card may be read from when it is not in field 2.
const OTHER_CARD_FIELDS: FieldSet = FieldSet::of(&[34, 35, 45]);

/// The first character behind the blanks, all of which come before it.
const INK: u8 = b'!';

/// So much of a field that is not written in ASCII is compared: more than names and numbers have.
const TEXT_MAX: usize = 128;

/// Words for the fields that an answer has from its request. A field that is absent is 0.
///
/// In this order, since it is by these, up to the fourth field, that a request is found: with the
/// links before them they lie in one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
struct Marks {
    stan: u64,
    /// The first three digits of the answer's MTI: the fourth may be the request's origin or not.
    kind: u16,
    /// It was read to its end.
    whole: bool,
    /// So many of the following are in use.
    matched_len: u8,
    matched: [u64; Settings::MATCH_FIELDS_MAX],
}

impl Marks {
    /// What an index looks a request up by: a hash already.
    const fn index_key(&self) -> u64 {
        self.stan ^ (self.kind as u64)
    }

    /// Whether it carries nothing to be recognised by, and that is all it carries: what was not read
    /// to its end may hold more.
    fn is_bare(&self) -> bool {
        self.whole && self.stan == 0 && self.matched().iter().all(|word| *word == 0)
    }

    fn matched(&self) -> &[u64] {
        self.matched.get(..usize::from(self.matched_len)).unwrap_or_default()
    }

    /// The words of fields that both carry.
    fn pairs(&self, other: &Self) -> impl Iterator<Item = (u64, u64)> {
        let pairs = self.matched().iter().copied().zip(other.matched.iter().copied());
        pairs.filter(|(mine, theirs)| *mine != 0 && *theirs != 0)
    }
}

/// Words for the tie fields.
type Ties = [u64; TIE_FIELDS.len()];

/// What a request is recognised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub(super) struct Identity {
    marks: Marks,
    ties: Ties,
    fingerprint: u64,
}

impl Identity {
    /// So much of its beginning is looked at to find a request by the fields to match by default.
    #[cfg(test)]
    pub(super) const FOUND_BY_BYTES: usize =
        std::mem::offset_of!(Marks, matched) + size_of::<[u64; Settings::MATCH_FIELDS.len()]>();

    pub(super) const fn index_key(&self) -> u64 {
        self.marks.index_key()
    }

    pub(super) const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(super) const fn same_kind(&self, answer: &Answer<'_>) -> bool {
        self.marks.kind == answer.marks.kind
    }

    pub(super) const fn same_stan(&self, answer: &Answer<'_>) -> bool {
        self.marks.stan == answer.marks.stan
    }

    /// Whether neither carries anything to be recognised by.
    pub(super) fn is_bare_as(&self, answer: &Answer<'_>) -> bool {
        self.marks.is_bare() && answer.marks.is_bare()
    }

    /// Whether both carry a card number, and not the same.
    pub(super) fn is_of_another_card(&self, answer: &Answer<'_>) -> bool {
        let ([mine, ..], [theirs, ..]) = (&self.ties, answer.ties());
        *mine != 0 && *theirs != 0 && mine != theirs
    }

    /// Whether a field that both carry differs.
    pub(super) fn contradicts(&self, answer: &Answer<'_>) -> bool {
        self.marks.pairs(&answer.marks).any(|(mine, theirs)| mine != theirs)
    }

    /// Whether at least one field that both carry is the same.
    pub(super) fn agrees(&self, answer: &Answer<'_>) -> bool {
        self.marks.pairs(&answer.marks).any(|(mine, theirs)| mine == theirs)
    }

    /// How strongly the tie fields agree; a stronger field outweighs all weaker ones.
    pub(super) fn tie_rank(&self, answer: &Answer<'_>) -> u8 {
        self.ties
            .iter()
            .zip(answer.ties())
            .fold(0, |rank, (mine, theirs)| (rank << 1) | u8::from(*mine != 0 && mine == theirs))
    }
}

/// An answer, and what it is recognised by.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    marks: Marks,
    ties: OnceCell<Ties>,
    identifier: &'a Identifier,
    view: &'a View<'a>,
}

impl Answer<'_> {
    pub(super) const fn index_key(&self) -> u64 {
        self.marks.index_key()
    }

    pub(super) const fn has_stan(&self) -> bool {
        self.marks.stan != 0
    }

    fn ties(&self) -> &Ties {
        self.ties.get_or_init(|| self.identifier.ties(self.view))
    }
}

/// What of a field's bytes is compared.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// All of them.
    Bytes,
    /// The characters that they are, without trailing blanks: peers pad names differently from one
    /// message to its answer.
    Ascii,
    /// The same of what they stand for, and of odd digits without padding.
    Translated,
}

impl Form {
    fn of(dialect: &Dialect, field: u8) -> Self {
        match dialect.field(field).map(|spec| spec.data) {
            Some(DataEncoding::Ascii) => Self::Ascii,
            Some(DataEncoding::Binary) | None => Self::Bytes,
            Some(_) => Self::Translated,
        }
    }
}

/// A field, as it is to be read.
#[derive(Clone, Copy, Debug)]
struct Reading {
    field: u8,
    form: Form,
    in_fingerprint: bool,
}

impl Reading {
    fn of(dialect: &Dialect, field: u8) -> Self {
        let in_fingerprint = FINGERPRINT_FIELDS.contains(&field);
        Self { field, form: Form::of(dialect, field), in_fingerprint }
    }
}

/// Reads what messages of one dialect are recognised by, under this process's own key.
#[derive(Clone, Debug)]
pub(super) struct Identifier {
    key: Key,
    card_key: CardHashKey,
    stan: Form,
    matched: Vec<Reading>,
    ties: [Form; TIE_FIELDS.len()],
    /// Those of the fingerprint that are not read to match.
    apart: Vec<Reading>,
}

impl Identifier {
    pub(super) fn new(match_fields: &[u8], dialect: &Dialect, seed: u64) -> Self {
        let match_fields = match_fields.get(..Settings::MATCH_FIELDS_MAX).unwrap_or(match_fields);
        let read = |field| Reading::of(dialect, field);
        let apart = FINGERPRINT_FIELDS.into_iter().filter(|field| !match_fields.contains(field));
        Self {
            key: Key::new(seed),
            card_key: CardHashKey::new(seed, seed.rotate_left(32)),
            stan: Form::of(dialect, STAN),
            matched: match_fields.iter().copied().map(read).collect(),
            ties: TIE_FIELDS.map(|field| Form::of(dialect, field)),
            apart: apart.map(read).collect(),
        }
    }

    /// Of a request, by the answer that it expects; `None` when it expects none.
    pub(super) fn of_request(&self, view: &View<'_>) -> Option<Identity> {
        let marks = self.marks(view, response_kind(view)?);
        let ties = self.ties(view);
        let fingerprint = self.fingerprint(view, &marks, &ties);
        Some(Identity { marks, ties, fingerprint })
    }

    /// Of an answer.
    pub(super) fn of_answer<'a>(&'a self, view: &'a View<'a>) -> Answer<'a> {
        self.answer(view, view.mti().number() / 10)
    }

    /// Of a request that came back, which stands for the answer that it would have had.
    pub(super) fn of_returned<'a>(&'a self, view: &'a View<'a>) -> Option<Answer<'a>> {
        Some(self.answer(view, response_kind(view)?))
    }

    fn answer<'a>(&'a self, view: &'a View<'a>, kind: u16) -> Answer<'a> {
        let marks = self.marks(view, kind);
        Answer { marks, ties: OnceCell::new(), identifier: self, view }
    }

    #[inline]
    fn marks(&self, view: &View<'_>, kind: u16) -> Marks {
        let mut matched = [0; Settings::MATCH_FIELDS_MAX];
        for (word, reading) in matched.iter_mut().zip(&self.matched) {
            *word = self.word(view, reading.field, reading.form);
        }
        Marks {
            stan: self.word(view, STAN, self.stan),
            kind,
            whole: view.fault().is_none(),
            matched_len: self.matched.len() as u8,
            matched,
        }
    }

    #[inline]
    fn ties(&self, view: &View<'_>) -> Ties {
        let [card_number, reference, amount, time] = self.ties;
        [
            self.word(view, CARD_NUMBER, card_number),
            self.word(view, REFERENCE, reference),
            self.word(view, AMOUNT, amount),
            self.word(view, TIME, time),
        ]
    }

    #[inline]
    fn fingerprint(&self, view: &View<'_>, marks: &Marks, ties: &Ties) -> u64 {
        let mut fingerprint = self.key.join(self.other_card(view), marks.stan);
        for word in ties {
            fingerprint = self.key.join(fingerprint, *word);
        }
        for (word, reading) in marks.matched.iter().zip(&self.matched) {
            if reading.in_fingerprint {
                fingerprint = self.key.join(fingerprint, *word);
            }
        }
        for reading in &self.apart {
            let word = self.word(view, reading.field, reading.form);
            fingerprint = self.key.join(fingerprint, word);
        }
        fingerprint
    }

    /// The card of a message whose field 2, a tie, does not tell it; 0 when it does or nothing does.
    #[inline]
    fn other_card(&self, view: &View<'_>) -> u64 {
        if view.fields().intersection(OTHER_CARD_FIELDS).is_empty() {
            return 0;
        }
        self.card_off_field_2(view)
    }

    #[inline(never)]
    fn card_off_field_2(&self, view: &View<'_>) -> u64 {
        let Some(card) = view.pan() else { return 0 };
        let field_2 = view.text::<TEXT_MAX>(CARD_NUMBER);
        let in_field_2 = field_2.is_some_and(|text| Pan::from_text(text.as_bytes()) == Some(card));
        if in_field_2 { 0 } else { card.hash(self.card_key).word() }
    }

    /// Inlined wherever a field is read, since most are by numbers that are known beforehand; what
    /// is not the common case is not.
    #[inline(always)]
    fn word(&self, view: &View<'_>, field: u8, form: Form) -> u64 {
        match (view.raw(field), form) {
            (None, _) => 0,
            (Some(raw), Form::Bytes) => self.key.word(raw),
            (Some(raw @ [.., INK..=u8::MAX]), Form::Ascii) => self.key.word(raw),
            (Some(raw), Form::Ascii) => self.padded(raw),
            (Some(_), Form::Translated) => self.translated(view, field),
        }
    }

    #[inline(never)]
    fn padded(&self, text: &[u8]) -> u64 {
        self.key.word(text.trim_ascii_end())
    }

    #[inline(never)]
    fn translated(&self, view: &View<'_>, field: u8) -> u64 {
        let text = view.text::<TEXT_MAX>(field).unwrap_or_default();
        self.padded(text.as_bytes())
    }
}

/// The kind of answer that a request expects.
fn response_kind(view: &View<'_>) -> Option<u16> {
    Some(view.mti().response()?.number() / 10)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::iso8583::Spans;

    /// What a request with a STAN and these fields 32 and 42 is recognised by.
    fn identity(acquirer: &str, card_acceptor: &str) -> Identity {
        let dialect = Dialect::preset("iso87_ascii").unwrap();
        let len = acquirer.len();
        let body = format!("01000020000100400000000007{len:02}{acquirer}{card_acceptor:15}");
        let mut spans = Spans::default();
        let view = View::parse(&dialect, body.as_bytes(), &mut spans).unwrap();
        assert_eq!(view.fault(), None);
        Identifier::new(&Settings::MATCH_FIELDS, &dialect, 42).of_request(&view).unwrap()
    }

    proptest! {
        #[test]
        fn blanks_behind_a_text_make_no_difference_and_all_else_does(
            text in "[ -~]{0,8}[!-~]", blanks in "[ \t\r]{1,2}", other in "[ -~]{0,8}[!-~]",
        ) {
            let (plain, padded) = (identity(&text, "SHOP"), identity(&(text.clone() + &blanks), "SHOP"));
            prop_assert_eq!(plain, padded);
            prop_assert_eq!(plain == identity(&other, "SHOP"), text == other);
            prop_assert_eq!(identity("1", &text) == identity("1", &other), text == other);
            prop_assert_eq!(identity(&blanks, "SHOP"), identity("", "SHOP"));
        }
    }
}

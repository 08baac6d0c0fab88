//! What an answer is recognised by, reduced to words: no field of a card is kept in it.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

use crate::exchange::Settings;
use crate::iso8583::{DataEncoding, View};
use crate::pan::CardHashKey;

/// Fields that decide between several requests that all fit an answer, the strongest first.
const TIE_FIELDS: [u8; 4] = [2, 37, 4, 12];

/// So much of a field that is not written in ASCII is compared: more than names and numbers have.
const TEXT_MAX: usize = 128;

/// With the card, the STAN and the fields above, those that are equal in two copies of one request
/// and differ in two requests. Not DE7: a sender may stamp a repeat with the time of the repeat.
const FINGERPRINT_FIELDS: [u8; 5] = [3, 32, 41, 42, 49];

/// Hashes of the fields by which a request and its answer find each other. A field that is absent
/// is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Identity {
    /// The first three digits of the answer's MTI: the fourth may be the request's origin or not.
    kind: u16,
    stan: u64,
    matched: [u64; Settings::MATCH_FIELDS_MAX],
    ties: [u64; TIE_FIELDS.len()],
    fingerprint: u64,
    /// It was read to its end.
    whole: bool,
}

impl Identity {
    /// What an index looks a request up by.
    pub(super) const fn index_key(&self) -> u64 {
        self.stan ^ (self.kind as u64)
    }

    pub(super) const fn has_stan(&self) -> bool {
        self.stan != 0
    }

    pub(super) const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(super) const fn same_kind(&self, other: &Self) -> bool {
        self.kind == other.kind
    }

    pub(super) const fn same_stan(&self, other: &Self) -> bool {
        self.stan == other.stan
    }

    /// Whether it carries nothing to be recognised by, and that is all it carries: what was not read
    /// to its end may hold more.
    pub(super) fn is_bare(&self) -> bool {
        self.whole && self.stan == 0 && self.matched.iter().all(|word| *word == 0)
    }

    /// Whether both carry a card number, and not the same.
    pub(super) fn is_of_another_card(&self, other: &Self) -> bool {
        let ([mine, ..], [theirs, ..]) = (&self.ties, &other.ties);
        *mine != 0 && *theirs != 0 && mine != theirs
    }

    /// Whether a field that both carry differs.
    pub(super) fn contradicts(&self, other: &Self) -> bool {
        self.pairs(other).any(|(mine, theirs)| mine != theirs)
    }

    /// Whether at least one field that both carry is the same.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        self.pairs(other).any(|(mine, theirs)| mine == theirs)
    }

    fn pairs<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (u64, u64)> + 'a {
        let pairs = self.matched.iter().copied().zip(other.matched.iter().copied());
        pairs.filter(|(mine, theirs)| *mine != 0 && *theirs != 0)
    }

    /// How strongly the tie fields agree; a stronger field outweighs all weaker ones.
    pub(super) fn tie_rank(&self, other: &Self) -> u8 {
        self.ties
            .iter()
            .zip(&other.ties)
            .fold(0, |rank, (mine, theirs)| (rank << 1) | u8::from(*mine != 0 && mine == theirs))
    }
}

/// Reads identities from messages, with this process's own hash seed.
#[derive(Clone, Debug)]
pub(super) struct Identifier {
    match_fields: Vec<u8>,
    hasher: FixedState,
    card_key: CardHashKey,
}

impl Identifier {
    pub(super) fn new(match_fields: &[u8], seed: u64) -> Self {
        let match_fields = match_fields.iter().copied().take(Settings::MATCH_FIELDS_MAX).collect();
        let card_key = CardHashKey::new(seed, seed.rotate_left(32));
        Self { match_fields, hasher: FixedState::with_seed(seed), card_key }
    }

    /// Of a request, by the answer that it expects; `None` when it expects none.
    pub(super) fn of_request(&self, view: &View<'_>) -> Option<Identity> {
        let mut identity = self.identity(view, view.mti().response()?.number() / 10);
        identity.fingerprint = self.fingerprint(view, &identity);
        Some(identity)
    }

    /// Of an answer. It has no fingerprint: only requests are told apart by theirs.
    pub(super) fn of_answer(&self, view: &View<'_>) -> Identity {
        self.identity(view, view.mti().number() / 10)
    }

    fn identity(&self, view: &View<'_>, kind: u16) -> Identity {
        let whole = view.fault().is_none();
        let mut identity =
            Identity { kind, stan: self.field(view, 11), whole, ..Identity::default() };
        for (word, field) in identity.matched.iter_mut().zip(&self.match_fields) {
            *word = self.field(view, *field);
        }
        for (word, field) in identity.ties.iter_mut().zip(TIE_FIELDS) {
            *word = self.field(view, field);
        }
        identity
    }

    fn fingerprint(&self, view: &View<'_>, identity: &Identity) -> u64 {
        let mut fingerprint = self.hasher.build_hasher();
        let card = view.pan().map(|pan| pan.hash(self.card_key).word());
        fingerprint.write_u64(card.unwrap_or_default());
        fingerprint.write_u64(identity.stan);
        for word in identity.ties {
            fingerprint.write_u64(word);
        }
        for field in FINGERPRINT_FIELDS {
            // Most of them are among those to match, whose words are there already.
            let mut matched = self.match_fields.iter().zip(identity.matched);
            let word = matched.find(|(matched, _)| **matched == field).map(|(_, word)| word);
            fingerprint.write_u64(word.unwrap_or_else(|| self.field(view, field)));
        }
        fingerprint.finish()
    }

    /// A field in characters without trailing blanks, or in digits without padding: peers pad names
    /// and odd digits differently from one message to its answer.
    fn field(&self, view: &View<'_>, field: u8) -> u64 {
        let Some(raw) = view.raw(field) else { return 0 };
        let mut hasher = self.hasher.build_hasher();
        match view.dialect().field(field).map(|spec| spec.data) {
            Some(DataEncoding::Ascii) => hasher.write(raw.trim_ascii_end()),
            Some(DataEncoding::Binary) | None => hasher.write(raw),
            Some(_) => {
                let text = view.text::<TEXT_MAX>(field).unwrap_or_default();
                hasher.write(text.as_bytes().trim_ascii_end());
            }
        }
        hasher.finish() | 1
    }
}

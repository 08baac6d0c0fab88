//! A message of the network as the model knows it: what may become of it, and whose answer is whose
//! by the rules alone.

use tollgate::clock::Moment;
use tollgate::exchange::SessionId;
use tollgate::reason::Reason;

use crate::host::Answer;
use crate::message::message;
use crate::network::{Damage, Draft, Fields, field};
use crate::scene::code;

const MATCH: [u8; 4] = [7, 32, 41, 42];
const IDENTITY: [u8; 11] = [2, 3, 4, 7, 11, 12, 32, 37, 41, 42, 49];
const ECHO: [u8; 16] = [2, 3, 4, 7, 11, 12, 13, 19, 24, 25, 32, 33, 37, 41, 42, 49];

/// Where a message of the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its session has not got rid of it.
    Unread,
    /// It was queued for the host, and nobody has answered it.
    Pending,
    /// Somebody has answered it, or it was forgotten, or it never waited for anything.
    Over,
}

/// A message of the network.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) session: SessionId,
    pub(crate) draft: Draft,
    pub(crate) readable: Fields,
    pub(crate) stage: Stage,
    pub(crate) received: Moment,
    pub(crate) forwarded: bool,
    /// tollgate answered it, for this reason and at this moment.
    pub(crate) answered: Option<(Reason, Moment)>,
    pub(crate) arrived: bool,
    /// It was written to a connection that was lost before the host had read it.
    pub(crate) lost_under_way: bool,
    /// It was taken back in silence when no connection was left.
    pub(crate) taken_back: bool,
    /// It was written whole to a connection that was lost.
    pub(crate) lost: bool,
    pub(crate) answers: u32,
}

impl Sent {
    pub(crate) fn new(session: SessionId, draft: Draft) -> Self {
        Self {
            session,
            readable: draft.readable(),
            draft,
            stage: Stage::Unread,
            received: Moment::START,
            forwarded: false,
            answered: None,
            arrived: false,
            lost_under_way: false,
            taken_back: false,
            lost: false,
            answers: 0,
        }
    }

    /// The type of its answer.
    pub(crate) fn response(&self) -> Option<String> {
        if self.draft.damage == Damage::NoMti { None } else { response_to(&self.draft.mti) }
    }

    pub(crate) fn answerable(&self) -> bool {
        // What is malformed before its STAN, or has none, could not be matched to its answer.
        let matchable = self.draft.damage == Damage::None || self.field(11).is_some();
        let mac = self.field(64).or(self.field(128)).is_some();
        // A 1993 message can have no answer in a dialect with a Field 39 of two characters.
        matchable && !mac && ["0100", "0101", "0200", "0201"].contains(&self.draft.mti.as_str())
    }

    /// A request of money, whether tollgate may answer it or not.
    pub(crate) fn is_request(&self) -> bool {
        self.draft.damage != Damage::NoMti
            && matches!(self.draft.mti.as_bytes(), [b'0'..=b'2', b'1' | b'2', b'0', b'0' | b'1'])
    }

    pub(crate) fn is_answer(&self) -> bool {
        self.draft.damage != Damage::NoMti && matches!(self.draft.mti.as_bytes()[2], b'1' | b'3')
    }

    pub(crate) fn expects_answer(&self) -> bool {
        matches!(self.draft.mti.as_bytes()[2], b'0' | b'2')
    }

    pub(crate) fn field(&self, de: u8) -> Option<&str> {
        field(&self.readable, de)
    }

    pub(crate) fn card(&self) -> Option<&str> {
        self.field(2).or_else(|| self.field(35)?.split('=').next())
    }

    /// Whether nobody who reads the answer could tell the two apart.
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        self.response() == other.response()
            && self.card() == other.card()
            && IDENTITY.iter().all(|de| self.field(*de) == other.field(*de))
    }

    /// Whether the answer could be its own by what both of them say.
    pub(crate) fn fits(&self, answer: &Answer) -> bool {
        let theirs = |de| field(&answer.fields, de);
        let both = |de: u8| Some((self.field(de)?, theirs(de)?));
        let stan = match theirs(11) {
            Some(stan) => self.field(11) == Some(stan),
            None => MATCH.iter().filter_map(|de| both(*de)).any(|(mine, theirs)| mine == theirs),
        };
        self.response().is_some_and(|response| response[..3] == answer.mti[..3])
            && stan
            && MATCH.iter().filter_map(|de| both(*de)).all(|(mine, theirs)| mine == theirs)
    }

    /// tollgate's own answer, to the byte.
    pub(crate) fn local_answer(&self, reason: Reason) -> Vec<u8> {
        let echoed = self.readable.iter().filter(|(de, _)| ECHO.contains(de));
        let mut fields: Fields = echoed.cloned().collect();
        fields.push((39, code(reason).to_owned()));
        message(&self.response().unwrap_or_default(), &fields)
    }
}

/// The type of the answer to a message of this type.
pub(crate) fn response_to(mti: &str) -> Option<String> {
    let [_, _, function @ (b'0' | b'2' | b'4' | b'6'), origin] = *mti.as_bytes() else {
        return None;
    };
    Some(format!("{}{}{}", &mti[..2], char::from(function + 1), char::from(origin & !1)))
}

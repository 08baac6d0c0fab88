//! What one call of the exchange did, sorted from the events of the port, and what may not be true of
//! any call: that something is given to a session and not told, or told and not given.

use std::time::Duration;

use tollgate::exchange::{ConnectionId, Outcome, Pass, SessionId, Stray, Trace};
use tollgate::reason::Reason;

use crate::port::Event;

/// What the model found to be wrong.
pub(crate) type Check<T = ()> = Result<T, String>;

macro_rules! ensure {
    ($holds:expr, $($says:tt)+) => {
        // Not `if !`: what holds may be a comparison of floats.
        match $holds {
            true => {}
            false => return Err(format!($($says)+)),
        }
    };
}

pub(crate) use ensure;

/// Why tollgate answered, and after how long.
pub(crate) fn reason_of(said: &Outcome) -> Check<(Reason, Option<Duration>)> {
    match said {
        Outcome::Answered { reason, waited, .. } => Ok((*reason, Some(*waited))),
        Outcome::Unheard { reason, .. } => Ok((*reason, None)),
        other => Err(format!("{other:?} where an answer of tollgate's was expected")),
    }
}

/// The events of one call, sorted.
pub(crate) struct Effects<'a> {
    pub(crate) forwarded: usize,
    pub(crate) gave_back: Vec<(ConnectionId, bool)>,
    /// To whom, what, and what was said of it.
    pub(crate) offers: Vec<(SessionId, &'a [u8], &'a Outcome)>,
    /// All that was said beside.
    pub(crate) said: Vec<&'a Outcome>,
}

impl<'a> Effects<'a> {
    pub(crate) fn of(events: &'a [Event]) -> Check<Self> {
        let mut effects =
            Self { forwarded: 0, gave_back: Vec::new(), offers: Vec::new(), said: Vec::new() };
        let mut events = events.iter();
        while let Some(event) = events.next() {
            match event {
                Event::Forwarded => effects.forwarded += 1,
                Event::Withdrawn => {}
                Event::GivenBack { connection, taken } => {
                    effects.gave_back.push((*connection, *taken));
                }
                Event::Offered { session, frame, taken } => {
                    let Some(Event::Recorded(said)) = events.next() else {
                        return Err(format!("{session:?} was given something, and nobody knows"));
                    };
                    ensure!(*taken == says_heard(said)?, "taken: {taken}, and yet {said:?}");
                    effects.offers.push((*session, frame, said));
                }
                Event::Recorded(said) => {
                    ensure!(says_heard(said).is_err(), "{said:?}, and nobody was given anything");
                    effects.said.push(said);
                }
            }
        }
        Ok(effects)
    }

    pub(crate) fn passes(&self) -> impl Iterator<Item = Pass> {
        self.said.iter().filter_map(|said| match said {
            Outcome::Forwarded { pass, .. } => Some(*pass),
            _ => None,
        })
    }

    pub(crate) fn strays(&self) -> impl Iterator<Item = (Stray, &Trace)> {
        self.said.iter().filter_map(|said| match said {
            Outcome::Stray(stray, trace) => Some((*stray, trace)),
            _ => None,
        })
    }
}

/// Whether the outcome says that a session was given something, or that it did not take it; an error
/// when it says neither.
fn says_heard(said: &Outcome) -> Check<bool> {
    match said {
        Outcome::Answered { .. } | Outcome::Delivered { .. } | Outcome::HostOriginated => Ok(true),
        Outcome::Unheard { .. } | Outcome::Stray(Stray::Undeliverable, _) => Ok(false),
        other => Err(format!("{other:?} where something was given")),
    }
}

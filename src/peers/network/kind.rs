//! The messages of a network, and the proportions in which they come.

use thiserror::Error;

use crate::peers::Message;
use crate::peers::card::{self, DIGITS};

/// A kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 0100: may this purchase be made? The card number is in field 2.
    Purchase,
    /// 0200: a sale, read from the card's stripe: the card number is in track 2 alone.
    Sale,
    /// 0200 with processing code 20: money back to the cardholder.
    Refund,
    /// 0100 with processing code 31: what is on the account?
    Inquiry,
    /// 0120: this has been approved in the issuer's name. It is told, not asked.
    Advice,
    /// 0420: take back what was approved. Refusing it would leave the money on hold.
    Reversal,
    /// 0800: is anybody there?
    EchoTest,
}

impl Kind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Purchase,
        Self::Sale,
        Self::Refund,
        Self::Inquiry,
        Self::Advice,
        Self::Reversal,
        Self::EchoTest,
    ];

    /// The word for it on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Purchase => "purchase",
            Self::Sale => "sale",
            Self::Refund => "refund",
            Self::Inquiry => "inquiry",
            Self::Advice => "advice",
            Self::Reversal => "reversal",
            Self::EchoTest => "echo_test",
        }
    }

    /// Its message type.
    pub const fn mti(self) -> &'static str {
        match self {
            Self::Purchase | Self::Inquiry => "0100",
            Self::Sale | Self::Refund => "0200",
            Self::Advice => "0120",
            Self::Reversal => "0420",
            Self::EchoTest => "0800",
        }
    }

    /// Whether anybody but the host may answer it. What may not be refused is repeated instead
    /// until the host has answered.
    pub const fn is_request(self) -> bool {
        matches!(self, Self::Purchase | Self::Sale | Self::Refund | Self::Inquiry)
    }

    const fn processing_code(self) -> &'static str {
        match self {
            Self::Refund => "200000",
            Self::Inquiry => "310000",
            _ => "000000",
        }
    }
}

/// How many of each kind there are among all, in any unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    weights: [f64; Kind::ALL.len()],
}

impl Mix {
    /// What a card network carries on an ordinary day, in hundredths.
    pub const ORDINARY: Self = Self { weights: [44.0, 32.0, 4.0, 6.0, 6.0, 6.0, 2.0] };
    /// Purchases and sales, with the advices and reversals that follow from them.
    pub const SHOPPING: Self = Self { weights: [50.0, 40.0, 0.0, 0.0, 5.0, 5.0, 0.0] };

    /// One kind alone.
    pub fn only(kind: Kind) -> Self {
        let mut weights = [0.0; Kind::ALL.len()];
        if let Some(weight) = weights.get_mut(kind as usize) {
            *weight = 1.0;
        }
        Self { weights }
    }

    /// From words such as `purchase=50,sale=40,reversal=5`: what is not named does not come.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, MixError> {
        let mut weights = [0.0; Kind::ALL.len()];
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').ok_or(MixError::Form)?;
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name.trim());
            let kind = kind.ok_or(MixError::Kind)?;
            let weight: f64 = weight.trim().parse().map_err(|_| MixError::Weight)?;
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(MixError::Weight);
            }
            if let Some(slot) = weights.get_mut(kind as usize) {
                *slot = weight;
            }
        }
        if weights.iter().all(|weight| *weight == 0.0) {
            return Err(MixError::Empty);
        }
        Ok(Self { weights })
    }

    /// By the numbers of the kinds.
    pub(super) const fn weights(&self) -> &[f64] {
        &self.weights
    }
}

/// Why a text is no mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MixError {
    /// No kind and number.
    #[error("write kinds and their parts, such as purchase=50,sale=40,reversal=5")]
    Form,
    /// No kind.
    #[error("the kinds are purchase, sale, refund, inquiry, advice, reversal and echo_test")]
    Kind,
    /// No number.
    #[error("a part is a number, 0 or more")]
    Weight,
    /// Nothing comes.
    #[error("one part at least is above 0")]
    Empty,
}

/// Where a card is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shop {
    /// Its number at its acquirer, as field 42 has it.
    pub acceptor: String,
    /// What it sells, as field 18 has it.
    pub category: String,
}

/// What stands where something is filled in for each message.
const ANY_TIME: &str = "0101000000";
const ANY_TERMINAL: &str = "T0000000";
const ANY_CARD: card::Digits = [0; DIGITS];

impl Kind {
    /// A message of this kind: sound, but of no time, no card and without a number.
    pub(super) fn message(self, acquirer: &str, shop: &Shop) -> Message {
        let message = Message::new(self.mti()).field(7, ANY_TIME).field(11, "0");
        if self == Self::EchoTest {
            return message.field(70, "301");
        }
        let message = message
            .field(3, self.processing_code())
            .field(4, "0")
            .field(12, "000000")
            .field(13, "0101")
            .field(18, shop.category.as_str())
            .field(25, "00")
            .field(32, acquirer)
            .field(37, "000000000000")
            .field(41, ANY_TERMINAL)
            .field(42, shop.acceptor.as_str())
            .field(43, "TOLLGATE TEST SHOP       TESTVILLE    CH")
            .field(49, "756");
        match self {
            Self::Sale | Self::Inquiry => {
                message.field(22, "021").field(35, card::track_2(&ANY_CARD))
            }
            Self::Advice => keyed(message).field(38, "STANDI").field(39, "00"),
            Self::Reversal => {
                keyed(message).field(90, format!("0100000000{ANY_TIME}{acquirer:0>11}{:011}", 0))
            }
            Self::Purchase | Self::Refund | Self::EchoTest => keyed(message),
        }
    }
}

/// With the card number as it is read from a chip.
fn keyed(message: Message) -> Message {
    let number = ANY_CARD.map(|digit| digit | b'0');
    message.field(2, number).field(14, card::EXPIRY).field(22, "051")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_read_from_words() {
        let mix = Mix::parse("purchase=50, sale=40,reversal=0.5").unwrap();
        assert_eq!(mix.weights, [50.0, 40.0, 0.0, 0.0, 0.0, 0.5, 0.0]);
        assert_eq!(Mix::parse("echo_test=1"), Ok(Mix::only(Kind::EchoTest)));
        for (text, error) in [
            ("", MixError::Form),
            ("purchase", MixError::Form),
            ("cash=1", MixError::Kind),
            ("purchase=much", MixError::Weight),
            ("purchase=-1", MixError::Weight),
            ("purchase=inf", MixError::Weight),
            ("purchase=0", MixError::Empty),
        ] {
            assert_eq!(Mix::parse(text), Err(error), "{text}");
        }
    }
}

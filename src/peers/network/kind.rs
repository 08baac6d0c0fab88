//! The messages of a network, and the proportions in which they come.

use crate::clock::Utc;
use crate::peers::{Card, Message};

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

    pub(super) fn draw(&self, rng: &mut fastrand::Rng) -> Kind {
        let drawn = draw_weighted(self.weights.iter().copied(), rng);
        Kind::ALL.get(drawn).copied().unwrap_or(Kind::Purchase)
    }
}

/// The place of one of the weights, drawn in proportion to them.
pub(super) fn draw_weighted(
    weights: impl Iterator<Item = f64> + Clone,
    rng: &mut fastrand::Rng,
) -> usize {
    let mut left = rng.f64() * weights.clone().sum::<f64>();
    let place = weights.clone().position(|weight| {
        left -= weight;
        left < 0.0
    });
    // Rounding may leave a hair after the last weight.
    place.unwrap_or_else(|| weights.count().saturating_sub(1))
}

/// Where a card is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shop {
    /// Its acquirer, as field 32 has it.
    pub acquirer: String,
    /// Its number at that acquirer, as field 42 has it.
    pub acceptor: String,
    /// What it sells, as field 18 has it.
    pub category: String,
}

/// What one message is about.
pub(super) struct Occasion<'a> {
    pub(super) kind: Kind,
    pub(super) stan: u32,
    /// As field 41 has it.
    pub(super) terminal: &'a str,
    pub(super) card: &'a Card,
    pub(super) shop: &'a Shop,
    pub(super) time: Utc,
    /// In the currency's smallest unit.
    pub(super) amount: u32,
    /// STAN and time of the request that a reversal takes back.
    pub(super) original: (u32, Utc),
}

impl Occasion<'_> {
    pub(super) fn message(&self) -> Message {
        let Utc { month, day, hour, minute, second } = self.time;
        let message = Message::new(self.kind.mti())
            .field(7, self.time.to_string())
            .field(11, format!("{:06}", self.stan));
        if self.kind == Kind::EchoTest {
            return message.field(70, "301");
        }
        let message = message
            .field(3, self.kind.processing_code())
            .field(4, self.amount.to_string())
            .field(12, format!("{hour:02}{minute:02}{second:02}"))
            .field(13, format!("{month:02}{day:02}"))
            .field(18, self.shop.category.as_str())
            .field(25, "00")
            .field(32, self.shop.acquirer.as_str())
            .field(37, format!("{month:02}{day:02}{hour:02}{:06}", self.stan))
            .field(41, self.terminal)
            .field(42, self.shop.acceptor.as_str())
            .field(43, "TOLLGATE TEST SHOP       TESTVILLE    CH")
            .field(49, "756");
        match self.kind {
            Kind::Sale | Kind::Inquiry => message.field(22, "021").field(35, self.card.track_2()),
            Kind::Advice => self.keyed(message).field(38, "STANDI").field(39, "00"),
            Kind::Reversal => {
                let (stan, time) = self.original;
                let acquirer = &self.shop.acquirer;
                let original = format!("0100{stan:06}{time}{acquirer:0>11}{:011}", 0);
                self.keyed(message).field(90, original)
            }
            Kind::Purchase | Kind::Refund | Kind::EchoTest => self.keyed(message),
        }
    }

    /// With the card number as it is read from a chip.
    fn keyed(&self, message: Message) -> Message {
        message.field(2, self.card.number()).field(14, Card::EXPIRY).field(22, "051")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iso8583::{Dialect, Spans, View};
    use crate::traffic::Operation;

    #[test]
    fn every_kind_is_a_sound_message() {
        let mut rng = fastrand::Rng::with_seed(3);
        let card = Card::random("411111", &mut rng);
        let shop = Shop {
            acquirer: "123456".to_owned(),
            acceptor: "SHOP0001".to_owned(),
            category: "5411".to_owned(),
        };
        for name in ["iso87_ascii", "iso87_ascii_binbitmap"] {
            let dialect = Dialect::preset(name).unwrap();
            for kind in Kind::ALL {
                let (mut body, mut spans) = (Vec::new(), Spans::default());
                let time = Utc::from_unix(1_700_000_000);
                let occasion = Occasion {
                    kind,
                    stan: 42,
                    terminal: "T0010002",
                    card: &card,
                    shop: &shop,
                    time,
                    amount: 12_345,
                    original: (41, time),
                };
                occasion.message().encode(&dialect, &mut body).unwrap();
                let view = View::parse(&dialect, &body, &mut spans).unwrap();
                assert_eq!(view.fault(), None, "{name} {kind:?}");
                assert_eq!(view.mti().answerable(), kind.is_request(), "{kind:?}");
                assert_eq!(view.pan().is_some(), kind != Kind::EchoTest, "{kind:?}");
                assert_eq!(view.merchant().is_some(), kind != Kind::EchoTest, "{kind:?}");
                assert_eq!(view.operation() == Operation::Refund, kind == Kind::Refund);
                assert_eq!(view.operation() == Operation::Inquiry, kind == Kind::Inquiry);
            }
        }
    }

    #[test]
    fn kinds_come_in_their_proportions() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut drawn = [0_i32; Kind::ALL.len()];
        (0..10_000).for_each(|_| drawn[Mix::ORDINARY.draw(&mut rng) as usize] += 1);
        for (count, weight) in drawn.into_iter().zip(Mix::ORDINARY.weights) {
            assert!((f64::from(count) - 100.0 * weight).abs() < 200.0, "{drawn:?}");
        }
        assert!((0..100).all(|_| Mix::only(Kind::EchoTest).draw(&mut rng) == Kind::EchoTest));
    }
}

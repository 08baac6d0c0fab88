//! What the network of the demo sends, and which limit each part of it meets.

use crate::limits::{BinRange, KeyMatch, Per, Rule};
use crate::peers::{Choice, Flow, Mix, Shop};
use crate::traffic::MerchantId;

/// Of all shops.
const ACQUIRER: &str = "123456";

/// One flow of the network, and what it is there to show.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// As the summary calls it.
    pub(super) name: &'static str,
    /// As the introduction tells it.
    pub(super) intention: &'static str,
    /// Messages per second that its limit lets through.
    pub(super) limit: f64,
    /// Whose limit that is.
    pub(super) of: &'static str,
    /// What is sent.
    pub(super) flow: Flow,
}

impl Scene {
    /// Whether it sends more than it may.
    pub(super) fn is_over(&self) -> bool {
        self.flow.rate > self.limit
    }

    /// All of them, with their limits from these rules.
    pub(super) fn all(rules: &[Rule]) -> Vec<Self> {
        let everyday =
            || [shop("GROCER", "5411"), shop("PHARMACY", "5912"), shop("CINEMA", "7832")];
        let flow = |range: &str, shops: &[Shop], rate, mix| Flow {
            acquirer: ACQUIRER.to_owned(),
            cards: Choice::evenly(vec![range.to_owned()]),
            shops: Choice::evenly(shops.to_vec()),
            rate,
            mix,
        };
        vec![
            Self {
                name: "cards 411111, everyday shops",
                intention: "ordinary traffic: cards 411111... in a grocery, a pharmacy, a cinema",
                limit: rate_of(rules, Per::BIN, card_range("411111")),
                of: "per card range",
                flow: flow("411111", &everyday(), 60.0, Mix::ORDINARY),
            },
            Self {
                name: "cards 601100, everyday shops",
                intention: "the same with cards 601100...",
                limit: rate_of(rules, Per::BIN, card_range("601100")),
                of: "per card range",
                flow: flow("601100", &everyday(), 60.0, Mix::ORDINARY),
            },
            Self {
                name: "cards 555555, everyday shops",
                intention: "an attack: stolen numbers 555555... are being tried out in those shops",
                limit: rate_of(rules, Per::BIN, card_range("555555")),
                of: "this card range",
                flow: flow("555555", &everyday(), 150.0, Mix::SHOPPING),
            },
            Self {
                name: "cards 411111, shop TICKETS",
                intention: "a rush: one shop, TICKETS, begins to sell seats for a concert",
                limit: rate_of(rules, Per::MERCHANT, merchant("TICKETS")),
                of: "this merchant",
                flow: flow("411111", &[shop("TICKETS", "7922")], 100.0, Mix::SHOPPING),
            },
        ]
    }
}

fn shop(acceptor: &str, category: &str) -> Shop {
    Shop { acceptor: acceptor.to_owned(), category: category.to_owned() }
}

fn card_range(prefix: &str) -> Option<KeyMatch> {
    BinRange::parse(prefix).ok().map(KeyMatch::of_bin)
}

fn merchant(acceptor: &str) -> Option<KeyMatch> {
    MerchantId::new(ACQUIRER.as_bytes(), acceptor.as_bytes()).map(KeyMatch::of_merchant)
}

/// Tokens per second of a key of its own, else of every key of that limit.
fn rate_of(rules: &[Rule], per: Per, key: Option<KeyMatch>) -> f64 {
    let Some(rule) = rules.iter().find(|rule| rule.per == per) else { return f64::INFINITY };
    let own = rule.keys.iter().find(|own| Some(own.matches) == key);
    own.map_or(rule.rate, |own| own.rate).pico_per_second() as f64 / 1e12
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn one_card_range_and_one_merchant_are_well_over_their_limits_and_the_rest_well_under() {
        let rules = Config::parse(super::super::CONFIG).unwrap().limits;
        let scenes = Scene::all(&rules);
        let loads: Vec<f64> = scenes.iter().map(|scene| scene.flow.rate / scene.limit).collect();
        let (over, under): (Vec<f64>, Vec<f64>) = loads.iter().partition(|load| **load > 1.0);
        assert_eq!((over.len(), under.len()), (2, 2));
        assert!(over.iter().all(|load| *load > 2.0), "{loads:?}");
        assert!(under.iter().all(|load| *load < 0.5), "{loads:?}");
        // What TICKETS may pass is of a range that others use too, and all of it is under the host's.
        let passed = |scene: &Scene| scene.flow.rate.min(scene.limit);
        assert!(passed(&scenes[0]) + passed(&scenes[3]) < scenes[0].limit / 2.0);
        let everything = rate_of(&rules, Per::NOTHING, None);
        assert!(scenes.iter().map(passed).sum::<f64>() < everything / 2.0);
    }
}

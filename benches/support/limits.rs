//! Limits for the benches, and what is asked of them. Rules and traffic are made here and nowhere
//! else in the benches.

use tollgate::clock::Moment;
use tollgate::limits::{Burst, Digests, Hold, LOOK_AHEAD, Per, Policy, Rate, Rule, Terms};
use tollgate::traffic::{Bin, Class, LinkId, MerchantId, Operation, Traffic};

/// How many limits a decision may be asked of here.
pub(crate) const LIMITS_MAX: usize = 4;

/// Tokens that never run out in a bench.
const PLENTY: f64 = 1e7;

/// Tokens per second of each bucket, and in each.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Tokens {
    pub(crate) merchant: f64,
    pub(crate) bin: f64,
    pub(crate) all: f64,
}

impl Tokens {
    /// Nothing is refused.
    pub(crate) const PLENTY: Self = Self { merchant: PLENTY, bin: PLENTY, all: PLENTY };
}

/// The first `limits` of: merchant, BIN, all, and a second one by merchant.
pub(crate) fn rules(limits: usize, merchants: usize, tokens: Tokens) -> Vec<Rule> {
    let mut rules = vec![
        rule("merchant", Per::MERCHANT, tokens.merchant, merchants),
        rule("bin", Per::BIN, tokens.bin, 1_000),
        rule("all", Per::NOTHING, tokens.all, 1),
        rule("merchant-hourly", Per::MERCHANT, PLENTY, merchants),
    ];
    assert!(limits <= LIMITS_MAX, "there are four of them");
    rules.truncate(limits);
    rules
}

fn rule(name: &str, per: Per, tokens: f64, keys_max: usize) -> Rule {
    let (rate, burst) =
        (Rate::per_second(tokens).unwrap(), Burst::tokens(tokens.max(1.0)).unwrap());
    Rule { bin_digits: 8, keys_max, ..Rule::new(name, per, rate, burst) }
}

/// A purchase at some merchant, with one of 64 BINs.
pub(crate) fn traffic(merchant: usize) -> Traffic {
    let digits = [4, 1, 1, 1, 0, 0, (merchant / 8 % 8) as u8, (merchant % 8) as u8];
    let acceptor = format!("SHOP{merchant:08}   ");
    Traffic {
        bin: Bin::from_digits(&digits),
        merchant: MerchantId::new(b"123456", acceptor.as_bytes()),
        ..Traffic::new(LinkId(0), Class::Standard, Operation::Purchase)
    }
}

/// A policy that knows its merchants, and a message of each in random order.
pub(crate) struct Busy {
    pub(crate) policy: Policy,
    pub(crate) messages: Vec<Traffic>,
}

impl Busy {
    /// A first token was taken from each bucket.
    pub(crate) fn new(limits: usize, merchants: usize, tokens: Tokens) -> Self {
        let rules = rules(limits, merchants, tokens);
        Self::of(Policy::new(&rules, &[], 1, 42, Moment::START).unwrap(), merchants)
    }

    /// The same on a node of a cluster, whose leases are valid and whose sync has marked every key.
    #[allow(dead_code, reason = "each bench uses its own part")]
    pub(crate) fn leased(limits: usize, merchants: usize, tokens: Tokens) -> Self {
        let rules = rules(limits, merchants, tokens);
        let rules = rules.into_iter().map(|rule| Rule { hold: Hold::Burst, ..rule });
        let rules: Vec<_> = rules.collect();
        let terms = Terms { sync_budget: 1_000_000, ..Terms::default() };
        let policy = Policy::leased(&rules, &[], terms, 1, 42, Moment::START).unwrap();
        policy.leases().renew(0, Moment::from_nanos(u64::MAX), 1);
        Self::of(policy, merchants)
    }

    fn of(policy: Policy, merchants: usize) -> Self {
        let mut messages: Vec<_> = (0..merchants).map(traffic).collect();
        fastrand::Rng::with_seed(42).shuffle(&mut messages);
        let turn = policy.turn(0);
        for traffic in &messages {
            policy.decide(traffic, Moment::START);
        }
        drop(turn);
        Self { policy, messages }
    }

    /// Decides on `messages` at `now` and returns how many were refused.
    pub(crate) fn refused(&self, messages: &[Traffic], now: Moment) -> usize {
        let together = messages.chunks(LOOK_AHEAD);
        together.map(|together| self.refused_together(together, now)).sum()
    }

    /// The same for a few messages, as a worker decides on those of one turn.
    fn refused_together(&self, together: &[Traffic], now: Moment) -> usize {
        let mut digests = [const { Digests::none() }; LOOK_AHEAD];
        for (traffic, digests) in together.iter().zip(&mut digests) {
            self.policy.look_ahead(traffic, digests);
        }
        digests.iter().for_each(|digests| self.policy.fetch(digests));
        let decide = |(traffic, digests)| self.policy.decide_with(traffic, digests, now);
        let decisions = together.iter().zip(&mut digests).map(decide);
        decisions.filter(|decision| decision.refused_by.is_some()).count()
    }
}

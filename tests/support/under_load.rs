//! Traffic that must not suffer from whatever befalls the store: merchants that keep to their rate and
//! change nodes with each message, beside one that asks for twenty times its rate.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tollgate::clock::Moment;

use super::load::{Answer, Driver, Outcome, Shop};
use super::redis::RedisServer;
use super::redis::ledger::{self, Bucket};
use super::store_house::StoreHouse;
use super::wait_for;

/// Merchants that keep to their rate to the message.
pub const GOOD: usize = 8;
/// Tokens per second of a merchant, and in its bucket.
const RATE: f64 = 25.0;
const BURST: f64 = 50.0;
const ABUSE: f64 = 20.0;

/// A merchant whose bucket does not refill as long as a test runs: its level says what was charged to it.
const STILL_EVERY: f64 = 10.0;
const STILL_BURST: f64 = 1_000.0;

/// Nodes under such traffic.
pub struct UnderLoad {
    pub house: StoreHouse,
    driver: Driver,
    // Each has the processors for itself, as far as the tests of one file go.
    _turn: MutexGuard<'static, ()>,
}

impl UnderLoad {
    /// What the nodes are told.
    pub const LIMITS: &'static str = r#"
        [[limit]]
        name = "merchant"
        per = ["merchant"]
        rate = 25
        burst = 50
        mode = "enforce"
        when = { mcc = ["5411"] }
        [[limit]]
        name = "still"
        per = ["merchant"]
        rate = 0.001
        burst = 1000
        mode = "enforce"
        when = { mcc = ["5999"] }
        "#;

    #[track_caller]
    pub fn start(house: impl FnOnce() -> StoreHouse) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let house = house();
        let mut shops: Vec<_> =
            (0..GOOD).map(|number| Shop::steady(&format!("GOOD{number}"), RATE)).collect();
        shops.push(Shop::steady("ABUSER", ABUSE * RATE));
        shops.push(Shop::steady("STILL", STILL_EVERY).category("5999"));
        let driver = house.load(shops);
        Self { house, driver, _turn: turn }
    }

    pub fn now(&self) -> Moment {
        self.driver.now()
    }

    /// Lets messages come and go for so long.
    pub fn go_on_for(&self, during: Duration) {
        let end = self.driver.now().after(during);
        self.driver.until(end.since(Moment::START));
    }

    /// Says how long answers took before a fault and while it lasted.
    pub fn report(&self, name: &str, from: Moment, until: Moment) {
        let outcome = self.driver.so_far();
        let micros = |part: &Outcome, refused: bool, share: f64| {
            let took = part.latencies(|answer| !refused || answer.is_refused()).quantile(share);
            took.unwrap_or_default().as_micros()
        };
        let (before, during) = (outcome.between(Moment::START, from), outcome.between(from, until));
        println!(
            "{name}: answers p99 {} us before, {} us while; refusals p99 {} us before, {} us while, slowest {:?}",
            micros(&before, false, 0.99),
            micros(&during, false, 0.99),
            micros(&before, true, 0.99),
            micros(&during, true, 0.99),
            during.slowest(Answer::is_refused),
        );
    }

    /// Calls that failed so, over all nodes.
    pub fn errors(&self, kind: &str) -> f64 {
        let name = format!("tollgate_store_errors_total{{kind=\"{kind}\"}}");
        self.house.nodes().map(|node| node.metric(&name)).sum()
    }

    /// Ends the load and holds it to what was promised: no good one refused, the other within a burst of
    /// what one bucket would have given it, and the store told of every token that was spent, once.
    #[track_caller]
    pub fn stop_and_settle<'a>(self, servers: impl IntoIterator<Item = &'a RedisServer> + Copy) {
        let Self { house: _house, driver, _turn } = self;
        let outcome = driver.stop();
        outcome.expect_whole();
        let good = outcome.of(0..GOOD);
        assert_eq!(good.refused(), 0, "of {} that keep to their rate", good.answers.len());
        let abuser = outcome.of(GOOD..GOOD + 1);
        let (admitted, ideal) = (abuser.admitted(), abuser.ideal(RATE, BURST));
        let over = admitted as f64 - ideal as f64;
        assert!(over <= BURST, "the abuser got {admitted}, one bucket gives {ideal}");
        assert!(admitted as f64 >= 0.9 * ideal as f64, "the abuser got {admitted} of {ideal}");

        let mut wanted: Vec<u64> =
            (0..GOOD + 2).map(|shop| outcome.of(shop..shop + 1).admitted() as u64).collect();
        wanted.sort_unstable();
        let still = outcome.of(GOOD + 1..GOOD + 2);
        assert_eq!(still.refused(), 0);
        let known = wait_for("the store knows what was spent", || {
            let buckets = buckets(servers);
            let mut known: Vec<u64> =
                buckets.iter().map(|bucket| bucket.spent_tokens() as u64).collect();
            known.sort_unstable();
            (known == wanted).then_some(buckets)
        });
        let its = known.iter().find(|bucket| bucket.cap_tokens == STILL_BURST).unwrap();
        let left = STILL_BURST - still.admitted() as f64;
        let level = its.level_tokens;
        assert!(level >= left - 0.001, "charged twice: {level} of {left} are left");
    }
}

/// The buckets of all masters that run.
#[track_caller]
pub fn buckets<'a>(servers: impl IntoIterator<Item = &'a RedisServer>) -> Vec<Bucket> {
    let is_master = |server: &&RedisServer| {
        server.is_running() && server.info("role").is_some_and(|role| role == "master")
    };
    servers.into_iter().filter(is_master).flat_map(ledger::buckets).collect()
}

//! Traffic that must not suffer from whatever befalls the store: merchants that keep to their rate and
//! change nodes with each message, beside one that asks for twenty times its rate.

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

/// Nodes under such traffic.
pub struct UnderLoad {
    pub house: StoreHouse,
    driver: Driver,
}

impl UnderLoad {
    /// What the nodes are told.
    pub const LIMITS: &'static str = "[[limit]]\nname = \"merchant\"\nper = [\"merchant\"]\nrate = 25\nburst = 50\nmode = \"enforce\"\n";

    #[track_caller]
    pub fn start(house: StoreHouse) -> Self {
        let mut shops: Vec<_> =
            (0..GOOD).map(|number| Shop::steady(&format!("GOOD{number}"), RATE)).collect();
        shops.push(Shop::steady("ABUSER", ABUSE * RATE));
        let driver = house.load(shops);
        Self { house, driver }
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
        let Self { house: _house, driver } = self;
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
            (0..=GOOD).map(|shop| outcome.of(shop..shop + 1).admitted() as u64).collect();
        wanted.sort_unstable();
        wait_for("the store knows what was spent", || {
            let buckets = buckets(servers);
            let mut known: Vec<u64> =
                buckets.iter().map(|bucket| bucket.spent_tokens() as u64).collect();
            known.sort_unstable();
            (known == wanted).then_some(())
        });
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

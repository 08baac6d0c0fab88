//! Limits as a network meets them: through the real proxy, on real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use support::house::{House, Plan, key, limit, limit_in};
use support::message::Message;
use support::peer::{Framing, Peer};
use support::wait_for;
use tollgate::clock::{Clock, Moment};

const CARD: &str = "4111111111111111";
const OTHER_CARD: &str = "5555555555554444";
const DECISIONS: &str = "tollgate_decisions_total";

/// A house and one session.
struct Scene {
    house: House,
    terminal: Peer,
    stan: u32,
}

impl Scene {
    fn of(plan: &Plan) -> Self {
        let house = plan.start();
        let terminal = house.terminal();
        Self { house, terminal, stan: 0 }
    }

    /// Sends a sale of this card at this merchant; says whether the host got it. If it did not, it
    /// was answered with 91 under its own STAN.
    #[track_caller]
    fn sale(&mut self, pan: &str, merchant: &str) -> bool {
        self.send(&Message::sale(pan, 0).with(42, &format!("{merchant:15}")))
    }

    #[track_caller]
    fn send(&mut self, request: &Message) -> bool {
        self.stan += 1;
        let request = request.clone().with(11, &format!("{:06}", self.stan));
        self.terminal.send(&request.encode());
        // An answer from either side ends this: the host's, or tollgate's own.
        let arrived = wait_for("the request at the host, or an answer to it", || {
            if self.house.at_host.has_bytes() {
                return Some(true);
            }
            self.terminal.has_bytes().then_some(false)
        });
        if arrived {
            assert_eq!(self.house.at_host.receive(), request.encode());
            self.house.at_host.send(&request.answer("00").encode());
        }
        let answer = Message::decode(&self.terminal.receive());
        let code = if arrived { "00" } else { "91" };
        assert_eq!((answer.get(11), answer.get(39)), (request.get(11), Some(code)));
        arrived
    }

    /// Sales of this card at this merchant that pass, until one does not.
    #[track_caller]
    fn burst(&mut self, pan: &str, merchant: &str) -> u32 {
        (0..1_000).find(|_| !self.sale(pan, merchant)).expect("an end of the burst")
    }

    fn limited(&self, limit: &str, outcome: &str) -> f64 {
        self.house.proxy.metric(&format!(
            "tollgate_limit_decisions_total{{link=\"visa\",limit=\"{limit}\",outcome=\"{outcome}\"}}"
        ))
    }
}

#[test]
fn each_bin_has_a_burst_of_its_own() {
    let mut scene = Scene::of(&Plan::limits(&[limit("bin", "bin", 5)]));
    assert_eq!(scene.burst(CARD, "A"), 5);
    assert_eq!(scene.burst("4111110000000000", "B"), 0, "the same six digits");
    assert_eq!(scene.burst(OTHER_CARD, "A"), 5);
    assert_eq!(scene.limited("bin", "reject"), 3.0);
}

/// More merchants than stay near the processor, so that those of messages that come together are
/// looked at together; keepalives between them are no messages.
#[test]
fn messages_that_came_together_are_each_counted_for_their_own_merchant() {
    const MERCHANTS: usize = 4_500;
    const TOGETHER: usize = 100;
    const KEEPALIVE: [u8; 2] = [0, 0];
    let Scene { mut house, mut terminal, .. } =
        Scene::of(&Plan::limits(&[limit("merchant", "merchant", 2)]));
    let sale = |merchant: usize, stan: usize| {
        Message::sale(CARD, stan as u32).with(42, &format!("M{merchant:014}"))
    };
    let wrap = |sale: &Message| Framing::Be16.wrap(&sale.encode());
    let merchants: Vec<usize> = (1..=MERCHANTS).collect();
    for some in merchants.chunks(TOGETHER) {
        let sales: Vec<Message> = some.iter().map(|merchant| sale(*merchant, *merchant)).collect();
        terminal.send_raw(&sales.iter().flat_map(wrap).collect::<Vec<u8>>());
        for sale in &sales {
            assert_eq!(&house.at_host.receive_message(), sale);
            house.at_host.send(&sale.answer("00").encode());
        }
        sales.iter().for_each(|sale| assert_eq!(terminal.receive_message(), sale.answer("00")));
    }
    // One token is left in each.
    let twice = merchants.iter().take(TOGETHER).flat_map(|merchant| [*merchant; 2]);
    let sales: Vec<Message> =
        twice.zip(MERCHANTS + 1..).map(|(merchant, stan)| sale(merchant, stan)).collect();
    let keepalive = |place: usize| if place % 3 == 2 { &KEEPALIVE[..] } else { &[] };
    let frames = sales
        .iter()
        .enumerate()
        .flat_map(|(place, sale)| [wrap(sale), keepalive(place).to_vec()].concat());
    terminal.send_raw(&frames.collect::<Vec<u8>>());
    for pair in sales.chunks(2) {
        assert_eq!(house.at_host.receive_message(), pair[0]);
        assert_eq!(terminal.receive_message().get(11), pair[1].get(11), "the second is refused");
    }
    let refused =
        "tollgate_limit_decisions_total{link=\"visa\",limit=\"merchant\",outcome=\"reject\"}";
    assert_eq!(house.proxy.metric(refused), TOGETHER as f64);
}

#[test]
fn bin_digits_part_issuers_by_more_digits() {
    let sections = limit("bin", "bin", 3) + "bin_digits = 8\n";
    let mut scene = Scene::of(&Plan { sections, ..Plan::default() });
    assert_eq!(scene.burst("4111110000000000", "A"), 3);
    assert_eq!(scene.burst("4111110100000000", "A"), 3);
    assert_eq!(scene.burst("4111110111111111", "A"), 0);
}

#[test]
fn each_merchant_has_a_burst_of_its_own() {
    let mut scene = Scene::of(&Plan::limits(&[limit("merchant", "merchant", 4)]));
    assert_eq!(scene.burst(CARD, "A"), 4);
    assert_eq!(scene.burst(OTHER_CARD, "A"), 0);
    assert_eq!(scene.burst(CARD, "B"), 4);
    assert_eq!(scene.limited("merchant", "reject"), 3.0);
}

#[test]
fn a_global_limit_counts_all_links_sessions_and_issuers_together() {
    let mut scene = Scene::of(&Plan::limits(&[limit("all", "", 6)]));
    assert!(scene.sale(CARD, "A"));
    assert!(scene.sale(OTHER_CARD, "B"));
    scene.terminal = scene.house.terminal();
    assert_eq!(scene.burst("6011111111111117", "C"), 4);
    assert!(!scene.sale(CARD, "A"));
    assert!(!scene.send(&Message::sale(CARD, 0).without(2).without(42)));
}

#[test]
fn what_a_merchants_limit_refuses_costs_its_bin_and_all_nothing() {
    let limits = [limit("all", "", 20), limit("bin", "bin", 10), limit("merchant", "merchant", 2)];
    let mut scene = Scene::of(&Plan::limits(&limits));
    assert_eq!(scene.burst(CARD, "BUSY"), 2);
    for _ in 0..100 {
        assert!(!scene.sale(CARD, "BUSY"));
    }
    // Eight of the BIN's ten are left, two for each other merchant.
    for merchant in ["A", "B", "C", "D"] {
        assert!(scene.sale(CARD, merchant) && scene.sale(CARD, merchant), "{merchant}");
    }
    assert!(!scene.sale(CARD, "E"));
    assert_eq!(scene.limited("bin", "reject"), 1.0);
    assert_eq!(scene.limited("merchant", "reject"), 101.0);
    // Nor did the BIN's refusal cost the merchant or all anything: ten of twenty are left.
    for merchant in ["E", "F", "G", "H", "I"] {
        assert!(scene.sale(OTHER_CARD, merchant) && scene.sale(OTHER_CARD, merchant), "{merchant}");
    }
    assert!(!scene.sale("6011111111111117", "J"));
    assert_eq!(scene.limited("all", "reject"), 1.0);
}

#[test]
fn a_key_of_its_own_overrides_by_prefix_and_range_and_the_narrowest_wins() {
    let sections = [
        limit("bin", "bin", 1),
        key("bin = \"411111\"", 3),
        key("bin = \"510000-549999\"", 4),
        key("bin = \"520000-520099\"", 5),
        key("bin = \"52000050\"", 6),
    ]
    .concat();
    let mut scene = Scene::of(&Plan { sections, ..Plan::default() });
    for (pan, burst) in [
        (CARD, 3),
        ("4111129999999999", 1),
        ("5099999999999999", 1),
        ("5100000000000000", 4),
        ("5201000000000000", 0),
        ("5499999999999999", 0),
        ("5500000000000000", 1),
        ("5200000000000000", 5),
        ("5200999999999999", 0),
        ("5200005000000000", 6),
        ("5200005099999999", 0),
    ] {
        assert_eq!(scene.burst(pan, "A"), burst, "{pan}");
    }
}

#[test]
fn a_key_of_its_own_is_a_merchant_at_one_acquirer() {
    let sections = [
        limit("merchant", "merchant", 1),
        key("merchant = \"SHOP\"\nacquirer = \"123456\"", 3),
        key("merchant = \"SHOP\"\nacquirer = \"\"", 5),
    ]
    .concat();
    let mut scene = Scene::of(&Plan { sections, ..Plan::default() });
    let mut burst = |acquirer: Option<&str>, merchant: &str| {
        let sale = Message::sale(CARD, 0).with(42, &format!("{merchant:15}"));
        let sale = match acquirer {
            Some(acquirer) => sale.with(32, acquirer),
            None => sale.without(32),
        };
        (0..100).find(|_| !scene.send(&sale)).unwrap()
    };
    assert_eq!(burst(Some("123456"), "SHOP"), 3);
    assert_eq!(burst(Some("654321"), "SHOP"), 1);
    assert_eq!(burst(None, "SHOP"), 5);
    assert_eq!(burst(Some("123456"), "SHOPS"), 1);
}

#[test]
fn a_shadow_limit_forwards_everything_and_counts_what_it_would_refuse() {
    let limits = [limit_in("shadow", "watched", "bin", 2), limit("all", "", 9)];
    let mut scene = Scene::of(&Plan::limits(&limits));
    assert_eq!(scene.burst(CARD, "A"), 9);
    assert_eq!(scene.limited("watched", "shadow_reject"), 8.0, "the one that all refused included");
    assert_eq!(scene.limited("watched", "reject"), 0.0);
    assert_eq!(scene.limited("all", "reject"), 1.0);
    assert_eq!(scene.limited("all", "shadow_reject"), 0.0);
    let forwarded = ["class=\"standard\"", "outcome=\"forward\""];
    assert_eq!(scene.house.proxy.metric_sum(DECISIONS, &forwarded), 9.0);
}

#[test]
fn a_limit_that_is_off_neither_refuses_nor_counts() {
    let limits = [limit_in("off", "idle", "bin", 1), limit("all", "", 7)];
    let mut scene = Scene::of(&Plan::limits(&limits));
    assert_eq!(scene.burst(CARD, "A"), 7);
    assert_eq!(scene.limited("idle", "reject") + scene.limited("idle", "shadow_reject"), 0.0);
}

#[test]
fn an_empty_bucket_fills_again() {
    let sections = limit("bin", "bin", 2).replace("0.001", "20");
    let mut scene = Scene::of(&Plan { sections, ..Plan::default() });
    for _ in 0..3 {
        wait_for("a refusal", || (!scene.sale(CARD, "A")).then_some(()));
        wait_for("a token again", || scene.sale(CARD, "A").then_some(()));
    }
    assert!(scene.limited("bin", "reject") >= 3.0);
}

/// A refusal leaves the bucket as it was, so that whoever goes on asking is not shut out for ever.
#[test]
fn a_key_that_is_asked_for_without_pause_still_gets_its_rate_and_its_reversals_always_pass() {
    const ADMITTED: u32 = 20;
    const RATE: f64 = 50.0;
    let sections = limit("bin", "bin", 1).replace("rate = 0.001", &format!("rate = {RATE:?}"));
    let mut scene = Scene::of(&Plan { sections, ..Plan::default() });
    let clock = Clock::start();
    let (mut admitted, mut refused) = (0, 0);
    while admitted < ADMITTED {
        if !scene.sale(CARD, "A") {
            refused += 1;
            continue;
        }
        admitted += 1;
        let reversal = Message::sale(CARD, scene.stan).mti("0420");
        scene.terminal.send(&reversal.encode());
        assert_eq!(scene.house.at_host.receive_message(), reversal);
        scene.house.at_host.send(&reversal.answer("00").encode());
        assert_eq!(scene.terminal.receive_message(), reversal.answer("00"));
    }
    assert!(refused > 0, "asked for too slowly to show anything");
    // The time is taken around all of it, so that the bound holds on any machine.
    let seconds = clock.now().since(Moment::START).as_secs_f64();
    assert!(f64::from(admitted) <= 1.0 + RATE * seconds, "{admitted} in {seconds} s");
}

#[test]
fn an_advice_is_charged_so_that_requests_yield() {
    let mut scene = Scene::of(&Plan::limits(&[limit("bin", "bin", 5)]));
    for _ in 0..3 {
        assert!(scene.send(&Message::sale(CARD, 0).mti("0120")));
    }
    assert_eq!(scene.burst(CARD, "A"), 2);
}

/// A request with a MAC on a link that answers as `local_answers` says, with the bucket empty.
fn over_the_limit(local_answers: &str, request: &Message) -> (bool, Scene) {
    let link = format!("local_answers = \"{local_answers}\"");
    let mut scene = Scene::of(&Plan { link, ..Plan::limits(&[limit("bin", "bin", 1)]) });
    assert!(scene.sale(CARD, "A"));
    (scene.send(request), scene)
}

fn unenforceable(scene: &Scene) -> f64 {
    scene.house.proxy.metric_sum(DECISIONS, &["outcome=\"unenforceable\""])
}

#[test]
fn over_the_limit_a_request_with_a_mac_is_forwarded_and_counted() {
    for mac in [64, 128] {
        let request = Message::sale(CARD, 0).with(mac, "0011223344556677");
        let (forwarded, mut scene) = over_the_limit("unless-mac", &request);
        assert!(forwarded, "{mac}");
        assert_eq!(unenforceable(&scene), 1.0);
        assert_eq!(scene.limited("bin", "reject"), 0.0);
        assert!(!scene.sale(CARD, "A"), "one without a MAC is refused");
        assert_eq!(unenforceable(&scene), 1.0);
    }
}

#[test]
fn with_local_answers_always_a_request_with_a_mac_is_refused_too() {
    for mac in [64, 128] {
        let request = Message::sale(CARD, 0).with(mac, "0011223344556677");
        let (forwarded, scene) = over_the_limit("always", &request);
        assert!(!forwarded, "{mac}");
        assert_eq!((unenforceable(&scene), scene.limited("bin", "reject")), (0.0, 1.0));
    }
}

#[test]
fn with_local_answers_never_nothing_is_refused() {
    let (forwarded, mut scene) = over_the_limit("never", &Message::sale(CARD, 0));
    assert!(forwarded);
    assert!(scene.send(&Message::sale(CARD, 0).with(64, "0011223344556677")));
    assert_eq!((unenforceable(&scene), scene.limited("bin", "reject")), (2.0, 0.0));
}

#[test]
fn with_local_answers_never_nothing_is_answered_at_a_deadline() {
    let link = "local_answers = \"never\"".to_owned();
    let mut scene = Scene::of(&Plan { link, deadline: "5ms", ..Plan::default() });
    let silent = Message::sale(CARD, 900_000);
    scene.terminal.send(&silent.encode());
    assert_eq!(scene.house.at_host.receive(), silent.encode());
    // Many deadlines go by, and only what the host says is heard.
    for _ in 0..200 {
        assert!(scene.sale(CARD, "A"));
    }
    scene.house.at_host.send(&silent.answer("00").encode());
    assert_eq!(scene.terminal.receive(), silent.answer("00").encode());
    let answered = scene.house.proxy.metric_sum("tollgate_deadline_answers_total", &["visa"]);
    assert_eq!(answered, 0.0);
}

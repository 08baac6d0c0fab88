//! Reports about what grows with everybody who ever came: series, buckets, entries in flight.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::host::Host;
use crate::support::house::{House, Plan, limit};
use crate::support::message::Message;
use crate::support::peer::{Framing, Peer};
use crate::support::proxy::Proxy;
use crate::support::{config, wait_for};

const CARD: &str = "4111111111111111";
/// What a process may take more for its buffers, tables and threads, once it is warm.
const GROWTH_KIB_MAX: usize = 16_384;

#[track_caller]
fn is_served(terminal: &mut Peer, at_host: &mut Peer, sale: &Message) {
    terminal.send(&sale.encode());
    assert_eq!(at_host.receive_message(), *sale);
    at_host.send(&sale.answer("00").encode());
    assert_eq!(terminal.receive_message(), sale.answer("00"));
}

/// A sale of a card and a merchant that nobody has seen before.
fn stranger(number: u32) -> Message {
    Message::sale(&format!("4{number:07}00000000"), number % 1_000_000)
        .with(42, &format!("M{number:014}"))
}

/// Names and labels of every series, without values.
fn series(proxy: &Proxy) -> BTreeSet<String> {
    let (_, page) = proxy.page("/metrics");
    let lines = page.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

/// Sends strangers in heaps; every one of them is refused.
#[track_caller]
fn refuse_strangers(terminal: &mut Peer, numbers: std::ops::Range<u32>) {
    const HEAP: usize = 500;
    let numbers: Vec<u32> = numbers.collect();
    for heap in numbers.chunks(HEAP) {
        let frames = heap.iter().map(|number| Framing::Be16.wrap(&stranger(*number).encode()));
        terminal.send_raw(&frames.collect::<Vec<_>>().concat());
        for number in heap {
            let answer = terminal.receive_message();
            let stan = format!("{:06}", number % 1_000_000);
            assert_eq!((answer.get(11), answer.get(39)), (Some(stan.as_str()), Some("91")));
        }
    }
}

/// BR120, BR084, and BR082: nobody asks for the metrics meanwhile.
#[test]
fn a_hundred_thousand_strangers_add_no_series_and_no_memory_though_nobody_scrapes() {
    const WARM: u32 = 20_000;
    const STRANGERS: u32 = 120_000;
    let limits = [
        limit("merchant", "merchant", 100) + "keys_max = 2000\n",
        limit("bin", "bin", 100) + "keys_max = 2000\n",
        limit("all", "", 1),
    ];
    let mut house = Plan::limits(&limits).start();
    let mut terminal = house.terminal();
    is_served(&mut terminal, &mut house.at_host, &stranger(0));
    let before = series(&house.proxy);
    assert!((100..2_000).contains(&before.len()), "{}", before.len());
    refuse_strangers(&mut terminal, 1..WARM);
    let warm = house.proxy.rss_kib();
    refuse_strangers(&mut terminal, WARM..STRANGERS);
    let grown = house.proxy.rss_kib().saturating_sub(warm);
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB");

    assert_eq!(series(&house.proxy), before, "a series came or went");
    let refused = house.proxy.metric_sum("tollgate_rejects_total", &["reason=\"limit\""]);
    assert_eq!(refused, f64::from(STRANGERS - 1));
    for limit in ["merchant", "bin"] {
        let keys = house.proxy.metric(&format!("tollgate_limit_keys{{limit=\"{limit}\"}}"));
        assert!(keys <= 2_000.0, "{limit}: {keys}");
    }
    // What no limit may refuse still passes.
    is_served(&mut terminal, &mut house.at_host, &stranger(1).mti("0420"));
}

/// BR086.
#[test]
fn a_merchant_that_finds_the_table_full_of_others_is_not_refused_for_it() {
    const KEYS: u32 = 300;
    let limits = [limit("merchant", "merchant", 1_000) + "keys_max = 300\n"];
    let mut house = Plan::limits(&limits).start();
    let mut terminal = house.terminal();
    let overflowed =
        |house: &House| house.proxy.metric("tollgate_limit_overflow_total{limit=\"merchant\"}");
    for number in 0..KEYS {
        is_served(&mut terminal, &mut house.at_host, &stranger(number));
    }
    assert_eq!(house.proxy.metric("tollgate_limit_keys{limit=\"merchant\"}"), f64::from(KEYS));
    assert_eq!(overflowed(&house), 0.0);
    for number in KEYS..2 * KEYS {
        is_served(&mut terminal, &mut house.at_host, &stranger(number));
    }
    assert_eq!(house.proxy.metric("tollgate_limit_keys{limit=\"merchant\"}"), f64::from(KEYS));
    assert_eq!(overflowed(&house), f64::from(KEYS));
    assert_eq!(house.proxy.metric_sum("tollgate_rejects_total", &[]), 0.0);
}

/// BR084, of what is remembered of requests and sessions instead of keys.
#[test]
fn sessions_requests_without_answer_and_answers_without_request_leave_no_memory_behind() {
    const WARM_ROUNDS: u32 = 10;
    const ROUNDS: u32 = 60;
    const SESSIONS: u32 = 20;
    const SALES: u32 = 40;
    // Each round sends more than may be in flight or be remembered as late.
    let upstream = "inflight_max = 256".to_owned();
    let mut house = Plan { deadline: "50ms", upstream, ..Plan::default() }.start();
    let open_files = |house: &House| {
        std::fs::read_dir(format!("/proc/{}/fd", house.proxy.pid())).unwrap().count()
    };
    let sockets = "tollgate_link_sockets{link=\"visa\"}";
    let before = open_files(&house);
    let mut warm = 0;
    for round in 1..=ROUNDS {
        let mut sessions: Vec<Peer> = (0..SESSIONS).map(|_| house.terminal()).collect();
        let number = |session: u32, sale: u32| (round * SESSIONS + session) * SALES + sale;
        for (session, peer) in (0..).zip(&mut sessions) {
            let sales = (0..SALES).map(|sale| stranger(number(session, sale)));
            let frames = sales.map(|sale| Framing::Be16.wrap(&sale.encode()));
            peer.send_raw(&frames.collect::<Vec<_>>().concat());
        }
        for peer in &mut sessions {
            for _ in 0..SALES {
                assert_eq!(peer.receive_message().get(39), Some("91"));
            }
        }
        drop(sessions);
        // Whatever came to the host meanwhile it answers when nobody waits for it any more, under
        // STANs that nobody asked for besides.
        while let Some(frame) = house.at_host.receive_within(std::time::Duration::from_millis(20)) {
            let late = Message::decode(&frame.unwrap()).answer("05");
            house.at_host.send(&late.encode());
            house.at_host.send(&late.with(11, "999999").with(37, "NOBODY KNOWS").encode());
        }
        house.proxy.wait_for_gauge(sockets, 0.0);
        if round == WARM_ROUNDS {
            warm = house.proxy.rss_kib();
        }
    }
    let grown = house.proxy.rss_kib().saturating_sub(warm);
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB");
    let inflight = || house.proxy.metric_sum("tollgate_inflight", &["link=\"visa\""]);
    wait_for("nothing is in flight", || (inflight() == 0.0).then_some(()));
    wait_for("their files are closed", || (open_files(&house) <= before).then_some(()));
    let overdue = house.proxy.metric_sum("tollgate_deadline_answers_total", &[]);
    let strays = house.proxy.metric_sum("tollgate_stray_messages_total", &[]);
    assert!(overdue > 256.0 && strays > 256.0, "{overdue} overdue, {strays} strays");
    let advice = Message::sale(CARD, 1).mti("0120");
    is_served(&mut house.terminal(), &mut house.at_host, &advice);
}

/// BR087, without a store: a key that was never seen is the one thing for which a worker takes a lock.
#[test]
fn a_link_that_floods_new_keys_does_not_hold_up_the_link_beside_it() {
    const NEW_KEYS: u32 = 5_000;
    const SALES: u32 = 300;
    let hosts = ["flood", "calm"].map(|link| (link, Host::listen(Framing::Be16)));
    let links = hosts.each_ref().map(|(link, host)| {
        config::link(link, host.address(), "deadline = \"50s\"", "connections = 1")
    });
    let node = config::node("0s").replace("workers = 1", "workers = 2");
    let limits =
        [limit("merchant", "merchant", 1_000_000), limit("bin", "bin", 1_000_000)].concat();
    let proxy = Arc::new(Proxy::start(&format!("{node}{}{limits}", links.concat())));
    for (link, host) in hosts {
        host.serve(|frame| Some(Message::decode(frame).answer("00").encode()));
        let up = format!("tollgate_upstream_up{{link=\"{link}\",upstream=\"{link}-host\"}}");
        proxy.wait_for_gauge(&up, 1.0);
    }
    let (flooded, calmed) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let flood = {
        let (proxy, flooded, calmed) = (proxy.clone(), flooded.clone(), calmed.clone());
        std::thread::spawn(move || {
            let mut session = proxy.connect("flood", Framing::Be16);
            let mut number = 0;
            while number < NEW_KEYS || calmed.load(Ordering::SeqCst) < SALES {
                let heap = number..number + 50;
                let frames =
                    heap.clone().map(|number| Framing::Be16.wrap(&stranger(number).encode()));
                session.send_raw(&frames.collect::<Vec<_>>().concat());
                for number in heap {
                    assert_eq!(session.receive_message(), stranger(number).answer("00"));
                }
                number += 50;
                flooded.store(number, Ordering::SeqCst);
            }
        })
    };
    let mut session = proxy.connect("calm", Framing::Be16);
    let mut sales = 0;
    while sales < SALES || flooded.load(Ordering::SeqCst) < NEW_KEYS {
        sales += 1;
        let sale = Message::sale(CARD, sales);
        session.send(&sale.encode());
        assert_eq!(session.receive_message(), sale.answer("00"));
        calmed.store(sales, Ordering::SeqCst);
        assert!(sales < 900_000, "the flood stands still");
    }
    flood.join().unwrap();
    let keys = proxy.metric("tollgate_limit_keys{limit=\"merchant\"}");
    assert!(keys > f64::from(NEW_KEYS), "{keys}");
}

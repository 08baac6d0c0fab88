//! Reports about peers that come and go without end: they are met ever more slowly, and the log holds
//! little of it.

use std::time::Duration;

use tollgate::clock::{Clock, Moment};

use crate::support::host::Host;
use crate::support::house::{House, Plan, SOCKETS};
use crate::support::message::Message;
use crate::support::peer::{Framing, Peer};
use crate::support::proxy::Proxy;
use crate::support::wait_for;

const CARD: &str = "4111111111111111";

#[track_caller]
fn is_served(terminal: &mut Peer, at_host: &mut Peer, stan: u32) {
    let sale = Message::sale(CARD, stan);
    terminal.send(&sale.encode());
    assert_eq!(at_host.receive_message(), sale);
    at_host.send(&sale.answer("00").encode());
    assert_eq!(terminal.receive_message(), sale.answer("00"));
}

/// BR038. That it accepts is no reason to begin anew: only a connection that was of use is.
#[test]
fn a_host_that_ends_every_connection_is_dialled_ever_more_slowly() {
    const ENDED: usize = 8;
    let host = Host::listen(Framing::Be16);
    let proxy = Proxy::start(&Plan::default().config(host.address()));
    let mut terminal = proxy.connect("visa", Framing::Be16);
    let clock = Clock::start();
    let mut accepted = Vec::new();
    for _ in 0..ENDED {
        let connection = host.accept();
        // Before its end, so that whatever keeps this test from going on lengthens no gap below.
        accepted.push(clock.now());
        drop(connection);
    }
    let mut at_host = host.accept();
    accepted.push(clock.now());
    // Half of a wait is drawn by lot, the other half is sure: 25 ms, twice as much each time, 1 s.
    let mut sure = Duration::from_millis(25);
    for gap in accepted.windows(2).map(|pair| pair[1].since(pair[0])) {
        assert!(gap >= sure, "{gap:?} instead of {sure:?}");
        sure = (sure * 2).min(Duration::from_secs(1));
    }
    proxy.wait_for_gauge(SOCKETS, 1.0);
    assert_eq!(proxy.metric("tollgate_reconnects_total{link=\"visa\"}"), ENDED as f64);
    // The last is up, each of the others came and went.
    for (line, count) in [
        (["INFO", " host connected"], ENDED + 1),
        (["INFO", " host up"], ENDED + 1),
        (["WARN", " host disconnected"], ENDED),
        (["ERROR", " host down"], ENDED),
    ] {
        wait_for("it is said", || (proxy.log_lines(&line) == count).then_some(()));
    }
    assert_eq!(proxy.log_lines(&[" host "]), 4 * ENDED + 2, "nothing else is said of the host");
    is_served(&mut terminal, &mut at_host, 1);
}

/// BR038, when it refuses instead.
#[test]
fn a_host_that_is_away_for_long_is_said_to_be_away_once() {
    let host = Host::listen(Framing::Be16);
    let address = host.address();
    drop(host);
    let log = "level = \"debug\"".to_owned();
    let proxy = Proxy::start(&Plan { log, ..Plan::default() }.config(address));
    wait_for("many attempts", || (proxy.log_lines(&["still no host"]) >= 5).then_some(()));
    assert_eq!(proxy.log_lines(&["WARN", "link=visa"]), 1);
    assert_eq!(proxy.log_lines(&["WARN", "cannot reach host, will keep trying"]), 1);
    assert_eq!(proxy.log_lines(&["ERROR"]), 0);
    let host = Host::listen_on(address, Framing::Be16);
    let mut at_host = host.accept();
    proxy.wait_for_gauge(SOCKETS, 1.0);
    is_served(&mut proxy.connect("visa", Framing::Be16), &mut at_host, 1);
}

/// BR038 on the network's side.
#[test]
fn sessions_that_come_and_go_leave_nothing_behind_and_do_not_fill_the_log() {
    const STORM: u32 = 1_500;
    /// Lines of one kind in a second.
    const LINES: u64 = 20;
    let link = "connections_max = 8".to_owned();
    let mut house = Plan { link, ..Plan::default() }.start();
    let sessions = "tollgate_link_sockets{link=\"visa\"}";
    let mut steady = house.terminal();
    is_served(&mut steady, &mut house.at_host, 1);
    let open_files =
        || std::fs::read_dir(format!("/proc/{}/fd", house.proxy.pid())).unwrap().count();
    let before = open_files();
    let lines_before = house.proxy.log().lines().count();
    let clock = Clock::start();
    for number in 0..STORM {
        let mut fickle = house.proxy.connect("visa", Framing::Be16);
        match number % 3 {
            // It may have been refused: then this finds nobody.
            0 => drop(std::io::Write::write_all(&mut fickle.stream, &[0, 100, b'0'])),
            1 => fickle.reset(),
            _ => drop(fickle),
        }
        if number % 100 == 0 {
            is_served(&mut steady, &mut house.at_host, 2 + number);
        }
    }
    house.proxy.wait_for_gauge(sessions, 1.0);
    wait_for("their files are closed", || (open_files() <= before).then_some(()));
    // Opened, closed, ended in mid-frame, refused: each a few lines in any second of the storm.
    let seconds = clock.now().since(Moment::START).as_secs() + 2;
    let lines = house.proxy.log().lines().count() - lines_before;
    let lines_max = usize::try_from(4 * LINES * seconds).unwrap();
    assert!(lines <= lines_max, "{lines} lines in {seconds} s");
    assert_eq!(house.proxy.log_lines(&["ERROR"]), 0);
    let House { proxy, at_host, .. } = &mut house;
    is_served(&mut proxy.connect("visa", Framing::Be16), at_host, 999_999);
}

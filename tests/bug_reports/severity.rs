//! Reports about logs that cry wolf: what goes as it should is no warning, what somebody has to act
//! on is one, and what a stranger does is said now and then.

use std::net::{TcpListener, TcpStream};

use tollgate::clock::{Clock, Moment};

use crate::support::host::Host;
use crate::support::house::{House, Plan, SOCKETS, limit};
use crate::support::message::Message;
use crate::support::peer::{Framing, Peer};
use crate::support::proxy::Proxy;
use crate::support::wait_for;

const CARD: &str = "4111111111111111";

/// Lines of the log that are meant to be acted on. What the configuration is warned of at the start,
/// a long deadline here, is no part of what happens.
fn alarms(proxy: &Proxy) -> Vec<String> {
    let is_alarm = |line: &&str| {
        let happens = !line.contains("tollgate::cli::run");
        happens && (line.contains("WARN") || line.contains("ERROR"))
    };
    proxy.log().lines().filter(is_alarm).map(str::to_owned).collect()
}

#[track_caller]
fn is_served(terminal: &mut Peer, at_host: &mut Peer, message: &Message, code: &str) {
    terminal.send(&message.encode());
    assert_eq!(at_host.receive_message(), *message);
    at_host.send(&message.answer(code).encode());
    assert_eq!(terminal.receive_message(), message.answer(code));
}

/// BR147: a refusal on purpose is no fault.
#[test]
fn what_goes_as_it_should_is_no_alarm() {
    let limits = [limit("bin", "bin", 3)];
    let House { mut proxy, mut at_host, .. } = Plan::limits(&limits).start();
    let mut terminals = [(); 3].map(|()| proxy.connect("visa", Framing::Be16));
    let sale = |stan| Message::sale(CARD, stan);
    let [steady, leaving, broken] = &mut terminals;
    is_served(steady, &mut at_host, &sale(1), "00");
    is_served(leaving, &mut at_host, &sale(2), "05");
    is_served(broken, &mut at_host, &sale(3), "51");
    // More than its limit allows.
    for stan in 4..100 {
        steady.send(&sale(stan).encode());
        assert_eq!(steady.receive_message().get(39), Some("91"));
    }
    // A keepalive, an advice, an echo, a reversal.
    steady.send_raw(&[0, 0]);
    is_served(steady, &mut at_host, &sale(100).mti("0120"), "00");
    let echo = Message::new("0800", &[(7, "1130045900"), (11, "000101"), (70, "301")]);
    is_served(steady, &mut at_host, &echo, "00");
    is_served(steady, &mut at_host, &sale(102).mti("0420"), "00");
    // A peer that ends in order, and one that breaks off while nothing is owed to it.
    let [mut steady, mut leaving, broken] = terminals;
    leaving.half_close();
    leaving.expect_end();
    broken.reset();
    proxy.wait_for_gauge("tollgate_link_sockets{link=\"visa\"}", 1.0);
    is_served(&mut steady, &mut at_host, &sale(103).mti("0420"), "00");
    assert_eq!(alarms(&proxy), [""; 0]);
    // The end that was asked for; that the link is down then is true.
    proxy.signal("TERM");
    drop(steady);
    assert_eq!(proxy.wait().code(), Some(0));
    let alarms = alarms(&proxy);
    assert!(alarms.iter().all(|line| line.contains("link down")), "{alarms:?}");
}

/// The other half of it: what is lost is said, once each time.
#[test]
fn what_somebody_has_to_act_on_is_an_alarm_of_one_line() {
    let House { proxy, at_host, host, .. } = Plan::default().start();
    let mut terminal = proxy.connect("visa", Framing::Be16);
    proxy.wait_for_metric("tollgate_link_state{link=\"visa\",state=\"up\"}", 1.0);
    assert_eq!(alarms(&proxy), [""; 0]);
    let address = host.address();
    drop((at_host, host));
    proxy.wait_for_gauge(SOCKETS, 0.0);
    proxy.wait_for_log("cannot reach host");
    let alarm = |level: &str, text: &str| proxy.log_lines(&[level, "link=visa", text]);
    assert_eq!(alarm("WARN", "host disconnected"), 1);
    assert_eq!(alarm("ERROR", "host down"), 1);
    assert_eq!(alarm("WARN", "cannot reach host"), 1);
    // Nobody else is to be woken for it.
    assert_eq!(alarms(&proxy).len(), 3);
    let mut at_host = Host::listen_on(address, Framing::Be16).accept();
    proxy.wait_for_gauge(SOCKETS, 1.0);
    wait_for("its return is said", || (alarm("INFO", "host up") == 2).then_some(()));
    is_served(&mut terminal, &mut at_host, &Message::sale(CARD, 2), "00");
    drop(terminal);
    wait_for("nobody is there", || (alarm("WARN", "link down") == 1).then_some(()));
    assert_eq!(alarms(&proxy).len(), 4);
}

/// BR147.
#[test]
fn a_stranger_who_comes_again_and_again_is_counted_each_time_and_said_now_and_then() {
    const CALLS: u32 = 200;
    let link = "allow = [\"10.0.0.0/8\"]".to_owned();
    let host = Host::listen(Framing::Be16);
    let proxy = Proxy::start(&Plan { link, ..Plan::default() }.config(host.address()));
    let clock = Clock::start();
    for _ in 0..CALLS {
        proxy.connect("visa", Framing::Be16).expect_end();
    }
    let refused = "tollgate_connections_refused_total{link=\"visa\",cause=\"not_allowed\"}";
    proxy.wait_for_gauge(refused, f64::from(CALLS));
    let seconds = clock.now().since(Moment::START).as_secs() + 2;
    let lines = proxy.log_lines(&["WARN", "connection refused: its source is not in allow"]);
    assert!((1..=usize::try_from(seconds).unwrap()).contains(&lines), "{lines} in {seconds} s");
    assert_eq!(alarms(&proxy).len(), lines, "nothing else is said of it");
}

/// BR147, of a link that would listen again and cannot.
#[test]
fn an_address_that_stays_taken_is_said_now_and_then_until_it_is_free() {
    let link = "host_down = \"close\"".to_owned();
    let host = Host::listen(Framing::Be16);
    let host_address = host.address();
    drop(host);
    let proxy = Proxy::start(&Plan { link, ..Plan::default() }.config(host_address));
    let address = proxy.address("visa");
    let squatter = wait_for("the link's address is free", || TcpListener::bind(address).ok());
    let clock = Clock::start();
    let host = Host::listen_on(host_address, Framing::Be16);
    let mut at_host = host.accept();
    let said = |more: &str| proxy.log_lines(&["WARN", "cannot listen again yet", more]);
    wait_for("some of it was kept back", || (said("more=") > said("more=0")).then_some(()));
    let seconds = clock.now().since(Moment::START).as_secs() + 2;
    assert!(said("") <= usize::try_from(seconds).unwrap(), "{} in {seconds} s", said(""));
    drop(squatter);
    let session = || TcpStream::connect(address).ok();
    let mut terminal = Peer::new(wait_for("the link listens again", session), Framing::Be16);
    is_served(&mut terminal, &mut at_host, &Message::sale(CARD, 1), "00");
}

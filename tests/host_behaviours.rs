//! Whatever a host does, each request gets exactly one answer, on the session that asked; advices
//! get none but the host's; and a link beside it, on the same thread, notices nothing.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use support::host::Host;
use support::message::Message;
use support::peer::{Framing, Peer};
use support::proxy::Proxy;
use support::{config, wait_for};

const CARD: &str = "4111111111111111";
/// A deadline that passes in a test, and one that does not.
const SHORT: &str = r#"deadline = "150ms""#;
const LONG: &str = r#"deadline = "50s""#;
const ONE: &str = "connections = 1";

/// A link under test, and a link beside it whose host is well.
struct World {
    proxy: Proxy,
    neighbour: Peer,
    neighbour_asked: u32,
}

impl World {
    #[track_caller]
    fn start(host: SocketAddr, link_keys: &str, upstream_keys: &str) -> Self {
        let well = Host::listen(Framing::Be16);
        let proxy = Proxy::start(&format!(
            "{}{}{}",
            config::node("0s"),
            config::link("visa", host, link_keys, upstream_keys),
            config::link("other", well.address(), LONG, ""),
        ));
        well.serve(|frame| Some(Message::decode(frame).answer("00").encode()));
        proxy.wait_for_gauge(
            r#"tollgate_upstream_sockets{link="other",upstream="other-host"}"#,
            2.0,
        );
        let neighbour = proxy.connect("other", Framing::Be16);
        Self { proxy, neighbour, neighbour_asked: 0 }
    }

    #[track_caller]
    fn connect(&self) -> Peer {
        self.proxy.connect("visa", Framing::Be16)
    }

    #[track_caller]
    fn wait_for_connections(&self, up: f64) {
        let series = r#"tollgate_upstream_sockets{link="visa",upstream="visa-host"}"#;
        self.proxy.wait_for_gauge(series, up);
    }

    /// The host's next connection, once the proxy knows that it has it.
    #[track_caller]
    fn accept_only(&self, host: &Host) -> Peer {
        let connection = host.accept();
        self.wait_for_connections(1.0);
        connection
    }

    fn sum(&self, metric: &str, label: &str) -> f64 {
        self.proxy.metric_sum(metric, &[r#"link="visa""#, label])
    }

    fn deadline_answers(&self, reason: &str) -> f64 {
        self.sum("tollgate_deadline_answers_total", &format!(r#"reason="{reason}""#))
    }

    /// Bytes queued for the host.
    fn queued(&self) -> f64 {
        self.proxy.metric(r#"tollgate_host_queue_bytes{link="visa"}"#)
    }

    /// The same once the system takes no more of them: it makes room for a while after it first
    /// takes nothing.
    #[track_caller]
    fn queued_at_rest(&self) -> f64 {
        let (mut last, mut looks) = (0.0, 0);
        wait_for("the queue to the host is at rest", || {
            let queued = self.queued();
            looks = if queued == last { looks + 1 } else { 0 };
            last = queued;
            (looks == 20).then_some(queued)
        })
    }

    fn rejects(&self, reason: &str) -> f64 {
        self.sum("tollgate_rejects_total", &format!(r#"reason="{reason}""#))
    }

    #[track_caller]
    fn wait_for_stray(&self, kind: &str, approves: bool, count: f64) {
        let labels = format!(r#"link="visa",kind="{kind}",approves="{approves}""#);
        self.proxy.wait_for_metric(&format!("tollgate_stray_messages_total{{{labels}}}"), count);
    }

    /// The link beside this one is served by its host, and has never seen anything else.
    #[track_caller]
    fn neighbour_is_well(&mut self) {
        for _ in 0..20 {
            self.neighbour_asked += 1;
            let sale = Message::sale(CARD, self.neighbour_asked);
            self.neighbour.send(&sale.encode());
            assert_eq!(self.neighbour.receive_message(), sale.answer("00"));
        }
        let answers = f64::from(self.neighbour_asked);
        let other = r#"link="other""#;
        let count = |metric: &str, label: &str| self.proxy.metric_sum(metric, &[other, label]);
        assert_eq!(count("tollgate_messages_total", r#"direction="answer""#), answers);
        assert_eq!(count("tollgate_decisions_total", r#"outcome="forward""#), answers);
        for metric in [
            "tollgate_rejects_total",
            "tollgate_deadline_answers_total",
            "tollgate_late_responses_total",
            "tollgate_stray_messages_total",
            "tollgate_parse_errors_total",
            "tollgate_reconnects_total",
        ] {
            assert_eq!(count(metric, ""), 0.0, "{metric}");
        }
    }
}

/// A request of one terminal. Terminals count their STANs each for itself.
fn sale(terminal: u32, stan: u32) -> Message {
    Message::sale(CARD, stan).with(41, &format!("TERM{terminal:04}"))
}

fn echo(stan: u32) -> Message {
    Message::new("0800", &[(7, "1130045900"), (11, &format!("{stan:06}")), (70, "301")])
}

/// tollgate's own answer to a request.
#[track_caller]
fn assert_local_answer(answer: &Message, request: &Message) {
    assert_eq!(answer.get(0), Some("0110"));
    assert_eq!(answer.get(39), Some("91"));
    for field in [2, 4, 7, 11, 32, 37, 41, 42] {
        assert_eq!(answer.get(field), request.get(field), "field {field}");
    }
}

/// Proves that nothing else is on its way to a session: an echo that is answered by the host comes
/// back as the next frame.
#[track_caller]
fn next_is_the_echo(terminal: &mut Peer, at_host: &mut Peer, stan: u32) {
    terminal.send(&echo(stan).encode());
    assert_eq!(at_host.receive_message(), echo(stan));
    at_host.send(&echo(stan).answer("00").encode());
    assert_eq!(terminal.receive_message(), echo(stan).answer("00"));
}

#[test]
fn a_host_that_refuses_connections_costs_requests_a_91_and_everything_else_silence_until_it_is_back()
 {
    let address = Host::listen(Framing::Be16).address();
    let mut world = World::start(address, LONG, ONE);
    let mut terminal = world.connect();
    for mti in ["0120", "0220", "0400", "0420"] {
        terminal.send(&sale(1, 1).mti(mti).encode());
    }
    terminal.send(&echo(1).encode());
    for stan in 1..=3 {
        terminal.send(&sale(1, stan).encode());
        assert_local_answer(&terminal.receive_message(), &sale(1, stan));
    }
    assert_eq!(world.rejects("unavailable"), 3.0);
    assert_eq!(world.sum("tollgate_unsent_total", ""), 5.0);
    world.neighbour_is_well();

    let host = Host::listen_on(address, Framing::Be16);
    let mut at_host = world.accept_only(&host);
    // The host hears nothing of what went before.
    terminal.send(&sale(1, 4).encode());
    assert_eq!(at_host.receive_message(), sale(1, 4));
    at_host.send(&sale(1, 4).answer("00").encode());
    assert_eq!(terminal.receive_message(), sale(1, 4).answer("00"));
    world.neighbour_is_well();
}

#[test]
fn a_host_that_does_not_take_connections_up_is_as_one_that_is_down() {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().unwrap();
    // Fills the queue of connections that wait to be accepted: from then on the system is silent.
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        waiting.push(stream);
        assert!(waiting.len() < 100, "the queue has an end");
    }
    let mut world = World::start(address, LONG, "connections = 2");
    let mut terminal = world.connect();
    terminal.send(&sale(1, 1).encode());
    assert_local_answer(&terminal.receive_message(), &sale(1, 1));
    assert_eq!(world.rejects("unavailable"), 1.0);
    world.neighbour_is_well();
}

#[test]
fn a_host_that_ends_every_connection_at_once_leaves_each_request_with_one_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        loop {
            drop(listener.accept());
        }
    });
    let mut world = World::start(address, SHORT, "connections = 2");
    world.proxy.wait_for_metric(r#"tollgate_reconnects_total{link="visa"}"#, 2.0);
    let mut terminals = [world.connect(), world.connect()];
    for stan in 1..=25 {
        for (terminal, number) in terminals.iter_mut().zip(1..) {
            terminal.send(&sale(number, stan).encode());
        }
    }
    world.neighbour_is_well();
    for (terminal, number) in terminals.iter_mut().zip(1..) {
        let mut stans = BTreeSet::new();
        for _ in 1..=25 {
            let answer = terminal.receive_message();
            let stan = answer.get(11).unwrap().parse().unwrap();
            assert_local_answer(&answer, &sale(number, stan));
            assert!(stans.insert(stan), "answered twice: {stan}");
        }
        // One more, whose answer is the next thing that comes.
        terminal.send(&sale(number, 26).encode());
        assert_local_answer(&terminal.receive_message(), &sale(number, 26));
    }
    let answered =
        world.sum("tollgate_rejects_total", "") + world.sum("tollgate_deadline_answers_total", "");
    assert_eq!(answered, 52.0);
    assert_eq!(world.deadline_answers("deadline"), 0.0, "its connection was gone before");
    world.neighbour_is_well();
}

#[test]
fn a_host_that_ends_in_mid_frame_loses_the_answer_and_nothing_else() {
    let host = Host::listen(Framing::Be16);
    let mut world = World::start(host.address(), SHORT, ONE);
    let mut at_host = world.accept_only(&host);
    let mut terminal = world.connect();
    terminal.send(&sale(1, 1).encode());
    assert_eq!(at_host.receive_message(), sale(1, 1));
    let answer = Framing::Be16.wrap(&sale(1, 1).answer("00").encode());
    at_host.send_raw(&answer[..answer.len() / 2]);
    drop(at_host);
    assert_local_answer(&terminal.receive_message(), &sale(1, 1));
    assert_eq!(world.deadline_answers("lost"), 1.0);
    assert_eq!(world.deadline_answers("deadline"), 0.0);
    world.neighbour_is_well();

    let mut at_host = world.accept_only(&host);
    next_is_the_echo(&mut terminal, &mut at_host, 2);
    assert!(world.proxy.metric(r#"tollgate_reconnects_total{link="visa"}"#) >= 1.0);
}

#[test]
fn a_host_that_never_answers_leaves_each_session_with_its_own_answers_at_the_deadline() {
    let host = Host::listen(Framing::Be16);
    let mut world = World::start(host.address(), SHORT, ONE);
    let mut at_host = world.accept_only(&host);
    let mut terminals = [world.connect(), world.connect(), world.connect()];
    for stan in 1..=5 {
        for (terminal, number) in terminals.iter_mut().zip(1..) {
            terminal.send(&sale(number, stan).encode());
        }
    }
    world.neighbour_is_well();
    for _ in 0..15 {
        at_host.receive();
    }
    for (terminal, number) in terminals.iter_mut().zip(1..) {
        for stan in 1..=5 {
            assert_local_answer(&terminal.receive_message(), &sale(number, stan));
        }
        next_is_the_echo(terminal, &mut at_host, 6);
    }
    assert_eq!(world.deadline_answers("deadline"), 15.0);
    assert_eq!(world.deadline_answers("lost"), 0.0);
    world.proxy.wait_for_log("answered at the deadline");
    assert_eq!(world.sum("tollgate_rejects_total", ""), 0.0);
    world.neighbour_is_well();
}

#[test]
fn a_late_answer_is_counted_and_not_delivered_and_an_approving_one_is_logged() {
    let host = Host::listen(Framing::Be16);
    let mut world = World::start(host.address(), SHORT, ONE);
    let mut at_host = world.accept_only(&host);
    let mut terminal = world.connect();
    for stan in [61, 62] {
        terminal.send(&sale(1, stan).encode());
        at_host.receive();
        assert_local_answer(&terminal.receive_message(), &sale(1, stan));
    }
    at_host.send(&sale(1, 61).answer("00").encode());
    at_host.send(&sale(1, 62).answer("51").encode());
    next_is_the_echo(&mut terminal, &mut at_host, 63);
    let late =
        |kind: &str| world.sum("tollgate_late_responses_total", &format!(r#"kind="{kind}""#));
    assert_eq!((late("approval"), late("decline")), (1.0, 1.0));
    assert_eq!(world.deadline_answers("deadline"), 2.0);
    let log_of_approval = ["WARN", "approval", "000061", "000000900061", r#"link=visa"#];
    wait_for("a line for the approval", || {
        (world.proxy.log_lines(&log_of_approval) == 1).then_some(())
    });
    assert!(!world.proxy.log().contains(CARD));
    world.neighbour_is_well();
}

#[test]
fn a_host_that_answers_twice_is_heard_once() {
    let host = Host::listen(Framing::Be16);
    let mut world = World::start(host.address(), LONG, ONE);
    let mut at_host = world.accept_only(&host);
    let mut terminal = world.connect();
    terminal.send(&sale(1, 1).encode());
    at_host.receive();
    at_host.send(&sale(1, 1).answer("00").encode());
    at_host.send(&sale(1, 1).answer("00").encode());
    at_host.send(&sale(1, 1).answer("51").encode());
    assert_eq!(terminal.receive_message(), sale(1, 1).answer("00"));
    next_is_the_echo(&mut terminal, &mut at_host, 2);
    world.wait_for_stray("unmatched", true, 1.0);
    world.wait_for_stray("unmatched", false, 1.0);
    assert_eq!(world.sum("tollgate_deadline_answers_total", ""), 0.0);
    world.neighbour_is_well();
}

#[test]
fn answers_out_of_order_find_the_sessions_that_asked_whatever_their_stans() {
    let host = Host::listen(Framing::Be16);
    let mut world = World::start(host.address(), LONG, ONE);
    let mut at_host = world.accept_only(&host);
    let mut terminals = [world.connect(), world.connect(), world.connect()];
    for stan in 1..=10 {
        for (terminal, number) in terminals.iter_mut().zip(1..) {
            terminal.send(&sale(number, stan).encode());
        }
    }
    let mut asked: Vec<Message> = (0..30).map(|_| at_host.receive_message()).collect();
    world.neighbour_is_well();
    asked.reverse();
    for request in &asked {
        at_host.send(&request.answer("00").encode());
    }
    for (terminal, number) in terminals.iter_mut().zip(1..) {
        for stan in (1..=10).rev() {
            assert_eq!(terminal.receive_message(), sale(number, stan).answer("00"));
        }
        next_is_the_echo(terminal, &mut at_host, 11);
    }
    assert_eq!(world.sum("tollgate_stray_messages_total", ""), 0.0);
    world.neighbour_is_well();
}

#[test]
fn an_answer_with_a_strangers_stan_reaches_nobody() {
    let host = Host::listen(Framing::Be16);
    let mut world = World::start(host.address(), SHORT, ONE);
    let mut at_host = world.accept_only(&host);
    let (mut first, mut second) = (world.connect(), world.connect());
    first.send(&sale(1, 1).encode());
    second.send(&sale(2, 2).encode());
    for _ in 0..2 {
        at_host.receive();
    }
    // The first terminal with the second one's STAN, and one that nobody used.
    at_host.send(&sale(1, 2).answer("00").encode());
    at_host.send(&sale(1, 3).answer("00").encode());
    world.wait_for_stray("unmatched", true, 2.0);
    world.neighbour_is_well();
    assert_local_answer(&first.receive_message(), &sale(1, 1));
    assert_local_answer(&second.receive_message(), &sale(2, 2));
    next_is_the_echo(&mut first, &mut at_host, 4);
    next_is_the_echo(&mut second, &mut at_host, 5);
    assert_eq!(world.deadline_answers("deadline"), 2.0);
    world.neighbour_is_well();
}

#[test]
fn an_answer_that_could_be_two_sessions_answer_is_given_to_neither() {
    let host = Host::listen(Framing::Be16);
    let mut world = World::start(host.address(), SHORT, ONE);
    let mut at_host = world.accept_only(&host);
    let (mut first, mut second) = (world.connect(), world.connect());
    let one = sale(1, 1);
    let other =
        sale(1, 1).with(2, "5555555555554444").with(4, "000000000099").with(37, "000000000007");
    first.send(&one.encode());
    second.send(&other.encode());
    for _ in 0..2 {
        at_host.receive();
    }
    at_host.send(&one.answer("00").without(2).without(4).without(37).without(12).encode());
    world.wait_for_stray("ambiguous", true, 1.0);
    assert_local_answer(&first.receive_message(), &one);
    assert_local_answer(&second.receive_message(), &other);
    next_is_the_echo(&mut first, &mut at_host, 2);
    next_is_the_echo(&mut second, &mut at_host, 3);
    world.neighbour_is_well();
}

#[test]
fn a_host_that_reads_nothing_gets_what_was_written_and_no_request_that_was_answered_before_that() {
    let host = Host::listen(Framing::Be16);
    let keys = r#"deadline = "150ms"
        frame_timeout = "60s"
        [link.codes]
        overload = "96"
        deadline = "68""#;
    let upstream = "connections = 1\ninflight_max = 1000000";
    let mut world = World::start(host.address(), keys, upstream);
    let mut at_host = world.accept_only(&host);
    let mut terminal = world.connect();
    let mut writing = terminal.writing_half();
    // More than the system and the queue to the host hold together.
    const REQUESTS: u32 = 12_000;
    let padding = "x".repeat(900);
    let heavy = move |stan| sale(1, stan).with(48, &padding);
    let request = heavy.clone();
    let sender = std::thread::spawn(move || {
        for stan in 1..=REQUESTS {
            writing.send(&request(stan).encode());
        }
    });
    let mut by_code = [BTreeSet::new(), BTreeSet::new()];
    for _ in 0..REQUESTS {
        let answer = terminal.receive_message();
        let stan: u32 = answer.get(11).unwrap().parse().unwrap();
        let at = ["96", "68"].iter().position(|code| answer.get(39) == Some(code)).unwrap();
        assert!(by_code[at].insert(stan), "answered twice: {stan}");
    }
    sender.join().unwrap();
    let [overload, deadline] = by_code;
    assert_eq!(overload.len() + deadline.len(), REQUESTS as usize);
    assert!(overload.is_disjoint(&deadline));
    assert_eq!(world.rejects("overload"), overload.len() as f64);
    assert_eq!(world.deadline_answers("deadline"), deadline.len() as f64);
    assert!(!overload.is_empty() && !deadline.is_empty());
    world.neighbour_is_well();

    // It reads again. Everything was answered, so that nothing may come but what the system holds
    // and a frame that was begun; then the next one is served.
    let (sending, received) = at_host.bytes_under_way();
    let written_max = (sending + received) / Framing::Be16.wrap(&heavy(1).encode()).len() + 1;
    terminal.send(&echo(0).encode());
    let mut seen = BTreeSet::new();
    loop {
        let frame = at_host.receive_message();
        if frame == echo(0) {
            break;
        }
        let stan = frame.get(11).unwrap().parse().unwrap();
        assert_eq!(frame, heavy(stan));
        assert!(seen.insert(stan), "sent twice: {stan}");
    }
    assert_eq!(seen, deadline);
    assert!(seen.len() <= written_max, "{} came, {written_max} at most were written", seen.len());
    at_host.send(&echo(0).answer("00").encode());
    assert_eq!(terminal.receive_message(), echo(0).answer("00"));
    world.neighbour_is_well();
}

#[test]
fn garbage_from_the_host_harms_nobody() {
    let host = Host::listen(Framing::Be16);
    let mut world = World::start(host.address(), SHORT, ONE);
    let mut at_host = world.accept_only(&host);
    let mut terminal = world.connect();
    terminal.send(&sale(1, 1).encode());
    at_host.receive();
    let answer = sale(1, 1).answer("00").encode();
    at_host.send(b"");
    at_host.send(b"?");
    at_host.send(b"not a message, and without an MTI");
    at_host.send(b"0110 and no bitmap behind it");
    at_host.send(&answer[..30]);
    at_host.send(&sale(1, 1).answer("00").mti("9910").encode());
    assert_local_answer(&terminal.receive_message(), &sale(1, 1));
    assert_eq!(world.deadline_answers("deadline"), 1.0);
    // The connection is still the same.
    next_is_the_echo(&mut terminal, &mut at_host, 2);
    assert!(world.sum("tollgate_parse_errors_total", r#"from="host""#) >= 4.0);
    world.neighbour_is_well();

    // A length that cannot be believed ends it.
    terminal.send(&sale(1, 3).encode());
    at_host.receive();
    at_host.send_raw(&[0xFF, 0xFF]);
    at_host.expect_end();
    assert_local_answer(&terminal.receive_message(), &sale(1, 3));
    assert_eq!(world.deadline_answers("lost"), 1.0);
    let mut at_host = world.accept_only(&host);
    next_is_the_echo(&mut terminal, &mut at_host, 4);
    world.neighbour_is_well();
}

/// The active connection of two, and the other. The active one is where a request comes.
#[track_caller]
fn active_and_standby(world: &World, host: &Host, terminal: &mut Peer) -> (Peer, Peer) {
    let connections = [host.accept(), host.accept()];
    world.wait_for_connections(2.0);
    terminal.send(&echo(999_999).encode());
    let [mut one, mut other] = connections;
    let came = wait_for("the echo at one of the connections", || {
        [&mut one, &mut other].into_iter().position(|connection| {
            matches!(connection.receive_within(Duration::from_millis(10)), Some(Some(_)))
        })
    });
    let (mut active, standby) = if came == 0 { (one, other) } else { (other, one) };
    active.send(&echo(999_999).answer("00").encode());
    assert_eq!(terminal.receive_message(), echo(999_999).answer("00"));
    (active, standby)
}

#[test]
fn an_answer_on_the_sibling_connection_is_as_good_as_one_on_its_own() {
    let host = Host::listen(Framing::Be16);
    let mut world = World::start(host.address(), LONG, "connections = 2");
    let mut terminals = [world.connect(), world.connect()];
    let (mut active, mut standby) = active_and_standby(&world, &host, &mut terminals[0]);
    for (terminal, number) in terminals.iter_mut().zip(1..) {
        terminal.send(&sale(number, 1).encode());
        assert_eq!(active.receive_message(), sale(number, 1));
    }
    for (terminal, number) in terminals.iter_mut().zip(1..) {
        standby.send(&sale(number, 1).answer("00").encode());
        assert_eq!(terminal.receive_message(), sale(number, 1).answer("00"));
    }
    standby.expect_nothing_yet();
    world.neighbour_is_well();
}

#[test]
fn what_was_written_on_a_lost_connection_is_answered_on_its_sibling_or_at_the_deadline_and_not_sent_again()
 {
    let host = Host::listen(Framing::Be16);
    let mut world = World::start(host.address(), r#"deadline = "1500ms""#, "connections = 2");
    let mut terminal = world.connect();
    let (mut active, mut standby) = active_and_standby(&world, &host, &mut terminal);
    let advice = sale(1, 9).mti("0120");
    for message in [sale(1, 1), sale(1, 2), advice.clone(), sale(1, 3)] {
        terminal.send(&message.encode());
        assert_eq!(active.receive_message(), message);
    }
    drop(active);
    world.proxy.wait_for_log("host disconnected");
    standby.send(&sale(1, 2).answer("00").encode());
    assert_eq!(terminal.receive_message(), sale(1, 2).answer("00"));
    world.neighbour_is_well();
    for stan in [1, 3] {
        assert_local_answer(&terminal.receive_message(), &sale(1, stan));
    }
    assert_eq!(world.deadline_answers("lost"), 2.0);
    assert_eq!(world.deadline_answers("deadline"), 0.0);
    // The advice is not answered here, nor sent again: its answer comes when it comes.
    next_is_the_echo(&mut terminal, &mut standby, 4);
    standby.send(&advice.answer("00").encode());
    assert_eq!(terminal.receive_message(), advice.answer("00"));
    // The lost connection is opened again and stands by.
    let mut again = host.accept();
    world.wait_for_connections(2.0);
    next_is_the_echo(&mut terminal, &mut standby, 5);
    again.expect_nothing_yet();
    world.neighbour_is_well();
}

#[test]
fn what_was_not_yet_written_moves_in_order_to_the_standby_and_nothing_is_sent_twice() {
    let host = Host::listen(Framing::Be16).with_receive_buffer(16_384);
    let keys = "deadline = \"50s\"\nframe_timeout = \"60s\"";
    let upstream = "connections = 2\ninflight_max = 1000000";
    let mut world = World::start(host.address(), keys, upstream);
    let mut terminal = world.connect();
    let (mut active, mut standby) = active_and_standby(&world, &host, &mut terminal);
    let padding = "x".repeat(900);
    let heavy = |stan| sale(1, stan).with(48, &padding);
    // Until the system takes no more and a queue stands; each burst is dealt with before the next,
    // so that it never comes near its end.
    let mut sent = 0;
    while world.queued() < 200_000.0 || world.queued_at_rest() < 200_000.0 {
        for _ in 0..100 {
            sent += 1;
            terminal.send(&heavy(sent).encode());
        }
        assert!(sent < 20_000, "the system has an end");
        // One echo went before.
        let forwarded = f64::from(sent + 1);
        wait_for("all is forwarded", || {
            let count = world.sum("tollgate_decisions_total", r#"outcome="forward""#)
                + world.sum("tollgate_decisions_total", r#"outcome="pass_protected""#);
            (count >= forwarded).then_some(())
        });
    }
    terminal.send(&echo(0).encode());
    // The proxy stands still while the host takes what was written, and then goes away in such a way
    // that nothing more can be written to it.
    world.proxy.signal("STOP");
    let mut stan = 0;
    loop {
        match active.receive_within(Duration::from_millis(50)) {
            Some(frame) => {
                stan += 1;
                assert_eq!(Message::decode(&frame.unwrap()), heavy(stan));
            }
            None if active.bytes_under_way() == (0, 0) => break,
            None => {}
        }
    }
    assert!(stan > 0 && stan < sent, "{stan} of {sent} were written");
    active.reset();
    world.proxy.signal("CONT");
    while stan < sent {
        stan += 1;
        assert_eq!(standby.receive_message(), heavy(stan));
        standby.send(&heavy(stan).answer("00").encode());
        assert_eq!(terminal.receive_message(), heavy(stan).answer("00"));
    }
    next_is_the_echo(&mut terminal, &mut standby, 0);
    assert_eq!(world.sum("tollgate_rejects_total", ""), 0.0);
    assert_eq!(world.sum("tollgate_deadline_answers_total", ""), 0.0);
    world.neighbour_is_well();
}

#[test]
fn addresses_of_a_host_are_tried_in_order_each_time() {
    let first = Host::listen(Framing::Be16).address();
    let second = Host::listen_on("127.0.0.1:0".parse().unwrap(), Framing::Be16);
    let addresses = format!(r#"["{first}", "localhost:{}"]"#, second.address().port());
    let link = config::link("visa", first, LONG, ONE);
    let link = link.replace(&format!("\"{first}\""), &addresses);
    let proxy = Proxy::start(&format!("{}{link}", config::node("0s")));
    let connected = |up| {
        let series = r#"tollgate_upstream_sockets{link="visa",upstream="visa-host"}"#;
        proxy.wait_for_gauge(series, up);
    };
    // The first is not there.
    let mut at_host = second.accept();
    connected(1.0);
    let mut terminal = proxy.connect("visa", Framing::Be16);
    next_is_the_echo(&mut terminal, &mut at_host, 1);
    // Now it is, and the second would be as well.
    let first = Host::listen_on(first, Framing::Be16);
    at_host.reset();
    let mut at_host = first.accept();
    connected(1.0);
    next_is_the_echo(&mut terminal, &mut at_host, 2);
    // And again it is not.
    drop(first);
    at_host.reset();
    let mut at_host = second.accept();
    connected(1.0);
    next_is_the_echo(&mut terminal, &mut at_host, 3);
}

#[test]
fn a_message_of_the_hosts_own_goes_to_the_session_that_spoke_last_and_its_answer_back_where_it_came_from()
 {
    let host = Host::listen(Framing::Be16);
    let mut world = World::start(host.address(), LONG, "connections = 2");
    let (mut first, mut second) = (world.connect(), world.connect());
    let (mut active, mut standby) = active_and_standby(&world, &host, &mut first);
    let own = |mti: &str, stan: u32| echo(stan).mti(mti).without(70);
    let mut stan = 700_000;
    for mti in ["0800", "0302", "0620"] {
        // Whoever spoke last is to hear it, on whichever connection the host says it.
        next_is_the_echo(&mut first, &mut active, stan);
        standby.send(&own(mti, stan + 1).encode());
        assert_eq!(first.receive_message(), own(mti, stan + 1));
        next_is_the_echo(&mut second, &mut active, stan + 2);
        active.send(&own(mti, stan + 3).encode());
        assert_eq!(second.receive_message(), own(mti, stan + 3));

        second.send(&own(mti, stan + 3).answer("00").encode());
        assert_eq!(active.receive_message(), own(mti, stan + 3).answer("00"));
        first.send(&own(mti, stan + 1).answer("00").encode());
        assert_eq!(standby.receive_message(), own(mti, stan + 1).answer("00"));
        stan += 4;
    }
    let host_messages = |direction: &str| {
        let direction = format!(r#"direction="{direction}""#);
        world.sum("tollgate_host_messages_total", &direction)
    };
    assert_eq!((host_messages("request"), host_messages("answer")), (6.0, 6.0));
    next_is_the_echo(&mut first, &mut active, 1);
    next_is_the_echo(&mut second, &mut active, 2);
    standby.expect_nothing_yet();

    // With no session there is nobody to hear it.
    drop((first, second));
    world.proxy.wait_for_gauge(r#"tollgate_link_sockets{link="visa"}"#, 0.0);
    active.send(&own("0800", 3).encode());
    world.wait_for_stray("no_session", false, 1.0);
    world.neighbour_is_well();
}

#[test]
fn an_advice_gets_no_local_answer_at_any_time_and_the_hosts_whenever_it_comes() {
    let host = Host::listen(Framing::Be16);
    let mut world = World::start(host.address(), SHORT, ONE);
    let mut at_host = world.accept_only(&host);
    let mut terminal = world.connect();
    let never_answered_here = ["0120", "0220", "0400", "0420", "0620", "0102", "0320", "0520"];
    let message = |mti: &&str| sale(1, 1).mti(mti);
    for mti in &never_answered_here {
        terminal.send(&message(mti).encode());
        assert_eq!(at_host.receive_message(), message(mti));
    }
    // Requests behind them run into their deadline twice over.
    for stan in [2, 3] {
        terminal.send(&sale(1, stan).encode());
        assert_eq!(at_host.receive_message(), sale(1, stan));
        assert_local_answer(&terminal.receive_message(), &sale(1, stan));
    }
    for mti in never_answered_here.iter().rev() {
        at_host.send(&message(mti).answer("00").encode());
        assert_eq!(terminal.receive_message(), message(mti).answer("00"));
    }
    assert_eq!(world.deadline_answers("deadline"), 2.0);
    // Nor when the host is gone.
    drop((at_host, host));
    world.wait_for_connections(0.0);
    for mti in &never_answered_here {
        terminal.send(&message(mti).encode());
    }
    terminal.send(&sale(1, 4).encode());
    assert_local_answer(&terminal.receive_message(), &sale(1, 4));
    assert_eq!(world.sum("tollgate_unsent_total", ""), 8.0);
    world.neighbour_is_well();
}

#[test]
fn a_link_that_is_to_show_that_its_host_is_down_closes_its_sessions_and_its_listener() {
    let host = Host::listen(Framing::Be16);
    let address = host.address();
    let keys = format!("{LONG}\nhost_down = \"close\"");
    let mut world = World::start(address, &keys, ONE);
    let mut at_host = world.accept_only(&host);
    let connect = || TcpStream::connect(world.proxy.address("visa"));
    let session = |stream| Peer::new(stream, Framing::Be16);
    let mut terminal = wait_for("the link listens", || connect().ok().map(session));
    next_is_the_echo(&mut terminal, &mut at_host, 1);
    drop((at_host, host));
    terminal.expect_end();
    wait_for("the link does not listen", || connect().err());

    let host = Host::listen_on(address, Framing::Be16);
    let mut at_host = world.accept_only(&host);
    let mut terminal = wait_for("the link listens again", || connect().ok().map(session));
    next_is_the_echo(&mut terminal, &mut at_host, 2);
    world.neighbour_is_well();
}

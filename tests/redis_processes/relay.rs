//! A relay before a server.

use std::time::Duration;

use redis::{
    Client, Cmd, Connection, ErrorKind, PushKind, RedisError, RedisResult, ServerErrorKind, Value,
};

use crate::support::redis::{RedisServer, Relay, faults};
use crate::support::{PATIENCE, wait_for};

const SCRIPT: &str = "return redis.call('INCR', KEYS[1])";

struct Scene {
    server: RedisServer,
    relay: Relay,
}

impl Scene {
    fn new() -> Self {
        let server = RedisServer::start();
        let relay = Relay::before(server.address());
        Self { server, relay }
    }

    fn try_connect(&self) -> RedisResult<Connection> {
        let client = Client::open(format!("redis://{}/?protocol=resp3", self.relay.address()))?;
        client.get_connection_with_timeout(PATIENCE)
    }

    fn connect(&self) -> Connection {
        self.try_connect().unwrap()
    }

    /// What the script has been run for.
    fn runs(&self) -> String {
        self.server.cli_text(&["GET", "a"])
    }
}

fn run(connection: &mut Connection) -> RedisResult<i64> {
    script().query(connection)
}

fn script() -> Cmd {
    let mut command = Cmd::new();
    command.arg("EVAL").arg(SCRIPT).arg(1).arg("a");
    command
}

#[test]
fn a_relay_that_behaves_changes_nothing_and_counts() {
    let scene = Scene::new();
    let mut first = scene.connect();
    assert_eq!(run(&mut first).unwrap(), 1);
    let long = "x".repeat(300_000);
    assert_eq!(Cmd::new().arg("SET").arg("b").arg(&long).query(&mut first), Ok(Value::Okay));
    let read: String = Cmd::new().arg("GET").arg("b").query(&mut first).unwrap();
    assert_eq!(read, long);
    let mut second = scene.connect();
    assert_eq!(run(&mut second).unwrap(), 2);
    assert_eq!(scene.relay.connections().len(), 2);
    assert!(scene.relay.connections().is_sorted() && scene.relay.scripts().is_sorted());
    let counts = scene.relay.counts();
    assert_eq!((counts["EVAL"], counts["SET"], counts["HELLO"]), (2, 1, 2));
}

#[test]
fn late_answers_come_in_order_and_at_once_when_the_delay_ends() {
    let scene = Scene::new();
    let mut connection = scene.connect();
    let clock = scene.relay.clock();
    let began = clock.now();
    let delay = Duration::from_millis(300);
    scene.relay.delay_answers(delay);
    let mut both = redis::pipe();
    both.add_command(script()).add_command(script());
    assert_eq!(both.query::<(i64, i64)>(&mut connection).unwrap(), (1, 2));
    assert!(clock.now().since(began) >= delay);

    scene.relay.delay_answers(10 * PATIENCE);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| run(&mut connection));
        wait_for("the script has run", || (scene.runs() == "3").then_some(()));
        assert!(!late.is_finished());
        scene.relay.behave();
        assert_eq!(late.join().unwrap().unwrap(), 3);
    });
}

#[test]
fn an_answer_is_lost_with_its_connection_and_the_call_has_gone_through() {
    let scene = Scene::new();
    scene.relay.lose_answers(2);
    for runs in ["1", "2"] {
        let mut connection = scene.connect();
        let pong = Cmd::new().arg("PING").query(&mut connection);
        assert_eq!(pong, Ok(Value::SimpleString("PONG".to_owned())));
        assert!(run(&mut connection).unwrap_err().is_connection_dropped());
        assert_eq!(scene.runs(), runs);
    }
    assert_eq!(run(&mut scene.connect()).unwrap(), 3);
    assert_eq!(scene.relay.answers_lost(), 2);
}

#[test]
fn connections_are_cut_and_turned_away() {
    let scene = Scene::new();
    let mut connection = scene.connect();
    run(&mut connection).unwrap();
    scene.relay.refuse(true);
    assert_eq!(run(&mut connection).unwrap(), 2);
    assert!(scene.try_connect().is_err());
    scene.relay.cut();
    assert!(run(&mut connection).is_err());
    scene.relay.behave();
    assert_eq!(run(&mut scene.connect()).unwrap(), 3);
    assert_eq!(scene.relay.connections().len(), 3);
}

#[test]
fn what_a_black_hole_holds_goes_on_when_it_ends() {
    let scene = Scene::new();
    let mut connection = scene.connect();
    scene.relay.black_hole(true);
    std::thread::scope(|scope| {
        let held = scope.spawn(|| run(&mut connection));
        let new = scope.spawn(|| scene.connect());
        wait_for("both have come", || (scene.relay.connections().len() == 2).then_some(()));
        assert_eq!((scene.runs().as_str(), scene.relay.scripts().len()), ("", 0));
        assert!(!held.is_finished() && !new.is_finished());
        scene.relay.behave();
        assert_eq!(held.join().unwrap().unwrap(), 1);
        assert_eq!(run(&mut new.join().unwrap()).unwrap(), 2);
    });
}

#[test]
fn scripts_are_answered_with_errors_in_their_place_and_not_run() {
    let scene = Scene::new();
    let mut connection = scene.connect();
    let kinds = [
        (faults::READONLY, ServerErrorKind::ReadOnly),
        (faults::CROSSSLOT, ServerErrorKind::CrossSlot),
        (faults::LOADING, ServerErrorKind::BusyLoading),
        (faults::MASTERDOWN, ServerErrorKind::MasterDown),
        (faults::CLUSTERDOWN, ServerErrorKind::ClusterDown),
        (faults::TRYAGAIN, ServerErrorKind::TryAgain),
        (faults::NOSCRIPT, ServerErrorKind::NoScript),
        (faults::NOPERM, ServerErrorKind::NoPerm),
        ("-MOVED 1 127.0.0.1:1", ServerErrorKind::Moved),
    ];
    for (line, kind) in kinds {
        scene.relay.fail_next_scripts(1, line);
        let mut three = redis::pipe();
        three.cmd("INCR").arg("b").add_command(script()).cmd("INCR").arg("b").ignore_errors();
        let answers: Vec<RedisResult<i64>> = three.query(&mut connection).unwrap();
        let error: &RedisError = answers[1].as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Server(kind), "{line}");
        assert_eq!(answers[2].as_ref().unwrap(), &(answers[0].as_ref().unwrap() + 1));
    }
    for (line, code) in [
        (faults::BUSY, "BUSY"),
        (faults::OOM, "OOM"),
        (faults::MISCONF, "MISCONF"),
        (faults::NOREPLICAS, "NOREPLICAS"),
        (faults::WRONGTYPE, "WRONGTYPE"),
    ] {
        scene.relay.fail_scripts(line);
        let error = run(&mut connection).unwrap_err();
        assert_eq!(error.code(), Some(code), "{line}");
    }
    assert_eq!((scene.runs().as_str(), scene.relay.faults_given()), ("", 14));
    scene.relay.behave();
    assert_eq!(run(&mut connection).unwrap(), 1);
}

#[test]
fn pushes_pass_among_answers() {
    let scene = Scene::new();
    let mut listener = scene.connect();
    let (sender, pushes) = std::sync::mpsc::channel();
    listener.set_push_sender(sender);
    listener.subscribe_resp3("news").unwrap();
    wait_for("somebody hears", || {
        (scene.server.cli(&["PUBLISH", "news", "first"]) == Value::Int(1)).then_some(())
    });
    assert_eq!(run(&mut listener).unwrap(), 1);
    scene.relay.fail_next_scripts(1, faults::OOM);
    assert_eq!(run(&mut listener).unwrap_err().code(), Some("OOM"));
    assert_eq!(run(&mut listener).unwrap(), 2);
    let next = || pushes.recv_timeout(PATIENCE).unwrap();
    let push = std::iter::repeat_with(next).find(|push| push.kind == PushKind::Message).unwrap();
    assert_eq!(push.data.last(), Some(&Value::BulkString(b"first".to_vec())));

    // A connection of the older protocol has no answers to tell from them.
    let client = Client::open(format!("redis://{}", scene.relay.address())).unwrap();
    let mut older = client.get_connection_with_timeout(PATIENCE).unwrap();
    let mut older = older.as_pubsub();
    older.subscribe("news").unwrap();
    scene.server.cli(&["PUBLISH", "news", "second"]);
    older.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(older.get_message().unwrap().get_payload::<String>().unwrap(), "second");
}

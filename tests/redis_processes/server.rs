//! One server, of every kind.

use std::process::{Command, Output};

use redis::Value;

use crate::support::process::exists;
use crate::support::redis::{Account, RedisServer, ServerPlan, Tls};
use crate::support::wait_for;

/// What `redis-cli` is answered on the server's port.
fn ask(server: &RedisServer, words: &[&str]) -> String {
    let output = redis_cli(server, words);
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn redis_cli(server: &RedisServer, words: &[&str]) -> Output {
    let port = server.port().to_string();
    Command::new("redis-cli").args(["-h", "127.0.0.1", "-p", &port]).args(words).output().unwrap()
}

#[test]
fn a_server_answers_on_its_port_and_its_socket_and_leaves_nothing() {
    let server = RedisServer::start();
    assert_eq!(server.cli(&["SET", "a", "1"]), Value::Okay);
    assert_eq!(ask(&server, &["GET", "a"]), "1");
    assert_eq!(server.info("process_id"), Some(server.pid().to_string()));
    assert_eq!(server.cli_text(&["CONFIG", "GET", "save"]), "save\n");
    assert_eq!(server.url(), format!("redis://{}", server.address()));
    let (pid, dir) = (server.pid(), server.dir().to_owned());
    assert!(exists(pid) && dir.exists());
    drop(server);
    assert!(!exists(pid) && !dir.exists());
}

#[test]
fn a_server_that_comes_back_is_empty_and_at_the_same_place() {
    let mut server = RedisServer::start();
    server.cli(&["SET", "a", "1"]);
    let (pid, port) = (server.pid(), server.port());
    server.kill();
    assert!(!exists(pid));
    assert!(server.try_cli(&["PING"]).is_err());
    server.restart_empty();
    assert_eq!((server.port(), server.cli(&["GET", "a"])), (port, Value::Nil));
    server.cli(&["SET", "a", "1"]);
    server.restart_empty();
    assert_eq!((server.port(), server.cli(&["GET", "a"])), (port, Value::Nil));
}

#[test]
fn a_server_that_stands_still_answers_what_it_was_asked_when_it_goes_on() {
    let server = RedisServer::start();
    server.pause();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| server.cli(&["INCR", "a"]));
        // The connection waits in the queue of the listening socket, which the system shows.
        let waits = || {
            let table = std::fs::read_to_string("/proc/net/unix").unwrap();
            let of_server = table.lines().filter(|line| line.ends_with(&server.socket()));
            (of_server.count() > 1).then_some(())
        };
        wait_for("the question waits", waits);
        assert!(!asked.is_finished());
        server.resume();
        assert_eq!(asked.join().unwrap(), Value::Int(1));
    });
}

#[test]
fn a_server_with_accounts_lets_in_who_has_the_password_and_tells_tollgate_where_it_is() {
    let account =
        Account { rules: "~tg:* +@all".to_owned(), ..Account::new("tollgate", "se cret") };
    let plan = ServerPlan { account: Some(account), ..ServerPlan::default() };
    // A password with a blank would need quotes in the configuration of the server.
    let account = Account { password: "secret".to_owned(), ..plan.account.unwrap() };
    let server = ServerPlan { account: Some(account), ..ServerPlan::default() }.start();
    assert!(ask(&server, &["GET", "tg:a"]).starts_with("NOAUTH"));
    let login = ["--no-auth-warning", "--user", "tollgate", "--pass", "secret"];
    let as_tollgate = |words: [&str; 2]| ask(&server, &[&login[..], &words].concat());
    assert_eq!(as_tollgate(["GET", "tg:a"]), "");
    assert!(as_tollgate(["GET", "else"]).starts_with("NOPERM"));
    server.cli(&["SET", "else", "1"]);
    let quota = server.quota(None);
    assert!(quota.contains("user = \"tollgate\"") && !quota.contains("secret"), "{quota}");
    let file = quota.split('"').find(|word| word.ends_with("/password")).unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "secret");
}

#[test]
fn a_server_with_tls_speaks_to_who_trusts_its_authority() {
    for tls in [Tls::On, Tls::WithClients] {
        let server = ServerPlan { tls, ..ServerPlan::default() }.start();
        let files = server.certificates().unwrap();
        assert!(server.url().starts_with("rediss://"));
        assert_ne!(ask(&server, &["PING"]), "PONG");
        assert_ne!(ask(&server, &["--tls", "PING"]), "PONG");
        let without = ask(&server, &["--tls", "--cacert", &files.authority, "PING"]);
        assert_eq!(without == "PONG", tls == Tls::On, "{without}");
        let own = ["--cert", &files.client, "--key", &files.client_key];
        let with = [&["--tls", "--cacert", &files.authority][..], &own, &["PING"]].concat();
        assert_eq!(ask(&server, &with), "PONG");
        let quota = server.quota(None);
        assert_eq!(quota.contains("tls_cert_file"), tls == Tls::WithClients, "{quota}");
        assert!(quota.contains("tls_ca_file"), "{quota}");
    }
}

#[test]
fn a_server_that_is_full_takes_nothing_more() {
    let maxmemory = Some(("3mb", "noeviction"));
    let server = ServerPlan { maxmemory, ..ServerPlan::default() }.start();
    let value = "x".repeat(100_000);
    let error = (0..100)
        .find_map(|number: usize| server.try_cli(&["SET", &number.to_string(), &value]).err());
    assert_eq!(error.unwrap().code(), Some("OOM"));
}

#[test]
fn a_replica_follows_and_takes_no_writes() {
    let master = ServerPlan { min_replicas: Some((1, 2)), ..ServerPlan::default() }.start();
    assert_eq!(master.try_cli(&["SET", "a", "1"]).unwrap_err().code(), Some("NOREPLICAS"));
    let replica = ServerPlan::replica(master.port()).start();
    wait_for("the master has its replica", || master.try_cli(&["SET", "a", "1"]).ok());
    wait_for("the replica has it too", || (replica.cli(&["GET", "a"]) != Value::Nil).then_some(()));
    assert_eq!(replica.try_cli(&["SET", "a", "2"]).unwrap_err().code(), Some("READONLY"));
    assert_eq!(replica.info("role").as_deref(), Some("slave"));
}

#[test]
fn a_server_without_a_port_listens_on_its_socket() {
    let plan = ServerPlan { socket_only: true, timeout_seconds: 7, ..ServerPlan::default() };
    let server = plan.start();
    assert_eq!((server.port(), server.url()), (0, format!("unix://{}", server.socket())));
    assert_eq!(server.cli_text(&["CONFIG", "GET", "timeout"]), "timeout\n7");
}

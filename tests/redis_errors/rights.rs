//! Who may speak to a Redis and how: TLS, users, passwords and sockets. `tollgate check --connect`
//! says beforehand what a node will meet, and no password is ever said.

use std::process::{Command, Output, Stdio};

use crate::node::{FAILS, Node, STORE_UP, SUBSCRIBED, errors, per_merchant};
use crate::support::proxy::BINARY;
use crate::support::redis::certificates::Certificates;
use crate::support::redis::plan::{Account, ServerPlan, Tls};
use crate::support::redis::{RedisServer, Relay};
use crate::support::temp_dir::TempDir;
use crate::support::wait_for;

const PASSWORD: &str = "correct-horse-battery";
const WRONG: &str = "incorrect-horse-battery";
const VARIABLE: &str = "TOLLGATE_REDIS_PASSWORD";
const SHOP: &str = "SHOP0001";

fn sections(quota: &str) -> String {
    quota.to_owned() + &per_merchant(10.0, 20)
}

/// What `tollgate check --connect` says, and how it ends.
fn check(quota: &str, password: Option<&str>) -> (Option<i32>, String) {
    let dir = TempDir::new("check");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = crate::support::house::Plan { sections: sections(quota), ..Default::default() };
    let config = dir.write("tollgate.toml", &plan.config(listener.local_addr().unwrap()));
    let mut command = Command::new(BINARY);
    command.args(["check", "--config", &config, "--connect"]).stdin(Stdio::null());
    if let Some(password) = password {
        command.env(VARIABLE, password);
    }
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8([stdout, stderr].concat()).unwrap();
    has_no_password(&said);
    (status.code(), said)
}

fn is_well(quota: &str, password: Option<&str>) {
    let (code, said) = check(quota, password);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("store: shard 0: ") && said.contains(" answers in "), "{said}");
    assert!(said.contains("version 7.") && !said.contains("FAILS"), "{said}");
}

/// It fails, and says why in one of these words.
fn is_refused(quota: &str, password: Option<&str>, why: &[&str]) {
    let (code, said) = check(quota, password);
    assert_eq!(code, Some(1), "{said}");
    let line = said.lines().find(|line| line.starts_with("store: shard 0 FAILS: ")).unwrap();
    assert!(why.iter().all(|why| line.contains(why)), "{line}");
}

fn has_no_password(text: &str) {
    assert!(!text.contains("horse"), "a password is said: {text}");
}

/// Nothing that the node says has a password in it.
fn keeps_its_secret(node: &Node) {
    has_no_password(&node.proxy.log());
    has_no_password(&node.proxy.output());
    for page in ["/metrics", "/status", "/healthz"] {
        has_no_password(&node.proxy.page(page).1);
    }
}

/// A node is leased, and spends by its lease.
fn works(node: &Node) {
    node.wait_until_leased();
    node.proxy.wait_for_gauge(SUBSCRIBED, 1.0);
    assert_eq!(node.terminal().sales(SHOP, 5), 5);
    node.wait_until_reported(SHOP);
    wait_for("the server's own words in the log", || {
        (node.proxy.log_lines(&["version=\"7."]) == 1).then_some(())
    });
    assert_eq!(node.errors_but(&["late", "noscript", "not_connected"]), 0.0);
    keeps_its_secret(node);
}

/// A node opens and serves, and says why it has no store.
fn goes_without(node: &Node, kind: &str, why: &[&str]) {
    node.proxy.wait_for_metric(&errors(kind), 3.0);
    assert_eq!(node.proxy.metric(STORE_UP), 0.0);
    let named = format!("fault=\"{kind}\"");
    let texts: Vec<&str> = [FAILS, &named].into_iter().chain(why.iter().copied()).collect();
    wait_for(&format!("{texts:?} in the log:\n{}", node.proxy.log()), || {
        (node.proxy.log_lines(&texts) > 0).then_some(())
    });
    assert_eq!(node.terminal().sales(SHOP, 5), 5);
    keeps_its_secret(node);
}

fn with_tls(tls: Tls) -> RedisServer {
    ServerPlan { tls, ..ServerPlan::default() }.start()
}

fn with_account(account: Account) -> RedisServer {
    ServerPlan { account: Some(account), ..ServerPlan::default() }.start()
}

/// Without the lines that begin with any of these keys.
fn without(quota: &str, keys: &[&str]) -> String {
    let kept = quota.lines().filter(|line| !keys.iter().any(|key| line.starts_with(key)));
    kept.map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_server_with_tls_is_spoken_to_by_tls() {
    let server = with_tls(Tls::On);
    let quota = server.quota(None);
    assert!(quota.contains("rediss://"));
    is_well(&quota, None);
    works(&Node::start(&sections(&quota)));
}

#[test]
fn a_server_whose_certificate_nobody_vouches_for_is_not_spoken_to() {
    let (server, others) = (with_tls(Tls::On), TempDir::new("others"));
    let ours = &server.certificates().unwrap().authority;
    let theirs = Certificates::make(&others).authority;
    let named_by_another = server.quota(None).replace(ours.as_str(), &theirs);
    for quota in [named_by_another, without(&server.quota(None), &["tls_ca_file"])] {
        is_refused(&quota, None, &["ertificate"]);
    }
    let quota = server.quota(None).replace(ours.as_str(), &theirs);
    goes_without(&Node::start(&sections(&quota)), "io", &["ertificate"]);
}

#[test]
fn a_server_that_wants_to_see_a_certificate_is_shown_one() {
    let server = with_tls(Tls::WithClients);
    let quota = server.quota(None);
    is_well(&quota, None);
    works(&Node::start(&sections(&quota)));
    let without_any = without(&quota, &["tls_cert_file", "tls_key_file"]);
    is_refused(&without_any, None, &[]);
    goes_without(&Node::start(&sections(&without_any)), "io", &[]);
}

#[test]
fn a_server_on_a_socket_is_found_there() {
    let server = ServerPlan { socket_only: true, ..ServerPlan::default() }.start();
    let quota = server.quota(None);
    assert!(quota.contains("unix://"));
    is_well(&quota, None);
    works(&Node::start(&sections(&quota)));
    let nowhere = quota.replace("redis.sock", "nothing.sock");
    is_refused(&nowhere, None, &["No such file"]);
    goes_without(&Node::start(&sections(&nowhere)), "io", &["No such file"]);
}

/// The rule of the ACL as the document has it.
fn documented_rules() -> String {
    let document = include_str!("../../docs/operations.md");
    let (_, rest) = document.split_once("ACL SETUSER gate on ><password> ").unwrap();
    let (rules, _) = rest.split_once("```").unwrap();
    rules.split_whitespace().filter(|word| *word != "\\").collect::<Vec<_>>().join(" ")
}

#[test]
fn a_user_with_the_rights_of_the_document_is_all_it_takes() {
    let rules = documented_rules();
    assert!(rules.contains("+evalsha") && rules.contains("+subscribe"), "{rules}");
    let account = Account { user: "gate".into(), password: PASSWORD.into(), rules };
    let server = with_account(account);
    let quota = server.quota(None);
    is_well(&quota, None);
    let node = Node::start(&sections(&quota));
    works(&node);
    // A bucket that is emptied is published, noted, and told of by digests.
    let mut terminal = node.terminal();
    terminal.sales(SHOP, 40);
    node.wait_until_reported(SHOP);
    let answered = node.proxy.metric(crate::node::ANSWERED);
    node.proxy.wait_for_metric(crate::node::ANSWERED, answered + 10.0);
    assert_eq!(node.errors("noperm"), 0.0);
    assert_eq!(server.cli_text(&["ACL", "LOG"]), "", "nothing was denied");
    // And without one of them it says so.
    server.cli(&["ACL", "SETUSER", "gate", "-zadd"]);
    server.cli(&["ACL", "SETUSER", "gate", "-evalsha"]);
    node.proxy.wait_for_metric(&errors("noperm"), 3.0);
    node.wait_until_lost();
    server.cli(&["ACL", "SETUSER", "gate", "+zadd", "+evalsha"]);
    node.wait_until_all_is_leased();
    keeps_its_secret(&node);
}

#[test]
fn a_user_without_a_right_is_told_so_beforehand() {
    for (right, why) in [("+eval", "eval"), ("~tollgate:v1:*", "key")] {
        let rules = documented_rules().replacen(&format!("{right} "), "", 1);
        let account = Account { user: "gate".into(), password: PASSWORD.into(), rules };
        let server = with_account(account);
        is_refused(&server.quota(None), None, &["permissions", why]);
    }
}

#[test]
fn a_password_from_the_environment_is_as_good_as_one_from_a_file() {
    let server = with_account(Account::new("gate", PASSWORD));
    let quota = without(&server.quota(None), &["password_file"]);
    is_well(&quota, Some(PASSWORD));
    let mut command = Command::new(BINARY);
    command.env(VARIABLE, PASSWORD);
    works(&Node::start_by(command, &sections(&quota)));
    is_refused(&quota, None, &["quota.redis user and password_file"]);
}

#[test]
fn a_wrong_password_is_a_login_that_fails_and_is_never_said() {
    let server = with_account(Account::new("gate", PASSWORD));
    let quota = without(&server.quota(None), &["password_file"]);
    is_refused(&quota, Some(WRONG), &["WRONGPASS", "quota.redis user and password_file"]);
    let mut command = Command::new(BINARY);
    command.env(VARIABLE, WRONG);
    let node = Node::start_by(command, &sections(&quota));
    goes_without(&node, "login", &[]);
    // Whoever mends it need not touch the node.
    server.cli(&["ACL", "SETUSER", "gate", &format!(">{WRONG}")]);
    node.wait_until_all_is_leased();
    keeps_its_secret(&node);
    // A password that is changed is not asked for while the connection lasts.
    server.cli(&["ACL", "SETUSER", "gate", "resetpass", ">of-somebody-else"]);
    server.cli(&["CLIENT", "KILL", "TYPE", "NORMAL"]);
    node.wait_until_lost();
    keeps_its_secret(&node);
}

#[test]
fn a_check_says_what_is_wrong_with_a_server_that_cannot_be_used() {
    let server = RedisServer::start();
    let relay = Relay::before(server.address());
    let quota = server.quota(Some(relay.address()));
    is_well(&quota, None);
    relay.refuse(true);
    is_refused(&quota, None, &["see that the server runs"]);
    relay.behave();
    relay.black_hole(true);
    is_refused(&quota, None, &["see what slows the server down"]);
    relay.behave();
    let replica = ServerPlan::replica(server.port()).start();
    is_refused(&replica.quota(None), None, &["replica"]);
}

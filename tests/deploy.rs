//! `deploy/`, as far as its files tell without a container: the configuration is sound, every file and
//! command of the composition exists, and the rights of its user of Redis are those that the document
//! lists.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use tollgate::config::Config;
use tollgate::quota::redis::{Address, Deployment};

const COMPOSE: &str = include_str!("../deploy/compose.yaml");
const USERS: &str = include_str!("../deploy/users.acl");
const OPERATIONS: &str = include_str!("../docs/operations.md");

fn tollgate(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

/// The commands of the services, as lists.
fn commands() -> Vec<Vec<String>> {
    let lines = COMPOSE.lines().filter_map(|line| line.trim().strip_prefix("command: "));
    lines.map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn the_configuration_of_the_nodes_is_sound_and_warns_of_nothing() {
    let (is_sound, said) = tollgate(&["check", "--config", "deploy/tollgate.toml"]);
    assert!(is_sound && !said.contains("warning"), "{said}");
}

#[test]
fn the_nodes_ask_a_service_of_the_composition_as_the_user_that_it_has() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = Config::load(&root.join("deploy/tollgate.toml")).unwrap();
    let redis = config.quota.redis.expect("the nodes share a Redis");
    let Deployment::Single(Address::Tcp { host, .. }) = &redis.deployment else {
        panic!("{}", redis.deployment)
    };
    assert!(COMPOSE.contains(&format!("\n  {host}:\n")), "there is no service {host}");
    let user = redis.login.user.expect("a user");
    let password =
        COMPOSE.lines().find_map(|line| line.trim().strip_prefix("TOLLGATE_REDIS_PASSWORD: "));
    let known = format!("user {user} on >{} ", password.expect("a password"));
    assert!(USERS.contains(&known), "{known}");
}

#[test]
fn everything_that_the_composition_mounts_and_runs_exists() {
    let mounts = COMPOSE.lines().filter_map(|line| line.trim().strip_prefix("- ./"));
    let mounts: Vec<_> = mounts.map(|mount| mount.split(':').next().unwrap()).collect();
    assert_eq!(mounts, ["users.acl", "tollgate.toml"]);
    for mount in mounts {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(mount).exists());
    }
    let ours: Vec<_> = commands().into_iter().filter(|of| of[0] != "redis-server").collect();
    assert_eq!(ours.len(), 5);
    for command in ours {
        let words = command.iter().take_while(|word| !word.starts_with("--"));
        let mut asked: Vec<&str> = words.map(String::as_str).collect();
        asked.push("--help");
        let (exists, help) = tollgate(&asked);
        assert!(exists, "{command:?}");
        for option in command.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(&format!("{option} ")), "{option} of {command:?}");
        }
    }
}

/// Rights stand there as `+command`, keys and channels as `~pattern` and `&pattern`.
fn rights(text: &str) -> BTreeSet<&str> {
    let is_right = |word: &&str| word.starts_with(['+', '~', '&']) && word.len() > 1;
    text.split_whitespace().filter(is_right).collect()
}

#[test]
fn the_user_of_redis_has_the_rights_that_the_document_lists() {
    let (_, document) = OPERATIONS.split_once("ACL SETUSER gate").unwrap();
    let (document, _) = document.split_once("```").unwrap();
    let user = USERS.lines().find(|line| line.starts_with("user gate ")).unwrap();
    assert_eq!(rights(user), rights(document));
    assert!(rights(user).len() > 20);
}

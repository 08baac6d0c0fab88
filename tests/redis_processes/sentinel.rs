//! A master with a replica, and three sentinels.

use redis::Value;

use crate::support::process::exists;
use crate::support::redis::Watched;
use crate::support::redis::sentinel::NAME;
use crate::support::redis::server::text;
use crate::support::wait_for;

#[test]
fn sentinels_agree_on_the_master_and_change_it_when_told() {
    let watched = Watched::start();
    let first = watched.servers()[0].address();
    assert_eq!(watched.believed_masters(), [first; 3]);
    assert!(watched.url().ends_with(&format!("/{NAME}")), "{}", watched.url());
    assert_eq!(watched.replica().port(), watched.servers()[1].port());
    watched.master().cli(&["SET", "a", "1"]);
    // A master tells its replica after it has answered.
    wait_for("the replica has it", || {
        (watched.replica().cli_text(&["GET", "a"]) == "1").then_some(())
    });
    assert_eq!(watched.failover(), watched.servers()[1].address());
    assert_eq!(watched.master().cli_text(&["GET", "a"]), "1");
    wait_for("the old master follows", || {
        watched.replica().try_cli(&["SET", "a", "2"]).is_err().then_some(())
    });
    // And back.
    assert_eq!(watched.failover(), first);
}

#[test]
fn sentinels_find_another_master_when_theirs_is_dead() {
    let mut watched = Watched::start();
    let old = watched.wait_for_one_master();
    let servers = watched.servers().iter().chain(watched.sentinels());
    let pids: Vec<u32> = servers.map(|server| server.pid()).collect();
    watched.kill_master();
    let new = watched.wait_for_new_master(old);
    assert_eq!(new, watched.servers()[1].address());
    assert_eq!(watched.master().cli(&["SET", "a", "1"]), Value::Okay);
    watched.revive();
    wait_for("the old master follows", || {
        // It ends its connections when it changes its role.
        let value = watched.servers()[0].try_cli(&["GET", "a"]);
        value.is_ok_and(|value| text(&value) == "1").then_some(())
    });
    watched.wait_until_agreed();
    drop(watched);
    assert_eq!(pids.into_iter().filter(|pid| exists(*pid)).count(), 0);
}

//! A master with its replica, watched by three sentinels of which two have to agree.

use std::net::{Ipv4Addr, SocketAddr};

use ::redis::Value;

use super::server::text;
use super::{RedisServer, ServerPlan};
use crate::support::wait_for;

/// What the sentinels call the master.
pub const NAME: &str = "mymaster";
const QUORUM: u32 = 2;
/// A server that is silent for so long is down.
const DOWN_AFTER_MS: u32 = 500;
/// A failover is tried again after twice as long.
const FAILOVER_TIMEOUT_MS: u32 = 2_000;
const SENTINELS: usize = 3;

/// Two servers and three sentinels.
pub struct Watched {
    sentinels: Vec<RedisServer>,
    servers: Vec<RedisServer>,
}

impl Watched {
    /// Servers without any demands on their replicas.
    #[track_caller]
    pub fn start() -> Self {
        Self::of(&ServerPlan::default())
    }

    /// Both servers as planned. All sentinels agree when this returns.
    #[track_caller]
    pub fn of(plan: &ServerPlan) -> Self {
        let master = plan.clone().start();
        let replica = ServerPlan { replica_of: Some(master.port()), ..plan.clone() }.start();
        let port = master.port();
        let watch = format!(
            "sentinel monitor {NAME} 127.0.0.1 {port} {QUORUM}\n\
             sentinel down-after-milliseconds {NAME} {DOWN_AFTER_MS}\n\
             sentinel failover-timeout {NAME} {FAILOVER_TIMEOUT_MS}\n"
        );
        let sentinel = ServerPlan { sentinel: true, lines: watch, ..ServerPlan::default() };
        let sentinels = (0..SENTINELS).map(|_| sentinel.clone().start()).collect();
        let watched = Self { sentinels, servers: vec![master, replica] };
        for sentinel in &watched.sentinels {
            // They would hear of each other every two seconds, and of the servers every ten.
            sentinel.cli(&["SENTINEL", "DEBUG", "PUBLISH-PERIOD", "200", "INFO-PERIOD", "200"]);
        }
        watched.wait_until_agreed();
        watched
    }

    /// Waits until every sentinel knows the master, its replica and the other sentinels.
    #[track_caller]
    pub fn wait_until_agreed(&self) {
        let master = self.wait_for_one_master();
        for sentinel in &self.sentinels {
            wait_for(&format!("the sentinel on {} is ready", sentinel.port()), || {
                let known = Known::ask(sentinel);
                let is_whole = known.flags == "master"
                    && known.others == SENTINELS - 1
                    && known.replicas == 1
                    && known.port == master.port();
                is_whole.then_some(())
            });
            wait_for("the sentinels are enough", || {
                sentinel.try_cli(&["SENTINEL", "CKQUORUM", NAME]).ok()
            });
        }
    }

    /// How tollgate is told where it is: all sentinels.
    pub fn url(&self) -> String {
        let sentinels: Vec<String> =
            self.sentinels.iter().map(|sentinel| sentinel.address().to_string()).collect();
        format!("redis-sentinel://{}/{NAME}", sentinels.join(","))
    }

    /// What tollgate is told of it: `[quota]` and `[quota.redis]`.
    pub fn quota(&self) -> String {
        self.servers[0].quota_at(&self.url())
    }

    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// Both servers, the first master first.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// Where each sentinel believes the master to be.
    #[track_caller]
    pub fn believed_masters(&self) -> Vec<SocketAddr> {
        let ask = |sentinel: &RedisServer| {
            let answer = sentinel.cli(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]);
            let Value::Array(parts) = answer else { panic!("no address") };
            let port = text(&parts[1]).parse::<u16>().unwrap();
            SocketAddr::from((Ipv4Addr::LOCALHOST, port))
        };
        self.sentinels.iter().map(ask).collect()
    }

    /// Waits until all sentinels name one address, and the server there says that it is the master.
    #[track_caller]
    pub fn wait_for_one_master(&self) -> SocketAddr {
        wait_for("one master", || {
            let believed = self.believed_masters();
            let agreed = believed.iter().all(|address| *address == believed[0]);
            let master = self.server_at(believed[0])?;
            let is_master = agreed
                && master.is_running()
                && master.info("role").is_some_and(|role| role == "master");
            is_master.then_some(believed[0])
        })
    }

    /// The server that all take for the master.
    #[track_caller]
    pub fn master(&self) -> &RedisServer {
        self.server_at(self.wait_for_one_master()).expect("one of the two")
    }

    /// The other one.
    #[track_caller]
    pub fn replica(&self) -> &RedisServer {
        let master = self.master().port();
        self.servers.iter().find(|server| server.port() != master).expect("two servers")
    }

    fn server_at(&self, address: SocketAddr) -> Option<&RedisServer> {
        self.servers.iter().find(|server| server.port() == address.port())
    }

    /// Ends the master as a crash would. Returns at once; the sentinels find out.
    #[track_caller]
    pub fn kill_master(&mut self) {
        let port = self.wait_for_one_master().port();
        let master = self.servers.iter_mut().find(|server| server.port() == port);
        master.expect("one of the two").kill();
    }

    /// Starts the server that was killed again, empty. The sentinels make it a replica.
    #[track_caller]
    pub fn revive(&mut self) {
        let dead = self.servers.iter_mut().find(|server| !server.is_running());
        dead.expect("a server that was killed").restart_empty();
    }

    /// Has the sentinels change the master while it is well; waits until all agree on the new one.
    #[track_caller]
    pub fn failover(&self) -> SocketAddr {
        let old = self.begin_failover();
        self.wait_for_new_master(old)
    }

    /// The same without waiting; gives the master that is to be replaced.
    #[track_caller]
    pub fn begin_failover(&self) -> SocketAddr {
        let old = self.wait_for_one_master();
        // For a moment after another failover there is no replica that would do.
        wait_for("a failover begins", || {
            self.sentinels[0].try_cli(&["SENTINEL", "FAILOVER", NAME]).ok()
        });
        old
    }

    /// Waits until all agree on another master than this one.
    #[track_caller]
    pub fn wait_for_new_master(&self, old: SocketAddr) -> SocketAddr {
        wait_for("another master", || {
            self.believed_masters().iter().all(|address| *address != old).then_some(())
        });
        self.wait_for_one_master()
    }
}

/// What a sentinel knows of the master.
struct Known {
    flags: String,
    others: usize,
    replicas: usize,
    port: u16,
}

impl Known {
    #[track_caller]
    fn ask(sentinel: &RedisServer) -> Self {
        let answer = sentinel.cli_text(&["SENTINEL", "MASTER", NAME]);
        let lines: Vec<&str> = answer.lines().collect();
        let of = |name: &str| {
            let pair = lines.chunks(2).find(|pair| pair[0] == name);
            pair.unwrap_or_else(|| panic!("no {name}: {answer}"))[1]
        };
        let number = |name| of(name).parse().unwrap();
        let port = of("port").parse().unwrap();
        let (others, replicas) = (number("num-other-sentinels"), number("num-slaves"));
        Self { flags: of("flags").to_owned(), others, replicas, port }
    }
}

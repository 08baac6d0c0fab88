//! What a Redis server is told, and what tollgate is told of it.

use std::fmt::Write as _;

use super::RedisServer;
use super::certificates::Certificates;
use crate::support::temp_dir::TempDir;

/// What a test wants of a server; everything else is as plain as can be.
#[derive(Clone, Debug, Default)]
pub struct ServerPlan {
    /// Listens on its socket alone, and on no port.
    pub socket_only: bool,
    /// Speaks TLS on its port, and nothing else there.
    pub tls: Tls,
    /// Whom it lets in; without one, everybody.
    pub account: Option<Account>,
    /// How much it may hold, such as `4mb`, and the policy, such as `noeviction`.
    pub maxmemory: Option<(&'static str, &'static str)>,
    /// Ends connections that were silent for so many seconds.
    pub timeout_seconds: u32,
    /// Follows the server on this port.
    pub replica_of: Option<u16>,
    /// Takes writes only while so many replicas are behind by so many seconds at most.
    pub min_replicas: Option<(u32, u32)>,
    /// Is no store, but watches one.
    pub sentinel: bool,
    /// More lines of its configuration.
    pub lines: String,
}

/// How its port speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    #[default]
    Off,
    /// Its own certificate alone.
    On,
    /// Clients have to show one too.
    WithClients,
}

/// A user of a server that lets in nobody else but the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub user: String,
    pub password: String,
    /// What it may do, such as `~tg:* &tg:* +@all`.
    pub rules: String,
}

impl Account {
    /// One that may do everything.
    pub fn new(user: &str, password: &str) -> Self {
        let rules = "~* &* +@all".to_owned();
        Self { user: user.to_owned(), password: password.to_owned(), rules }
    }
}

/// The test's own user where there are users.
pub const TEST_USER: &str = "test";
pub const TEST_PASSWORD: &str = "of-the-test-alone";

/// The name of the socket in the server's directory.
pub const SOCKET: &str = "redis.sock";

impl ServerPlan {
    /// Starts it.
    #[track_caller]
    pub fn start(self) -> RedisServer {
        RedisServer::start_as(self)
    }

    /// A server that follows another.
    pub fn replica(port: u16) -> Self {
        Self { replica_of: Some(port), ..Self::default() }
    }

    /// The configuration of the server.
    pub fn config(&self, dir: &TempDir, port: u16, certificates: Option<&Certificates>) -> String {
        let Self { timeout_seconds, lines, .. } = self;
        let (dir_path, socket) = (dir.path().display(), dir.at(SOCKET));
        if self.sentinel {
            return format!(
                "bind 127.0.0.1\n\
                 port {port}\n\
                 dir {dir_path}\n\
                 unixsocket {socket}\n{lines}"
            );
        }
        let mut config = format!(
            "bind 127.0.0.1\n\
             dir {dir_path}\n\
             unixsocket {socket}\n\
             save \"\"\n\
             appendonly no\n\
             repl-diskless-sync-delay 0\n\
             enable-debug-command yes\n\
             timeout {timeout_seconds}\n"
        );
        match certificates {
            None => writeln!(config, "port {port}").unwrap(),
            Some(Certificates { authority, server, server_key, .. }) => {
                let clients = if self.tls == Tls::WithClients { "yes" } else { "no" };
                write!(
                    config,
                    "port 0\n\
                     tls-port {port}\n\
                     tls-cert-file {server}\n\
                     tls-key-file {server_key}\n\
                     tls-ca-cert-file {authority}\n\
                     tls-auth-clients {clients}\n"
                )
                .unwrap();
            }
        }
        if let Some(Account { user, password, rules }) = &self.account {
            write!(
                config,
                "user default off\n\
                 user {TEST_USER} on >{TEST_PASSWORD} ~* &* +@all\n\
                 user {user} on >{password} {rules}\n"
            )
            .unwrap();
        }
        if let Some((bytes, policy)) = self.maxmemory {
            writeln!(config, "maxmemory {bytes}\nmaxmemory-policy {policy}").unwrap();
        }
        if let Some(master) = self.replica_of {
            writeln!(config, "replicaof 127.0.0.1 {master}").unwrap();
        }
        if let Some((replicas, seconds)) = self.min_replicas {
            let lag = format!("min-replicas-max-lag {seconds}");
            writeln!(config, "min-replicas-to-write {replicas}\n{lag}").unwrap();
        }
        config + lines
    }
}

//! One Redis server. A test speaks to it through its socket, whatever becomes of its port.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use ::redis::{Client, Cmd, RedisResult, Value};

use super::certificates::Certificates;
use super::plan::{SOCKET, ServerPlan, TEST_PASSWORD, TEST_USER, Tls};
use super::port::free_port;
use crate::support::process::{gather, pause, resume};
use crate::support::temp_dir::TempDir;
use crate::support::{PATIENCE, wait_for};

/// So often a port may turn out to be taken.
const ATTEMPTS: usize = 20;

/// A running `redis-server`. It is killed when this is dropped, and leaves nothing.
pub struct RedisServer {
    plan: ServerPlan,
    port: u16,
    certificates: Option<Certificates>,
    running: Option<Running>,
    // Behind the process that lives in it.
    dir: TempDir,
}

/// A process that was started.
struct Running {
    child: Child,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl RedisServer {
    /// A plain one on a free port. It answers when this returns.
    #[track_caller]
    pub fn start() -> Self {
        Self::start_as(ServerPlan::default())
    }

    /// One of a kind.
    #[track_caller]
    pub fn start_as(plan: ServerPlan) -> Self {
        let dir = TempDir::new("redis");
        let certificates = (plan.tls != Tls::Off).then(|| Certificates::make(&dir));
        let mut server = Self { plan, port: 0, certificates, running: None, dir };
        for _ in 0..ATTEMPTS {
            server.port = if server.plan.socket_only { 0 } else { free_port() };
            if server.run() {
                return server;
            }
        }
        panic!("no free port in {ATTEMPTS} attempts: {}", server.log());
    }

    /// Starts the process and waits until it answers; `false` when its port is taken.
    #[track_caller]
    fn run(&mut self) -> bool {
        let config = self.plan.config(&self.dir, self.port, self.certificates.as_ref());
        let config = self.dir.write("redis.conf", &config);
        let mut child = Command::new("redis-server")
            .arg(config)
            .args(self.plan.sentinel.then_some("--sentinel"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server, which tests/run.sh installs");
        let (log, reader) = gather(child.stdout.take().unwrap());
        self.running = Some(Running { child, log, reader: Some(reader) });
        wait_for("redis-server answers", || {
            let running = self.running.as_mut().unwrap();
            if running.child.try_wait().unwrap().is_some() {
                let log = running.end();
                assert!(log.contains("Address already in use"), "redis-server ended:\n{log}");
                return Some(false);
            }
            self.answers_itself().then_some(true)
        })
    }

    /// Whether the process that was started answers, and not another that has its port.
    fn answers_itself(&self) -> bool {
        let pong = self.try_cli(&["PING"]);
        let ready =
            if self.plan.sentinel { "Sentinel ID is" } else { "eady to accept connections" };
        self.log().contains(ready)
            && pong.is_ok_and(|pong| pong == Value::SimpleString("PONG".to_owned()))
    }

    /// How tollgate is told where it is.
    pub fn url(&self) -> String {
        match (self.plan.socket_only, self.plan.tls) {
            (true, _) => format!("unix://{}", self.socket()),
            (_, Tls::Off) => format!("redis://127.0.0.1:{}", self.port),
            _ => format!("rediss://127.0.0.1:{}", self.port),
        }
    }

    /// What tollgate is told of it: `[quota]` and `[quota.redis]`. `via` is another address than its
    /// own, such as a relay's.
    pub fn quota(&self, via: Option<SocketAddr>) -> String {
        let scheme = if self.plan.tls == Tls::Off { "redis" } else { "rediss" };
        let url = via.map_or_else(|| self.url(), |via| format!("{scheme}://{via}"));
        self.quota_at(&url)
    }

    /// The same with any URL, such as that of a cluster of servers like this one.
    pub fn quota_at(&self, url: &str) -> String {
        let mut section = format!("[quota]\nstore = \"redis\"\n[quota.redis]\nurl = \"{url}\"\n");
        if let Some(account) = &self.plan.account {
            let password = self.dir.write("password", &account.password);
            let user = &account.user;
            section += &format!("user = \"{user}\"\npassword_file = \"{password}\"\n");
        }
        if let Some(certificates) = &self.certificates {
            let Certificates { authority, client, client_key, .. } = certificates;
            section += &format!("tls_ca_file = \"{authority}\"\n");
            if self.plan.tls == Tls::WithClients {
                section +=
                    &format!("tls_cert_file = \"{client}\"\ntls_key_file = \"{client_key}\"\n");
            }
        }
        section
    }

    /// Its port; 0 when it has none.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// The path of its socket.
    pub fn socket(&self) -> String {
        self.dir.at(SOCKET)
    }

    /// Where its files are.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Those of a server with TLS.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.running.as_ref().expect("the server runs").child.id()
    }

    /// Everything that the process has logged.
    pub fn log(&self) -> String {
        self.running.as_ref().map_or_else(String::new, Running::log)
    }

    /// Asks it something. Fails when the answer is an error.
    #[track_caller]
    pub fn cli(&self, words: &[&str]) -> Value {
        match self.try_cli(words) {
            Ok(answer) => answer,
            Err(error) => panic!("{words:?}: {error}\n{}", self.log()),
        }
    }

    /// The same as text: lines, where the answer has several parts.
    #[track_caller]
    pub fn cli_text(&self, words: &[&str]) -> String {
        text(&self.cli(words))
    }

    /// Asks it something that may fail.
    pub fn try_cli(&self, words: &[&str]) -> RedisResult<Value> {
        let account = self.plan.account.as_ref();
        let login =
            account.map_or_else(String::new, |_| format!("?user={TEST_USER}&pass={TEST_PASSWORD}"));
        let client = Client::open(format!("unix://{}{login}", self.socket()))?;
        let mut connection = client.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        let mut command = Cmd::new();
        words.iter().for_each(|word| {
            command.arg(*word);
        });
        command.query(&mut connection)
    }

    /// A value of `INFO`; none either while it does not answer, as when it changes its role.
    pub fn info(&self, name: &str) -> Option<String> {
        let info = text(&self.try_cli(&["INFO", "everything"]).ok()?);
        let line = |line: &str| {
            let (key, value) = line.trim_end().split_once(':')?;
            (key == name).then(|| value.to_owned())
        };
        info.lines().find_map(line)
    }

    /// Makes it stand still; its connections stay.
    #[track_caller]
    pub fn pause(&self) {
        pause(self.pid());
    }

    /// Lets it go on.
    #[track_caller]
    pub fn resume(&self) {
        resume(self.pid());
    }

    /// Ends it as a crash would.
    #[track_caller]
    pub fn kill(&mut self) {
        self.running.take().expect("the server runs").end();
    }

    /// Starts it on its port again, without anything in it; ends it first when it runs.
    #[track_caller]
    pub fn restart_empty(&mut self) {
        drop(self.running.take());
        wait_for("the server has its port again", || self.run().then_some(()));
    }
}

impl Running {
    fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Kills it, and gives all that it has said.
    fn end(&mut self) -> String {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.log()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let log = self.end();
        if std::thread::panicking() {
            eprintln!("log of a Redis server:\n{log}");
        }
    }
}

/// An answer as text: lines, where it has several parts.
pub fn text(answer: &Value) -> String {
    let pairs = |pairs: &[(Value, Value)]| {
        let lines = pairs.iter().map(|(key, value)| format!("{}\n{}", text(key), text(value)));
        lines.collect::<Vec<_>>().join("\n")
    };
    match answer {
        Value::Nil => String::new(),
        Value::Int(number) => number.to_string(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text.clone(),
        Value::Okay => "OK".to_owned(),
        Value::Array(parts) | Value::Set(parts) => {
            parts.iter().map(text).collect::<Vec<_>>().join("\n")
        }
        Value::Map(map) => pairs(map),
        other => format!("{other:?}"),
    }
}

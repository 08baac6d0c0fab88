//! A real redis-server of a test's own, on a socket in a directory of its own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs, process};

use redis::{Client, Connection};

/// A server that answers at all does so within this.
const PATIENCE: Duration = Duration::from_secs(20);

static STARTED: AtomicU32 = AtomicU32::new(0);

/// It keeps nothing on disk and ends with this.
pub(crate) struct RedisServer {
    child: Child,
    directory: PathBuf,
}

impl RedisServer {
    /// `TOLLGATE_REDIS_SERVER` is the program to run, if not the `redis-server` on the path.
    pub(crate) fn start() -> Self {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let directory = format!("tollgate-redis-{}-{number}", process::id());
        let directory = env::temp_dir().join(directory);
        fs::create_dir_all(&directory).unwrap();
        let program = env::var("TOLLGATE_REDIS_SERVER");
        let program = program.as_deref().unwrap_or("redis-server");
        let mut child = Command::new(program)
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(directory.join("socket"))
            .arg("--dir")
            .arg(&directory)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Its log goes nowhere from there on.
        let ready = lines.map_while(Result::ok).any(|line| line.contains("eady to accept"));
        let server = Self { child, directory };
        assert!(ready, "{program} ended before it was ready");
        server
    }

    #[allow(dead_code, reason = "only a bench stops it for a while")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The server's address, with a query or none.
    pub(crate) fn url(&self, query: &str) -> String {
        format!("unix://{}{query}", self.directory.join("socket").display())
    }

    pub(crate) fn connect(&self) -> Connection {
        self.connect_as("")
    }

    /// With a query such as `?protocol=resp3`.
    pub(crate) fn connect_as(&self, query: &str) -> Connection {
        let connection = Client::open(self.url(query)).unwrap().get_connection().unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        connection
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

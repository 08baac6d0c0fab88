//! The real binary, run as an operator runs it.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::Signal;

use super::peer::{Framing, Peer};
use super::process::{self, gather};
use super::{PATIENCE, wait_for};

pub const BINARY: &str = env!("CARGO_BIN_EXE_tollgate");

/// A running `tollgate run`. It is killed when this is dropped.
pub struct Proxy {
    child: Child,
    log: Arc<Mutex<String>>,
    output: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
    links: HashMap<String, SocketAddr>,
    admin: Option<SocketAddr>,
    config: PathBuf,
}

impl Proxy {
    /// Starts the proxy and waits until it is ready. Links and admin listen on port 0.
    #[track_caller]
    pub fn start(config: &str) -> Self {
        Self::start_by(Command::new(BINARY), config)
    }

    /// The same by a command that ends in the binary's path.
    #[track_caller]
    pub fn start_by(command: Command, config: &str) -> Self {
        Self::start_with(command, config, &[])
    }

    /// The same with more on the command line of `run`.
    #[track_caller]
    pub fn start_with(mut command: Command, config: &str, more: &[&str]) -> Self {
        let path = config_file(config);
        let mut child = command
            .args(["run", "--config"])
            .arg(&path)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (log, log_reader) = gather(child.stderr.take().unwrap());
        let (output, output_reader) = gather(child.stdout.take().unwrap());
        let readers = vec![log_reader, output_reader];
        let links = HashMap::new();
        let mut proxy = Self { child, log, output, readers, links, admin: None, config: path };
        wait_for("ready in the log", || {
            let log = proxy.log();
            (log.contains(" ready ") || log.contains("\"ready\"")).then_some(())
        });
        for line in proxy.log().lines() {
            let Some(address) = value_of(line, "address") else { continue };
            let address = address.parse().unwrap();
            match value_of(line, "link") {
                Some(link) => {
                    proxy.links.entry(link.to_owned()).or_insert(address);
                }
                None => proxy.admin = Some(address),
            }
        }
        proxy
    }

    /// Where a link listens.
    #[track_caller]
    pub fn address(&self, link: &str) -> SocketAddr {
        *self.links.get(link).unwrap_or_else(|| panic!("no link {link}: {}", self.log()))
    }

    /// Where the admin interface listens.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin.expect("admin is on")
    }

    /// Every address that a link listens on, in the order of the configuration.
    pub fn addresses(&self, link: &str) -> Vec<SocketAddr> {
        let log = self.log();
        let of_link = log.lines().filter(|line| value_of(line, "link") == Some(link));
        let listening = of_link.filter(|line| line.contains(" listening "));
        listening.map(|line| value_of(line, "address").unwrap().parse().unwrap()).collect()
    }

    /// A new session of a link.
    #[track_caller]
    pub fn connect(&self, link: &str, framing: Framing) -> Peer {
        Peer::connect(self.address(link), framing)
    }

    /// Everything logged so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Everything written to standard output so far.
    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    #[track_caller]
    pub fn wait_for_log(&self, text: &str) {
        let found = || self.log().contains(text).then_some(());
        wait_for(&format!("{text:?} in the log:\n{}", self.log()), found);
    }

    /// How many lines of the log hold every one of `texts`.
    pub fn log_lines(&self, texts: &[&str]) -> usize {
        let log = self.log();
        log.lines().filter(|line| texts.iter().all(|text| line.contains(text))).count()
    }

    /// The body of an admin page, and whether its status was 200.
    #[track_caller]
    pub fn page(&self, path: &str) -> (bool, String) {
        let mut stream = TcpStream::connect(self.admin.expect("admin is on")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an HTTP answer");
        (head.starts_with("HTTP/1.1 200"), body.to_owned())
    }

    /// The value of a series, written as on the page: `name{label="value"}`; 0 when it is not there.
    #[track_caller]
    pub fn metric(&self, series: &str) -> f64 {
        let (_, page) = self.page("/metrics");
        let line = page
            .lines()
            .find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
        line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }

    /// All series of a metric whose labels contain every one of `labels`, added up.
    #[track_caller]
    pub fn metric_sum(&self, name: &str, labels: &[&str]) -> f64 {
        let (_, page) = self.page("/metrics");
        let of_name = page.lines().filter(|line| line.starts_with(&format!("{name}{{")));
        let fitting = of_name.filter(|line| labels.iter().all(|label| line.contains(label)));
        fitting.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    /// Waits until a series has reached a value.
    #[track_caller]
    pub fn wait_for_metric(&self, series: &str, at_least: f64) {
        wait_for(&format!("{series} >= {at_least}\n{}", self.log()), || {
            (self.metric(series) >= at_least).then_some(())
        });
    }

    /// Waits until a gauge has exactly a value.
    #[track_caller]
    pub fn wait_for_gauge(&self, series: &str, value: f64) {
        wait_for(&format!("{series} = {value}\n{}", self.log()), || {
            (self.metric(series) == value).then_some(())
        });
    }

    /// Memory that the process holds, in KiB.
    #[track_caller]
    pub fn rss_kib(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Processor time that the process has used, of all its threads.
    #[track_caller]
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        // The numbers stand behind the name, which is in parentheses: the eleventh and the twelfth
        // of them are ticks in user and in system mode.
        let (_, behind) = stat.rsplit_once(") ").unwrap();
        let ticks = behind.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap());
        // A tick is a hundredth of a second for all that Linux tells a process.
        Duration::from_millis(ticks.sum::<u64>() * 10)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name: TERM, INT, HUP, STOP, CONT. After STOP no thread of it runs any more.
    #[track_caller]
    pub fn signal(&self, signal: &str) {
        let signal = match signal {
            "TERM" => Signal::TERM,
            "INT" => Signal::INT,
            "HUP" => Signal::HUP,
            "STOP" => return process::pause(self.pid()),
            "CONT" => Signal::CONT,
            other => panic!("unknown signal {other}"),
        };
        process::signal(self.pid(), signal);
    }

    /// Waits for the end of the process, and of what it said.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let child = &mut self.child;
        let status = wait_for("the process ends", || child.try_wait().unwrap());
        // Its last words are read when its ends of the pipes are.
        self.readers.drain(..).for_each(|reader| reader.join().unwrap());
        status
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.config);
        if std::thread::panicking() {
            eprintln!("log of the proxy:\n{}", self.log());
        }
    }
}

/// Runs `tollgate run` with a configuration that it is expected to give up on.
#[track_caller]
pub fn run_to_its_end(config: &str) -> Output {
    let path = config_file(config);
    let output = tollgate(&["run", "--config", path.to_str().unwrap()]);
    std::fs::remove_file(path).unwrap();
    output
}

/// Runs the binary with a command line that ends by itself.
#[track_caller]
pub fn tollgate(arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    let mut child = command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What such a run prints fits into a pipe, so that it ends without being read.
    wait_for("the process ends by itself", || child.try_wait().unwrap());
    child.wait_with_output().unwrap()
}

fn config_file(config: &str) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("proxy-{}-{number}.toml", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, config).unwrap();
    path
}

/// The value of a field in a line of either log format.
fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    match line.split_once(&format!("\"{key}\":\"")) {
        Some((_, rest)) => rest.split('"').next(),
        None => line.split_once(&format!("{key}="))?.1.split_whitespace().next(),
    }
}

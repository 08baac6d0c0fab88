//! The sections of the node itself: `[node]`, `[admin]` and `[log]`.

use std::net::SocketAddr;
use std::time::Duration;

use super::listening::Listening;
use super::reader::{Placed, Section};
use super::{duration, value};

/// This process, whatever it proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is called in logs and metrics; nothing is decided by it.
    pub name: String,
    /// Worker threads; 0 is one per core.
    pub workers: usize,
    /// How long open sessions are still served after SIGTERM.
    pub grace: Duration,
}

impl Node {
    /// Default of `workers`.
    pub const WORKERS: usize = 0;
    /// Default of `grace`: longer than the deadline of what was just taken in.
    pub const GRACE: Duration = Duration::from_secs(2);

    const WORKERS_MAX: usize = 1_024;
    const GRACE_MAX: Duration = Duration::from_secs(600);

    pub(super) fn read(section: Section<'_>) -> Option<Self> {
        let name = section.optional("name", value::name);
        let workers = section.or("workers", Self::WORKERS, value::whole(0..=Self::WORKERS_MAX));
        let grace = duration::within(Duration::ZERO..=Self::GRACE_MAX);
        let grace = section.or("grace", Self::GRACE, grace);
        section.finish(&[]);
        Some(Self {
            name: name?.value.unwrap_or_else(host_name),
            workers: workers?.value,
            grace: grace?.value,
        })
    }
}

/// The host's name, as far as it can be found: it is a label, and no reason not to start.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "tollgate".to_owned())
}

/// Default of `[admin] listen`: seen from this machine alone.
pub const ADMIN_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9_580);

/// `[admin]`; an address of `None` is turned off.
pub(super) fn admin(section: Section<'_>, listening: &mut Listening) -> Option<Option<SocketAddr>> {
    let listen = section.optional("listen", |value| match value.as_str() {
        Some("") => Ok(None),
        _ => value::address(value).map(Some),
    });
    let admin = match &listen {
        None => None,
        Some(Placed { value: None, .. }) => {
            listening.claim_default(ADMIN_LISTEN, "admin.listen");
            Some(Some(ADMIN_LISTEN))
        }
        Some(Placed { value: Some(chosen), place }) => {
            if let Some(address) = chosen {
                listening.claim(&section, *address, place);
            }
            Some(*chosen)
        }
    };
    section.finish(&[]);
    admin
}

/// What is logged, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// The least urgent level that is written.
    pub level: tracing::Level,
    /// How a line is written.
    pub format: LogFormat,
}

/// How a log line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Log {
    /// Default of `level`.
    pub const LEVEL: tracing::Level = tracing::Level::INFO;
    /// Default of `format`.
    pub const FORMAT: LogFormat = LogFormat::Text;

    const LEVELS: [(&'static str, tracing::Level); 5] = [
        ("error", tracing::Level::ERROR),
        ("warn", tracing::Level::WARN),
        ("info", tracing::Level::INFO),
        ("debug", tracing::Level::DEBUG),
        ("trace", tracing::Level::TRACE),
    ];
    const FORMATS: [(&'static str, LogFormat); 2] =
        [("text", LogFormat::Text), ("json", LogFormat::Json)];

    pub(super) fn read(section: Section<'_>) -> Option<Self> {
        let level = value::choice(Self::LEVELS, value::none_later);
        let level = section.or("level", Self::LEVEL, level);
        let format = value::choice(Self::FORMATS, value::none_later);
        let format = section.or("format", Self::FORMAT, format);
        section.finish(&[]);
        Some(Self { level: level?.value, format: format?.value })
    }
}

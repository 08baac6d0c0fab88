//! Addresses of Redis servers as an operator writes them.
//!
//! The scheme says what stands at the address: `redis` a server, `redis-sentinel` a Sentinel,
//! `redis-cluster` a server of a Cluster, each with `rediss` for TLS; `unix` a server at a socket of
//! this machine. No address holds a password, as addresses are logged.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use url::Url;

use super::settings::Deployment;

/// Where one server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A host's name or number, and a port.
    Tcp {
        /// Without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A socket of this machine.
    Unix(PathBuf),
}

/// What an address says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Where.
    pub address: Address,
    /// What stands there.
    pub kind: Kind,
    /// Whether it is spoken to by TLS.
    pub tls: bool,
    /// The number of the database.
    pub database: u32,
}

/// What stands at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A server.
    Server,
    /// A Sentinel, that knows the master of this name.
    Sentinel(String),
    /// A server of a Cluster.
    Cluster,
}

/// Why an address, or a list of them, cannot be used. It does not quote what it is about, which may
/// hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UrlFault {
    /// It is no address at all.
    #[error("is no address of a Redis")]
    Malformed,
    /// Its scheme is none of those that are known.
    #[error("has a scheme that is no Redis's")]
    Scheme,
    /// A password stood in the address.
    #[error("names a user or a password")]
    Login,
    /// A Sentinel without a name.
    #[error("names no master")]
    NoMaster,
    /// What follows the host means nothing.
    #[error("has a path that is no number of a database")]
    Path,
    /// Servers of several kinds, or of several masters.
    #[error("lists addresses that do not go together")]
    Mixed,
    /// A list with nothing in it.
    #[error("lists no address")]
    Nothing,
    /// A Cluster has but one database.
    #[error("names a database of a cluster, which has but one")]
    ClusterDatabase,
}

const PORT: u16 = 6_379;
const SENTINEL_PORT: u16 = 26_379;

/// Reads an address, or several that differ in their hosts alone: `redis-cluster://one:7000,two:7000`.
///
/// # Errors
/// When one of them cannot be used.
pub fn parse(text: &str) -> Result<Vec<Said>, UrlFault> {
    let Some((scheme, rest)) = text.split_once("://") else { return Ok(vec![parse_one(text)?]) };
    let end = rest.find('/').unwrap_or(rest.len());
    let (hosts, path) = rest.split_at_checked(end).ok_or(UrlFault::Malformed)?;
    hosts.split(',').map(|host| parse_one(&format!("{scheme}://{host}{path}"))).collect()
}

fn parse_one(text: &str) -> Result<Said, UrlFault> {
    let url = Url::parse(text).map_err(|_| UrlFault::Malformed)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlFault::Login);
    }
    let path = url.path().trim_matches('/').to_owned();
    if url.scheme() == "unix" {
        let address = Address::Unix(Path::new("/").join(&path));
        let named = url.host_str().is_none_or(str::is_empty) && !path.is_empty();
        let database = database_of(url.query().unwrap_or_default().trim_start_matches("db="))?;
        let said = Said { address, kind: Kind::Server, tls: false, database };
        return if named { Ok(said) } else { Err(UrlFault::Malformed) };
    }
    let (kind, database) = match url.scheme() {
        "redis" | "rediss" => (Kind::Server, database_of(&path)?),
        "redis-cluster" | "rediss-cluster" if path.is_empty() => (Kind::Cluster, 0),
        "redis-cluster" | "rediss-cluster" => return Err(UrlFault::ClusterDatabase),
        "redis-sentinel" | "rediss-sentinel" => {
            let (master, database) = path.split_once('/').unwrap_or((&path, ""));
            if master.is_empty() {
                return Err(UrlFault::NoMaster);
            }
            (Kind::Sentinel(master.to_owned()), database_of(database)?)
        }
        _ => return Err(UrlFault::Scheme),
    };
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or(UrlFault::Malformed)?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let usual = if matches!(kind, Kind::Sentinel(_)) { SENTINEL_PORT } else { PORT };
    let address = Address::Tcp { host, port: url.port().unwrap_or(usual) };
    Ok(Said { address, kind, tls: url.scheme().starts_with("rediss"), database })
}

fn database_of(text: &str) -> Result<u32, UrlFault> {
    if text.is_empty() { Ok(0) } else { text.parse().map_err(|_| UrlFault::Path) }
}

/// What a list of addresses amounts to: several servers are seeds of a Cluster.
///
/// # Errors
/// When they do not go together.
pub fn deployment(said: &[Said]) -> Result<Deployment, UrlFault> {
    let (first, others) = said.split_first().ok_or(UrlFault::Nothing)?;
    let alike = |other: &Said| {
        (&other.kind, other.tls, other.database) == (&first.kind, first.tls, first.database)
    };
    if !others.iter().all(alike) {
        return Err(UrlFault::Mixed);
    }
    let addresses = || said.iter().map(|said| said.address.clone()).collect();
    match &first.kind {
        Kind::Server if others.is_empty() => Ok(Deployment::Single(first.address.clone())),
        Kind::Server if first.database != 0 => Err(UrlFault::ClusterDatabase),
        Kind::Server | Kind::Cluster => Ok(Deployment::Cluster { seeds: addresses() }),
        Kind::Sentinel(master) => {
            Ok(Deployment::Sentinel { sentinels: addresses(), master: master.clone() })
        }
    }
}

impl Address {
    /// Reads what a server calls another one: `host:port`, or `:port` and `?:port` for its own host.
    pub(super) fn of_peer(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']').trim_start_matches('?');
        Some(Self::Tcp { host: host.to_owned(), port: port.parse().ok()? })
    }

    /// This address, at the host of the one who gave it if it says none.
    #[must_use]
    pub(super) fn near(self, giver: Option<&Self>) -> Self {
        match (self, giver) {
            (Self::Tcp { host, port }, Some(Self::Tcp { host: own, .. })) if host.is_empty() => {
                Self::Tcp { host: own.clone(), port }
            }
            (address, _) => address,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp { host: host.to_owned(), port }
    }

    fn found(texts: &[&str]) -> Result<Deployment, UrlFault> {
        let said: Result<Vec<_>, _> = texts.iter().map(|text| parse(text)).collect();
        deployment(&said?.concat())
    }

    fn only(text: &str) -> Result<Said, UrlFault> {
        parse(text).map(|mut said| said.remove(0))
    }

    #[test]
    fn one_address_is_a_server_with_the_usual_port_and_database() {
        let said = only("redis://quota.example").unwrap();
        let address = tcp("quota.example", 6_379);
        assert_eq!(said, Said { address, kind: Kind::Server, tls: false, database: 0 });
        let said = only("rediss://[::1]:7000/3").unwrap();
        assert_eq!((said.address, said.tls, said.database), (tcp("::1", 7_000), true, 3));
    }

    #[test]
    fn a_socket_of_this_machine_is_a_path() {
        let said = only("unix:///run/redis/redis.sock").unwrap();
        assert_eq!(said.address, Address::Unix("/run/redis/redis.sock".into()));
        assert_eq!(only("unix:///run/redis.sock?db=2").unwrap().database, 2);
        assert_eq!(only("unix://"), Err(UrlFault::Malformed));
    }

    #[test]
    fn sentinels_name_their_master() {
        let texts = ["redis-sentinel://one/quota", "redis-sentinel://two:26380/quota"];
        let sentinels = vec![tcp("one", 26_379), tcp("two", 26_380)];
        assert_eq!(found(&texts), Ok(Deployment::Sentinel { sentinels, master: "quota".into() }));
        assert_eq!(found(&["redis-sentinel://one"]), Err(UrlFault::NoMaster));
        let other = ["redis-sentinel://one/quota", "redis-sentinel://two/other"];
        assert_eq!(found(&other), Err(UrlFault::Mixed));
    }

    #[test]
    fn several_servers_are_seeds_of_a_cluster() {
        let seeds = vec![tcp("one", 7_000), tcp("two", 6_379)];
        let cluster = Ok(Deployment::Cluster { seeds });
        assert_eq!(found(&["redis://one:7000", "redis://two"]), cluster);
        assert_eq!(found(&["redis-cluster://one:7000", "redis-cluster://two"]), cluster);
        assert_eq!(found(&["redis://one/1", "redis://two/1"]), Err(UrlFault::ClusterDatabase));
        assert_eq!(found(&["redis://one", "rediss://two"]), Err(UrlFault::Mixed));
        assert_eq!(found(&["redis-cluster://one:7000,two"]), cluster);
        assert_eq!(found(&[]), Err(UrlFault::Nothing));
    }

    #[test]
    fn an_address_with_a_password_is_refused_and_not_quoted() {
        for text in ["redis://:hush@one", "redis://gate:hush@one", "redis://gate@one"] {
            let fault = only(text).unwrap_err();
            assert_eq!(fault, UrlFault::Login);
            assert!(!fault.to_string().contains("hush"));
        }
    }

    #[test]
    fn what_is_no_address_says_why() {
        let faults = [
            ("", UrlFault::Malformed),
            ("localhost:6379", UrlFault::Scheme),
            ("http://one", UrlFault::Scheme),
            ("redis://", UrlFault::Malformed),
            ("redis://one/two", UrlFault::Path),
            ("redis-cluster://one/1", UrlFault::ClusterDatabase),
        ];
        for (text, fault) in faults {
            assert_eq!(only(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn a_server_calls_another_by_host_and_port() {
        assert_eq!(Address::of_peer("10.0.0.1:7001"), Some(tcp("10.0.0.1", 7_001)));
        assert_eq!(Address::of_peer("::1:7001"), Some(tcp("::1", 7_001)));
        for own in [":7001", "?:7001"] {
            let near = Address::of_peer(own).unwrap().near(Some(&tcp("10.0.0.1", 6_379)));
            assert_eq!(near, tcp("10.0.0.1", 7_001));
        }
        assert_eq!(tcp("one", 1).near(Some(&tcp("two", 2))), tcp("one", 1));
        assert_eq!(Address::of_peer("quota.example"), None);
    }
}

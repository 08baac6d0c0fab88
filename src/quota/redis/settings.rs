//! Where a Redis is, and as whom a node speaks to it.

use std::fmt;

use super::url::Address;

/// All that it takes to reach the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How its servers are found.
    pub deployment: Deployment,
    /// Number of the database; 0 in a Cluster.
    pub database: u32,
    /// To the servers that hold the keys.
    pub login: Login,
    /// To the Sentinels.
    pub sentinel_login: Login,
    /// `None` speaks in the clear.
    pub tls: Option<Tls>,
    /// Begins the name of every key, so that several installations may share a Redis.
    pub namespace: String,
}

/// How the server is found that takes a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deployment {
    /// There is one.
    Single(Address),
    /// Sentinels know which one is the master.
    Sentinel {
        /// Asked in turn.
        sentinels: Vec<Address>,
        /// The name they know it by.
        master: String,
    },
    /// Each slot has a master, and any server says which.
    Cluster {
        /// Asked in turn.
        seeds: Vec<Address>,
    },
}

/// A user of a Redis, with the password that proves it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// `None` is the default user.
    pub user: Option<String>,
    /// `None` where none is asked for.
    pub password: Option<Password>,
}

/// A password. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

/// Certificates, in PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Whom to trust; `None` trusts the authorities of the public internet.
    pub authorities: Option<Vec<u8>>,
    /// The node's own certificate and its key, where the server asks for one.
    pub own: Option<(Vec<u8>, Vec<u8>)>,
}

impl Deployment {
    /// What it is called in logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Single(_) => "single",
            Self::Sentinel { .. } => "sentinel",
            Self::Cluster { .. } => "cluster",
        }
    }

    /// How many shards a store of this kind has unless the configuration says otherwise.
    pub const fn usual_shards(&self) -> u16 {
        match self {
            Self::Single(_) | Self::Sentinel { .. } => 1,
            Self::Cluster { .. } => 8,
        }
    }

    /// The addresses of the configuration, in its order.
    pub fn addresses(&self) -> &[Address] {
        match self {
            Self::Single(address) => std::slice::from_ref(address),
            Self::Sentinel { sentinels, .. } => sentinels,
            Self::Cluster { seeds } => seeds,
        }
    }
}

impl fmt::Display for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single(address) => write!(f, "redis at {address}"),
            Self::Sentinel { sentinels, master } => {
                write!(f, "redis master {master} by the sentinels at {}", listed(sentinels))
            }
            Self::Cluster { seeds } => write!(f, "redis cluster by way of {}", listed(seeds)),
        }
    }
}

fn listed(addresses: &[Address]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Password {
    /// Takes a password; a line end, as files have it, is no part of it.
    pub fn new(text: &str) -> Self {
        Self(text.trim_end_matches(['\r', '\n']).to_owned())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<password>")
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = if self.own.is_some() { "own certificate" } else { "no certificate" };
        let trust = if self.authorities.is_some() { "named authorities" } else { "public ones" };
        write!(f, "Tls({own}, trusts {trust})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_password_nor_a_key_is_ever_printed() {
        let login = Login { user: Some("gate".into()), password: Some(Password::new("hush\r\n")) };
        let tls = Tls { authorities: None, own: Some((b"certificate".into(), b"key".into())) };
        let printed = format!("{login:?} {tls:?}");
        assert!(!printed.contains("hush") && !printed.contains("key"), "{printed}");
        assert_eq!(login.password.unwrap().reveal(), "hush");
    }
}

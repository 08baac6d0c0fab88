//! Connections to the servers of a deployment: who is the master, and one connection to it.
//!
//! It makes one attempt at a time and says how that went. When the next one is made is the caller's
//! affair.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ErrorKind, IntoConnectionInfo,
    ProtocolVersion, PushInfo, RedisConnectionInfo, RedisError, RedisResult, TlsCertificates,
    TlsMode,
};
use tokio::time::timeout;

use super::settings::{Deployment, Login, Settings};
use super::url::Address;

/// One attempt to connect, with its greeting, takes no longer.
const CONNECT: Duration = Duration::from_millis(500);
/// Nor does the search for the master, through all the sentinels.
const LOCATE: Duration = Duration::from_secs(2);
/// What is not answered at all for so long has broken the connection. A server that answers later than
/// the sync waits, but answers, keeps its connection.
pub(super) const STALL: Duration = Duration::from_millis(500);

/// Servers of a cluster that are remembered beside its seeds.
const KNOWN_MAX: usize = 64;

/// What makes connections.
#[derive(Debug)]
pub(super) struct Connector {
    settings: Settings,
    /// Servers of a cluster that were connected to: any of them knows the others.
    known: Mutex<Vec<Address>>,
}

impl Connector {
    pub(super) fn new(settings: Settings) -> Self {
        // It fails where another part of the process has chosen before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { settings, known: Mutex::default() }
    }

    /// Whether another server may have taken over from one that says it may take nothing.
    pub(super) fn may_be_elsewhere(&self) -> bool {
        !matches!(self.settings.deployment, Deployment::Single(_))
    }

    /// Whose turn it is, by how often was asked before: the server, the master that sentinels name, or in
    /// a cluster the `last` one and then the seeds and all that were met.
    ///
    /// # Errors
    /// When no sentinel knows.
    pub(super) async fn locate(
        &self,
        last: Option<Address>,
        attempt: usize,
    ) -> RedisResult<Address> {
        match &self.settings.deployment {
            Deployment::Single(address) => Ok(address.clone()),
            Deployment::Sentinel { sentinels, master } => {
                // One that is gone with the master is not always the first to be asked.
                let mut sentinels = sentinels.clone();
                let turn = attempt.checked_rem(sentinels.len()).unwrap_or(0);
                sentinels.rotate_left(turn);
                timeout(LOCATE, self.ask_sentinels(&sentinels, master))
                    .await
                    .unwrap_or_else(|_| Err(late("no sentinel answers")))
            }
            Deployment::Cluster { seeds } => {
                if let Some(last) = last.filter(|_| attempt <= 1) {
                    return Ok(last);
                }
                let known = self.known();
                let all = seeds.len() + known.len();
                let turn = attempt.checked_rem(all);
                let turn = turn.and_then(|at| seeds.iter().chain(known.iter()).nth(at));
                turn.cloned().ok_or_else(|| invalid("no seed of the cluster is configured"))
            }
        }
    }

    /// Connects to a server that takes writes: outside a cluster, a replica is as good as none.
    pub(super) async fn connect(&self, address: &Address) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new();
        let mut connection = self.open(address, config).await?;
        if let Deployment::Cluster { seeds } = &self.settings.deployment {
            let mut known = self.known();
            if known.len() < KNOWN_MAX && !known.contains(address) && !seeds.contains(address) {
                known.push(address.clone());
            }
        } else {
            let role: Vec<redis::Value> = redis::cmd("ROLE").query_async(&mut connection).await?;
            let is_master = role.first().is_some_and(|role| *role == bulk("master"));
            if !is_master {
                let line = b"-READONLY the server is a replica\r\n";
                return Err(redis::parse_redis_value(line)?
                    .extract_error()
                    .err()
                    .unwrap_or_else(|| invalid("the server is a replica")));
            }
        }
        Ok(connection)
    }

    /// Connects to a server that is to tell what others publish.
    pub(super) async fn connect_to_hear(
        &self,
        address: &Address,
        told: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> RedisResult<MultiplexedConnection> {
        let told = move |push| -> Result<(), ()> {
            told(push);
            Ok(())
        };
        self.open(address, AsyncConnectionConfig::new().set_push_sender(told)).await
    }

    fn known(&self) -> MutexGuard<'_, Vec<Address>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(
        &self,
        address: &Address,
        config: AsyncConnectionConfig,
    ) -> RedisResult<MultiplexedConnection> {
        let config = config.set_connection_timeout(Some(CONNECT)).set_response_timeout(Some(STALL));
        let client = self.client(address)?;
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        // The client's own limit is for each of several steps.
        timeout(CONNECT, connecting).await.unwrap_or_else(|_| Err(late("no greeting in time")))
    }

    fn client(&self, address: &Address) -> RedisResult<Client> {
        let info = self.place(address).into_connection_info()?;
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let info = info.set_redis_settings(self.greeting(&self.settings.login));
        match self.certificates() {
            Some(certificates) if !matches!(address, Address::Unix(_)) => {
                Client::build_with_tls(info, certificates)
            }
            _ => Client::open(info),
        }
    }

    fn place(&self, address: &Address) -> ConnectionAddr {
        match address {
            Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
            Address::Tcp { host, port } if self.settings.tls.is_some() => {
                let (host, port) = (host.clone(), *port);
                ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
            }
            Address::Tcp { host, port } => ConnectionAddr::Tcp(host.clone(), *port),
        }
    }

    fn greeting(&self, login: &Login) -> RedisConnectionInfo {
        let mut greeting = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP3)
            .set_lib_name(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            .set_db(self.settings.database.into());
        if let Some(user) = &login.user {
            greeting = greeting.set_username(user);
        }
        if let Some(password) = &login.password {
            greeting = greeting.set_password(password.reveal());
        }
        greeting
    }

    fn certificates(&self) -> Option<TlsCertificates> {
        let tls = self.settings.tls.as_ref()?;
        let own = tls.own.clone();
        Some(TlsCertificates {
            client_tls: own
                .map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key }),
            root_cert: tls.authorities.clone(),
        })
    }

    async fn ask_sentinels(&self, sentinels: &[Address], master: &str) -> RedisResult<Address> {
        let places = sentinels.iter().map(|sentinel| self.place(sentinel));
        let Settings { login, sentinel_login, database, .. } = &self.settings;
        let mut asked = SentinelClientBuilder::new(places, master, SentinelServerType::Master)?
            .set_client_to_redis_db((*database).into());
        if let Some(user) = &login.user {
            asked = asked.set_client_to_redis_username(user);
        }
        if let Some(password) = &login.password {
            asked = asked.set_client_to_redis_password(password.reveal());
        }
        if let Some(user) = &sentinel_login.user {
            asked = asked.set_client_to_sentinel_username(user);
        }
        if let Some(password) = &sentinel_login.password {
            asked = asked.set_client_to_sentinel_password(password.reveal());
        }
        if let Some(certificates) = self.certificates() {
            asked = asked
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_sentinel_tls_mode(TlsMode::Secure)
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates);
        }
        let found = asked.build()?.async_get_client().await?;
        match found.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Ok(Address::Tcp { host: host.clone(), port: *port })
            }
            _ => Err(invalid("the sentinels name no address")),
        }
    }
}

fn bulk(text: &str) -> redis::Value {
    redis::Value::BulkString(text.as_bytes().to_vec())
}

fn late(what: &'static str) -> RedisError {
    RedisError::from(std::io::Error::new(std::io::ErrorKind::TimedOut, what))
}

fn invalid(what: &'static str) -> RedisError {
    RedisError::from((ErrorKind::InvalidClientConfig, what))
}

//! What a server says of itself, and what of that an operator has to know before a bad day shows it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use redis::RedisResult;
use redis::aio::MultiplexedConnection;
use tracing::{info, warn};

use super::settings::Deployment;
use super::url::Address;

/// The oldest version that speaks the protocol of pushes, and the first with the shard channels that
/// tell a cluster's nodes.
const OLDEST: (u32, u32) = (6, 2);
const OLDEST_CLUSTER: (u32, u32) = (7, 0);
/// Servers that were looked at and are remembered.
const MET_MAX: usize = 64;

/// What one server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// `7.0.15`.
    pub version: String,
    /// `master` or `slave`.
    pub role: String,
    /// Its life: another after each start.
    pub run_id: String,
    /// Whether it is a server of a cluster.
    pub is_cluster: bool,
    /// `ok` or `fail`; empty outside a cluster.
    pub cluster_state: String,
    /// In bytes; 0 is no bound.
    pub memory_max: u64,
    /// In bytes.
    pub memory_used: u64,
    /// What it does when its memory is full.
    pub eviction: String,
    /// Replicas that are connected.
    pub replicas: u32,
    /// Whether it takes writes only while a replica hears them.
    pub needs_replicas: bool,
}

/// One thing that an operator has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning(pub String);

impl Survey {
    /// Asks a server.
    ///
    /// # Errors
    /// When it does not say.
    pub(super) async fn of(connection: &mut MultiplexedConnection) -> RedisResult<Self> {
        let mut text = String::new();
        for section in ["server", "replication", "memory", "cluster"] {
            let more: String =
                redis::cmd("INFO").arg(section).query_async(&mut *connection).await?;
            text.push_str(&more);
            text.push('\n');
        }
        let mut survey = Self::read(&text);
        if survey.is_cluster {
            let more: String = redis::cmd("CLUSTER").arg("INFO").query_async(connection).await?;
            survey.cluster_state = fields(&more).get("cluster_state").copied().unwrap_or("").into();
        }
        Ok(survey)
    }

    fn read(text: &str) -> Self {
        let fields = fields(text);
        let word = |name: &str| fields.get(name).copied().unwrap_or_default().to_owned();
        let number = |name: &str| word(name).parse().unwrap_or(0);
        Self {
            version: word("redis_version"),
            role: word("role"),
            run_id: word("run_id"),
            is_cluster: word("cluster_enabled") == "1",
            cluster_state: String::new(),
            memory_max: number("maxmemory"),
            memory_used: number("used_memory"),
            eviction: word("maxmemory_policy"),
            replicas: u32::try_from(number("connected_slaves")).unwrap_or(u32::MAX),
            // It is there only where min-replicas-to-write is set.
            needs_replicas: fields.contains_key("min_slaves_good_slaves"),
        }
    }

    /// What is not as it should be, in a deployment of this kind.
    pub fn warnings(&self, deployment: &Deployment) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut warn = |text: String| warnings.push(Warning(text));
        let is_meant_as_cluster = matches!(deployment, Deployment::Cluster { .. });
        let oldest = if is_meant_as_cluster { OLDEST_CLUSTER } else { OLDEST };
        if version(&self.version).is_none_or(|version| version < oldest) {
            let (major, minor) = oldest;
            warn(format!(
                "version {} is older than {major}.{minor}, with which this was tested",
                self.version
            ));
        }
        if self.is_cluster && !is_meant_as_cluster {
            warn("it is a server of a cluster: write redis-cluster:// in url, or calls for keys of other servers fail".into());
        }
        if !self.is_cluster && is_meant_as_cluster {
            warn("it is no server of a cluster: write redis:// in url".into());
        }
        if self.is_cluster && self.cluster_state != "ok" {
            warn(format!(
                "cluster_state is {}: some slots have no master (CLUSTER NODES)",
                self.cluster_state
            ));
        }
        if self.role == "slave" && !is_meant_as_cluster {
            warn(
                "it is a replica, which takes no writes: point url at the master, or at sentinels"
                    .into(),
            );
        }
        if self.memory_max > 0 && !["noeviction", "volatile-ttl"].contains(&&*self.eviction) {
            warn(format!(
                "maxmemory-policy {} removes buckets that are in use: set noeviction or volatile-ttl; a bucket that is removed comes back at the level that the nodes know",
                self.eviction
            ));
        }
        if matches!(deployment, Deployment::Sentinel { .. }) && !self.needs_replicas {
            warn("min-replicas-to-write is not set: a master that is cut off goes on taking reports that are lost with it; set min-replicas-to-write 1 and min-replicas-max-lag 2".into());
        }
        warnings
    }
}

fn fields(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.trim_end().split_once(':')).collect()
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// Looks at servers as they are met, and says of each life of each once what it says of itself.
#[derive(Debug)]
pub(super) struct Surveyor {
    deployment: Deployment,
    met: Arc<Mutex<Vec<String>>>,
}

impl Surveyor {
    pub(super) fn new(deployment: Deployment) -> Self {
        Self { deployment, met: Arc::default() }
    }

    /// Looks at a server, beside whatever else is done by the connection.
    pub(super) fn look(&self, address: &Address, mut connection: MultiplexedConnection) {
        let (deployment, met) = (self.deployment.clone(), Arc::clone(&self.met));
        let server = address.to_string();
        tokio::spawn(async move {
            let survey = match Survey::of(&mut connection).await {
                Ok(survey) => survey,
                Err(error) => {
                    tracing::debug!(server, %error, "the store does not say what it is");
                    return;
                }
            };
            if !is_new(&met, &survey.run_id) {
                return;
            }
            let Survey { version, role, eviction, memory_max, cluster_state, .. } = &survey;
            let kind = deployment.name();
            info!(server, kind, version, role, eviction, memory_max, cluster_state, "store");
            for Warning(text) in survey.warnings(&deployment) {
                warn!(server, "the store: {text}");
            }
        });
    }
}

fn is_new(met: &Mutex<Vec<String>>, run_id: &str) -> bool {
    let mut met = met.lock().unwrap_or_else(PoisonError::into_inner);
    if met.iter().any(|known| known == run_id) {
        return false;
    }
    if met.len() == MET_MAX {
        met.remove(0);
    }
    met.push(run_id.to_owned());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n\
        # Replication\r\nrole:master\r\nconnected_slaves:1\r\n\
        # Memory\r\nused_memory:1000\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\
        # Cluster\r\ncluster_enabled:0\r\n";

    fn single() -> Deployment {
        Deployment::Single(Address::Tcp { host: "one".into(), port: 6_379 })
    }

    fn warned(survey: &Survey, deployment: &Deployment) -> String {
        let texts: Vec<_> = survey.warnings(deployment).into_iter().map(|of| of.0).collect();
        texts.join("\n")
    }

    #[test]
    fn a_server_as_it_should_be_warns_of_nothing() {
        let survey = Survey::read(INFO);
        assert_eq!((&*survey.version, &*survey.role, survey.replicas), ("7.0.15", "master", 1));
        assert_eq!(survey.warnings(&single()), []);
    }

    #[test]
    fn every_trap_is_warned_of() {
        let sound = Survey::read(INFO);
        let cluster = Deployment::Cluster { seeds: vec![] };
        let sentinel = Deployment::Sentinel { sentinels: vec![], master: "quota".into() };
        let evicting = Survey { memory_max: 1, eviction: "allkeys-lru".into(), ..sound.clone() };
        let old = Survey { version: "5.0.3".into(), ..sound.clone() };
        let replica = Survey { role: "slave".into(), ..sound.clone() };
        let member = Survey { is_cluster: true, cluster_state: "fail".into(), ..sound.clone() };
        let traps = [
            (&evicting, &single(), "maxmemory-policy allkeys-lru"),
            (&old, &single(), "older than 6.2"),
            (&replica, &single(), "takes no writes"),
            (&member, &single(), "redis-cluster://"),
            (&member, &cluster, "cluster_state is fail"),
            (&sound, &cluster, "no server of a cluster"),
            (&sound, &sentinel, "min-replicas-to-write"),
        ];
        for (survey, deployment, word) in traps {
            assert!(warned(survey, deployment).contains(word), "{word}");
        }
        let guarded = Survey { needs_replicas: true, ..sound };
        assert_eq!(guarded.warnings(&sentinel), []);
    }

    #[test]
    fn what_says_nothing_is_read_as_nothing() {
        let survey = Survey::read("");
        assert_eq!(survey, Survey::default());
        assert!(warned(&survey, &single()).contains("version"));
    }
}

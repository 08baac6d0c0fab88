//! The store tried out, as `tollgate check --connect` does before a node is started.
//!
//! It makes the call of a node that comes and goes, about a key that nobody has, and listens where nodes
//! publish: nobody's bucket changes, and most of what a node may not do shows.

use std::sync::Arc;
use std::time::Duration;

use super::connect::Connector;
use super::fault::{Consequence, Fault, consequence};
use super::open::Open;
use super::script::Script;
use super::settings::{Deployment, Settings};
use super::survey::{Survey, Warning};
use super::url::Address;
use crate::clock::Clock;
use crate::limits::StoreKey;
use crate::quota::protocol::{Call, NodeId, Report, Since};

/// Servers that are asked in turn for one shard.
const ASKED_MAX: usize = 8;

/// What came of trying one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Which one.
    pub shard: u16,
    /// What was found, or what failed and what to do about it.
    pub outcome: Result<String, String>,
    /// What is not as it should be.
    pub warnings: Vec<Warning>,
}

/// Tries every shard of a store, one after the other.
pub async fn try_out(settings: &Settings, shards: u16, node: NodeId, clock: Clock) -> Vec<Tried> {
    let is_cluster = matches!(settings.deployment, Deployment::Cluster { .. });
    let script = Script::new(&settings.namespace, is_cluster);
    let connector = Arc::new(Connector::new(settings.clone()));
    let mut tried = Vec::new();
    for shard in 0..shards {
        let mut warnings = Vec::new();
        let trial = Trial { connector: &connector, script: &script, node, clock };
        let outcome = trial.shard(shard, settings, &mut warnings).await;
        // Of one server once.
        let known =
            |warning: &Warning| tried.iter().any(|of: &Tried| of.warnings.contains(warning));
        warnings.retain(|warning| !known(warning));
        tried.push(Tried { shard, outcome, warnings });
    }
    tried
}

struct Trial<'a> {
    connector: &'a Connector,
    script: &'a Script,
    node: NodeId,
    clock: Clock,
}

impl Trial<'_> {
    async fn shard(
        &self,
        shard: u16,
        settings: &Settings,
        warnings: &mut Vec<Warning>,
    ) -> Result<String, String> {
        let mut follow = None;
        let mut failure = String::from("no server takes it");
        for attempt in 0..ASKED_MAX.max(settings.deployment.addresses().len()) {
            let address = match follow.take() {
                Some(followed) => Ok(followed),
                None => self.connector.locate(None, attempt).await.map(|address| (address, false)),
            };
            let asked = match address {
                Ok((address, asking)) => self
                    .ask(shard, (&address, asking), settings, warnings)
                    .await
                    .map_err(|error| (error, Some(address))),
                Err(error) => Err((error, None)),
            };
            match asked {
                Ok(found) => return Ok(found),
                Err((error, asked)) => {
                    let (fault, consequence) = consequence(&error);
                    failure = format!("{error}; {}", fault.advice());
                    if let Consequence::Follow { address, asking } = consequence {
                        follow = Some((address.near(asked.as_ref()), asking));
                    } else if fault != Fault::Io && fault != Fault::Timeout {
                        break;
                    }
                }
            }
        }
        Err(failure)
    }

    async fn ask(
        &self,
        shard: u16,
        (address, asking): (&Address, bool),
        settings: &Settings,
        warnings: &mut Vec<Warning>,
    ) -> redis::RedisResult<String> {
        let connection = self.connector.connect(address).await?;
        let mut open = Open { connection, asking };
        let call = Call {
            node: self.node,
            elapsed_us: None,
            since: Since::default(),
            push: false,
            leave: true,
            reports: vec![NOBODYS],
        };
        let began = self.clock.now();
        let answer = open.ask(self.script.load_and_call(shard, &call)).await?;
        let took = self.clock.now().since(began);
        self.listen(shard, address).await?;
        let nodes = match self.script.read(&answer, call.reports.len()) {
            Ok(reply) => reply.nodes,
            Err(_) => return Err((redis::ErrorKind::Parse, "its answer is not one of ours").into()),
        };
        let about = match Survey::of(&mut open.connection).await {
            Ok(survey) => {
                warnings.extend(survey.warnings(&settings.deployment));
                described(&survey)
            }
            Err(_) => "it does not say what it is (give +info)".to_owned(),
        };
        Ok(format!("{address} answers in {} ({nodes} nodes live); {about}", in_ms(took)))
    }
}

impl Trial<'_> {
    /// Listens where the nodes publish.
    async fn listen(&self, shard: u16, address: &Address) -> redis::RedisResult<()> {
        let mut connection = self.connector.connect_to_hear(address, |_| {}).await?;
        let mut subscribe = redis::cmd(self.script.subscribe());
        subscribe.arg(self.script.channel(shard)).query_async(&mut connection).await
    }
}

/// Of a key that no limit has, and of which nothing is spent: the store forgets it after ten seconds.
const NOBODYS: Report = Report {
    key: StoreKey { limit: 0, id: [0, 0] },
    rate: 1e6,
    cap: 8_000_000,
    boot: 1,
    spent: 0,
    charged: 0,
    level: 8_000_000,
    local: false,
};

fn described(survey: &Survey) -> String {
    let Survey { version, role, memory_used, memory_max, eviction, .. } = survey;
    let most = match memory_max {
        0 => "no maxmemory".to_owned(),
        most => format!("of {} MiB at most, {eviction}", most >> 20),
    };
    format!("version {version}, {role}, {} MiB used, {most}", memory_used >> 20)
}

fn in_ms(took: Duration) -> String {
    format!("{:.1} ms", took.as_secs_f64() * 1e3)
}

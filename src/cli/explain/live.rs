//! What is left in the buckets of the running node, asked of its admin interface.
//!
//! Only the values of keys leave this process, never the message.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use form_urlencoded::Serializer;
use serde_json::Value;
use ureq::Agent;

use crate::config::Config;
use crate::limits::{Bucket, Holder, LimitIx, Policy, Standing};
use crate::traffic::{MerchantId, TerminalId, Traffic};

const PATIENCE: Duration = Duration::from_secs(5);

/// The running node, if it is to be asked.
pub(super) struct Node<'a> {
    config: &'a Config,
    asked: bool,
    failure: Option<String>,
    /// How the keys of limits stand to the store, where the node leases its tokens.
    leases: Vec<(LimitIx, Value)>,
}

impl<'a> Node<'a> {
    pub(super) const fn new(config: &'a Config, asked: bool) -> Self {
        Self { config, asked, failure: None, leases: Vec::new() }
    }

    /// The leases that were told, or what was asked and not answered.
    pub(super) fn answered(self) -> Result<Vec<(LimitIx, Value)>, String> {
        self.failure.map_or(Ok(self.leases), Err)
    }

    /// Puts the node's levels in the place of full buckets.
    pub(super) fn correct(
        &mut self,
        policy: &Policy,
        traffic: &Traffic,
        standings: &mut [(LimitIx, Standing)],
    ) {
        if self.asked {
            self.failure = self.fill_in(policy, traffic, standings).err();
        }
    }

    fn fill_in(
        &mut self,
        policy: &Policy,
        traffic: &Traffic,
        standings: &mut [(LimitIx, Standing)],
    ) -> Result<(), String> {
        let admin = self.config.admin.ok_or("the configuration turns the admin interface off")?;
        let query = query(policy, traffic)?;
        for (limit, standing) in standings {
            let rule = policy.limits().get(usize::from(limit.0));
            if let (Standing::Applies(bucket), Some(rule)) = (standing, rule) {
                let answer = ask(admin, &format!("limit={}&{query}", rule.name))?;
                if !is_of(&answer, bucket) {
                    return Err(other_limits(admin));
                }
                bucket.level = left(&answer)?;
                for (name, beside) in [("peak", &mut bucket.peak), ("floor", &mut bucket.floor)] {
                    if let Some(beside) = beside {
                        beside.level = left(answer.get(name).unwrap_or(&Value::Null))?;
                    }
                }
                let holder = answer.get("held_by").and_then(Value::as_str);
                if let Some(lease @ Value::Object(_)) = answer.get("lease") {
                    self.leases.push((*limit, lease.clone()));
                }
                bucket.holder = Holder::ALL
                    .into_iter()
                    .find(|known| Some(known.name()) == holder)
                    .unwrap_or(bucket.holder);
            }
        }
        Ok(())
    }
}

/// Whether the node's bucket is the one that the file gives the message.
fn is_of(answer: &Value, bucket: &Bucket) -> bool {
    let near = |name, here: f64| {
        number(answer, name).is_some_and(|there| (there - here).abs() <= here * 1e-9)
    };
    answer.get("key").and_then(Value::as_str) == Some(bucket.key.as_str())
        && near("burst_tokens", bucket.burst.micro() as f64 / 1e6)
        && near("rate_per_second", bucket.rate.pico_per_second() as f64 / 1e12)
}

fn number(answer: &Value, name: &str) -> Option<f64> {
    answer.get(name).and_then(Value::as_f64)
}

/// Micro-tokens that a bucket has left.
fn left(bucket: &Value) -> Result<i64, String> {
    let level = number(bucket, "remaining_tokens").ok_or("the node does not say what is left")?;
    Ok((level * 1e6).round() as i64)
}

fn other_limits(admin: SocketAddr) -> String {
    format!("the node at {admin} runs with other limits than this file has")
}

/// The values of a message, as `/status` takes them.
fn query(policy: &Policy, traffic: &Traffic) -> Result<String, String> {
    let mut query = Serializer::new(String::new());
    let mut acquirer = None;
    if let Some(bin) = traffic.bin {
        query.append_pair("bin", &format!("{:08}", bin.number()));
    }
    if let Some(merchant) = traffic.merchant.as_ref().map(MerchantId::name) {
        let (of, name) = parted(merchant)?;
        acquirer = Some(of);
        query.append_pair("merchant", name);
    }
    if let Some(terminal) = traffic.terminal.as_ref().map(TerminalId::name) {
        let (of, name) = parted(terminal)?;
        acquirer = Some(of);
        query.append_pair("terminal", name);
    }
    if let Some(acquirer) = acquirer {
        query.append_pair("acquirer", acquirer);
    }
    if let Some(mcc) = traffic.mcc {
        query.append_pair("mcc", &mcc.to_string());
    }
    query.append_pair("operation", traffic.operation.name());
    if let Some(link) = policy.links().get(usize::from(traffic.link.0)) {
        query.append_pair("link", link);
    }
    Ok(query.finish())
}

/// Acquirer and name.
fn parted(name: &[u8]) -> Result<(&str, &str), String> {
    let text = std::str::from_utf8(name).ok().and_then(|text| text.split_once(':'));
    text.ok_or_else(|| {
        "a merchant or terminal whose name is not text cannot be asked for".to_owned()
    })
}

fn ask(admin: SocketAddr, query: &str) -> Result<Value, String> {
    let failed = |error: &dyn std::fmt::Display| {
        format!("the admin interface at {admin} does not answer: {error}")
    };
    let agent: Agent = Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
    let url = format!("http://{}/status?{query}", reachable(admin));
    let mut response = agent.get(url).call().map_err(|error| match error {
        ureq::Error::StatusCode(400) => other_limits(admin),
        error => failed(&error),
    })?;
    let body = response.body_mut().read_to_string().map_err(|error| failed(&error))?;
    serde_json::from_str(&body).map_err(|error| failed(&error))
}

/// Where an address that stands for every address of this machine is reached.
fn reachable(mut admin: SocketAddr) -> SocketAddr {
    match admin.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => admin.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => admin.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    admin
}

//! What a sound file may still not have meant.

use std::sync::Arc;
use std::time::Duration;

use super::answers::STAN;
use super::{Config, HostDown, Link};
use crate::gate::{LocalAnswers, Malformed};
use crate::iso8583::{Dialect, LocalCode, can_say};
use crate::limits::rule::{Amount, Mode, Rule};
use crate::wire::Framing;

/// Card networks give an issuer about so long, measured at their own end.
const NETWORK_WINDOW: Duration = Duration::from_secs(2);

/// Fewer bytes than this cut off ordinary messages.
const FRAME_BYTES_USUAL: usize = 512;

impl Config {
    /// What is allowed and most likely not meant, one sentence each; none of it keeps tollgate from
    /// starting.
    pub fn warnings(&self) -> Vec<String> {
        let enforces = self.limits.iter().any(|rule| rule.mode == Mode::Enforce);
        let unused = self.upstreams_unused.iter().map(|name| {
            format!("upstream {name}: no link uses it; remove it, or name it in a link's upstream")
        });
        let idle = self.dialects.iter().filter(|(_, dialect)| {
            !self.links.iter().any(|link| Arc::ptr_eq(&link.dialect, dialect))
        });
        let idle = idle.map(|(name, _)| {
            format!("dialect {name}: no link uses it; remove it, or name it in a link's dialect")
        });
        let unused_redis = self.quota.unused_redis.then(|| {
            "quota.redis: not used, as the store is embedded; write store = \"redis\"".to_owned()
        });
        unused
            .chain(idle)
            .chain(unused_redis)
            .chain(self.links.iter().flat_map(|link| of_link(link, enforces)))
            .chain(self.limits.iter().flat_map(of_limit))
            .collect()
    }
}

fn of_link(link: &Link, enforces: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: &str| warnings.push(format!("link {}: {text}", link.name));
    let silent = link.gate.local_answers == LocalAnswers::Never;
    if silent && enforces {
        warn("local_answers = \"never\" limits nothing: what may not be answered is not refused");
    }
    if silent && link.host_down == HostDown::Answer {
        warn(
            "with local_answers = \"never\" requests get no answer while the host is down; \
             host_down = \"close\" would show the network that the line is down",
        );
    }
    if silent && link.gate.malformed == Malformed::Answer {
        warn("with local_answers = \"never\" malformed = \"answer\" answers nothing");
    }
    if !silent && !can_be_answered_in(&link.dialect) {
        warn(
            "its dialect has no field 11, or no field 39 that holds a response code: no request is \
             answered here, so that limits refuse nothing",
        );
    }
    let etx = [link.session.framing, link.upstream.framing].contains(&Framing::Etx);
    if etx && !(link.dialect.is_text() && link.header.is_text()) {
        warn(
            "etx framing ends a frame at the byte 0x03, which its dialect or header may hold: such a \
             message is cut in two, or cannot be sent",
        );
    }
    if link.session.frame_bytes_max < FRAME_BYTES_USUAL {
        warn("frame_bytes_max is below 512 bytes, which many a message with chip data exceeds");
    }
    if link.exchange.deadline > NETWORK_WINDOW {
        warn("deadline is above 2s, the usual window of a network: answers would come too late");
    }
    if link.exchange.match_fields.is_empty() {
        warn("match = [] knows answers by field 11 alone, which terminals share");
    }
    if link.listener.allow.iter().any(|network| network.prefix_len() == 0) {
        warn("allow lets every address of the internet connect");
    }
    warnings
}

/// Whether there is a version in which a local answer can be written and recognised.
fn can_be_answered_in(dialect: &Dialect) -> bool {
    let says = |version| can_say(dialect, version, LocalCode::IssuerInoperative) == Some(true);
    dialect.field(STAN).is_some() && (0..=2).any(says)
}

fn of_limit(rule: &Rule) -> Vec<String> {
    let promised = (rule.floor.is_some() && !rule.per.is_nothing()).then(|| {
        format!(
            "limit {}: its floor is for every key that turns up, also for invented ones; give it to \
             keys that are named in [[limit.key]]",
            rule.name
        )
    });
    short_bursts(rule).into_iter().chain(promised).collect()
}

/// Says whose bursts are emptied at once.
fn short_bursts(rule: &Rule) -> Option<String> {
    let is_short = |amount: Amount, peak: Option<Amount>| short(amount) || peak.is_some_and(short);
    let own = is_short(rule.amount(), rule.peak);
    let keys = rule.keys.iter().filter(|key| is_short(key.amount(), key.peak)).count();
    let named = match keys {
        0 => String::new(),
        1 => "1 named key".to_owned(),
        _ => format!("{keys} named keys"),
    };
    let whose = match (own, keys) {
        (false, 0) => return None,
        (true, 0) => "burst".to_owned(),
        (true, _) => format!("burst, and that of {named},"),
        (false, _) => format!("the burst of {named}"),
    };
    Some(format!(
        "limit {}: {whose} is below 0.1 s of its rate, so that traffic which comes in clumps is \
         refused at a fraction of the rate",
        rule.name
    ))
}

/// Whether a bucket is emptied by a tenth of a second at its rate.
fn short(Amount { rate, burst }: Amount) -> bool {
    let burst_pico = i128::from(burst.micro()) * 1_000_000;
    burst_pico * 10 < i128::from(rate.pico_per_second())
}

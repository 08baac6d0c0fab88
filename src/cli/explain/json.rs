//! An explanation as one JSON object, for scripts.

use serde_json::{Value, json};

use super::Case;
use crate::admin::beside;
use crate::exchange::{Explained, Fate, Request};
use crate::gate::Silence;
use crate::limits::{Rule, Standing};

/// The whole object.
pub(super) fn page(case: &Case<'_>) -> Value {
    let link = case.link.name.as_str();
    match &case.explained {
        Explained::Unreadable(unread) => {
            json!({ "link": link, "unreadable": unread.name(), "outcome": "forward" })
        }
        Explained::Rejected(mti, _) => {
            json!({ "link": link, "mti": mti.to_string(), "rejected": true, "outcome": "forward" })
        }
        Explained::Answer(mti) => {
            json!({ "link": link, "mti": mti.to_string(), "answer": true, "outcome": "forward" })
        }
        Explained::Request(request) => of_request(case, request),
    }
}

fn of_request(case: &Case<'_>, request: &Request) -> Value {
    let traffic = &request.gate.classified.traffic;
    let limits = case.policy.limits();
    let rule = |place: u8| limits.get(usize::from(place));
    let standings = request.gate.standings.iter();
    let standings: Vec<Value> = standings
        .filter_map(|(limit, standing)| {
            Some(of_limit(rule(limit.0)?, standing, case.lease(*limit)))
        })
        .collect();
    let (outcome, reason, by, code) = match request.fate {
        Fate::Forwarded(pass) => (pass.name(), None, request.gate.verdict.refused_by, None),
        Fate::Answered { reason, limit, code } => {
            ("reject", Some(reason.name()), limit, Some(code.in_1987()))
        }
        Fate::Closed => ("close", None, None, None),
    };
    json!({
        "link": case.link.name,
        "mti": request.mti.to_string(),
        "class": traffic.class.name(),
        "operation": traffic.operation.name(),
        "fault": request.fault.map(|fault| json!({
            "field": fault.field, "kind": fault.kind.name(),
        })),
        "answerable": request.gate.silence.is_none() && request.can_be_answered,
        "not_answered_because": not_answered_because(request),
        "live": case.live,
        "limits": standings,
        "outcome": outcome,
        "reason": reason,
        "limit": by.and_then(|limit| rule(limit.0)).map(|rule| rule.name.as_str()),
        "code_1987": code,
    })
}

const fn not_answered_because(request: &Request) -> Option<&'static str> {
    match request.gate.silence {
        Some(Silence::Type) => Some("type"),
        Some(Silence::Setting) => Some("local_answers"),
        Some(Silence::Mac) => Some("mac"),
        Some(Silence::Unmatchable) => Some("no_stan"),
        None if !request.can_be_answered => Some("dialect_or_framing"),
        None => None,
    }
}

fn of_limit(rule: &Rule, standing: &Standing, lease: Option<&Value>) -> Value {
    let not = |why: String| json!({ "limit": rule.name, "mode": rule.mode.name(), "applies": false, "why": why });
    match standing {
        Standing::Off => not("off".to_owned()),
        Standing::NotFor(filter) => not(format!("when.{}", filter.name())),
        Standing::Lacks(dimension) => not(format!("no {}", dimension.name())),
        Standing::Applies(bucket) => json!({
            "limit": rule.name,
            "mode": rule.mode.name(),
            "applies": true,
            "key": bucket.key,
            "held_by": bucket.holder.name(),
            "remaining_tokens": bucket.level as f64 / 1e6,
            "burst_tokens": bucket.burst.micro() as f64 / 1e6,
            "rate_per_second": bucket.rate.pico_per_second() as f64 / 1e12,
            "reserved_tokens": bucket.reserved as f64 / 1e6,
            "peak": bucket.peak.as_ref().map(beside),
            "floor": bucket.floor.as_ref().map(beside),
            "lease": lease,
            "passes": bucket.conforms() || bucket.has_token(),
        }),
    }
}

//! An explanation in words.

use std::fmt::Write;

use serde_json::Value;

use super::Case;
use crate::exchange::{Explained, Fate, Pass, Request, Unread};
use crate::gate::Silence;
use crate::limits::{Amount, Beside, Bucket, LimitIx, Mode, Rule, Standing};
use crate::traffic::Class;

/// The whole page.
pub(super) fn page(case: &Case<'_>) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut say = |name: &str, text: &str| lines.push((name.to_owned(), text.to_owned()));
    let framing = if case.framed { ", read behind its length" } else { "" };
    match &case.explained {
        Explained::Unreadable(unread) => {
            let missing = match unread {
                Unread::Header => "its header",
                Unread::Mti => "its message type",
            };
            say("message", &format!("cannot be read: {missing} is not there"));
            say("outcome", "forwarded to the host unchanged: what is not known is not limited");
        }
        Explained::Rejected(mti, _) => {
            say("message", &format!("{mti}{framing}, with a reject header"));
            say("outcome", "never limited: it is a message of this side that came back");
        }
        Explained::Answer(mti) => {
            say("message", &format!("{mti}{framing}, an answer"));
            say("outcome", "never limited: it goes to the connection that asked");
        }
        Explained::Request(request) => of_request(case, request, framing, say),
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    lines.iter().fold(String::new(), |mut page, (name, text)| {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "{name:width$}  {text}");
        page
    })
}

fn of_request(case: &Case<'_>, request: &Request, framing: &str, mut say: impl FnMut(&str, &str)) {
    let traffic = &request.gate.classified.traffic;
    say("message", &format!("{}{framing}", request.mti));
    say("class", &format!("{}: {}", traffic.class.name(), class_in_words(traffic.class)));
    say("operation", traffic.operation.name());
    if let Some(fault) = request.fault {
        say("fault", &format!("field {}: {}", fault.field, fault.kind.name()));
    }
    say("answer", &answer_in_words(request));
    if case.policy.limits().is_empty() {
        say("limits", "none");
    }
    for (limit, standing) in &request.gate.standings {
        if let Some(rule) = case.policy.limits().get(usize::from(limit.0)) {
            say(&format!("limit {}", rule.name), &limit_in_words(rule, standing, traffic.class));
            if let Some(lease) = case.lease(*limit) {
                say(&format!("lease {}", rule.name), &lease_in_words(lease));
            }
        }
    }
    say("outcome", &outcome_in_words(case, request));
    if request.gate.standings.iter().any(|(_, standing)| matches!(standing, Standing::Applies(_))) {
        say(
            "buckets",
            if case.live {
                "as the running node has them at this moment"
            } else {
                "full, as after a start; --live asks the running node"
            },
        );
    }
}

const fn class_in_words(class: Class) -> &'static str {
    match class {
        Class::Protected => "never refused, but charged",
        Class::Critical => "refused last",
        Class::Standard => "an ordinary request",
        Class::Sheddable => "refused first",
    }
}

fn answer_in_words(request: &Request) -> String {
    let not = |why: &str| format!("not by tollgate: {why}");
    match request.gate.silence {
        Some(Silence::Type) => not("only requests (0100, 0200 and their like) are answered here"),
        Some(Silence::Setting) => not("local_answers = \"never\""),
        Some(Silence::Mac) => not("it has a MAC, and its answer would have to have one"),
        Some(Silence::Unmatchable) => not("it breaks before field 11, by which answers are known"),
        None if !request.can_be_answered => {
            not("the dialect or the framing cannot hold the answer")
        }
        None => "may be given by tollgate".to_owned(),
    }
}

fn limit_in_words(rule: &Rule, standing: &Standing, class: Class) -> String {
    let bucket = match standing {
        Standing::Off => return "off".to_owned(),
        Standing::NotFor(filter) => {
            return format!("does not apply: its when.{} leaves this message out", filter.name());
        }
        Standing::Lacks(dimension) => {
            return format!("does not apply: the message has no {}", dimension.name());
        }
        Standing::Applies(bucket) => bucket,
    };
    let amount = Amount { rate: bucket.rate, burst: bucket.burst };
    let mut text = format!(
        "{}, key {} ({}): {}",
        rule.mode.name(),
        bucket.key,
        bucket.holder.name(),
        level_in_words(bucket.level, amount, bucket.reserved),
    );
    // Writing to a String cannot fail.
    if let Some(Beside { level, amount, reserved }) = bucket.peak {
        let _ = write!(text, "; peak {}", level_in_words(level, amount, reserved));
    }
    if let Some(Beside { level, amount, .. }) = bucket.floor {
        let _ = write!(text, "; floor {}", level_in_words(level, amount, 0));
    }
    let _ = write!(text, ": {}", verdict_in_words(rule.mode, bucket, class));
    text
}

/// How a key stands to the store, as the node tells it.
fn lease_in_words(lease: &Value) -> String {
    let word = |name: &str| lease.get(name).and_then(Value::as_str).unwrap_or("unknown");
    let number = |name: &str| lease.get(name).and_then(Value::as_f64);
    let told = |name: &str| {
        number(name)
            .map_or("no limit".to_owned(), |number| format!("{}", (number * 1e3).round() / 1e3))
    };
    let nodes = told("nodes");
    if word("standing") == "new" && number("level_tokens").is_none() {
        return format!("not met by this node yet, one of {nodes}; mode {}", word("mode"));
    }
    format!(
        "{} {} s ago, mode {}: level {}, {} unreported of {} that may be (hold), share {} among \
         {nodes} nodes; the cluster admits {} tokens too many at most, and about {} at 20 times the rate",
        word("standing"),
        told("age_seconds"),
        word("mode"),
        told("level_tokens"),
        told("unreported_tokens"),
        told("hold_tokens"),
        told("share"),
        told("over_at_most_tokens"),
        told("over_usually_tokens"),
    )
}

fn level_in_words(level: i64, Amount { rate, burst }: Amount, reserved: i64) -> String {
    let kept = match reserved {
        0 => String::new(),
        _ => format!(" ({} of them kept for other classes)", tokens(reserved)),
    };
    let rate = rate.pico_per_second() as f64 / 1e12;
    format!("{} of {} tokens{kept}, {rate} a second", tokens(level), tokens(burst.micro()))
}

fn verdict_in_words(mode: Mode, bucket: &Bucket, class: Class) -> &'static str {
    match (class, bucket.has_token(), mode) {
        (Class::Critical | Class::Standard | Class::Sheddable, ..) if bucket.conforms() => {
            "keeps to its floor, would pass"
        }
        (Class::Protected, ..) if bucket.would_forgive() => "would be let off, deep in debt",
        (Class::Protected, ..) => "would be charged",
        (_, true, _) => "would pass",
        (_, false, Mode::Shadow) => "would refuse, if it were enforced",
        (_, false, _) => "would refuse",
    }
}

fn tokens(micro: i64) -> f64 {
    (micro as f64 / 1e3).round() / 1e3
}

fn outcome_in_words(case: &Case<'_>, request: &Request) -> String {
    let name = |limit: LimitIx| {
        let rule = case.policy.limits().get(usize::from(limit.0));
        rule.map_or("", |rule| rule.name.as_str())
    };
    match request.fate {
        Fate::Forwarded(Pass::Admitted) => "forwarded to the host unchanged".to_owned(),
        Fate::Forwarded(Pass::Protected | Pass::Unread) => {
            "forwarded to the host unchanged: it is never refused".to_owned()
        }
        Fate::Forwarded(Pass::Unenforceable) => {
            let limit = request.gate.verdict.refused_by.map_or("", name);
            format!(
                "forwarded to the host unchanged: limit {limit} would refuse it, but what may not \
                 be answered here is not refused"
            )
        }
        Fate::Answered { reason, limit, code } => {
            let by = limit.map_or(String::new(), |limit| format!(" {}", name(limit)));
            format!(
                "answered by tollgate with {} (1987 code), reason {}{by}; the host never sees it",
                code.in_1987(),
                reason.name(),
            )
        }
        Fate::Closed => "dropped, and its session closed (malformed = \"close\")".to_owned(),
    }
}

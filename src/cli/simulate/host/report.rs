//! What a host has seen, in text for people and in JSON for scripts.

use std::fmt::{Display, Write};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::peers::HostTally;

/// The last that it says.
pub(super) struct Report<'a> {
    /// Where it listened.
    pub(super) address: SocketAddr,
    /// How long.
    pub(super) ran: Duration,
    /// What it counted.
    pub(super) tally: &'a HostTally,
}

/// The first that it says.
pub(super) fn listening(address: SocketAddr, json: bool) -> String {
    if json {
        return json!({ "event": "listening", "address": address.to_string() }).to_string();
    }
    format!("simulated host: listening on {address}")
}

/// The last that an echo says.
pub(super) fn echoed(address: SocketAddr, ran: Duration, messages: u64, json: bool) -> String {
    let rate = rate(messages, ran);
    if json {
        let report = json!({
            "event": "report", "address": address.to_string(), "seconds": seconds(ran),
            "messages": messages, "rate": (rate * 10.0).round() / 10.0,
        });
        return report.to_string();
    }
    let ran = ran.as_secs_f64();
    format!("echo on {address}: {ran:.1} s, {messages} messages, {rate:.1} a second")
}

/// What it says meanwhile; `rate` is that since the last time.
pub(super) fn progress(ran: Duration, rate: f64, tally: &HostTally, json: bool) -> String {
    if json {
        return Value::Object(object("progress", ran, rate, tally)).to_string();
    }
    let phase = tally.phase.map(|phase| format!(", phase {phase}")).unwrap_or_default();
    let deaf = if tally.listening { "" } else { ", not listening" };
    format!(
        "{:>6.0} s: {} messages, {rate:.1} a second; {} answered, {} late, {} dropped; {} \
         connections open{phase}{deaf}",
        ran.as_secs_f64(),
        tally.messages(),
        answered(tally),
        tally.late,
        tally.dropped,
        tally.open,
    )
}

/// Messages a second.
pub(super) fn rate(messages: u64, during: Duration) -> f64 {
    /// Less is no time to count in.
    const SECONDS_MIN: f64 = 0.001;
    messages as f64 / during.as_secs_f64().max(SECONDS_MIN)
}

impl Report<'_> {
    pub(super) fn told(&self, json: bool) -> String {
        let rate = rate(self.tally.messages(), self.ran);
        if !json {
            return self.in_text(rate);
        }
        let mut report = object("report", self.ran, rate, self.tally);
        report.insert("address".to_owned(), self.address.to_string().into());
        report.insert("cpu_seconds".to_owned(), seconds(self.tally.cpu).into());
        Value::Object(report).to_string()
    }

    fn in_text(&self, rate: f64) -> String {
        let tally = self.tally;
        let mut text = format!(
            "simulated host on {}: {:.1} s, {} messages, {rate:.1} a second, {:.2} s of CPU",
            self.address,
            self.ran.as_secs_f64(),
            tally.messages(),
            tally.cpu.as_secs_f64(),
        );
        let types = tally.received.iter().map(|(mti, count)| (format!("{mti:04}"), count));
        let line = |text: &mut String, title: &str, what: String| {
            // A string takes whatever is written to it.
            let _ = write!(text, "\n  {title:<12} {what}");
        };
        line(&mut text, "received", listed(types));
        line(&mut text, "answered", listed(tally.answers.iter()));
        line(
            &mut text,
            "of these",
            format!(
                "{} late; not answered: {} dropped, {} unsent, {} not answerable",
                tally.late, tally.dropped, tally.unsent, tally.not_answerable
            ),
        );
        line(
            &mut text,
            "unread",
            format!(
                "{} frames without a message type, {} messages not to their end, {} keepalives",
                tally.unreadable, tally.faulty, tally.keepalives
            ),
        );
        line(
            &mut text,
            "connections",
            format!(
                "{} accepted, {} closed by the script, {} by a frame that cannot be cut, {} \
                 refused, {} open at the end",
                tally.accepted, tally.closed, tally.broken, tally.refused, tally.open
            ),
        );
        text
    }
}

fn listed(counts: impl Iterator<Item = (impl Display, impl Display)>) -> String {
    let counts: Vec<String> = counts.map(|(name, count)| format!("{name}: {count}")).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
}

fn answered(tally: &HostTally) -> u64 {
    tally.answers.values().sum()
}

fn seconds(duration: Duration) -> f64 {
    // To the millisecond: more only makes the line longer.
    (duration.as_secs_f64() * 1_000.0).round() / 1_000.0
}

fn object(event: &str, ran: Duration, rate: f64, tally: &HostTally) -> Map<String, Value> {
    let received = tally.received.iter().map(|(mti, count)| (format!("{mti:04}"), (*count).into()));
    let answers = tally.answers.iter().map(|(code, count)| (code.clone(), (*count).into()));
    let counts = [
        ("messages", tally.messages()),
        ("answered", answered(tally)),
        ("late", tally.late),
        ("dropped", tally.dropped),
        ("unsent", tally.unsent),
        ("not_answerable", tally.not_answerable),
        ("unreadable", tally.unreadable),
        ("faulty", tally.faulty),
        ("keepalives", tally.keepalives),
        ("accepted", tally.accepted),
        ("closed", tally.closed),
        ("broken", tally.broken),
        ("refused", tally.refused),
        ("open", tally.open),
    ];
    let mut object = Map::new();
    object.insert("event".to_owned(), event.into());
    object.insert("seconds".to_owned(), seconds(ran).into());
    object.insert("rate".to_owned(), ((rate * 10.0).round() / 10.0).into());
    object.insert("received".to_owned(), Value::Object(received.collect()));
    object.insert("answers".to_owned(), Value::Object(answers.collect()));
    object.extend(counts.map(|(name, count)| (name.to_owned(), count.into())));
    object.insert("phase".to_owned(), tally.phase.into());
    object.insert("listening".to_owned(), tally.listening.into());
    object
}

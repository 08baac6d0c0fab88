//! What became of the messages: in text for people, in JSON for scripts.
//!
//! The names in JSON stay. Times are microseconds and say so in their names.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Value, json};

use super::Arguments;
use crate::peers::{KindTally, Latencies, Tally};

/// Busier than this, the network is what was measured, and not what it was sent to.
const SATURATED: f64 = 0.9;
/// Kept waiting for a processor longer than this, it measures the machine's other load too.
const CROWDED: f64 = 0.1;
const SHARES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// The report of a run.
pub(super) struct Report<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) tally: &'a Tally,
}

impl Report<'_> {
    fn sum(&self) -> KindTally {
        self.tally.sum(|_| true)
    }

    /// How long was counted; less than was asked for when somebody ended it.
    fn seconds(&self) -> f64 {
        self.tally.usage.wall.as_secs_f64()
    }

    fn per_second(&self, count: u64) -> f64 {
        if self.seconds() > 0.0 { count as f64 / self.seconds() } else { 0.0 }
    }

    fn nanos_per_message(&self) -> f64 {
        let nanos = self.tally.usage.cpu.as_nanos() as f64;
        nanos / (self.sum().sent.max(1) as f64)
    }

    fn is_saturated(&self) -> bool {
        self.tally.usage.share() > SATURATED
    }

    /// One line.
    pub(super) fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { arguments, tally, .. } = self;
        let sum = self.sum();
        let value = json!({
            "connections": arguments.connections,
            "window": arguments.rate.is_none().then_some(arguments.window),
            "rate": arguments.rate,
            "seconds": self.seconds(),
            "sent": sum.sent,
            "answered": sum.answered(),
            "approved": sum.approved,
            "declined": sum.declined,
            "refused": sum.refused,
            "overdue": sum.overdue,
            "other": sum.other,
            "unanswered": sum.unanswered(),
            "unmatched": tally.unmatched,
            "unsent": tally.unsent,
            "retries": tally.retries,
            "repeats": tally.repeats,
            "closed_connections": tally.closed,
            "messages_per_second": self.per_second(sum.answered()),
            "host_answers": latencies(&tally.host),
            "refusals": latencies(&tally.refused),
            "overdue_answers": latencies(&tally.overdue),
            "cpu_utilisation": tally.usage.share(),
            "cpu_wait_share": tally.usage.waiting_share(),
            "cpu_ns_per_message": self.nanos_per_message(),
            "saturated": self.is_saturated(),
        });
        writeln!(out, "{value}")
    }

    /// A screen.
    pub(super) fn text(&self, out: &mut impl Write) -> io::Result<()> {
        let Arguments { connect, rate, window, connections, .. } = self.arguments;
        let over = match connections {
            1 => "1 connection".to_owned(),
            several => format!("{several} connections"),
        };
        let pace = match rate {
            Some(rate) => format!("{rate} messages/s over {over}"),
            None => format!("{window} in flight on each of {over}"),
        };
        writeln!(out, "{connect} for {:.1} s, {pace}\n", self.seconds())?;
        self.counts(out)?;
        writeln!(
            out,
            "\n  {:<22}{:>12.0}\n",
            "messages/s",
            self.per_second(self.sum().answered())
        )?;
        self.latencies(out)?;
        self.itself(out)
    }

    fn counts(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { tally, .. } = self;
        let sum = self.sum();
        for (name, count, what) in [
            ("sent", sum.sent, ""),
            ("answered", sum.answered(), ""),
            ("  approved", sum.approved, ""),
            ("  declined", sum.declined, "by another code than 91"),
            ("  refused", sum.refused, "91 at once"),
            ("  overdue", sum.overdue, "91 after a wait"),
            ("  other", sum.other, "without a code"),
            ("unanswered", sum.unanswered(), ""),
            ("unmatched", tally.unmatched, "answers that fit nothing that was awaited"),
            ("unsent", tally.unsent, "met a closed connection, or came too late"),
            ("retries", tally.retries, "sent again with a new number after a 91"),
            ("repeats", tally.repeats, "sent again as they were, without an answer"),
            ("closed connections", tally.closed, "by the other side"),
        ] {
            // What needs words is no part of an ordinary run.
            if count > 0 || what.is_empty() {
                writeln!(out, "{}", format!("  {name:<22}{count:>12}  {what}").trim_end())?;
            }
        }
        Ok(())
    }

    fn latencies(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "  {:<22}{:>12}", "latency", "count")?;
        SHARES.iter().try_for_each(|(name, _)| write!(out, "{name:>10}"))?;
        writeln!(out)?;
        for (name, latencies) in [
            ("host's answers", &self.tally.host),
            ("refused at once", &self.tally.refused),
            ("overdue", &self.tally.overdue),
        ] {
            if latencies.count() > 0 {
                write!(out, "  {name:<22}{:>12}", latencies.count())?;
                for (_, share) in SHARES {
                    write!(out, "{:>10}", shown(latencies.quantile(share).unwrap_or_default()))?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }

    fn itself(&self, out: &mut impl Write) -> io::Result<()> {
        let usage = self.tally.usage;
        let (busy, waiting) = (usage.share() * 100.0, usage.waiting_share());
        let nanos = self.nanos_per_message();
        writeln!(
            out,
            "\n  this network itself: busy {busy:.0} % of the time, {nanos:.0} ns of CPU a message"
        )?;
        if self.is_saturated() {
            writeln!(
                out,
                "\n  WARNING: the network was saturated (busy {busy:.0} %). What is measured here is \
                 its own limit:\n  send from several processes, or less."
            )?;
        }
        if waiting > CROWDED {
            writeln!(
                out,
                "\n  NOTE: for {:.0} % of the time it was ready to work and others had the processors; \
                 that is in\n  the latencies.",
                waiting * 100.0
            )?;
        }
        Ok(())
    }
}

fn latencies(latencies: &Latencies) -> Value {
    let at = |share| latencies.quantile(share).map(micros);
    json!({
        "count": latencies.count(),
        "p50_us": at(0.5),
        "p90_us": at(0.9),
        "p99_us": at(0.99),
        "p99_9_us": at(0.999),
        "max_us": at(1.0),
    })
}

fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

/// In three digits or so, with the unit that suits it.
fn shown(duration: Duration) -> String {
    match micros(duration) {
        us @ ..10.0 => format!("{us:.1} us"),
        us @ ..1_000.0 => format!("{us:.0} us"),
        us @ ..100_000.0 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.0} ms", us / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Usage;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn told(busy_ms: u64, waiting_ms: u64) -> (String, Value) {
        let line = Line::parse_from(["network", "--connect", "127.0.0.1:9"]);
        let [wall, cpu, waiting] = [1_000, busy_ms, waiting_ms].map(Duration::from_millis);
        let tally = Tally { usage: Usage { wall, cpu, waiting }, ..Tally::default() };
        let report = Report { arguments: &line.arguments, tally: &tally };
        let (mut text, mut json) = (Vec::new(), Vec::new());
        report.text(&mut text).unwrap();
        report.json(&mut json).unwrap();
        (String::from_utf8(text).unwrap(), serde_json::from_slice(&json).unwrap())
    }

    #[test]
    fn a_network_that_was_the_limit_itself_says_so() {
        let (text, json) = told(950, 20);
        assert!(text.contains("WARNING: the network was saturated (busy 95 %)"), "{text}");
        assert!(!text.contains("NOTE"), "{text}");
        assert_eq!((&json["saturated"], &json["cpu_utilisation"]), (&json!(true), &json!(0.95)));
        let (text, json) = told(500, 300);
        assert!(!text.contains("WARNING") && text.contains("NOTE: for 30 % of the time"), "{text}");
        assert_eq!((&json["saturated"], &json["cpu_wait_share"]), (&json!(false), &json!(0.3)));
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }

    #[test]
    fn a_run_without_messages_has_a_report() {
        let (text, json) = told(0, 0);
        assert!(text.contains("sent") && json["host_answers"]["p99_us"].is_null(), "{text}");
    }
}

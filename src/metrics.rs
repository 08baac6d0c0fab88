//! The one table of metrics, and their rendering from what the workers publish.
//!
//! Workers write words ([`LinkCounters`]); only a scrape gives them names and labels. No label is
//! unbounded: a BIN, merchant, terminal, STAN or address is never one.

mod leases;
mod table;

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use tracing_appender::non_blocking::ErrorCounter;

use crate::clock::Clock;
use crate::count::{Histogram, Word};
use crate::exchange::{Pass, Side, Stray, Unread};
use crate::gate::Codes;
use crate::iso8583::{FaultKind, MtiPart};
use crate::limits::{LimitIx, Policy};
use crate::reason::Reason;
use crate::traffic::Class;
use crate::worker::{BUDGET_BOUNDS, Budget, Closed, LinkCounters, Source};
pub use leases::Leasing;
use table::*;
pub use table::{Kind, Metric, TABLE};

/// One link as it is published.
#[derive(Debug)]
pub struct PublishedLink {
    /// The link's name.
    pub name: String,
    /// Its upstream's name.
    pub upstream: String,
    /// Its codes, for the label `rc`.
    pub codes: Codes,
    /// What it counts.
    pub counters: Arc<LinkCounters>,
}

/// All that is published.
#[derive(Debug)]
pub struct Published {
    /// The node's name.
    pub node: String,
    /// The links, in the order of the configuration.
    pub links: Vec<PublishedLink>,
    /// The limits.
    pub policy: Arc<Policy>,
    /// The process's clock, which began with it.
    pub clock: Clock,
    /// Where the limits' tokens come from; `None` when nothing is leased.
    pub leasing: Option<Leasing>,
    /// Counts log lines that were lost, once there is a log.
    pub lost_lines: OnceLock<ErrorCounter>,
}

impl Published {
    /// Publishes how many log lines were lost. The first counter stays.
    pub fn counts_lost_lines(&self, counter: ErrorCounter) {
        self.lost_lines.get_or_init(|| counter);
    }

    /// Everything in the text format of Prometheus.
    pub fn render(&self, ready: bool) -> String {
        let recorder = PrometheusBuilder::new().build_recorder();
        let page = Page { recorder: &recorder };
        for metric in TABLE {
            page.describe(metric);
        }
        page.set(&READY, &[], u64::from(ready));
        let lost_lines = self.lost_lines.get().map_or(0, ErrorCounter::dropped_lines);
        page.set(&LOST_LINES, &[], lost_lines as u64);
        page.set(&BUILD_INFO, &[env!("CARGO_PKG_VERSION"), &self.node], 1);
        for (limit, info) in (0..).map(LimitIx).zip(self.policy.limits()) {
            page.set(&LIMIT_KEYS, &[&info.name], self.policy.keys_in_use(limit) as u64);
            page.set(&LIMIT_OVERFLOWS, &[&info.name], self.policy.overflowed(limit));
        }
        if let Some(leasing) = &self.leasing {
            page.leases(leasing, &self.policy, self.clock.now());
            page.store(leasing.redis.as_deref());
        }
        for link in &self.links {
            page.messages(link);
            page.limits(link, &self.policy);
            page.strays(link);
            page.forms(link);
            page.states(link);
        }
        let mut text = recorder.handle().render();
        self.histograms(&mut text);
        text
    }

    /// What the messages of all links left in the buckets of each limit.
    fn budgets(&self, text: &mut String) {
        head(text, &BUDGET);
        let name = BUDGET.name;
        for (place, limit) in self.policy.limits().iter().enumerate() {
            let budgets = self.links.iter().filter_map(|link| link.counters.budgets.get(place));
            let read = budgets.map(Budget::read);
            let (counts, sum) =
                read.fold(([0; BUDGET_BOUNDS.len()], 0.0), |(all, sum), (own, more)| {
                    let mut all = all;
                    all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
                    (all, sum + more)
                });
            let labels = format!("limit=\"{}\"", limit.name);
            let mut total = 0;
            for (le, count) in BUDGET_BOUNDS.iter().zip(counts) {
                total += count;
                let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{le}\"}} {total}");
            }
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {total}");
            let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}");
            let _ = writeln!(text, "{name}_count{{{labels}}} {total}");
        }
    }

    /// The exporter's own histograms keep every sample until they are read, and so fixed buckets
    /// are kept by the workers and written behind its page.
    fn histograms(&self, text: &mut String) {
        head(text, &DECISION_SECONDS);
        for link in &self.links {
            let labels = format!("link=\"{}\"", link.name);
            histogram(text, DECISION_SECONDS.name, &labels, &link.counters.decisions);
        }
        self.budgets(text);
        if let Some(redis) = self.leasing.as_ref().and_then(|leasing| leasing.redis.as_ref()) {
            head(text, &STORE_SECONDS);
            histogram(text, STORE_SECONDS.name, "", &redis.seconds);
        }
        head(text, &RESPONSE_SECONDS);
        for link in &self.links {
            for (source, name) in [(Source::Host, "host"), (Source::Proxy, "proxy")] {
                let labels = format!("link=\"{}\",source=\"{name}\"", link.name);
                if let Some(responses) = link.counters.responses.get(source as usize) {
                    histogram(text, RESPONSE_SECONDS.name, &labels, responses);
                }
            }
        }
    }
}

/// One scrape under way.
struct Page<'a> {
    recorder: &'a PrometheusRecorder,
}

impl Page<'_> {
    fn describe(&self, metric: &Metric) {
        let (name, help) = (KeyName::from(metric.name), SharedString::from(metric.help));
        let no_unit: Option<Unit> = None;
        match metric.kind {
            Kind::Counter => self.recorder.describe_counter(name, no_unit, help),
            Kind::Gauge => self.recorder.describe_gauge(name, no_unit, help),
            Kind::Histogram => {}
        }
    }

    fn set(&self, metric: &Metric, values: &[&str], value: u64) {
        match metric.kind {
            Kind::Counter => {
                let (key, metadata) = series(metric, values);
                self.recorder.register_counter(&key, &metadata).absolute(value);
            }
            Kind::Gauge | Kind::Histogram => self.set_gauge(metric, values, value as f64),
        }
    }

    fn set_gauge(&self, metric: &Metric, values: &[&str], value: f64) {
        let (key, metadata) = series(metric, values);
        self.recorder.register_gauge(&key, &metadata).set(value);
    }

    fn messages(&self, link: &PublishedLink) {
        let PublishedLink { name, codes, counters, .. } = link;
        for class in Class::ALL {
            let at = class as usize;
            let forwarded = word_at(&counters.forwarded, at);
            let answered = word_at(&counters.answered, at);
            let (mut requests, mut answers) = (0, 0);
            for (pass, word) in Pass::ALL.into_iter().zip(forwarded) {
                requests += word.get();
                self.set(&DECISIONS, &[name, class.name(), pass.name()], word.get());
            }
            let mut rejected = 0;
            for (reason, word) in Reason::ALL.into_iter().zip(answered) {
                answers += word.get();
                if reason.forwarded() {
                    let labels = [name, class.name(), reason.name()];
                    self.set(&DEADLINE_ANSWERS, &labels, word.get());
                } else {
                    rejected += word.get();
                    let rc = codes.get(reason).in_1987();
                    self.set(&REJECTS, &[name, class.name(), reason.name(), rc], word.get());
                }
            }
            self.set(&DECISIONS, &[name, class.name(), "reject"], rejected);
            let unsent = counters.unsent.get(at).map_or(0, Word::get);
            let uncarried = counters.uncarried.get(at).map_or(0, Word::get);
            let delivered = counters.delivered.get(at).map_or(0, Word::get);
            let unanswered = counters.unanswered.get(at).map_or(0, Word::get);
            requests += rejected + unsent + uncarried;
            answers += delivered;
            self.set(&MESSAGES, &[name, class.name(), "request"], requests);
            self.set(&MESSAGES, &[name, class.name(), "answer"], answers);
            self.set(&UNSENT, &[name, class.name()], unsent);
            self.set(&UNCARRIED, &[name, class.name()], uncarried);
            self.set(&UNANSWERED, &[name, class.name()], unanswered);
        }
    }

    fn limits(&self, link: &PublishedLink, policy: &Policy) {
        let PublishedLink { name, counters, .. } = link;
        let outcomes = [
            ("reject", &counters.refused_by),
            ("shadow_reject", &counters.shadowed_by),
            ("forgiven", &counters.forgiven_by),
        ];
        for (outcome, words) in outcomes {
            for (info, word) in policy.limits().iter().zip(words) {
                self.set(&LIMITS, &[name, &info.name, outcome], word.get());
            }
        }
    }

    fn strays(&self, link: &PublishedLink) {
        let PublishedLink { name, counters, .. } = link;
        for (stray, [other, approving]) in Stray::ALL.into_iter().zip(&counters.strays) {
            if stray == Stray::Late {
                self.set(&LATE, &[name, "decline"], other.get());
                self.set(&LATE, &[name, "approval"], approving.get());
            } else {
                self.set(&STRAYS, &[name, stray.name(), "false"], other.get());
                self.set(&STRAYS, &[name, stray.name(), "true"], approving.get());
            }
        }
        for (reason, word) in Reason::ALL.into_iter().zip(&counters.unheard) {
            self.set(&UNHEARD, &[name, reason.name()], word.get());
        }
        self.set(&HOST_MESSAGES, &[name, "request"], counters.host_originated.get());
        self.set(&HOST_MESSAGES, &[name, "answer"], counters.returned.get());
        self.set(&FORGOTTEN, &[name], counters.forgotten.get());
    }

    /// What is said of the form of messages.
    fn forms(&self, link: &PublishedLink) {
        let PublishedLink { name, counters, .. } = link;
        let faults = [&counters.faults, &counters.host_faults];
        for (side, faults) in Side::ALL.into_iter().zip(faults) {
            let (at, from) = (side as usize, side.name());
            for (kind, word) in FaultKind::ALL.into_iter().zip(faults) {
                self.set(&PARSE_ERRORS, &[name, from, kind.name()], word.get());
            }
            for (kind, word) in Unread::ALL.into_iter().zip(word_at(&counters.unreadable, at)) {
                self.set(&PARSE_ERRORS, &[name, from, kind.name()], word.get());
            }
            for (part, word) in MtiPart::ALL.into_iter().zip(word_at(&counters.unknown_types, at)) {
                self.set(&UNKNOWN_TYPES, &[name, from, part.name()], word.get());
            }
            if let (Some(rejected), Some(keepalives)) =
                (counters.rejected.get(at), counters.keepalives.get(at))
            {
                self.set(&REJECTED, &[name, from], rejected.get());
                self.set(&KEEPALIVES, &[name, from], keepalives.get());
            }
        }
        for (digits, numbers) in counters.cards.by_length() {
            self.set(&CARD_NUMBERS, &[name, digits, "passed"], numbers.passed.get());
            self.set(&CARD_NUMBERS, &[name, digits, "failed"], numbers.failed.get());
            self.set_gauge(&LUHN_FAILURES, &[name, digits], numbers.failing());
        }
    }

    fn states(&self, link: &PublishedLink) {
        let PublishedLink { name, upstream, counters, .. } = link;
        let up = counters.sessions.get() > 0;
        self.set(&LINK_STATE, &[name, "up"], u64::from(up));
        self.set(&LINK_STATE, &[name, "down"], u64::from(!up));
        self.set(&LINK_SOCKETS, &[name], counters.sessions.get());
        let connections = counters.connections_up.get();
        self.set(&UPSTREAM_UP, &[name, upstream], u64::from(connections > 0));
        self.set(&UPSTREAM_SOCKETS, &[name, upstream], connections);
        self.set(&RECONNECTS, &[name], counters.reconnects.get());
        self.set(&QUEUE_BYTES, &[name], counters.queued_bytes.get());
        for (kind, word) in ["request", "other"].into_iter().zip(&counters.in_flight) {
            self.set(&INFLIGHT, &[name, kind], word.get());
        }
        for (cause, word) in Closed::ALL.into_iter().zip(&counters.sessions_closed) {
            self.set(&SESSIONS_CLOSED, &[name, cause.name()], word.get());
        }
        let causes = ["not_allowed", "too_many"];
        for (cause, word) in causes.into_iter().zip(&counters.refused_connections) {
            self.set(&CONNECTIONS_REFUSED, &[name, cause], word.get());
        }
    }
}

fn series(metric: &Metric, values: &[&str]) -> (Key, Metadata<'static>) {
    debug_assert_eq!(metric.labels.len(), values.len(), "{}", metric.name);
    let labels = metric.labels.iter().zip(values);
    let labels: Vec<_> =
        labels.map(|(name, value)| Label::new(*name, (*value).to_owned())).collect();
    let metadata = Metadata::new(module_path!(), Level::INFO, None);
    (Key::from_parts(metric.name, labels), metadata)
}

fn word_at<T, const N: usize>(rows: &[[T; N]], at: usize) -> &[T] {
    rows.get(at).map_or(&[], |row| row.as_slice())
}

fn head(text: &mut String, metric: &Metric) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP {} {}", metric.name, metric.help);
    let _ = writeln!(text, "# TYPE {} histogram", metric.name);
}

fn histogram<const N: usize>(text: &mut String, name: &str, labels: &str, values: &Histogram<N>) {
    let (buckets, total) = values.cumulative();
    let comma = if labels.is_empty() { "" } else { "," };
    for (bound, up_to) in buckets {
        let le = bound.as_secs_f64();
        let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{le}\"}} {up_to}");
    }
    let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {total}");
    let braced = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let _ = writeln!(text, "{name}_sum{braced} {}", seconds(values.sum()));
    let _ = writeln!(text, "{name}_count{braced} {total}");
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

//! The live table: a line a second, of what that second brought.

use std::io::{self, Write};
use std::time::Duration;

use crate::count::Word;
use crate::peers::{Latencies, Tally};
use crate::reason::Reason;
use crate::worker::LinkCounters;

/// The reasons that have a column. The others are faults of tollgate's own and show in the end.
const REASONS: [Reason; 5] =
    [Reason::Limit, Reason::Overload, Reason::Unavailable, Reason::Lost, Reason::Deadline];
/// Lines between two headings.
const LINES: usize = 15;
/// Over the columns that belong together.
const GROUPS: &str = "                        ------ answered 91 by tollgate ------  host's answers    \
                      91 on the spot  decided within";
/// The columns: name, and width with the gap before it.
const COLUMNS: [(&str, usize); 14] = [
    ("time", 5),
    ("sent/s", 8),
    ("to host", 9),
    ("limit", 7),
    ("overload", 9),
    ("unavail.", 9),
    ("lost", 5),
    ("deadline", 9),
    ("p50", 8),
    ("p99", 8),
    ("p50", 10),
    ("p99", 8),
    ("p50", 9),
    ("p99", 7),
];

fn line(cells: [String; COLUMNS.len()], out: &mut impl Write) -> io::Result<()> {
    for (cell, (_, width)) in cells.iter().zip(COLUMNS) {
        write!(out, "{cell:>width$}")?;
    }
    writeln!(out)
}

/// The table, and what it showed last.
pub(super) struct Table {
    lines: usize,
    before: Totals,
}

/// What was counted up to some moment.
#[derive(Clone, Default)]
struct Totals {
    tally: Tally,
    forwarded: u64,
    answered: [u64; REASONS.len()],
}

impl Totals {
    fn of(tally: &Tally, counters: &LinkCounters) -> Self {
        Self {
            tally: tally.clone(),
            forwarded: forwarded(counters),
            answered: REASONS.map(|reason| answered(counters, reason)),
        }
    }
}

/// Messages that were passed on to the host.
pub(super) fn forwarded(counters: &LinkCounters) -> u64 {
    counters.forwarded.iter().flatten().map(Word::get).sum()
}

/// Requests that the proxy answered itself for this reason.
pub(super) fn answered(counters: &LinkCounters, reason: Reason) -> u64 {
    let by_class = counters.answered.iter().filter_map(|of_class| of_class.get(reason as usize));
    by_class.map(Word::get).sum()
}

impl Table {
    pub(super) fn new(tally: &Tally, counters: &LinkCounters) -> Self {
        Self { lines: 0, before: Totals::of(tally, counters) }
    }

    /// Prints the line of the second that ends at `time`.
    pub(super) fn row(
        &mut self,
        time: Duration,
        tally: &Tally,
        counters: &LinkCounters,
        out: &mut impl Write,
    ) -> io::Result<()> {
        if self.lines.is_multiple_of(LINES) {
            writeln!(out, "{GROUPS}")?;
            line(COLUMNS.map(|(name, _)| name.to_owned()), out)?;
        }
        self.lines += 1;
        let now = Totals::of(tally, counters);
        let then = std::mem::replace(&mut self.before, now.clone());
        let sent = now.tally.sum(|_| true).sent - then.tally.sum(|_| true).sent;
        let host = now.tally.host.since(&then.tally.host);
        let refused = now.tally.refused.since(&then.tally.refused);
        let mut more = now.answered.iter().zip(then.answered).map(|(now, then)| now - then);
        let mut reason = || more.next().unwrap_or_default().to_string();
        let cells = [
            format!("{}s", time.as_secs()),
            sent.to_string(),
            (now.forwarded - then.forwarded).to_string(),
            reason(),
            reason(),
            reason(),
            reason(),
            reason(),
            quantile(&host, 0.5),
            quantile(&host, 0.99),
            quantile(&refused, 0.5),
            quantile(&refused, 0.99),
            shown(counters.decisions.quantile(0.5)),
            shown(counters.decisions.quantile(0.99)),
        ];
        line(cells, out)
    }
}

/// A quantile with its unit, `-` when there is none.
pub(super) fn quantile(latencies: &Latencies, share: f64) -> String {
    shown(latencies.quantile(share))
}

/// A duration in three digits or so, with the unit that suits it.
pub(super) fn shown(duration: Option<Duration>) -> String {
    let Some(duration) = duration else { return "-".to_owned() };
    let micros = duration.as_secs_f64() * 1e6;
    match micros {
        ..10.0 => format!("{micros:.1}us"),
        10.0..1_000.0 => format!("{micros:.0}us"),
        1_000.0..100_000.0 => format!("{:.1}ms", micros / 1e3),
        _ => format!("{:.0}ms", micros / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_the_unit_that_suits_them() {
        let shown = |nanos| shown(Some(Duration::from_nanos(nanos)));
        assert_eq!(shown(300), "0.3us");
        assert_eq!(shown(123_456), "123us");
        assert_eq!(shown(14_200_000), "14.2ms");
        assert_eq!(shown(402_700_000), "403ms");
        assert_eq!(super::shown(None), "-");
    }

    #[test]
    fn the_heading_comes_back_and_no_line_is_wider_than_it() {
        let (tally, counters) = (Tally::default(), LinkCounters::default());
        let mut table = Table::new(&tally, &counters);
        let mut out = Vec::new();
        for second in 1..=16 {
            table.row(Duration::from_secs(second), &tally, &counters, &mut out).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("sent/s").count(), 2);
        let width: usize = COLUMNS.iter().map(|(_, width)| width).sum();
        assert!(text.lines().all(|line| line.len() <= width && width <= 120), "{text}");
        assert_eq!(text.lines().count(), 16 + 2 * 2);
    }
}

//! What happened, in words for whoever has never seen ISO 8583, and whether every promise held.

use std::io::{self, Write};
use std::time::Duration;

use super::scene::Scene;
use super::stage::Curtain;
use super::table::{answered, forwarded, quantile, shown};
use crate::exchange::Stray;
use crate::peers::{FlowTally, Kind, KindTally};
use crate::reason::Reason;
use crate::server::Exit;

const fn is_told(kind: Kind) -> bool {
    !kind.is_request()
}

/// The end of the demo.
pub(super) struct Summary<'a> {
    curtain: &'a Curtain,
    seconds: f64,
    all: KindTally,
    /// Advices, reversals and line tests.
    told: KindTally,
}

impl<'a> Summary<'a> {
    pub(super) fn new(curtain: &'a Curtain, duration: Duration) -> Self {
        let (all, told) = (curtain.tally.sum(|_| true), curtain.tally.sum(is_told));
        Self { curtain, seconds: duration.as_secs_f64(), all, told }
    }

    /// Whether all that was promised was kept.
    pub(super) fn all_held(&self) -> bool {
        self.promises().iter().all(|(held, _)| *held)
    }

    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        self.what_happened(out)?;
        self.who_was_refused(out)?;
        self.how_long(out)?;
        self.what_was_late(out)?;
        writeln!(out, "\nWHAT WAS PROMISED")?;
        for (held, promise) in self.promises() {
            writeln!(out, "  [{}] {promise}", if held { "held  " } else { "BROKEN" })?;
        }
        writeln!(
            out,
            "\nREAD NEXT\n  \
             README.md             the way of a message, and a first link of your own\n  \
             config/demo.toml      what ran here: change it and see, it is built into the demo\n  \
             config/tollgate.toml  every key there is, with its unit and default\n  \
             tollgate check --config FILE, then tollgate run --config FILE"
        )
    }

    fn what_happened(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { curtain: Curtain { counters, tally, .. }, all, told, .. } = self;
        writeln!(
            out,
            "\nWHAT HAPPENED\n  \
             The card network sent {} messages. {} asked the bank for a decision: may this purchase,\n  \
             refund or balance inquiry go ahead? {} told it something that is no question: a sale\n  \
             that was approved in its name (advice), one that fell through (reversal), a test of the\n  \
             line. tollgate read them all and passed {} on to the bank's host, byte for byte.",
            grouped(all.sent),
            grouped(all.sent - told.sent),
            grouped(told.sent),
            grouped(forwarded(counters)),
        )?;
        if tally.repeats > 0 {
            let repeats = grouped(tally.repeats);
            writeln!(
                out,
                "  Of the latter the network sent {repeats} again, as no answer had come."
            )?;
        }
        writeln!(
            out,
            "\n  Questions that it answered itself got code 91, \"issuer inoperative\": try again, it is\n  \
             nobody's card. The host never saw these:"
        )?;
        self.answers_here(false, out)?;
        writeln!(out, "  These it had passed on, and answered when the host did not:")?;
        self.answers_here(true, out)
    }

    /// Local answers by reason: those to requests that were forwarded, or to those that were not.
    fn answers_here(&self, forwarded: bool, out: &mut impl Write) -> io::Result<()> {
        let Curtain { counters, deadline, .. } = self.curtain;
        let counted = |reason: &Reason| answered(counters, *reason) > 0;
        let of_kind = Reason::ALL.into_iter().filter(|reason| reason.forwarded() == forwarded);
        let mut reasons = of_kind.filter(counted).peekable();
        if reasons.peek().is_none() {
            return writeln!(out, "  {:>8}", "none");
        }
        for reason in reasons {
            let why = match reason {
                Reason::Limit => "a card range or a shop asked more than it may",
                Reason::Overload => "too much was on its way to the host",
                Reason::Unavailable => "no connection to the host was up",
                Reason::Lost => "the connection it went out on broke, and nothing came back",
                Reason::Deadline => "the host took longer than the deadline of",
                Reason::Format => "not sound in form",
                Reason::Malfunction => "a fault of tollgate's own: please report it",
            };
            let count = grouped(answered(counters, reason));
            write!(out, "  {count:>8}  {:<12} {why}", reason.name())?;
            if reason == Reason::Deadline {
                write!(out, " {} ms", deadline.as_millis())?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn who_was_refused(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "\nWHO WAS REFUSED (messages per second; a card range is the first six digits, the BIN)\n  \
             {:<30} {:<22} {:>7} {:>8} {:>9}",
            "traffic", "limit", "sent", "passed", "refused"
        )?;
        for (scene, flow) in self.curtain.scenes.iter().zip(&self.curtain.tally.flows) {
            let KindTally { sent, refused, .. } = flow.sum(|_| true);
            let per_second = |count: u64| count as f64 / self.seconds;
            let mark = if scene.is_over() { "   <-- over its limit" } else { "" };
            writeln!(
                out,
                "  {:<30} {:>4.0} {:<17} {:>7.1} {:>8.1} {:>9.1}{mark}",
                scene.name,
                scene.limit,
                scene.of,
                per_second(sent),
                per_second(sent - refused),
                per_second(refused),
            )?;
        }
        writeln!(
            out,
            "  A bucket is full at first, so that a little more than the limit passes in a short time."
        )
    }

    fn how_long(&self, out: &mut impl Write) -> io::Result<()> {
        let Curtain { tally, counters, .. } = self.curtain;
        writeln!(out, "\nHOW LONG AN ANSWER TOOK{:>39} {:>9}", "half within", "99 % in")?;
        for (what, latencies) in [
            ("the host's, through tollgate", &tally.host),
            ("a 91 on the spot, seen by the network", &tally.refused),
            ("a 91 in place of an answer that did not come", &tally.overdue),
        ] {
            let (half, most) = (quantile(latencies, 0.5), quantile(latencies, 0.99));
            writeln!(out, "  {what:<48} {half:>11} {most:>9}")?;
        }
        let (half, most) = (counters.decisions.quantile(0.5), counters.decisions.quantile(0.99));
        let what = "reading and deciding one message, at most";
        writeln!(out, "  {what:<48} {:>11} {:>9}", shown(half), shown(most))
    }

    fn what_was_late(&self, out: &mut impl Write) -> io::Result<()> {
        let late = self.curtain.counters.strays.get(Stray::Late as usize);
        let Some([declines, approvals]) = late else { return Ok(()) };
        writeln!(
            out,
            "\nWHAT CAME TOO LATE\n  \
             {} answers of the host, {} of them approvals, came after tollgate had answered 91 in\n  \
             their place. The network has its answer, so they were not delivered. But behind each\n  \
             such approval the bank holds money for a sale that did not happen: tollgate counts it\n  \
             (tollgate_late_responses_total) and logs it, so that somebody can release it.",
            grouped(declines.get() + approvals.get()),
            grouped(approvals.get()),
        )
    }

    /// Each promise, and whether it held.
    fn promises(&self) -> Vec<(bool, String)> {
        let Self { all, told, curtain: Curtain { tally, exit, .. }, .. } = self;
        let (unanswered, twice) = (all.unanswered(), tally.unmatched);
        let alone = tally.unsent + tally.closed;
        let once = if unanswered + twice + alone == 0 {
            format!(
                "every message got exactly one answer: {} sent, {} answered, none twice",
                grouped(all.sent),
                grouped(all.answered())
            )
        } else {
            format!(
                "every message gets exactly one answer: {unanswered} got none, {twice} answers fit \
                 nothing, {} messages met a closed connection, {} connections were closed",
                tally.unsent, tally.closed
            )
        };
        let refused = told.refused + told.overdue;
        let protected = format!(
            "advices, reversals and line tests are never refused: {} sent, {} refused",
            grouped(told.sent),
            grouped(refused)
        );
        let innocent: u64 = self.scenes().filter(|(scene, _)| !scene.is_over()).map(refusals).sum();
        let spared = format!("nobody under their limit is refused on the spot: {innocent} were");
        let mut over = self.scenes().filter(|(scene, _)| scene.is_over()).map(refusals);
        let bounded = over.all(|count| count > 0);
        vec![
            (unanswered + twice + alone == 0, once),
            (refused == 0, protected),
            (innocent == 0, spared),
            (bounded, "whoever is over a limit is held to it".to_owned()),
            (
                *exit == Some(Exit::Clean),
                "told to stop, the proxy ends in order, with nothing left unanswered".to_owned(),
            ),
        ]
    }

    fn scenes(&self) -> impl Iterator<Item = (&Scene, &FlowTally)> {
        self.curtain.scenes.iter().zip(&self.curtain.tally.flows)
    }
}

fn refusals((_, flow): (&Scene, &FlowTally)) -> u64 {
    flow.sum(|_| true).refused
}

/// A count with its thousands apart.
fn grouped(count: u64) -> String {
    if count < 1_000 {
        count.to_string()
    } else {
        format!("{},{:03}", grouped(count / 1_000), count % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_007), "1,007");
        assert_eq!(grouped(12_345_678), "12,345,678");
    }
}

//! Plays the cases of a report: a link of its own before a host, one session that sends what the
//! report is about, and one beside it that is served throughout.

use crate::reports::{Bin, Case, Outcome, REPORTS};
use crate::support::host::Host;
use crate::support::house::{SOCKETS, key};
use crate::support::peer::Peer;
use crate::support::proxy::Proxy;
use crate::support::wait_for;

/// The issuer of every good message.
const GOOD_BIN: &str = "400000";
/// More than any case sends.
const ENOUGH: u32 = 1_000;
/// So many bytes of a message in a row are a part of it that nobody else says by chance.
const RUN: usize = 12;

/// Plays every case of these reports.
#[track_caller]
pub fn play(ids: &[&str]) {
    for id in ids {
        let cases = &REPORTS.report(id).cases;
        assert!(!cases.is_empty(), "{id} has no cases");
        for case in cases {
            let malformed = case.malformed.as_deref().unwrap_or("by default");
            eprintln!("{id}, {}: {} on {malformed}", case.what, case.dialect);
            Scene::of(case).play();
        }
    }
}

struct Scene<'a> {
    case: &'a Case,
    proxy: Proxy,
    at_host: Peer,
    /// Another session of the link.
    beside: Peer,
    good_messages: u8,
}

impl<'a> Scene<'a> {
    #[track_caller]
    fn of(case: &'a Case) -> Self {
        let host = Host::listen(case.framing);
        let proxy = Proxy::start(&config(case, host.address()));
        let at_host = host.accept();
        proxy.wait_for_metric(SOCKETS, 1.0);
        let beside = proxy.connect("visa", case.framing);
        Self { case, proxy, at_host, beside, good_messages: 0 }
    }

    #[track_caller]
    fn play(mut self) {
        let case = self.case;
        self.serve_beside();
        let mut session = self.proxy.connect("visa", case.framing);
        self.send_input(&mut session);
        if case.is_forwarded() {
            for frame in case.frames() {
                assert!(self.at_host.receive() == frame, "it arrived changed");
            }
            for answer in &case.host_answer {
                self.at_host.send(answer);
                assert!(session.receive() == *answer, "the answer arrived changed");
            }
        }
        for answer in &case.answer {
            assert_eq!(hex(&session.receive()), hex(answer));
        }
        let shown = self.show_who_pays(&mut session);
        if case.is_closed() {
            session.expect_end();
            session = self.proxy.connect("visa", case.framing);
        }
        // Whatever came to the host besides would come before this.
        self.serve(&mut session);
        self.serve_beside();
        let faults = if case.fault.is_some() { 1 + u8::from(shown) } else { 0 };
        self.check_counters(f64::from(faults));
        self.check_log();
    }

    /// What was sent before a cut has been read when the session beside was served.
    #[track_caller]
    fn send_input(&mut self, session: &mut Peer) {
        let input = &self.case.input;
        let mut sent = 0;
        for cut in &self.case.cuts {
            session.send_raw(&input[sent..*cut]);
            sent = *cut;
            self.serve_beside();
        }
        session.send_raw(&input[sent..]);
    }

    /// The bucket that paid for the input has nothing left; says whether there was anything to show.
    #[track_caller]
    fn show_who_pays(&mut self, session: &mut Peer) -> bool {
        let Case { bin, again, refused, .. } = self.case;
        for frame in again {
            session.send(frame);
            if *bin == Bin::NoCard {
                assert!(self.at_host.receive() == *frame);
            }
        }
        for answer in refused {
            assert_eq!(hex(&session.receive()), hex(answer));
        }
        *bin != Bin::NotShown
    }

    #[track_caller]
    fn serve_beside(&mut self) {
        let number = self.next_number();
        serve(self.case, number, &mut self.beside, &mut self.at_host);
    }

    #[track_caller]
    fn serve(&mut self, session: &mut Peer) {
        let number = self.next_number();
        serve(self.case, number, session, &mut self.at_host);
    }

    fn next_number(&mut self) -> u8 {
        self.good_messages += 1;
        self.good_messages - 1
    }

    #[track_caller]
    fn check_counters(&self, faults: f64) {
        let (case, proxy) = (self.case, &self.proxy);
        let network = "from=\"network\"";
        assert_eq!(proxy.metric_sum("tollgate_parse_errors_total", &[network]), faults);
        if let Some((_, kind)) = &case.fault {
            let kind = format!("kind=\"{kind}\"");
            let of_kind = proxy.metric_sum("tollgate_parse_errors_total", &[network, &kind]);
            assert_eq!(of_kind, faults, "{kind}");
        }
        let rejects = |reason: &str, code: &str| {
            let (reason, code) = (format!("reason=\"{reason}\""), format!("rc=\"{code}\""));
            proxy.metric_sum("tollgate_rejects_total", &[&reason, &code])
        };
        assert_eq!(rejects("limit", "91"), case.refused.len() as f64);
        assert_eq!(rejects("format", "30"), case.answer.len() as f64);
        let all = proxy.metric_sum("tollgate_rejects_total", &[]);
        assert_eq!(all, (case.refused.len() + case.answer.len()) as f64);
        let merchants = ["limit=\"merchant\"", "outcome=\"shadow_reject\""];
        let without_merchants = proxy.metric_sum("tollgate_limit_decisions_total", &merchants);
        assert_eq!(without_merchants, f64::from(u8::from(case.merchant.is_some())));
        let closed = "tollgate_sessions_closed_total";
        assert_eq!(proxy.metric_sum(closed, &[]), f64::from(u8::from(case.is_closed())));
        if let Some(cause) = &case.cause {
            let cause = format!("cause=\"{cause}\"");
            assert_eq!(proxy.metric_sum(closed, &[&cause]), 1.0, "{cause}");
        }
    }

    /// What the log has to say is said, and nothing of what was sent.
    #[track_caller]
    fn check_log(&self) {
        let (case, proxy) = (self.case, &self.proxy);
        if let Some((field, kind)) = &case.fault {
            let (field, kind) = (format!(" field={field} "), format!("kind=\"{kind}\""));
            let line = ["WARN", "link=visa", "from=\"network\"", &field, &kind];
            wait_for("a line that says what is wrong", || {
                (proxy.log_lines(&line) >= 1).then_some(())
            });
        } else {
            assert_eq!(proxy.log_lines(&["not readable"]), 0);
        }
        if let Some(cause) = &case.cause {
            let cause = format!("cause=\"{cause}\"");
            let says = case.says.as_deref().unwrap_or_default();
            wait_for("a line that says why the session is closed", || {
                let lines = proxy.log_lines(&["WARN", "link=visa", "peer=127.", &cause, says]);
                (lines == 1).then_some(())
            });
        }
        let said = format!("{}{}", proxy.log(), proxy.page("/metrics").1).to_lowercase();
        for word in ["panic", "a bug in tollgate", " error "] {
            assert!(!said.contains(word), "{word}");
        }
        for run in case.input.windows(RUN) {
            let text = String::from_utf8_lossy(run).to_lowercase();
            assert!(!said.contains(&hex(run)) && !said.contains(&text), "the input is in the log");
        }
    }
}

/// A good message goes to the host and its answer back.
#[track_caller]
fn serve(case: &Case, number: u8, session: &mut Peer, at_host: &mut Peer) {
    let (request, answer) = REPORTS.good(&case.dialect).numbered(number);
    let request = case.header.before(&request);
    let answer = case.header.answer_before(&request, &answer);
    session.send(&request);
    assert!(at_host.receive() == request, "a good message arrived changed");
    at_host.send(&answer);
    assert!(session.receive() == answer, "the answer to a good message arrived changed");
}

/// The issuer's bucket of the case holds one token. So does the merchant's, which only counts that
/// it is empty, so that the issuer's decides.
fn config(case: &Case, host: std::net::SocketAddr) -> String {
    let Case { dialect, framing, header, .. } = case;
    let (framing, header) = (framing.name(), header.name());
    let malformed = case.malformed.as_deref().unwrap_or("forward");
    let local_answers = case.local_answers.as_deref().unwrap_or("unless-mac");
    let frame_timeout = if case.outcome == Outcome::WaitsThenClosed { "300ms" } else { "60s" };
    let frame_bytes_max = case.frame_bytes_max.unwrap_or(4_096);
    let (all_bins, bin_keys) = match &case.bin {
        Bin::NotShown => (ENOUGH, String::new()),
        Bin::NoCard => (1, key(&format!("bin = \"{GOOD_BIN}\""), ENOUGH)),
        Bin::Of(bin) => (ENOUGH, key(&format!("bin = \"{bin}\""), 1)),
    };
    let merchant_keys = case.merchant.as_ref().map_or(String::new(), |merchant| {
        let (acquirer, acceptor) = merchant.split_once(':').unwrap();
        key(&format!("merchant = \"{acceptor}\"\nacquirer = \"{acquirer}\""), 1)
    });
    format!(
        r#"
        [node]
        grace = "0s"
        [admin]
        listen = "127.0.0.1:0"
        [log]
        level = "trace"
        [[link]]
        name = "visa"
        listen = "127.0.0.1:0"
        dialect = "{dialect}"
        framing = "{framing}"
        deadline = "50s"
        frame_timeout = "{frame_timeout}"
        frame_bytes_max = {frame_bytes_max}
        header = "{header}"
        malformed = "{malformed}"
        local_answers = "{local_answers}"
        [[upstream]]
        name = "host"
        connect = "{host}"
        connections = 1
        [[limit]]
        name = "merchant"
        per = ["merchant"]
        rate = 0.001
        burst = {ENOUGH}
        mode = "shadow"
        {merchant_keys}
        [[limit]]
        name = "bin"
        per = ["bin"]
        rate = 0.001
        burst = {all_bins}
        mode = "enforce"
        {bin_keys}
        "#
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! R16: no card number, track or PIN block leaves the process but in the message itself. Well-known
//! test cards are sent along every path there is, at the most talkative level, and everything that
//! the process says is searched for them in every form that a byte string is ever printed in.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use support::host::Host;
use support::house::{House, Plan, limit, limit_in};
use support::message::{Layout, Message};
use support::peer::{Framing, Peer};
use support::proxy::{Proxy, tollgate};
use support::wait_for;

/// Test cards of 13 to 19 digits.
const CARDS: [&str; 8] = [
    "4222222222222",
    "30569309025904",
    "378282246310005",
    "4111111111111111",
    "5555555555554444",
    "6011000990139424",
    "6304000000000000000",
    "6212345678901234567",
];
/// The rest of a track: expiry, service code and discretionary data with a CVV.
const DISCRETIONARY: &str = "29121017283946501";
const PIN_BLOCK: &str = "7C1D93E5A0B84F26";
const CHIP: &str = "9F2608D1C2B3A495867F5A08";
/// The shortest run of a card number that counts as a leak.
const RUN: usize = 12;

/// A request that holds a card in every field that can hold one.
fn laden(pan: &str, stan: u32) -> Message {
    let track_2 = format!("{pan}={DISCRETIONARY}");
    let track_1 = format!("B{pan}^DOE/JANE SECRETNAME^{DISCRETIONARY}");
    Message::sale(pan, stan)
        .with(14, "2912")
        .with(34, pan)
        .with(35, &track_2[..track_2.len().min(37)])
        .with(45, &track_1)
        .with(48, &format!("card {pan} track {track_2}"))
        .with(52, PIN_BLOCK)
        .with(55, &format!("{CHIP}{pan}"))
        .with(62, &format!("{pan}D{DISCRETIONARY}"))
}

/// The variants of one request: with track separators of either kind, or with one field alone.
fn variants(pan: &str, stan: u32) -> Vec<Message> {
    let whole = laden(pan, stan);
    let separator_d = whole.get(35).unwrap().replace('=', "D");
    let bare = Message::sale(pan, stan).without(2);
    vec![
        whole.clone(),
        whole.clone().with(35, &separator_d),
        bare.clone().with(35, whole.get(35).unwrap()),
        bare.clone().with(35, &separator_d),
        bare.clone().with(45, whole.get(45).unwrap()),
        bare.with(34, pan),
    ]
}

/// What must not be found, each with what it is.
fn secrets() -> Vec<(String, Vec<u8>)> {
    let mut secrets = Vec::new();
    for pan in CARDS {
        for (at, run) in pan.as_bytes().windows(RUN).enumerate() {
            secrets.push((format!("digits {at} and on of {pan}"), run.to_vec()));
        }
        // Around the separator and behind it.
        for separator in ["=", "D"] {
            let track = format!("{pan}{separator}{DISCRETIONARY}");
            for run in track.as_bytes()[pan.len() - 6..].windows(RUN) {
                secrets.push((format!("track 2 of {pan}"), run.to_vec()));
            }
        }
    }
    for (what, secret) in [
        ("PIN block", PIN_BLOCK.as_bytes().to_vec()),
        ("PIN block in bytes", u64::from_str_radix(PIN_BLOCK, 16).unwrap().to_be_bytes().to_vec()),
        ("chip data", CHIP.as_bytes().to_vec()),
        ("name", b"SECRETNAME".to_vec()),
    ] {
        secrets.push((what.to_owned(), secret));
    }
    secrets
}

/// The forms in which bytes come to be printed. All are compared in lower case.
fn printed(secret: &[u8]) -> Vec<String> {
    let hex: Vec<String> = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let decimal: Vec<String> = secret.iter().map(u8::to_string).collect();
    vec![
        String::from_utf8_lossy(secret).to_lowercase(),
        hex.concat(),
        hex.join(" "),
        hex.join(", "),
        hex.join(":"),
        format!("\\x{}", hex.join("\\x")),
        format!("0x{}", hex.join(", 0x")),
        decimal.join(", "),
        decimal.join(","),
        decimal.join(" "),
    ]
}

/// What is left of a text when the separators that grouped digits are printed with are taken out.
fn ungrouped(text: &str) -> String {
    text.chars().filter(|character| !matches!(character, ' ' | '-' | '_' | '\'')).collect()
}

/// The secrets that are found in a text.
fn leaks(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    // A card number in BCD prints in hexadecimal as its own digits, an even number of them, so that
    // the search for its digits is the search for that too. Grouped in fours or pairs it is another.
    let dense = ungrouped(&lower);
    let mut found = Vec::new();
    for (what, secret) in secrets() {
        let digits = String::from_utf8_lossy(&secret).to_lowercase();
        let grouped = secret.iter().all(u8::is_ascii_digit) && dense.contains(&digits);
        if grouped || printed(&secret).iter().any(|form| lower.contains(form)) {
            found.push(what);
        }
    }
    found
}

/// Fails if a page or a line says what it must not.
#[track_caller]
fn expect_no_leak(place: &str, text: &str) {
    let found = leaks(text);
    if found.is_empty() {
        return;
    }
    let line = text.lines().find(|line| !leaks(line).is_empty()).unwrap_or(text);
    panic!("{place} holds {found:?}: {line}");
}

#[test]
fn the_search_finds_a_card_in_every_form_that_it_could_be_printed_in() {
    let pan = "4111111111111111";
    let bytes = pan.as_bytes();
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    for text in [
        pan.to_owned(),
        format!("[{}]", &pan[3..15]),
        format!("{bytes:?}"),
        format!("{bytes:02x?}"),
        format!("{bytes:02X?}"),
        hex.concat(),
        hex.concat().to_lowercase(),
        hex.join(" "),
        format!("{:#x?}", &bytes).replace("\n    ", " "),
        "4111 1111 1111 1111".to_owned(),
        "41 11 11 11 11 11 11 11".to_owned(),
        format!("164111111111111111{DISCRETIONARY}"),
        format!("pin {PIN_BLOCK}"),
        format!("{:?}", u64::from_str_radix(PIN_BLOCK, 16).unwrap().to_be_bytes()),
        "track 1111=2912101728".to_owned(),
    ] {
        assert!(!leaks(&text).is_empty(), "{text}");
    }
    assert_eq!(
        leaks("411111******1111 mti=0110 stan=411111 rrn=000000900001"),
        Vec::<String>::new()
    );
}

/// One process with all that it said.
struct Watched {
    proxy: Proxy,
    pages: String,
}

impl Watched {
    fn of(proxy: Proxy) -> Self {
        // Nothing of the process is written anywhere when it dies.
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", proxy.pid())).unwrap();
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        let values: Vec<_> = core["Max core file size".len()..].split_whitespace().collect();
        assert_eq!(values, ["0", "0", "bytes"], "{core}");
        Self { proxy, pages: String::new() }
    }

    /// Keeps what the pages say now.
    fn look(&mut self) {
        for page in ["/metrics", "/readyz", "/healthz", "/status", "/"] {
            let (_, body) = self.proxy.page(page);
            self.pages.push_str(&body);
        }
    }

    /// Ends the process and searches all that it said.
    #[track_caller]
    fn end(mut self, log_lines_min: usize) {
        self.look();
        self.proxy.signal("TERM");
        self.proxy.wait();
        // The last line is in the log when its reader has met the end.
        wait_for("the end of the log", || {
            let log = self.proxy.log();
            (log.contains("stopped") || log.contains("ended with")).then_some(())
        });
        let log = self.proxy.log();
        expect_no_leak("the log", &log);
        expect_no_leak("standard output", &self.proxy.output());
        expect_no_leak("an admin page", &self.pages);
        let lines = log.lines().count();
        assert!(lines >= log_lines_min, "only {lines} lines, too few to prove anything:\n{log}");
        assert!(self.pages.contains("tollgate_messages_total"), "no metrics were seen");
    }
}

fn plan(format: &str) -> Plan {
    Plan {
        log: format!("level = \"trace\"\nformat = \"{format}\""),
        link: "frame_timeout = \"100ms\"".to_owned(),
        deadline: "300ms",
        ..Plan::default()
    }
}

const FORMATS: [&str; 2] = ["text", "json"];

/// A message without a card, behind which nothing of what was sent before is still on its way.
fn pass_marker(terminal: &mut Peer, at_host: &mut Peer) -> usize {
    let marker = Message::new("0820", &[(11, "777777"), (41, "MARKER01")]);
    terminal.send(&marker.encode());
    let mut before = 0;
    while at_host.receive() != marker.encode() {
        before += 1;
    }
    before
}

#[test]
fn r16_accepted_and_refused_requests_and_advices_leave_no_card_behind() {
    for format in FORMATS {
        for layout in [Layout::Hex, Layout::Binary] {
            let limits = limit("bin", "bin", 4) + &limit("merchant", "merchant", 40);
            let house = Plan { sections: limits, layout, ..plan(format) }.start();
            let House { proxy, mut at_host, .. } = house;
            let mut watched = Watched::of(proxy);
            let mut terminal = watched.proxy.connect("visa", Framing::Be16);
            let (mut accepted, mut refused) = (0, 0);
            for pan in CARDS {
                for (request, stan) in variants(pan, 1).into_iter().zip(1..) {
                    let request = request.with(11, &format!("{stan:06}"));
                    let advice = request.clone().mti("0420");
                    terminal.send(&request.encode_as(layout));
                    terminal.send(&advice.encode_as(layout));
                    if at_host.receive() == request.encode_as(layout) {
                        accepted += 1;
                        at_host.receive();
                        at_host.send(&request.answer("00").with(48, pan).encode_as(layout));
                    } else {
                        refused += 1;
                    }
                    terminal.receive();
                    at_host.send(&advice.answer("00").with(48, pan).encode_as(layout));
                    terminal.receive();
                }
            }
            assert!(accepted >= 8 && refused >= 20, "{accepted} {refused}");
            watched.look();
            watched.end(6);
        }
    }
}

/// Faults of every kind, from a session and from the host.
fn malformed(pan: &str) -> Vec<Vec<u8>> {
    let whole = laden(pan, 1).encode();
    let mut frames: Vec<Vec<u8>> =
        (1..whole.len()).step_by(7).map(|end| whole[..end].to_vec()).collect();
    let with = |find: &str, replace: &str| {
        let text = String::from_utf8(whole.clone()).unwrap();
        assert!(text.contains(find));
        text.replacen(find, replace, 1).into_bytes()
    };
    let length = format!("{:02}{pan}", pan.len());
    frames.push(with(&length, &format!("{:02}{pan}", pan.len() - 3)));
    frames.push(with(&length, &format!("{:02}{pan}", pan.len() + 1)));
    frames.push(with(&length, &format!("99{pan}")));
    frames.push(with(&length, &format!("+1{pan}")));
    // Cut short inside its tracks, a card number lies where the RRN is looked for.
    for short in ["00", "01", "05"] {
        let track = laden(pan, 1).get(35).unwrap().to_owned();
        frames.push(with(&format!("{}{track}", track.len()), &format!("{short}{track}")));
    }
    frames.push([&whole, pan.as_bytes()].concat());
    frames.push([&whole, &laden(pan, 2).encode()[..]].concat());
    // Another dialect, another header, and no header at all.
    frames.push(laden(pan, 1).encode_as(Layout::Binary));
    frames.push([b"ISO023400070", &whole[..]].concat());
    frames.push([&[0x60, 0, 1, 0, 2], &whole[..]].concat());
    frames.push(pan.as_bytes().to_vec());
    frames.push(format!("{pan}={DISCRETIONARY}").into_bytes());
    frames.push(format!("B{pan}^SECRETNAME^{DISCRETIONARY}").into_bytes());
    frames.push([pan.as_bytes(), &whole[4..]].concat());
    frames.push([&pan.as_bytes()[..4], &whole[4..]].concat());
    // Card numbers two digits a byte.
    let even = if pan.len().is_multiple_of(2) { pan.to_owned() } else { format!("{pan}0") };
    let bcd = |pair: &[u8]| (pair[0] - b'0') << 4 | (pair[1] - b'0');
    frames.push(even.as_bytes().chunks(2).map(bcd).collect());
    frames
}

#[test]
fn r16_messages_that_cannot_be_read_leave_no_card_behind_from_either_side() {
    for format in FORMATS {
        for layout in [Layout::Hex, Layout::Binary] {
            // Refusals are all looked at, and shown by key.
            let limits = ["merchant", "terminal", "bin"].map(|per| limit_in("shadow", per, per, 1));
            let plan = Plan { layout, sections: limits.concat(), ..plan(format) };
            let House { proxy, mut at_host, .. } = plan.start();
            let mut watched = Watched::of(proxy);
            let mut terminal = watched.proxy.connect("visa", Framing::Be16);
            let mut sent = 0;
            for pan in CARDS {
                for frame in malformed(pan) {
                    terminal.send(&frame);
                    at_host.send(&frame);
                    // As an answer it is one that nobody waits for.
                    at_host.send(&[b"0210", frame.get(4..).unwrap_or_default()].concat());
                    sent += 1;
                    pass_marker(&mut terminal, &mut at_host);
                }
            }
            assert!(sent > 200, "{sent}");
            let from_host = |watched: &Watched| {
                watched.proxy.metric_sum("tollgate_parse_errors_total", &["from=\"host\""])
            };
            wait_for("faults of the host", || (from_host(&watched) > 150.0).then_some(()));
            wait_for_ranking(&watched, &mut terminal, &mut at_host, layout);
            watched.look();
            watched.end(100);
        }
    }
}

/// Sends sales until the status shows whose they are, and with them all that was met before.
fn wait_for_ranking(watched: &Watched, terminal: &mut Peer, at_host: &mut Peer, layout: Layout) {
    wait_for("a ranking", || {
        terminal.send(&Message::sale(CARDS[0], 1).with(42, "SEEN           ").encode_as(layout));
        pass_marker(terminal, at_host);
        watched.proxy.page("/status").1.contains("123456:SEEN").then_some(())
    });
}

#[test]
fn r16_explanations_leave_no_card_behind() {
    let places = ["merchant", "terminal", "bin", "mcc"].map(|per| limit(per, per, 1)).concat();
    let Plan { link, .. } = plan("text");
    let text =
        Plan { sections: places, link, ..Plan::default() }.config(([127, 0, 0, 1], 9).into());
    let name = format!("leaks-{}.toml", std::process::id());
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    let config = path.to_str().unwrap();
    let (mut explained, mut all) = (0, String::new());
    for (card, pan) in CARDS.into_iter().enumerate() {
        let sound = variants(pan, 1).into_iter().skip(card % 3).step_by(3);
        let sound = sound.map(|message| message.encode());
        // The last ones are damaged in other ways than by an early end. Of each card every other one.
        let broken = malformed(pan).into_iter().rev().skip(card % 2).step_by(2).take(10);
        for frame in sound.chain(broken) {
            let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
            for form in [&["--json"][..], &[]] {
                let command = ["explain", "--config", config, "--link", "visa", &hex];
                let output = tollgate(&[&command, form].concat());
                let said = [output.stdout, output.stderr].concat();
                assert!(!said.is_empty() && output.status.success(), "{hex}");
                all.push_str(&String::from_utf8_lossy(&said));
                explained += 1;
            }
        }
    }
    std::fs::remove_file(path).unwrap();
    expect_no_leak("an explanation", &all);
    assert!(explained > 100 && all.contains("not shown"), "{explained}");
}

#[test]
fn r16_answers_that_reach_nobody_leave_no_card_behind() {
    for format in FORMATS {
        let house = Plan { deadline: "5ms", ..plan(format) }.start();
        let House { proxy, mut at_host, .. } = house;
        let mut watched = Watched::of(proxy);
        let mut keeper = watched.proxy.connect("visa", Framing::Be16);
        let mut sent = 0;
        for pan in CARDS {
            for (variant, request) in variants(pan, 1).into_iter().enumerate() {
                let code = if variant % 2 == 0 { "00" } else { "51" };
                let answer = request
                    .clone()
                    .answer(code)
                    .with(48, pan)
                    .with(35, request.get(35).unwrap_or(pan));
                // Late: after its deadline.
                keeper.send(&request.encode());
                at_host.receive();
                keeper.receive();
                at_host.send(&answer.encode());
                // Unmatched: never asked.
                at_host.send(&answer.clone().with(11, "888888").encode());
                // Undeliverable: the session is gone.
                let mut leaver = watched.proxy.connect("visa", Framing::Be16);
                let advice = request.mti("0120");
                leaver.send(&advice.encode());
                at_host.receive();
                leaver.reset();
                sent += 1;
                let sockets = "tollgate_link_sockets{link=\"visa\"}";
                wait_for("the session is gone", || {
                    (watched.proxy.metric(sockets) == 1.0).then_some(())
                });
                at_host.send(&advice.answer(code).with(48, pan).with(34, pan).encode());
            }
        }
        let strays = |watched: &Watched, kind: &str| {
            watched.proxy.metric_sum("tollgate_stray_messages_total", &[kind])
        };
        let expected = f64::from(sent);
        wait_for("every stray answer", || {
            let late = watched.proxy.metric_sum("tollgate_late_responses_total", &["visa"]);
            let nobody =
                strays(&watched, "kind=\"undeliverable\"") + strays(&watched, "kind=\"unmatched\"");
            (late == expected && nobody == 2.0 * expected).then_some(())
        });
        watched.look();
        watched.end(100);
    }
}

#[test]
fn r16_the_log_shows_no_more_of_a_trace_number_than_its_field_holds() {
    for format in FORMATS {
        let House { proxy, mut at_host, .. } = plan(format).start();
        let watched = Watched::of(proxy);
        let pan = "6011000990139424";
        // A STAN and an RRN that are digits of a card, in a sound answer that nobody asked for.
        let sale = Message::sale(pan, 1).with(11, &pan[..6]).with(37, &format!("{}   ", &pan[..9]));
        at_host.send(&sale.answer("00").encode());
        wait_for("the line", || watched.proxy.log().contains(&pan[..9]).then_some(()));
        assert!(!watched.proxy.log().contains(&pan[..10]));
        watched.end(5);
    }
}

#[test]
fn r16_framing_faults_leave_no_card_behind() {
    for format in FORMATS {
        let House { proxy, host, mut at_host, .. } = plan(format).start();
        let mut watched = Watched::of(proxy);
        for pan in CARDS {
            let frame = laden(pan, 1).encode();
            // Too long, cut off by the end of the connection, and never finished.
            for bytes in [[b"\xff\xff", &frame[..]].concat(), pan.as_bytes().to_vec()] {
                let mut terminal = watched.proxy.connect("visa", Framing::Be16);
                terminal.send_raw(&bytes);
                terminal.expect_end();
            }
            let mut ended = watched.proxy.connect("visa", Framing::Be16);
            ended.send_raw(&Framing::Be16.wrap(&frame)[..frame.len() - 5]);
            ended.half_close();
            ended.expect_end();
            let mut unfinished = watched.proxy.connect("visa", Framing::Be16);
            unfinished.send_raw(&Framing::Be16.wrap(&frame)[..frame.len() - 5]);
            unfinished.expect_end();
        }
        // The host, last: it takes the connection down.
        at_host.send_raw(&[b"\xff\xff", CARDS[3].as_bytes()].concat());
        at_host.expect_end();
        let mut again = host.accept();
        again.send_raw(&Framing::Be16.wrap(&laden(CARDS[4], 1).encode())[..40]);
        again.expect_end();
        let closed = |cause: &str| {
            watched
                .proxy
                .metric_sum("tollgate_sessions_closed_total", &[&format!("cause=\"{cause}\"")])
        };
        assert!(closed("framing") >= 8.0 && closed("frame_timeout") >= 8.0);
        watched.look();
        watched.end(60);
    }
}

#[test]
fn r16_a_host_that_is_down_and_a_forced_end_leave_no_card_behind() {
    for format in FORMATS {
        let house = Plan { deadline: "200ms", ..plan(format) }.start();
        let House { proxy, host, mut at_host, .. } = house;
        let mut watched = Watched::of(proxy);
        let address = host.address();
        let mut terminal = watched.proxy.connect("visa", Framing::Be16);
        // In flight when the host goes.
        for (pan, stan) in CARDS.into_iter().zip(1..) {
            terminal.send(&laden(pan, stan).encode());
            terminal.send(&laden(pan, stan).mti("0420").encode());
            at_host.receive();
            at_host.receive();
        }
        drop((host, at_host));
        for _ in CARDS {
            assert_eq!(Message::decode(&terminal.receive()).get(39), Some("91"));
        }
        for (pan, stan) in CARDS.into_iter().zip(100..) {
            terminal.send(&laden(pan, stan).mti("0420").encode());
            terminal.send(&laden(pan, stan).mti("0200").encode());
            assert_eq!(Message::decode(&terminal.receive()).get(39), Some("91"));
        }
        watched.look();
        // Back, and in flight at the end.
        let host = Host::listen_on(address, Framing::Be16);
        let mut at_host = host.accept();
        watched.proxy.wait_for_metric(support::house::SOCKETS, 1.0);
        for (pan, stan) in CARDS.into_iter().zip(200..) {
            terminal.send(&laden(pan, stan).encode());
            terminal.send(&laden(pan, stan).mti("0120").encode());
            at_host.receive();
            at_host.receive();
        }
        watched.end(10);
    }
}

//! Real messages and made ones go through byte for byte, in both framings, however the network cuts
//! them into segments, and so do their answers.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "a test states its expectations"
)]

mod support;

use support::config;
use support::fixtures;
use support::host::Host;
use support::message::Message;
use support::peer::{Framing, Peer};
use support::proxy::Proxy;

const CARD: &str = "4111111111111111";
const TRACK_2: &str = "4111111111111111=30121011000012345678";
const ASCII: &str = "iso87_ascii";
const BINARY_BITMAP: &str = "iso87_ascii_binbitmap";

/// Rows of the fixtures of which a preset reads enough to find the answer's request.
const ROWS: usize = 29;
/// Messages made here.
const MADE: usize = 10;

const BOTH: [Framing; 2] = [Framing::Be16, Framing::Be16Incl];

/// A message as bytes, and the dialect of the link that carries it.
struct Sample {
    name: String,
    dialect: &'static str,
    frame: Vec<u8>,
}

impl Sample {
    /// The third digit of the MTI is odd in what answers something else.
    fn is_answer(&self) -> bool {
        self.frame[2] % 2 == 1
    }

    /// The same message under the MTI of its answer, or of what it answers.
    fn counterpart(&self) -> Vec<u8> {
        let mut frame = self.frame.clone();
        frame[2] ^= 1;
        frame
    }
}

/// Every fixture in these dialects but those whose sender writes bitmaps otherwise, taken out of the
/// framing and the header that it was recorded with. What else it has otherwise stands behind all
/// that an answer is told by.
fn rows() -> Vec<Sample> {
    let rows = fixtures::messages().into_iter().filter_map(|message| {
        let dialect = [ASCII, BINARY_BITMAP].into_iter().find(|known| *known == message.dialect)?;
        assert!(message.body.starts_with(b"0"), "{} does not begin with its MTI", message.id);
        let sample = Sample { name: message.id, dialect, frame: message.body };
        let reads_bitmap = !message.overrides.iter().any(|line| line.starts_with("1,"));
        reads_bitmap.then_some(sample)
    });
    let rows: Vec<Sample> = rows.collect();
    assert_eq!(rows.len(), ROWS, "rows of the fixtures");
    rows
}

/// One message of each kind, with track 2 and without.
fn made() -> Vec<Sample> {
    let mut made = Vec::new();
    for (mti, stan) in ["0100", "0200", "0120", "0420", "0800"].into_iter().zip(1_u32..) {
        let plain = match mti {
            "0800" => {
                Message::new(mti, &[(7, "1130045900"), (11, &format!("{stan:06}")), (70, "301")])
            }
            _ => Message::sale(CARD, stan).mti(mti),
        };
        let with_track = plain.clone().with(11, &format!("{:06}", stan + 100)).with(35, TRACK_2);
        for (message, suffix) in [(plain, ""), (with_track, " with track 2")] {
            let name = format!("{mti}{suffix}");
            made.push(Sample { name, dialect: ASCII, frame: message.encode() });
        }
    }
    assert_eq!(made.len(), MADE);
    made
}

/// A proxy with a link for each dialect in one framing, and a host for each in another.
struct Way {
    proxy: Proxy,
    links: Vec<(&'static str, Peer, Peer)>,
}

impl Way {
    #[track_caller]
    fn open(framing: Framing, host_framing: Framing) -> Self {
        let dialects = [ASCII, BINARY_BITMAP];
        let hosts = dialects.map(|_| Host::listen(host_framing));
        let links = dialects.iter().zip(&hosts).map(|(dialect, host)| {
            let upstream_keys = format!("connections = 1\nframing = \"{}\"", host_framing.name());
            let link_keys = "deadline = \"50s\"\nframe_timeout = \"60s\"";
            config::link(dialect, host.address(), link_keys, &upstream_keys)
                .replace(r#"dialect = "iso87_ascii""#, &format!("dialect = \"{dialect}\""))
                .replacen(r#"framing = "be16""#, &format!("framing = \"{}\"", framing.name()), 1)
        });
        let links: String = links.collect();
        let proxy = Proxy::start(&format!("{}{links}", config::node("0s")));
        let links = dialects.iter().zip(&hosts).map(|(dialect, host)| {
            let at_host = host.accept();
            let labels = format!(r#"link="{dialect}",upstream="{dialect}-host""#);
            proxy.wait_for_metric(&format!("tollgate_upstream_up{{{labels}}}"), 1.0);
            let terminal = proxy.connect(dialect, framing);
            proxy.wait_for_metric(&format!(r#"tollgate_link_sockets{{link="{dialect}"}}"#), 1.0);
            (*dialect, terminal, at_host)
        });
        let links = links.collect();
        Self { proxy, links }
    }

    fn link(&mut self, dialect: &str) -> (&mut Peer, &mut Peer) {
        let link = self.links.iter_mut().find(|(name, ..)| *name == dialect);
        link.map(|(_, terminal, at_host)| (terminal, at_host)).unwrap()
    }

    /// Nothing was answered here and nothing reached nobody.
    #[track_caller]
    fn was_only_a_way(&self) {
        for metric in [
            "tollgate_rejects_total",
            "tollgate_deadline_answers_total",
            "tollgate_stray_messages_total",
            "tollgate_unsent_total",
        ] {
            assert_eq!(self.proxy.metric_sum(metric, &[]), 0.0, "{metric}");
        }
    }
}

/// Each framing on either side.
fn every_way() -> impl Iterator<Item = (Framing, Framing)> {
    BOTH.into_iter().flat_map(|framing| BOTH.map(|host_framing| (framing, host_framing)))
}

/// From the network to the host, and the answer back. What is itself an answer is that answer.
#[track_caller]
fn goes_through(sample: &Sample, (terminal, at_host): (&mut Peer, &mut Peer)) {
    let name = &sample.name;
    let (request, answer) = match sample.is_answer() {
        true => (sample.counterpart(), sample.frame.clone()),
        false => (sample.frame.clone(), sample.counterpart()),
    };
    terminal.send(&request);
    assert!(at_host.receive() == request, "{name} arrived changed");
    at_host.send(&answer);
    assert!(terminal.receive() == answer, "the answer of {name} arrived changed");
}

#[test]
fn every_message_arrives_as_it_was_sent_and_so_does_its_answer() {
    let mut through = 0;
    for (framing, host_framing) in every_way() {
        let mut way = Way::open(framing, host_framing);
        for sample in rows().into_iter().chain(made()) {
            goes_through(&sample, way.link(sample.dialect));
            through += 1;
        }
        way.was_only_a_way();
    }
    assert_eq!(through, (ROWS + MADE) * 4);
}

/// What the host originates may look like anything, too. A message that may be a request of the
/// network's own is none here: the host asks, and the network answers.
#[test]
fn every_message_arrives_as_it_was_sent_the_other_way_round_too() {
    let mut through = 0;
    for (framing, host_framing) in every_way() {
        let mut way = Way::open(framing, host_framing);
        for sample in rows().into_iter().chain(made()) {
            let (terminal, at_host) = way.link(sample.dialect);
            goes_through(&sample, (at_host, terminal));
            through += 1;
        }
        way.was_only_a_way();
    }
    assert_eq!(through, (ROWS + MADE) * 4);
}

#[test]
fn a_message_that_comes_one_byte_at_a_time_arrives_whole() {
    for framing in BOTH {
        let mut way = Way::open(framing, framing);
        let mut through = 0;
        for sample in rows().into_iter().chain(made()) {
            let (terminal, at_host) = way.link(sample.dialect);
            for byte in framing.wrap(&sample.frame) {
                terminal.send_raw(&[byte]);
            }
            assert!(at_host.receive() == sample.frame, "{} arrived changed", sample.name);
            through += 1;
        }
        assert_eq!(through, ROWS + MADE);
    }
}

#[test]
fn an_answer_that_comes_one_byte_at_a_time_arrives_whole() {
    for framing in BOTH {
        let mut way = Way::open(framing, framing);
        for sample in made() {
            let (terminal, at_host) = way.link(sample.dialect);
            terminal.send(&sample.frame);
            assert_eq!(at_host.receive(), sample.frame);
            for byte in framing.wrap(&sample.counterpart()) {
                at_host.send_raw(&[byte]);
            }
            assert!(terminal.receive() == sample.counterpart(), "{} arrived changed", sample.name);
        }
        way.was_only_a_way();
    }
}

#[test]
fn a_thousand_frames_in_one_segment_arrive_each_for_itself_and_in_order() {
    const FRAMES: u32 = 1_000;
    // One segment of the loopback device holds them all.
    const SEGMENT_BYTES_MAX: usize = 65_483;
    for framing in BOTH {
        let mut way = Way::open(framing, framing);
        let (terminal, at_host) = way.link(ASCII);
        let frame = |stan: u32| {
            let mti = ["0100", "0200", "0120", "0420", "0800"][stan as usize % 5];
            Message::new(mti, &[(11, &format!("{stan:06}")), (41, "TERM0001")]).encode()
        };
        let answer = |stan: u32| {
            let mut answer = frame(stan);
            answer[2] += 1;
            answer
        };
        let all = |message: &dyn Fn(u32) -> Vec<u8>| -> Vec<u8> {
            (1..=FRAMES).flat_map(|stan| framing.wrap(&message(stan))).collect()
        };
        let requests = all(&frame);
        assert!(requests.len() < SEGMENT_BYTES_MAX);
        terminal.send_raw(&requests);
        for stan in 1..=FRAMES {
            assert_eq!(at_host.receive(), frame(stan));
        }
        at_host.send_raw(&all(&answer));
        for stan in 1..=FRAMES {
            assert_eq!(terminal.receive(), answer(stan));
        }
        way.was_only_a_way();
    }
}

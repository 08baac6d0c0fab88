//! Millions of damaged frames in every dialect, framing and header: nothing panics, every promise of
//! [`tollgate::probe`] holds, and no length that a peer writes makes anything allocate for it.
//!
//! Cases are numbered, and each has a generator of its own, so that one replays alone. What fails
//! says how:
//!
//! - `TOLLGATE_MUTATIONS_SEED`: where the numbers begin (8583);
//! - `TOLLGATE_MUTATIONS_FIRST`: the first case (0);
//! - `TOLLGATE_MUTATIONS_CASES`: how many (5,000,000; 200,000 in a build with debug assertions).
//!
//! No case can hang: every turn of every loop that reads a peer's bytes takes one of them at least,
//! or one bit of a bitmap (`probe` asserts the first of each cut), and a case is at most
//! [`STREAM_BYTES_MAX`] bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test states its expectations"
)]

#[path = "support/csv.rs"]
mod csv;
#[path = "mutations/damage.rs"]
mod damage;
#[path = "support/encoder.rs"]
#[allow(dead_code, reason = "only whole messages are built here")]
mod encoder;
#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "support/purchase.rs"]
mod purchase;
#[path = "support/seeds.rs"]
#[allow(dead_code, reason = "only headers are taken from it")]
mod seeds;

use std::ops::AddAssign;
use std::sync::Arc;

use allocation_counter::measure;
use damage::{Damage, Message};
use fastrand::Rng;
use tollgate::iso8583::{Composer, Dialect, FieldSet, LocalCode, Spans, View};
use tollgate::probe::{self, HEADERS, dialects, framings};
use tollgate::wire::{Framing, Header, Splitter};

const SEED: u64 = 8_583;
const CASES: u64 = if cfg!(debug_assertions) { 200_000 } else { 5_000_000 };

/// What a link allows in most cases: every undamaged frame, while lengths far above can be written.
const FRAME_BYTES_MAX: u16 = 4_096;
/// Two spliced messages behind the longest header, and another frame behind them.
const STREAM_BYTES_MAX: usize = 16_384;

/// What the cases came to. Damage that stops all of them at the door would test nothing behind it.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    /// Frames that were cut, and those whose header was one.
    frames: u64,
    opened: u64,
    /// Streams that could not be cut to their end.
    uncut: u64,
    /// Messages of which fields were read, and those that had no fault.
    read: u64,
    sound: u64,
    answered: u64,
    /// The most bytes that were allocated at once.
    bytes_max: u64,
}

impl AddAssign for Reached {
    fn add_assign(&mut self, other: Self) {
        self.frames += other.frames;
        self.opened += other.opened;
        self.uncut += other.uncut;
        self.read += other.read;
        self.sound += other.sound;
        self.answered += other.answered;
        self.bytes_max = self.bytes_max.max(other.bytes_max);
    }
}

/// Says which case it was if the test ends in its midst.
struct Replay {
    seed: u64,
    case: u64,
}

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "TOLLGATE_MUTATIONS_SEED={} TOLLGATE_MUTATIONS_FIRST={} TOLLGATE_MUTATIONS_CASES=1 \
                 cargo test --test mutations",
                self.seed, self.case,
            );
        }
    }
}

/// How one case is read.
struct Link {
    /// Places in the lists of `probe`.
    framing: u8,
    header: u8,
    dialect: u8,
    /// Bits of the fields to echo.
    echo: u64,
    frame_bytes_max: u16,
    pieces: u8,
}

/// What cases are made from, and the buffers that they are made in.
struct Mill {
    messages: Vec<Vec<Message>>,
    dialects: Vec<Arc<Dialect>>,
    /// As each dialect's link has one; they echo whatever they may.
    composers: Vec<Composer>,
    framings: Vec<Framing>,
    spans: Box<Spans>,
    /// Stands for a worker's buffer of answers.
    out: Vec<u8>,
    data: Vec<u8>,
}

impl Mill {
    fn new() -> Self {
        let dialects: Vec<_> = dialects().cloned().map(Arc::new).collect();
        let everything: FieldSet = (0..=255).collect();
        let composers =
            dialects.iter().map(|dialect| Composer::new(Arc::clone(dialect), everything));
        Self {
            messages: damage::messages(),
            composers: composers.collect(),
            dialects,
            framings: framings().collect(),
            spans: Box::default(),
            out: Vec::with_capacity(STREAM_BYTES_MAX),
            data: Vec::new(),
        }
    }

    fn case(&mut self, seed: u64, case: u64, reached: &mut Reached) {
        let _replay = Replay { seed, case };
        // Neighbouring seeds of the generator are as good as any.
        let mut rng = Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(case));
        let turn = |count: usize, before: usize| {
            u8::try_from(usize::try_from(case).unwrap() / before % count).unwrap()
        };
        let (framings, headers) = (self.framings.len(), HEADERS.len());
        let mut link = Link {
            framing: turn(framings, 1),
            header: turn(headers, framings),
            dialect: turn(self.dialects.len(), framings * headers),
            echo: if rng.bool() { u64::MAX } else { rng.u64(..) },
            frame_bytes_max: FRAME_BYTES_MAX,
            pieces: rng.u8(..),
        };
        let stream = self.stream(&mut link, &mut rng);
        assert!(stream.len() <= STREAM_BYTES_MAX, "a case of {} bytes", stream.len());
        let spent = measure(|| *reached += self.as_the_proxy_does(&link, &stream));
        reached.bytes_max = reached.bytes_max.max(spent.bytes_max);
        let allowed = u64::from(link.frame_bytes_max);
        assert!(spent.bytes_max <= allowed, "{} bytes allocated at once", spent.bytes_max);
        self.probe(&link, &stream);
    }

    /// A damaged message behind a header, in a framing; or a sound one of which those are damaged.
    /// One link in eight allows about as much as the frame has.
    fn stream(&self, link: &mut Link, rng: &mut Rng) -> Vec<u8> {
        let ours = &self.messages[usize::from(link.dialect)];
        let message = rng.choice(ours).unwrap();
        let theirs = rng.choice(&self.messages).unwrap();
        let other = rng.choice(theirs).unwrap();
        let damage = Damage::new(message, other);
        let (framing, header) = (self.framings[usize::from(link.framing)], self.header(link));
        let place = rng.u8(..10);

        let mut body = message.body.clone();
        if place < 6 {
            damage.inflict(&mut body, rng);
        }
        let mut frame = [damage::header(header, rng), body].concat();
        if (6..8).contains(&place) {
            damage.inflict_anywhere(&mut frame, rng);
        }
        if rng.u8(..8) == 0 {
            let about = frame.len().saturating_sub(2) + rng.usize(..5);
            link.frame_bytes_max = about.try_into().unwrap();
        }
        let mut stream = Vec::new();
        damage::join(framing, &frame, rng, &mut stream);
        if rng.u8(..4) == 0 {
            damage::join(framing, &other.body, rng, &mut stream);
        }
        if place >= 8 {
            damage.inflict_in_length(&mut stream, framing, rng);
        }
        stream
    }

    fn header(&self, link: &Link) -> Header {
        HEADERS[usize::from(link.header)]
    }

    /// The proxy's way of a stream: nothing here allocates but the library.
    fn as_the_proxy_does(&mut self, link: &Link, stream: &[u8]) -> Reached {
        let Self { dialects, composers, framings, spans, out, .. } = self;
        let dialect = &dialects[usize::from(link.dialect)];
        let composer = &mut composers[usize::from(link.dialect)];
        let header = HEADERS[usize::from(link.header)];
        let framing = framings[usize::from(link.framing)];
        let mut splitter = Splitter::new(framing, link.frame_bytes_max.into());
        let (mut reached, mut at) = (Reached::default(), 0);
        loop {
            match splitter.split(&stream[at..]) {
                Ok(Some(split)) => {
                    at += split.whole.len();
                    reached.frames += 1;
                    let Ok(opened) = header.open(split.frame) else { continue };
                    reached.opened += 1;
                    let Ok(view) = View::parse(dialect, opened.body, spans) else { continue };
                    reached.read += u64::from(!view.fields().is_empty());
                    reached.sound += u64::from(view.fault().is_none());
                    out.clear();
                    header.answer(split.frame, out);
                    let Ok(slot) = composer.compose(&view, out) else { continue };
                    slot.write(out, LocalCode::IssuerInoperative);
                    header.seal(out);
                    reached.answered += 1;
                }
                Ok(None) => {
                    reached.uncut += u64::from(at < stream.len());
                    return reached;
                }
                Err(_) => {
                    reached.uncut += 1;
                    return reached;
                }
            }
        }
    }

    /// The stream, and each frame that comes out of it, through all that is promised.
    fn probe(&mut self, link: &Link, stream: &[u8]) {
        let [high, low] = link.frame_bytes_max.to_be_bytes();
        self.say(&[link.framing, high, low, link.pieces], stream);
        let frames = probe::split(&self.data);
        let framing = self.framings[usize::from(link.framing)];
        let mut splitter = Splitter::new(framing, link.frame_bytes_max.into());
        let (mut cut, mut at) = (0, 0);
        while let Ok(Some(split)) = splitter.split(&stream[at..]) {
            at += split.whole.len();
            cut += 1;
            if let Ok(opened) = self.header(link).open(split.frame) {
                self.say(&[link.dialect], opened.body);
                probe::view(&self.data);
            }
            let [a, b, c, d, e, f, g, h] = link.echo.to_be_bytes();
            self.say(&[link.dialect, link.header, a, b, c, d, e, f, g, h], split.frame);
            probe::reply(&self.data);
        }
        assert_eq!(frames, cut);
    }

    fn say(&mut self, head: &[u8], rest: &[u8]) {
        self.data.clear();
        self.data.extend_from_slice(head);
        self.data.extend_from_slice(rest);
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")),
        Err(_) => default,
    }
}

#[test]
fn damaged_frames_break_no_promise_and_allocate_no_more_than_a_frame() {
    let seed = from_environment("TOLLGATE_MUTATIONS_SEED", SEED);
    let first = from_environment("TOLLGATE_MUTATIONS_FIRST", 0);
    let cases = from_environment("TOLLGATE_MUTATIONS_CASES", CASES);
    let threads = std::thread::available_parallelism().unwrap().get().min(8) as u64;
    let run = |thread: u64| {
        let (mut mill, mut reached) = (Mill::new(), Reached::default());
        (first + thread..first + cases)
            .step_by(threads.try_into().unwrap())
            .for_each(|case| mill.case(seed, case, &mut reached));
        reached
    };
    let mut reached = Reached::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|at| scope.spawn(move || run(at))).collect();
        threads.into_iter().for_each(|thread| reached += thread.join().expect("no broken promise"));
    });
    println!("{cases} cases: {reached:?}");
    // Whoever replays one case knows what it comes to.
    if cases >= 100_000 {
        let Reached { frames, opened, uncut, read, sound, answered, .. } = reached;
        assert!(frames > cases * 9 / 10, "{frames} frames were cut");
        assert!(uncut > cases / 20, "only {uncut} streams were damaged beyond cutting");
        assert!(opened > cases * 7 / 10 && opened < frames, "{opened} headers were opened");
        assert!(read > cases / 2, "only {read} messages were read");
        assert!(sound > cases / 10 && sound < read, "{sound} messages were sound");
        assert!(answered > cases / 5, "only {answered} messages had an answer");
    }
}

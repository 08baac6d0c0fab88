//! Properties of framing: whatever is joined comes out again however the bytes are chunked, and no
//! bytes at all make it panic.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test states its expectations"
)]

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};
use tollgate::wire::{FrameError, Framing, Splitter};

fn framings() -> impl Strategy<Value = Framing> {
    let digits = (2..=8).map(|digits| Framing::Ascii { digits });
    proptest::sample::select(Framing::ALL.into_iter().chain(digits).collect::<Vec<_>>())
}

/// Those that a frame of any length up to 4,000 bytes can be announced in.
fn counting() -> impl Strategy<Value = Framing> {
    framings().prop_filter("it has a length, and room for these", |framing| {
        *framing != Framing::Etx && framing.frame_bytes_ceiling() >= 4_000
    })
}

/// What is left of `frames` when it has to leave in `framing`: ETX ends a frame where there is no
/// length, and few digits count few bytes.
fn fit(framing: Framing, frames: &mut [Vec<u8>]) {
    for frame in frames {
        frame.truncate(framing.frame_bytes_ceiling());
        if framing == Framing::Etx {
            frame.retain(|byte| *byte != 0x03);
        }
    }
}

/// Mostly short, some empty, some as long as frames get.
fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let sizes = prop_oneof![Just(0), 1..64_usize, 64..2_000_usize];
    vec(sizes.prop_flat_map(|size| vec(any::<u8>(), size)), 0..40)
}

fn joined(framing: Framing, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        framing.join(frame, &mut bytes).unwrap();
    }
    bytes
}

/// Reads a stream in chunks of these sizes, over and over, as a connection would.
fn split_in_chunks(framing: Framing, stream: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let (mut frames, mut buffer, mut rest) = (Vec::new(), Vec::new(), stream);
    let mut splitter = Splitter::new(framing, usize::MAX);
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let (chunk, later) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
        buffer.extend_from_slice(chunk);
        rest = later;
        let mut done = 0;
        while let Some(split) = splitter.split(&buffer[done..]).unwrap() {
            let trailer = framing.overhead_bytes() - framing.prefix_bytes();
            let (head, _) = split.whole.split_at(split.whole.len() - trailer);
            assert!(head.ends_with(split.frame));
            frames.push(split.frame.to_vec());
            done += split.whole.len();
        }
        buffer.drain(..done);
    }
    assert!(buffer.is_empty(), "bytes are left over");
    frames
}

proptest! {
    #[test]
    fn frames_come_out_as_they_went_in_under_any_chunking(
        framing in framings(),
        mut frames in frames(),
        sizes in vec(1..700_usize, 1..8),
    ) {
        fit(framing, &mut frames);
        let stream = joined(framing, &frames);
        prop_assert_eq!(split_in_chunks(framing, &stream, &sizes), frames);
    }

    #[test]
    fn frames_come_out_as_they_went_in_byte_by_byte(
        framing in framings(),
        mut frames in vec(vec(any::<u8>(), 0..40), 0..12),
    ) {
        fit(framing, &mut frames);
        let stream = joined(framing, &frames);
        prop_assert_eq!(split_in_chunks(framing, &stream, &[1]), frames);
    }

    #[test]
    fn bytes_of_any_kind_are_frames_or_faults(
        framing in framings(),
        bytes in vec(any::<u8>(), 0..300),
        frame_bytes_max in 0..70_000_usize,
    ) {
        let mut rest = &bytes[..];
        let mut splitter = Splitter::new(framing, frame_bytes_max);
        while let Ok(Some(split)) = splitter.split(rest) {
            prop_assert!(split.frame.len() <= frame_bytes_max);
            prop_assert!(split.whole.len() >= split.frame.len());
            prop_assert!(!split.whole.is_empty());
            prop_assert!(rest.starts_with(split.whole));
            rest = &rest[split.whole.len()..];
        }
    }

    #[test]
    fn a_frame_above_the_limit_is_refused_from_its_length_alone(
        framing in counting(),
        frame_bytes_max in 1..2_000_usize,
        excess in 1..2_000_usize,
    ) {
        let refused = |excess: usize| {
            let stream = joined(framing, &[vec![b'x'; frame_bytes_max + excess]]);
            let length = &stream[..framing.prefix_bytes()];
            let mut splitter = Splitter::new(framing, frame_bytes_max);
            Ok(splitter.split(length)?.map(|split| split.frame.len()))
        };
        let is_too_long = matches!(
            refused(excess),
            Err(FrameError::TooLong { announced, .. }) if announced == frame_bytes_max + excess
        );
        prop_assert!(is_too_long);
        prop_assert_eq!(refused(0).unwrap(), None, "at the limit it is only not whole yet");
    }
}

#[test]
fn a_thousand_frames_in_one_buffer_come_out_one_by_one() {
    for framing in Framing::ALL {
        let frames: Vec<_> = (0..1_000_usize).map(|n| n.to_string().into_bytes()).collect();
        let stream = joined(framing, &frames);
        assert_eq!(split_in_chunks(framing, &stream, &[stream.len()]), frames);
    }
}

#[test]
fn the_longest_frame_goes_through_and_a_longer_one_does_not() {
    for framing in Framing::ALL {
        // Nobody has buffers for more than this.
        let ceiling = framing.frame_bytes_ceiling();
        if ceiling > 0xff_ffff {
            continue;
        }
        let longest = vec![vec![7; ceiling]];
        assert_eq!(split_in_chunks(framing, &joined(framing, &longest), &[4_096]), longest);
        let mut out = Vec::new();
        assert!(framing.join(&vec![7; ceiling + 1], &mut out).is_err() && out.is_empty());
    }
}

//! R4: what is let through arrives as it was sent, byte for byte, in both directions.

use fastrand::Rng;

use crate::CARD;
use crate::support::house::Plan;
use crate::support::message::{Layout, Message};
use crate::support::peer::Framing;

const LAYOUTS: [Layout; 2] = [Layout::Hex, Layout::Binary];
const FRAMINGS: [Framing; 2] = [Framing::Be16, Framing::Be16Incl];
/// Default of `frame_bytes_max`.
const LONGEST: usize = 4_096;

/// Private fields with a length of three digits, in the order of their numbers.
const PRIVATE: [u8; 12] = [46, 47, 48, 57, 58, 60, 61, 62, 63, 113, 120, 127];

/// A message of which only the head is made of characters: the private fields hold any bytes.
fn with_private_data(head: &Message, layout: Layout, fields: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let marker = |field: u8| format!("<{field:03}>");
    let marked = fields
        .iter()
        .fold(head.clone(), |message, (field, _)| message.with(*field, &marker(*field)));
    let mut bytes = marked.encode_as(layout);
    for (field, data) in fields {
        let prefixed = format!("005{}", marker(*field)).into_bytes();
        let at = bytes.windows(prefixed.len()).position(|window| window == prefixed).unwrap();
        let mut replacement = format!("{:03}", data.len()).into_bytes();
        replacement.extend(data);
        bytes.splice(at..at + prefixed.len(), replacement);
    }
    bytes
}

/// Some private fields with any bytes in them, so that the whole is at most `LONGEST`.
fn private_data(rng: &mut Rng, printable: bool) -> Vec<(u8, Vec<u8>)> {
    let mut left = LONGEST - 400;
    let mut fields = Vec::new();
    for field in PRIVATE {
        if rng.bool() {
            continue;
        }
        let length = rng.usize(0..=left.min(999));
        left -= length;
        let byte = |rng: &mut Rng| if printable { rng.u8(32..127) } else { rng.u8(..) };
        fields.push((field, (0..length).map(|_| byte(rng)).collect()));
    }
    fields
}

fn check_identity(layout: Layout, link_framing: Framing, host_framing: Framing) {
    let mut rng = Rng::with_seed(u64::from(link_framing == host_framing) + 7);
    let mut house = Plan { layout, link_framing, host_framing, ..Plan::default() }.start();
    let mut terminal = house.terminal();
    let mut bytes = 0;
    for stan in 1..=150 {
        let mti = ["0100", "0200", "0120", "0420", "0800"][stan as usize % 5];
        let request = Message::sale(CARD, stan)
            .mti(mti)
            .with(35, "4111111111111111=29121010000012345678")
            .with(52, "00FF0A0D1A7F8081")
            .with(55, "9F2608C2A1");
        let answer = request.answer("00").with(38, "A1B2C3");
        let sent = with_private_data(&request, layout, &private_data(&mut rng, stan % 2 == 0));
        let answered = with_private_data(&answer, layout, &private_data(&mut rng, stan % 2 == 0));
        bytes += sent.len() + answered.len();
        terminal.send(&sent);
        assert!(house.at_host.receive() == sent, "request {stan}");
        house.at_host.send(&answered);
        assert!(terminal.receive() == answered, "answer {stan}");
    }
    assert!(bytes > 300_000, "the messages were to be long: {bytes}");
    assert_eq!(house.proxy.metric_sum("tollgate_parse_errors_total", &["visa"]), 0.0);
}

#[test]
fn r04_private_data_of_any_bytes_pass_unchanged_both_ways_in_every_layout_and_framing() {
    for layout in LAYOUTS {
        for link_framing in FRAMINGS {
            for host_framing in FRAMINGS {
                check_identity(layout, link_framing, host_framing);
            }
        }
    }
}

/// A message of exactly `length` bytes.
fn of_length(head: &Message, layout: Layout, length: usize) -> Vec<u8> {
    let with = |sizes: &[usize]| {
        let fields: Vec<_> = [60, 61, 62, 63, 120].into_iter().zip(sizes).collect();
        let fields: Vec<_> = fields.into_iter().map(|(de, size)| (de, vec![b'x'; *size])).collect();
        with_private_data(head, layout, &fields)
    };
    let mut missing = length - with(&[0; 5]).len();
    let mut sizes = [0; 5];
    for size in &mut sizes {
        *size = missing.min(999);
        missing -= *size;
    }
    with(&sizes)
}

#[test]
fn r04_the_longest_frame_passes_unchanged_both_ways() {
    for (link_framing, host_framing) in
        [(Framing::Be16, Framing::Be16Incl), (Framing::Be16Incl, Framing::Be16)]
    {
        for layout in LAYOUTS {
            let plan = Plan { layout, link_framing, host_framing, ..Plan::default() };
            let mut house = plan.start();
            let mut terminal = house.terminal();
            for (length, stan) in [LONGEST - 1, LONGEST, 255, 256, 257, 1_500].into_iter().zip(1..)
            {
                let sale = Message::sale(CARD, stan);
                let sent = of_length(&sale, layout, length);
                let answered = of_length(&sale.answer("00"), layout, length);
                assert_eq!((sent.len(), answered.len()), (length, length));
                terminal.send(&sent);
                assert!(house.at_host.receive() == sent);
                house.at_host.send(&answered);
                assert!(terminal.receive() == answered);
            }
        }
    }
}

#[test]
fn r04_frames_cut_anywhere_on_their_way_arrive_whole_and_unchanged() {
    let mut rng = Rng::with_seed(11);
    let mut house = Plan::default().start();
    let mut terminal = house.terminal();
    for round in 0..40 {
        let sales: Vec<_> = (0..8).map(|number| Message::sale(CARD, round * 8 + number)).collect();
        let frames: Vec<_> = sales
            .iter()
            .map(|sale| with_private_data(sale, Layout::Hex, &private_data(&mut rng, false)))
            .collect();
        let stream: Vec<u8> = frames.iter().flat_map(|frame| Framing::Be16.wrap(frame)).collect();
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let (chunk, left) = rest.split_at(rng.usize(1..=rest.len().min(700)));
            terminal.send_raw(chunk);
            rest = left;
        }
        for frame in &frames {
            assert!(house.at_host.receive() == *frame);
        }
        let answers: Vec<u8> =
            sales.iter().flat_map(|sale| Framing::Be16.wrap(&sale.answer("00").encode())).collect();
        for chunk in answers.chunks(rng.usize(1..=97)) {
            house.at_host.send_raw(chunk);
        }
        for sale in &sales {
            assert_eq!(terminal.receive(), sale.answer("00").encode());
        }
    }
}

#[test]
fn r04_what_cannot_be_read_passes_unchanged_too() {
    let mut rng = Rng::with_seed(13);
    for layout in LAYOUTS {
        let mut house = Plan { layout, ..Plan::default() }.start();
        let mut terminal = house.terminal();
        for number in 0..300 {
            let mut junk: Vec<u8> = (0..rng.usize(1..=300)).map(|_| rng.u8(..)).collect();
            if number % 3 == 0 {
                junk.splice(..0, *b"0420");
            }
            terminal.send(&junk);
            assert!(house.at_host.receive() == junk, "{}", junk.escape_ascii());
        }
        // Answers: the fault is behind what they are recognised by.
        for stan in 1..=50 {
            let sale = Message::sale(CARD, stan);
            let mut sent = sale.encode_as(layout);
            let mut answered = sale.answer("00").encode_as(layout);
            for frame in [&mut sent, &mut answered] {
                frame.extend((0..rng.usize(1..=40)).map(|_| rng.u8(..)));
            }
            terminal.send(&sent);
            assert!(house.at_host.receive() == sent);
            house.at_host.send(&answered);
            assert!(terminal.receive() == answered);
        }
        let faults = |from| house.proxy.metric_sum("tollgate_parse_errors_total", &[from]);
        assert!(faults("from=\"network\"") >= 300.0);
        assert_eq!(faults("from=\"host\""), 50.0);
    }
}

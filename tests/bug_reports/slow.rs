//! Reports about peers that never finish what they have begun.

use std::io::Write;

use crate::support::house::Plan;
use crate::support::message::Message;
use crate::support::peer::Peer;
use crate::support::wait_for;

const SESSIONS: usize = 500;
const CLOSED: &str = r#"tollgate_sessions_closed_total{link="visa",cause="frame_timeout"}"#;

#[test]
fn hundreds_of_sessions_that_trickle_a_frame_are_closed_and_harm_nobody() {
    let link = "frame_timeout = \"1s\"\nconnections_max = 600".to_owned();
    let mut house = Plan { link, ..Plan::default() }.start();
    let mut healthy = house.terminal();
    let mut serve = |peer: &mut Peer, stan: u32| {
        let sale = Message::sale("4111111111111111", stan);
        peer.send(&sale.encode());
        assert_eq!(house.at_host.receive_message(), sale);
        house.at_host.send(&sale.answer("00").encode());
        assert_eq!(peer.receive_message(), sale.answer("00"));
    };
    let mut slow: Vec<Peer> = (0..SESSIONS)
        .map(|_| house.proxy.connect("visa", crate::support::peer::Framing::Be16))
        .collect();
    // A frame of 4,096 bytes, of which each round brings another one. They are closed in the midst
    // of it, so that what is written may be too late.
    let mut frame = [0x10, 0x00].into_iter().chain(std::iter::repeat_n(b'0', 4_096));
    let mut stan = 0;
    wait_for("every one of them is closed for its slowness", || {
        let byte = frame.next().expect("the frame is not finished meanwhile");
        for peer in &mut slow {
            let _ = peer.stream.write_all(&[byte]);
        }
        stan += 1;
        serve(&mut healthy, stan);
        (house.proxy.metric(CLOSED) == SESSIONS as f64).then_some(())
    });
    slow.iter_mut().for_each(Peer::expect_end);
    let mut fresh = house.proxy.connect("visa", crate::support::peer::Framing::Be16);
    serve(&mut fresh, stan + 1);
}

//! Message types that the standard does not give.

use crate::Form;
use crate::support::message::Message;

const UNKNOWN_TYPES: &str = "tollgate_unknown_types_total";

fn of_type(mti: &str, stan: u32) -> Vec<u8> {
    Message::sale(crate::CARD, stan).mti(mti).encode()
}

#[test]
fn an_unknown_type_goes_its_way_unchanged_and_is_counted_by_what_is_unknown_of_it() {
    let mut way = Form::default().open();
    let counted = |way: &crate::Way, from: &str, part: &str| {
        let labels = format!("link=\"visa\",from=\"{from}\",part=\"{part}\"");
        way.proxy.metric(&format!("{UNKNOWN_TYPES}{{{labels}}}"))
    };
    let from_network =
        [("3100", "version"), ("0000", "class"), ("0180", "function"), ("0106", "origin")];
    for ((mti, part), stan) in from_network.into_iter().zip(1..) {
        way.goes_to_host(&of_type(mti, stan));
        way.proxy.wait_for_metric(
            &format!("{UNKNOWN_TYPES}{{link=\"visa\",from=\"network\",part=\"{part}\"}}"),
            1.0,
        );
    }
    // The host originates one, which goes to the session.
    let from_host = of_type("0990", 5);
    way.at_host.send(&from_host);
    assert!(way.terminal.receive() == from_host, "the host's message came changed");
    way.proxy.wait_for_metric(
        &format!("{UNKNOWN_TYPES}{{link=\"visa\",from=\"host\",part=\"class\"}}"),
        1.0,
    );

    // A type that is known counts as none of them.
    way.goes_to_host(&of_type("0100", 6));
    for (_, part) in from_network {
        assert_eq!(counted(&way, "network", part), 1.0, "{part}");
        assert_eq!(counted(&way, "host", part), f64::from(u8::from(part == "class")), "{part}");
    }
    assert_eq!(way.proxy.metric_sum(UNKNOWN_TYPES, &[]), 5.0);
    for metric in ["tollgate_rejects_total", "tollgate_parse_errors_total"] {
        assert_eq!(way.proxy.metric_sum(metric, &[]), 0.0, "{metric}");
    }
}

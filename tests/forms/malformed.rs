//! Messages that cannot be read to their end, on a link that answers them.

use crate::encoder::Fields;
use crate::{Form, table};

fn fields(mti: &str, stan: &str) -> Fields {
    let fields = [
        (0, mti),
        (2, crate::CARD),
        (3, "000000"),
        (4, "000000001000"),
        (7, "1130045900"),
        (11, stan),
        (12, "261130045900"),
        (41, "TERM0001"),
        (42, "SHOP0001       "),
        (43, "A SHOP"),
    ];
    Fields::from(fields.map(|(de, value)| (de, value.to_owned())))
}

#[test]
fn a_malformed_request_of_1993_is_answered_904_where_its_link_answers_them() {
    let keys = "malformed = \"answer\"".to_owned();
    let mut way = Form { dialect: "iso93_ascii", keys, ..Form::default() }.open();
    let table = table("iso93_ascii");
    // The last field is a byte short.
    let mut cut = table.encode(&fields("1100", "000001"));
    cut.pop();
    way.terminal.send(&cut);
    let mut answer = fields("1110", "000001");
    answer.remove(&43);
    answer.insert(39, "904".to_owned());
    assert_eq!(way.terminal.receive(), table.encode(&answer));
    let counted = |metric: &str, label: &str| way.proxy.metric_sum(metric, &[label]);
    assert_eq!(counted("tollgate_rejects_total", "reason=\"format\""), 1.0);
    assert_eq!(counted("tollgate_parse_errors_total", "kind=\"truncated\""), 1.0);

    // What may not be answered is forwarded, and it is the first that the host sees.
    let mut reversal = table.encode(&fields("1420", "000002"));
    reversal.pop();
    way.goes_to_host(&reversal);
    way.goes_to_host(&table.encode(&fields("1100", "000003")));
    assert_eq!(way.proxy.metric_sum("tollgate_rejects_total", &[]), 1.0);
}

//! What a call says to the script, beside the keys.

use redis::Cmd;

use super::packed::pack;
use crate::quota::protocol::{Call, Report};

/// Numbers of a report.
const REPORT_DOUBLES: usize = 7;

/// Adds the arguments in the order in which the script names them.
pub(super) fn add_arguments(command: &mut Cmd, call: &Call, publish: &str, channel: &str) {
    let Call { node, elapsed_us, since, push, leave, reports } = call;
    command
        .arg(format!("{:016x}", node.0))
        .arg(elapsed_us.map_or(String::new(), |elapsed_us| elapsed_us.to_string()))
        .arg(since.time_us)
        .arg(since.after.map_or(String::new(), |key| key.to_string()))
        .arg(u8::from(*leave))
        .arg(if *push { publish } else { "" })
        .arg(channel)
        .arg(packed(reports));
}

fn packed(reports: &[Report]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(reports.len().saturating_mul(REPORT_DOUBLES * 8));
    for report in reports {
        let Report { key: _, rate, cap, boot, spent, charged, level, local } = *report;
        let numbers: [f64; REPORT_DOUBLES] = [
            rate,
            cap as f64,
            boot as f64,
            spent as f64,
            charged as f64,
            level as f64,
            f64::from(u8::from(local)),
        ];
        pack(&mut bytes, numbers);
    }
    bytes
}

//! The options that say how a host behaves, for whoever needs no script.

use std::time::Duration;

use clap::ArgGroup;

use crate::config;
use crate::peers::{Behaviour, Closing, Latency};

const DELAY_MAX: Duration = Duration::from_secs(3_600);

/// One behaviour from the beginning to the end.
#[derive(clap::Args)]
#[command(group = ArgGroup::new("closes").multiple(true))]
pub(super) struct Behaviours {
    /// How long an answer takes.
    #[arg(long, value_name = "DURATION", value_parser = delay, default_value = "0ms")]
    delay: Duration,
    /// Up to so much more, evenly.
    #[arg(long, value_name = "DURATION", value_parser = delay)]
    jitter: Option<Duration>,
    /// So much more on average, with the long tail of a queue.
    #[arg(long, value_name = "DURATION", value_parser = delay, conflicts_with = "jitter")]
    tail: Option<Duration>,
    /// The share of messages that is never answered.
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = 0.0)]
    drop: f64,
    /// The share of requests that is declined (51). Advices and reversals are not.
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = 0.0)]
    decline: f64,
    /// The share of answers that come later.
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "late_by")]
    late: Option<f64>,
    /// How much later they come.
    #[arg(long, value_name = "DURATION", value_parser = delay, requires = "late")]
    late_by: Option<Duration>,
    /// Close a connection after so many messages.
    #[arg(long, value_name = "N", group = "closes",
          value_parser = clap::value_parser!(u32).range(1..))]
    close_after: Option<u32>,
    /// Close the connection at this share of messages, in place of an answer.
    #[arg(long, value_name = "SHARE", group = "closes", value_parser = share)]
    close_share: Option<f64>,
    /// Write half of the last answer before closing.
    #[arg(long, requires = "closes")]
    mid_frame: bool,
    /// Read so many bytes a second of each connection and no more, so that the sender has to wait.
    #[arg(long, value_name = "BYTES_PER_S",
          value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    slow_read: Option<u32>,
}

impl Behaviours {
    pub(super) fn behaviour(&self) -> Behaviour {
        Behaviour {
            latency: Latency::of(self.delay, self.jitter, self.tail),
            late_share: self.late.unwrap_or(0.0),
            late_by: Latency::Exactly(self.late_by.unwrap_or_default()),
            dropped_share: self.drop,
            declined_share: self.decline,
            closing: Closing {
                after: self.close_after,
                share: self.close_share.unwrap_or(0.0),
                mid_frame: self.mid_frame,
            },
            slow_read: self.slow_read,
            ..Behaviour::PROMPT
        }
    }
}

fn delay(text: &str) -> Result<Duration, String> {
    let delay = config::duration_from_text(text).filter(|delay| *delay <= DELAY_MAX);
    delay.ok_or_else(|| "write a number and a unit, such as 20ms or 2s, at most 1h".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a share from 0 to 1, such as 0.05".to_owned())
}

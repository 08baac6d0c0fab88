//! `tollgate simulate network`: a load of real messages, at a rate or in a window, and a report.
//!
//! It sends invented test cards only, and never more than it was told to. What it prints holds no
//! message and no card number.

mod report;

use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::{EXIT_FORCED, EXIT_USAGE, dialect, wire};
use crate::config::duration_from_text;
use crate::peers::{
    Choice, Flow, Mix, Network, NetworkError, NetworkSettings, Pace, Retry, Shop, Stopper,
};
use crate::wire::{Framing, Header};
use report::Report;

/// Whose shops they are, as field 32 has it.
const ACQUIRER: &str = "123456";
/// What the shops sell, as field 18 has it, one after the other.
const CATEGORIES: [&str; 5] = ["5411", "5912", "5812", "5541", "7832"];
/// The first of the BINs; the others follow it.
const FIRST_BIN: u32 = 411_111;
const MERCHANTS_MAX: u64 = 10_000_000;
const BINS_MAX: u64 = 100_000;
const CONNECTIONS_MAX: u64 = 60_000;
const WINDOW_MAX: u64 = 100_000;
const RATE_MAX: f64 = 5e6;
const SECONDS_MAX: f64 = 86_400.0;
const SKEW_MAX: f64 = 10.0;

/// The arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Exit code: 0 when it ran, whatever became of the messages (the report says what was not answered), \
1 when it could not connect or every connection was closed before the end, 64 when the command line \
is wrong. Ctrl-C ends the sending, waits for the answers that are owed and reports; a second one \
reports at once.")]
pub(in crate::cli) struct Arguments {
    /// Where to connect to: a proxy's link, or a host.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    connect: SocketAddr,
    /// A configuration whose [dialect.NAME] sections may be named.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How frames are told apart.
    #[arg(long, value_name = "FRAMING", default_value = "be16", value_parser = wire::framing)]
    framing: Framing,
    /// The layout of the messages: a preset, or a dialect of the configuration.
    #[arg(long, value_name = "NAME", default_value = "iso87_ascii")]
    dialect: String,
    /// What stands before the MTI: none, tpdu, tpdu+N, visa, base24, fixed:N.
    #[arg(long, value_name = "HEADER", default_value = "none", value_parser = wire::header)]
    header: Header,
    /// How many connections.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX))]
    connections: u64,
    /// Closed loop: so many messages in flight on each connection. A slow answer slows it down.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "rate",
          value_parser = clap::value_parser!(u64).range(1..=WINDOW_MAX))]
    window: u64,
    /// Open loop: so many messages a second over all connections, at random moments (Poisson).
    /// Latency counts from the moment at which a message was to be sent.
    #[arg(long, value_name = "MESSAGES_PER_S", value_parser = rate)]
    rate: Option<f64>,
    /// How long it sends and counts.
    #[arg(long, value_name = "S", default_value = "10", value_parser = seconds)]
    seconds: Duration,
    /// How long it sends before that without counting.
    #[arg(long, value_name = "S", default_value = "0", value_parser = seconds_or_none)]
    warmup: Duration,
    /// How many merchants.
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = clap::value_parser!(u64).range(1..=MERCHANTS_MAX))]
    merchants: u64,
    /// The exponent of the zipf law by which a merchant is drawn; 0: all alike.
    #[arg(long, value_name = "Z", default_value = "0", value_parser = skew)]
    merchant_skew: f64,
    /// How many BINs of six digits, from 411111 on.
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u64).range(1..=BINS_MAX))]
    bins: u64,
    /// The exponent of the zipf law by which a BIN is drawn; 0: all alike.
    #[arg(long, value_name = "Z", default_value = "0", value_parser = skew)]
    bin_skew: f64,
    /// Which messages, in parts: purchase, sale, refund, inquiry, advice, reversal, echo_test.
    #[arg(long, value_name = "KIND=PARTS,...", value_parser = Mix::parse,
          default_value = "purchase=44,sale=32,refund=4,inquiry=6,advice=6,reversal=6,echo_test=2")]
    mix: Mix,
    /// The share, 0 to 1, of requests with a 91 that is tried again: a new message about the same.
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    retry: f64,
    /// How long after the 91.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    retry_after: Duration,
    /// How often one request is tried again at most.
    #[arg(long, value_name = "N", default_value_t = 3)]
    retries: u8,
    /// An advice, a reversal or a line test without an answer is sent again after so long.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    repeat_after: Duration,
    /// How long an answer is waited for; what has none by then counts as unanswered.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    patience: Duration,
    /// A 91 that took less counts as refused at once, and as overdue if not: half the deadline.
    #[arg(long, value_name = "DURATION", default_value = "800ms", value_parser = duration)]
    at_once: Duration,
    /// Equal seeds send equal messages.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The processor that its thread keeps to.
    #[arg(long, value_name = "CPU")]
    pin: Option<usize>,
    /// One JSON object instead of text for people.
    #[arg(long)]
    json: bool,
}

/// Sends what the arguments say, and reports.
pub(super) fn network(arguments: &Arguments) -> ExitCode {
    let dialect = match dialect::find(arguments.config.as_deref(), &arguments.dialect) {
        Ok(dialect) => dialect,
        Err(none) => return none.tell(),
    };
    let settings = NetworkSettings {
        header: arguments.header,
        connections: arguments.connections as usize,
        pace: arguments.pace(),
        warmup: arguments.warmup,
        duration: arguments.seconds,
        patience: arguments.patience,
        repeat_after: arguments.repeat_after,
        retry: Retry {
            share: arguments.retry,
            after: arguments.retry_after,
            times: arguments.retries,
        },
        at_once: arguments.at_once,
        seed: arguments.seed,
        cpu: arguments.pin,
        ..NetworkSettings::new(
            arguments.connect,
            arguments.framing,
            dialect,
            vec![arguments.flow()],
        )
    };
    let stops = match Stops::watch() {
        Ok(stops) => stops,
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "tollgate simulate network: signals: {error}");
            return EXIT_FORCED.into();
        }
    };
    let network = match Network::start(settings) {
        Ok(network) => network,
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "tollgate simulate network: {error}");
            let is_usage = matches!(error, NetworkError::Template(_));
            return if is_usage { EXIT_USAGE } else { EXIT_FORCED }.into();
        }
    };
    stops.tell(network.stopper());
    let tally = network.finish();
    let report = Report { arguments, tally: &tally };
    let mut out = io::stdout().lock();
    // Whoever closed the pipe has seen enough.
    let _ = if arguments.json { report.json(&mut out) } else { report.text(&mut out) };
    if tally.closed >= arguments.connections { EXIT_FORCED.into() } else { ExitCode::SUCCESS }
}

impl Arguments {
    fn pace(&self) -> Pace {
        if self.rate.is_some() { Pace::Rate } else { Pace::Window(self.window as usize) }
    }

    fn flow(&self) -> Flow {
        let categories = CATEGORIES.into_iter().cycle();
        let shops = (1..=self.merchants).zip(categories).map(|(number, category)| Shop {
            acceptor: format!("MERCHANT{number:07}"),
            category: category.to_owned(),
        });
        let bins = (0..self.bins as u32).map(|place| (FIRST_BIN + place).to_string());
        Flow {
            acquirer: ACQUIRER.to_owned(),
            cards: Choice { of: bins.collect(), skew: self.bin_skew },
            shops: Choice { of: shops.collect(), skew: self.merchant_skew },
            rate: self.rate.unwrap_or(1.0),
            mix: self.mix,
        }
    }
}

/// What ends it from outside: SIGINT and SIGTERM.
struct Stops {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Stops {
    /// Takes the signals from now on. Before anything is sent, so that one ends it with its report.
    fn watch() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let entered = runtime.enter();
        let (terminate, interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        drop(entered);
        Ok(Self { runtime, terminate, interrupt })
    }

    /// Hands each signal to the network, from a thread of its own.
    fn tell(self, stopper: Stopper) {
        let Self { runtime, mut terminate, mut interrupt } = self;
        std::thread::spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = terminate.recv() => {}
                        _ = interrupt.recv() => {}
                    }
                    stopper.stop();
                }
            });
        });
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let mut found = text.to_socket_addrs().map_err(|_| "write ADDRESS:PORT".to_owned())?;
    found.next().ok_or_else(|| "nothing is known under that name".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    duration_from_text(text).ok_or_else(|| "write a number and a unit, such as 500ms or 2s".into())
}

fn number(text: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("write a number from {} to {}", range.start(), range.end()))
}

fn rate(text: &str) -> Result<f64, String> {
    number(text, 0.001..=RATE_MAX)
}

fn share(text: &str) -> Result<f64, String> {
    number(text, 0.0..=1.0)
}

fn skew(text: &str) -> Result<f64, String> {
    number(text, 0.0..=SKEW_MAX)
}

fn seconds(text: &str) -> Result<Duration, String> {
    number(text, 0.01..=SECONDS_MAX).map(Duration::from_secs_f64)
}

fn seconds_or_none(text: &str) -> Result<Duration, String> {
    number(text, 0.0..=SECONDS_MAX).map(Duration::from_secs_f64)
}

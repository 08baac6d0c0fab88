//! `tollgate simulate host`: an authorization host for staging, that answers, and misbehaves as it
//! is told.
//!
//! It serves until it is stopped, or for so many seconds, and ends with a report of what it has
//! seen. Nothing of a message is in it but types and response codes.

mod behaviour;
mod report;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::cli::{EXIT_CONFIG, EXIT_FORCED, dialect};
use crate::clock::{Clock, Moment};
use crate::config;
use crate::iso8583::Dialect;
use crate::peers::{Echo, Host, HostSettings, HostTally, Script};
use crate::wire::{Framing, Header};
use behaviour::Behaviours;
use report::Report;

/// How often it says what it has seen.
const PROGRESS: Duration = Duration::from_secs(10);
/// A week.
const SECONDS_MAX: u64 = 7 * 24 * 3_600;

/// What is typed behind `simulate host`.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Where it listens; port 0 takes a free one, which the first line says.
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// How frames are told apart.
    #[arg(long, value_name = "FRAMING", default_value = "be16", value_parser = framing)]
    framing: Framing,
    /// What stands before the MTI: none, tpdu, tpdu+N, visa, base24, fixed:N. Answers carry it
    /// turned round.
    #[arg(long, value_name = "HEADER", default_value = "none", value_parser = header)]
    header: Header,
    /// The layout of messages: a preset, or a dialect of the configuration.
    #[arg(long, value_name = "NAME", default_value = "iso87_ascii")]
    dialect: String,
    /// A configuration whose [dialect.NAME] sections may be named.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    behaviour: Behaviours,
    /// Follow the phases of this file (docs/simulate.md).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["Behaviours", "echo"])]
    script: Option<PathBuf>,
    /// Give every message back as its own answer, read no further than its MTI (ASCII only).
    #[arg(long, conflicts_with = "Behaviours")]
    echo: bool,
    /// Equal seeds draw equal latencies and shares for equal messages.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// End after so long; without it SIGINT or SIGTERM ends it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    seconds: Option<u64>,
    /// One JSON object a line instead of text for people.
    #[arg(long)]
    json: bool,
    /// No line every 10 seconds.
    #[arg(long)]
    quiet: bool,
}

/// Why it does not run.
struct Refusal {
    exit: u8,
    why: String,
}

/// Serves until it has served long enough: exit 0; 1 when the address cannot be had, 78 for a faulty
/// script or configuration.
pub(super) fn host(arguments: &Arguments) -> ExitCode {
    let played = if arguments.echo {
        dialect_of(arguments).and_then(|dialect| echo(arguments, &dialect))
    } else {
        settings(arguments).and_then(|settings| serve(arguments, settings))
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(Refusal { exit, why }) => {
            // A closed terminal cannot be told anything.
            let _ = writeln!(io::stderr().lock(), "{why}");
            exit.into()
        }
    }
}

fn dialect_of(arguments: &Arguments) -> Result<Arc<Dialect>, Refusal> {
    let dialect = dialect::find(arguments.config.as_deref(), &arguments.dialect);
    dialect.map_err(|none| Refusal { exit: none.exit, why: none.why })
}

fn settings(arguments: &Arguments) -> Result<HostSettings, Refusal> {
    let dialect = dialect_of(arguments)?;
    let script = match &arguments.script {
        Some(path) => Script::Phases(config::load_script(path).map_err(|error| Refusal {
            exit: EXIT_CONFIG,
            why: format!("{}: {error}", path.display()),
        })?),
        None => Script::Issuer(arguments.behaviour.behaviour()),
    };
    let Arguments { listen, framing, header, seed, .. } = *arguments;
    Ok(HostSettings { listen, framing, header, dialect, script, seed })
}

/// Gives every message back until it has done so long enough.
fn echo(arguments: &Arguments, dialect: &Dialect) -> Result<(), Refusal> {
    let Arguments { listen, framing, header, json, .. } = *arguments;
    runtime()?.block_on(async {
        let stops = Stops::watch().map_err(|error| failed(format!("signals: {error}")))?;
        let echo = Echo::start(listen, framing, header, dialect)
            .map_err(|error| failed(format!("cannot listen on {listen}: {error}")))?;
        let clock = Clock::start();
        print(&report::listening(echo.address(), json));
        let seconds = arguments.seconds.map(Duration::from_secs);
        tokio::select! {
            () = stops.come() => {}
            () = sleep(seconds.unwrap_or_default()), if seconds.is_some() => {}
        }
        let ran = clock.now().since(Moment::START);
        print(&report::echoed(echo.address(), ran, echo.answered(), json));
        Ok(())
    })
}

fn failed(why: String) -> Refusal {
    Refusal { exit: EXIT_FORCED, why }
}

fn runtime() -> Result<tokio::runtime::Runtime, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| failed(error.to_string()))
}

fn serve(arguments: &Arguments, settings: HostSettings) -> Result<(), Refusal> {
    let listen = settings.listen;
    runtime()?.block_on(async {
        // Before anybody can know that it runs, so that a signal ends it with its report.
        let stops = Stops::watch().map_err(|error| failed(format!("signals: {error}")))?;
        let host = Host::start(settings)
            .map_err(|error| failed(format!("cannot listen on {listen}: {error}")))?;
        let clock = Clock::start();
        let json = arguments.json;
        print(&report::listening(host.address(), json));
        let seconds = arguments.seconds.map(Duration::from_secs);
        let mut said = Said { at: clock.now(), tally: HostTally::default() };
        tokio::select! {
            () = stops.come() => {}
            () = sleep(seconds.unwrap_or_default()), if seconds.is_some() => {}
            () = tell(&host, clock, json, &mut said), if !arguments.quiet => {}
        }
        let ran = clock.now().since(Moment::START);
        let address = host.address();
        print(&Report { address, ran, tally: &host.finish() }.told(json));
        Ok(())
    })
}

/// What the last line said.
struct Said {
    at: Moment,
    tally: HostTally,
}

/// Says every now and then what came, for ever.
async fn tell(host: &Host, clock: Clock, json: bool, said: &mut Said) {
    let mut ticks = interval(PROGRESS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let (now, tally) = (clock.now(), host.tally());
        let messages = tally.messages().saturating_sub(said.tally.messages());
        let rate = report::rate(messages, now.since(said.at));
        print(&report::progress(now.since(Moment::START), rate, &tally, json));
        *said = Said { at: now, tally };
    }
}

/// Whoever closed the pipe is still served.
fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// What ends it from outside.
struct Stops {
    terminate: Signal,
    interrupt: Signal,
}

impl Stops {
    fn watch() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn come(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn framing(name: &str) -> Result<Framing, String> {
    Framing::from_name(name).ok_or_else(|| {
        let names = Framing::ALL.map(Framing::name).join(", ");
        format!("write {names} or ascii:2 to ascii:8")
    })
}

fn header(name: &str) -> Result<Header, String> {
    let names = Header::NAMES.join(", ");
    Header::from_name(name).ok_or_else(|| format!("write one of {names} (N from 1 to 64)"))
}

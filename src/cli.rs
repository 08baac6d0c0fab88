//! The command line: what an operator types, and what the exit code says.

mod check;
mod decode;
mod demo;
mod dialect;
mod explain;
mod input;
mod run;
mod simulate;
mod wire;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::config::duration_from_text;

/// Exit code of a command line that cannot be read (EX_USAGE of sysexits).
const EXIT_USAGE: u8 = 64;
/// Exit code of a configuration that is wrong (EX_CONFIG).
const EXIT_CONFIG: u8 = 78;
/// Exit code of a run that was forced to end, or failed.
const EXIT_FORCED: u8 = 1;

/// ISO 8583 ingress proxy: frames, limits and forwards card messages, and answers Field 39 = 91
/// when the authorization host must be spared.
#[derive(Parser)]
#[command(name = "tollgate", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the links of a configuration until SIGTERM or SIGINT.
    Run {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// For tests: so long after the start, the lease sync does nothing for so long.
        #[arg(long, value_name = "AFTER,FOR", hide = true, value_parser = parking)]
        park_sync: Option<(Duration, Duration)>,
    },
    /// Check a configuration and say all that is wrong with it: exit 0, or 78. Or show a dialect.
    Check {
        /// The configuration file.
        #[arg(long, value_name = "FILE", required_unless_present = "dialect")]
        config: Option<PathBuf>,
        /// Try the hosts and the store that it names as well, and say what was found: exit 1 when one
        /// of them is not there. Nothing is sent to a host, and no bucket is changed.
        #[arg(long, requires = "config", conflicts_with = "dialect")]
        connect: bool,
        /// Show how this dialect lays messages out: a preset, or one of the configuration file.
        #[arg(long, value_name = "NAME")]
        dialect: Option<String>,
    },
    /// Tell a message field by field, masked, or where it breaks: exit 0, or 1 with a fault.
    Decode(decode::Arguments),
    /// Say what would become of a message under a configuration, and why.
    Explain(explain::Arguments),
    /// Play a network and a host around a real proxy on loopback, with a live table.
    Demo {
        /// How long it plays.
        #[arg(long, value_name = "SECONDS", default_value_t = 20,
              value_parser = clap::value_parser!(u64).range(2..=3_600))]
        seconds: u64,
    },
    /// Play one end of the line alone, for staging and for measuring.
    #[command(subcommand)]
    Simulate(simulate::Simulate),
}

fn parking(text: &str) -> Result<(Duration, Duration), &'static str> {
    let (after, during) = text.split_once(',').ok_or("write two durations, such as 2s,5s")?;
    let both = duration_from_text(after).zip(duration_from_text(during));
    both.ok_or("write two durations, such as 2s,5s")
}

/// Whether an error quotes what may be a piece of a message: digits that were put where an option
/// or a command should stand.
fn may_repeat_a_message(error: &clap::Error) -> bool {
    let text = error.to_string();
    let mut words = text.split(|character: char| !character.is_ascii_alphanumeric());
    words.any(|word| word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Reads the command line and does what it says.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if may_repeat_a_message(&error) => {
            let why = "error: the command line cannot be read, and may hold a message; see --help";
            let _ = writeln!(std::io::stderr().lock(), "{why}");
            return EXIT_USAGE.into();
        }
        Err(error) => {
            // Help and version come this way too, and are no errors. A closed terminal cannot be
            // told anything.
            let _ = error.print();
            return if error.use_stderr() { EXIT_USAGE.into() } else { ExitCode::SUCCESS };
        }
    };
    match cli.command {
        Command::Run { config, park_sync } => run::run(&config, park_sync),
        Command::Check { config, connect, dialect } => {
            check::check(config.as_deref(), connect, dialect.as_deref())
        }
        Command::Decode(arguments) => decode::decode(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Simulate(simulate) => simulate::simulate(simulate),
        Command::Demo { seconds } => demo::demo(Duration::from_secs(seconds)),
    }
}

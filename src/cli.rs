//! The command line: what an operator types, and what the exit code says.

mod check;
mod decode;
mod demo;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    },
    /// Check a configuration and say all that is wrong with it: exit 0, or 78. Or show a dialect.
    Check {
        /// The configuration file.
        #[arg(long, value_name = "FILE", required_unless_present = "dialect")]
        config: Option<PathBuf>,
        /// Show how this dialect lays messages out: a preset, or one of the configuration file.
        #[arg(long, value_name = "NAME")]
        dialect: Option<String>,
    },
    /// Tell a message field by field, masked, or where it breaks: exit 0, or 1 with a fault.
    Decode(decode::Arguments),
    /// Play a network and a host around a real proxy on loopback, with a live table.
    Demo {
        /// How long it plays.
        #[arg(long, value_name = "SECONDS", default_value_t = 20,
              value_parser = clap::value_parser!(u64).range(2..=3_600))]
        seconds: u64,
    },
}

/// Reads the command line and does what it says.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too, and are no errors. A closed terminal cannot be
            // told anything.
            let _ = error.print();
            return if error.use_stderr() { EXIT_USAGE.into() } else { ExitCode::SUCCESS };
        }
    };
    match cli.command {
        Command::Run { config } => run::run(&config),
        Command::Check { config } => check::check(&config),
        Command::Decode(arguments) => decode::decode(&arguments),
        Command::Demo { seconds } => demo::demo(std::time::Duration::from_secs(seconds)),
    }
}

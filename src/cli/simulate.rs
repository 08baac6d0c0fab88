//! `tollgate simulate`: one end of the line, for staging and for load tests.

mod host;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// What is typed behind `simulate`.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    peer: Peer,
}

#[derive(Subcommand)]
enum Peer {
    /// An authorization host that answers, and misbehaves as it is told.
    Host(host::Arguments),
}

/// Plays the peer until it has played long enough.
pub(super) fn simulate(arguments: Arguments) -> ExitCode {
    match arguments.peer {
        Peer::Host(arguments) => host::host(&arguments),
    }
}

//! `tollgate simulate`: one end of the line alone, for staging and for load tests.

mod host;
mod network;

use std::process::ExitCode;

use clap::Subcommand;

/// Which end.
#[derive(Subcommand)]
pub(super) enum Simulate {
    /// An authorization host: answers, and misbehaves as it is told.
    Host(Box<host::Arguments>),
    /// A card network: sends messages of invented test cards, and tells what became of them.
    Network(Box<network::Arguments>),
}

/// Plays it.
pub(super) fn simulate(simulate: Simulate) -> ExitCode {
    match simulate {
        Simulate::Host(arguments) => host::host(&arguments),
        Simulate::Network(arguments) => network::network(&arguments),
    }
}

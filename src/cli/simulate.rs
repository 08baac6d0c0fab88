//! `tollgate simulate`: one end of the line alone.

mod network;

use std::process::ExitCode;

use clap::Subcommand;

/// Which end.
#[derive(Subcommand)]
pub(super) enum Simulate {
    /// A card network: sends messages of invented test cards, and tells what became of them.
    Network(Box<network::Arguments>),
}

/// Plays it.
pub(super) fn simulate(simulate: Simulate) -> ExitCode {
    match simulate {
        Simulate::Network(arguments) => network::network(&arguments),
    }
}

//! `tollgate explain`: what would become of one message under a configuration, and why.
//!
//! Nothing of the message is repeated but its type and the keys of the limits it meets, of which a BIN
//! is the most that a card number gives.

mod json;
mod live;
mod text;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::Value;

use super::input::Input;
use super::{EXIT_CONFIG, EXIT_FORCED, EXIT_USAGE};
use crate::clock::Moment;
use crate::config::{Config, Link};
use crate::exchange::{Exchange, Explained};
use crate::gate::Gate;
use crate::limits::{LimitIx, Policy};
use crate::wire::{Framing, Splitter};

/// The command line of `explain`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The link that the message comes in on.
    #[arg(long, value_name = "NAME")]
    link: String,
    /// Ask the running node what is left in its buckets. Without it all buckets are full.
    #[arg(long)]
    live: bool,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
    /// The message with its header, with or without its length: hexadecimal digits, a file, or - for
    /// standard input.
    #[arg(value_name = "INPUT", required = true)]
    input: Vec<OsString>,
}

/// A message under a configuration.
struct Case<'a> {
    link: &'a Link,
    policy: &'a Policy,
    explained: Explained,
    /// Its length stood before it.
    framed: bool,
    /// Its limits stand as in the running node.
    live: bool,
    /// How their keys stand to the store, where the running node leases its tokens.
    leases: Vec<(LimitIx, Value)>,
}

impl Case<'_> {
    fn lease(&self, limit: LimitIx) -> Option<&Value> {
        self.leases.iter().find(|(of, _)| *of == limit).map(|(_, lease)| lease)
    }
}

/// Says what would become of a message.
pub(super) fn explain(arguments: &Arguments) -> ExitCode {
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, why)) => {
            let _ = writeln!(io::stderr().lock(), "{why}");
            code.into()
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), (u8, String)> {
    let path = &arguments.config;
    let config = Config::load(path);
    let config = config.map_err(|error| (EXIT_CONFIG, format!("{}: {error}", path.display())))?;
    let link = link_of(&config, path, &arguments.link)?;
    let input = Input::read(&arguments.input);
    let input = input.map_err(|error| (EXIT_USAGE, format!("error: {error}")))?;
    let policy = Policy::new(&config.limits, &config.link_names(), 1, 0, Moment::START);
    let policy = policy.map_err(|fault| (EXIT_CONFIG, fault.to_string()))?;
    let policy = Arc::new(policy);
    let mut node = live::Node::new(&config, arguments.live);
    let (explained, framed) = explain_frame(link, &policy, &input.bytes, &mut node);
    let leases = node.answered().map_err(|why| (EXIT_FORCED, format!("error: {why}")))?;
    let case = Case { link, policy: &policy, explained, framed, live: arguments.live, leases };
    let page = if arguments.json { format!("{}\n", json::page(&case)) } else { text::page(&case) };
    // Whoever closed the pipe does not want to read it.
    let _ = io::stdout().lock().write_all(page.as_bytes());
    Ok(())
}

fn link_of<'a>(config: &'a Config, path: &Path, name: &str) -> Result<&'a Link, (u8, String)> {
    config.links.iter().find(|link| link.name == name).ok_or_else(|| {
        let names = config.link_names().join(", ");
        (EXIT_USAGE, format!("error: {} has no such link; it has {names}", path.display()))
    })
}

/// The frame as it is or, where that cannot be read and the link's length stands before it, without.
fn explain_frame(
    link: &Link,
    policy: &Arc<Policy>,
    bytes: &[u8],
    node: &mut live::Node<'_>,
) -> (Explained, bool) {
    let gate = Gate::new(link.id, link.gate.clone(), Arc::clone(policy));
    let dialect = Arc::clone(&link.dialect);
    let exchange = Exchange::new(&link.exchange, dialect, link.header, gate, 0);
    let framing = link.session.framing;
    let mut explain = |frame: &[u8]| {
        let carries = |answer: &[u8]| framing.carries(answer);
        exchange.explain(frame, Moment::START, carries, |traffic, standings| {
            node.correct(policy, traffic, standings);
        })
    };
    let whole = explain(bytes);
    if is_sound(&whole) {
        return (whole, false);
    }
    match unframed(framing, bytes).map(|frame| explain(&frame)) {
        Some(inner) if is_sound(&inner) || !has_type(&whole) => (inner, true),
        _ => (whole, false),
    }
}

fn has_type(explained: &Explained) -> bool {
    !matches!(explained, Explained::Unreadable(_))
}

fn is_sound(explained: &Explained) -> bool {
    match explained {
        Explained::Unreadable(_) => false,
        Explained::Rejected(..) | Explained::Answer(_) => true,
        Explained::Request(request) => request.fault.is_none(),
    }
}

/// What is in the one frame that the bytes are.
fn unframed(framing: Framing, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut splitter = Splitter::new(framing, framing.frame_bytes_ceiling());
    let split = splitter.split(bytes).ok()??;
    (split.whole.len() == bytes.len()).then(|| split.frame.to_vec())
}

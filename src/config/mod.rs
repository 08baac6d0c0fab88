//! The configuration file: TOML to the settings of each module.
//!
//! It owns how settings are written and which of them go together; what they mean is their module's
//! affair, and no module knows of this one. A file is read to its end whatever is wrong with it, so
//! that an operator sees all [`Faults`] at once, each with its line, its key and a remedy.
//!
//! It refuses what it does not know: a misspelt key that was skipped would leave a default in force
//! that nobody asked for. Reading a file binds no port, resolves no name and changes nothing.

mod answers;
mod dialect;
mod dialect_field;
mod duration;
mod fault;
mod limit;
mod limit_amount;
mod limit_key;
mod limit_value;
mod link;
mod listening;
mod node;
mod operations;
mod quota;
mod reader;
mod redis;
mod script;
mod upstream;
mod value;
mod warnings;

use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;
use toml::de::DeTable;

use self::dialect::Dialects;
pub use self::duration::from_text as duration_from_text;
use self::fault::Wrong;
pub use self::fault::{Fault, Faults};
pub use self::link::{HostDown, Link};
use self::listening::Listening;
pub use self::node::{ADMIN_LISTEN, Log, LogFormat, Node};
pub use self::quota::Quota;
use self::reader::{Report, Section};
pub use self::script::{load_script, parse_script};
use self::upstream::Upstreams;
use crate::iso8583::Dialect;
use crate::limits::rule::Rule;

/// Largest file that is read: a hundred thousand keys of limits fit.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Sections of the reference that this version does not have.
const LATER: [&str; 4] = ["window", "replay", "journal", "card"];

/// A whole file, sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// This process.
    pub node: Node,
    /// Where the admin interface listens; `None` is off.
    pub admin: Option<SocketAddr>,
    /// What is logged.
    pub log: Log,
    /// The ways in, at least one.
    pub links: Vec<Link>,
    /// The limits, of which there may be none.
    pub limits: Vec<Rule>,
    /// Where their tokens are kept.
    pub quota: Quota,
    /// The dialects of this file by name, in its order; links share them.
    pub dialects: Vec<(String, Arc<Dialect>)>,
    /// Hosts that no link names.
    pub upstreams_unused: Vec<String>,
}

impl Config {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        read_by(text, Self::read)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or all that is wrong with it.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let text = text_of(path)?;
        Ok(Self::parse(&text)?)
    }

    /// Reads nothing of a file but its dialects: one may be tried before there is a link for it.
    ///
    /// # Errors
    /// When the file cannot be read, or all that is wrong with its dialects.
    pub fn load_dialects(path: &Path) -> Result<Vec<(String, Arc<Dialect>)>, LoadError> {
        let text = text_of(path)?;
        Ok(read_by(&text, |root| Dialects::read(&root).sound())?)
    }

    /// The links' names, by their place.
    pub fn link_names(&self) -> Vec<String> {
        names_of(&self.links)
    }

    fn read(root: Section<'_>) -> Option<Self> {
        let node = Node::read(root.table("node"));
        let log = Log::read(root.table("log"));
        let quota = Quota::read(root.table("quota"));
        let mut listening = Listening::default();
        let admin = node::admin(root.table("admin"), &mut listening);
        let upstreams = Upstreams::read(&root);
        let dialects = Dialects::read(&root);
        let classes = operations::classes(root.table("classes"));
        let links = link::read_all(&root, &upstreams, &dialects, classes, &mut listening);
        let names = links.as_ref().map(|links| names_of(links));
        let limits = limit::read_all(&root, names.as_deref());
        for target in upstreams.targets() {
            if let Some(whose) = listening.reached_by(&target.value) {
                let problem = format!("{} is {whose}", target.value);
                let remedy = "write the host's address: tollgate would connect to itself";
                root.fault(&target.place, &Wrong::new(problem, remedy));
            }
        }
        root.finish(&LATER);
        classes?;
        Some(Self {
            node: node?,
            admin: admin?,
            log: log?,
            links: links?,
            limits: limits?,
            quota: quota?,
            dialects: dialects.sound()?,
            upstreams_unused: upstreams.unused(),
        })
    }
}

fn names_of(links: &[Link]) -> Vec<String> {
    links.iter().map(|link| link.name.clone()).collect()
}

/// Reads the text of a file by its root, with every fault noted.
fn read_by<T>(text: &str, read: impl FnOnce(Section<'_>) -> Option<T>) -> Result<T, Faults> {
    let report = Report::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        report.add_syntax(text, error);
    }
    // What TOML itself cannot read is not there to be read: more faults would be false ones.
    let read =
        if errors.is_empty() { read(Section::root(&report, document.get_ref())) } else { None };
    report.conclude(read)
}

fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 16 MiB"));
    }
    Ok(text)
}

/// Why there is no configuration.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The file can be read and is wrong.
    #[error(transparent)]
    Faults(#[from] Faults),
}

//! What the process asks of the system before it starts.

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use tracing::{info, warn};

/// Forbids core dumps, which would hold card numbers (PCI DSS 3.3), and raises the limit of open
/// files to what the system allows: every session is one.
pub fn harden() {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    if let Err(error) = setrlimit(Resource::Core, none) {
        warn!(%error, "core dumps cannot be limited");
    }
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        warn!(%error, "core dumps cannot be forbidden");
    }
    let files = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: files.maximum, maximum: files.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => info!(from = ?files.current, to = ?files.maximum, "open files"),
        Err(error) => warn!(%error, "the limit of open files cannot be raised"),
    }
}

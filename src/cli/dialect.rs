//! Which dialect a name on the command line means: one of a configuration, or a preset.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use super::{EXIT_CONFIG, EXIT_USAGE};
use crate::config::Config;
use crate::iso8583::Dialect;

/// Why there is none.
#[derive(Debug)]
pub(super) struct NoDialect {
    pub(super) exit: u8,
    pub(super) why: String,
}

impl NoDialect {
    /// Tells it and gives the exit code.
    pub(super) fn tell(&self) -> ExitCode {
        use std::io::Write;
        // A closed terminal cannot be told anything.
        let _ = writeln!(std::io::stderr().lock(), "{}", self.why);
        self.exit.into()
    }
}

/// The dialect of this name. Of a configuration nothing but its dialects is read: one is tried
/// before there is a link for it.
pub(super) fn find(config: Option<&Path>, name: &str) -> Result<Arc<Dialect>, NoDialect> {
    let own = match config {
        Some(path) => Config::load_dialects(path).map_err(|error| NoDialect {
            exit: EXIT_CONFIG,
            why: format!("{}: {error}", path.display()),
        })?,
        None => Vec::new(),
    };
    if let Some((_, dialect)) = own.iter().find(|(known, _)| known == name) {
        return Ok(Arc::clone(dialect));
    }
    Dialect::preset(name).map(Arc::new).ok_or_else(|| {
        let names = own.iter().map(|(name, _)| name.as_str());
        let names: Vec<&str> = names.chain(Dialect::PRESETS.iter().copied()).collect();
        let hint = if config.is_none() { "; one of your own needs --config FILE" } else { "" };
        let why = format!("there is no such dialect; there are {}{hint}", names.join(", "));
        NoDialect { exit: EXIT_USAGE, why }
    })
}

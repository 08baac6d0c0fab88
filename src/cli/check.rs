//! `tollgate check`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::EXIT_CONFIG;
use crate::config::Config;

/// Says what is wrong with a configuration, or what it amounts to.
pub(super) fn check(path: &Path) -> ExitCode {
    match Config::load(path) {
        Ok(config) => {
            let mut out = std::io::stdout().lock();
            // Whoever closed the pipe does not want to read it.
            let _ = describe(path, &config, &mut out);
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr().lock(), "{}: {error}", path.display());
            EXIT_CONFIG.into()
        }
    }
}

fn describe(path: &Path, config: &Config, out: &mut impl Write) -> std::io::Result<()> {
    for warning in config.warnings() {
        writeln!(out, "warning: {warning}")?;
    }
    for link in &config.links {
        let listen: Vec<_> = link.listener.listen.iter().map(ToString::to_string).collect();
        let (framing, header) = (link.session.framing.name(), link.header);
        writeln!(
            out,
            "link {}: {} ({framing}, header {header}) -> {} at {}, deadline {:?}",
            link.name,
            listen.join(", "),
            link.upstream.name,
            link.upstream.connect.join(", "),
            link.exchange.deadline,
        )?;
    }
    let limits = config.limits.len();
    writeln!(out, "{}: sound, {} links, {limits} limits", path.display(), config.links.len())
}

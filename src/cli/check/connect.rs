//! `tollgate check --connect`: whether what a configuration names is there, tried from this machine.
//!
//! Nothing is sent to a host, and no bucket of a store is changed.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::cli::EXIT_FORCED;
use crate::clock::Clock;
use crate::config::Config;
use crate::quota::protocol::NodeId;
use crate::quota::redis::{Warning, try_out};

/// A host that is there has answered by then.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tries every upstream and the store, says what it found, and whether all is there.
pub(super) fn connect(config: &Config) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "cannot try anything: {error}");
            return EXIT_FORCED.into();
        }
    };
    let mut out = io::stdout().lock();
    let all_there = runtime.block_on(async {
        let hosts = try_hosts(config, &mut out).await?;
        Ok::<bool, io::Error>(hosts & try_store(config, &mut out).await?)
    });
    match all_there {
        // Whoever closed the pipe does not want to read it.
        Ok(true) | Err(_) => ExitCode::SUCCESS,
        Ok(false) => EXIT_FORCED.into(),
    }
}

async fn try_hosts(config: &Config, out: &mut impl Write) -> io::Result<bool> {
    let mut tried = BTreeSet::new();
    let mut all_there = true;
    for upstream in config.links.iter().map(|link| &link.upstream) {
        for address in &upstream.connect {
            if !tried.insert((&upstream.name, address)) {
                continue;
            }
            let name = &upstream.name;
            let began = Clock::start();
            match timeout(PATIENCE, TcpStream::connect(address.as_str())).await {
                Ok(Ok(_)) => {
                    let ms = began.now().nanos() as f64 / 1e6;
                    writeln!(out, "upstream {name}: {address} takes connections ({ms:.1} ms)")?;
                }
                Ok(Err(error)) => {
                    all_there = false;
                    writeln!(out, "upstream {name}: {address} FAILS: {error}")?;
                }
                Err(_) => {
                    all_there = false;
                    writeln!(out, "upstream {name}: {address} FAILS: no answer in {PATIENCE:?}")?;
                }
            }
        }
    }
    Ok(all_there)
}

async fn try_store(config: &Config, out: &mut impl Write) -> io::Result<bool> {
    let Some(settings) = &config.quota.redis else {
        writeln!(out, "store: embedded, in this process")?;
        return Ok(true);
    };
    writeln!(out, "store: {}", settings.deployment)?;
    let node = NodeId(fastrand::u64(..));
    let mut all_there = true;
    for tried in try_out(settings, config.quota.sync.shards, node, Clock::start()).await {
        let shard = tried.shard;
        match tried.outcome {
            Ok(found) => writeln!(out, "store: shard {shard}: {found}")?,
            Err(failure) => {
                all_there = false;
                writeln!(out, "store: shard {shard} FAILS: {failure}")?;
            }
        }
        for Warning(text) in &tried.warnings {
            writeln!(out, "warning: the store: {text}")?;
        }
    }
    Ok(all_there)
}

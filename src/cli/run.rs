//! `tollgate run`: the process around a server.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tracing::{error, info, warn};
use tracing_appender::non_blocking::NonBlocking;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, fmt, registry};

use super::{EXIT_CONFIG, EXIT_FORCED};
use crate::config::{Config, Log, LogFormat};
use crate::server::{self, Exit, Server, Stop};

/// A second signal ends at once; more than that say nothing new.
const SIGNALS_MAX: usize = 2;

/// Serves a configuration until a signal.
pub(super) fn run(path: &Path, park_sync: Option<(Duration, Duration)>) -> ExitCode {
    let config = match Config::load(path) {
        Ok(config) => config,
        Err(error) => {
            let _ = writeln!(std::io::stderr().lock(), "{}: {error}", path.display());
            return EXIT_CONFIG.into();
        }
    };
    let (lines, _written_at_the_end) = tracing_appender::non_blocking(std::io::stderr());
    let lost_lines = lines.error_counter();
    start_log(&config.log, lines);
    silence_panics();
    info!(version = env!("CARGO_PKG_VERSION"), config = %path.display(), "tollgate");
    for warning in config.warnings() {
        warn!("{warning}");
    }
    server::harden();
    let stop = watch_signals();
    let served = Server::bind(config).and_then(|mut server| {
        if let Some((after, during)) = park_sync {
            server.park_sync(after, during);
        }
        server.published().counts_lost_lines(lost_lines);
        server.run(stop)
    });
    match served {
        Ok(Exit::Clean) => ExitCode::SUCCESS,
        Ok(Exit::Forced) => EXIT_FORCED.into(),
        Err(error) => {
            error!("{error}");
            EXIT_FORCED.into()
        }
    }
}

/// Logs go to standard error, of this crate alone: no library prints what it was handed. A thread of
/// its own writes them, and lines are lost and counted rather than that a worker waits for whoever
/// reads the log.
fn start_log(log: &Log, lines: NonBlocking) {
    let of_this_crate = Targets::new().with_target(env!("CARGO_CRATE_NAME"), log.level);
    let lines = fmt::layer().with_writer(lines).with_ansi(false);
    let lines = match log.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    // It fails only where there is a log already, and then that one is written.
    let _ =
        tracing::subscriber::set_global_default(registry().with(lines.with_filter(of_this_crate)));
}

/// A panic says where, never what: its message may quote the bytes that it stumbled over.
fn silence_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        error!(%place, "internal fault, please report it");
    }));
}

/// SIGTERM and SIGINT as stops; SIGHUP is none. They get a thread of their own, so that they are heard whatever the
/// rest does. When this returns they are, and do not end the process the way they do by default.
fn watch_signals() -> mpsc::Receiver<Stop> {
    let (sender, stops) = mpsc::channel(SIGNALS_MAX);
    let (watching, is_watching) = std::sync::mpsc::channel();
    let watch = move || -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(async {
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut hangup = signal(SignalKind::hangup())?;
            // Nobody waits for it twice.
            let _ = watching.send(());
            loop {
                let by = tokio::select! {
                    _ = terminate.recv() => "SIGTERM",
                    _ = interrupt.recv() => "SIGINT",
                    // Sent by those who rotate logs or reload; by default it would end the process.
                    _ = hangup.recv() => {
                        info!("SIGHUP: nothing to reload, the configuration is read at the start");
                        continue;
                    }
                };
                // A full queue holds a second signal already.
                let _ = sender.try_send(Stop { by });
            }
        })
    };
    std::thread::spawn(move || {
        if let Err(error) = watch() {
            error!(%error, "signals cannot be watched");
        }
    });
    // An error is a thread that could not watch, and has said so.
    let _ = is_watching.recv();
    stops
}

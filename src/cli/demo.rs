//! `tollgate demo`: a card network and an authorization host, both simulated, around the real proxy
//! on loopback, for whoever has never seen one.
//!
//! It needs nothing prepared and ends by itself. Along the way the host has a bad day: it is slow
//! for a while, and later one of its connections is cut. What the proxy promises is checked at the
//! end, and a promise that did not hold is the exit code.

mod scene;
mod stage;
mod summary;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use super::EXIT_FORCED;
use crate::clock::{Clock, Moment};
use crate::config::Config;
use stage::{Act, Stage, StageError};
use summary::Summary;
use table::Table;

/// What the demo runs.
const CONFIG: &str = include_str!("../../config/demo.toml");

/// Plays for so long.
pub(super) fn demo(duration: Duration) -> ExitCode {
    let mut out = io::stdout().lock();
    match play(duration, &mut out) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => EXIT_FORCED.into(),
        // Whoever closed the pipe has seen enough.
        Err(StageError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "tollgate demo: {error}");
            EXIT_FORCED.into()
        }
    }
}

/// Plays, and says whether every promise held.
fn play(duration: Duration, out: &mut impl Write) -> Result<bool, StageError> {
    let config = Config::parse(CONFIG)?;
    let stage = Stage::set(config, duration)?;
    introduce(&stage, duration, out)?;
    let clock = Clock::start();
    let began = clock.now();
    let mut acts = Act::in_order(duration).peekable();
    let mut table = Table::new(&stage.tally(), stage.counters());
    for second in 1..=duration.as_secs() {
        let row = Duration::from_secs(second);
        while let Some((at, act)) = acts.next_if(|(at, _)| *at < row) {
            sleep_until(began.after(at), &clock);
            stage.perform(act);
            writeln!(out, "  -- {:.1}s: {}", at.as_secs_f64(), stage.announcement(act))?;
        }
        sleep_until(began.after(row), &clock);
        table.row(row, &stage.tally(), stage.counters(), out)?;
    }
    let curtain = stage.end();
    let summary = Summary::new(&curtain, duration);
    summary.print(out)?;
    Ok(summary.all_held())
}

fn introduce(stage: &Stage, duration: Duration, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "tollgate demo: a card network and a bank's authorization host, both simulated, around the \
         real proxy.\n\
         It sends test cards only, stays on this machine and ends by itself after {} s.\n\n  \
         network, {} connections  -->  tollgate {}  -->  host {}\n\n  \
         configuration   config/demo.toml\n  \
         metrics         curl http://{}/metrics   (while it runs)\n",
        duration.as_secs(),
        stage::CONNECTIONS,
        stage.proxy,
        stage.host_address(),
        stage.admin,
    )?;
    for scene in &stage.scenes {
        writeln!(out, "  {:>5.0} messages/s   {}", scene.flow.rate, scene.intention)?;
    }
    writeln!(out)
}

fn sleep_until(moment: Moment, clock: &Clock) {
    std::thread::sleep(moment.since(clock.now()));
}

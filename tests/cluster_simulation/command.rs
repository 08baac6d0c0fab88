//! What can be asked for on the command line.

use std::io::{self, Write};

use crate::cluster::leased::Leased;
use crate::cluster::outcome::Outcome;
use crate::cluster::rejected::{DemandLease, FixedBlocks, StaticShare, TimerOnly};
use crate::cluster::table::{HEAD, Play, Row};
use crate::cluster::workload::Workload;
use crate::cluster::workloads;
use crate::cluster::world::play;

pub(crate) const USAGE: &str = "\
usage: leases table [--seeds 1-20,101-120] [--quick]    every workload
       leases workload NAME [--seeds ...]               one of them
       leases seed NAME SEED                            one seed of it, with its events counted
       leases rejected [--seeds ...]                    designs that were rejected
";

const SEEDS: &str = "1-20,101-120";
const QUICK_SEEDS: &str = "1-2";

/// Designs that were rejected.
pub(crate) const REJECTED: [(&str, Play); 4] = [
    ("500 tokens every 100 ms", play::<FixedBlocks>),
    ("rate / n, burst / n", play::<StaticShare>),
    ("lent on demand, given back", play::<DemandLease>),
    ("leases renewed by a timer alone", play::<TimerOnly>),
];

/// The workloads that show why.
const TELLING: [&str; 9] = [
    "steady-4",
    "hop-4",
    "hop-16",
    "first-seen",
    "first-seen-small",
    "flash-16",
    "abuser-4",
    "slow-16",
    "store-down-5",
];

/// Does what is asked for. `Ok(false)`: something is not as it must be.
pub(crate) fn run(arguments: &[String], out: &mut dyn Write) -> io::Result<bool> {
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let is_quick = take_flag(&mut arguments, "--quick");
    let default = if is_quick { QUICK_SEEDS } else { SEEDS };
    let chosen = take_option(&mut arguments, "--seeds");
    let Some(seeds) = seeds(chosen.unwrap_or(default)) else {
        write!(out, "{USAGE}")?;
        return Ok(false);
    };
    match *arguments {
        ["table"] => rows(workloads::all(), &seeds, play::<Leased>, out),
        ["workload", name] => {
            rows(workloads::named(name).into_iter().collect(), &seeds, play::<Leased>, out)
        }
        ["seed", name, seed] => match (workloads::named(name), seed.parse()) {
            (Some(workload), Ok(seed)) => one(&workload, seed, out),
            _ => unknown(out),
        },
        ["rejected"] => {
            rejected(if chosen.is_some() { &seeds } else { &[1, 2, 3] }, out).map(|()| true)
        }
        _ => unknown(out),
    }
}

/// `1-20,101-120` and the like.
pub(crate) fn seeds(text: &str) -> Option<Vec<u64>> {
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        seeds.extend(first.parse::<u64>().ok()?..=last.parse().ok()?);
    }
    Some(seeds)
}

fn rows(
    workloads: Vec<Workload>,
    seeds: &[u64],
    play: Play,
    out: &mut dyn Write,
) -> io::Result<bool> {
    if workloads.is_empty() {
        return unknown(out);
    }
    write!(out, "{HEAD}")?;
    let mut faults = Vec::new();
    for workload in workloads {
        let row = Row::play(workload, seeds, play);
        writeln!(out, "{row}")?;
        out.flush()?;
        faults.extend(row.fault());
    }
    faults.iter().try_for_each(|fault| writeln!(out, "{fault}"))?;
    Ok(faults.is_empty())
}

fn one(workload: &Workload, seed: u64, out: &mut dyn Write) -> io::Result<bool> {
    writeln!(out, "{}: {}", workload.name, workload.about)?;
    let row = Row::play(workload.clone(), &[seed], play::<Leased>);
    writeln!(out, "{HEAD}{row}")?;
    let Outcome { events, first_false, broken, fingerprint, .. } = &row.sum;
    events.iter().try_for_each(|(event, times)| writeln!(out, "{times:>10}  {event}"))?;
    first_false.iter().try_for_each(|refusal| writeln!(out, "{refusal}"))?;
    broken.iter().try_for_each(|wrong| writeln!(out, "{wrong}"))?;
    writeln!(out, "{fingerprint:016x}  of all decisions")?;
    Ok(row.fault().is_none())
}

fn rejected(seeds: &[u64], out: &mut dyn Write) -> io::Result<()> {
    let telling: Vec<_> =
        workloads::all().into_iter().filter(|one| TELLING.contains(&one.name)).collect();
    for (design, play) in REJECTED {
        writeln!(out, "{design}\n{}", HEAD.trim_end())?;
        for workload in &telling {
            writeln!(out, "{}", Row::play(workload.clone(), seeds, play))?;
        }
    }
    Ok(())
}

fn unknown(out: &mut dyn Write) -> io::Result<bool> {
    let names: Vec<_> = workloads::all().iter().map(|workload| workload.name).collect();
    writeln!(out, "{USAGE}workloads: {}", names.join(" "))?;
    Ok(false)
}

fn take_flag(arguments: &mut Vec<&str>, flag: &str) -> bool {
    let before = arguments.len();
    arguments.retain(|argument| *argument != flag);
    arguments.len() < before
}

fn take_option<'a>(arguments: &mut Vec<&'a str>, option: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| *argument == option)?;
    let value = arguments.get(at + 1).copied()?;
    arguments.drain(at..at + 2);
    Some(value)
}

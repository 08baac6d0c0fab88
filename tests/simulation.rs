//! One exchange with its real gate, limits and buffers among a network and a host that do whatever
//! networks and hosts do, in virtual time, checked after each event against a model.
//!
//! `TOLLGATE_SEED=n cargo test --test simulation` plays one seed alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "a test states its expectations"
)]

#[path = "simulation/effects.rs"]
mod effects;
#[path = "simulation/host.rs"]
mod host;
#[path = "simulation/hosting.rs"]
mod hosting;
#[path = "support/from_dialect.rs"]
mod message;
#[path = "simulation/model.rs"]
mod model;
#[path = "simulation/network.rs"]
mod network;
#[path = "simulation/port.rs"]
mod port;
#[path = "simulation/said_by_host.rs"]
mod said_by_host;
#[path = "simulation/scene.rs"]
mod scene;
#[path = "simulation/sent.rs"]
mod sent;
#[path = "simulation/tally.rs"]
mod tally;
#[path = "simulation/world.rs"]
mod world;

use port::Cheat;
use tally::Tally;
use world::World;

const SEEDS: u64 = 320;
const STEPS: usize = 300;

/// Plays one seed; what is wrong is said with the step in which it showed.
fn play(seed: u64, cheat: Cheat) -> Result<Tally, String> {
    let mut world = World::new(seed, cheat);
    for step in 0..STEPS {
        world.step().map_err(|wrong| format!("step {step}: {wrong}"))?;
    }
    world.finish().map_err(|wrong| format!("at the end: {wrong}"))?;
    Ok(world.tally)
}

#[test]
fn every_rule_of_the_exchange_holds_whatever_network_and_host_do() {
    let chosen = std::env::var("TOLLGATE_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let seeds = chosen.map_or(0..SEEDS, |seed| seed..seed + 1);
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    for seed in seeds {
        match play(seed, Cheat::Nothing) {
            Ok(seen) => tally.add(seen),
            Err(wrong) => failures.push(format!("seed {seed}, {wrong}")),
        }
    }
    assert!(
        failures.is_empty(),
        "{} seeds failed; TOLLGATE_SEED=n cargo test --test simulation plays one alone\n{}",
        failures.len(),
        failures.iter().take(10).cloned().collect::<Vec<_>>().join("\n")
    );
    if chosen.is_none() {
        tally.is_complete(10).unwrap();
    }
}

#[test]
fn the_model_notices_a_port_that_cheats() {
    for cheat in Cheat::ALL {
        let noticed = (0..20).any(|seed| play(seed, cheat).is_err());
        assert!(noticed, "{cheat:?} was not noticed");
    }
}

#[test]
fn a_seed_plays_the_same_every_time() {
    let told = |seed| format!("{:?}", play(seed, Cheat::Nothing));
    for seed in [1, 7] {
        assert_eq!(told(seed), told(seed));
    }
}

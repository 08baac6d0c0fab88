//! What a scrape costs the control thread: at most 5 ms for a node of four links and four limits. No
//! worker is touched by it: all that is read are atomic words.
#![allow(clippy::unwrap_used, reason = "a bench states its expectations")]

use std::sync::{Arc, OnceLock};

use divan::{Bencher, counter::ItemsCount};
use tollgate::clock::Clock;
use tollgate::gate::Codes;
use tollgate::limits::{Burst, Per, Policy, Rate, Rule};
use tollgate::metrics::{Published, PublishedLink};

fn main() {
    divan::main();
}

/// A node of so many links, and of as many limits up to the most there are.
fn node(links: usize) -> Published {
    let clock = Clock::start();
    let names: Vec<String> = (0..links).map(|link| format!("link-{link}")).collect();
    let (rate, burst) = (Rate::per_second(10.0).unwrap(), Burst::tokens(10.0).unwrap());
    let rule = |limit: usize| Rule::new(&format!("limit-{limit}"), Per::MERCHANT, rate, burst);
    let rules: Vec<Rule> = (0..links.min(16)).map(rule).collect();
    let policy = Policy::new(&rules, &names, 1, 42, clock.now()).unwrap();
    let link = |name: &String| PublishedLink {
        name: name.clone(),
        upstream: "host".to_owned(),
        codes: Codes::default(),
        counters: Arc::default(),
    };
    Published {
        node: "bench".to_owned(),
        links: names.iter().map(link).collect(),
        policy: Arc::new(policy),
        clock,
        leasing: None,
        lost_lines: OnceLock::new(),
    }
}

/// The second row is series per second.
#[divan::bench(args = [1, 4, 16, 64])]
fn scrape(bencher: Bencher, links: usize) {
    let node = node(links);
    let series = node.render(true).lines().filter(|line| !line.starts_with('#')).count();
    bencher.counter(ItemsCount::new(series)).bench(|| node.render(true));
}

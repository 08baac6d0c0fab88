//! The corpus of the fuzz targets keeps its promises in every run of the tests, and its seeds are
//! what the fixtures give. `BLESS=1 cargo test --test fuzz_corpus` writes the seeds anew.
//!
//! In `fuzz/corpus` a target's files that end in `.bin` are committed: `found-…` are inputs that once
//! broke a promise, all others are seeds. What a fuzzer leaves beside them is probed as well.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test states its expectations"
)]

#[path = "support/csv.rs"]
mod csv;
#[path = "support/encoder.rs"]
#[allow(dead_code, reason = "only whole messages are built here")]
mod encoder;
#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "support/purchase.rs"]
mod purchase;
#[path = "support/seeds.rs"]
mod seeds;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tollgate::probe;

type Files = BTreeMap<String, Vec<u8>>;

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

fn files(target: &str) -> Files {
    let folder = std::fs::read_dir(folder(target)).expect("the target's corpus");
    folder
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect()
}

/// Each target's seeds by the names of their files.
fn seeds() -> [(&'static str, Files); 3] {
    let seeds = seeds::seeds();
    [("split", seeds.split), ("view", seeds.view), ("reply", seeds.reply)].map(|(target, seeds)| {
        let files = seeds.into_iter().map(|(name, bytes)| (format!("{name}.bin"), bytes));
        (target, files.collect())
    })
}

#[test]
fn the_seeds_are_what_the_fixtures_give() {
    for (target, seeds) in seeds() {
        if std::env::var_os("BLESS").is_some() {
            std::fs::create_dir_all(folder(target)).unwrap();
            for name in files(target).keys().filter(|name| is_seed(name)) {
                std::fs::remove_file(folder(target).join(name)).unwrap();
            }
            for (name, bytes) in &seeds {
                std::fs::write(folder(target).join(name), bytes).unwrap();
            }
        }
        let committed: Files =
            files(target).into_iter().filter(|(name, _)| is_seed(name)).collect();
        let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
        let advice = "BLESS=1 cargo test --test fuzz_corpus writes them so";
        assert_eq!(names(&committed), names(&seeds), "{target}: {advice}");
        for (name, bytes) in &seeds {
            assert!(committed[name] == *bytes, "{target}/{name} is another: {advice}");
        }
    }
}

fn is_seed(name: &str) -> bool {
    name.ends_with(".bin") && !name.starts_with("found-")
}

/// Runs a target's files; how many of them came as far as a message goes.
fn reach(target: &str, probe: impl Fn(&[u8]) -> bool) -> usize {
    let files = files(target);
    let seeds = seeds().into_iter().find(|(name, _)| *name == target).unwrap().1;
    assert!(files.len() >= seeds.len() && seeds.len() > 50, "{target}: {} files", files.len());
    files.values().filter(|bytes| probe(bytes)).count()
}

#[test]
fn every_stream_of_the_corpus_is_cut_as_promised() {
    let with_frames = reach("split", |bytes| probe::split(bytes) > 0);
    assert!(with_frames >= 78, "only {with_frames} hold a frame");
}

#[test]
fn every_message_of_the_corpus_is_viewed_as_promised() {
    let with_fields = reach("view", |bytes| probe::view(bytes) > 2);
    assert!(with_fields >= 58, "only {with_fields} hold three fields");
}

#[test]
fn every_frame_of_the_corpus_is_answered_as_promised() {
    let answered = reach("reply", probe::reply);
    assert!(answered >= 30, "only {answered} have an answer");
}

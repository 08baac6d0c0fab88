//! Configuration files: what is wrong with one is said all at once, each fault with its line, its
//! key and a remedy; the reference file says what the defaults are.
//!
//! `fixtures/config/invalid` holds one file for each rule, and beside it in `.err` what must be said
//! of it. `BLESS=1 cargo test --test config` writes the `.err` files anew; read the difference
//! before it is committed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tollgate::config::{Config, Faults, LoadError};
use tollgate::limits::rule;

const INVALID: usize = 142;
const VALID: usize = 10;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The `.toml` files of a folder, by name.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect(folder);
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn faults_of(path: &Path) -> Faults {
    match Config::load(path) {
        Err(LoadError::Faults(faults)) => faults,
        Err(LoadError::Unreadable(error)) => panic!("{}: {error}", path.display()),
        Ok(_) => panic!("{} has no fault", path.display()),
    }
}

fn sound(text: &str) -> Config {
    Config::parse(text).unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn every_rule_that_is_broken_is_said_exactly() {
    let files = files("fixtures/config/invalid");
    assert_eq!(files.len(), INVALID, "state here how many files there are");
    let mut mismatches = Vec::new();
    for path in &files {
        let said = format!("{}\n", faults_of(path));
        let expected = path.with_extension("err");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &said).unwrap();
        } else if fs::read_to_string(&expected).is_ok_and(|expected| expected == said) {
            continue;
        }
        mismatches.push(format!("{} should be:\n{said}", expected.display()));
    }
    assert!(
        mismatches.is_empty(),
        "{}\nBLESS=1 cargo test --test config writes them so; run it again without BLESS.",
        mismatches.join("\n")
    );
}

#[test]
fn every_fault_has_its_line_its_key_and_a_remedy() {
    let mut seen = 0;
    for path in files("fixtures/config/invalid") {
        let text = read(&path);
        let faults = faults_of(&path);
        assert!(faults.iter().is_sorted_by_key(|fault| fault.line), "{}", path.display());
        for fault in &faults {
            assert!((1..=text.lines().count()).contains(&fault.line), "{fault}");
            for part in [&fault.key, &fault.problem, &fault.remedy] {
                assert!(!part.trim().is_empty() && !part.contains('\n'), "{fault}");
            }
            let said = fault.to_string();
            assert!(said.starts_with(&format!("line {}: {}: ", fault.line, fault.key)), "{said}");
            assert!(said.ends_with(&format!("; {}", fault.remedy)), "{said}");
            seen += 1;
        }
    }
    assert!(seen > INVALID, "{seen} faults in {INVALID} files");
}

#[test]
fn five_faults_are_five_lines() {
    let faults = faults_of(&root().join("fixtures/config/invalid/five_faults.toml"));
    assert_eq!(faults.iter().count(), 5, "{faults}");
    assert_eq!(faults.to_string().lines().count(), 5);
}

#[test]
fn no_fault_repeats_a_card_number() {
    let path = root().join("fixtures/config/invalid/limit_key_bin_is_a_card_number.toml");
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).count();
    for fault in &faults_of(&path) {
        assert!(digits(&fault.problem) <= 6, "{fault}");
    }
}

#[test]
fn sound_files_are_sound() {
    let files: Vec<_> = files("fixtures/config/valid").into_iter().chain(files("config")).collect();
    assert!(files.len() > VALID, "state here how many files there are at least");
    for path in files {
        let config =
            Config::load(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(rule::faults(&config.limits), [], "{}", path.display());
        let warned = path.ends_with("warned.toml");
        assert_eq!(!config.warnings().is_empty(), warned, "{:?}", config.warnings());
    }
}

#[test]
fn the_reference_says_what_the_defaults_are() {
    let reference = sound(&read(&root().join("config/tollgate.toml")));
    let required = root().join("fixtures/config/valid/required_keys_of_the_reference.toml");
    assert_eq!(reference, sound(&read(&required)));
}

/// The remedy for a key that is like no other names all that there are.
#[test]
fn the_reference_names_every_key() {
    let reference = read(&root().join("config/tollgate.toml"));
    let written: BTreeSet<&str> = reference
        .lines()
        .filter_map(|line| line.split_once(" = ").map(|(key, _)| key))
        .filter(|key| !key.starts_with('#'))
        .collect();
    let path = root().join("fixtures/config/invalid/unknown_key_everywhere.toml");
    let mut known = 0;
    for fault in &faults_of(&path) {
        let remedy = fault.remedy.as_str();
        let names = remedy
            .strip_prefix("use one of ")
            .or_else(|| remedy.strip_prefix("the only one is "))
            .expect("a list of keys");
        for name in names.split(", ") {
            let section = [']', '.'].map(|end| reference.contains(&format!(".{name}{end}")));
            let section = section.contains(&true);
            assert!(section || written.contains(name), "config/tollgate.toml lacks {name}");
            known += 1;
        }
    }
    assert!(known > 40, "only {known} keys were compared");
}

#[test]
fn every_warning_is_given() {
    let config = sound(&read(&root().join("fixtures/config/valid/warned.toml")));
    let expected = read(&root().join("fixtures/config/valid/warned.warnings"));
    assert_eq!(config.warnings(), expected.lines().collect::<Vec<_>>());
}

#[test]
fn a_file_that_cannot_be_read_is_no_fault_of_its_lines() {
    let error = Config::load(&root().join("config/missing.toml")).unwrap_err();
    assert!(matches!(error, LoadError::Unreadable(_)), "{error}");
    assert!(error.to_string().starts_with("cannot be read: "), "{error}");
}

/// Whatever is done to a file, reading it ends, in a configuration that the limiter accepts or in
/// faults that have lines.
#[test]
fn no_damage_to_a_file_makes_its_reader_panic() {
    let files: Vec<_> = files("config").into_iter().chain(files("fixtures/config/valid")).collect();
    let texts: Vec<Vec<u8>> = files.iter().map(|path| read(path).into_bytes()).collect();
    assert!(!texts.is_empty());
    let (mut sound, mut faulty) = (0, 0);
    for seed in 0..6_000u64 {
        let mut random = fastrand::Rng::with_seed(seed);
        let damaged = damage(&texts[random.usize(..texts.len())], &mut random);
        match Config::parse(&String::from_utf8_lossy(&damaged)) {
            Ok(config) => {
                assert_eq!(rule::faults(&config.limits), [], "seed {seed}");
                config.warnings();
                sound += 1;
            }
            Err(faults) => {
                assert!(faults.iter().count() > 0, "seed {seed}");
                assert!(faults.iter().all(|fault| fault.line > 0), "seed {seed}");
                faulty += 1;
            }
        }
    }
    assert!(sound > 300 && faulty > 3_000, "{sound} sound, {faulty} faulty");
}

/// Up to three slips: a byte changed, left out, doubled or put in, a line left out or moved.
fn damage(text: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    const MARKS: &[u8] = b"\"'[]{}=.,#\n\\-_+0129aeinf \xC3\xFF\x00";
    let mut damaged = text.to_vec();
    for _ in 0..random.usize(1..=3) {
        let at = random.usize(..damaged.len());
        match random.u8(..7) {
            0 => damaged[at] = random.u8(..),
            1 => damaged[at] = MARKS[random.usize(..MARKS.len())],
            2 => damaged.insert(at, MARKS[random.usize(..MARKS.len())]),
            3 => {
                damaged.remove(at);
            }
            4 => damaged.insert(at, damaged[at]),
            5 => damaged.truncate(at + 1),
            _ => {
                let mut lines: Vec<&[u8]> = damaged.split(|byte| *byte == b'\n').collect();
                let taken = lines.remove(random.usize(..lines.len()));
                if random.bool() {
                    lines.insert(random.usize(..=lines.len()), taken);
                }
                damaged = lines.join(&b'\n');
                damaged.push(b'\n');
            }
        }
    }
    damaged
}

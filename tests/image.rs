//! The image, as far as its files tell without building it: two stages, not root, the binary as
//! process 1 so that SIGTERM arrives at it, and nothing copied that is not there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

use std::path::Path;

const DOCKERFILE: &str = include_str!("../Dockerfile");
const IGNORED: &str = include_str!("../.dockerignore");
const MANIFEST: &str = include_str!("../Cargo.toml");

/// The arguments of every instruction of a kind.
fn all(instruction: &str) -> impl Iterator<Item = &str> {
    DOCKERFILE.lines().filter_map(move |line| line.strip_prefix(instruction)?.strip_prefix(' '))
}

/// The arguments of the last of them, which is the one that counts.
fn last(instruction: &str) -> &str {
    all(instruction).last().unwrap_or_else(|| panic!("no {instruction}"))
}

#[test]
fn the_image_runs_the_binary_itself_and_not_as_root() {
    assert_eq!(all("FROM").count(), 2);
    assert!(last("USER").parse::<u32>().expect("a number") > 0);
    assert_eq!(last("STOPSIGNAL"), "SIGTERM");
    // A list, or a shell would be process 1 and keep the signal to itself.
    assert_eq!(last("ENTRYPOINT"), r#"["/usr/local/bin/tollgate"]"#);
    let config = all("COPY").find_map(|copy| copy.strip_prefix("config/single-node.toml "));
    assert_eq!(last("CMD"), format!(r#"["run", "--config", "{}"]"#, config.unwrap()));
}

#[test]
fn everything_that_the_image_copies_is_there_and_not_left_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    for copy in all("COPY").filter(|copy| !copy.starts_with("--from")) {
        let (from, _) = copy.rsplit_once(' ').unwrap();
        sources.extend(from.split(' '));
    }
    assert!(sources.len() >= 6, "{sources:?}");
    for source in &sources {
        assert!(root.join(source).exists(), "{source}");
        let top = source.split('/').next().unwrap();
        assert!(!IGNORED.lines().any(|ignored| ignored == top), "{source}");
    }
    // The manifest names benches, which cargo wants to see even when it builds none of them.
    for part in ["src", "benches", "Cargo.toml", "Cargo.lock"] {
        assert!(sources.contains(&part), "{part}");
    }
    assert!(MANIFEST.contains("[[bench]]"));
}

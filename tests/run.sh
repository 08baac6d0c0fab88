#!/usr/bin/env bash
# Installs what the tests need and runs them all: format, lints, docs, tests, shipped configurations.
# Works on a fresh machine with a Rust toolchain; ends with the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

need_component() { # name of the cargo subcommand, name of the component
    cargo "$1" --version >/dev/null 2>&1 || rustup component add "$2"
}

step "what the tests need"
need_component fmt rustfmt
need_component clippy clippy
cargo --version

step "format"
cargo fmt --all -- --check

step "lints, warnings denied"
cargo clippy --all-targets --locked -- -D warnings

step "docs, warnings denied"
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked --quiet

step "tests"
cargo test --locked

step "configurations"
for file in config/*.toml; do
    cargo run --quiet --locked -- check --config "$file"
done

step "all passed"

#!/usr/bin/env bash
# Installs what the tests need and runs them all: format, lints, docs, tests, shipped configurations.
# Works on a fresh machine with a Rust toolchain; ends with the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

need_component() { # name of the cargo subcommand, name of the component
    cargo "$1" --version >/dev/null 2>&1 || rustup component add "$2"
}

need_packages() { # of Debian
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
}

need_redis() ( # of the tests that start servers of their own; Sentinel is another mode of the same program
    if command -v redis-server && command -v redis-cli; then return; fi >/dev/null
    # Debian's package starts a service on the usual port unless a program of this name forbids it.
    policy=/usr/sbin/policy-rc.d as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    if [ ! -e "$policy" ]; then
        trap '"${as_root[@]}" rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
        "${as_root[@]}" chmod 755 "$policy"
    fi
    need_packages redis-server
    # Nor is it to start with the machine.
    if [ -d /run/systemd/system ]; then "${as_root[@]}" systemctl disable --quiet redis-server; fi
)

need_second_decoder() { # of tests/second_decoder.rs, which looks for it in the target directory
    local target venv wanted=tests/foreign/requirements.txt
    target=$(cargo metadata --format-version 1 --no-deps --locked |
        sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
    venv="$target/second-decoder"
    if cmp -s "$wanted" "$venv/installed.txt" && "$venv/bin/python3" -c 'import iso8583'; then
        return
    fi
    # Debian's python3 comes without what fills a virtual environment.
    python3 -c 'import venv, ensurepip' 2>/dev/null || need_packages python3 python3-venv
    python3 -m venv --clear "$venv"
    "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check \
        --require-hashes --requirement "$wanted"
    cp "$wanted" "$venv/installed.txt"
}

step "what the tests need"
need_component fmt rustfmt
need_component clippy clippy
need_second_decoder
need_redis
# docs/first-limit.md, which tests/first_limit.rs follows, looks at a node with it.
command -v curl >/dev/null || need_packages curl
cargo --version

step "format"
cargo fmt --all -- --check

step "lints, warnings denied"
cargo clippy --all-targets --locked -- -D warnings

step "docs, warnings denied"
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked --quiet

step "tests"
cargo test --locked

# The library as a release optimizes it and with every check of overflow, over the dependencies that
# are built already: a release build of them all would take longer than everything else here.
step "five million damaged frames"
CARGO_PROFILE_DEV_OPT_LEVEL=3 TOLLGATE_MUTATIONS_CASES=5000000 cargo test --locked --test mutations

step "configurations"
for file in config/*.toml; do
    cargo run --quiet --locked -- check --config "$file"
done

step "all passed"

#!/usr/bin/env bash
# What takes longer than anybody waits for: every workload of the cluster simulation over forty seeds.
# `cargo run --release --example leases -- table` prints what comes of them.
set -euo pipefail
cd "$(dirname "$0")/.."

export TOLLGATE_CLUSTER_SEEDS=${TOLLGATE_CLUSTER_SEEDS:-1-20,101-120}
cargo test --release --locked --test cluster_simulation

#!/usr/bin/env bash
# What takes longer than anybody waits for: every workload of the cluster simulation over forty seeds, and
# more of the orders in which threads may meet in a cell.
# `cargo run --release --example leases -- table` prints what comes of them.
set -euo pipefail
cd "$(dirname "$0")/.."

export TOLLGATE_CLUSTER_SEEDS=${TOLLGATE_CLUSTER_SEEDS:-1-20,101-120}
cargo test --release --locked --test cluster_simulation
# One preemption more than in every run.
TOLLGATE_LOOM_PREEMPTIONS=4 cargo test --release --locked --test cell_loom

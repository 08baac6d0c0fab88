#!/usr/bin/env bash
# What takes longer than anybody waits for: every workload of the cluster simulation over forty seeds, more
# of the orders in which threads may meet in a cell, a minute of conforming clients at nodes on a
# Redis, and five seconds of each fault that may befall it.
# `cargo run --release --example leases -- table` prints what comes of them.
set -euo pipefail
cd "$(dirname "$0")/.."

export TOLLGATE_CLUSTER_SEEDS=${TOLLGATE_CLUSTER_SEEDS:-1-20,101-120}
cargo test --release --locked --test cluster_simulation
# One preemption more than in every run.
TOLLGATE_LOOM_PREEMPTIONS=4 cargo test --release --locked --test cell_loom
# It needs redis-server, which tests/run.sh installs.
TOLLGATE_LONG=1 cargo test --release --locked --test redis_nodes --test redis_faults \
    --test redis_cluster --test redis_sentinel

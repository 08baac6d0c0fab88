#!/usr/bin/env bash
# tollgate beside HAProxy and nginx under the same load, in one interleaved run; passes or fails by
# the ratios of docs/performance.md.
#
#   bash benches/versus.sh [--quick] [--rounds N] [--shapes "64x1 16x8"]
#
# Exit code 0: every "must" held. The proxy has core 0; the load generator and the host share core 1.
cd "$(dirname "$0")/.."
source benches/versus/stage.sh

rounds=3 seconds=3 warmup=1
# connections x messages in flight on each
shapes="4x8 16x8 64x1 256x1 64x64"
while [ $# -gt 0 ]; do
    case $1 in
    --quick) rounds=2 seconds=1 warmup=0.5 ;;
    --rounds) rounds=$2 && shift ;;
    --shapes) shapes=$2 && shift ;;
    *) die "usage: benches/versus.sh [--quick] [--rounds N] [--shapes \"64x1 16x8\"]" ;;
    esac
    shift
done

source benches/versus/contestants.sh

for round in $(seq "$rounds"); do
    for shape in $shapes; do
        say "round $round of $rounds, $shape"
        for who in $(in_turn "$round" direct haproxy nginx tollgate); do
            load "$shape" "$round" "$who" "${shape%x*}" --window "${shape#*x}"
        done
    done
    say "round $round of $rounds, refusals"
    for who in $(in_turn "$round" direct refuse); do
        load refusals "$round" "$who" 16 --rate 20000
    done
    for who in $(in_turn "$round" haproxy refuse); do
        load refusals-only "$round" "$who" 16 --window 8
    done
done

# Half of what HAProxy carried at 64x1: where queues are short and every hop shows.
half=$(python3 benches/versus/report.py half "$results")
for round in $(seq $((half > 0 ? rounds : 0))); do
    say "round $round of $rounds, at half load ($half messages/s)"
    for who in $(in_turn "$round" direct haproxy tollgate); do
        load half-load "$round" "$who" 64 --rate "$half"
    done
done

end_all
[ -z "${VERSUS_RESULTS:-}" ] || cp "$results" "$VERSUS_RESULTS"
python3 benches/versus/report.py report "$results"

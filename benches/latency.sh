#!/usr/bin/env bash
# Round trips against load, and docs/latency.svg drawn from them.
#
#   bash benches/latency.sh [--quick] [--draw]
#
# --draw only draws docs/latency.tsv anew.
cd "$(dirname "$0")/.."
source benches/versus/stage.sh

loads="2500 5000 10000 20000 40000 60000 80000" rounds=3 seconds=2 warmup=0.5
case ${1:-} in
"") ;;
--quick) loads="5000 20000 60000" rounds=1 seconds=1 ;;
--draw)
    python3 benches/versus/plot.py docs/latency.tsv docs/latency.svg
    exit
    ;;
*) die "usage: benches/latency.sh [--quick] [--draw]" ;;
esac

source benches/versus/contestants.sh

for round in $(seq "$rounds"); do
    for rate in $loads; do
        say "round $round of $rounds, $rate messages/s"
        for who in $(in_turn "$round" direct haproxy tollgate refuse); do
            load "$rate" "$round" "$who" 64 --rate "$rate"
        done
    done
done
end_all
python3 benches/versus/report.py curve "$results" >docs/latency.tsv
python3 benches/versus/plot.py docs/latency.tsv docs/latency.svg

#!/usr/bin/env bash
# A link that is flooded with 20 times its limit, beside a quiet one: what the flood does to the quiet
# link, on the same worker and on another, and to the flooded link's own reversals and echoes.
#
#   bash benches/flood.sh [--quick]
#
# Rounds with and without the flood take turns. Exit code 0: the best p99 with the flood, of what is
# not the flood, is at most half above the best without.
cd "$(dirname "$0")/.."
# The flood's generator shares a core with those that judge, and to be nicer than they are does not
# make it give way at once when one of them has something to do.
chrt -f 5 true 2>/dev/null && URGENT=${URGENT-chrt -f 5}
source benches/versus/stage.sh

rounds=3 seconds=4 warmup=1
case ${1:-} in
"") ;;
--quick) rounds=2 seconds=1 warmup=0.5 ;;
*) die "usage: benches/flood.sh [--quick]" ;;
esac
limit=1000 times=20

need python3 python3
build
read -r host_port flooded quiet <<<"$(free_ports 3)"
start_host host "$PEER_CORE" "$host_port"

# generate NAME PORT OPTION...: one generator in the background; what it says is in $work/NAME.json.
generate() {
    local name=$1
    network "$2" --warmup "$warmup" --seconds "$seconds" "${@:3}"
    "${network[@]}" >"$work/$name.json" &
    generators+=($!)
}

# round NAME FLOOD: a generator for the quiet link and one for the flooded link's reversals and
# echoes, and the flood itself, which is less urgent than they are: they tell what the proxy does, not
# how the generators share their core.
round() {
    local name=$1 flood=$2 with_urgency=("${urgent[@]}")
    generators=()
    generate "$name.quiet" "$quiet" --connections 4 --rate 1000 --merchants 1000 --mix purchase=100
    generate "$name.own" "$flooded" --connections 2 --rate 200 --merchants 1 \
        --mix reversal=50,echo_test=50
    if [ "$flood" = yes ]; then
        urgent=(nice -n -5)
        generate "$name.flood" "$flooded" --connections 8 --rate $((limit * times)) --merchants 1 \
            --mix purchase=100
        urgent=("${with_urgency[@]}")
    fi
    wait "${generators[@]}"
}

for workers in 1 2; do
    fill flood.toml WORKERS=$workers FLOODED="$flooded" QUIET="$quiet" HOST="$host_port" \
        RATE=$limit TIMES=$times >"$work/flood.toml"
    cores="$PROXY_CORE"
    [ $workers = 1 ] || cores=$PROXY_CORE,"$PEER_CORE"
    start_tollgate tollgate "$cores" "$work/flood.toml" "$quiet" && proxy=$pid
    for number in $(seq "$rounds"); do
        say "round $number of $rounds, $workers worker(s)"
        for state in $(in_turn "$number" calm flooded); do
            round "$workers.$number.$state" "$([ "$state" = calm ] || echo yes)"
        done
    done
    end "$proxy"
done
end_all
python3 benches/versus/flood.py "$work"

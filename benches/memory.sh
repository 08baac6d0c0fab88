#!/usr/bin/env bash
# What tollgate keeps in memory: with 10,000 idle sessions and a million keys, and after 30 million
# messages, which is an hour at 8,300 a second.
#
#   bash benches/memory.sh [--quick]
#
# Exit code 0: the first is at most RSS_MIB, and the second added at most GROWTH percent to it.
cd "$(dirname "$0")/.."
source benches/versus/stage.sh

RSS_MIB=160 GROWTH=2
sessions=10000 keys=1000000 messages=30000000
case ${1:-} in
"") ;;
--quick) sessions=2000 keys=100000 messages=2000000 ;;
*) die "usage: benches/memory.sh [--quick]" ;;
esac

need python3 python3
build
[ "$(ulimit -n)" -gt $((sessions + 100)) ] || die "$sessions sessions need as many open files"
read -r host_port port admin <<<"$(free_ports 3)"
start_host host "$PEER_CORE" "$host_port"
fill tollgate.toml LISTEN="$port" ADMIN="$admin" HOST="$host_port" KEYS=$((keys * 5 / 4)) \
    RATE=10000000 BURST=10000000 >"$work/memory.toml"
start_tollgate tollgate "$PROXY_CORE" "$work/memory.toml" "$port" && proxy=$pid

mib() { awk -v kib="$(rss_kib "$proxy")" 'BEGIN { printf "%.1f", kib / 1024 }'; }
metric() { curl -fsS "http://127.0.0.1:$admin/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
check() { # what, value, limit: the first is at most the second
    if awk -v value="$2" -v limit="$3" 'BEGIN { exit !(value <= limit) }'; then
        echo "$1: $2, must <= $3: pass"
    else
        echo "$1: $2, must <= $3: FAIL"
        failed=yes
    fi
}
# send SECONDS: as much as goes through; how many messages were answered is added to $sent.
send() {
    network "$port" --connections 64 --window 64 --merchants "$keys" --mix purchase=100 \
        --seed $((sent + 1)) --warmup 0 --seconds "$1"
    "${network[@]}" >"$work/said.json"
    sent=$((sent + $(python3 -c 'import json, sys; print(json.load(sys.stdin)["answered"])' <"$work/said.json")))
}

failed=
echo "at the start: $(mib) MiB"
python3 benches/versus/idle.py "$port" $sessions &
idle=$!
started+=("$idle")
until [ "$(metric 'tollgate_link_sockets{link="network"}')" -ge $sessions ]; do
    kill -0 $idle || die "the sessions could not be opened"
    sleep 0.2
done
echo "with $sessions idle sessions: $(mib) MiB"

sent=0
until [ "$(metric 'tollgate_limit_keys{limit="merchant"}')" -ge $((keys * 99 / 100)) ]; do send 2; done
check "MiB with $sessions idle sessions and $keys keys" "$(mib)" $RSS_MIB

sent=0
before=$(rss_kib "$proxy")
while [ $sent -lt $messages ]; do
    send 10
    echo "after $sent messages: $(mib) MiB"
done
growth=$(awk -v before="$before" -v after="$(rss_kib "$proxy")" \
    'BEGIN { printf "%.2f", (after / before - 1) * 100 }')
check "growth in percent over $sent messages" "$growth" $GROWTH
[ -z "$failed" ]

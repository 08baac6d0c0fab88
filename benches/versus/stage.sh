# shellcheck shell=bash disable=SC2034 # what is assigned here is read by those who source it
# The stage of the benches that run whole processes: what they need is installed, built, started,
# measured and ended here. Sourced, from the root of the repository.
#
# Loopback only, on free ports; every process that is ended is one that was started here.

set -euo pipefail

work=$(mktemp -d)
started=() # process ids, in the order of their start
trap 'end_all; rm -rf "$work"' EXIT

# The core of what is measured, and the core of the generator and the host.
PROXY_CORE=0
PEER_CORE=1

say() { printf '%s\n' "$*" >&2; }

die() {
    say "$*"
    exit 2
}

# need WHAT PACKAGE...: installs Debian's packages when a command or a file is missing, without
# letting them start their services.
need() {
    local what=$1 as_root=() policy=/usr/sbin/policy-rc.d ours=
    shift
    if [ -e "$what" ] || command -v "$what" >/dev/null; then return; fi
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    if [ ! -e "$policy" ]; then
        ours=yes
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
        "${as_root[@]}" chmod +x "$policy"
    fi
    "${as_root[@]}" apt-get update -qq >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    [ -z "$ours" ] || "${as_root[@]}" rm "$policy"
}

# The release binary, built once.
build() {
    [ "$(nproc)" -ge 2 ] || die "two cores are needed: one for the proxy, one for its peers"
    cargo build --release --locked --quiet
    local target
    target=$(cargo metadata --format-version 1 --no-deps --locked |
        sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
    tollgate=$target/release/tollgate
    ulimit -n "$(ulimit -Hn)"
}

# free_ports N: as many ports as nobody listens on.
free_ports() {
    python3 -c '
import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in sockets))' "$1"
}

# fill TEMPLATE NAME=VALUE...: the template with each @NAME@ filled in.
fill() {
    local template=$1 script=()
    shift
    for word in "$@"; do script+=(-e "s|@${word%%=*}@|${word#*=}|g"); done
    sed "${script[@]}" "benches/versus/$template"
}

# How all that is measured is started, so that the machine's other work disturbs it less; everybody
# alike. On a busy machine URGENT="chrt -f 5" keeps the others off both cores nearly altogether.
read -ra urgent <<<"${URGENT-nice -n -10}"
"${urgent[@]}" true 2>/dev/null || urgent=()

# start NAME CORE COMMAND...: in the background; its id is in $pid.
start() {
    local name=$1 core=$2
    shift 2
    taskset -c "$core" "${urgent[@]}" "$@" >"$work/$name.log" 2>&1 &
    pid=$!
    started+=("$pid")
}

# await PORT NAME: until somebody listens there.
await() {
    for _ in $(seq 200); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.05
    done
    cat "$work/$2.log" >&2
    die "$2 does not listen"
}

# start_host NAME CORE PORT: the cheapest host, which gives every request back as its answer.
start_host() {
    start "$1" "$2" "$tollgate" simulate host --echo --listen "127.0.0.1:$3" \
        --framing be16 --dialect iso87_ascii
    await "$3" "$1"
}

# start_tollgate NAME CORES CONFIGURATION PORT: one of the filled templates.
start_tollgate() {
    start "$1" "$2" "$tollgate" run --config "$3"
    await "$4" "$1"
}

# start_haproxy PORT HOST-PORT
start_haproxy() {
    fill haproxy.cfg LISTEN="$1" HOST="$2" >"$work/haproxy.cfg"
    start haproxy "$PROXY_CORE" haproxy -db -f "$work/haproxy.cfg"
    await "$1" haproxy
}

# start_nginx PORT HOST-PORT
start_nginx() {
    fill nginx.conf LISTEN="$1" HOST="$2" WORK="$work" MODULES=$nginx_modules >"$work/nginx.conf"
    start nginx "$PROXY_CORE" nginx -c "$work/nginx.conf" -e stderr
    await "$1" nginx
}

nginx_modules=/usr/lib/nginx/modules

# network PORT GENERATOR-OPTION...: the load generator as an array in $network, on the peers' core.
network() {
    network=(taskset -c "$PEER_CORE" "${urgent[@]}" "$tollgate" simulate network
        --connect "127.0.0.1:$1" --framing be16 --dialect iso87_ascii --merchant-skew 0 --bins 64
        --json "${@:2}")
}

# end PID: SIGTERM, and waits.
end() {
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

end_all() {
    local pid
    for pid in "${started[@]}"; do end "$pid"; done
    started=()
}

# rss_kib PID: resident memory.
rss_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }

# in_turn ROUND CONTESTANT...: every other round in reverse.
in_turn() {
    if [ $(($1 % 2)) -eq 1 ]; then printf '%s\n' "${@:2}"; else printf '%s\n' "${@:2}" | tac; fi
}

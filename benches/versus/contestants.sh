# shellcheck shell=bash disable=SC2154 # what is not assigned here is stage.sh's
# The contestants of a comparison, on their ports: sourced after stage.sh.
#
# The proxies have core 0; the load generator and the host share core 1. `direct` is the host's like
# on the proxies' core, `refuse` a tollgate that refuses everything.

merchants=100000
results=$work/results
touch "$results"

need haproxy haproxy
need nginx nginx-light
need "$nginx_modules/ngx_stream_module.so" libnginx-mod-stream
need python3 python3
build

read -r echo_port direct_port haproxy_port nginx_port forward_port refuse_port admin1 admin2 \
    <<<"$(free_ports 8)"

# The host of the proxies, and the direct echo, which stands on the proxies' core.
start_host host "$PEER_CORE" "$echo_port" && host=$pid
start_host direct "$PROXY_CORE" "$direct_port" && direct=$pid
start_haproxy "$haproxy_port" "$echo_port" && haproxy=$pid
start_nginx "$nginx_port" "$echo_port" && nginx=$pid
fill tollgate.toml LISTEN="$forward_port" ADMIN="$admin1" HOST="$echo_port" KEYS=$((merchants * 2)) \
    RATE=10000000 BURST=10000000 >"$work/forward.toml"
start_tollgate forward "$PROXY_CORE" "$work/forward.toml" "$forward_port" && forward=$pid
fill tollgate.toml LISTEN="$refuse_port" ADMIN="$admin2" HOST="$echo_port" KEYS=$((merchants * 2)) \
    RATE=0.0000116 BURST=1 >"$work/refuse.toml"
start_tollgate refuse "$PROXY_CORE" "$work/refuse.toml" "$refuse_port" && refuse=$pid

# load PART ROUND CONTESTANT CONNECTIONS GENERATOR-OPTION...: one run, for $warmup and $seconds; what
# was measured is a line of $results.
load() {
    local part=$1 round=$2 who=$3 connections=$4 port proxy
    shift 4
    case $who in
    direct) port=$direct_port proxy=$direct ;;
    haproxy) port=$haproxy_port proxy=$haproxy ;;
    nginx) port=$nginx_port proxy=$nginx ;;
    tollgate) port=$forward_port proxy=$forward ;;
    refuse) port=$refuse_port proxy=$refuse ;;
    esac
    network "$port" --mix purchase=100 --merchants $merchants --seed "$round" \
        --connections "$connections" --warmup "$warmup" --seconds "$seconds" "$@"
    python3 benches/versus/load.py "$results" part="$part" round="$round" who="$who" \
        proxy="$proxy" host="$host" -- "${network[@]}"
}

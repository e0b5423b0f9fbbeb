#!/usr/bin/env bash
# citus.sh: runs tests/citus on a coordinator and two workers of the server of PG_CONFIG, on private sockets. Skipped
# where that server has no extension citus, which this project neither builds nor brings.
. "$(dirname "$0")/common.sh"

[[ -x $PG_CONFIG ]] || die "no pg_config at $PG_CONFIG: set PG_CONFIG"
if [[ ! -r $("$PG_CONFIG" --sharedir)/extension/citus.control ]]; then
  note "SKIPPED: citus: the server of $PG_CONFIG has no extension citus: set PG_CONFIG to one that has"
  [[ -z ${STRICT:-} ]] || exit 1
  exit
fi
from=$PG_CONFIG
select_server "$from"
# The copy may be older than the extension.
if [[ ! -r $("$pg_config" --sharedir)/extension/citus.control && $from != "$pg_config" ]]; then
  copy_server "$from" "$base/server-$major"
fi
install_release

nodes=(coordinator worker1 worker2)
stop() {
  local node
  for node in "${nodes[@]}"; do "$root/tests/harness/server.sh" stop "citus-$node"; done
}
start() {
  local node
  for node in "${nodes[@]}"; do
    "$root/tests/harness/server.sh" start "citus-$node"
    cat >>"$base/run/citus-$node-$major/data/postgresql.conf" <<CONF
shared_preload_libraries = 'citus'
max_prepared_transactions = 100
max_connections = 100
citus.node_conninfo = 'sslmode=disable'
citus.shard_count = 8
CONF
    "$root/tests/harness/server.sh" restart "citus-$node"
  done
}
trap stop EXIT
start
use_server citus-coordinator
GRAPH_KERNEL_CITUS_WORKERS=$(cat "$base/run/citus-worker1-$major/socket" "$base/run/citus-worker2-$major/socket")
export GRAPH_KERNEL_CITUS_WORKERS
# One after the other: what a test makes of databases and nodes waits for what others make.
cargo test --no-fail-fast -p graph_kernel_tests --features citus --test citus -- --test-threads=1

#!/usr/bin/env bash
# statistics.sh [ROUNDS]: what counting calls costs a small slice. Two servers, one of which preloads the library, take
# turns with pgbench over the sample; prints the ratio of their times for each round, and the median.
. "$(dirname "$0")/../harness/common.sh"

rounds=${1:-9}
seconds=5
select_server "$PG_CONFIG"
install_release >/dev/null 2>&1
stop() { for name in counting plain; do "$root/tests/harness/server.sh" stop "$name"; done; }
trap stop EXIT
for name in counting plain; do
  "$root/tests/harness/server.sh" start "$name"
  use_server "$name"
  if [[ $name == counting ]]; then
    "$bindir/psql" -qX -c "ALTER SYSTEM SET shared_preload_libraries = 'graph_kernel'"
    "$root/tests/harness/server.sh" restart "$name"
  fi
  "$bindir/psql" -qX -c 'CREATE EXTENSION graph_kernel' -c 'SELECT graph_kernel.create_tables()' >/dev/null
  "$root/tests/harness/load.sh" "$root/sql/sample" >/dev/null
done
script=$(mktemp)
note "SELECT graph_slice('a9ad8365-bc0a-5da2-93e6-e37e99d95d9c', '{\"max_nodes\": 16}');" >"$script"
latency() {
  use_server "$1"
  "$bindir/pgbench" -n -M prepared -T "$seconds" -f "$script" 2>/dev/null |
    sed -n 's/^latency average = \([0-9.]*\) ms/\1/p'
}
latency counting >/dev/null
latency plain >/dev/null
for ((round = 1; round <= rounds; round++)); do
  plain=$(latency plain) counting=$(latency counting)
  awk -v a="$counting" -v b="$plain" 'BEGIN { printf "%.4f  %s ms, %s ms\n", a / b, a, b }'
done | tee /dev/stderr | sort -n |
  awk '{ r[NR] = $1 } END { printf "median %s (%s to %s)\n", r[int((NR + 1) / 2)], r[1], r[NR] }'
rm -f "$script"

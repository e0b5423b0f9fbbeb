#!/usr/bin/env bash
# memcheck.sh: a PostgreSQL 17 that checks its assertions runs all regression tests, the attacks and the calls with odd
# values, then some regression tests with caches that are discarded at each chance, and some under Valgrind.
. "$(dirname "$0")/common.sh"

# What makes tables, binds, slices, searches, signs and streams.
discarding=(setup policies slices binding expressions policy_v2)
valgrind=(setup policies slices batch binding expressions policy_v2 explain promotion proofs)

ASSERT=1 "$root/tests/harness/postgres.sh" 17
find_base
select_server "$base/server-17-assert/bin/pg_config"
install_release >/dev/null 2>&1
logs="$root/target/memcheck"
rm -rf "$logs"
mkdir -p "$logs"
trap '"$root/tests/harness/server.sh" stop memcheck' EXIT

# regress NAME OPTIONS…: PostgreSQL's test program over tests/regress, against the running server.
regress() {
  local name=$1
  shift
  printf '%s: ' "$name"
  if "$(dirname "$("$pg_config" --pgxs)")/../test/regress/pg_regress" --bindir="$bindir" --host="$PGHOST" \
    --port="$PGPORT" --user="$PGUSER" --dbname=graph_kernel_regress --inputdir=tests/regress \
    --outputdir="$logs/$name" "$@" >"$logs/$name.log" 2>&1; then
    note 'passed'
  else
    note "failed: $logs/$name.log"
    failed=1
  fi
}

failed=
mkdir -p "$logs"/{assertions,discarded,valgrind}
"$root/tests/harness/server.sh" start memcheck
use_server memcheck
regress assertions --schedule=tests/regress/schedule
printf 'attacks, odd values, statistics: '
if cargo test -q -p graph_kernel_tests --features server --test attacks >"$logs/attacks.log" 2>&1 &&
  cargo test -q -p graph_kernel_tests --features server --test server -- sweep:: invalid_bytes:: statistics:: \
    >>"$logs/attacks.log" 2>&1; then
  note 'passed'
else
  note "failed: $logs/attacks.log"
  failed=1
fi

"$bindir/psql" -qX -c 'ALTER SYSTEM SET debug_discard_caches = 1' -c 'SELECT pg_reload_conf()' >/dev/null
regress discarded "${discarding[@]}"
"$root/tests/harness/server.sh" stop memcheck

if command -v valgrind >/dev/null && [[ -f $base/server-17-assert/share/valgrind.supp ]]; then
  export GRAPH_KERNEL_VALGRIND="$base/server-17-assert/share/valgrind.supp"
  "$root/tests/harness/server.sh" start memcheck
  use_server memcheck
  regress valgrind "${valgrind[@]}"
  "$root/tests/harness/server.sh" stop memcheck
  printf 'valgrind, errors: '
  if errors=$(grep -hE 'Invalid (read|write)|uninitialised' "$root"/target/memcheck/valgrind.*.log |
    sort | uniq -c); then
    note "$errors"
    failed=1
  else
    note 'none'
  fi
else
  note 'SKIPPED: valgrind: it is not installed, or was not when the server was built'
fi
[[ -z $failed ]]

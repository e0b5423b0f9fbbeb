#!/usr/bin/env bash
# hostile.sh [MINUTES]: fuzzes each parser for so many minutes, as many at once as there are cores, then has sqlsmith
# write queries over a database with everything bound: ten runs of 10 000 for 15 minutes, a share for fewer.
# What was found interesting is kept below target/fuzz/corpus, and the next run goes on from there.
. "$(dirname "$0")/common.sh"

minutes=${1:-15}
[[ $minutes =~ ^[1-9][0-9]*$ ]] || die "MINUTES must be a whole number, not $minutes"
queries=$((minutes < 15 ? 10000 * minutes / 15 : 10000))
fuzz="$root/target/fuzz"
logs="$root/target/test-logs"
failed=
mkdir -p "$logs" "$fuzz"
unset RUST_BACKTRACE

skipped() {
  note "SKIPPED: $1: $2"
  [[ -z ${CI:-}${STRICT:-} ]] || failed=1
}

# Coverage needs no nightly compiler, but permission to use what is not stable: RUSTC_BOOTSTRAP.
build_targets() {
  local tools="$root/target/tools"
  PATH="$PATH:$tools/bin"
  cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --version '^0.13' --locked --root "$tools"
  RUSTC_BOOTSTRAP=1 cargo fuzz build --fuzz-dir tests/fuzz --target-dir "$fuzz"
  rm -rf "$fuzz/seeds"
  CARGO_TARGET_DIR="$fuzz" cargo run --manifest-path tests/fuzz/Cargo.toml --example seeds -- "$fuzz/seeds"
}

# fuzz_target NAME: one line about its run; a failing input is kept in artifacts/NAME.
fuzz_target() {
  local name=$1 status=0 log="$fuzz/logs/$1.log" executions inputs
  mkdir -p "$fuzz/corpus/$name" "$fuzz/artifacts/$name" "$fuzz/logs"
  "$programs/$name" "$fuzz/corpus/$name" "$fuzz/seeds/$name" -dict="$fuzz/seeds/$name.dict" -max_len=16384 \
    -max_total_time=$((minutes * 60)) -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$fuzz/artifacts/$name/" >"$log" 2>&1 || status=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: //p' "$log")
  inputs=$(find "$fuzz/corpus/$name" -type f | wc -l)
  note "$name: ${executions:-0} executions, $(grep -oE 'cov: [0-9]+' "$log" | tail -n 1), $inputs inputs kept"
  if ((status != 0)); then
    note "$name: FAILED: $(grep -E -m 1 -A 1 'panicked at|ERROR: |SUMMARY: ' "$log" | tr '\n' ' ')"
    note "  repeat: $programs/$name $(sed -n 's/.*Test unit written to //p' "$log")"
  fi
  return "$status"
}

fuzz_all() {
  local name names=() programs jobs
  programs="$fuzz/$(rustc -vV | sed -n 's/^host: //p')/release"
  jobs=$(nproc)
  for name in tests/fuzz/targets/*.rs; do names+=("$(basename "$name" .rs)"); done
  note "fuzzing ${#names[@]} parsers, each for $minutes min, $jobs at once"
  export -f fuzz_target note
  export fuzz programs minutes
  printf '%s\n' "${names[@]}" | xargs -P "$jobs" -I '{}' bash -c 'fuzz_target {}' || failed=1
}

# The lines of the server's log about each internal error, panic or lost process, errors with what belongs to them.
bad_entries() {
  awk '
    /^[0-9-]+ [0-9:.]+ UTC \[[0-9]+\] / && / (LOG|WARNING|NOTICE|ERROR|FATAL|PANIC):  / {
      if (entry != "") print entry
      entry = ""
      if (/ (ERROR|FATAL|PANIC):  XX/ || / PANIC:  / || /terminated by signal/ ||
          /all server processes terminated/) entry = $0
      next
    }
    entry != "" { entry = entry " " substr($0, 1, 20000) }
    END { if (entry != "") print entry }' "$1"
}

# sqlsmith_run SEED ROLE GRAPH
sqlsmith_run() {
  local seed=$1 role=$2 graph=$3 log="$run/server.log" found ours made
  : >"$log"
  timeout $((600 + queries / 5)) sqlsmith --seed="$seed" --max-queries="$queries" --exclude-catalog --verbose \
    --target="host=$PGHOST port=$PGPORT \
dbname=hostile user=$role options='-c search_path=hostile,pg_catalog,public -c graph_kernel.graph=$graph'" \
    >"$logs/sqlsmith-$seed.log" 2>&1 || true
  made=$(grep -oE 'queries: [0-9]+' "$logs/sqlsmith-$seed.log" | tail -n 1)
  bad_entries "$log" >"$logs/sqlsmith-$seed.bad"
  # The server's own functions have internal errors too: those of the extension name it, or a file of Rust.
  found=$(wc -l <"$logs/sqlsmith-$seed.bad")
  ours=$(grep -cE "PANIC:  |terminated|LOCATION:.*\.rs:|\bcalls\.|$functions" "$logs/sqlsmith-$seed.bad" || true)
  note "seed $seed, $role, graph $graph: ${made:-queries: 0}, errors $(grep -cE ' ERROR:  ' "$log" || true)," \
    "internal errors $found, of the extension or lost backends $ours"
  if ((ours != 0 || ${made##* } < queries)); then
    failed=1
    cut -c 1-300 "$logs/sqlsmith-$seed.bad"
    note "  all of it: $logs/sqlsmith-$seed.bad and .log"
  fi
}

sqlsmith_all() {
  local seed started functions run="$base/run/hostile-$major"
  psql() { "$bindir/psql" -X -q -v ON_ERROR_STOP=1 "$@"; }
  psql -c "ALTER SYSTEM SET shared_preload_libraries = 'graph_kernel'" \
    -c "ALTER SYSTEM SET log_error_verbosity = verbose" \
    -c "ALTER SYSTEM SET log_line_prefix = '%m [%p] '" -c 'CREATE DATABASE hostile'
  "$root/tests/harness/server.sh" restart hostile
  export PGDATABASE=hostile
  psql -c 'CREATE EXTENSION graph_kernel' -c "SELECT graph_kernel.create_tables('public')" >/dev/null
  PATH="$bindir:$PATH" "$root/tests/harness/load.sh" sql/sample >/dev/null
  psql -f tests/fuzz/sqlsmith.sql
  functions=$(psql -At -c "SELECT string_agg(DISTINCT '\\b' || p.proname || '\\b', '|')
                FROM pg_depend AS d JOIN pg_proc AS p
      ON p.oid = d.objid JOIN pg_extension AS x ON x.oid = d.refobjid
   WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND x.extname = 'graph_kernel'")
  started=$(psql -At -c 'SELECT pg_postmaster_start_time()')
  note "sqlsmith: ten runs of $queries queries, on PostgreSQL $major"
  for seed in {1..10}; do
    case $((seed % 4)) in
      1) sqlsmith_run "$seed" postgres default ;;
      2) sqlsmith_run "$seed" hostile_plain default ;;
      3) sqlsmith_run "$seed" postgres notes ;;
      0) sqlsmith_run "$seed" hostile_plain notes ;;
    esac
  done
  [[ $(psql -At -c 'SELECT pg_postmaster_start_time()') == "$started" ]] || die 'the server was started anew'
  psql -At -c "SELECT sum(calls) || ' calls of ' || count(*) || ' functions that read a table or verify'
               FROM graph_kernel.statistics"
}

if ! (set -e && build_targets) >"$logs/fuzz-build.log" 2>&1; then
  # A target that does not compile is a fault; a tool that cannot be had is none.
  if PATH="$PATH:$root/target/tools/bin" cargo fuzz --version >/dev/null 2>&1; then
    tail -n 40 "$logs/fuzz-build.log" >&2
    die 'the targets do not build'
  fi
  skipped 'fuzzing of the parsers' "cargo-fuzz cannot be had: $(tail -n 1 "$logs/fuzz-build.log")"
else
  fuzz_all
fi

if ! command -v sqlsmith >/dev/null; then
  skipped sqlsmith 'it is not installed: apt-get install sqlsmith'
else
  select_server "$PG_CONFIG"
  install_release >"$logs/hostile-build.log" 2>&1 || {
    tail -n 40 "$logs/hostile-build.log" >&2
    die 'the build failed'
  }
  trap '"$root/tests/harness/server.sh" stop hostile' EXIT
  "$root/tests/harness/server.sh" start hostile
  use_server hostile
  sqlsmith_all
fi
[[ -z $failed ]]

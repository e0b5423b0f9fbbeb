#!/usr/bin/env bash
# bench.sh [short|1m|10m]: times slices beside the published crate and plain SQL, in a throw-away server.
# short only shows that it runs; the others write docs/performance/.
. "$(dirname "$0")/common.sh"

scale=${1:-1m}
select_server "$PG_CONFIG"
mkdir -p "$root/target/test-logs"
install_release >"$root/target/test-logs/bench-build.log" 2>&1 || {
  tail -n 40 "$root/target/test-logs/bench-build.log" >&2
  die 'the build failed'
}
trap '"$root/tests/harness/server.sh" stop bench' EXIT
"$root/tests/harness/server.sh" start bench
use_server bench
"$bindir/psql" -X -q -c 'ALTER SYSTEM SET max_connections = 100'
results="$root/target/bench-short"
if [[ $scale != short ]]; then
  results="$root/docs/performance"
  "$bindir/psql" -X -q -c "ALTER SYSTEM SET shared_buffers = '2GB'"
  "$root/tests/harness/pgvector.sh" || note 'S8 is left out'
fi
"$root/tests/harness/server.sh" restart bench

export CARGO_TARGET_DIR="$root/target/bench"
unset RUST_BACKTRACE
profile=release
# Its times mean nothing, and an optimized build takes minutes.
if [[ $scale == short ]]; then
  profile=dev
  export CARGO_PROFILE_DEV_DEBUG=0
fi
cargo run --quiet --profile "$profile" --manifest-path tests/bench/Cargo.toml -- "$results" "$scale"
if [[ $scale == short ]]; then
  cargo bench --quiet --no-run --profile dev --manifest-path tests/bench/Cargo.toml
else
  cargo bench --quiet --manifest-path tests/bench/Cargo.toml
fi

#!/usr/bin/env bash
# soak.sh [MINUTES [TEST]]: runs the tests of tests/soak/ for about so long, in a throw-away server; each takes an equal
# share. TEST is a part of the names of those to be run alone.
. "$(dirname "$0")/common.sh"

minutes=${1:-70}
wanted=${2:-}
[[ $minutes =~ ^[1-9][0-9]*$ ]] || die "MINUTES must be a whole number, not $minutes"
logs="$root/target/test-logs"
select_server "$PG_CONFIG"
mkdir -p "$logs"
build() {
  "$@" >"$logs/soak-build.log" 2>&1 || {
    tail -n 40 "$logs/soak-build.log" >&2
    die 'the build failed'
  }
}
start() {
  trap '"$root/tests/harness/server.sh" stop soak' EXIT
  "$root/tests/harness/server.sh" start soak
  use_server soak
}
unset RUST_BACKTRACE

# How much is read at a time changes no answer: in this build each backend draws it. An allocation that fails is an
# error at most: in this build a setting says which does.
test_builds() {
  local features=(--no-default-features --features "pg$major random_limits failing_allocations")
  build install_release
  start
  cargo test --quiet -p graph_kernel_tests --features server --test retrieval
  cargo test --quiet -p graph_kernel_tests --features server --test server -- golden:: policy_v2:: snapshot:: atlas::
  cargo test --quiet -p graph_kernel_tests --features allocations --test server_alone -- allocations::
  "$root/tests/harness/server.sh" stop soak
}
[[ $wanted ]] || test_builds

build install_release
build cargo build --release -p graph_kernel_cli
start
# Counting calls must leave no memory behind either.
"$bindir/psql" -qX -c "ALTER SYSTEM SET shared_preload_libraries = 'graph_kernel'"
"$root/tests/harness/server.sh" restart soak
export GRAPH_KERNEL_PROGRAM="$CARGO_TARGET_DIR/release/graph-kernel"

soak() { cargo test --quiet -p graph_kernel_tests --features soak --test soak -- "$@" $wanted; }
tests=$(soak --list | grep -c ': test$')
export GRAPH_KERNEL_SOAK_SECONDS=$((minutes * 60 / tests))
note "$tests tests of $GRAPH_KERNEL_SOAK_SECONDS s each, on PostgreSQL $major"
soak --test-threads=1

#!/usr/bin/env bash
# recall.sh [SPLIT…]: asks the questions of DATA, a folder as tests/recall/corpus.rs says, and prints how much of their
# evidence each selection holds, in a throw-away server. Nothing of the folder is copied into the project.
. "$(dirname "$0")/common.sh"

[[ -n ${DATA:-} ]] || die 'DATA must name a folder: make recall DATA=…'
data=$(cd "$DATA" && pwd -P)
logs="$root/target/test-logs"
select_server "$PG_CONFIG"
mkdir -p "$logs"
{ install_release && cargo build --release -p graph_kernel_tests --features server --bin graph_kernel_recall; } \
  >"$logs/recall-build.log" 2>&1 || {
  tail -n 40 "$logs/recall-build.log" >&2
  die 'the build failed'
}
trap '"$root/tests/harness/server.sh" stop recall' EXIT
"$root/tests/harness/server.sh" start recall >&2
use_server recall
"$root/tests/harness/pgvector.sh" >&2 || note 'without pgvector: embeddings are real[]' >&2
cargo run --quiet --release -p graph_kernel_tests --features server --bin graph_kernel_recall -- "$data" "$@"

#!/usr/bin/env bash
# page.sh: uses the page of `graph-kernel serve` in Chromium, over the sample and over a table that is bound, in a
# database of its own on the server that PG* names. Prints a line "ok NAME" or "not ok NAME" for each test; what cannot
# be had is SKIPPED. GRAPH_KERNEL_BLESS=1 draws the figures of docs/page.md anew.
. "$(dirname "$0")/common.sh"

work="$root/target/clients/page"
log="$root/target/clients/page.log"
database=gk_page_test
bindir=${GRAPH_KERNEL_BINDIR:?start a server and call use_server first}
PATH="$bindir:$PATH"
export CHROMIUM=${CHROMIUM:-/usr/bin/chromium}

get() {
  node --version && npm --version &&
    npm install --silent --no-audit --no-fund --no-save --fetch-retries 1 --prefix "$work" playwright-core@1
}
mkdir -p "$work"
if [[ ! -x $CHROMIUM ]]; then
  note "SKIPPED: page: there is no $CHROMIUM: run make setup as root, or name another in CHROMIUM"
  exit 0
fi
[[ $(cat "$work.done" 2>/dev/null) == "$(declare -f get)" ]] || {
  get >"$log" 2>&1 && declare -f get >"$work.done"
} || {
  note "SKIPPED: page: playwright-core could not be installed: $(tail -n 1 "$log")"
  exit 0
}

psql() { command psql -X -q -v ON_ERROR_STOP=1 "$@"; }
drop_database() {
  PGDATABASE=postgres PGOPTIONS='-c client_min_messages=warning' \
    psql -c "DROP DATABASE IF EXISTS $database WITH (FORCE)" -c 'DROP ROLE IF EXISTS page_reader'
}

if ! build_program >"$log" 2>&1; then
  cat "$log"
  note 'not ok page: the program builds'
  exit 1
fi
trap drop_database EXIT
drop_database
PGDATABASE=postgres psql -c "CREATE DATABASE $database"
export PGDATABASE=$database GRAPH_KERNEL_ROOT=$root
psql -c 'CREATE EXTENSION graph_kernel' \
  -c "SELECT graph_kernel.create_tables('public', '{\"words\": \"english\"}')" >/dev/null
"$root/tests/harness/load.sh" sql/sample >/dev/null
psql -f docs/examples/setup.sql -c 'CALL graph_kernel.refresh_words()'
psql -f tests/clients/page/page.sql >/dev/null
cp tests/clients/page/page.mjs "$work/"
node "$work/page.mjs" "$CARGO_TARGET_DIR/debug/graph-kernel" "$work"

#!/usr/bin/env bash
# service.sh: runs what others have written for MCP and OpenAPI against the program, in a database of its own on the
# server that PG* names. Prints a line "ok NAME" or "not ok NAME" for each test; what cannot be had is SKIPPED.
. "$(dirname "$0")/common.sh"

work="$root/target/clients"
environment="$work/service"
database=gk_service
export CARGO_TARGET_DIR="$root/target"
program="$CARGO_TARGET_DIR/debug/graph-kernel"
bindir=${GRAPH_KERNEL_BINDIR:?start a server and call use_server first}
PATH="$bindir:$PATH"
status=0
mkdir -p "$work"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1

psql() { command psql -X -q -v ON_ERROR_STOP=1 "$@"; }
get_service() {
  python3 -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --retries 1 --upgrade 'mcp>=2,<3' 'openapi-spec-validator<1'
}

if [[ $(cat "$environment.done" 2>/dev/null) != "$(declare -f get_service)" ]]; then
  rm -rf "$environment"
  if ! get_service >"$environment.log" 2>&1; then
    note "SKIPPED: clients of the program: could not be installed: $(tail -n 1 "$environment.log")"
    exit 0
  fi
  declare -f get_service >"$environment.done"
fi

drop_database() {
  PGDATABASE=postgres PGOPTIONS='-c client_min_messages=warning' \
    psql -c "DROP DATABASE IF EXISTS $database WITH (FORCE)"
}
# run NAME COMMAND…: each test that it prints, and the whole as one where it ends in an error.
run() {
  if ! "${@:2}"; then
    note "not ok $1"
    status=1
  fi
}

build_program
trap drop_database EXIT
drop_database
PGDATABASE=postgres psql -c "CREATE DATABASE $database"
export PGDATABASE=$database
psql -c 'CREATE EXTENSION graph_kernel' \
  -c "SELECT graph_kernel.create_tables('public', '{\"words\": \"english\"}')" >/dev/null
run 'MCP client' "$environment/bin/python" "$root/tests/clients/service/mcp_client.py" "$program" \
  "$root/tests/server/exports/claude-code.jsonl"
described() {
  "$environment/bin/python" -m openapi_spec_validator "$root/src/cli/serve/api/openapi.json" >&2 &&
    note 'ok the description of the HTTP API'
}
run 'the description of the HTTP API' described
exit "$status"

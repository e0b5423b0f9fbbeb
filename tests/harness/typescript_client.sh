#!/usr/bin/env bash
# typescript_client.sh: compiles clients/typescript and runs its test with node-postgres and supabase-js, in a database
# of its own on the server that PG* names. Prints a line "ok NAME" or "not ok NAME" for each; what cannot be had is
# SKIPPED.
. "$(dirname "$0")/common.sh"

client="$root/clients/typescript"
work="$root/target/clients/typescript"
log="$root/target/clients/typescript.log"
database=gk_typescript
bindir=${GRAPH_KERNEL_BINDIR:?start a server and call use_server first}
PATH="$bindir:$PATH"
status=0

get() {
  node --version && npm --version &&
    npm install --silent --no-audit --no-fund --no-save --fetch-retries 1 --prefix "$work" pg@8 @types/pg@8 \
      @supabase/supabase-js@2 typescript@5 @types/node@20
}
mkdir -p "$work"
[[ $(cat "$work.done" 2>/dev/null) == "$(declare -f get)" ]] || {
  get >"$log" 2>&1 && declare -f get >"$work.done"
} || {
  note "SKIPPED: client for TypeScript: could not be installed: $(tail -n 1 "$log")"
  exit 0
}

psql() { command psql -X -q -v ON_ERROR_STOP=1 "$@"; }
drop_database() {
  PGDATABASE=postgres PGOPTIONS='-c client_min_messages=warning' \
    psql -c "DROP DATABASE IF EXISTS $database WITH (FORCE)"
}
# run NAME COMMAND…
run() {
  if "${@:2}" >"$log" 2>&1; then
    note "ok $1"
  else
    cat "$log"
    note "not ok $1"
    status=1
  fi
}
# The compiler looks for packages where the files are.
compile() {
  rm -rf "${work:?}"/{src,test,dist,tsconfig.json}
  cp -r "$client/src" "$client/test" "$client/tsconfig.json" "$work/"
  cp "$client/test/client.mjs" "$work/"
  (cd "$work" && node_modules/.bin/tsc &&
    node_modules/.bin/tsc --noEmit --strict --skipLibCheck --module nodenext --target es2022 test/types.ts)
}

trap drop_database EXIT
drop_database
PGDATABASE=postgres psql -c "CREATE DATABASE $database"
export PGDATABASE=$database
psql -c 'CREATE EXTENSION graph_kernel' -c 'SELECT graph_kernel.create_tables()' >/dev/null
"$root/tests/harness/load.sh" sql/sample >/dev/null
psql -f docs/examples/setup.sql
run 'TypeScript: compiles, with the types of node-postgres and supabase-js' compile
run 'TypeScript: node-postgres and supabase-js' node "$work/client.mjs"
exit "$status"

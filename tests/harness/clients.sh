#!/usr/bin/env bash
# clients.sh: runs docs/examples and tests/clients with the real drivers, in a database of its own on the server that
# PG* names: once with embeddings of real[], once with pgvector's. Prints a line "ok NAME" or "not ok NAME" for each;
# what cannot be had is SKIPPED.
. "$(dirname "$0")/common.sh"

clients="$root/target/clients"
examples="$root/docs/examples"
jar=${POSTGRESQL_JDBC:-/usr/share/java/postgresql.jar} # of Debian's libpostgresql-jdbc-java
bindir=${GRAPH_KERNEL_BINDIR:?start a server and call use_server first}
PATH="$bindir:$PATH"
status=0 relay_pid=
mkdir -p "$clients"

psql() { command psql -X -q -v ON_ERROR_STOP=1 "$@"; }
drop_database() {
  PGDATABASE=postgres PGOPTIONS='-c client_min_messages=warning' \
    psql -c 'DROP DATABASE IF EXISTS gk_clients WITH (FORCE)'
}
end() {
  [[ -z $relay_pid ]] || kill "$relay_pid" 2>/dev/null || true
  drop_database
}

skip() { note "SKIPPED: $1: $2"; }

# run NAME COMMAND…
run() {
  local name="$1 ($embeddings)"
  shift
  if "$@"; then
    note "ok $name"
  else
    note "not ok $name"
    status=1
  fi
}

# get_python, get_node: install the packages below target/; fail, having said why last, where they cannot be had.
get_python() {
  python3 -m pip --version && python3 -m pip install --quiet --retries 1 --upgrade --target "$clients/python" \
    'psycopg[binary]>=3,<4' 'SQLAlchemy>=2,<3' 'asyncpg<1' 'Django<6' 'pandas<4' 'polars<3' \
    'anthropic<1' 'openai<3'
}
get_node() {
  node --version && npm --version &&
    npm install --silent --no-audit --no-fund --no-save --fetch-retries 1 --prefix "$clients/node" pg@8 postgres@3
}

# get NAME WHAT: as above, unless an earlier run has done the same.
get() {
  local log="$clients/$1.log"
  [[ $(cat "$clients/$1.done" 2>/dev/null) == "$(declare -f "get_$1")" ]] || {
    mkdir -p "$clients/$1"
    "get_$1" >"$log" 2>&1 && declare -f "get_$1" >"$clients/$1.done"
  } || {
    skip "$2" "could not be installed: $(tail -n 1 "$log")"
    return 1
  }
}

has_java() {
  if ! java -version >/dev/null 2>&1; then
    skip 'clients: JDBC' 'there is no java'
  elif [[ ! -r $jar ]]; then
    skip 'clients: JDBC' "there is no $jar"
  elif ! java --list-modules 2>/dev/null | grep '^jdk.compiler' >/dev/null; then
    skip 'clients: JDBC' 'java is not a JDK, which a single source file needs'
  elif ! command -v python3 >/dev/null; then
    skip 'clients: JDBC' 'there is no python3, which relays the connection'
  else
    return 0
  fi
  return 1
}

# Sets port.
start_relay() {
  exec {ports}< <(exec python3 "$root/tests/harness/relay.py" "$PGHOST/.s.PGSQL.$PGPORT")
  relay_pid=$!
  read -r port <&"$ports"
}

python=no node=no java=no port=
if get python 'clients: psycopg, SQLAlchemy, asyncpg, Django, pandas, polars, anthropic, openai'; then python=yes; fi
if get node 'clients: node-postgres, postgres.js'; then node=yes; fi
if has_java; then java=yes; fi

trap end EXIT
drop_database
PGDATABASE=postgres psql -c 'CREATE DATABASE gk_clients'
export PGDATABASE=gk_clients
psql -c 'CREATE EXTENSION graph_kernel' -c 'SELECT graph_kernel.create_tables()' >/dev/null
"$root/tests/harness/load.sh" sql/sample
psql -f "$examples/setup.sql"
if [[ $java == yes ]]; then start_relay; fi

run_examples() {
  local example
  if [[ $python == yes ]]; then
    for example in "$examples"/*.py "$root"/tests/clients/*.py; do
      run "${example##*/}" env PYTHONPATH="$clients/python" PYTHONDONTWRITEBYTECODE=1 python3 "$example"
    done
  fi
  if [[ $node == yes ]]; then
    # Node looks for packages where the file is.
    for example in "$examples"/*.mjs "$root"/tests/clients/*.mjs; do
      cp "$example" "$clients/node/"
      run "${example##*/}" node "$clients/node/${example##*/}"
    done
  fi
  if [[ $java == yes ]]; then
    run Slice.java java -cp "$jar" "$examples/Slice.java" "jdbc:postgresql://127.0.0.1:$port/$PGDATABASE?user=$PGUSER"
  fi
}

embeddings='real[]'
run_examples
if [[ $(psql -At -c "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == 1 ]]; then
  psql -c 'CREATE EXTENSION vector' \
    -c 'ALTER TABLE memory_turns ALTER COLUMN embedding TYPE vector(384) USING embedding::vector'
  embeddings='vector'
  run_examples
else
  skip 'clients with pgvector' 'pgvector is not installed'
fi
exit "$status"

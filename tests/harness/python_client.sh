#!/usr/bin/env bash
# python_client.sh: runs the tests of clients/python in a database of its own on the server that PG* names, with the
# sample and its embeddings. Prints a line "ok NAME" or "not ok NAME" for each; what cannot be had is SKIPPED.
# python_client.sh lint: ruff, mypy, and whether the face without coroutines is made of the other; needs no server.
# python_client.sh get: installs what the tests need; needs no server.
. "$(dirname "$0")/common.sh"

client="$root/clients/python"
work="$root/target/clients"
environment="$work/python_client"
status=0
mkdir -p "$work"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1

psql() { command psql -X -q -v ON_ERROR_STOP=1 "$@"; }
skip() { note "SKIPPED: $1: $2"; }

# get_NAME: installs packages into a virtual environment below target/.
get_python_client() {
  python3 -m venv "$work/python_client"
  "$work/python_client/bin/python" -m pip install --quiet --retries 1 --upgrade \
    'psycopg[binary]>=3,<4' 'psycopg-pool>=3,<4' 'cryptography>=42' 'pytest<10' 'ruff<1' 'mypy<3' \
    'openai<4' 'anthropic<3' 'cbor2<7' 'zstandard<1'
}

# One of each for packages that are adapted, whose dependencies do not agree with each other.
get_adapter() {
  python3 -m venv "$work/python_$1"
  "$work/python_$1/bin/python" -m pip install --quiet --retries 1 --no-compile --upgrade 'psycopg[binary]>=3,<4' \
    'pytest<10' "${@:2}"
}
get_python_langchain() { get_adapter langchain 'langchain-core<2' 'langgraph<2'; }
get_python_openai_agents() { get_adapter openai_agents 'openai-agents<1'; }
get_python_pydantic_ai() { get_adapter pydantic_ai 'pydantic-ai-slim<3'; }
get_python_llama_index() { get_adapter llama_index 'llama-index-core<1'; }
get_python_google_adk() { get_adapter google_adk 'google-adk<3'; }

# get NAME WHAT: as above, unless an earlier run has done the same.
get() {
  local log="$work/$1.log"
  [[ $(cat "$work/$1.done" 2>/dev/null) == "$(declare -f "get_$1")" ]] || {
    rm -rf "${work:?}/$1"
    "get_$1" >"$log" 2>&1 && declare -f "get_$1" >"$work/$1.done"
  } || {
    skip "$2" "could not be installed: $(tail -n 1 "$log")"
    return 1
  }
}

lint() {
  "$environment/bin/ruff" check --no-cache "$client"
  "$environment/bin/ruff" format --no-cache --check "$client"
  (cd "$client" && "$environment/bin/python" -m mypy --cache-dir "$work/mypy" &&
    "$environment/bin/python" make_sync.py --check)
}

adapters=(langchain langgraph openai_agents pydantic_ai llama_index google_adk)
# packages_of ADAPTER: the environment that it is tested in.
packages_of() { note "python_${1/langgraph/langchain}"; } # langchain's has both

if ! get python_client 'client for Python'; then exit 0; fi
case ${1:-} in
  lint)
    lint
    exit
    ;;
  get)
    for adapter in "${adapters[@]}"; do get "$(packages_of "$adapter")" "client for Python: $adapter" || true; done
    exit
    ;;
esac

database=gk_python
bindir=${GRAPH_KERNEL_BINDIR:?start a server and call use_server first}
PATH="$bindir:$PATH"
drop_database() {
  PGDATABASE=postgres PGOPTIONS='-c client_min_messages=warning' \
    psql -c "DROP DATABASE IF EXISTS $database WITH (FORCE)"
}
make_database() {
  drop_database
  PGDATABASE=postgres psql -c "CREATE DATABASE $database"
  psql -c 'CREATE EXTENSION graph_kernel' -c 'SELECT graph_kernel.create_tables()' >/dev/null
  "$root/tests/harness/load.sh" sql/sample >/dev/null
  psql -f docs/examples/setup.sql
}

# tests WHAT ENVIRONMENT FILES…: counts what pytest prints of each test.
tests() {
  local log="$work/tests.log"
  if (cd "$client" && PYTHONPATH=src "$work/$2/bin/python" -m pytest -p no:cacheprovider -q -rA "${@:3}") >"$log" 2>&1
  then :; else
    status=1
    cat "$log"
  fi
  sed -nE "s/^PASSED (.*)/ok \1 ($1)/p; s/^(FAILED|ERROR) ([^ ]*).*/not ok \2 ($1)/p
    s/^SKIPPED \[[0-9]+\] ([^:]*):[0-9]+: (.*)/SKIPPED: client for Python, \1: \2/p" "$log"
}

# types ADAPTER ENVIRONMENT: with the types of the package that it adapts, which the lint does not have.
types() {
  local log="$work/types.log"
  if (cd "$client" && "$environment/bin/python" -m mypy --cache-dir "$work/mypy-$1" --follow-imports silent \
    --python-executable "$work/$2/bin/python" "src/graph_kernel_client/adapters/$1.py") >"$log" 2>&1; then
    note "ok types of $1"
  else
    status=1
    cat "$log"
    note "not ok types of $1"
  fi
}

trap drop_database EXIT
export PGDATABASE=$database
make_database
tests 'real[]' python_client tests
for adapter in "${adapters[@]}"; do
  packages=$(packages_of "$adapter")
  if get "$packages" "client for Python: $adapter"; then
    tests 'its package' "$packages" "tests/adapters/test_$adapter.py"
    types "$adapter" "$packages"
    # They would serve the next run.
    [[ -z ${CI:-} || $adapter == langchain ]] || rm -rf "$work/$packages" "$work/$packages.done" "$work/mypy-$adapter"
  fi
done
if [[ $(psql -At -c "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == 1 ]]; then
  psql -c 'CREATE EXTENSION vector' \
    -c 'ALTER TABLE memory_turns ALTER COLUMN embedding TYPE vector(384) USING embedding::vector'
  tests vector python_client tests/test_conversation.py tests/test_spec_003.py # those that search
else
  skip 'client for Python with pgvector' 'pgvector is not installed'
fi
exit "$status"

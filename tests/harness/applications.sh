#!/usr/bin/env bash
# applications.sh [NAME…]: for each application of docs/bind.md lets its own package, of PyPI or npm, make the tables
# and write rows, runs the statement that the page prints, makes the indexes that graph_check() names, and compares what
# slices say (tests/clients/applications/NAME.sql and .out). What cannot be had is SKIPPED. The same over the tables of
# tests/server/applications where they hold the same rows. The server is that of PG*. Prints a line "ok NAME" or
# "not ok NAME" for each. After BUDGET seconds, 420 unless told, nothing more is installed: what is missing is SKIPPED.
# applications.sh tables: over those tables alone, without packages.
. "$(dirname "$0")/common.sh"

folder="$root/tests/clients/applications"
page="$root/docs/bind.md"
packages="$root/target/applications"
bindir=${GRAPH_KERNEL_BINDIR:?start a server and call use_server first}
PATH="$bindir:$PATH"
database=gk_applications
status=0 failed=0 budget=${BUDGET:-420}
mkdir -p "$packages"
export PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1

psql() { command psql -X -q -v ON_ERROR_STOP=1 "$@"; }
drop_database() {
  PGDATABASE=postgres PGOPTIONS='-c client_min_messages=warning' \
    psql -c "DROP DATABASE IF EXISTS $database WITH (FORCE)"
}
skip() { note "SKIPPED: $1: $2"; }

# version NAME: that which the page says was tried.
version() { sed -nE "s,^\| \[[^|]*\| $1 ([0-9][^ ]*) \|.*,\1,p" "$page" | grep -m 1 .; }

# pip_install FOLDER ARGUMENTS…: into a virtual environment.
pip_install() {
  local to="$packages/$1"
  [[ -x $to/bin/python ]] || python3 -m venv "$to"
  "$to/bin/python" -m pip install --quiet --retries 1 --no-compile "${@:2}"
}
# npm_install FOLDER PACKAGES…
npm_install() {
  npm install --silent --no-audit --no-fund --no-save --ignore-scripts --fetch-retries 1 --prefix "$packages/$1" \
    "${@:2}"
}
# npm_unpack FOLDER NAME PACKAGE PATHS…: parts of a package's archive, without what it depends on: gigabytes, for some.
npm_unpack() {
  local to="$packages/$1/packages/$2" archive
  mkdir -p "$to"
  archive=$(cd "$packages/$1" && npm pack --silent --fetch-retries 1 "$3" | tail -n 1)
  tar -xzf "$packages/$1/$archive" -C "$to" --strip-components=1 "${@:4}"
  rm "$packages/$1/$archive"
}

# get_NAME: installs the application, in the version that the page names, below target/. Where the whole of it would be
# gigabytes, without its dependencies and with those that its tables need.
get_openai_agents() {
  pip_install openai_agents "openai-agents==$(version openai-agents)" 'sqlalchemy[asyncio]' asyncpg
}
get_langchain() { pip_install langchain "langchain-postgres==$(version langchain-postgres)" 'psycopg[binary]'; }
get_langgraph() {
  pip_install langgraph langgraph 'psycopg[binary]' \
    "langgraph-checkpoint-postgres==$(version langgraph-checkpoint-postgres)"
}
get_google_adk() { pip_install google_adk "google-adk==$(version google-adk)" 'sqlalchemy[asyncio]' asyncpg; }
get_chainlit() { pip_install chainlit "chainlit==$(version chainlit)" 'sqlalchemy[asyncio]' asyncpg; }
get_mlflow() {
  local number
  number=$(version mlflow)
  pip_install mlflow --no-deps "mlflow==$number"
  pip_install mlflow "mlflow-skinny==$number" alembic sqlalchemy psycopg2-binary pandas
}
get_phoenix() {
  pip_install phoenix --no-deps "arize-phoenix==$(version arize-phoenix)"
  pip_install phoenix 'sqlalchemy[asyncio]' 'psycopg[binary]' openinference-semantic-conventions \
    openinference-instrumentation arize-phoenix-sqlean aiosqlite numpy pandas pydantic httpx orjson \
    email-validator ldap3 starlette tqdm 'strawberry-graphql<1' jsonpath-ng cryptography pyarrow alembic
}
get_openwebui() {
  pip_install openwebui --no-deps "open-webui==$(version open-webui)"
  pip_install openwebui 'sqlalchemy[asyncio]>=2.0,<2.1' 'psycopg[binary]' psycopg2-binary alembic pydantic markdown \
    beautifulsoup4 cryptography typer uvicorn argon2-cffi bcrypt pillow python-mimeparse pyotp qrcode aiohttp pycrdt \
    redis loguru python-socketio orjson
  rm -rf "$packages"/openwebui/lib/python3*/site-packages/open_webui/frontend # a third of it
}
get_mastra() { npm_install mastra "@mastra/pg@$(version @mastra/pg)" @mastra/core@'>=0.20 <0.25'; }
get_flowise() {
  npm_install flowise typeorm@0.3 pg@8 reflect-metadata
  npm_unpack flowise flowise "flowise@$(version flowise)" package/dist/database
}
get_n8n() {
  npm_install n8n @n8n/typeorm pg@8 p-lazy@3
  npm_unpack n8n n8n-db "@n8n/db@$(version @n8n/db)" package/dist/migrations
}
get_lobehub() {
  mkdir -p "$packages/lobehub"
  npm_unpack lobehub lobehub "@lobehub/lobehub@$(version @lobehub/lobehub)" package/packages/database/migrations
  [[ $(psql -At -c "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == 1 ]] ||
    die 'pgvector is not installed'
}

# apart COMMAND…: runs it in a shell of its own, which ends at its first error, and sets failed. Never call this, or
# what calls it, in a condition: there bash would go on after errors.
apart() {
  set +e
  (set -e && "$@")
  failed=$?
  set -e
}

# get NAME: as above, unless an earlier run has got the same. Sets failed.
get() {
  local log="$packages/$1.log" done="$packages/$1.done" wanted
  wanted=$(declare -f "get_$1")$(grep -o '| [^|]* [0-9][^ |]* |' "$page")
  failed=0
  if [[ $(cat "$done" 2>/dev/null) == "$wanted" ]]; then return; fi
  if ((SECONDS > budget)); then
    failed=1
    skip "application $1" "not installed: the $budget seconds for that are over"
    return
  fi
  rm -rf "${packages:?}/$1"
  apart "get_$1" >"$log" 2>&1 </dev/null
  if ((failed == 0)); then
    note "$wanted" >"$done"
  else
    skip "application $1" "could not be installed: $(tail -n 1 "$log" | cut -c 1-200)"
  fi
}

# The application makes its tables and writes rows.
write_rows() {
  local writer name=$1
  writer=$(compgen -G "$folder/$name.[pcs]*[yh]" || compgen -G "$folder/$name.*js")
  export PACKAGES="$packages/$name/packages"
  case $writer in
    *.py) (cd "$packages" && "$packages/$name/bin/python" -P "$writer") ;;
    *.sh) bash "$writer" ;;
    *) # Node looks for packages where the file is.
      cp "$writer" "$packages/$name/" && node "$packages/$name/${writer##*/}"
      ;;
  esac
}

# statement NAME: the call of bind_tables that the page prints for this graph.
statement() {
  awk -v name="name => '$1'" '/^```/ { inside = !inside; statement = ""; taken = 0; next }
    inside && /bind_tables\(/ { taken = 1; statement = "" }
    taken { statement = statement $0 "\n" }
    taken && /;$/ { taken = 0; if (index(statement, name)) { printf "%s", statement; found = 1; exit } }
    END { exit !found }' "$page"
}

# bind NAME: as a reader would: the statement, and the indexes that it asks for.
bind() {
  local commands
  statement "$1" | PGOPTIONS='-c client_min_messages=warning' psql -f - >/dev/null
  PGOPTIONS="-c graph_kernel.graph=$1"
  export PGOPTIONS
  commands=$(psql -At -c "SELECT hint FROM graph_check() WHERE check_name LIKE 'index%' AND NOT ok")
  psql -f - <<<"$commands"
}

# check NAME: what the slices say, and what graph_check() finds.
check() {
  local shown
  shown=$(psql -At -F ' | ' -f "$folder/$1.sql" -c "SELECT 'not ok: ' || check_name FROM graph_check() WHERE NOT ok")
  [[ ${GRAPH_KERNEL_BLESS:-} != 1 ]] || printf '%s\n' "$shown" >"$folder/$1.out"
  diff "$folder/$1.out" - <<<"$shown"
}

# application NAME HOW COMMAND…: COMMAND makes the tables and writes the rows.
application() {
  local how=$2 log="$packages/$1.run.log"
  drop_database
  PGDATABASE=postgres psql -c "CREATE DATABASE $database"
  apart bound "$log" "$1" "${@:3}"
  if ((failed == 0)); then
    note "ok $1 ($how)"
  else
    tail -n 20 "$log"
    note "not ok $1 ($how)"
    status=1
  fi
}
bound() {
  export PGDATABASE=$database
  psql -c 'CREATE EXTENSION graph_kernel'
  "${@:3}" >"$1" 2>&1 </dev/null
  bind "$2"
  check "$2"
}

# package_of CHECK: what makes the tables of a check, where a registry has it. Channels are a part of Open WebUI.
package_of() {
  local name=${1##*/}
  name=${name%.sql} name=${name%_channels}
  if [[ $(type -t "get_$name") ]]; then note "$name"; fi
}

packaged=yes
if [[ ${1:-} == tables ]]; then
  packaged=
  shift
fi
trap drop_database EXIT
for check in "$folder"/*.sql; do
  name=${check##*/} name=${name%.sql}
  if (($# > 0)) && [[ " $* " != *" $name "* ]]; then continue; fi
  package=$(package_of "$check")
  if [[ ! $packaged ]]; then
    :
  elif [[ $package ]]; then
    get "$package"
    if ((failed == 0)); then application "$name" 'tables of its package' write_rows "$package"; fi
  else
    skip "application $name" 'no registry has it: its tables are made from its public schema'
  fi
  # The rows of the others are not those that the package writes.
  if ! grep -q '^-- rows of the package alone' "$check"; then
    application "$name" 'tables of its schema' psql -f "$root/tests/server/applications/$name.sql"
  fi
done
# They would serve the next run.
[[ -z ${CI:-} ]] || rm -rf "${packages:?}"
exit "$status"

#!/usr/bin/env bash
# pgvector.sh: builds pgvector from its Debian source package and installs it into the private server of PG_CONFIG.
# Sources and builds are kept below target/. Ends with status 3 where pgvector cannot be had.
. "$(dirname "$0")/common.sh"
. "$root/tests/harness/debian_source.sh"
select_server "$PG_CONFIG"

cache="$root/target/pgvector"
build="$cache/build-$major"
log="$cache/build-$major.log"

# PostgreSQL's build files are included by name.
[[ $pg_config != *[[:space:]]* ]] || unavailable "there is a space in the path $pg_config, which its build cannot take"

installed() { [[ -r $("$pg_config" --sharedir)/extension/vector.control ]]; }

if installed; then
  note "pgvector is there for PostgreSQL $major"
  exit
fi
fetch_source pgvector # one release for every server: it builds for PostgreSQL 13 to 18
rm -rf "$build"
mkdir -p "$build"
tar -xf "$archive" -C "$build" --strip-components=1
# No -march=native: the build may be kept on a disk that another machine mounts.
if ! make -C "$build" -s OPTFLAGS= PG_CONFIG="$pg_config" >"$log" 2>&1 ||
  ! make -C "$build" -s install PG_CONFIG="$pg_config" >>"$log" 2>&1; then
  unavailable "the build failed: $(tail -n 1 "$log")"
fi
installed || unavailable 'the build left nothing behind'
note "pgvector $(sed -n "s/^default_version = '\(.*\)'/\1/p" "$build/vector.control") installed for PostgreSQL $major"

#!/usr/bin/env bash
# postgres.sh MAJOR: builds PostgreSQL from its Debian source package into the private server of that major.
# With ASSERT=1 a server beside it that checks its own assertions, and that Valgrind can look into. Ends with status 3
# where it cannot be had.
. "$(dirname "$0")/common.sh"
. "$root/tests/harness/debian_source.sh"

major=${1:?usage: postgres.sh MAJOR}
((major == 17)) || die "$suite of Debian has the source of PostgreSQL 17 only, not of $major"
find_base
tree="$base/server-$major"
options=(CFLAGS=-O2)
if [[ -n ${ASSERT:-} ]]; then
  tree+=-assert
  options=(--enable-cassert --enable-debug 'CFLAGS=-O1')
  if [[ -f /usr/include/valgrind/memcheck.h ]]; then options+=('CPPFLAGS=-DUSE_VALGRIND'); fi
fi
modules=(amcheck auto_explain btree_gin file_fdw pg_stat_statements test_decoding) # those that tests load
cache="$root/target/postgresql-$major"
build="$cache/build"
log="$cache/build.log"

# The program of the isolation tests is installed last: its presence marks the server as complete.
is_whole() {
  [[ -x $(dirname "$("$tree/bin/pg_config" --pgxs 2>/dev/null)")/../test/isolation/pg_isolation_regress ]]
}
done_note() { note "$("$tree/bin/postgres" --version) is built: PG_CONFIG=$tree/bin/pg_config"; }

# Installed where it runs: its programs find libpq by that path. Only what Debian always has is linked in.
build_server() {
  local module
  ./configure --prefix="$tree" --without-icu --without-readline --without-zlib "${options[@]}" &&
    make -s -j"$(nproc)" &&
    rm -rf "$tree" &&
    make -s install &&
    for module in "${modules[@]}"; do make -s -C "contrib/$module" install || return; done &&
    cp src/tools/valgrind.supp "$tree/share/" &&
    make -s -C src/test/isolation install
}

if is_whole; then
  done_note
  exit
fi
[[ $tree != *[[:space:]]* ]] || unavailable "there is a space in the path $tree, which its build cannot take"
for program in "${postgres_build_packages[@]}"; do
  command -v "$program" >/dev/null || unavailable "its build needs $program: run make setup as root"
done
mkdir -p "$cache"
fetch_source "postgresql-$major" postgresql-17_17.11.orig.tar.bz2 \
  dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979
rm -rf "$build"
mkdir -p "$build"
note "building PostgreSQL $major, which takes some minutes: $log"
tar -xf "$archive" -C "$build" --strip-components=1
cd "$build"
build_server >"$log" 2>&1 </dev/null || unavailable "the build failed: $(tail -n 1 "$log")"
cd "$root"
rm -rf "$build"
done_note

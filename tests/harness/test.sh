#!/usr/bin/env bash
# test.sh MAJOR…: everything `make test` runs, step by step; the last line counts the tests.
# What does not depend on the server runs once, and the tests inside the server, the clients, the lint of the script and
# the bench on the first of several majors only.
. "$(dirname "$0")/common.sh"
. "$root/tests/harness/steps.sh"

logs="$root/target/test-logs"

# pg_regress closes with "All 3 tests passed." or "1 of 3 tests failed.", after a space or, since 16, "# ".
count_regress() {
  sed -nE 's/^#? All ([0-9]+) tests passed.*/\1 0/p; s/^#? ([0-9]+) of ([0-9]+) tests failed.*/\2 \1/p' "$1" |
    awk '{ good = $1 - $2; bad = $2 } END { print good + 0, bad + 0 }'
}

# What prints "ok NAME" or "not ok NAME" for each test.
count_lines() { awk '/^ok / { good++ } /^not ok / { bad++ } END { print good + 0, bad + 0 }' "$1"; }

kernel_tests() { cargo test --no-fail-fast -p graph_kernel_core -p graph_kernel_cli -p graph_kernel_tests; }

# The extension's tests inside a server that cargo pgrx starts itself, on a loopback port.
pgrx_tests() {
  local as=()
  data=$(mktemp -d /tmp/gk.XXXXXX) # short: the socket is in it
  trap end_pgrx_tests EXIT
  if ((EUID == 0)); then
    chown "$server_user" "$data"
    as=(--runas "$server_user")
  fi
  rm -f "$("$pg_config" --pkglibdir)/graph_kernel.so" # see install_release
  env -u RUST_BACKTRACE -u PGRX_TEST_SKIP USER="$(id -un)" PATH="$root/tests/harness/bin:$PATH" \
    cargo pgrx test "pg$major" --no-default-features --pgdata "$data" "${as[@]}"
}
end_pgrx_tests() {
  local pid_file
  for pid_file in "$data"/*/postmaster.pid; do
    if [[ -f $pid_file ]]; then as_server "$bindir/pg_ctl" stop -s -m immediate -D "${pid_file%/*}" || true; fi
  done
  rm -rf "$data"
}

# regress KIND PROGRAM FILES…: PostgreSQL's own test program over tests/KIND, in the order of its schedule if it has one.
regress() {
  local kind=$1 program=$2 file names=() output="$logs/$1-$major" status=0
  local schedule="tests/$kind/schedule"
  shift 2
  for file in "$@"; do
    file=${file##*/}
    names+=("${file%.*}")
    if [[ -f $schedule ]]; then
      grep -qE "^test:.* ${file%.*}( |$)" "$schedule" || die "$schedule does not name $file"
    fi
  done
  if [[ -f $schedule ]]; then names=(--schedule="$schedule"); fi
  mkdir -p "$output"
  "$(dirname "$("$pg_config" --pgxs)")/../test/$kind/$program" --bindir="$bindir" \
    --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" --dbname="graph_kernel_$kind" \
    --inputdir="tests/$kind" --outputdir="$output" "${names[@]}" || status=$?
  if [[ -s $output/regression.diffs ]]; then cat "$output/regression.diffs"; fi
  return "$status"
}

# The targets of the tests package that need a server say so: required-features = ["server"].
server_targets() {
  awk -F'"' '/^\[/ { name = "" } /^name = / { name = $2 }
    /^required-features = .*"server"/ { print "--test", name }' tests/Cargo.toml
}
# They compile nothing of PostgreSQL, so one build serves every major. Some run the program.
server_tests() {
  export CARGO_TARGET_DIR="$root/target"
  cargo build -p graph_kernel_cli
  # shellcheck disable=SC2046 # words
  GRAPH_KERNEL_PROGRAM="$CARGO_TARGET_DIR/debug/graph-kernel" cargo test --no-fail-fast -p graph_kernel_tests --features server $(server_targets)
}

stop_server() { "$root/tests/harness/server.sh" stop test; }

# From one version to another of those that were tested, with the same script in each.
majors_tests() {
  "$root/tests/harness/server.sh" start test
  use_server test
  upgrade_tests "${tested[@]}"
}

# Warnings fail: clippy has seen the code of the first major only.
release_install() {
  install_release 2>&1 | awk '{ print } /^warning: .graph_kernel. .*generated [0-9]+ warning/ { bad = 1 } END { exit bad }'
}

# Everything that needs the extension in a running server, for the selected major.
server_steps() {
  local server="PostgreSQL $major"
  step count_status "$server: release install" release_install
  if ((bad != 0)); then
    skip "$server: all tests on it" 'the extension did not install'
    return
  fi
  tested+=("$bindir")
  # Now, while it is built: for another server Cargo builds half of it anew.
  if [[ $packaged ]]; then step count_status "$server: stage the package" "$root/packaging/stage.sh" "$major"; fi
  if ! "$root/tests/harness/pgvector.sh" >"$logs/pgvector-$major.log" 2>&1; then
    lack "$server: tests with pgvector" "$(tail -n 1 "$logs/pgvector-$major.log")"
  fi
  step count_status "$server: start" "$root/tests/harness/server.sh" start test
  ((bad == 0)) || return 0
  use_server test
  if compgen -G 'tests/regress/sql/*.sql' >/dev/null; then
    step count_regress "$server: regress" regress regress pg_regress tests/regress/sql/*.sql
  else
    skip "$server: regress" 'no tests/regress/sql/*.sql'
  fi
  if compgen -G 'tests/isolation/specs/*.spec' >/dev/null; then
    step count_regress "$server: isolation" regress isolation pg_isolation_regress tests/isolation/specs/*.spec
  else
    skip "$server: isolation" 'no tests/isolation/specs/*.spec'
  fi
  if [[ -n $(server_targets) ]]; then
    step count_cargo "$server: server tests" server_tests
  else
    skip "$server: server tests" 'no target of tests/Cargo.toml has required-features = ["server"]'
  fi
  if [[ $first ]]; then step count_lines "$server: clients" "$root/tests/harness/clients.sh"; fi
  stop_server
}

# pgspot finds names in the extension's script that somebody could shadow. It knows no bodies that are parsed at
# creation: it is shown their statements where they stand, as it is the script's search_path that holds for them.
lint_script() {
  local upgrades
  upgrades=$(compgen -G 'sql/graph_kernel--*--*.sql' || true)
  # shellcheck disable=SC2086 # words
  sed 's/@extschema@/public/g' "$(script_in "$pg_config")" $upgrades |
    perl -0pe 's/^BEGIN ATOMIC\n(.*?)^END;$/AS \$\$ \$\$;\n$1/msg; s/^RETURN (.*?);$/AS \$\$ \$\$;\nSELECT $1;/msg' \
      >"$logs/script.sql"
  # A procedure that commits cannot have a SET clause; its body is looked at all the same.
  PYTHONPATH="$root/target/pgspot" python3 "$root/target/pgspot/bin/pgspot" \
    --proc-without-search-path 'graph_kernel.backfill_content_hashes(batch integer)' "$logs/script.sql"
}

script_step() {
  if [[ ! -x $root/target/pgspot/bin/pgspot ]] && ! python3 -m pip install --quiet --retries 1 \
    --target "$root/target/pgspot" 'pgspot>=0.9,<0.10' >"$logs/pgspot-install.log" 2>&1; then
    lack 'pgspot' "python3 -m pip could not install it: $(tail -n 1 "$logs/pgspot-install.log")"
    return
  fi
  step count_status 'pgspot' lint_script
}

rm -rf "$logs"
mkdir -p "$logs"
find_base

built_once() {
  step count_status 'versions' check_versions
  step count_status 'layers' check_layers
  step count_status 'cargo fmt' check_format
  step count_status 'cargo clippy' check_clippy
  step count_cargo 'kernel tests' kernel_tests
  step count_cargo "PostgreSQL $major: cargo pgrx test" pgrx_tests
}

# Packages are of all majors, and building them takes minutes: a run of one major goes without.
packaged=
if (($# > 1)); then
  if command -v dh >/dev/null; then packaged=yes; else lack 'packages' 'there is no debhelper: run make setup as root'; fi
fi

first=yes tested=() had=()
for number in "$@"; do
  server=$(server_of "$number")
  if ! get_server "$number" "$server" >"$logs/server-$number.log" 2>&1; then
    lack "PostgreSQL $number" "$(tail -n 1 "$logs/server-$number.log")"
    continue
  fi
  had+=("$number")
  select_server "$server"
  trap stop_server EXIT
  if [[ $first ]]; then built_once; fi
  server_steps
  if [[ $first ]]; then
    script_step
    # Its build takes minutes: a run of one major goes without.
    if (($# > 1)); then step count_status 'bench, short' "$root/tests/harness/bench.sh" short; fi
  fi
  first=
done
if ((${#tested[@]} > 1)); then
  step count_cargo 'from one version of PostgreSQL to another' majors_tests
  stop_server
fi
if [[ $packaged ]] && ((${#had[@]} > 0)); then
  PG_CONFIG=$chosen_pg_config
  step count_status 'packages' "$root/packaging/packages.sh" "${had[@]}"
  if ((bad == 0)); then step count_cargo 'packages: tests' "$root/packaging/test.sh" "${had[@]}"; fi
fi
if [[ $first ]] && ((failed == 0)); then
  failed=$((failed + 1))
  note "PostgreSQL: 0 passed, 1 failed: there is none of $*"
fi

close_steps

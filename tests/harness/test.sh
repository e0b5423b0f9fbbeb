#!/usr/bin/env bash
# test.sh MAJOR…: everything `make test` runs, step by step; the last line counts the tests.
# What does not depend on the server runs once; on majors after the first what depends most on the server. While the
# first is tested, the others are built: those between the first and the last without optimisation, with checked
# arithmetic.
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

# test_targets AWK: the targets of the tests package of which that is true; `needs` are the features that one requires.
test_targets() {
  awk -F'"' 'function told() { if (name != "" && ('"$1"')) print "--test", name; name = needs = "" }
    /^\[/ { told(); is_test = $0 == "[[test]]" } is_test && /^name = / { name = $2 }
    /^required-features = / { needs = $2 } END { told() }' tests/Cargo.toml
}

kernel_tests() {
  # shellcheck disable=SC2046 # words
  cargo test --no-fail-fast "${tested_packages[@]}" --lib --bins --test program $(test_targets 'needs == ""')
}

# regress KIND PROGRAM FILES…: PostgreSQL's own test program over tests/KIND, in the order of its schedule if it has
# one.
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

server_targets() { test_targets 'needs == "server"'; }
# They compile nothing of PostgreSQL, so one build serves every major. Some run the program. The largest runs beside the
# others, as the last tests of a program leave processors idle; server_alone runs when these have ended. After the first
# major those run that depend most on the server: privileges, and on the last attacks and searches with pgvector.
# Attacks take minutes: of several majors the last alone has them.
server_tests() {
  local run others status=0 beside="$logs/beside-$major.log"
  export CARGO_TARGET_DIR="$root/target"
  build_program
  export GRAPH_KERNEL_PROGRAM="$CARGO_TARGET_DIR/debug/graph-kernel"
  run=(cargo test --no-fail-fast "${tested_packages[@]}")
  # shellcheck disable=SC2046 # words
  "${run[@]}" --no-run $(server_targets)
  if [[ ! $first ]]; then
    if ! is_between "$major"; then run+=(--test attacks --test retrieval); fi
    "${run[@]}" --test privileges
    return
  fi
  others=$(server_targets | grep -vxE -e '--test (server|server_alone)')
  if [[ $several ]]; then others=$(grep -vx -e '--test attacks' <<<"$others"); fi
  "${run[@]}" --test server >"$beside" 2>&1 &
  # shellcheck disable=SC2086
  "${run[@]}" $others || status=$?
  wait $! || status=$?
  cat "$beside"
  "${run[@]}" --test server_alone || status=$?
  return "$status"
}

stop_server() { "$root/tests/harness/server.sh" stop test; }

# From one version to another of those that were tested, with the same script in each.
majors_tests() {
  "$root/tests/harness/server.sh" start test
  use_server test
  upgrade_tests "${tested[@]}"
}

# Warnings fail: clippy has seen the code of the first major only.
install_of() {
  install_library "$@" 2>&1 |
    awk '{ print } /^warning: .graph_kernel. .*generated [0-9]+ warning/ { bad = 1 } END { exit bad }'
}

# built NAME COMMAND…: runs it into a log, and leaves its status beside that.
built() {
  local name=$1 status=0 start=$SECONDS
  shift
  # In a shell of its own, which ends at its first error.
  set +e
  (set -e && "$@") >"$logs/built-$name.log" 2>&1 </dev/null
  status=$?
  set -e
  note "$name: $((SECONDS - start)) s" >>"$logs/built.log"
  note "$status" >"$logs/built-$name.new"
  mv "$logs/built-$name.new" "$logs/built-$name"
}
# was_built NAME: waits for `built NAME`, prints its log and has its status.
was_built() {
  while [[ ! -f $logs/built-$1 ]]; do
    kill -0 "$builder" 2>/dev/null || [[ -f $logs/built-$1 ]] || {
      note "the builds beside the tests ended before $1"
      return 1
    }
    sleep 0.2
  done
  cat "$logs/built-$1.log"
  return "$(cat "$logs/built-$1")"
}

select_major() {
  local server
  server=$(server_of "$1")
  get_server "$1" "$server"
  select_server "$server"
}
on_major() {
  select_major "$1"
  "${@:2}"
}

# All builds, beside the tests, as a linker keeps one processor busy. One after the other: Cargo builds half of the
# extension anew for another server, so all that needs one build comes before the next. The quick ones come last: Cargo
# lets only one build at a time into the folder that tests are built in.
build_all() {
  local number quick=() thorough=()
  for number in "$@"; do
    if is_between "$number"; then quick+=("$number"); else thorough+=("$number"); fi
  done
  for number in "${thorough[@]}" "${quick[@]}"; do
    built server-"$number" select_major "$number"
    if is_between "$number"; then
      built install-"$number" on_major "$number" install_of
    else
      built install-"$number" on_major "$number" install_of --release
      if [[ $packaged ]]; then built stage-"$number" "$root/packaging/stage.sh" "$number"; fi
    fi
  done
  # With the flags that packages.sh builds it with.
  if [[ $packaged ]]; then built program on_major "$1" cargo build --release -p graph_kernel_cli; fi
}
# What tests on the first major install from registries, beside the other tests, as it waits for them most of its time.
# What is missing after that is got by the tests themselves.
get_packages() { "$root/tests/harness/python_client.sh" get || true; }
end() {
  local job
  for job in $builder $getter $applications; do kill "$job" 2>/dev/null || true; done
  stop_server
}

# Everything that needs the extension in a running server, for the selected major.
server_steps() {
  local server="PostgreSQL $major"
  step count_status "$server: install" was_built install-"$major"
  if ((bad != 0)); then
    skip "$server: all tests on it" 'the extension did not install'
    return
  fi
  tested+=("$bindir")
  if [[ $packaged ]] && ! is_between "$major"; then
    step count_status "$server: stage the package" was_built stage-"$major"
  fi
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
  if [[ $first ]]; then
    wait "$getter"
    # Each waits for its server most of its time.
    built applications "$root/tests/harness/applications.sh" tables &
    applications=$!
    step count_lines "$server: clients" "$root/tests/harness/clients.sh"
    step count_lines "$server: client for Python" "$root/tests/harness/python_client.sh"
    step count_lines "$server: client for TypeScript" "$root/tests/harness/typescript_client.sh"
    step count_lines "$server: clients of the program" "$root/tests/harness/service.sh"
    step count_lines "$server: page" "$root/tests/harness/page.sh"
    wait "$applications"
    step count_lines "$server: applications" was_built applications
  fi
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
    --proc-without-search-path 'graph_kernel.backfill_content_hashes(batch integer)' \
    --proc-without-search-path 'graph_kernel.refresh_kept(limit_count bigint,older_than interval)' "$logs/script.sql"
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
  # It compiles for minutes, and make lint has it.
  [[ $several ]] || step count_status 'cargo clippy' check_clippy
  step count_cargo 'kernel tests' kernel_tests
}

several='' builder='' getter='' applications=''
if (($# > 1)); then several=yes; fi
# Packages are of the first major and the last, and building them takes minutes: a run of one major goes without.
packaged=
if [[ $several ]]; then
  if command -v dh >/dev/null; then
    packaged=yes
  else
    lack 'packages' 'there is no debhelper: run make setup as root'
  fi
fi

is_between() { [[ $1 != "${majors[0]}" && $1 != "${majors[-1]}" ]]; }

majors=("$@")
first=yes tested=() outer=()
position=0
for number in "$@"; do
  position=$((position + 1))
  server=$(server_of "$number")
  if [[ $first ]]; then get=(get_server "$number" "$server"); else get=(was_built server-"$number"); fi
  if ! "${get[@]}" >"$logs/server-$number.log" 2>&1; then
    lack "PostgreSQL $number" "$(tail -n 1 "$logs/server-$number.log")"
    continue
  fi
  if ! is_between "$number"; then outer+=("$number"); fi
  select_server "$server"
  trap end EXIT
  if [[ $first ]]; then
    build_all "${@:position}" &
    builder=$!
    get_packages >"$logs/packages-got.log" 2>&1 </dev/null &
    getter=$!
    built_once
  fi
  server_steps
  if [[ $first ]]; then script_step; fi
  first=
done
if ((${#tested[@]} > 1)); then
  step count_cargo 'from one version of PostgreSQL to another' majors_tests
  stop_server
fi
if [[ $packaged ]] && ((${#outer[@]} > 0)); then
  PG_CONFIG=$chosen_pg_config
  step count_status 'packages' "$root/packaging/packages.sh" "${outer[@]}"
  if ((bad == 0)); then step count_cargo 'packages: tests' "$root/packaging/test.sh" "${outer[@]}"; fi
fi
if [[ $first ]] && ((failed == 0)); then
  failed=$((failed + 1))
  note "PostgreSQL: 0 passed, 1 failed: there is none of $*"
fi

close_steps

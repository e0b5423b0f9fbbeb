#!/usr/bin/env bash
# setup.sh [MAJOR…]: installs what is missing: Debian packages (root only), Rust, cargo-pgrx, the private copy of the
# server of PG_CONFIG; or what the tests of these majors need.
. "$(dirname "$0")/common.sh"

majors=("$@")
find_base

wanted_packages() {
  local server servers=("$PG_CONFIG") number
  if ((${#majors[@]} > 0)); then
    servers=()
    for number in "${majors[@]}"; do servers+=("$(server_of "$number")"); done
  fi
  note clang libclang-dev pkg-config gcc libc6-dev make curl ca-certificates
  for server in "${servers[@]}"; do
    if [[ $server =~ ^/usr/lib/postgresql/([0-9]+)/bin/pg_config$ ]]; then
      note "postgresql-${BASH_REMATCH[1]} postgresql-server-dev-${BASH_REMATCH[1]}"
    fi
  done
}

# Only some of the tests need them: they are skipped without.
wanted_test_packages() {
  local server
  ((${#majors[@]} > 0)) || return 0
  python3 -m pip --version >/dev/null 2>&1 || note python3-pip
  note git debhelper lintian debootstrap # for packages
  note pgbouncer
  note chromium # for the page
  server="$base/server-17/bin/pg_config"
  if [[ " ${majors[*]} " == *' 17 '* && $(server_of 17) == "$server" && ! -x $server ]]; then
    note "${postgres_build_packages[*]}"
  fi
}

# missing PACKAGES…
missing() {
  local package
  command -v dpkg-query >/dev/null || return 0 # not Debian: the compiler says what it misses
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf ' %s' "$package"
  done
}

no_cluster=/etc/postgresql-common/createcluster.d/graph_kernel.conf
install_packages() {
  local missing optional
  # shellcheck disable=SC2046 # lists of names
  missing=$(missing $(wanted_packages)) optional=$(missing $(wanted_test_packages))
  if ((EUID != 0)); then
    [[ -z $missing ]] || die "missing Debian packages: run this as root, then repeat:" \
    "apt-get install --no-install-recommends$missing$optional"
    [[ -z $optional ]] || note "missing Debian packages, without which tests are skipped:$optional"
    return
  fi
  missing+=$optional
  [[ -n $missing ]] || return 0
  note "installing$missing"
  # Only the programs are wanted: keep the package from creating and starting a cluster.
  mkdir -p "$(dirname "$no_cluster")"
  note 'create_main_cluster = false' >"$no_cluster"
  trap 'rm -f "$no_cluster"' EXIT
  apt-get update -qq
  # shellcheck disable=SC2086 # a list of names
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
  # Only the program is wanted, not its service.
  if [[ " $missing " == *' pgbouncer '* ]] && command -v systemctl >/dev/null; then
    systemctl disable --quiet --now pgbouncer 2>/dev/null || note 'the service pgbouncer may be running'
  fi
}

install_rust() {
  local oldest=1.88.0 found
  if ! command -v cargo >/dev/null; then
    note 'installing Rust with rustup'
    curl --proto '=https' --tlsv1.2 -fsSL https://sh.rustup.rs |
      sh -s -- -y --quiet --profile minimal --component rustfmt,clippy
  fi
  found=$(cargo --version | cut -d' ' -f2)
  printf '%s\n' "$oldest" "$found" | sort -CV ||
    die "cargo $found is too old: run rustup update, or put cargo $oldest or newer first on PATH"
}

install_pgrx() {
  local version
  version=$(sed -n 's/^pgrx = "=\(.*\)"/\1/p' Cargo.toml) # tool and library must be of one version
  if [[ $(cargo pgrx --version 2>/dev/null) != "cargo-pgrx $version" ]]; then
    note "installing cargo-pgrx $version"
    CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-pgrx --version "$version" --locked --debug --quiet
  fi
}

install_packages
if ((EUID == 0)); then
  id postgres >/dev/null 2>&1 || die 'no account postgres to run servers as: useradd --system postgres'
fi
install_rust
install_pgrx
((${#majors[@]} > 0)) || select_server "$PG_CONFIG"

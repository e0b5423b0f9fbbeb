#!/usr/bin/env bash
# Installs what is missing: Debian packages (root only), Rust, cargo-pgrx, the private copy of the server.
. "$(dirname "$0")/common.sh"

wanted_packages() {
  note clang libclang-dev pkg-config gcc libc6-dev make curl ca-certificates
  if [[ $PG_CONFIG =~ ^/usr/lib/postgresql/([0-9]+)/bin/pg_config$ ]]; then
    note "postgresql-${BASH_REMATCH[1]} postgresql-server-dev-${BASH_REMATCH[1]}"
  fi
}

missing_packages() {
  local package
  for package in $(wanted_packages); do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf ' %s' "$package"
  done
}

no_cluster=/etc/postgresql-common/createcluster.d/graph_kernel.conf
install_packages() {
  local missing
  command -v dpkg-query >/dev/null || return 0 # not Debian: the compiler says what it misses
  missing=$(missing_packages)
  [[ -n $missing ]] || return 0
  ((EUID == 0)) || die "missing Debian packages: run this as root, then repeat: apt-get install --no-install-recommends$missing"
  note "installing$missing"
  # Only the programs are wanted: keep the package from creating and starting a cluster.
  mkdir -p "$(dirname "$no_cluster")"
  note 'create_main_cluster = false' >"$no_cluster"
  trap 'rm -f "$no_cluster"' EXIT
  apt-get update -qq
  # shellcheck disable=SC2086 # a list of names
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
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
select_server "$PG_CONFIG"

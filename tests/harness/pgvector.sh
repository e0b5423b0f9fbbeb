#!/usr/bin/env bash
# pgvector.sh: builds pgvector from its Debian source package and installs it into the private server of PG_CONFIG.
# Sources and builds are kept below target/. Needs no root; ends with status 3 where pgvector cannot be had.
. "$(dirname "$0")/common.sh"
select_server "$PG_CONFIG"

suite=trixie # the oldest that has it, for every server: it builds for PostgreSQL 13 to 18
cache="$root/target/pgvector"
log="$cache/log"

lacking() {
  note "pgvector cannot be had: $1"
  exit 3
}

# PostgreSQL's build files are included by name.
[[ $pg_config != *[[:space:]]* ]] || lacking "there is a space in the path $pg_config, which its build cannot take"

installed() { [[ -r $("$pg_config" --sharedir)/extension/vector.control ]]; }

# Downloads with an apt of our own beside the machine's, whose sources may lack the suite and need root.
fetch() {
  local apt="$cache/apt" site
  command -v apt-get >/dev/null || lacking 'there is no apt-get'
  # shellcheck disable=SC2016 # apt's own fields
  site=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "Debian" && $2 !~ /security/ { print $2; exit }')
  [[ -n $site ]] || lacking 'no Debian archive is configured'
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial}
  note "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $suite main" >"$apt/sources.list"
  cat >"$apt/apt.conf" <<CONF
Dir::State "$apt/state";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
APT::Sandbox::User "$(id -un)";
CONF
  export APT_CONFIG="$apt/apt.conf"
  apt-get update >"$log" 2>&1 || lacking "apt-get update failed: $(tail -n 1 "$log")"
  rm -rf "$cache/source"
  mkdir -p "$cache/source.new"
  (cd "$cache/source.new" && apt-get source --download-only pgvector) >"$log" 2>&1 ||
    lacking "apt-get source failed: $(tail -n 1 "$log")"
  mv "$cache/source.new" "$cache/source"
}

if installed; then
  note "pgvector is there for PostgreSQL $major"
  exit
fi
mkdir -p "$cache"
compgen -G "$cache/source/pgvector_*.orig.tar.gz" >/dev/null || fetch

build="$cache/build-$major"
rm -rf "$build"
mkdir -p "$build"
tar -xf "$cache"/source/pgvector_*.orig.tar.gz -C "$build" --strip-components=1
# No -march=native: the build may be kept on a disk that another machine mounts.
if ! make -C "$build" -s OPTFLAGS= PG_CONFIG="$pg_config" >"$log" 2>&1 ||
  ! make -C "$build" -s install PG_CONFIG="$pg_config" >>"$log" 2>&1; then
  lacking "the build failed: $(tail -n 1 "$log")"
fi
installed || lacking 'the build left nothing behind'
note "pgvector $(sed -n "s/^default_version = '\(.*\)'/\1/p" "$build/vector.control") installed for PostgreSQL $major"

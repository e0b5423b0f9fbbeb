# shellcheck shell=bash
# Debian source packages of a newer suite than the machine's; sourced after common.sh. Needs no root.
# What they are kept in: $cache, which the caller sets.

suite=trixie # the oldest that has both pgvector and PostgreSQL 17

# unavailable REASON: status 3 makes the caller leave out what needs it.
unavailable() {
  note "$1"
  exit 3
}

# fetch_source PACKAGE [ARCHIVE SHA256]: leaves the package's upstream archive in $cache/source, and its path in
# `archive`. Downloads with an apt of our own beside the machine's, whose sources may lack the suite and need root. A
# mirror whose index is ahead of its files does not have the newest version: then the archive that is named is taken.
fetch_source() {
  local package=$1 older=${2:-} apt="$cache/apt" log="$cache/fetch.log" site
  archive=$(compgen -G "$cache/source/${package}_*.orig.tar.*" || true)
  [[ -z $archive ]] || return 0
  command -v apt-get >/dev/null || unavailable 'there is no apt-get'
  # shellcheck disable=SC2016 # apt's own fields
  site=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "Debian" && $2 !~ /security/ { print $2; exit }')
  [[ -n $site ]] || unavailable 'no Debian archive is configured'
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial}
  note "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $suite main" >"$apt/sources.list"
  cat >"$apt/apt.conf" <<CONF
Dir::State "$apt/state";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
APT::Sandbox::User "$(id -un)";
CONF
  APT_CONFIG="$apt/apt.conf" apt-get update >"$log" 2>&1 || unavailable "apt-get update failed: $(tail -n 1 "$log")"
  rm -rf "$cache/source" "$cache/source.new"
  mkdir -p "$cache/source.new"
  if ! (cd "$cache/source.new" && APT_CONFIG="$apt/apt.conf" apt-get source --download-only "$package") \
    >"$log" 2>&1; then
    [[ -n $older ]] || unavailable "apt-get source failed: $(tail -n 1 "$log")"
    (cd "$cache/source.new" && curl -fsSLO "${site%/}/pool/main/${package:0:1}/$package/$older" &&
      sha256sum --check --quiet <<<"$3  $older") >>"$log" 2>&1 ||
      unavailable "apt-get source failed, and there is no $older: $(tail -n 1 "$log")"
  fi
  mv "$cache/source.new" "$cache/source"
  archive=$(compgen -G "$cache/source/${package}_*.orig.tar.*")
}

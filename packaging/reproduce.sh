#!/usr/bin/env bash
# reproduce.sh MAJOR…: builds the packages of the last commit in another folder, and compares them byte by byte with
# those in target/packages.
. "$(dirname "$0")/../tests/harness/common.sh"

(($# > 0)) || die 'usage: reproduce.sh MAJOR…'
find_base
packages="$root/target/packages"
[[ -f $packages/SHA256SUMS ]] || die 'there are no packages: run make packages'
[[ -z $(git status --porcelain --untracked-files=no) ]] || die 'there are changes that are not committed'
# git notes the commit in its archive.
comment=$(python3 -c 'import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).comment.decode())' "$packages"/*.zip)
[[ $comment == "$(git rev-parse HEAD)" ]] ||
  die 'the packages are of another commit: run make packages'

other=$(mktemp -d "${TMPDIR:-/var/tmp}/graph_kernel.XXXXXX")
chmod 755 "$other" # the account of servers must be able to reach it
trap 'rm -rf "$other"' EXIT
git clone --quiet --local "$root" "$other/a/longer/path"
cd "$other/a/longer/path" || exit
git checkout --quiet --detach "$(git -C "$root" rev-parse HEAD)"
mkdir target
# The servers, which are not part of what is compared.
for name in wheels postgresql-17; do
  [[ ! -e $root/target/$name ]] || cp -a "$root/target/$name" target/
done
packaging/packages.sh "$@" >"$root/target/packaging/reproduce.log" 2>&1 || {
  tail -n 40 "$root/target/packaging/reproduce.log" >&2
  die 'the second build failed: see target/packaging/reproduce.log'
}
bad=0
while read -r sum file; do
  if [[ $(sha256sum "$packages/$file") == "$sum "* ]]; then
    note "same: $file"
  else
    note "differs: $file"
    bad=1
  fi
done <target/packages/SHA256SUMS
((bad == 0))

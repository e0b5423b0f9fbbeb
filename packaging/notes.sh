#!/usr/bin/env bash
# notes.sh TAG: prints what a release says of itself, the changelog's section. An error where the tag is not v and the
# version of this tree, or where the section has no date yet.
. "$(dirname "$0")/../tests/harness/common.sh"

check_versions
version=$(version_of_tree)
[[ ${1:?usage: notes.sh TAG} == "v$version" ]] || die "the tag is $1, and the version of the tree $version"
grep -qE "^## ${version//./\\.} \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$" CHANGELOG.md ||
  die "CHANGELOG.md has no section '## $version (YYYY-MM-DD)'"
awk -v heading="## $version " '/^## / { mine = index($0, heading) == 1; next } mine' CHANGELOG.md | sed '/./,$!d'

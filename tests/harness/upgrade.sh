#!/usr/bin/env bash
# upgrade.sh MAJOR…: the tests of upgrades on these servers, and from one to another. `make test` runs them too.
. "$(dirname "$0")/common.sh"

stop_server() { "$root/tests/harness/server.sh" stop test; }

find_base
servers=()
for number in "$@"; do
  server=$(server_of "$number")
  get_server "$number" "$server"
  select_server "$server"
  install_release
  trap stop_server EXIT
  "$root/tests/harness/server.sh" start test
  use_server test
  servers+=("$bindir")
  cargo test --no-fail-fast -p graph_kernel_tests --features server --test upgrade
  if (($# > 1 && ${#servers[@]} == $#)); then upgrade_tests "${servers[@]}"; fi
  stop_server
done

#!/usr/bin/env bash
# pgrx_tests.sh: the extension's tests inside a server that cargo pgrx starts itself, on a loopback port. Leaves a build
# for tests in the private server.
. "$(dirname "$0")/common.sh"

select_server "$PG_CONFIG"
data=$(mktemp -d /tmp/gk.XXXXXX) # short: the socket is in it
end() {
  local pid_file
  for pid_file in "$data"/*/postmaster.pid; do
    if [[ -f $pid_file ]]; then as_server "$bindir/pg_ctl" stop -s -m immediate -D "${pid_file%/*}" || true; fi
  done
  rm -rf "$data"
}
trap end EXIT
as=()
if ((EUID == 0)); then
  chown "$server_user" "$data"
  as=(--runas "$server_user")
fi
rm -f "$("$pg_config" --pkglibdir)/graph_kernel.so" # see install_library
env -u RUST_BACKTRACE -u PGRX_TEST_SKIP USER="$(id -un)" PATH="$root/tests/harness/bin:$PATH" \
  cargo pgrx test "pg$major" --no-default-features --pgdata "$data" "${as[@]}"

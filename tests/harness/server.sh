#!/usr/bin/env bash
# server.sh start|restart|stop|status|psql NAME [psql arguments]: a throw-away server on a private unix socket.
. "$(dirname "$0")/common.sh"

usage='usage: server.sh start|restart|stop|status|psql NAME'
action=${1:?$usage}
name=${2:?$usage}
shift 2
select_server "$PG_CONFIG"
run="$base/run/$name-$major"

# A left-over postmaster.pid may name a process of somebody else's by now.
alive() {
  local pid
  pid=$(head -n 1 "$run/data/postmaster.pid") && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF -- "$run/data"
} 2>/dev/null

stop() {
  # Nothing in it is kept, so there is nothing to shut down in good order.
  if alive; then as_server "$bindir/pg_ctl" stop --silent --mode=immediate --pgdata="$run/data"; fi
  if [[ -f $run/socket ]]; then rm -rf "$(cat "$run/socket")"; fi
  rm -rf "$run"
}

start() {
  local socket
  stop # also clears what an aborted run has left
  mkdir -p "$run/scratch"
  socket=$(mktemp -d /tmp/gk.XXXXXX) # short: a socket's path has at most 107 bytes
  note "$socket" >"$run/socket"
  if ((EUID == 0)); then chown -R "$server_user" "$run" "$socket"; fi
  as_server "$bindir/initdb" --pgdata="$run/data" --username=postgres --auth=trust \
    --encoding=UTF8 --locale=C.UTF-8 --no-sync >"$run/initdb.log"
  cat >>"$run/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$socket'
port = 5432
timezone = 'UTC'
max_connections = 50
max_prepared_transactions = 10
shared_preload_libraries = ''
fsync = off
# a standby can be made from it
wal_level = replica
hot_standby = on
CONF
  local program=()
  if [[ -n ${GRAPH_KERNEL_VALGRIND:-} ]]; then
    mkdir -p "$root/target/memcheck"
    ((EUID != 0)) || chown "$server_user" "$root/target/memcheck"
    printf '#!/bin/sh\nexec valgrind --quiet --trace-children=yes --leak-check=no %s=%q --log-file=%q %q "$@"\n' \
      --suppressions \
      "$GRAPH_KERNEL_VALGRIND" "$root/target/memcheck/valgrind.%p.log" "$bindir/postgres" >"$run/postgres"
    chmod 755 "$run/postgres"
    program=(-p "$run/postgres" --timeout=300)
  fi
  as_server "$bindir/pg_ctl" start --silent --wait "${program[@]}" --pgdata="$run/data" --log="$run/server.log" || {
    tail -n 20 "$run/server.log" >&2
    die "server $name did not start"
  }
}

# With the settings that it has by now.
restart() {
  as_server "$bindir/pg_ctl" restart --silent --wait --mode=fast --pgdata="$run/data" --log="$run/server.log"
}

case $action in
  start) start ;;
  restart) restart ;;
  stop) stop ;;
  status)
    if alive; then
      note "server $name runs: PGHOST=$(cat "$run/socket") PGPORT=5432 PGUSER=postgres, log $run/server.log"
    else
      die "server $name does not run"
    fi
    ;;
  psql)
    alive || die "server $name does not run (make demo starts the demo's)"
    use_server "$name"
    exec "$bindir/psql" "$@"
    ;;
  *) die "$usage" ;;
esac

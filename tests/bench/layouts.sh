#!/usr/bin/env bash
# layouts.sh [TURNS [LAYOUT…]]: slices and inserts where the same conversations are stored in different ways: ids that
# are random or in the order of time, tables that are whole or in partitions. 100 turns a session; sessions begin
# over a year, some 20 at a time, and turns come in the order of time. On a server of its own, with 2 GB of shared
# buffers. Cold data needs root, to have the system drop its cache of files. Prints a line for each layout.
. "$(dirname "$0")/../harness/common.sh"

turns=${1:-10000000} rounds=5 seconds=5
select_server "$PG_CONFIG"
server() { "$root/tests/harness/server.sh" "$1" layouts; }
trap 'server stop' EXIT
psql() { "$bindir/psql" -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }
bench() { "$bindir/pgbench" -n "$@" 2>/dev/null; }

layouts=("${@:2}")
((${#layouts[@]} > 0)) || layouts=(random time hash16 hash200 range200 month12)
declare -A turns_by=([hash16]='HASH (id)' [hash200]='HASH (id)' [range200]='RANGE (id)' [month12]='RANGE (created_at)')
declare -A key=([month12]='id, created_at')
is_ordered() { [[ $1 == time || $1 == range200 ]]; }

# Turn n is number n % 100 of session n / 100. A UUIDv7 begins with its time in milliseconds.
prepare() {
  local layout=$1 id="md5('turn ' || n)::uuid" by=${turns_by[$1]:-} count=${1##*[a-z]} bound fill=70
  # Indexes are made after loading, filled as they are when they have grown.
  if is_ordered "$layout"; then id="id_at(ms(n), md5('turn ' || n))" fill=90; fi
  psql -c "CREATE DATABASE layout_$layout"
  export PGDATABASE=layout_$layout
  psql <<SQL
CREATE EXTENSION graph_kernel;
CREATE FUNCTION ms(n bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS
  \$\$ SELECT 1767225600000 + n / 100 * $((31536000000 * 100 / turns)) + n % 100 * 60000 \$\$;
CREATE FUNCTION at(n bigint) RETURNS timestamptz IMMUTABLE LANGUAGE sql AS
  \$\$ SELECT to_timestamp(ms(n) / 1000.0) \$\$;
CREATE FUNCTION id_at(ms bigint, random text) RETURNS uuid IMMUTABLE LANGUAGE sql AS
  \$\$ SELECT (lpad(to_hex(ms), 12, '0') || '7' || left(random, 3) || 'a' || right(random, 15))::uuid \$\$;
CREATE FUNCTION id(n bigint) RETURNS uuid IMMUTABLE LANGUAGE sql AS \$\$ SELECT $id \$\$;
CREATE TABLE turns (id uuid NOT NULL, session_id text NOT NULL, role text NOT NULL, trajectory_phase text,
  salience_score real, created_at timestamptz NOT NULL, content_text text NOT NULL) ${by:+PARTITION BY $by};
CREATE TABLE edges (parent_turn_id uuid NOT NULL, child_turn_id uuid NOT NULL, edge_type text NOT NULL);
SQL
  case $layout in
    hash*)
      psql -c 'CREATE TABLE edges_hash (LIKE edges) PARTITION BY HASH (child_turn_id)'
      psql -c "SELECT format('CREATE TABLE %s_%s PARTITION OF %1\$s FOR VALUES WITH (MODULUS $count, REMAINDER %2\$s);',
                             t, n)
                 FROM (VALUES ('turns'), ('edges_hash')) AS p (t) CROSS JOIN generate_series(0, $count - 1) AS n" | psql
      ;;
    range* | month*)
      bound="id_at(ms(n::bigint * $turns / $count), repeat('0', 32))"
      if [[ $layout == month* ]]; then bound="timestamptz '2026-01-01 00:00Z' + interval '1 month' * n"; fi
      psql -c "SELECT format('CREATE TABLE turns_%s PARTITION OF turns FOR VALUES FROM (%s) TO (%s);', n,
                             CASE WHEN n = 1 THEN 'MINVALUE' ELSE quote_literal(lower) END,
                             CASE WHEN n = $count THEN 'MAXVALUE' ELSE quote_literal(upper) END)
                 FROM (SELECT n, bound AS upper, lag(bound) OVER (ORDER BY n) AS lower
                         FROM generate_series(0, $count) AS n CROSS JOIN LATERAL (SELECT $bound) AS b (bound)) AS p
                WHERE n > 0" | psql
      ;;
  esac
  insert 0 $((turns - 1))
  psql <<SQL
ALTER TABLE turns ADD PRIMARY KEY (${key[$layout]:-id}) WITH (fillfactor = $fill);
CREATE INDEX ON turns (id) INCLUDE (trajectory_phase, salience_score) WITH (fillfactor = $fill);
CREATE INDEX ON turns (session_id, created_at);
SQL
  index_edges edges
  if [[ $layout == hash* ]]; then
    psql -c 'INSERT INTO edges_hash SELECT * FROM edges'
    index_edges edges_hash
  fi
  psql -c 'VACUUM ANALYZE'
  bind "$layout" edges
}

index_edges() {
  psql -c "ALTER TABLE $1 ADD PRIMARY KEY (parent_turn_id, child_turn_id, edge_type) WITH (fillfactor = $fill)" \
    -c "CREATE INDEX ON $1 (child_turn_id, parent_turn_id, edge_type) WITH (fillfactor = $fill)"
}

# Most turns reply to the one before, some to an earlier one; a few refer to one more.
insert() {
  psql <<SQL
INSERT INTO turns SELECT id(n), 'session ' || n / 100, (ARRAY['user', 'assistant', 'tool'])[1 + n % 3], 'exploration',
    n % 97 / 100.0, at(n), repeat(md5(n::text), 3)
  FROM generate_series($1::bigint, $2::bigint) AS n ORDER BY at(n);
INSERT INTO edges SELECT id(n - CASE WHEN n % 20 = 0 THEN least(n % 100, 1 + n % 7) ELSE 1 END), id(n), 'reply'
  FROM generate_series($1::bigint, $2::bigint) AS n WHERE n % 100 > 0
  UNION ALL SELECT id(n - 2 - n % 13), id(n), 'reference'
  FROM generate_series($1::bigint, $2::bigint, 29) AS n WHERE n % 100 > 20;
SQL
}

# slice LAYOUT ANCHORS ARGUMENTS…: the milliseconds of a slice by pgbench, each of one of so many anchors.
slice() {
  local layout=$1 anchors=$2 script
  shift 2
  script=$(mktemp)
  note "\\set n (random(1, $anchors) * 9973) % $turns
SELECT graph_slice(id(:n));" >"$script"
  bench -M prepared "$@" -f "$script" "layout_$layout" | sed -n 's/^latency average = \([0-9.]*\) ms/\1/p'
  rm -f "$script"
}

# insert_each LAYOUT: what it takes to insert one turn with its edge and commit: milliseconds, bytes of WAL.
insert_each() {
  local script begin transactions
  script=$(mktemp)
  note "WITH n AS (SELECT nextval('next_turn') AS n), t AS (
  INSERT INTO turns SELECT id(n), 'session ' || n / 100, 'user', 'exploration', 0.5, at(n), repeat(md5(n::text), 3)
    FROM n)
INSERT INTO edges SELECT id(n - 1), id(n), 'reply' FROM n;" >"$script"
  psql -d "layout_$1" -c "CREATE SEQUENCE IF NOT EXISTS next_turn START $turns" -c 'CHECKPOINT'
  begin=$(psql -d "layout_$1" -c 'SELECT pg_current_wal_insert_lsn()')
  bench -M prepared -T "$seconds" -f "$script" "layout_$1" >"$script.out"
  transactions=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$script.out")
  psql -d "layout_$1" -c "SELECT '$(sed -n 's/^latency average = \([0-9.]*\) ms/\1/p' "$script.out") ms, '
    || (pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$begin') / $transactions)::bigint || ' bytes of WAL'"
  rm -f "$script" "$script.out"
}

# The median, the lowest and the highest.
summary() { sort -n | awk '{ v[NR] = $1 } END { printf "%.3f (%.3f to %.3f)\n", v[int((NR + 1) / 2)], v[1], v[NR] }'; }

# bind LAYOUT EDGES
bind() {
  psql -d "layout_$1" -c 'SET client_min_messages = warning' \
    -c "SELECT graph_kernel.bind_tables('turns', '$2')" >/dev/null
}

server stop
server start
use_server layouts
psql -c "ALTER SYSTEM SET shared_buffers = '2GB'" -c "ALTER SYSTEM SET max_wal_size = '4GB'" \
  -c 'ALTER SYSTEM SET max_locks_per_transaction = 1024' -c "ALTER SYSTEM SET maintenance_work_mem = '1GB'" \
  -c 'ALTER SYSTEM SET autovacuum = off'
server restart
for layout in "${layouts[@]}"; do
  SECONDS=0
  (prepare "$layout")
  psql -d "layout_$layout" -c "SELECT '$layout: ' || pg_size_pretty(pg_database_size(current_database()))
    || ', loaded in $SECONDS s'"
done

times=$(mktemp -d)
warm() { slice "$1" 1000 -T "$seconds"; }
for ((round = 0; round <= rounds; round++)); do
  for layout in "${layouts[@]}"; do
    warm "$layout" >>"$times/$layout"
    if [[ $layout == hash* ]]; then
      bind "$layout" edges_hash
      warm "$layout" >>"$times/$layout, edges too"
      bind "$layout" edges
    fi
  done
  # The first round warms the caches.
  if ((round == 0)); then rm "$times"/*; fi
done
for file in "$times"/*; do note "warm, ${file##*/}: $(summary <"$file")"; done
for layout in "${layouts[@]}"; do note "insert, $layout: $(insert_each "$layout")"; done
if ((EUID == 0)); then
  psql -c "ALTER SYSTEM SET shared_buffers = '16MB'"
  for layout in "${layouts[@]}"; do
    server restart
    sync
    note 3 >/proc/sys/vm/drop_caches
    # What every slice needs: catalogs, and the upper levels of indexes.
    slice "$layout" 1 -t 5 >/dev/null
    note "cold, $layout: $(slice "$layout" "$turns" -t 300)"
  done
fi
rm -rf "$times"

#!/usr/bin/env bash
# agents.sh [AGENTS [STEPS]]: many agents at once, each over many steps, through PgBouncer in transaction mode: how long
# it takes to insert a turn and commit it, to take the messages for the next request, and to record them; beside a
# recursive CTE that stops at the budget, and the last turns by their time. On the server that PG* names, which has to
# flush what it commits (fsync), in a database of its own. Prints a line for each: calls, median, 99th percentile in
# milliseconds; then what was kept for a step.
. "$(dirname "$0")/../harness/common.sh"

agents=${1:-100} steps=${2:-500}
bindir=${GRAPH_KERNEL_BINDIR:?start a server and call use_server first}
pooler=$(PATH="$PATH:/usr/sbin" command -v pgbouncer) || die 'pgbouncer is not installed'
psql() { command psql -X -q -v ON_ERROR_STOP=1 -P pager=off "$@"; }
work=$(mktemp -d /tmp/gk_agents.XXXXXX)
end() {
  [[ ! -f $work/pid ]] || kill "$(cat "$work/pid")" 2>/dev/null || true
  rm -rf "$work"
}
trap end EXIT

[[ $(psql -At -c 'SHOW fsync') == on ]] || note 'fsync is off: commits take less time here than they would'
psql -c 'DROP DATABASE IF EXISTS bench_agents' -c 'CREATE DATABASE bench_agents'
export PGDATABASE=bench_agents
psql -c 'CREATE EXTENSION graph_kernel' -c 'SELECT graph_kernel.create_tables()' \
  -c 'CREATE TABLE steps (agent int, step int, record json, PRIMARY KEY (agent, step))' >/dev/null

# A goal, then calls and results; texts as long as those of recorded agents: 20 to 900 tokens, 220 on average.
turn="graph_turn_id('agent ' || :client_id || '/', :step::text)"
goal="graph_turn_id('agent ' || :client_id || '/', '1')"
policy="(json_build_object('preset', 'chat', 'max_tokens', 4000, 'pins', json_build_array($goal))::text)::slice_policy"
cat >"$work/insert.sql" <<SQL
\set step :step + 1
BEGIN;
INSERT INTO memory_turns (id, session_id, role, content_text, created_at)
VALUES ($turn, 'agent ' || :client_id, CASE WHEN :step % 2 = 0 THEN 'assistant' ELSE 'tool' END,
        repeat('word ', 16 + (:step * 7919 + :client_id * 104729) % 320), clock_timestamp());
INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id, edge_type)
VALUES (graph_turn_id('agent ' || :client_id || '/', (:step - 1)::text), $turn, 'reply');
COMMIT;
SQL
echo "SELECT count(content) FROM graph_messages($turn, $policy);" >"$work/messages.sql"
echo "INSERT INTO steps SELECT :client_id, :step, graph_messages_record($turn, $policy) ON CONFLICT DO NOTHING;" \
  >"$work/record.sql"
cat >"$work/cte.sql" <<SQL
WITH RECURSIVE line AS (
    SELECT id, content_text, ceil(octet_length(content_text) / 4.0) AS tokens FROM memory_turns WHERE id = $turn
    UNION ALL
    SELECT t.id, t.content_text, line.tokens + ceil(octet_length(t.content_text) / 4.0)
      FROM line JOIN memory_turn_edges AS e ON e.child_turn_id = line.id
           JOIN memory_turns AS t ON t.id = e.parent_turn_id
     WHERE line.tokens + ceil(octet_length(t.content_text) / 4.0) <= 4000)
SELECT count(content_text) FROM line;
SQL
echo "SELECT count(content_text) FROM (SELECT content_text FROM memory_turns WHERE session_id = 'agent ' || :client_id
  ORDER BY created_at DESC LIMIT 18) AS t;" | tr '\n' ' ' >"$work/latest.sql"
psql -c 'CREATE INDEX ON memory_turns (session_id, created_at)' \
  -c "INSERT INTO memory_turns (id, session_id, role, content_text, created_at)
      SELECT graph_turn_id('agent ' || a || '/', '1'), 'agent ' || a, 'user', repeat('word ', 40), now()
        FROM generate_series(0, $agents - 1) AS a"

cat >"$work/pgbouncer.ini" <<INI
[databases]
* = host=$PGHOST port=$PGPORT user=$PGUSER
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = 6434
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 1000
logfile = $work/pgbouncer.log
pidfile = $work/pid
INI
chmod -R a+rwX "$work"
if ((EUID == 0)); then user=(--user "$server_user"); else user=(); fi
"$pooler" --daemon --quiet "${user[@]}" "$work/pgbouncer.ini"

# One script after the other is drawn: as many of each as there are steps, on average.
cd "$work"
names=(insert messages record cte latest)
scripts=()
for name in "${names[@]}"; do scripts+=(-f "$name.sql"); done
PGHOST=127.0.0.1 PGPORT=6434 "$bindir/pgbench" -n -c "$agents" -j 2 -t "$((5 * steps))" -D step=1 --log \
  --random-seed=1 "${scripts[@]}" >"$work/out" || { cat "$work/out" "$work/pgbouncer.log" >&2; die 'pgbench failed'; }

echo 'what                calls    median   99th percentile (ms)'
for script in "${!names[@]}"; do
  awk -v script="$script" '$4 == script { print $3 }' pgbench_log.* | sort -n |
    awk -v name="${names[script]}" '{ t[NR] = $1 } END {
      printf "%-16s %8d %9.2f %9.2f\n", name, NR, t[int((NR + 1) / 2)] / 1000, t[int(NR * 0.99)] / 1000 }'
done
grep -E '^tps' "$work/out"
cd "$root"
psql <<'SQL'
SELECT (SELECT count(*) FROM memory_turns) AS turns, count(*) AS records,
       round(avg(pg_column_size(record))) AS stored_bytes_a_record,
       round(avg(octet_length(record::text))) AS bytes_a_record,
       round(avg(json_array_length(record -> 'messages')), 1) AS messages,
       count(*) FILTER (WHERE record ->> 'token' IS NULL) AS unattested
  FROM steps;
SELECT (pg_total_relation_size('memory_turns') + pg_total_relation_size('memory_turn_edges'))
           / (SELECT count(*) FROM memory_turns) AS bytes_a_turn;
SQL

#!/usr/bin/env bash
# demo.sh: installs the extension into a throw-away server, loads DATA (default: the sample) and slices ANCHOR.
. "$(dirname "$0")/common.sh"

DATA=${DATA:-sql/sample}
[[ -d $DATA ]] || die "no folder $DATA: make demo DATA=DIR wants memory_turns.csv and memory_turn_edges.csv in it"
select_server "$PG_CONFIG"

note "building graph_kernel for PostgreSQL $major"
mkdir -p "$root/target/test-logs"
install_release >target/test-logs/demo-build.log 2>&1 || {
  tail -n 40 target/test-logs/demo-build.log >&2
  die 'the build failed: see target/test-logs/demo-build.log'
}

"$root/tests/harness/server.sh" start demo
use_server demo
PATH="$bindir:$PATH"
psql() { command psql -X -q -v ON_ERROR_STOP=1 -P pager=off -P footer=off "$@"; }

psql -c 'CREATE EXTENSION graph_kernel' -c "SELECT graph_kernel.create_tables('public')" >/dev/null
"$root/tests/harness/load.sh" "$DATA"

if [[ -z ${ANCHOR:-} ]]; then
  ANCHOR=$(psql -At -c "SELECT t.id
    FROM public.memory_turns t
    JOIN (SELECT parent_turn_id AS id FROM public.memory_turn_edges
          UNION ALL SELECT child_turn_id FROM public.memory_turn_edges) e USING (id)
    GROUP BY t.id ORDER BY count(*) DESC, t.id LIMIT 1")
  note "anchor: $ANCHOR, the turn with most edges (make demo ANCHOR=uuid takes another)"
fi

psql -v anchor="$ANCHOR" <<'SQL'
\echo
\echo 'the turns that may influence it, in the order they were chosen: SELECT * FROM graph_slice_turns(anchor)'
SELECT selection_order AS "order", turn_id, distance, priority, role, phase, salience
  FROM graph_slice_turns(:'anchor'::uuid) ORDER BY selection_order LIMIT 10;
SELECT count(*) AS turns, slice_id, admissibility_token
  FROM graph_slice_turns(:'anchor'::uuid) GROUP BY slice_id, admissibility_token;
\echo 'with their text, in the order they were written: … JOIN memory_turns t ON t.id = s.turn_id'
SELECT to_timestamp(s.created_at) AS written, s.role,
       left(regexp_replace(t.content_text, '\s+', ' ', 'g'), 72) AS text
  FROM graph_slice_turns(:'anchor'::uuid) s JOIN public.memory_turns t ON t.id = s.turn_id
 ORDER BY s.created_at, s.selection_order LIMIT 10;
\echo 'the same as one document that anyone can check later: SELECT graph_slice(anchor)'
\pset tuples_only on
\pset format unaligned
SELECT left(graph_slice(:'anchor'::uuid)::text, 480) || '…';
SQL

note $'\ngo on: make psql opens this server, make stop ends it, docs/ explains'

-- A database in which sqlsmith finds everything of the extension in use: two graphs, embeddings, traces, a recorder
-- log, registered policies, two keys, and what was signed. After load.sh has loaded the sample.
\set ON_ERROR_STOP on
\set QUIET on

ALTER TABLE memory_turns ADD COLUMN embedding real[];
CREATE TEMP TABLE embedded (turn_id uuid, embedding real[]);
\copy embedded from sql/sample/memory_turn_embeddings.csv csv header
UPDATE memory_turns AS t SET embedding = e.embedding FROM embedded AS e WHERE e.turn_id = t.id;
CREATE TABLE questions (question text PRIMARY KEY, embedding real[]);
\copy questions from sql/sample/questions.csv csv header

CREATE TABLE notes (id text PRIMARY KEY, reply_to text, body text);
INSERT INTO notes
SELECT t.id::text, min(e.parent_turn_id::text), min(t.content_text)
  FROM memory_turns AS t LEFT JOIN memory_turn_edges AS e ON e.child_turn_id = t.id GROUP BY t.id;
CREATE UNIQUE INDEX ON notes (graph_turn_id(id)) INCLUDE (id, reply_to);
CREATE INDEX ON notes (graph_turn_id(reply_to), graph_turn_id(id)) INCLUDE (id, reply_to);
DO $$ BEGIN
  PERFORM graph_kernel.bind_tables('memory_turns', 'memory_turn_edges');
  PERFORM graph_kernel.bind_tables('notes', columns => '{"turns": {
            "id": {"expression": "graph_turn_id(id)"}, "content_text": "body",
            "parents": [{"parent": {"expression": "graph_turn_id(reply_to)"},
                "edge_type": "reply"}]}}', name => 'notes');
  PERFORM graph_kernel.create_recorder_table(), graph_kernel.create_trace_table('public');
  PERFORM graph_policy_register('{"max_nodes": 64, "max_radius": 4}', 'support');
  PERFORM graph_policy_register('{"version": "slice_policy_v2", "max_tokens": 900, "same_session": true}', 'tokens');
END $$;
INSERT INTO recorder_events
       (segment_id, ordinal, byte_offset, event_id, pane_id, session_id, occurred_at_ms, event_type, text, is_gap)
SELECT n / 100, n % 100, n * 90, 'e' || n, n / 7 % 3, 's', n * 900,
       (ARRAY['ingress_text', 'egress_output', 'egress_output', 'control_marker'])[n % 4 + 1], repeat('x ', n % 50),
           false
  FROM generate_series(0, 499) AS n;

-- Values of the types that functions take: sqlsmith writes no others than NULL, numbers and true.
CREATE TABLE kept AS
SELECT t.id AS anchor, t.session_id, p.policy, '{"max_chunk_chars": 40}'::chunking_policy AS chunking, q.embedding,
       q.question, graph_slice(t.id, p.policy) AS slice, graph_proof(graph_slice(t.id, p.policy)) AS proof,
       (SELECT provenance FROM graph_search_slice(q.embedding, t.id, p.policy, 3) LIMIT 1) AS provenance
  FROM (SELECT id, session_id FROM memory_turns ORDER BY id LIMIT 8) AS t
 CROSS JOIN (VALUES ('default'::slice_policy), ('focused'), ('{"version": "slice_policy_v2", "max_tokens": 900}'))
    AS p (policy)
 CROSS JOIN (SELECT * FROM questions ORDER BY question LIMIT 1) AS q;
SELECT count(graph_trace(provenance)) FROM kept \g /dev/null
SELECT graph_kernel.rotate_key() \g /dev/null

-- sqlsmith calls no functions that return sets, but it reads views.
CREATE SCHEMA calls;
SELECT format('CREATE VIEW calls.%I WITH (security_invoker) AS SELECT r.* FROM public.kept AS k, LATERAL %s(%s) AS r',
              p.proname || '_' || row_number() OVER (PARTITION BY p.proname ORDER BY p.oid), p.oid::regproc,
              (SELECT string_agg(CASE format_type(a.type, NULL)
                        WHEN 'uuid' THEN 'k.anchor' WHEN 'uuid[]' THEN 'ARRAY[k.anchor]'
                        WHEN 'slice_policy' THEN 'k.policy' WHEN 'chunking_policy' THEN 'k.chunking'
                        WHEN 'json' THEN 'k.slice::json' WHEN 'jsonb' THEN 'k.provenance' WHEN 'real[]'
                            THEN 'k.embedding'
                        WHEN 'json[]' THEN 'ARRAY[k.slice::json]' WHEN 'jsonb[]' THEN 'ARRAY[k.slice::jsonb]'
                        WHEN 'integer' THEN '3' WHEN 'bigint' THEN '3::bigint' WHEN 'text' THEN 'k.session_id'
                        ELSE 'NULL::' || format_type(a.type, NULL) END, ', ' ORDER BY a.n)
                 FROM unnest(p.proargtypes) WITH ORDINALITY AS a (type, n)))
  FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.objid JOIN pg_extension AS x ON x.oid = d.refobjid
 WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND x.extname = 'graph_kernel' AND p.proretset
   AND NOT p.proargtypes::oid[] && ARRAY['internal', 'cstring']::regtype[]::oid[]
\gexec

-- sqlsmith looks functions up in pg_proc without its schema. With this schema first in the path it calls those of the
-- extension, and aggregates of the server: others end servers, read files or sleep.
CREATE SCHEMA hostile;
CREATE VIEW hostile.pg_proc AS
SELECT p.* FROM pg_catalog.pg_proc AS p
 WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'a'
    OR EXISTS (SELECT FROM pg_depend AS d JOIN pg_extension AS x ON x.oid = d.refobjid
                WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
                  AND x.extname = 'graph_kernel');

CREATE ROLE hostile_plain LOGIN;
GRANT USAGE ON SCHEMA calls, hostile TO hostile_plain;
GRANT SELECT ON ALL TABLES IN SCHEMA public, calls, hostile TO hostile_plain;
ANALYZE;

-- Where it uses an operator of ranges or enums of any type, sqlsmith writes a value of no type, and the query fails
-- before it is run. Nothing of the extension uses them.
SET allow_system_table_mods = on;
DELETE FROM pg_operator
 WHERE EXISTS (SELECT FROM pg_type AS t
                WHERE t.oid IN (oprleft, oprright, oprresult) AND t.typtype = 'p' AND t.typname ~ 'range|enum');

-- Promise: tables are pinned by an admin, checked when bound and at each slice, and followed by OID, never by name.
CREATE SCHEMA elsewhere;
SELECT graph_kernel.create_tables('elsewhere');
INSERT INTO elsewhere.memory_turns SELECT * FROM memory_turns WHERE id <> turn(5);
INSERT INTO elsewhere.memory_turn_edges SELECT * FROM memory_turn_edges WHERE child_turn_id <> turn(5);
-- Unbound, the graph is public's; bound, it is what was bound.
SELECT slice_id(2);
SELECT graph_kernel.bind_tables('elsewhere.memory_turns', 'elsewhere.memory_turn_edges') AS graph \gset
SELECT slice_id(2) AS without_5;
SELECT turns, edges, columns, graph = :'graph' AS graph, bound_by FROM graph_kernel.bindings WHERE is_current;
-- The same tables and columns again are the same graph, also when others were bound meanwhile; anything else is another.
SELECT graph_kernel.bind_tables('elsewhere.memory_turns', 'elsewhere.memory_turn_edges') = :'graph' AS same_graph;
SELECT graph_kernel.bind_tables('elsewhere.memory_turns', 'elsewhere.memory_turn_edges', '{"turns": {"phase": "role"}}') = :'graph' AS same_graph;
SELECT graph_kernel.bind_tables(edges => 'public.memory_turn_edges', turns => 'public.memory_turns') = :'graph' AS same_graph;
SELECT slice_id(2);
SELECT graph_kernel.bind_tables('elsewhere.memory_turns', 'elsewhere.memory_turn_edges') = :'graph' AS same_graph;
SELECT graph_kernel.unbind_tables();
SELECT slice_id(2) AS unbound, (SELECT count(*) FROM graph_kernel.bindings WHERE is_current) AS bindings;
-- Unbinding twice is not an error.
SELECT graph_kernel.unbind_tables();

-- What cannot be bound.
CREATE TABLE elsewhere.bare (LIKE memory_turns);
CREATE TABLE elsewhere.edges (LIKE memory_turn_edges);
CREATE UNLOGGED TABLE elsewhere.unlogged (LIKE memory_turns INCLUDING INDEXES);
CREATE TEMP TABLE temporary (LIKE memory_turns INCLUDING INDEXES);
CREATE VIEW elsewhere.view AS SELECT * FROM memory_turns;
CREATE MATERIALIZED VIEW elsewhere.materialized AS SELECT * FROM memory_turns;
CREATE SEQUENCE elsewhere.sequence;
CREATE TYPE elsewhere.composite AS (id uuid);
CREATE FOREIGN DATA WRAPPER regress_wrapper;
CREATE SERVER regress_server FOREIGN DATA WRAPPER regress_wrapper;
CREATE FOREIGN TABLE elsewhere.foreign (id uuid) SERVER regress_server;
SELECT relation, e.code, e.message, e.detail, e.hint
FROM unnest(ARRAY['unlogged', 'view', 'materialized', 'sequence', 'composite', 'foreign', 'memory_turns_pkey']) AS relation,
     test_error(format('SELECT graph_kernel.bind_tables(%L, %L)', 'elsewhere.' || relation, 'elsewhere.edges')) AS e;
SELECT relation, e.code, e.message
FROM unnest(ARRAY['unlogged', 'view', 'foreign']) AS relation,
     test_error(format('SELECT graph_kernel.bind_tables(%L, %L)', 'elsewhere.memory_turns', 'elsewhere.' || relation)) AS e;
SELECT code, regexp_replace(message, 'pg_temp_\d+', 'pg_temp_N') AS message
FROM test_error($$SELECT graph_kernel.bind_tables('temporary', 'elsewhere.edges')$$);
SELECT * FROM test_error($$SELECT graph_kernel.bind_tables('no_such_table', 'elsewhere.edges')$$);
SELECT * FROM test_error($$SELECT graph_kernel.bind_tables(NULL, 'elsewhere.edges')$$);

-- The turn id needs a unique index, whole and valid; the hint makes one.
SELECT * FROM test_error($$SELECT graph_kernel.bind_tables('elsewhere.bare', 'elsewhere.edges')$$);
CREATE INDEX ON elsewhere.bare (id);
CREATE UNIQUE INDEX ON elsewhere.bare (id) WHERE role = 'user';
CREATE UNIQUE INDEX ON elsewhere.bare (id, session_id);
CREATE UNIQUE INDEX ON elsewhere.bare ((id::text));
CREATE UNIQUE INDEX ON elsewhere.bare (session_id) INCLUDE (id);
SELECT code FROM test_error($$SELECT graph_kernel.bind_tables('elsewhere.bare', 'elsewhere.edges')$$);
SET client_min_messages = warning; -- the notices above, from here on
SELECT hint AS command FROM test_error($$SELECT graph_kernel.bind_tables('elsewhere.bare', 'elsewhere.edges')$$) \gset
:command
SELECT code FROM test_error($$SELECT graph_kernel.bind_tables('elsewhere.bare', 'elsewhere.edges')$$);
SELECT graph_kernel.unbind_tables();

-- Columns: each is looked for by name and type. One that is not an id counts as not stored where no column has its name.
CREATE TABLE elsewhere.wrong (LIKE memory_turns INCLUDING INDEXES);
CREATE FUNCTION pg_temp.with_change(change text) RETURNS TABLE (code text, message text, detail text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'ALTER TABLE elsewhere.wrong ' || change;
    RETURN QUERY SELECT e.code, e.message, e.detail FROM test_error($q$SELECT graph_kernel.bind_tables('elsewhere.wrong', 'elsewhere.edges')$q$) AS e;
    RAISE division_by_zero;  -- back to the table as it was
EXCEPTION WHEN division_by_zero THEN
    NULL;
END $$;
SELECT change, e.* FROM unnest(ARRAY[
    'RENAME id TO turn_id', 'RENAME session_id TO s', 'RENAME role TO author', 'RENAME trajectory_phase TO stage', 'RENAME salience_score TO weight',
    'RENAME trajectory_depth TO depth', 'RENAME created_at TO stamp', 'RENAME content_hash TO digest', 'DROP trajectory_temporal',
    'RENAME role TO "Role"',
    'ALTER id TYPE text', 'ALTER session_id TYPE int USING 1', 'ALTER role TYPE bytea USING NULL', 'ALTER salience_score TYPE numeric',
    'ALTER salience_score TYPE text', 'ALTER trajectory_depth TYPE real', 'ALTER trajectory_homogeneity TYPE numeric', 'ALTER created_at TYPE date',
    'ALTER created_at TYPE bigint USING 0', 'ALTER content_hash TYPE bytea USING NULL', 'ALTER role TYPE name', 'ALTER trajectory_phase TYPE text[] USING NULL'
]) AS change, pg_temp.with_change(change) AS e;
SELECT * FROM test_error($$SELECT graph_kernel.bind_tables('elsewhere.wrong', 'elsewhere.bare')$$);

-- Mappings: exact keys, names of columns that are there.
SELECT mapping, e.code, e.message FROM unnest(ARRAY[
    '[]', '"turns"', '1', '{"turn": {}}', '{"turns": []}', '{"turns": null}', '{"turns": {"phases": "role"}}', '{"turns": {"parent": "id"}}',
    '{"edges": {"id": "parent_turn_id"}}', '{"turns": {"id": 1}}', '{"turns": {"id": null}}', '{"turns": {"id": ["id"]}}', '{"turns": {"id": ""}}',
    '{"turns": {"id": "ID"}}', '{"turns": {"id": "ctid"}}', '{"turns": {"id": "role"}}', '{"turns": {"content_hash": "nowhere"}}',
    '{"edges": {"edge_type": "weight"}}', '{"turns": {"trajectory_depth": "salience_score"}}', '{"turns": {"id": "turns.id"}}'
]) AS mapping, test_error(format('SELECT graph_kernel.bind_tables(%L, %L, %L)', 'elsewhere.wrong', 'elsewhere.edges', mapping)) AS e;
SELECT mapping, e.code FROM unnest(ARRAY['null', '{}', '{"turns": {}, "edges": {}}', '{"turns": {"id": "id", "session_id": "role"}}', NULL]) AS mapping,
    test_error(format('SELECT graph_kernel.bind_tables(%L, %L, %L)', 'elsewhere.wrong', 'elsewhere.edges', mapping)) AS e;
-- A column mapped to null is left out, whatever stands in the table; turns are read with the defaults then. Ids cannot be left out.
SELECT key, e.code, e.message FROM unnest(ARRAY['id', 'session_id', 'role', 'phase', 'salience', 'trajectory_depth', 'trajectory_sibling_order', 'trajectory_homogeneity',
        'trajectory_temporal', 'trajectory_complexity', 'created_at', 'content_hash', 'content_text']) AS key,
    test_error(format('SELECT graph_kernel.bind_tables(%L, %L, %L)', 'elsewhere.wrong', 'elsewhere.edges', jsonb_build_object('turns', jsonb_build_object(key, NULL)))) AS e;
SELECT key, e.code, e.message FROM unnest(ARRAY['parent', 'child', 'edge_type']) AS key,
    test_error(format('SELECT graph_kernel.bind_tables(%L, %L, %L)', 'elsewhere.wrong', 'elsewhere.edges', jsonb_build_object('edges', jsonb_build_object(key, NULL)))) AS e;
ALTER TABLE elsewhere.wrong ALTER content_hash TYPE bytea USING NULL;
INSERT INTO elsewhere.wrong (id, content_hash) VALUES (turn(1), '\x00');
SELECT graph_kernel.bind_tables('elsewhere.wrong', 'elsewhere.edges', '{"turns": {"content_hash": null}}') IS NOT NULL AS bound;
SELECT turn_number(turn_id) AS turn, content_hash IS NULL AS no_hash FROM graph_slice_turns(turn(1));
SELECT detail, hint, count(*) FROM unnest(ARRAY['[]', '{"turn": {}}', '{"turns": []}', '{"turns": {"phases": "role"}}']) AS mapping,
    test_error(format('SELECT graph_kernel.bind_tables(%L, %L, %L)', 'elsewhere.wrong', 'elsewhere.edges', mapping)) GROUP BY 1, 2;
-- A refused binding leaves the old one.
SELECT graph_kernel.bind_tables('elsewhere.memory_turns', 'elsewhere.memory_turn_edges') IS NOT NULL AS bound;
SELECT code FROM test_error($$SELECT graph_kernel.bind_tables('elsewhere.view', 'elsewhere.edges')$$);
SELECT turns, edges FROM graph_kernel.bindings WHERE is_current;


-- create_tables makes them once in a schema, whatever its name, owned by the caller.
SELECT * FROM test_error('SELECT graph_kernel.create_tables()');
SELECT * FROM test_error($$SELECT graph_kernel.create_tables('elsewhere')$$);
SELECT * FROM test_error($$SELECT graph_kernel.create_tables('no such schema')$$);
CREATE SCHEMA "Odd ""schema""; --";
SELECT graph_kernel.create_tables(schema => 'Odd "schema"; --');
SELECT relname FROM pg_class WHERE relnamespace = '"Odd ""schema""; --"'::regnamespace AND relkind = 'r' ORDER BY relname COLLATE "C";
SELECT graph_kernel.bind_tables('"Odd ""schema""; --".memory_turns', '"Odd ""schema""; --".memory_turn_edges') IS NOT NULL AS bound;
INSERT INTO "Odd ""schema""; --".memory_turns SELECT * FROM memory_turns;
INSERT INTO "Odd ""schema""; --".memory_turn_edges SELECT * FROM memory_turn_edges;
SELECT slice_id(2);
SELECT check_name, detail FROM graph_check() WHERE check_name IN ('bound_tables', 'index_turn_id');

-- A hint of a bound graph is the whole command: its tables, its mapping, its name.
CREATE TABLE plain_turns (id uuid PRIMARY KEY, after_id uuid, kind text, message jsonb, logged json);
SELECT graph_kernel.bind_tables('plain_turns', name => 'plain', columns => '{"turns": {"role": "kind", "session_id": null, "phase": null, "salience": null,
    "created_at": null, "content_text": null, "parents": [{"parent": "after_id", "edge_type": "reply"}]}}') IS NOT NULL AS bound;
SET graph_kernel.graph = 'plain';
SELECT * FROM test_error($$SELECT * FROM graph_search('{1,0}')$$);
SELECT hint FROM test_error($$SELECT graph_kernel.bind_tables('plain_turns', name => 'plain', columns => '{"turns": {"embedding": {"column": "kind", "operator": "<->"},
    "role": "kind", "parents": [{"parent": "after_id", "edge_type": "reply"}]}}')$$);
-- An anchor that is not there: of which graph, of which table.
SELECT * FROM test_error('SELECT graph_slice(turn(77))');
SELECT * FROM test_error('SELECT * FROM graph_anchor(turn(77))');
SELECT hint FROM test_error($$SELECT graph_slice(turn(77), '{"preset": "chat", "as_of": 1}')$$);
RESET graph_kernel.graph;
-- A message in JSON is bound as its text; an expression in the place of a name is not a column.
SELECT v.key, e.message, e.hint FROM (VALUES ('content_text', '"message"'), ('content_text', '"logged"'), ('content_text', '{"expression": "message"}'),
    ('session_id', '"message"'), ('id', '"graph_turn_id(kind)"'), ('content_text', '"kind::text"'), ('content_text', '"message->''a''"'), ('content_text', '"kin"')) AS v (key, value),
    test_error(format('SELECT graph_kernel.bind_tables(''plain_turns'', name => ''other'', columns => %L)',
    format('{"turns": {"parents": [{"parent": "after_id", "edge_type": "reply"}], "%s": %s}}', v.key, v.value))) AS e;
SELECT hint FROM test_error($$SELECT graph_kernel.bind_tables('plain_turns', columns => '{"turns": {"parents": [{"parent": "graph_turn_id(kind)", "edge_type": "reply"}]}}')$$);
SELECT graph_kernel.unbind_tables('plain');
DROP TABLE plain_turns;

SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA elsewhere, "Odd ""schema""; --" CASCADE;
DROP FOREIGN DATA WRAPPER regress_wrapper CASCADE;

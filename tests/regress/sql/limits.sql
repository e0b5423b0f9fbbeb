-- Promise: every limit is an error that says what to do, and only a superuser moves the one that can be moved.
CREATE ROLE regress_user;
GRANT SELECT ON memory_turns, memory_turn_edges TO regress_user;
-- graph_kernel.max_nodes_limit is known once the library is loaded, and asked when slicing, not when a policy is read.
SELECT graph_kernel_version() IS NOT NULL AS loaded;
SHOW graph_kernel.max_nodes_limit;
SET graph_kernel.max_nodes_limit = 100;
SELECT * FROM test_error('SELECT graph_slice(turn(2))');
SELECT code, message, detail FROM test_error($$SELECT * FROM graph_slice_turns(turn(2), '{"max_nodes": 101}')$$);
SELECT code, message, detail FROM test_error($$SELECT * FROM graph_slice_edges(turn(2), 'broad')$$);
SELECT code, message, detail FROM test_error($$SELECT * FROM graph_slices(ARRAY[turn(2)])$$);
SELECT slice_id(2, '{"max_nodes": 100}') IS NOT NULL AS at_the_limit, graph_policy_hash('broad') AS reading_is_free;
-- A missing anchor does not hide it, nor the other way round.
SELECT code FROM test_error('SELECT graph_slice(turn(99))');
SELECT code FROM test_error($$SELECT graph_slice(turn(99), 'focused')$$);
-- Its range and who may set it.
SELECT code, message FROM unnest(ARRAY['0', '10001', '-1', 'many']) AS value, test_error(format('SET graph_kernel.max_nodes_limit = %L', value));
SET ROLE regress_user;
SELECT code, message FROM test_error('SET graph_kernel.max_nodes_limit = 10000');
SELECT code FROM test_error($$SELECT set_config('graph_kernel.max_nodes_limit', '10000', true)$$);
SELECT code FROM test_error('SELECT graph_slice(turn(2))');
RESET ROLE;
RESET graph_kernel.max_nodes_limit;
-- A superuser sets it for a role; the role cannot leave it, also when it tries before the library is loaded.
ALTER ROLE regress_user SET graph_kernel.max_nodes_limit = 32;
ALTER ROLE regress_user LOGIN;
SELECT current_user AS superuser \gset
\c - regress_user
SET client_min_messages = error;
SET graph_kernel.max_nodes_limit = 10000;
SELECT code FROM test_error('SELECT graph_slice(turn(2))');
SELECT slice_id(2, 'focused') IS NOT NULL AS at_the_limit;
SELECT current_setting('graph_kernel.max_nodes_limit') AS limit;
\c - :superuser

-- Policy text: 64 KiB and one byte more; nesting that would run deep.
SELECT code, message FROM test_error($$SELECT ('{' || repeat(' ', 65534) || '}')::slice_policy$$);
SELECT code, message, detail FROM test_error($$SELECT ('{' || repeat(' ', 65535) || '}')::slice_policy$$);
SELECT code, message, detail FROM test_error($$SELECT repeat('x', 10000000)::slice_policy$$);
SELECT code, left(message, 60) AS message FROM test_error($$SELECT ('{"max_nodes": ' || repeat('[', 30000) || repeat(']', 30000) || '}')::slice_policy$$);
SELECT code, left(message, 60) AS message FROM test_error($$SELECT ('{"max_nodes": ' || repeat('{"a":', 10000) || '1' || repeat('}', 10000) || '}')::slice_policy$$);
SELECT code, left(message, 60) AS message FROM test_error($$SELECT repeat('[', 60000)::slice_policy$$);
-- Messages stay short, however long what they are about.
SELECT code, length(message) < 200 AS short FROM test_error($$SELECT ('{"' || repeat('k', 60000) || '": 1}')::slice_policy$$);
SELECT code, length(message) < 200 AS short FROM test_error($$SELECT ('{"version": "' || repeat('v', 60000) || '"}')::slice_policy$$);
SELECT code, length(message) < 200 AS short FROM test_error($$SELECT ('{"max_nodes": ' || repeat('9', 60000) || '}')::slice_policy$$);

-- The largest policy there is, on a small graph.
SELECT s.* FROM test_slice(4, '{"max_nodes": 10000, "max_radius": 2147483647, "max_siblings_per_node": 2147483647}') AS s;

-- An export of more than 64 MiB is refused; its turns and edges can still be read as rows.
CREATE SCHEMA heavy;
CREATE TABLE heavy.turns (LIKE memory_turns INCLUDING INDEXES);
CREATE TABLE heavy.edges (LIKE memory_turn_edges INCLUDING INDEXES);
INSERT INTO heavy.turns (id, session_id) SELECT turn(n), repeat(E'\001', 4096) FROM generate_series(1, 3000) AS n;
INSERT INTO heavy.edges SELECT turn(1), turn(n), 'reply' FROM generate_series(2, 3000) AS n;
CREATE INDEX ON heavy.edges (child_turn_id);
ANALYZE heavy.turns, heavy.edges;
SELECT graph_kernel.bind_tables('heavy.turns', 'heavy.edges') IS NOT NULL AS bound;
SELECT code, regexp_replace(message, '\d{8}', 'N') AS message, detail, hint FROM test_error($$SELECT graph_slice(turn(1), '{"max_nodes": 3000}')$$);
SELECT (graph_slices).error_code, (graph_slices).slice IS NULL AS no_slice FROM graph_slices(ARRAY[turn(1), turn(1)], '{"max_nodes": 3000}') AS graph_slices;
SELECT count(*), sum(length(session_id)) AS characters FROM graph_slice_turns(turn(1), '{"max_nodes": 3000}');
SELECT length(graph_slice(turn(1), '{"max_nodes": 100}')::text) > 2000000 AS smaller_is_fine;
SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA heavy CASCADE;
REVOKE ALL ON memory_turns, memory_turn_edges FROM regress_user;
DROP ROLE regress_user;

-- Arrays of texts have the limit of arrays of ids.
SELECT * FROM test_error($$SELECT graph_kernel.registry_fingerprint(array_fill('x'::text, ARRAY[1000001]), '{}')$$);
SELECT * FROM test_error($$SELECT graph_kernel.registry_fingerprint('{x}', array_fill('x'::text, ARRAY[1000001]))$$);
SELECT * FROM test_error($$SELECT graph_kernel.slice_summaries(array_fill('x'::text, ARRAY[1000001]), 'default')$$);

-- A jsonb of a few bytes may be written out in as many as there are: it is refused before that.
CREATE TABLE long_json AS SELECT (SELECT jsonb_agg('1e131071'::jsonb) FROM generate_series(1, 9000)) AS j;
SELECT pg_column_size(j) < 100000 AS small FROM long_json;
SELECT * FROM test_error($$SELECT graph_search(array_fill(0::real, ARRAY[3]), filter => j) FROM long_json$$);
SELECT * FROM test_error($$SELECT graph_messages_show(r, payloads => ARRAY[j]) FROM long_json, graph_messages_record(turn(1), '{"preset": "chat", "max_tokens": 1}') AS r$$);
SELECT * FROM test_error($$SELECT graph_api_search_slice(format('{"anchor_turn_id":"%s","query":"","owner":[%s1]}', turn(1), repeat('1e131071,', 9000))::json)$$);
SELECT graph_is_admissible_result(j), graph_can_promote(j, turn(1)), graph_kernel.provenance_reason(j) FROM long_json;
-- Escapes count.
SELECT graph_message_text(to_jsonb(repeat(E'\001', 12000000))) IS NULL AS too_long, length(graph_message_text(to_jsonb(repeat(E'\n', 12000000)))) AS fits;
DROP TABLE long_json;

-- Promise: statement_timeout ends heavy slicing at once, within a slice and between slices, and the session goes on.
CREATE SCHEMA slow;
CREATE TABLE slow.turns (LIKE memory_turns);
CREATE TABLE slow.edges (LIKE memory_turn_edges);
INSERT INTO slow.turns (id) SELECT turn(n) FROM generate_series(1, 20000) AS n;
INSERT INTO slow.edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 19999) AS n;
CREATE UNIQUE INDEX ON slow.turns (id);
CREATE INDEX ON slow.edges (parent_turn_id);
CREATE INDEX ON slow.edges (child_turn_id);
ANALYZE slow.turns, slow.edges;
SELECT graph_kernel.bind_tables('slow.turns', 'slow.edges') IS NOT NULL AS bound;
CREATE TEMP TABLE clock AS SELECT clock_timestamp() AS started;
SET statement_timeout = '50ms';
SELECT count(*) FROM generate_series(10001, 11000) AS n, graph_slice_turns(turn(n), '{"max_radius": 5000, "max_nodes": 10000}');
\echo :SQLSTATE
SELECT count(*) FROM graph_slices((SELECT array_agg(turn(n)) FROM generate_series(1, 20000) AS n), '{"max_radius": 5000, "max_nodes": 10000}');
\echo :SQLSTATE
DO $$
BEGIN
    PERFORM graph_slice(turn(n), '{"max_radius": 5000, "max_nodes": 10000}') FROM generate_series(10001, 11000) AS n;
EXCEPTION WHEN query_canceled THEN
    RAISE NOTICE 'cancelled, and still slicing: % turns', (SELECT count(*) FROM graph_slice_turns(turn(10000)));
END $$;
RESET statement_timeout;
SELECT clock_timestamp() - started < interval '10 s' AS at_once FROM clock;
SELECT count(*) FROM graph_slice_turns(turn(10000));

SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA slow CASCADE;

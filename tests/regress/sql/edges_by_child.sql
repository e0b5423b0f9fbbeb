-- Promise: a mapping may name a second table of the same edges, which alone is asked for the edges into a turn.
CREATE SCHEMA twice;
CREATE TABLE twice.edges_by_child (LIKE memory_turn_edges);
INSERT INTO twice.edges_by_child SELECT * FROM memory_turn_edges;
CREATE INDEX ON twice.edges_by_child (child_turn_id, parent_turn_id, edge_type);
CREATE TABLE slices_before AS SELECT n, policy, graph_slice(turn(n), policy::slice_policy)::text AS slice FROM generate_series(1, 5) AS n, unnest('{default,broad,chat,lineage}'::text[]) AS policy;
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', '{"edges_by_child": "twice.edges_by_child"}') IS NOT NULL AS bound;
SELECT turns, edges, columns, is_current FROM graph_kernel.bindings WHERE name = 'default' AND is_current;
SELECT edges_by_child FROM graph_kernel.binding WHERE name = 'default' AND is_current;
SELECT count(*) AS slices, count(*) FILTER (WHERE regexp_replace(graph_slice(turn(n), policy::slice_policy)::text, '"admissibility_token".*', '') = regexp_replace(slice, '"admissibility_token".*', '')) AS same FROM slices_before;
SELECT slice #>> '{attestation,status}' AS status, (graph_verify(slice)).reason FROM (SELECT graph_slice(turn(2)) AS slice OFFSET 0) AS s;
SELECT check_name, ok, count FROM graph_check() WHERE check_name IN ('differing_edges', 'index_edge_parent', 'index_edge_child', 'dangling_edges');
-- The binding names it by its OID.
ALTER TABLE twice.edges_by_child RENAME TO the_same;
SELECT selected FROM test_slice(2);
-- Which of both tables is asked for what.
BEGIN;
DELETE FROM memory_turn_edges;
SELECT selected, edges FROM test_slice(3);
ROLLBACK;
BEGIN;
DELETE FROM twice.the_same WHERE child_turn_id = turn(3);
SELECT selected, edges FROM test_slice(3);
SELECT slice #>> '{attestation,status}' AS status FROM (SELECT graph_slice(turn(2)) AS slice OFFSET 0) AS s;
SELECT check_name, ok, count, detail, hint FROM graph_check() WHERE check_name = 'differing_edges';
ROLLBACK;
-- What the hint shows.
INSERT INTO twice.the_same VALUES (turn(1), turn(5), 'reply');
SELECT hint AS rows_of FROM graph_check() WHERE check_name = 'differing_edges' \gset
:rows_of
DELETE FROM twice.the_same WHERE parent_turn_id = turn(1) AND child_turn_id = turn(5);
-- Rights and row security are those of all three tables.
CREATE ROLE regress_twice;
GRANT SELECT ON memory_turns, memory_turn_edges TO regress_twice;
SET ROLE regress_twice;
SELECT code, message FROM test_error('SELECT graph_slice(turn(2))');
RESET ROLE;
GRANT USAGE ON SCHEMA twice TO regress_twice;
GRANT SELECT ON twice.the_same TO regress_twice;
ALTER TABLE twice.the_same ENABLE ROW LEVEL SECURITY;
CREATE POLICY part ON twice.the_same USING (child_turn_id <> public.turn(3));
SET ROLE regress_twice;
SELECT graph_slice(turn(2)) #>> '{attestation,rls}' AS rls;
SELECT selected FROM test_slice(3);
RESET ROLE;
DROP OWNED BY regress_twice;
DROP ROLE regress_twice;
ALTER TABLE twice.the_same DISABLE ROW LEVEL SECURITY;
-- Mappings that do not fit.
SELECT e.* FROM unnest(ARRAY['{"edges_by_child": "the_same"}', '{"edges_by_child": "twice.nothing"}', '{"edges_by_child": 1}', '{"edges_by_child": "public.memory_turns"}']) AS m, test_error(format('SELECT graph_kernel.bind_tables(%L, %L, %L, %L)', 'memory_turns', 'memory_turn_edges', m, 'bad')) AS e;
SELECT * FROM test_error($$SELECT graph_kernel.bind_tables('memory_turns', columns => '{"turns": {"parents": []}, "edges_by_child": "twice.the_same"}', name => 'bad')$$);
CREATE TABLE twice.texts (parent_turn_id text, child_turn_id text, edge_type text);
SELECT * FROM test_error($$SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', '{"edges_by_child": "twice.texts"}', 'bad')$$);
-- Without it, it is another graph; bound again, it is the same.
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', '{"edges_by_child": "twice.the_same"}') AS by_child \gset
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', '{}') AS plain \gset
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', '{"edges_by_child": "twice.the_same"}') = :'by_child' AS same, :'by_child' <> :'plain' AS other;
-- The second table is known by what it is, not by its name.
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', '{}') <> :'by_child' AS other;
ALTER TABLE twice.the_same RENAME TO renamed;
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', '{"edges_by_child": "twice.renamed"}') = :'by_child' AS same;
SELECT parent_turn_id = turn(1) AS is_parent, edge_type FROM graph_kernel.list_edges(ARRAY[turn(2)]);
DROP TABLE twice.renamed;
SELECT code, message FROM test_error('SELECT graph_slice(turn(2))');
SELECT graph_kernel.unbind_tables();
SELECT selected FROM test_slice(2);
DROP TABLE slices_before;
DROP SCHEMA twice CASCADE;

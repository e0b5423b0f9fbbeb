-- Promise: slices follow the bound tables through renames and moves, also in kept plans, and say what is missing.
CREATE SCHEMA here;
CREATE TABLE here.five (LIKE memory_turns INCLUDING INDEXES);
CREATE TABLE here.five_edges (LIKE memory_turn_edges INCLUDING INDEXES);
CREATE TABLE here.four (LIKE memory_turns INCLUDING INDEXES);
CREATE TABLE here.four_edges (LIKE memory_turn_edges INCLUDING INDEXES);
INSERT INTO here.five SELECT * FROM memory_turns;
INSERT INTO here.five_edges SELECT * FROM memory_turn_edges;
INSERT INTO here.four SELECT * FROM memory_turns WHERE id <> turn(5);
INSERT INTO here.four_edges SELECT * FROM memory_turn_edges WHERE child_turn_id <> turn(5);
PREPARE slice AS SELECT count(*), min(slice_id) AS slice_id FROM graph_slice_turns(turn(2));
SELECT graph_kernel.bind_tables('here.four', 'here.four_edges') IS NOT NULL AS bound;
EXECUTE slice;
-- Prepared statements see a new binding at once.
SELECT graph_kernel.bind_tables('here.five', 'here.five_edges') IS NOT NULL AS bound;
EXECUTE slice;

-- The tables change names with the other pair, then schemas do: the bound pair has five turns.
ALTER TABLE here.five RENAME TO aside;
ALTER TABLE here.four RENAME TO five;
ALTER TABLE here.aside RENAME TO four;
EXECUTE slice;
ALTER TABLE here.five_edges RENAME TO aside;
ALTER TABLE here.four_edges RENAME TO five_edges;
ALTER TABLE here.aside RENAME TO four_edges;
EXECUTE slice;
SELECT turns, edges FROM graph_kernel.bindings WHERE is_current;
CREATE SCHEMA there;
ALTER TABLE here.four SET SCHEMA there;
ALTER TABLE here.four_edges SET SCHEMA there;
ALTER TABLE here.five RENAME TO four;
ALTER TABLE here.five_edges RENAME TO four_edges;
EXECUTE slice;
ALTER SCHEMA here RENAME TO aside;
ALTER SCHEMA there RENAME TO here;
ALTER SCHEMA aside RENAME TO there;
EXECUTE slice;
SELECT turns, edges FROM graph_kernel.bindings WHERE is_current;
-- The same in a subtransaction that is rolled back.
BEGIN;
SAVEPOINT s;
ALTER TABLE here.four RENAME TO aside;
ALTER TABLE there.four SET SCHEMA here;
ALTER TABLE here.four RENAME trajectory_phase TO phase;
EXECUTE slice;
ROLLBACK TO s;
EXECUTE slice;
ROLLBACK;

-- Columns: a recognised name may change into another; what is no longer recognised is missing.
ALTER TABLE here.four RENAME trajectory_phase TO phase;
EXECUTE slice;
ALTER TABLE here.four RENAME phase TO stage;
SELECT * FROM test_error('EXECUTE slice');
SELECT * FROM graph_check();
SELECT graph_kernel.bind_tables(turns, edges, '{"turns": {"phase": "stage"}}') = graph AS same_graph FROM graph_kernel.bindings WHERE is_current;
EXECUTE slice;
-- Two columns change names: each value is read by the name of its column.
ALTER TABLE here.four RENAME trajectory_temporal TO aside;
ALTER TABLE here.four RENAME trajectory_homogeneity TO trajectory_temporal;
ALTER TABLE here.four RENAME aside TO trajectory_homogeneity;
SELECT t.trajectory_homogeneity = o.trajectory_temporal AND t.trajectory_temporal = o.trajectory_homogeneity AS swapped
FROM graph_slice_turns(turn(3), '{"max_nodes": 1}') AS t JOIN memory_turns AS o ON o.id = t.turn_id;
-- A type of the same meaning, one of another, a dropped column: what was stored when it was bound never counts as
-- not stored.
ALTER TABLE here.four ALTER trajectory_complexity TYPE integer;
EXECUTE slice;
ALTER TABLE here.four ALTER trajectory_complexity TYPE numeric;
SELECT code, message FROM test_error('EXECUTE slice');
ALTER TABLE here.four ALTER trajectory_complexity TYPE real, DROP content_hash;
SELECT code, message FROM test_error('EXECUTE slice');
ALTER TABLE here.four ADD content_hash text;
SELECT graph_slice(turn(2)) ->> 'slice_id' AS slice_id, graph_slice(turn(2)) ->> 'graph_snapshot_hash' AS without_hashes;
ALTER TABLE here.four DROP trajectory_complexity;
SELECT code, message FROM test_error('EXECUTE slice');
ALTER TABLE here.four ADD trajectory_complexity real;
EXECUTE slice;

-- A table that is no longer permanent; one without its index still answers, and graph_check says so.
ALTER TABLE here.four_edges SET UNLOGGED;
SELECT code, message FROM test_error('EXECUTE slice');
ALTER TABLE here.four_edges SET LOGGED;
ALTER TABLE here.four DROP CONSTRAINT five_pkey;
EXECUTE slice;
SELECT check_name, ok, hint FROM graph_check() WHERE check_name LIKE 'index%';

-- Dropped: an error, also when others take the names, until tables are bound again.
DROP TABLE here.four;
SELECT * FROM test_error('EXECUTE slice');
SELECT * FROM graph_check();
ALTER TABLE there.four SET SCHEMA here;
SELECT code FROM test_error('EXECUTE slice');
SELECT graph_kernel.bind_tables('here.four', 'there.four_edges') IS NOT NULL AS bound;
EXECUTE slice;
DROP TABLE there.four_edges;
SELECT code, message FROM test_error('EXECUTE slice');

-- Unbound, the names count, whatever bears them.
SELECT graph_kernel.unbind_tables();
EXECUTE slice;
BEGIN;
ALTER TABLE memory_turns RENAME TO aside;
SELECT * FROM test_error('EXECUTE slice');
SELECT * FROM graph_check();
ALTER TABLE here.four RENAME TO memory_turns;
ALTER TABLE here.memory_turns SET SCHEMA public;
EXECUTE slice;
DROP TABLE memory_turn_edges;
SELECT code, message FROM test_error('EXECUTE slice');
CREATE VIEW memory_turn_edges AS SELECT turn(1) AS parent_turn_id;
SELECT code, message FROM test_error('EXECUTE slice');
ROLLBACK;
EXECUTE slice;
BEGIN;
ALTER SCHEMA public RENAME TO aside;
SELECT code, message FROM aside.test_error('SELECT aside.graph_slice(aside.turn(2))');
SELECT aside.graph_kernel_version() IS NOT NULL AS works;
ROLLBACK;
EXECUTE slice;

SET client_min_messages = warning;
DROP SCHEMA here, there CASCADE;

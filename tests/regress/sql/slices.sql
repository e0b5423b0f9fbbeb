-- Promise: slices of hand-worked graphs are those of SlicePolicy v1, to the byte.
SET client_min_messages = warning; -- no notices of missing indexes
\a
\t
-- The whole export up to its tokens, and its keys.
SELECT split_part(graph_slice(turn(2))::text, ',"admissibility_token"', 1);
SELECT string_agg(key, ' ') FROM json_object_keys(graph_slice(turn(2))) AS key;
SELECT string_agg(key, ' ') FROM json_object_keys(graph_slice(turn(2)) #> '{turns,0}') AS key;
\a
\t

-- The reference values A to D.
BEGIN;
ALTER TABLE memory_turns DISABLE TRIGGER USER; -- it keeps the hashes
UPDATE memory_turns SET content_hash = NULL;
SELECT 'A' AS case, s ->> 'slice_id' AS slice_id, s ->> 'graph_snapshot_hash' AS graph_snapshot_hash FROM graph_slice(turn(2)) AS s;
ROLLBACK;
SELECT v.case, s ->> 'slice_id' AS slice_id, s ->> 'graph_snapshot_hash' AS graph_snapshot_hash,
       json_array_length(s -> 'turns') AS turns, json_array_length(s -> 'edges') AS edges
FROM (VALUES ('B', 2, 'default'), ('C', 1, 'focused'), ('D', 5, 'broad')) AS v ("case", anchor, policy),
     graph_slice(turn(v.anchor), v.policy::slice_policy) AS s;
-- One hash missing, and the snapshot is of counts again; a turn alone.
BEGIN;
ALTER TABLE memory_turns DISABLE TRIGGER USER;
UPDATE memory_turns SET content_hash = NULL WHERE id = turn(4);
SELECT graph_slice(turn(2)) ->> 'graph_snapshot_hash' AS graph_snapshot_hash;
DELETE FROM memory_turn_edges;
UPDATE memory_turns SET session_id = 's', created_at = to_timestamp(1000), content_hash = NULL WHERE id = turn(1);
SELECT s ->> 'slice_id' AS slice_id, s ->> 'graph_snapshot_hash' AS graph_snapshot_hash, s ->> 'edges' AS edges FROM graph_slice(turn(1)) AS s;
ROLLBACK;

-- Turns come by id, with how and when they were selected.
SELECT turn_number(turn_id) AS turn, distance, priority, selection_order, role, phase, salience, trajectory_depth AS depth,
       trajectory_sibling_order AS sibling, trajectory_homogeneity AS homogeneity, trajectory_temporal AS temporal,
       trajectory_complexity AS complexity, created_at, left(content_hash, 8) AS hash, slice_id
FROM graph_slice_turns(turn(2));
-- Siblings are found at the distance of the turn itself: 3 and 5 are as near to 4 as 4.
SELECT turn_number(turn_id) AS turn, distance, priority, selection_order FROM graph_slice_turns(turn(4));
SELECT turn_number(parent) AS parent, turn_number(child) AS child, edge_type FROM graph_slice_edges(turn(4));

-- What each parameter does.
SELECT policy, s.* FROM unnest(ARRAY[
    '{}',
    '{"max_nodes": 1}',
    '{"max_nodes": 2}',
    '{"max_nodes": 3}',
    '{"max_radius": 0}',
    '{"max_radius": 1}',
    '{"max_radius": 2, "include_siblings": false}',
    '{"include_siblings": false}',
    '{"max_siblings_per_node": 0}',
    '{"max_siblings_per_node": 1}',
    '{"distance_decay": 0}',
    '{"distance_decay": 1, "salience_weight": 0}',
    '{"phase_weights": {"exploration": 5}}',
    '{"phase_weights": {"synthesis": -1, "planning": -1, "consolidation": -1, "debugging": -1, "exploration": -1}}'
]) AS policy, test_slice(4, policy::slice_policy) AS s;

-- Graphs with ties, cycles, parallel and dangling edges, in tables that do not forbid them.
CREATE SCHEMA odd;
CREATE TABLE odd.memory_turns (LIKE public.memory_turns INCLUDING INDEXES);
CREATE TABLE odd.memory_turn_edges (LIKE public.memory_turn_edges);
SELECT graph_kernel.bind_tables('odd.memory_turns', 'odd.memory_turn_edges') IS NOT NULL AS bound;
INSERT INTO odd.memory_turns (id, trajectory_phase)
SELECT turn(n), 'debugging' FROM unnest(ARRAY[10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33, 40, 41, 50, 51, 52, 53]) AS n;
INSERT INTO odd.memory_turn_edges
SELECT turn(parent), turn(child), edge_type FROM (VALUES
    (10, 13, 'reply'), (10, 12, 'reply'), (10, 11, 'reply'),
    (20, 22, 'reply'), (20, 23, 'reply'), (22, 21, 'reply'),
    (30, 31, 'reply'), (31, 32, 'reply'), (32, 30, 'reply'), (30, 30, 'reference'), (30, 99, 'reply'), (98, 30, 'reply'), (98, 33, 'branch'),
    (40, 41, 'default'), (40, 41, 'branch'), (40, 41, 'reply'), (40, 41, 'reply'), (40, 41, 'REPLY'), (40, 41, 'unheard-of'), (40, 41, 'reference'),
    (50, 52, 'reply'), (51, 52, 'reply'), (50, 53, 'reply'), (51, 53, 'reply')
) AS v (parent, child, edge_type);
-- Equal priority: lower id first; equal priority at two distances: the nearer first.
SELECT * FROM test_slice(10);
SELECT * FROM test_slice(10, '{"max_nodes": 2}');
SELECT * FROM test_slice(20, '{"distance_decay": 1, "include_siblings": false}');
SELECT * FROM test_slice(20, '{"distance_decay": 1, "include_siblings": false, "max_nodes": 3}');
-- Cycles end; a self-loop is an edge; a missing turn is in no slice, though turns below one are siblings.
SELECT * FROM test_slice(30);
SELECT * FROM test_slice(32, '{"max_radius": 1, "include_siblings": false}');
SELECT * FROM test_slice(33);
-- Parallel edges: each type once, in the order reply, branch, reference, default.
SELECT * FROM test_slice(40);
-- A sibling through two parents is one sibling.
SELECT * FROM test_slice(52, '{"max_siblings_per_node": 1}');

-- Asked twice, or of the rows in another order: the same bytes.
SELECT count(DISTINCT md5(graph_slice(turn(n))::text)) FROM unnest(ARRAY[30, 30, 30]) AS n;
SELECT md5(graph_slice(turn(30))::text) AS before \gset
CREATE TEMP TABLE kept AS SELECT * FROM odd.memory_turn_edges ORDER BY random();
DELETE FROM odd.memory_turn_edges;
INSERT INTO odd.memory_turn_edges SELECT * FROM kept;
SELECT md5(graph_slice(turn(30))::text) = :'before' AS same;

SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA odd CASCADE;
SELECT slice_id(2);

-- Promise: a chain of 100 000 turns is cut at the radius and the budget, nearest first, without deep recursion.
CREATE SCHEMA long;
CREATE TABLE long.turns (LIKE memory_turns);
CREATE TABLE long.edges (LIKE memory_turn_edges);
INSERT INTO long.turns (id) SELECT turn(n) FROM generate_series(1, 100000) AS n;
INSERT INTO long.edges SELECT turn(n), turn(n + 1), 'reply' FROM generate_series(1, 99999) AS n;
CREATE UNIQUE INDEX ON long.turns (id) INCLUDE (trajectory_phase, salience_score);
CREATE INDEX ON long.edges (parent_turn_id, child_turn_id, edge_type);
CREATE INDEX ON long.edges (child_turn_id, parent_turn_id, edge_type);
VACUUM ANALYZE long.turns, long.edges;
SELECT graph_kernel.bind_tables('long.turns', 'long.edges') IS NOT NULL AS bound;
-- The default policy goes 10 hops both ways.
SELECT count(*), min(turn_number(turn_id)), max(turn_number(turn_id)), max(distance) FROM graph_slice_turns(turn(50000));
-- At an end.
SELECT count(*), min(turn_number(turn_id)), max(turn_number(turn_id)), max(distance) FROM graph_slice_turns(turn(1));
SELECT count(*), min(turn_number(turn_id)), max(turn_number(turn_id)), max(distance) FROM graph_slice_turns(turn(100000));
-- 5000 hops and 10 000 turns: both ways but for the last one, where priorities tie at the same distance and the lower id goes first.
SELECT count(*), min(turn_number(turn_id)), max(turn_number(turn_id)), max(distance), bool_and(distance = abs(turn_number(turn_id) - 50000)) AS distances
FROM graph_slice_turns(turn(50000), '{"max_radius": 5000, "max_nodes": 10000}');
SELECT count(*) AS edges FROM graph_slice_edges(turn(50000), '{"max_radius": 5000, "max_nodes": 10000}');
-- Order of selection: by distance, then id, through underflow to priority 0.
SELECT bool_and(selection_order = CASE WHEN distance = 0 THEN 0 ELSE 2 * distance - (turn_number(turn_id) < 50000)::int END) AS in_order,
       min(priority) AS lowest
FROM graph_slice_turns(turn(50000), '{"max_radius": 5000, "max_nodes": 10000}');
-- No radius: the budget alone, to one side.
SELECT count(*), max(turn_number(turn_id)), max(distance)
FROM graph_slice_turns(turn(1), '{"max_radius": 2147483647, "max_nodes": 10000, "distance_decay": 1}');
SELECT ok, count FROM graph_check() WHERE check_name = 'cycles';

SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA long CASCADE;

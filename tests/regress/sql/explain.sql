-- Promise: an explanation lists every turn the slicer read, once, and its selected rows are the slice.
CREATE SCHEMA explain;
SELECT graph_kernel.create_tables('explain');
ALTER TABLE explain.memory_turn_edges DROP CONSTRAINT memory_turn_edges_parent_turn_id_fkey,
    DROP CONSTRAINT memory_turn_edges_child_turn_id_fkey;
-- 1 is the parent of 2 to 6, 2 of 7, 7 of 8; 98 and 99 are missing; 50 stands alone.
INSERT INTO explain.memory_turns (id, role, trajectory_phase, salience_score, content_text)
SELECT turn(n), 'user', 'planning', 1 - n / 100.0, repeat('x', n) FROM unnest(ARRAY[1, 2, 3, 4, 5, 6, 7, 8, 50]) AS n;
INSERT INTO explain.memory_turn_edges (parent_turn_id, child_turn_id)
SELECT turn(p), turn(c) FROM (VALUES (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (2, 7), (7, 8), (99, 2), (7, 98), (7, 99)) AS v (p, c);
SELECT graph_kernel.bind_tables('explain.memory_turns', 'explain.memory_turn_edges') IS NOT NULL AS bound;
CREATE VIEW explained AS
SELECT p.name, p.policy, x.step, turn_number(x.turn_id) AS turn, x.outcome, x.distance, x.priority, x.via,
       turn_number(x.discovered_from) AS of, x.reason
FROM (VALUES ('radius 0', '{"max_radius": 0}'), ('budget 2', '{"max_nodes": 2, "max_siblings_per_node": 2}'),
             ('siblings 2', '{"max_radius": 1, "max_siblings_per_node": 2, "max_nodes": 3}'), ('all', 'default')) AS p (name, policy)
CROSS JOIN LATERAL graph_slice_explain(turn(2), p.policy::slice_policy) AS x;
SELECT name, step, turn, outcome, distance, priority, via, of, reason FROM explained ORDER BY name, step;
-- One row a turn, numbered from 0; selected ones are the slice's: no rows.
SELECT name, turn FROM explained GROUP BY 1, 2 HAVING count(*) > 1;
SELECT name FROM explained GROUP BY 1 HAVING min(step) <> 0 OR max(step) <> count(*) - 1 OR count(DISTINCT step) <> count(*);
SELECT t.name, s.turn_id, t.turn
FROM (SELECT DISTINCT name, policy FROM explained) AS p
CROSS JOIN LATERAL graph_slice_turns(turn(2), p.policy::slice_policy) AS s
FULL JOIN (SELECT * FROM explained WHERE outcome = 'selected') AS t
  ON t.name = p.name AND t.turn = turn_number(s.turn_id) AND t.step = s.selection_order AND t.distance = s.distance AND t.priority = s.priority
WHERE s.turn_id IS NULL OR t.turn IS NULL;

-- Why: the way there, or the one change that brings a turn in.
SELECT turn_number(turn) AS turn, policy, w.included, w.explanation, (SELECT array_agg(turn_number(id)) FROM unnest(w.path) AS id) AS path
FROM (VALUES (turn(2), 'default'), (turn(8), 'default'), (turn(3), 'default'), (turn(8), '{"max_nodes": 3}'), (turn(8), '{"max_radius": 1}'),
             (turn(6), '{"max_radius": 1, "include_siblings": false}'), (turn(8), '{"max_nodes": 2, "max_radius": 1}'), (turn(50), 'default'),
             (turn(99), 'default'), (turn(77), 'default')) AS v (turn, policy)
CROSS JOIN LATERAL graph_why(turn(2), turn, policy::slice_policy) AS w;
SELECT * FROM test_error('SELECT * FROM graph_why(turn(77), turn(2))');
-- No change is named that the server would refuse.
SET graph_kernel.max_nodes_limit = 3;
SELECT explanation FROM graph_why(turn(2), turn(8), '{"max_nodes": 3}');
SELECT code, detail FROM test_error('SELECT * FROM graph_slice_explain(turn(2))');
SELECT code, detail FROM test_error('SELECT * FROM graph_slice_stats(turn(2))');
SELECT code, detail FROM test_error('SELECT * FROM graph_why(turn(2), turn(3))');
RESET graph_kernel.max_nodes_limit;

-- Statistics: truncated says whether a larger budget gives more.
SELECT p.policy, s.turns, s.edges, s.max_distance, s.budget_used, s.truncated, s.frontier_left, s.content_chars
FROM unnest(ARRAY['default', '{"max_nodes": 8}', '{"max_nodes": 7}', '{"max_nodes": 1}', '{"max_radius": 0}']) AS p (policy)
CROSS JOIN LATERAL graph_slice_stats(turn(2), p.policy::slice_policy) AS s;
SELECT phases, roles FROM graph_slice_stats(turn(2));
-- Where no content is stored there are no characters; who may not read it gets none either.
UPDATE explain.memory_turns SET content_text = NULL;
SELECT turns, content_chars FROM graph_slice_stats(turn(2));
CREATE ROLE regress_reader;
GRANT USAGE ON SCHEMA explain TO regress_reader;
GRANT SELECT ON explain.memory_turn_edges TO regress_reader;
GRANT SELECT (id, session_id, role, trajectory_phase, salience_score, trajectory_depth, trajectory_sibling_order, trajectory_homogeneity,
              trajectory_temporal, trajectory_complexity, created_at, content_hash) ON explain.memory_turns TO regress_reader;
SET ROLE regress_reader;
SELECT count(*) FROM graph_slice_explain(turn(2));
SELECT included FROM graph_why(turn(2), turn(8));
SELECT code, message FROM test_error('SELECT * FROM graph_slice_stats(turn(2))');
RESET ROLE;
-- Row security: what is hidden is missing.
ALTER TABLE explain.memory_turns ENABLE ROW LEVEL SECURITY;
CREATE POLICY odd ON explain.memory_turns TO regress_reader USING (turn_number(id) <> 1);
SET ROLE regress_reader;
SELECT turn_number(turn_id) AS turn, outcome, via, reason FROM graph_slice_explain(turn(2)) ORDER BY step;
SELECT explanation FROM graph_why(turn(2), turn(1));
RESET ROLE;
SELECT graph_kernel.unbind_tables();
DROP VIEW explained;
SET client_min_messages = warning;
DROP SCHEMA explain CASCADE;
DROP ROLE regress_reader;

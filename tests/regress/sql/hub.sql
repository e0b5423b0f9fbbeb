-- Promise: a turn with 100 000 children gives the slice that sorting all of them would give, in bounded memory.
CREATE SCHEMA wide;
CREATE TABLE wide.turns (LIKE memory_turns);
CREATE TABLE wide.edges (LIKE memory_turn_edges);
-- Hub A (1) and hub B (2). A's children are 10 001 to 110 000, B's 100 001 to 120 000: 10 000 are shared.
INSERT INTO wide.turns (id, trajectory_phase, salience_score)
SELECT turn(n), (ARRAY['exploration', 'debugging', 'planning', 'consolidation', 'synthesis'])[1 + n % 5], (n::bigint * 104729 % 1000) / 1000.0
FROM generate_series(10001, 120000) AS n;
INSERT INTO wide.turns (id, trajectory_phase, salience_score) VALUES (turn(1), 'exploration', 0), (turn(2), 'exploration', 0);
INSERT INTO wide.edges SELECT turn(1), turn(n), 'reply' FROM generate_series(10001, 110000) AS n;
INSERT INTO wide.edges SELECT turn(2), turn(n), 'branch' FROM generate_series(100001, 120000) AS n;
CREATE UNIQUE INDEX ON wide.turns (id) INCLUDE (trajectory_phase, salience_score);
CREATE INDEX ON wide.edges (parent_turn_id, child_turn_id, edge_type);
CREATE INDEX ON wide.edges (child_turn_id, parent_turn_id, edge_type);
VACUUM ANALYZE wide.turns, wide.edges;
SELECT graph_kernel.bind_tables('wide.turns', 'wide.edges') IS NOT NULL AS bound;
CREATE TEMP VIEW child AS
SELECT e.parent_turn_id AS hub, t.id, t.trajectory_phase AS phase, t.salience_score AS salience
FROM wide.edges AS e JOIN wide.turns AS t ON t.id = e.child_turn_id;
CREATE FUNCTION pg_temp.priority(phase text, salience real, decay real) RETURNS real LANGUAGE sql
AS $$ SELECT (('{"synthesis": 1, "planning": 0.9, "consolidation": 0.6, "debugging": 0.5, "exploration": 0.3}'::jsonb -> phase)::real
              + salience * 0.3::real) * decay $$;

-- At hub A: itself and its best children, all at distance 1; each of their siblings is a child of A as well.
-- (Hub B would come at distance 2 with the lowest priority.)
WITH oracle AS (
    SELECT id FROM child WHERE hub = turn(1) ORDER BY pg_temp.priority(phase, salience, 0.9) DESC, id LIMIT 255
), slice AS (SELECT turn_id, distance FROM graph_slice_turns(turn(1)))
SELECT count(*) AS turns, count(*) FILTER (WHERE turn_id = turn(1) AND distance = 0) AS anchor,
       count(*) FILTER (WHERE distance = 1 AND turn_id IN (SELECT id FROM oracle)) AS best_children
FROM slice;
-- The same with the largest budget.
WITH oracle AS (
    SELECT id FROM child WHERE hub = turn(1) ORDER BY pg_temp.priority(phase, salience, 0.9) DESC, id LIMIT 9999
), slice AS (SELECT turn_id, distance FROM graph_slice_turns(turn(1), '{"max_nodes": 10000}'))
SELECT count(*) AS turns, count(*) FILTER (WHERE turn_id = turn(1)) AS anchor,
       count(*) FILTER (WHERE distance = 1 AND turn_id IN (SELECT id FROM oracle)) AS best_children
FROM slice;
-- Ties only: the lowest ids.
SELECT count(*) AS turns, max(turn_number(turn_id)) AS last, count(*) FILTER (WHERE turn_number(turn_id) BETWEEN 10001 AND 10255) AS lowest
FROM graph_slice_turns(turn(1), '{"salience_weight": 0, "phase_weights": {"exploration": 0, "debugging": 0, "planning": 0, "consolidation": 0, "synthesis": 0}}');

-- At a child with 99 999 siblings: its five best siblings at its own distance, theirs (the sixth), then the hub, then the hub's best children.
SELECT turn_number(id) AS anchor FROM child WHERE hub = turn(1) AND phase = 'exploration' AND salience = 0 AND id < turn(100001) ORDER BY id LIMIT 1 \gset
WITH best_siblings AS (
    SELECT id FROM child WHERE hub = turn(1) AND id <> turn(:anchor) ORDER BY salience DESC, id LIMIT 6
), oracle AS (
    SELECT turn(:anchor) AS id, 0 AS distance UNION ALL SELECT turn(1), 1 UNION ALL SELECT id, 0 FROM best_siblings UNION ALL
    (SELECT id, 2 FROM child WHERE hub = turn(1) AND id <> turn(:anchor) AND id NOT IN (SELECT id FROM best_siblings)
     ORDER BY pg_temp.priority(phase, salience, 0.9::real * 0.9::real) DESC, id LIMIT 256 - 8)
)
SELECT count(*) AS turns, count(o.id) AS as_expected, count(*) FILTER (WHERE s.distance = 0) AS near
FROM graph_slice_turns(turn(:anchor)) AS s LEFT JOIN oracle AS o ON o.id = s.turn_id AND o.distance = s.distance;

-- Two hubs. With negative weights what is farther ranks higher: a slice at A goes through its best child, a shared one, to B, and on to
-- B's own children, 110 001 and up. The other shared children were found as A's, chosen or not, so they count as visited.
UPDATE wide.turns SET trajectory_phase = CASE WHEN id BETWEEN turn(100001) AND turn(110000) THEN 'planning' ELSE 'exploration' END;
SELECT count(*) AS turns, count(*) FILTER (WHERE distance = 3) AS through_b, min(turn_number(turn_id)) FILTER (WHERE distance = 3) AS lowest,
       max(turn_number(turn_id)) FILTER (WHERE distance = 3) AS highest,
       string_agg(turn_number(turn_id) || '@' || distance, ' ' ORDER BY selection_order) FILTER (WHERE selection_order < 5) AS first
FROM graph_slice_turns(turn(1), '{"max_nodes": 1000, "include_siblings": false, "salience_weight": 0,
                                  "phase_weights": {"exploration": -1, "planning": -0.95}}');

-- An explanation holds all of them, and its selected rows are the slice's all the same.
SELECT x.outcome, x.via, count(*), count(s.turn_id) AS in_slice
FROM graph_slice_explain(turn(:anchor)) AS x
LEFT JOIN graph_slice_turns(turn(:anchor)) AS s
  ON s.turn_id = x.turn_id AND s.selection_order = x.step AND s.distance = x.distance AND s.priority = x.priority
GROUP BY 1, 2 ORDER BY 1, 2;
SELECT turns, truncated, frontier_left FROM graph_slice_stats(turn(:anchor));

SELECT graph_kernel.unbind_tables();
SET client_min_messages = warning;
DROP SCHEMA wide CASCADE;

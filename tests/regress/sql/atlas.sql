-- Promise: many slices are held side by side in one call, and what they come to has the published fingerprints.
\pset null '(null)'
SELECT graph_snapshot();
SELECT ARRAY[turn(1), turn(3), turn(5)] AS anchors \gset
SELECT turn_number(anchor_turn_id) AS anchor, slice ->> 'slice_id' AS slice_id FROM graph_slices(:'anchors'::uuid[], '{"max_nodes": 3}');
SELECT * FROM graph_overlap(:'anchors'::uuid[], '{"max_nodes": 3}');
SELECT turn_number(turn_id) AS turn, slice_count, slice_fraction, phases, is_bridge FROM graph_influence(:'anchors'::uuid[], '{"max_nodes": 3}');
SELECT jsonb_pretty(graph_atlas(:'anchors'::uuid[], '{"max_nodes": 3}', 'all_v1'));
-- Anchors are a set: neither their order nor repetitions show.
SELECT graph_atlas(:'anchors'::uuid[], '{"max_nodes": 3}') = graph_atlas(ARRAY[turn(5), turn(1), turn(3), turn(1)], '{"max_nodes": 3}') AS same;
-- Overlaps below min_jaccard are left out, here and in the atlas.
SELECT count(*) FROM graph_overlap(:'anchors'::uuid[], '{"max_nodes": 3}', 0.5);
SELECT slice_a, slice_b, jaccard FROM graph_overlap(:'anchors'::uuid[], '{"max_nodes": 3}', 0.51);
SELECT a ->> 'overlap_graph_hash' AS overlaps, a #> '{stats,overlap_edge_count}' AS count
FROM graph_atlas(:'anchors'::uuid[], '{"max_nodes": 3}', min_jaccard => 0.51) AS a;
-- Centroids and the selection policy are in the fingerprints.
SELECT count(DISTINCT a ->> 'phase_topology_hash') AS topologies, count(DISTINCT a ->> 'atlas_id') AS atlases
FROM generate_series(0, 2) AS k, graph_atlas((SELECT array_agg(id) FROM memory_turns), '{"max_nodes": 3}', centroids => k) AS a;
SELECT count(DISTINCT graph_atlas(:'anchors'::uuid[], selection_policy => p) ->> 'anchor_set_hash') FROM unnest(ARRAY['given', 'latest', '']) AS p;
-- No anchor, no slice.
SELECT count(*) FROM graph_overlap('{}');
SELECT count(*) FROM graph_influence('{}');
SELECT graph_atlas('{}') -> 'stats' AS stats;
-- One bad anchor spoils the whole: it would be an atlas of something else.
SELECT f.name, e.* FROM (VALUES ('graph_overlap'), ('graph_influence'), ('graph_atlas')) AS f (name),
    test_error(format('SELECT %I(ARRAY[turn(1), turn(77)])', f.name)) AS e;
SELECT f.name, e.* FROM (VALUES ('graph_overlap'), ('graph_influence'), ('graph_atlas')) AS f (name),
    test_error(format('SELECT %I(ARRAY[turn(1), NULL])', f.name)) AS e;
SELECT v.call, e.code, e.message, e.detail FROM (VALUES
    ('graph_overlap(%L, min_jaccard => -0.1)'), ('graph_overlap(%L, min_jaccard => ''NaN'')'), ('graph_atlas(%L, min_jaccard => 1.1)'),
    ('graph_atlas(%L, centroids => -1)'), ('graph_atlas(%L, selection_policy => repeat(''x'', 65537))'), ('graph_influence(%L, ''{"max_nodes": 0}'')')
) AS v (call), test_error('SELECT ' || format(v.call, :'anchors')) AS e;
SET graph_kernel.max_nodes_limit = 100;
SELECT code, message, detail FROM test_error('SELECT graph_atlas(''{}'')');
RESET graph_kernel.max_nodes_limit;
-- The snapshot is of turns and edges: what turns contain, and edge types, do not show; anything else does.
BEGIN;
SELECT graph_snapshot() ->> 'snapshot_id' AS before \gset
UPDATE memory_turns SET content_text = 'edited', salience_score = 0, trajectory_phase = NULL;
UPDATE memory_turn_edges SET edge_type = 'default';
SELECT graph_snapshot() ->> 'snapshot_id' = :'before' AS same;
INSERT INTO memory_turns (id, created_at) VALUES (turn(6), NULL);
SELECT graph_snapshot() ->> 'snapshot_id' = :'before' AS same, graph_snapshot() ->> 'max_timestamp' AS max_timestamp;
TRUNCATE memory_turns CASCADE;
SELECT graph_snapshot();
ROLLBACK;
-- Row security: the snapshot and the slices are what the caller may see.
CREATE ROLE regress_reader;
GRANT SELECT ON memory_turns, memory_turn_edges TO regress_reader;
ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
CREATE POLICY not_three ON memory_turns USING (id <> '00000000-0000-0000-0000-000000000003');
SET ROLE regress_reader;
SELECT graph_snapshot() -> 'turn_count' AS turns;
SELECT code, detail FROM test_error('SELECT graph_influence(ARRAY[turn(3)])');
SELECT turn_number(turn_id) AS turn FROM graph_influence(ARRAY[turn(1)]);
RESET ROLE;
REVOKE SELECT ON memory_turn_edges FROM regress_reader;
SET ROLE regress_reader;
SELECT code, message FROM test_error('SELECT graph_snapshot()');
SELECT code, message FROM test_error('SELECT graph_overlap(ARRAY[turn(1)])');
RESET ROLE;
DROP POLICY not_three ON memory_turns;
ALTER TABLE memory_turns DISABLE ROW LEVEL SECURITY;
DROP OWNED BY regress_reader;
DROP ROLE regress_reader;

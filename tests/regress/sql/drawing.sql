-- Promise: two slices are compared by value, and a slice is drawn whatever its texts say.
CREATE TEMP TABLE kept (name text, slice json);
INSERT INTO kept SELECT 'default', graph_slice(turn(2));
INSERT INTO kept SELECT 'small', graph_slice(turn(2), '{"max_nodes": 3}');
INSERT INTO kept SELECT 'other anchor', graph_slice(turn(3), '{"max_nodes": 3}');
BEGIN;
UPDATE memory_turns SET salience_score = 0.4, session_id = E'"]; x -> y <b>\\' WHERE id = turn(4);
DELETE FROM memory_turn_edges WHERE child_turn_id = turn(5);
INSERT INTO memory_turn_edges VALUES (turn(4), turn(5), 'reference');
SELECT graph_slice(turn(2)) AS later \gset
ROLLBACK;
INSERT INTO kept VALUES ('later', :'later');
CREATE FUNCTION pg_temp.diff(a text, b text) RETURNS TABLE (kind text, turn bigint, parent bigint, child bigint, field text, was text, now text) LANGUAGE sql
AS $$ SELECT d.kind, turn_number(d.turn_id), turn_number(d.parent), turn_number(d.child), d.field, d.was, d.now
      FROM kept AS a, kept AS b, graph_slice_diff(a.slice, b.slice) AS d WHERE a.name = $1 AND b.name = $2 $$;
-- Two policies, two anchors, two times; the same is no rows, however its JSON is spelt.
SELECT * FROM pg_temp.diff('default', 'small');
SELECT * FROM pg_temp.diff('small', 'other anchor');
SELECT * FROM pg_temp.diff('default', 'later');
SELECT * FROM pg_temp.diff('later', 'later');
SELECT * FROM kept, graph_slice_diff(slice, slice::jsonb::json);

\pset format unaligned
SELECT graph_export_draw(slice, 'dot') FROM kept WHERE name = 'later';
SELECT graph_export_draw(slice) FROM kept WHERE name = 'later';
\pset format aligned

-- An export of SlicePolicy v1 §6.1 has no hashes of contents and no tokens: the rest is compared and drawn. It cannot be
-- verified; what is missing is said.
INSERT INTO kept
SELECT 'locked', slice::jsonb - '{graph_snapshot_hash,admissibility_token,attestation}'::text[]
       || jsonb_build_object('turns', (SELECT jsonb_agg(turn - 'content_hash')
                                       FROM jsonb_array_elements(slice::jsonb -> 'turns') AS turn))
FROM kept WHERE name = 'later';
SELECT * FROM pg_temp.diff('locked', 'later');
SELECT * FROM pg_temp.diff('default', 'locked');
SELECT count(DISTINCT graph_export_draw(slice)) FROM kept WHERE name IN ('later', 'locked');
SELECT v.valid, v.reason, e.detail FROM kept, graph_verify(slice) AS v, graph_verify_explain(slice) AS e WHERE name = 'locked';

-- What is not an export is an error that says where.
SELECT * FROM test_error($$SELECT graph_export_draw('{}')$$);
SELECT message FROM test_error($$SELECT graph_export_draw('[1, 2]', 'dot')$$);
SELECT * FROM test_error($$SELECT graph_export_draw('{}', 'svg')$$);
SELECT message FROM test_error($$SELECT * FROM graph_slice_diff((SELECT slice FROM kept LIMIT 1), '"text"')$$);
SELECT change, message
FROM kept, (VALUES ('{turns,0,salience}', '"high"'), ('{edges,0,edge_type}', '"href"'), ('{anchor_turn_id}', '"00000000-0000-0000-0000-000000000077"'),
                   ('{edges,0,child}', '"ffffffff-0000-0000-0000-000000000077"'), ('{turns,0,id}', '"ffffffff-0000-0000-0000-000000000077"'),
                   ('{note}', '1')) AS v (change, value),
     test_error(format('SELECT graph_export_draw(%L)', jsonb_set(slice::jsonb, change::text[], value::jsonb)))
WHERE name = 'default';

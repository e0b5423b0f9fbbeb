-- Promise: graph_slices answers every anchor in order, one row each, and a bad anchor is a row.
\pset null '(null)'
SELECT turn_number(anchor_turn_id) AS anchor, slice ->> 'slice_id' AS slice_id, error_code, error
FROM graph_slices(ARRAY[turn(5), turn(2), NULL, turn(77), turn(2), turn(1)]);
-- Each slice is what graph_slice gives, byte for byte, under the same policy.
SELECT count(*), bool_and(slice::text = graph_slice(anchor_turn_id, 'focused')::text) AS same
FROM graph_slices((SELECT array_agg(id) FROM memory_turns), 'focused');
SELECT count(*) FROM graph_slices('{}');
SELECT count(*) FROM graph_slices(NULL);
SELECT count(*) FROM graph_slices(ARRAY[turn(1)], NULL);
-- Arrays of any shape are read in storage order.
SELECT string_agg(turn_number(anchor_turn_id)::text, ' ') AS anchors FROM graph_slices(ARRAY[[turn(1), turn(2)], [turn(3), turn(4)]]);
SELECT string_agg(turn_number(anchor_turn_id)::text, ' ') AS anchors
FROM graph_slices('[5:6]={00000000-0000-0000-0000-000000000004,00000000-0000-0000-0000-000000000001}');
SELECT string_agg(format('%s:%s', ordinality, turn_number(anchor_turn_id)), ' ') AS anchors
FROM graph_slices(ARRAY[turn(3), NULL, turn(3)]) WITH ORDINALITY;
-- What is wrong with every anchor is an error.
SELECT code, message, detail FROM test_error($$SELECT graph_slices(ARRAY[turn(1)], '{"max_nodes": 0}')$$);
SELECT code, message, detail FROM test_error($$SELECT * FROM graph_slices(ARRAY['no uuid']::uuid[])$$);
-- The select list streams: of many anchors only the first are sliced.
SET statement_timeout = '60s';
SELECT turn_number((s.r).anchor_turn_id) AS anchor, (s.r).error_code
FROM (SELECT graph_slices(array_agg(turn(i % 7))) AS r FROM generate_series(1, 1000000) AS i) AS s LIMIT 4;
RESET statement_timeout;
-- A cursor fetches slices as they are made; closing it early is fine.
BEGIN;
DECLARE c CURSOR FOR SELECT (r).anchor_turn_id AS anchor, (r).slice ->> 'slice_id' AS slice_id, (r).error_code
    FROM (SELECT graph_slices(array_agg(turn(i % 7))) AS r FROM generate_series(1, 100000) AS i) AS s;
FETCH 2 FROM c;
FETCH 3 FROM c;
CLOSE c;
COMMIT;
-- One snapshot: rows changed after the cursor was opened do not show in it.
BEGIN;
DECLARE c CURSOR FOR SELECT (r).slice ->> 'slice_id' AS slice_id, (r).error_code
    FROM (SELECT graph_slices(ARRAY[turn(2), turn(2), turn(4)]) AS r) AS s;
FETCH 1 FROM c;
DELETE FROM memory_turn_edges;
DELETE FROM memory_turns WHERE id = turn(4);
FETCH ALL FROM c;
SELECT slice ->> 'slice_id' AS slice_id, error_code FROM graph_slices(ARRAY[turn(2), turn(4)]);
ROLLBACK;
-- In LATERAL over a table of batches.
SELECT b.name, count(s.slice) AS slices, count(s.error) AS errors
FROM (VALUES ('a', ARRAY[turn(1), turn(2)]), ('b', '{}'), ('c', ARRAY[turn(99), NULL]), ('d', NULL)) AS b (name, anchors)
LEFT JOIN LATERAL graph_slices(b.anchors) AS s ON true
GROUP BY b.name ORDER BY b.name;

-- Promise: chunks come from the bound event table, stream, are selected without changing, and are compared with what was kept.
SELECT code, message, hint FROM test_error('SELECT recorder_chunks()');
SELECT graph_kernel.create_recorder_table();
INSERT INTO recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id, session_id, occurred_at_ms, event_type, text)
SELECT i / 10, i, i * 100, 'e' || i, 1 + i / 15, 's', i * 1000,
       CASE WHEN i % 5 = 0 THEN 'ingress_text' ELSE 'egress_output' END, repeat('line ' || i || E' \r\n', i % 4)
FROM generate_series(0, 29) AS i;
CREATE VIEW brief AS
SELECT chunk_index AS n, pane_id, direction, start_segment_id AS seg, start_ordinal AS ord, start_char AS char,
       end_ordinal, end_char, event_count, is_open FROM recorder_chunks('{"max_chunk_chars": 80, "overlap_chars": 10}');
SELECT * FROM brief;

-- Filters select chunks; ids and numbers stay.
SELECT chunk_index, start_ordinal, end_ordinal FROM recorder_chunks('{"max_chunk_chars": 80}', pane_id => 2);
SELECT chunk_index, start_ordinal, end_ordinal FROM recorder_chunks('{"max_chunk_chars": 80}', from_segment_id => 1, from_ordinal => 17, to_segment_id => 2, to_ordinal => 21);
SELECT chunk_index, start_ordinal, end_ordinal FROM recorder_chunks('{"max_chunk_chars": 80}', from_segment_id => 2);
SELECT chunk_index, start_ordinal, end_ordinal FROM recorder_chunks('{"max_chunk_chars": 80}', to_segment_id => 0);
SELECT count(*) FROM recorder_chunks('{"max_chunk_chars": 80}', from_segment_id => 2, to_segment_id => 1);
SELECT code, detail, message, hint FROM test_error('SELECT recorder_chunks(to_ordinal => 1)');

-- The select list streams: a limit leaves no cursor, a held cursor goes on, a bad event further on is not read.
SELECT (c).chunk_index FROM (SELECT recorder_chunks('{"max_chunk_chars": 80}') AS c LIMIT 2) AS s;
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT (c).chunk_index FROM (SELECT recorder_chunks('{"max_chunk_chars": 80}') AS c OFFSET 0) AS s;
FETCH 2 FROM held;
COMMIT;
FETCH 2 FROM held;
CLOSE held;
BEGIN;
DECLARE a CURSOR FOR SELECT (c).chunk_index FROM (SELECT recorder_chunks('{"max_chunk_chars": 80}') AS c OFFSET 0) AS s;
FETCH 1 FROM a;
DELETE FROM recorder_events WHERE ordinal > 3;
FETCH 1 FROM a;
SAVEPOINT one;
FETCH 1 FROM a;
ROLLBACK TO one;
FETCH 1 FROM a;
SELECT name FROM pg_cursors;
ROLLBACK;
-- A cursor whose first row was asked for under a savepoint ends with it, not with another.
BEGIN;
DECLARE a CURSOR FOR SELECT (c).chunk_index FROM (SELECT recorder_chunks('{"max_chunk_chars": 80}') AS c OFFSET 0) AS s;
SAVEPOINT one;
FETCH 1 FROM a;
RELEASE one;
SAVEPOINT two;
ROLLBACK TO two;
FETCH 1 FROM a;
ROLLBACK;
BEGIN;
DECLARE a CURSOR FOR SELECT (c).chunk_index FROM (SELECT recorder_chunks('{"max_chunk_chars": 80}') AS c OFFSET 0) AS s;
SAVEPOINT one;
FETCH 1 FROM a;
ROLLBACK TO one;
FETCH 1 FROM a;
ROLLBACK;
UPDATE recorder_events SET event_type = 'paste' WHERE ordinal = 25;
SELECT (c).chunk_index FROM (SELECT recorder_chunks('{"max_chunk_chars": 80}') AS c LIMIT 2) AS s;
SELECT code, detail, message, hint FROM test_error('SELECT count(*) FROM recorder_chunks()');
UPDATE recorder_events SET event_type = 'ingress_text' WHERE ordinal = 25;

-- Since a position, and back from an event.
SELECT chunk_index, start_ordinal, end_ordinal FROM recorder_chunks_since(2, 27, '{"max_chunk_chars": 80}');
SELECT count(*) AS outside FROM recorder_chunks_since(-1, 0) UNION ALL SELECT count(*) FROM recorder_chunks_since(9, 9);
SELECT chunk_index, start_ordinal, end_ordinal FROM recorder_event_chunks(1, 12, '{"max_chunk_chars": 80}');
SELECT count(*) AS no_event FROM recorder_event_chunks(1, 3);
SELECT code, detail, message, hint FROM test_error('SELECT recorder_chunk_span(0, 1, 0, 0, 2, 900)');
SELECT code, detail, message FROM test_error('SELECT recorder_chunk_span(0, 1, 0, 0, 99, 1)');
SELECT code, detail, message FROM test_error('SELECT recorder_chunk_span(0, 1, 5, 0, 1, 4)');

-- What was kept.
CREATE TABLE kept AS SELECT * FROM recorder_chunks('{"max_chunk_chars": 80}');
SELECT status, count(*) FROM recorder_verify_chunks('kept', '{"max_chunk_chars": 80}') GROUP BY 1;
UPDATE kept SET chunk_text = 'other' WHERE chunk_index = 1;
UPDATE kept SET start_ordinal = 4 WHERE chunk_index = 2;
SELECT k.chunk_index, v.status FROM recorder_verify_chunks('kept', '{"max_chunk_chars": 80}') AS v
LEFT JOIN kept AS k USING (chunk_id) WHERE v.status <> 'ok' ORDER BY 2, 1;
ALTER TABLE kept DROP COLUMN start_char;
SELECT code, detail, message, hint FROM test_error('SELECT recorder_verify_chunks(''kept'')');
DROP TABLE kept;

-- The binding: other names, moved along by OID, checked each time, not to be written past the functions.
CREATE SCHEMA recorder;
CREATE TABLE recorder.log (LIKE recorder_events);
INSERT INTO recorder.log SELECT * FROM recorder_events WHERE ordinal < 3;
ALTER TABLE recorder.log RENAME text TO body;
SELECT code, detail, message, hint FROM test_error('SELECT graph_kernel.bind_recorder_table(''recorder.log'')');
SELECT code, detail, message, hint FROM test_error($$SELECT graph_kernel.bind_recorder_table('recorder.log', '{"text": "body"}')$$);
SELECT code, detail, message FROM test_error($$SELECT graph_kernel.bind_recorder_table('recorder.log', '{"word": "body"}')$$);
SELECT code, detail, message FROM test_error($$SELECT graph_kernel.bind_recorder_table('recorder.log', '{"text": null}')$$);
SELECT code, detail, message FROM test_error($$SELECT graph_kernel.bind_recorder_table('recorder.log', '{"text": "pane_id"}')$$);
SELECT code, detail, message FROM test_error('SELECT graph_kernel.bind_recorder_table(''brief'')');
CREATE UNIQUE INDEX ON recorder.log (segment_id, ordinal);
SELECT graph_kernel.bind_recorder_table('recorder.log', '{"text": "body"}');
SELECT count(*), max(end_ordinal) FROM recorder_chunks();
ALTER TABLE recorder.log RENAME TO renamed;
SELECT count(*), max(end_ordinal) FROM recorder_chunks();
ALTER TABLE recorder.renamed DROP COLUMN session_id, DROP COLUMN is_gap, DROP COLUMN schema_version;
SELECT count(*), count(session_id) AS sessions FROM recorder_chunks();
ALTER TABLE recorder.renamed DROP COLUMN byte_offset;
SELECT code, detail, message FROM test_error('SELECT recorder_chunks()');
DROP SCHEMA recorder CASCADE;
SELECT code, detail, message, hint FROM test_error('SELECT recorder_chunks()');
SELECT graph_kernel.unbind_recorder_table();
SELECT count(*) FROM recorder_chunks();

-- Partitions, and rows that row security shows.
CREATE TABLE parts (LIKE recorder_events) PARTITION BY RANGE (segment_id);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES FROM (0) TO (1);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (9);
CREATE UNIQUE INDEX ON parts (segment_id, ordinal);
INSERT INTO parts SELECT * FROM recorder_events;
SELECT array_agg(chunk_id ORDER BY chunk_index) AS plain FROM recorder_chunks() \gset
SELECT graph_kernel.bind_recorder_table('parts');
SELECT array_agg(chunk_id ORDER BY chunk_index) = :'plain' AS same FROM recorder_chunks();
CREATE ROLE regress_reader;
GRANT SELECT ON parts TO regress_reader;
ALTER TABLE parts ENABLE ROW LEVEL SECURITY;
CREATE POLICY pane ON parts TO regress_reader USING (pane_id = 2);
SET ROLE regress_reader;
SELECT DISTINCT pane_id FROM recorder_chunks();
SELECT count(*) AS hidden FROM recorder_event_chunks(0, 3);
RESET ROLE;
SELECT graph_kernel.unbind_recorder_table();
DROP TABLE parts;
DROP ROLE regress_reader;

-- Policies as values.
SELECT '{"max_chunk_chars": 80}'::chunking_policy = '{"max_chunk_chars": 80, "overlap_chars": 120}' AS equal,
       'default'::chunking_policy <> '{"overlap_chars": 0}' AS other,
       (SELECT count(DISTINCT p::text) FROM (VALUES ('default'::chunking_policy), ('{}')) AS v (p)) AS distinct_texts;
SELECT p.text, e.code, e.message FROM (VALUES ('{"max_chunk_events": 0}'), ('{"max_chunk_chars": 2147483648}'), ('{"max_window_ms": 1.5}'),
    ('{"overlap": 1}'), ('[]'), ('broad'), ('{"overlap_chars": 1e999}'), ('')) AS p (text)
CROSS JOIN LATERAL test_error(format('SELECT %L::chunking_policy', p.text)) AS e;

-- A read-only transaction will do.
BEGIN READ ONLY;
SELECT count(*) FROM recorder_chunks();
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_xid;
COMMIT;
DROP VIEW brief;
DROP TABLE recorder_events;

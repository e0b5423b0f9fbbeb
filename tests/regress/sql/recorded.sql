-- Promise: what a slice does not record, and what is not attested, is said.
\set VERBOSITY default
-- create_tables takes options, and no others.
SELECT code, message, detail, hint
FROM unnest(ARRAY['NULL', '''[]''', '''1''', '''{"content_hash": 1}''', '''{"content_hash": null}''', '''{"words": "klingon"}''', '''{"word": "english"}''',
                  '''{"Content_Hash": true}''']) AS given,
     test_error(format('SELECT graph_kernel.create_tables(%L, %s)', 'Of "them"', given));
-- An empty name is not a schema, and tables that are there are left as they are.
BEGIN;
CREATE SCHEMA "Of them";
SELECT graph_kernel.create_tables('Of them');
SELECT graph_kernel.create_recorder_table('Of them');
SELECT graph_kernel.create_trace_table('Of them');
SELECT function, schema, e.* FROM unnest(ARRAY['create_tables', 'create_recorder_table', 'create_trace_table']) AS function,
    unnest(ARRAY['', 'Of them']) AS schema, test_error(format('SELECT graph_kernel.%I(%L)', function, schema)) AS e;
SELECT * FROM test_error('SELECT graph_kernel.create_tables()');
ROLLBACK;
CREATE SCHEMA bare;
SELECT graph_kernel.create_tables('bare', '{"content_hash": false}');
SELECT count(*) AS triggers FROM pg_trigger WHERE tgrelid = 'bare.memory_turns'::regclass AND NOT tgisinternal;
SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger
WHERE tgrelid = 'memory_turns'::regclass AND NOT tgisinternal ORDER BY tgname;

-- A hash is that of its content, whatever the statement says. One that comes without a content stays, and goes with it.
CREATE SCHEMA kept;
SELECT graph_kernel.create_tables('kept');
INSERT INTO kept.memory_turns (id, content_text, content_hash) VALUES
    (turn(1), 'one', NULL), (turn(2), 'two', 'forged'), (turn(3), NULL, repeat('a', 64)), (turn(4), NULL, NULL), (turn(5), '', NULL);
CREATE FUNCTION pg_temp.hashes() RETURNS TABLE (n bigint, hash text) LANGUAGE sql AS $$
    SELECT turn_number(id), CASE WHEN content_hash = graph_content_hash(content_text) THEN 'of its content'
                                 ELSE left(content_hash, 4) END
    FROM kept.memory_turns ORDER BY id
$$;
SELECT * FROM pg_temp.hashes();
UPDATE kept.memory_turns SET content_text = content_text || ' edited' WHERE id = turn(1);
UPDATE kept.memory_turns SET content_hash = NULL WHERE id = turn(2);
UPDATE kept.memory_turns SET salience_score = 1 WHERE id = turn(3);
UPDATE kept.memory_turns SET content_text = 'four' WHERE id = turn(4);
UPDATE kept.memory_turns SET content_text = NULL WHERE id = turn(5);
SELECT * FROM pg_temp.hashes();

-- An edit shows where there is a hash; where there is none, replay says so.
CREATE TEMP TABLE exports (n int, slice json);
INSERT INTO bare.memory_turns (id, content_text) VALUES (turn(1), 'one'), (turn(2), 'two');
INSERT INTO bare.memory_turn_edges VALUES (turn(1), turn(2), 'reply');
INSERT INTO kept.memory_turn_edges VALUES (turn(1), turn(2), 'reply');
SELECT graph_kernel.bind_tables('bare.memory_turns', 'bare.memory_turn_edges') IS NOT NULL AS bound;
INSERT INTO exports SELECT 1, graph_slice(turn(2));
UPDATE bare.memory_turns SET content_text = 'forged' WHERE id = turn(1);
SELECT r.* FROM exports, graph_replay(slice) AS r WHERE n = 1;
SELECT check_name, ok, count, detail, hint FROM graph_check() WHERE check_name = 'turns_without_content_hash';
SELECT r.field FROM graph_slice(turn(1), '{"max_nodes": 1}') AS s, graph_replay(s) AS r;
-- The command that the hint gives writes hashes, and nothing else.
CREATE TEMP TABLE before AS SELECT * FROM bare.memory_turns;
SET client_min_messages = warning;
CALL graph_kernel.backfill_content_hashes();
RESET client_min_messages;
SELECT count(*) AS changed FROM (SELECT id, content_text, created_at FROM before EXCEPT SELECT id, content_text, created_at FROM bare.memory_turns) AS d;
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'turns_without_content_hash';
-- A turn without a content has nothing to hash.
INSERT INTO bare.memory_turns (id) VALUES (turn(9));
SELECT ok, count FROM graph_check() WHERE check_name = 'turns_without_content_hash';
-- Without contents in the mapping, every turn without a hash counts.
SELECT graph_kernel.bind_tables('bare.memory_turns', 'bare.memory_turn_edges', '{"turns": {"content_text": null}}') IS NOT NULL AS bound;
SELECT ok, count, hint FROM graph_check() WHERE check_name = 'turns_without_content_hash';
SELECT graph_kernel.bind_tables('kept.memory_turns', 'kept.memory_turn_edges') IS NOT NULL AS bound;
INSERT INTO exports SELECT 2, graph_slice(turn(2));
SELECT r.* FROM exports, graph_replay(slice) AS r WHERE n = 2;
UPDATE kept.memory_turns SET content_text = 'forged' WHERE id = turn(1);
SELECT status, regexp_replace(field, '.*\.', '') AS field FROM exports, graph_replay(slice) AS r WHERE n = 2;

-- Where contents are bound and no hash is, the hint binds one.
CREATE TABLE bare."No hash" AS SELECT id, content_text AS "The text" FROM bare.memory_turns;
ALTER TABLE bare."No hash" ADD PRIMARY KEY (id);
CREATE FUNCTION pg_temp.without_hash() RETURNS TABLE (ok boolean, count bigint, detail text, hint text) LANGUAGE sql AS $$
    SELECT ok, count, detail, hint FROM graph_check() WHERE check_name = 'turns_without_content_hash'
$$;
SET client_min_messages = warning;
SELECT graph_kernel.bind_tables('bare."No hash"', 'bare.memory_turn_edges', '{"turns": {"content_text": "The text"}, "edges": {"edge_type": null}}', 'it''s') IS NOT NULL AS bound;
SET graph_kernel.graph = 'it''s';
SELECT * FROM pg_temp.without_hash();
SELECT hint AS command FROM pg_temp.without_hash() \gset
\o /dev/null
:command
\o
SELECT * FROM pg_temp.without_hash();
SELECT columns #> '{turns,content_text}' AS content, columns -> 'edges' AS edges FROM graph_kernel.bindings WHERE is_current AND name = 'it''s';
SELECT graph_kernel.bind_tables('bare."No hash"', 'bare.memory_turn_edges', '{"turns": {"content_text": {"expression": "\"The text\" || ''.''"}}}', 'it''s') IS NOT NULL AS bound;
SELECT hint AS command FROM pg_temp.without_hash() \gset
\o /dev/null
:command
\o
SELECT * FROM pg_temp.without_hash();
SELECT count(*) AS hashed FROM graph_slice_turns(turn(1)) AS s JOIN bare."No hash" AS t ON t.id = s.turn_id WHERE s.content_hash = graph_content_hash("The text" || '.');
SELECT graph_kernel.bind_tables('bare."No hash"', 'bare.memory_turn_edges', '{"turns": {"content_text": "The text", "content_hash": null}}', 'it''s') IS NOT NULL AS bound;
SELECT * FROM pg_temp.without_hash();
SELECT graph_kernel.unbind_tables('it''s');
RESET graph_kernel.graph;
RESET client_min_messages;

-- State of the own transaction is not attested, which is said once a transaction.
BEGIN;
INSERT INTO kept.memory_turns (id) VALUES (turn(6));
CREATE TEMP TABLE taken ON COMMIT PRESERVE ROWS AS SELECT graph_slice(turn(2)) AS slice;
SELECT count(*) FROM graph_slices(ARRAY[turn(1), turn(2), turn(6)]);
SELECT count(*) > 0 AS taken FROM graph_slice_turns(turn(2));
COMMIT;
SELECT * FROM test_error('SELECT graph_proof(slice) FROM taken');
SELECT valid, reason FROM taken, graph_verify(slice);
-- Once for the transaction, also where it has savepoints or a slice failed; again in the next one.
BEGIN;
SAVEPOINT s;
INSERT INTO kept.memory_turns (id) VALUES (turn(7));
SELECT count(*) FROM graph_slices(ARRAY[turn(7), turn(2)]);
ROLLBACK TO s;
INSERT INTO kept.memory_turns (id) VALUES (turn(7));
SELECT count(*) FROM graph_slices(ARRAY[turn(7), turn(2)]);
COMMIT;
BEGIN;
UPDATE kept.memory_turns SET salience_score = 0 WHERE id = turn(7);
SELECT graph_slice(turn(7)) #>> '{attestation,status}' AS status;
COMMIT;
-- Any role turns it off. What issues no token says nothing: replay, the check, edges.
BEGIN;
SET LOCAL graph_kernel.notice_uncommitted = off;
UPDATE kept.memory_turns SET salience_score = 0 WHERE id = turn(7);
SELECT graph_slice(turn(7)) #>> '{attestation,status}' AS status;
COMMIT;
BEGIN;
UPDATE kept.memory_turns SET salience_score = 1 WHERE id = turn(7);
SELECT count(*) FROM taken, graph_replay(slice);
SELECT count(*) > 0 AS checked FROM graph_check();
SELECT count(*) FROM graph_slice_edges(turn(7));
ROLLBACK;
-- What is written elsewhere is not relevant.
BEGIN;
CREATE TEMP TABLE elsewhere ON COMMIT DROP AS SELECT 1;
SELECT graph_slice(turn(7)) #>> '{attestation,status}' AS status;
COMMIT;

-- DROP EXTENSION takes CASCADE, which drops the triggers and no row.
BEGIN;
SAVEPOINT s;
\set VERBOSITY terse
DROP EXTENSION graph_kernel;
ROLLBACK TO s;
SET LOCAL client_min_messages = warning;
DROP EXTENSION graph_kernel CASCADE;
SELECT count(*) FROM kept.memory_turns;
SELECT count(*) FROM kept.memory_turn_edges;
SELECT count(*) AS triggers FROM pg_trigger WHERE tgrelid = 'kept.memory_turns'::regclass AND NOT tgisinternal;
UPDATE kept.memory_turns SET content_text = 'by hand' WHERE id = turn(1);
ROLLBACK;
SELECT graph_kernel.unbind_tables();

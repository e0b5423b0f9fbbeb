-- Promise: tables in the list of Citus are read by statements of their own, with the same result, and never attested.
-- A list that says so is enough, without Citus: the server reads the tables. All of it is rolled back.
CREATE TABLE test_calls (number int PRIMARY KEY, call text);
INSERT INTO test_calls SELECT n, replace(call, 'ANCHOR', 'turn(2)') FROM unnest(ARRAY[
    $$SELECT string_agg(s.turn_id || ' ' || s.distance || ' ' || s.priority, ',') FROM graph_slice_turns(ANCHOR) AS s$$,
    $$SELECT string_agg(s.turn_id || ' ' || s.distance || ' ' || s.priority, ',') FROM graph_slice_turns(ANCHOR, 'broad') AS s$$,
    $$SELECT string_agg(s.turn_id || ' ' || s.distance, ',') FROM graph_slice_turns(ANCHOR, 'chat') AS s$$,
    $$SELECT string_agg(s.turn_id || ' ' || s.distance, ',') FROM graph_slice_turns(ANCHOR, 'lineage') AS s$$,
    $$SELECT string_agg(s.turn_id || ' ' || s.distance, ',') FROM graph_slice_turns(ANCHOR, '{"max_nodes": 2}') AS s$$,
    $$SELECT string_agg(e::text, ',') FROM graph_slice_edges(ANCHOR) AS e$$,
    $$SELECT string_agg(e::text, ',') FROM graph_slice_explain(ANCHOR) AS e$$,
    $$SELECT string_agg(m::text, ',') FROM graph_messages(ANCHOR) AS m$$,
    $$SELECT graph_slice_draw(ANCHOR)$$,
    $$SELECT string_agg(b.anchor_turn_id || ' ' || (b.slice ->> 'slice_id'), ',') FROM graph_slices(ARRAY[turn(1), turn(3), turn(5)]) AS b$$,
    $$SELECT graph_snapshot()::text$$,
    $$SELECT string_agg(a::text, ',') FROM graph_anchors_recent(3) AS a$$,
    $$SELECT string_agg(c.check_name || ' ' || c.ok || ' ' || c.count, ',') FROM graph_check() AS c WHERE c.count IS NOT NULL$$
]) WITH ORDINALITY AS c (call, n);
CREATE FUNCTION pg_temp.answer(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN EXECUTE call INTO STRICT answer; RETURN answer; END $$;
CREATE TABLE atoms (slice json, turn uuid);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turn');
SELECT graph_kernel.bind_store(graph_kernel.create_slice_store('public'));
SELECT graph_keep(graph_slice(turn(2))) IS NOT NULL AS kept;
-- What graph_check counts.
ALTER TABLE memory_turn_edges DROP CONSTRAINT memory_turn_edges_child_turn_id_fkey;
INSERT INTO memory_turn_edges VALUES (turn(5), turn(99), 'reply');
CREATE TABLE test_before AS SELECT number, pg_temp.answer(call) FROM test_calls;
SELECT count(*) AS calls, count(answer) AS answers FROM test_before;

BEGIN;
SET LOCAL allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass);
INSERT INTO pg_catalog.pg_dist_partition VALUES ('memory_turns');
-- A table of this name is not Citus's. Citus announces what it distributes as a change of the table.
SET LOCAL graph_kernel.notice_uncommitted = off;
ALTER TABLE memory_turns SET (fillfactor = 91);
SELECT graph_slice(turn(2)) #>> '{attestation,status}' AS status;
UPDATE pg_catalog.pg_extension SET extname = 'citus' WHERE extname = 'plpgsql';
ALTER TABLE memory_turns SET (fillfactor = 92);
SELECT graph_slice(turn(2)) #>> '{attestation,status}' AS status;
SET LOCAL graph_kernel.notice_uncommitted = on;
ALTER EXTENSION citus ADD TABLE pg_catalog.pg_dist_partition;
ALTER TABLE memory_turns SET (fillfactor = 93);
SELECT slice -> 'admissibility_token' AS v2, slice #> '{attestation,token}' AS v3, slice #>> '{attestation,status}' AS status, v.valid, v.reason
  FROM (SELECT graph_slice(turn(2)) AS slice OFFSET 0) AS s, graph_verify(slice) AS v;
SELECT c.number, c.call FROM test_calls AS c JOIN test_before AS b USING (number) WHERE pg_temp.answer(c.call) IS DISTINCT FROM b.answer;
-- Nothing takes it as attested.
SELECT detail FROM graph_verify_explain(graph_slice(turn(2))) WHERE NOT ok;
SELECT graph_messages_record(turn(2)) ->> 'token' AS token;
SELECT * FROM test_error($$SELECT graph_messages_json(graph_messages_record(turn(2)))$$);
SELECT * FROM test_error($$INSERT INTO atoms SELECT graph_slice(turn(2)), turn(2)$$);
SELECT * FROM test_error($$SELECT graph_keep(graph_slice(turn(2)))$$);
SELECT * FROM test_error($$SELECT graph_proof(graph_slice(turn(2)))$$);
SELECT * FROM test_error($$SELECT * FROM graph_kernel.refresh_batch(0, 10)$$);
SELECT status, count(*) FROM graph_replay((SELECT graph_kept(key) FROM slice_store)) GROUP BY status;
-- What was attested before is so still, also in a store that Citus reads.
INSERT INTO pg_catalog.pg_dist_partition VALUES ('slice_store');
SELECT v.reason FROM slice_store, graph_verify(graph_kept(key)) AS v;
-- What Citus would raise, with a hint that it does not give.
SAVEPOINT refused;
CREATE ROLE regress_distributed;
GRANT SELECT ON memory_turns, memory_turn_edges TO regress_distributed;
CREATE FUNCTION refused() RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'it is not so' USING ERRCODE = current_setting('test.code'); END$$;
CREATE POLICY refused ON memory_turns USING (public.refused());
ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
SET LOCAL ROLE regress_distributed;
SELECT e.* FROM unnest('{0A000,08006,40001}'::text[]) AS t (code), test_error(format('SELECT set_config(%L, %L, true); SELECT graph_slice(turn(2))', 'test.code', t.code)) AS e;
ROLLBACK TO refused;
DELETE FROM pg_catalog.pg_dist_partition;
ALTER TABLE memory_turns RESET (fillfactor);
SELECT graph_slice(turn(2)) #>> '{attestation,status}' AS status;
ROLLBACK;
SELECT graph_slice(turn(2)) #>> '{attestation,status}' AS status;

SELECT graph_kernel.unbind_store();
DROP TABLE atoms, slice_store, test_calls, test_before;
DELETE FROM memory_turn_edges WHERE child_turn_id = turn(99);
ALTER TABLE memory_turn_edges ADD CONSTRAINT memory_turn_edges_child_turn_id_fkey FOREIGN KEY (child_turn_id) REFERENCES memory_turns (id);

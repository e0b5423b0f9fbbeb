-- Promise: refresh_kept takes each kept slice of the role again, names exactly those that differ, and keeps what they are now beside them.
SELECT graph_kernel.bind_store(graph_kernel.create_slice_store('public'));
SELECT count(DISTINCT graph_keep(graph_slice(turn(n), policy::slice_policy))) AS kept FROM generate_series(1, 5) AS n, unnest('{default,"{\"max_radius\": 0}"}'::text[]) AS policy;
SELECT graph_keep(graph_messages_record(turn(2))) IS NOT NULL AS kept;
CREATE TABLE atoms (slice text, turn uuid);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('ref=slice', 'turn');
ALTER TABLE atoms ENABLE ALWAYS TRIGGER admissible;
INSERT INTO atoms SELECT key, anchor FROM slice_store, generate_series(1, 3) WHERE anchor = turn(4) AND cardinality(turns) = 1;
INSERT INTO atoms SELECT key, anchor FROM slice_store WHERE anchor = turn(1) AND kind = 'slice';
CREATE VIEW shown AS SELECT kind, turn_number(anchor_turn_id) AS anchor, turns, role = current_user AS mine, checked_at IS NOT NULL AS checked, status, superseded_by IS NOT NULL AS superseded, atoms
  FROM graph_kernel.kept ORDER BY kind, anchor_turn_id, turns, superseded_by IS NULL;
SELECT * FROM shown;
CALL graph_kernel.refresh_kept();
CALL graph_kernel.refresh_kept(older_than => '1 hour');
CALL graph_kernel.refresh_kept(3);
SELECT * FROM shown;

-- What a full comparison names.
UPDATE memory_turns SET salience_score = 0.2 WHERE id = turn(4);
CREATE TABLE drifted AS SELECT k.key FROM graph_kernel.kept AS k, graph_replay(graph_kept(k.key)) AS r WHERE k.kind = 'slice' GROUP BY k.key HAVING bool_or(r.status = 'drifted');
CALL graph_kernel.refresh_kept();
SELECT count(*) AS drifted, count(*) FILTER (WHERE k.status = 'changed') AS named, (SELECT count(*) FROM graph_kernel.kept AS o WHERE o.status = 'changed') AS all_named,
       (SELECT count(*) FROM graph_kernel.kept AS o, graph_replay(graph_kept(o.key)) AS r WHERE o.kind = 'slice' AND o.status = 'identical' AND r.status <> 'identical') AS left_out
  FROM drifted AS d JOIN graph_kernel.kept AS k USING (key);
SELECT turn_number(k.anchor_turn_id) AS anchor, k.turns, v.reason, d.* FROM graph_kernel.kept AS k, graph_verify(graph_kept(k.superseded_by)) AS v, graph_slice_diff(graph_kept(k.key), graph_kept(k.superseded_by)) AS d ORDER BY 1, 2, 4, 5;
SELECT count(*), count(*) FILTER (WHERE superseded) AS superseded, sum(atoms) AS atoms FROM shown;
-- And back: what was superseded is what the graph gives again.
UPDATE memory_turns SET salience_score = 0.1 WHERE id = turn(4);
CALL graph_kernel.refresh_kept();
SELECT count(*) FILTER (WHERE k.superseded_by IS NULL) AS first_are_current, count(*) FROM drifted AS d JOIN graph_kernel.kept AS k USING (key);
SELECT count(*) AS superseded, count(*) FILTER (WHERE n.superseded_by IS NULL AND n.status = 'identical') AS by_current FROM graph_kernel.kept AS k JOIN graph_kernel.kept AS n ON n.key = k.superseded_by;
-- An anchor that is gone.
BEGIN;
DELETE FROM memory_turn_edges WHERE turn(4) IN (parent_turn_id, child_turn_id);
DELETE FROM memory_turns WHERE id = turn(4);
COMMIT;
CALL graph_kernel.refresh_kept();
SELECT status, count(*) FROM shown GROUP BY status ORDER BY status;
INSERT INTO memory_turns SELECT turn(4), '11111111-1111-1111-1111-111111111111', 'user', 'debugging', 0.1, 2, 1, 0.2, 0.75, 1.0, '2024-01-01 00:03:00+00', 'turn four', graph_content_hash('turn four');
INSERT INTO memory_turn_edges VALUES (turn(2), turn(4), 'branch');
CALL graph_kernel.refresh_kept();
SELECT status, count(*) FROM shown GROUP BY status ORDER BY status;

-- Slices of others are theirs to take; a row that says otherwise is not believed.
CREATE ROLE kept_other;
GRANT SELECT ON memory_turns, memory_turn_edges TO kept_other;
GRANT SELECT, INSERT ON slice_store TO kept_other;
SET ROLE kept_other;
SELECT graph_keep(graph_slice(turn(3))) AS others \gset

RESET ROLE;
SET ROLE kept_other;
SELECT k.status, k.role, count(*) FROM graph_kernel.kept AS k GROUP BY 1, 2 ORDER BY 1, 2;
CALL graph_kernel.refresh_kept();
RESET ROLE;
GRANT UPDATE (checked_at, status, superseded_by) ON slice_store TO kept_other;
SET ROLE kept_other;
CALL graph_kernel.refresh_kept();
RESET ROLE;
CALL graph_kernel.refresh_kept();
UPDATE slice_store SET role = current_user, checked_at = NULL, status = NULL WHERE key = :'others';
UPDATE memory_turns SET salience_score = 0.31 WHERE id = turn(1);
CALL graph_kernel.refresh_kept(1);
SELECT status, superseded_by IS NULL AS alone FROM slice_store WHERE key = :'others';
UPDATE slice_store SET role = 'kept_other' WHERE key = :'others';
UPDATE memory_turns SET salience_score = 0.3 WHERE id = turn(1);
-- With row security it is another reader.
ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
CREATE POLICY everything ON memory_turns USING (true);
SET ROLE kept_other;
CALL graph_kernel.refresh_kept();
RESET ROLE;
DROP POLICY everything ON memory_turns;
ALTER TABLE memory_turns DISABLE ROW LEVEL SECURITY;
-- One that was edited is not taken by what it says.
UPDATE slice_store AS s SET document = graph_document_bytes(replace(graph_document_json(s.document)::text, '"max_radius":0', '"max_radius":9')::json), checked_at = NULL WHERE anchor = turn(1) AND cardinality(turns) = 1;
CALL graph_kernel.refresh_kept();
SELECT status, count(*) FROM graph_kernel.kept GROUP BY status ORDER BY status;
-- Rows that others have made end no call, and are named.
INSERT INTO slice_store (key, document, kind, graph, role, rls, anchor, turns, kept_by, kept_at)
SELECT repeat(n::text, 64), b, 'slice', s.graph, s.role, s.rls, s.anchor, '{}', 'x', now()
  FROM (SELECT * FROM slice_store WHERE role = current_user LIMIT 1) AS s,
       unnest('{"\\x89474b440209","\\x89474b44010128b52ffde0ffffffff0f000000","\\x78"}'::bytea[]) WITH ORDINALITY AS v (b, n);
CALL graph_kernel.refresh_kept();
SELECT left(key, 2) AS key, status FROM slice_store WHERE kept_by = 'x' ORDER BY key;
SELECT ok, count, detail FROM graph_check() WHERE check_name IN ('kept_documents', 'kept_references');
DELETE FROM slice_store WHERE kept_by = 'x';
-- A row under the right key that says something else.
SELECT graph_keep(graph_slice(turn(5), '{"max_radius": 1}')) AS key \gset
UPDATE slice_store SET turns = '{}' WHERE key = :'key';
SELECT code, replace(message, :'key', '…') AS message FROM test_error('SELECT graph_keep(graph_slice(turn(5), ''{"max_radius": 1}''))');
DELETE FROM slice_store WHERE key = :'key';
-- What is read must be written, else it would be due for ever.
ALTER TABLE slice_store ENABLE ROW LEVEL SECURITY;
CREATE POLICY reading ON slice_store FOR SELECT USING (true);
SET ROLE kept_other;
\set VERBOSITY terse
CALL graph_kernel.refresh_kept();
\set VERBOSITY default
RESET ROLE;
DROP POLICY reading ON slice_store;
ALTER TABLE slice_store DISABLE ROW LEVEL SECURITY;
-- A table of somebody who is not trusted is not read, by a superuser neither: its statistics would run. Then nobody says that
-- no row stands on a document.
SELECT count(*) = count(atoms) AS counted FROM graph_kernel.kept;
CREATE SCHEMA theirs AUTHORIZATION kept_other;
SET ROLE kept_other;
CREATE FUNCTION theirs.evil(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$;
CREATE TABLE theirs.atoms (slice text, turn uuid, n int);
CREATE STATISTICS theirs.stats ON (n + theirs.evil(1)), slice FROM theirs.atoms;
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON theirs.atoms NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('ref=slice', 'turn');
RESET ROLE;
SELECT count(*) > 0 AS there, count(atoms) AS counted FROM graph_kernel.kept;
SELECT ok, count, detail FROM graph_check() WHERE check_name = 'kept_references';
DROP SCHEMA theirs CASCADE;
-- Nor one of the owner of another graph's turns, with which it shares the store.
CREATE SCHEMA theirs AUTHORIZATION kept_other;
SET ROLE kept_other;
SELECT graph_kernel.create_tables('theirs');
CREATE FUNCTION theirs.evil(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$;
CREATE TABLE theirs.atoms (slice text, turn uuid, n int);
CREATE STATISTICS theirs.stats ON (n + theirs.evil(1)), slice FROM theirs.atoms;
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON theirs.atoms NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('ref=slice', 'turn', 'graph=b');
RESET ROLE;
SELECT graph_kernel.bind_tables('theirs.memory_turns', 'theirs.memory_turn_edges', name => 'b') IS NOT NULL AS bound;
SELECT graph_kernel.bind_store('slice_store', 'b');
SELECT count(*) > 0 AS there, count(atoms) AS counted FROM graph_kernel.kept;
SELECT place, count FROM graph_kernel.references('{}') WHERE kind = 'atom' AND place = 'theirs.atoms'::regclass;
SELECT graph_kernel.unbind_store('b'), graph_kernel.unbind_tables('b');
SET client_min_messages = warning;
DROP SCHEMA theirs CASCADE;
RESET client_min_messages;
-- Graphs may share a store: what stands on a document in one of them is counted in each.
SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges', name => 'b') IS NOT NULL AS bound;
SELECT graph_kernel.bind_store('slice_store', 'b');
SELECT sum(atoms) AS atoms FROM graph_kernel.kept;
CREATE TABLE notes (slice text, turn uuid);
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON notes NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('ref=slice', 'turn', 'graph=b');
SET graph_kernel.graph = 'b';
INSERT INTO notes SELECT graph_keep(graph_slice(turn(2))), turn(2);
SELECT sum(atoms) AS atoms FROM graph_kernel.kept;
RESET graph_kernel.graph;
SELECT sum(atoms) AS atoms FROM graph_kernel.kept;
-- Where it is not known what a trigger refers to, nobody says that no row stands on a document.
ALTER TABLE notes RENAME slice TO renamed;
SELECT count(*) > 0 AS there, count(atoms) AS counted FROM graph_kernel.kept;
ALTER TABLE notes RENAME renamed TO slice;
SELECT graph_kernel.unbind_store('b');
SELECT count(*) > 0 AS there, count(atoms) AS counted FROM graph_kernel.kept;
SELECT graph_kernel.unbind_tables('b');
SELECT count(*) > 0 AS there, count(atoms) AS counted FROM graph_kernel.kept;
DROP TABLE notes;
SELECT count(*) = count(atoms) AS counted FROM graph_kernel.kept;
-- What a trigger takes back would be due for ever.
CREATE FUNCTION taken_back() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.checked_at := OLD.checked_at; RETURN NEW; END $$;
CREATE TRIGGER taken_back BEFORE UPDATE ON slice_store FOR EACH ROW EXECUTE FUNCTION taken_back();
SET statement_timeout = '20s';
CALL graph_kernel.refresh_kept();
RESET statement_timeout;
DROP FUNCTION taken_back CASCADE;
-- A column of less than microseconds takes a time to be one before.
ALTER TABLE slice_store ALTER checked_at TYPE timestamptz(0);
DO $$ BEGIN PERFORM pg_sleep(1.05 - date_part('epoch', clock_timestamp())::numeric % 1); END $$;
CALL graph_kernel.refresh_kept();
SELECT bool_and(checked_at BETWEEN now() - interval '1 minute' AND now() + interval '1 second') AS checked FROM slice_store WHERE checked_at IS NOT NULL;
ALTER TABLE slice_store ALTER checked_at TYPE timestamptz;
-- JSON may spell an id in escapes.
CREATE TABLE spelled (slice json, turns uuid);
INSERT INTO spelled SELECT replace(graph_slice(turn(2))::text, '-', '\u002d')::json;
CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON spelled NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION graph_require_admissible('slice', 'turns');
SELECT place, key, count FROM graph_kernel.references('{}') WHERE place = 'spelled'::regclass;
DROP TABLE spelled;
-- What may not be called.
SELECT code, message FROM test_error('CALL graph_kernel.refresh_kept()');
\set VERBOSITY sqlstate
CALL graph_kernel.refresh_kept(-1);
CALL graph_kernel.refresh_kept(older_than => NULL);
CALL graph_kernel.refresh_kept(older_than => '-1 s');
CALL graph_kernel.refresh_kept(older_than => '178000000 years');
-- 15 and 16 have no such interval.
SELECT CASE WHEN current_setting('server_version_num')::int >= 170000 THEN 'infinity' ELSE '1000 years 1 s' END AS infinite \gset
CALL graph_kernel.refresh_kept(older_than => :'infinite');
CALL graph_kernel.refresh_kept(older_than => '1000 years');
BEGIN;
CALL graph_kernel.refresh_kept(1);
COMMIT;
\set VERBOSITY default
-- Whoever may insert may say that a slice was taken again: not at a time that has not come, nor by what is not there, nor
-- by itself.
SELECT graph_keep(graph_slice(turn(2), '{"max_radius": 3}')) AS early \gset
SELECT graph_keep(graph_slice(turn(2), '{"max_radius": 4}')) AS gone \gset
SELECT graph_keep(graph_slice(turn(2), '{"max_radius": 5}')) AS own \gset
UPDATE slice_store SET checked_at = 'infinity', status = 'identical' WHERE key = :'early';
UPDATE slice_store SET checked_at = now(), status = 'changed', superseded_by = 'x' WHERE key = :'gone';
UPDATE slice_store SET checked_at = now(), status = 'changed', superseded_by = key WHERE key = :'own';
UPDATE memory_turns SET salience_score = 0.21 WHERE id = turn(2);
SELECT key = :'early' AS early, key = :'own' AS own, fault FROM graph_kernel.unfit_documents('default') ORDER BY 1;
CALL graph_kernel.refresh_kept(older_than => '0');
SELECT key = :'early' AS early, status, checked_at < now() + interval '1 minute' AS checked, superseded_by IN ('x', key) AS by_none FROM slice_store WHERE key IN (:'early', :'gone', :'own') ORDER BY 1;
SELECT count(*) FROM graph_kernel.unfit_documents('default');
UPDATE memory_turns SET salience_score = 0.8 WHERE id = turn(2);
-- Many that were taken again, in a store whose keys have another collation, cost no more than their number.
CREATE TABLE plain_store (LIKE slice_store);
ALTER TABLE plain_store ALTER key TYPE text COLLATE "default", ADD PRIMARY KEY (key);
SELECT graph_kernel.bind_store('plain_store');
SELECT graph_keep(graph_slice(turn(2))) IS NOT NULL AS kept;
INSERT INTO plain_store
SELECT encode(sha256(i::text::bytea), 'hex'), '\x00', kind, graph, role, rls, anchor, turns, kept_by, kept_at, now() - interval '1 day', 'changed', key
FROM plain_store, generate_series(1, 30000) AS i;
ANALYZE plain_store;
SET work_mem = '64kB';
SET statement_timeout = '20s';
CALL graph_kernel.refresh_kept();
RESET statement_timeout;
RESET work_mem;
SELECT count(*) FROM plain_store WHERE checked_at > now() - interval '1 hour';
-- Without a store there is nothing.
SELECT graph_kernel.unbind_store();
DROP TABLE plain_store;
SELECT count(*) FROM graph_kernel.kept;
CALL graph_kernel.refresh_kept();
DROP VIEW shown;
DROP TABLE slice_store, atoms, drifted;
REVOKE ALL ON memory_turns, memory_turn_edges FROM kept_other;
DROP ROLE kept_other;
